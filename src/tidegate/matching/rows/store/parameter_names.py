"""Which slots of a row hold the values of which parameters.

Most rows of a shape have the same names in the same slots, so lists of names are numbered and a
subscription has only the number of its list. Lists that no subscription has are forgotten once
there are many of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidegate.language.expressions import ParameterRef
from tidegate.language.shapes import Row
from tidegate.matching.rows.store.uses import FORGOTTEN, UseCounts

Names = tuple[str | None, ...]
"""For each slot of a row the name of its parameter; None for a constant."""

UNUSED_LISTS_MAX = 32
"""Default number of lists that are kept though no subscription has them."""


class ParameterNames:
    """Lists of parameter names by number: equal lists have equal numbers, from 0 on.

    ``uses`` counts the subscriptions of each. ``lists`` are lists with given counts.

    >>> names = ParameterNames()
    >>> number = names.number(("low", None, "low"))
    >>> names.slots(number)
    {'low': (0, 2)}
    """

    def __init__(
        self,
        lists: Sequence[Iterable[str | None]] = (),
        counts: Sequence[int] = (),
        *,
        unused_max: int = UNUSED_LISTS_MAX,
    ) -> None:
        self._unused_max = unused_max
        self.uses = UseCounts(counts)
        self._numbers: dict[Names, int] = {}
        self._lists: list[Names] = []
        self._slots: list[Mapping[str, tuple[int, ...]]] = []
        for number, (each, count) in enumerate(zip(lists, counts, strict=True)):
            names = tuple(each)
            self._lists.append(names)
            self._slots.append(_slots_of(names))
            if count != FORGOTTEN:
                self._numbers[names] = number

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, names: Names) -> int:
        """The number of a list, which is added, without uses, if it is new."""
        number = self._numbers.get(names)
        if number is None:
            number = self._numbers[names] = self.uses.new()
            if number == len(self._lists):
                self._lists.append(names)
                self._slots.append(_slots_of(names))
            else:
                self._lists[number], self._slots[number] = names, _slots_of(names)
        return number

    def forget(self) -> None:
        """Forget the lists that were unused longest, if they are too many."""
        for number in self.uses.forget(self._unused_max):
            del self._numbers[self._lists[number]]
            self._lists[number], self._slots[number] = (), {}

    def number_of(self, row: Row) -> int:
        """The number of the list of names of a row."""
        return self.number(
            tuple(each.name if isinstance(each, ParameterRef) else None for each in row)
        )

    def names(self, number: int) -> Names:
        """The list with a number."""
        return self._lists[number]

    def slots(self, number: int) -> Mapping[str, tuple[int, ...]]:
        """The slots of each parameter of a list."""
        return self._slots[number]

    def lists(self) -> list[Names]:
        """All lists, in the order of their numbers; empty for a free number."""
        return self._lists


def _slots_of(names: Names) -> dict[str, tuple[int, ...]]:
    """The slots of each name in a list."""
    slots: dict[str, list[int]] = {}
    for slot, name in enumerate(names):
        if name is not None:
            slots.setdefault(name, []).append(slot)
    return {name: tuple(each) for name, each in slots.items()}

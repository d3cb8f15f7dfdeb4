"""Which slots of a row hold the values of which parameters.

Most rows of a shape have the same names in the same slots, so lists of names are numbered and a
subscription has only the number of its list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.language.expressions import ParameterRef
from tidegate.language.shapes import Row

Names = tuple[str | None, ...]
"""For each slot of a row the name of its parameter; None for a constant."""


class ParameterNames:
    """Lists of parameter names by number: equal lists have equal numbers, from 0 on.

    >>> names = ParameterNames()
    >>> number = names.number(("low", None, "low"))
    >>> names.slots(number)
    {'low': (0, 2)}
    """

    def __init__(self, lists: Iterable[Iterable[str | None]] = ()) -> None:
        self._numbers: dict[Names, int] = {}
        self._lists: list[Names] = []
        self._slots: list[dict[str, tuple[int, ...]]] = []
        for names in lists:
            self.number(tuple(names))

    def number(self, names: Names) -> int:
        """The number of a list, which is added if it is new."""
        number = self._numbers.get(names)
        if number is None:
            number = self._numbers[names] = len(self._lists)
            self._lists.append(names)
            slots: dict[str, list[int]] = {}
            for slot, name in enumerate(names):
                if name is not None:
                    slots.setdefault(name, []).append(slot)
            self._slots.append({name: tuple(each) for name, each in slots.items()})
        return number

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
        """All lists, in the order of their numbers."""
        return self._lists

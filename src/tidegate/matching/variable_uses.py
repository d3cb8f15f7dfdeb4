"""Which variables the filters of an engine use: only their providers are called.

Rule: no name is missing that is used. Names are noted before a subscription is added, because a
match may see it at once. Who removes it takes its names before, and drops them after: taken later,
they could be those of another one that was added under the same id in between. So while threads add
and cancel under one id, a name may be kept that is not used any more.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from tidegate.matching.forking import Rank, forkable_lock


class VariableUses(Container[str]):
    """The names of variables, with the number of subscriptions that use each.

    ``names`` are kept for ever.

    >>> uses = VariableUses()
    >>> uses.note(["load"])
    >>> uses.enter("s", ["load"])
    >>> "load" in uses, "mode" in uses
    (True, False)
    >>> uses.drop(uses.leave("s"))
    >>> "load" in uses
    False
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._counts = dict.fromkeys(names, 1)
        self._names_of: dict[str, tuple[str, ...]] = {}
        self._lock = forkable_lock(Rank.ENGINE)

    def __contains__(self, name: object) -> bool:
        return name in self._counts

    def __len__(self) -> int:
        return len(self._counts)

    def note(self, names: Iterable[str]) -> None:
        """Count one more use of each name; before a subscription is added."""
        with self._lock:
            for name in names:
                self._counts[name] = self._counts.get(name, 0) + 1

    def drop(self, names: Iterable[str]) -> None:
        """Count one use less of each name; of what could not be added, or was removed."""
        with self._lock:
            for name in names:
                self._counts[name] -= 1
                if not self._counts[name]:
                    del self._counts[name]

    def enter(self, id: str, names: Iterable[str]) -> None:
        """Note which names a subscription has, now that it was added; they are noted already."""
        kept = tuple(names)
        if kept:
            self._names_of[id] = kept

    def leave(self, id: str) -> tuple[str, ...]:
        """Take the names of a subscription that will be removed; they still count until dropped."""
        return self._names_of.pop(id, ())

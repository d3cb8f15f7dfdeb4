"""The ordered channels: which bounds on an attribute have order labels, and for how long.

Three kinds of bounds have labels (order_labels.py), each in a channel of its own for an attribute:
strings, numbers from 2**53 on, and timestamps so far from 1970 that their microseconds reach 2**53
(before 1684, after 2255). Smaller numbers and timestamps are floats exactly, and have no label.

A string keeps its labels until no cell of a subscription has it any more (`forget_texts`). Numbers
are not counted by anybody, so when there are twice as many as there were, the caller looks which
ones rows still have, and the others are dropped (`keep_long`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from tidegate.matching.rows.entries.order_labels import OrderLabels
from tidegate.matching.rows.kernels.cell_kinds import STRING
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter

ORDERED = 16
"""Kind of an ordered channel, added to that of the channel of the same values: NUMBER, TIME,
STRING."""

LONG_MAX = 1_024
"""So many long numbers are kept without looking whether rows have them."""

CROWDED_SHARE = 16
"""Labels are spread anew when one in so many bounds has none, which is rare (order_labels.py)."""

Bound = str | int | float
"""What has a label: a string, a number, or the microseconds of a timestamp."""


class Orders:
    """The order labels of all attributes."""

    def __init__(self) -> None:
        self._strings: dict[str, OrderLabels[str]] = {}
        self._long: dict[tuple[str, int], OrderLabels[int | float]] = {}
        self._attributes_with: dict[str, list[str]] = {}
        """By string: the attributes on which it is a bound."""
        self._long_max = LONG_MAX
        self._has_new_crowded = False

    def __len__(self) -> int:
        """How many bounds there are."""
        return sum(map(len, self._strings.values())) + self.long_numbers

    @property
    def long_numbers(self) -> int:
        """How many long numbers are bounds."""
        return sum(map(len, self._long.values()))

    def label(self, attribute: str, kind: int, values: list[Bound]) -> list[int | None]:
        """The labels of bounds, which are added if they are new; None for those without.

        ``kind`` is that of the channel of such values.
        """
        if kind == STRING:
            strings = self._strings.setdefault(attribute, OrderLabels())
            texts = [value for value in values if isinstance(value, str)]
            for text in strings.add(texts):
                self._attributes_with.setdefault(text, []).append(attribute)
            self._has_new_crowded |= strings.crowded > 0
            return [strings.label(text) for text in texts]
        numbers = self._long.setdefault((attribute, kind), OrderLabels())
        some = [value for value in values if not isinstance(value, str)]
        numbers.add(some)
        self._has_new_crowded |= numbers.crowded > 0
        return [numbers.label(number) for number in some]

    def strings(self, attribute: str) -> OrderLabels[str]:
        """The labels of the strings that an attribute is compared with."""
        return self._strings[attribute]

    def long(self, attribute: str, kind: int) -> OrderLabels[int | float]:
        """The labels of the numbers that an attribute is compared with, of a kind of channel."""
        return self._long[attribute, kind]

    def forget_texts(self, texts: Iterable[str]) -> None:
        """Drop the labels of strings that no subscription has any more."""
        gone: dict[str, list[str]] = {}
        for text in texts:
            for attribute in self._attributes_with.pop(text, ()):
                gone.setdefault(attribute, []).append(text)
        for attribute, found in gone.items():
            self._strings[attribute].remove(found)

    @property
    def needs_tidying(self) -> bool:
        """Whether bounds were added that may be crowded, or one too many."""
        return self._has_new_crowded or self.has_many_long

    @property
    def has_many_long(self) -> bool:
        """Whether there are twice as many long numbers as at the last `keep_long`."""
        return bool(self._long) and self.long_numbers > self._long_max

    def keep_long(self, alive: Collection[int | float]) -> None:
        """Drop the long numbers that are not among these."""
        for numbers in self._long.values():
            numbers.remove([each for each in numbers if each not in alive])
        self._long_max = max(LONG_MAX, 2 * self.long_numbers)

    def drop_attribute(self, attribute: str) -> None:
        """Drop all labels of an attribute."""
        for text in self._strings.pop(attribute, ()):
            others = self._attributes_with[text]
            others.remove(attribute)
            if not others:
                del self._attributes_with[text]
        for key in [key for key in self._long if key[0] == attribute]:
            del self._long[key]

    def _all(self) -> Iterator[tuple[str, OrderLabels[str] | OrderLabels[int | float]]]:
        yield from self._strings.items()
        for (attribute, _), numbers in self._long.items():
            yield attribute, numbers

    def crowded(self) -> list[str]:
        """The attributes of which too many bounds have no label; none if no bound was added."""
        if not self._has_new_crowded:
            return []
        self._has_new_crowded = False
        return [
            attribute
            for attribute, labels in self._all()
            if labels.crowded and CROWDED_SHARE * labels.crowded >= len(labels)
        ]

    # -- snapshots ----------------------------------------------------------------------------

    def save(self, into: SectionWriter) -> None:
        """Add the labels to a snapshot; crowded bounds are left out, and added when they recur."""
        for index, labels in enumerate(self._strings.values()):
            items = labels.items()
            into.texts(f"order{index}.texts", [text for text, _ in items])
            into.note(f"order{index}.labels", [label for _, label in items])
        into.note("orders", list(self._strings))
        into.note("orders.long", [[*key, each.items()] for key, each in self._long.items()])

    @classmethod
    def load(cls, source: SectionReader) -> Orders:
        """The labels of a snapshot."""
        orders = cls()
        for index, attribute in enumerate(source.note("orders")):
            texts = source.texts(f"order{index}.texts").to_pylist()
            orders._strings[attribute] = OrderLabels(texts, source.note(f"order{index}.labels"))
            for text in texts:
                orders._attributes_with.setdefault(text, []).append(attribute)
        for attribute, kind, items in source.note("orders.long"):
            values, labels = zip(*items, strict=True) if items else ((), ())
            orders._long[attribute, kind] = OrderLabels(values, labels)
        orders._long_max = max(LONG_MAX, 2 * orders.long_numbers)
        return orders

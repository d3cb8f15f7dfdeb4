"""Channels: the attributes of events, each seen as one kind of value.

A channel is an attribute and a kind, such as (`price`, NUMBER). Its number is the column of the
matrix of events in which they have that value. In a channel of PATTERNS an event has the set of all
patterns that its string satisfies (see string_patterns.py). Constraints also refer by number to
variables of the broker and to programs, which are numbered here too.

Numbers are given out once and never taken back, because entries in all parts contain them.
"""

from __future__ import annotations

from tidegate.language.algebra.like import GlobError
from tidegate.language.syntax import COMPLEMENT, Operator
from tidegate.matching.arrays import I32
from tidegate.matching.rows.kernels.cell_kinds import BOOLEAN, FLOAT, INTEGER, STRING, TIME
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.string_patterns import StringPatterns

PRESENT = 0
NUMBER = 6
PATTERNS = 7
"""Kinds of channels: BOOLEAN, STRING and TIME as those of cells, and these three, which are other
numbers than those. Integers and floats share the channels of NUMBER."""

_LIFETIME = ("", TIME)
"""The channel of event time, in which entries of past versions have their lifetimes. No attribute
has an empty name."""

SATISFIED_MAX = 65_536
"""Default number of strings that are cached with the patterns that they satisfy."""

CHANNEL_KIND = {
    BOOLEAN: BOOLEAN, INTEGER: NUMBER, FLOAT: NUMBER, STRING: STRING, TIME: TIME,
}  # fmt: skip
"""The kind of the channel in which a cell of a kind is looked for."""

POSITIVE = (Operator.LIKE, Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS)
"""Operators of patterns that are not complements. A complement, such as `not like`, has the number
of its pattern and asks that it is not in the set."""


class Channels:
    """The channels, variables and programs that the constraints of an index refer to."""

    def __init__(self, *, satisfied_max: int = SATISFIED_MAX) -> None:
        self.numbers: dict[tuple[str, int], int] = {}
        self.of_attribute: dict[str, list[tuple[int, int]]] = {}
        self.variables: dict[str, int] = {}
        self.program: list[int] = []
        self.patterns: dict[str, StringPatterns] = {}
        self._satisfied_max = satisfied_max
        self._satisfied: dict[tuple[str, str], I32] = {}
        self._programs: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def channel(self, attribute: str, kind: int) -> int:
        """The number of a channel, which is added if it is new; with the bit SET for patterns."""
        key = (attribute, kind)
        number = self.numbers.get(key)
        if number is None:
            number = len(self.numbers)
            self.of_attribute.setdefault(attribute, []).append((kind, number))
            if kind == PATTERNS:
                number |= SET
                self.patterns[attribute] = StringPatterns()
            self.numbers[key] = number
        return number

    def lifetime(self) -> int:
        """The number of the channel of event time, which is added if it is new."""
        return self.channel(*_LIFETIME)

    @property
    def known_lifetime(self) -> int | None:
        """The number of the channel of event time; None if no entry has a lifetime."""
        return self.numbers.get(_LIFETIME)

    def pattern(self, attribute: str, operator: Operator, text: str) -> int | None:
        """The number of a pattern, of a negated one without its `not`; None if it is malformed.

        The attribute must have a channel of patterns.
        """
        positive = operator if operator in POSITIVE else COMPLEMENT[operator]
        try:
            return self.patterns[attribute].number(positive, text)
        except GlobError:
            return None

    def satisfied(self, attribute: str, text: str) -> I32:
        """The numbers of the patterns on an attribute that a string satisfies."""
        found = self._satisfied.get((attribute, text))
        if found is None:
            found = self.patterns[attribute].satisfied(text)
            # Matches write to this cache while they share the lock: they all write the same.
            if len(self._satisfied) < self._satisfied_max:
                self._satisfied[attribute, text] = found
        return found

    def flush(self) -> None:
        """Index the patterns that were added, and clear the cache of satisfied patterns."""
        for patterns in self.patterns.values():
            patterns.flush()
        self._satisfied = {}

    def variable(self, name: str) -> int:
        """The number of a variable of the broker, which is added if it is new."""
        return self.variables.setdefault(name, len(self.variables))

    def add_program(self, code: tuple[int, ...]) -> int:
        """Where a program begins in the code of all programs; it is added if it is new."""
        start = self._programs.get(code)
        if start is None:
            start = self._programs[code] = len(self.program)
            self.program.extend(code)
        return start

    def save(self, into: SectionWriter) -> None:
        """Add the channels to a snapshot."""
        into.note("channels", list(self.numbers))
        into.note("variables", list(self.variables))
        into.note("programs", [list(code) for code in self._programs])
        for number, patterns in enumerate(self.patterns.values()):
            known = patterns.patterns()
            into.texts(f"patterns{number}.operators", [each.value for each, _ in known])
            into.texts(f"patterns{number}.texts", [text for _, text in known])
        into.note("patterns", list(self.patterns))

    @classmethod
    def load(cls, source: SectionReader) -> Channels:
        """The channels of a snapshot; added in the same order, all numbers are the same."""
        channels = cls()
        for attribute, kind in source.note("channels"):
            channels.channel(attribute, kind)
        for name in source.note("variables"):
            channels.variable(name)
        for code in source.note("programs"):
            channels.add_program(tuple(code))
        for number, attribute in enumerate(source.note("patterns")):
            operators = source.texts(f"patterns{number}.operators").to_pylist()
            texts = source.texts(f"patterns{number}.texts").to_pylist()
            for operator, text in zip(operators, texts, strict=True):
                channels.pattern(attribute, Operator(operator), text)
        channels.flush()
        return channels

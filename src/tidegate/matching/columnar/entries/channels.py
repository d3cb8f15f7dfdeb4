"""Channels: the attributes of events, each seen as one kind of value.

A channel is (`price`, number), and its number is the column in which an event has that value. A
channel of PATTERNS has instead the set of all patterns that the event's string satisfies (see
texts.py). Beside the channels stand the variables of the broker and the programs, which constraints
refer to by number too.
"""

from __future__ import annotations

from tidegate.language.algebra.like import GlobError
from tidegate.language.syntax import COMPLEMENT, Operator
from tidegate.matching.arrays import I32
from tidegate.matching.columnar.kernels.cell_kinds import BOOLEAN, FLOAT, INTEGER, STRING, TIME
from tidegate.matching.columnar.kernels.part import SET
from tidegate.matching.columnar.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.string_patterns import StringPatterns

PRESENT = 0
NUMBER = 6
PATTERNS = 7
"""Kinds of channels: these three, BOOLEAN, STRING and TIME. In a channel of PATTERNS an event has
the set of all patterns that its string satisfies (see texts.py)."""

_LIFETIME = ("", TIME)
"""The channel of lifetimes; no attribute has an empty name."""

SATISFIED_MAX = 65_536
"""So many strings are remembered with the patterns that they satisfy."""

CHANNEL_KIND = {
    BOOLEAN: BOOLEAN, INTEGER: NUMBER, FLOAT: NUMBER, STRING: STRING, TIME: TIME,
}  # fmt: skip
POSITIVE = (Operator.LIKE, Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS)


class Channels:
    """The channels, variables and programs that the constraints of an index refer to."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, int], int] = {}
        self.of_attribute: dict[str, list[tuple[int, int]]] = {}
        self.variables: dict[str, int] = {}
        self.program: list[int] = []
        self.patterns: dict[str, StringPatterns] = {}
        self._satisfied: dict[tuple[str, str], I32] = {}
        self._programs: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def channel(self, attribute: str, kind: int) -> int:
        """The number of a channel, which is taken in if it is new."""
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
        """The number of the channel in which an event has the time at which it is judged."""
        return self.channel(*_LIFETIME)

    @property
    def known_lifetime(self) -> int | None:
        """That number, if some constraint refers to it."""
        return self.numbers.get(_LIFETIME)

    def pattern(self, attribute: str, operator: Operator, text: str) -> int | None:
        """The number of a pattern, or of the complement of one; None for a bad one.

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
            if len(self._satisfied) < SATISFIED_MAX:
                self._satisfied[attribute, text] = found
        return found

    def settle(self) -> None:
        """Make what was added since easy to find; nobody else may be reading."""
        for patterns in self.patterns.values():
            patterns.settle()
        self._satisfied = {}

    def variable(self, name: str) -> int:
        """The number of a variable of the broker."""
        return self.variables.setdefault(name, len(self.variables))

    def add_program(self, code: tuple[int, ...]) -> int:
        """Where a program stands."""
        place = self._programs.get(code)
        if place is None:
            place = self._programs[code] = len(self.program)
            self.program.extend(code)
        return place

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
        """The channels of a snapshot."""
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
        channels.settle()
        return channels

"""Channels: the attributes of events, each seen as one kind of value.

A channel is an attribute and a kind, such as (`price`, NUMBER). Its number is the column of the
matrix of events in which they have that value. In a channel of PATTERNS an event has the set of all
patterns that its string satisfies (see string_patterns.py). Constraints also refer by number to
variables of the broker and to programs, which are numbered here too.

Theory of operation. A number means the same as long as a shape that needs it is *held* (see
`ShapeNeeds`): who makes entries of a shape holds it before, and releases it when its subscriptions
are gone. What no held shape needs any more is dropped, and its number given out again. Patterns are
dropped with the string that is their text, when no subscription has that any more.

An index may still have entries of removed subscriptions, with dropped numbers. Kernels never report
such an entry, but they may look up its channels in an event. So

- columns of events stay at least as many as the largest channel in an index needs (`trim`);
- a number of a channel of sets is given to another channel of sets only, and one of values to one
  of values: a kernel would follow a value that it takes for the number of a set;
- columns of variables stay for ever. They are as many as there were variables at the same time.

Programs are copied into each part of an index, so there an old one is what it was.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidegate.language.algebra.like import GlobError
from tidegate.language.expressions import Expression, format_expression
from tidegate.language.syntax import COMPLEMENT, Operator
from tidegate.language.values import Kind
from tidegate.matching.arrays import I32
from tidegate.matching.rows.entries.judgements import (
    JUDGEMENTS_MAX,
    Judgement,
    parse_operand,
)
from tidegate.matching.rows.entries.orders import Orders
from tidegate.matching.rows.entries.program_codes import Code, ProgramCodes
from tidegate.matching.rows.entries.satisfied_cache import SatisfiedCache
from tidegate.matching.rows.kernels.cell_kinds import BOOLEAN, FLOAT, INTEGER, STRING, TIME
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.rows.store.uses import FreeNumbers
from tidegate.matching.string_patterns import StringPatterns

T = TypeVar("T", bound=Hashable)

PRESENT = 0
NUMBER = 6
PATTERNS = 7
"""Kinds of channels: BOOLEAN, STRING and TIME as those of cells, and these three, which are other
numbers than those. Integers and floats share the channels of NUMBER. The channels of order labels
(see orders.py) have ORDERED added to one of these kinds."""

_LIFETIME = ("", TIME)
"""The channel of event time, in which entries of past versions have their lifetimes. No attribute
has an empty name."""

SATISFIED_BYTES_MAX = 16_000_000
"""Default of the bytes of strings that are cached with the patterns that they satisfy."""

SPARE_COLUMNS = 64
"""Columns of no channel that do not matter."""

CHANNEL_KIND = {
    BOOLEAN: BOOLEAN, INTEGER: NUMBER, FLOAT: NUMBER, STRING: STRING, TIME: TIME,
}  # fmt: skip
"""The kind of the channel in which a cell of a kind is looked for."""

POSITIVE = (Operator.LIKE, Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS)
"""Operators of patterns that are not complements. A complement, such as `not like`, has the number
of its pattern and asks that it is not in the set."""


@dataclass(frozen=True, slots=True)
class ShapeNeeds:
    """What entries of a shape may refer to by number: attributes, variables, programs, judgements.

    Judgements are given by attribute and operand, whatever their form.
    """

    attributes: frozenset[str]
    variables: frozenset[str]
    programs: frozenset[Code]
    judged: frozenset[tuple[str, Expression]]


class _Holders(Generic[T]):
    """How many held shapes need each of some things."""

    def __init__(self) -> None:
        self._counts: dict[T, int] = {}

    def __contains__(self, thing: T) -> bool:
        return thing in self._counts

    def add(self, things: Iterable[T]) -> None:
        for thing in things:
            self._counts[thing] = self._counts.get(thing, 0) + 1

    def remove(self, things: Iterable[T]) -> list[T]:
        """Count one holder less of each; returns those that have none left."""
        left: list[T] = []
        for thing in things:
            self._counts[thing] -= 1
            if not self._counts[thing]:
                del self._counts[thing]
                left.append(thing)
        return left


class Channels:
    """The channels, variables and programs that the constraints of an index refer to."""

    def __init__(self, *, satisfied_bytes_max: int = SATISFIED_BYTES_MAX) -> None:
        self.numbers: dict[tuple[str, int], int] = {}
        self.of_attribute: dict[str, list[tuple[int, int]]] = {}
        self.variables: dict[str, int] = {}
        self.patterns: dict[str, StringPatterns] = {}
        self.orders = Orders()
        self.judgements: dict[Judgement, int] = {}
        self.variable_kinds: dict[str, frozenset[Kind]] = {}
        """The kinds, NUMBER and TIME, of variables that are not always numbers."""
        self.noticed_kinds: dict[str, Kind] = {}
        """Kinds of variables that were not expected; a match notes them, a change takes them up."""
        self.columns = 0
        """How many columns a matrix of events has."""
        self._free_columns = FreeNumbers(), FreeNumbers()  # of values, of sets
        self._variables_end = 0
        self._free_variables = FreeNumbers()
        self._programs = ProgramCodes()
        self._held: dict[int, ShapeNeeds] = {}
        self._attribute_holders = _Holders[str]()
        self._variable_holders = _Holders[str]()
        self._program_holders = _Holders[Code]()
        self._judged_holders = _Holders[tuple[str, Expression]]()
        self._satisfied = SatisfiedCache(satisfied_bytes_max)
        self._patterns_with: dict[str, list[tuple[str, Operator]]] = {}
        """By text: the attributes and operators of the patterns with it."""
        self._patterns_changed = False

    # -- numbers ------------------------------------------------------------------------------

    def channel(self, attribute: str, kind: int) -> int:
        """The number of a channel, which is added if it is new; with the bit SET for patterns."""
        key = (attribute, kind)
        number = self.numbers.get(key)
        if number is None:
            free = self._free_columns[kind == PATTERNS].take()
            number = self.columns if free is None else free
            self._add_channel(attribute, kind, number)
        return self.numbers[key]

    def _add_channel(self, attribute: str, kind: int, number: int) -> None:
        self.columns = max(self.columns, number + 1)
        self.of_attribute.setdefault(attribute, []).append((kind, number))
        if kind == PATTERNS:
            number |= SET
            self.patterns[attribute] = StringPatterns()
        self.numbers[attribute, kind] = number

    def lifetime(self) -> int:
        """The number of the channel of event time, which is added if it is new."""
        return self.channel(*_LIFETIME)

    @property
    def known_lifetime(self) -> int | None:
        """The number of the channel of event time; None if no entry has a lifetime."""
        return self.numbers.get(_LIFETIME)

    def variable(self, name: str) -> int:
        """The number of a variable of the broker, which is added if it is new."""
        number = self.variables.get(name)
        if number is None:
            free = self._free_variables.take()
            number = self.variables[name] = self._variables_end if free is None else free
            self._variables_end = max(self._variables_end, number + 1)
        return number

    @property
    def variable_columns(self) -> int:
        """How many columns the values of variables have."""
        return self._variables_end

    def judgement(self, judgement: Judgement) -> int | None:
        """The number of the channel of a judgement; None if there are too many already."""
        number = self.judgements.get(judgement)
        if number is None and len(self.judgements) < JUDGEMENTS_MAX:
            free = self._free_columns[0].take()
            number = self.judgements[judgement] = self.columns if free is None else free
            self.columns = max(self.columns, number + 1)
        return number

    def take_up_kinds(self) -> list[int]:
        """Expect the kinds of variables that were noticed; returns the shapes that name these."""
        noticed, self.noticed_kinds = self.noticed_kinds, {}
        for name, kind in noticed.items():
            # the kind it has now; one that had another before may go on changing
            before = self.variable_kinds.get(name)
            self.variable_kinds[name] = frozenset([kind] if before is None else [kind, *before])
        return [n for n, needs in self._held.items() if not needs.variables.isdisjoint(noticed)]

    def add_program(self, code: Code) -> int:
        """Where a program begins in the code of all programs; it is added if it is new."""
        return self._programs.add(code)

    @property
    def program(self) -> I32:
        """The code of all programs, and one word more; another array after it has changed."""
        return self._programs.array

    # -- patterns -----------------------------------------------------------------------------

    def pattern(self, attribute: str, operator: Operator, text: str) -> int | None:
        """The number of a pattern, of a negated one without its `not`; None if it is malformed.

        The attribute must have a channel of patterns.
        """
        positive = operator if operator in POSITIVE else COMPLEMENT[operator]
        patterns = self.patterns[attribute]
        before = len(patterns)
        try:
            number = patterns.number(positive, text)
        except GlobError:
            return None
        if len(patterns) > before:
            self._patterns_with.setdefault(text, []).append((attribute, positive))
            self._patterns_changed = True
        return number

    def forget_texts(self, texts: Iterable[str]) -> None:
        """Drop patterns and order labels of these texts, which no subscription has any more."""
        texts = list(texts)
        self.orders.forget_texts(texts)
        for text in texts:
            for attribute, operator in self._patterns_with.pop(text, ()):
                self.patterns[attribute].remove(operator, text)
                self._patterns_changed = True

    def satisfied(self, attribute: str, text: str) -> I32:
        """The numbers of the patterns on an attribute that a string satisfies."""
        found = self._satisfied.get(attribute, text)
        if found is None:
            found = self.patterns[attribute].satisfied(text)
            self._satisfied.put(attribute, text, found)
        return found

    def flush(self) -> None:
        """Index the patterns that have changed, and forget what strings have satisfied."""
        if self._patterns_changed:
            for patterns in self.patterns.values():
                patterns.flush()
            self._satisfied.clear()
            self._patterns_changed = False

    # -- what shapes need ---------------------------------------------------------------------

    def is_held(self, shape: int) -> bool:
        """Whether a shape, given by its number, is held."""
        return shape in self._held

    def hold(self, shape: int, needs: ShapeNeeds) -> None:
        """Keep the numbers of what a shape needs until it is released."""
        self._held[shape] = needs
        self._attribute_holders.add(needs.attributes)
        self._variable_holders.add(needs.variables)
        self._program_holders.add(needs.programs)
        self._judged_holders.add(needs.judged)

    def release(self, shapes: Iterable[int]) -> None:
        """Drop what was needed by these shapes, as far as they are held, and by no others."""
        for shape in shapes:
            needs = self._held.pop(shape, None)
            if needs is None:
                continue
            for attribute in self._attribute_holders.remove(needs.attributes):
                self._drop_attribute(attribute)
            for name in self._variable_holders.remove(needs.variables):
                self._drop_variable(name)
            for code in self._program_holders.remove(needs.programs):
                self._programs.drop(code)
            self._drop_judgements(set(self._judged_holders.remove(needs.judged)))

    def drop_unheld(self) -> None:
        """Drop what no held shape needs: a snapshot may have more than the shapes in it need."""
        for attribute in list(self.of_attribute):
            if attribute not in self._attribute_holders and attribute != _LIFETIME[0]:
                self._drop_attribute(attribute)
        for name in list(self.variables):
            if name not in self._variable_holders:
                self._drop_variable(name)
        for code in list(self._programs.starts()):
            if code not in self._program_holders:
                self._programs.drop(code)
        judged = {(each.attribute, each.operand) for each in self.judgements}
        self._drop_judgements({each for each in judged if each not in self._judged_holders})

    def _drop_judgements(self, judged: set[tuple[str, Expression]]) -> None:
        if not judged:
            return
        for each in [each for each in self.judgements if (each.attribute, each.operand) in judged]:
            self._free_columns[0].add(self.judgements.pop(each))

    def _drop_variable(self, name: str) -> None:
        self.variable_kinds.pop(name, None)
        number = self.variables.pop(name, None)
        if number is not None:
            self._free_variables.add(number)

    def _drop_attribute(self, attribute: str) -> None:
        for kind, number in self.of_attribute.pop(attribute, ()):
            del self.numbers[attribute, kind]
            self._free_columns[kind == PATTERNS].add(number)
        self.orders.drop_attribute(attribute)
        judged = {
            (attribute, each.operand) for each in self.judgements if each.attribute == attribute
        }
        self._drop_judgements(judged)
        patterns = self.patterns.pop(attribute, None)
        for pattern in () if patterns is None else patterns.patterns():
            if pattern is not None:
                operator, text = pattern
                others = self._patterns_with[text]
                others.remove((attribute, operator))
                if not others:
                    del self._patterns_with[text]
        if patterns is not None:
            # an attribute of this name may come back with other numbers
            self._patterns_changed = True

    def last_attribute(self) -> str | None:
        """The attribute with the largest channel; None if there is no lower one for it."""
        last = max(self.numbers, key=lambda key: self.numbers[key] & ~SET, default=_LIFETIME)
        is_far = last != _LIFETIME and self.numbers[last] & ~SET >= 2 * len(self.numbers)
        return last[0] if is_far else None

    def shapes_with(self, attribute: str) -> list[int]:
        """The held shapes that need an attribute."""
        return [shape for shape, needs in self._held.items() if attribute in needs.attributes]

    def give_up(self, attribute: str) -> None:
        """Drop the channels of an attribute that is needed; its entries have to be made again."""
        self._drop_attribute(attribute)

    @property
    def is_sparse(self) -> bool:
        """Whether most columns of events are those of no channel."""
        used = len(self.numbers) + len(self.judgements)
        return self.columns > 2 * used + SPARE_COLUMNS

    def trim(self, columns: int) -> None:
        """Remove columns at the end that no channel has; an index needs this many to stay."""
        values, sets = self._free_columns
        while self.columns > columns and (
            values.remove(self.columns - 1) or sets.remove(self.columns - 1)
        ):
            self.columns -= 1

    # -- snapshots ----------------------------------------------------------------------------

    def save(self, into: SectionWriter) -> None:
        """Add the channels to a snapshot."""
        into.note("channels", [[*key, number] for key, number in self.numbers.items()])
        into.note("channels.columns", self.columns)
        into.note("channels.free", [list(free) for free in self._free_columns])
        into.note("variables", [[*item] for item in self.variables.items()])
        into.note("variables.free", list(self._free_variables))
        into.note("programs", [[start, code] for code, start in self._programs.starts().items()])
        into.note("programs.free", self._programs.free())
        for number, patterns in enumerate(self.patterns.values()):
            known = patterns.patterns()
            operators = [None if each is None else each[0].value for each in known]
            into.texts(f"patterns{number}.operators", operators)
            into.texts(f"patterns{number}.texts", [each and each[1] for each in known])
        into.note("patterns", list(self.patterns))
        self.orders.save(into)
        into.note("judgements", [
            [each.attribute, each.form, format_expression(each.operand), number]
            for each, number in self.judgements.items()
        ])  # fmt: skip
        kinds = {name: [kind.value for kind in each] for name, each in self.variable_kinds.items()}
        into.note("variables.kinds", kinds)

    @classmethod
    def load(cls, source: SectionReader) -> Channels:
        """The channels of a snapshot, with the same numbers; no shape is held."""
        channels = cls()
        for attribute, kind, number in source.note("channels"):
            channels._add_channel(attribute, kind, number & ~SET)
        channels.columns = source.note("channels.columns")
        values, sets = source.note("channels.free")
        channels._free_columns = FreeNumbers(values), FreeNumbers(sets)
        channels.variables = dict(source.note("variables"))
        free = source.note("variables.free")
        channels._free_variables = FreeNumbers(free)
        channels._variables_end = len(channels.variables) + len(free)
        channels._programs = ProgramCodes(
            {tuple(code): start for start, code in source.note("programs")},
            source.note("programs.free"),
        )
        for number, attribute in enumerate(source.note("patterns")):
            operators = source.texts(f"patterns{number}.operators").to_pylist()
            texts = source.texts(f"patterns{number}.texts").to_pylist()
            channels._load_patterns(attribute, operators, texts)
        channels.orders = Orders.load(source)
        for attribute, form, text, number in source.note("judgements"):
            operand = parse_operand(text)
            channels.judgements[Judgement(attribute, form, operand)] = number
        for name, kinds in source.note("variables.kinds").items():
            channels.variable_kinds[name] = frozenset(map(Kind, kinds))
        channels.flush()
        return channels

    def _load_patterns(self, attribute: str, operators: list[str | None], texts: list[str]) -> None:
        patterns = [
            None if operator is None else (Operator(operator), text)
            for operator, text in zip(operators, texts, strict=True)
        ]
        self.patterns[attribute] = StringPatterns(patterns)
        self._patterns_changed = True
        for pattern in patterns:
            if pattern is not None:
                operator, text = pattern
                self._patterns_with.setdefault(text, []).append((attribute, operator))

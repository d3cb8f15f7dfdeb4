"""From shapes and rows to constraints on channels, for many rows of one shape at once.

A channel is an attribute seen as one kind of value: (`price`, number). Each predicate becomes a
constraint `low <= x <= high` on such a channel, or the outside of one; strict bounds step to the
next value. What a constraint of floats cannot say exactly (patterns, integers of more than 53
bits, timestamps that are computed) is widened to something that surely holds whenever the
predicate does, and the entry is marked to be verified by the meaning of the language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Environment,
    Expression,
    Negated,
    Now,
    Slot,
    Variable,
    as_float,
    evaluate,
    leaves,
    rebuild,
)
from tidegate.language.like import GlobError
from tidegate.language.shapes import Shape
from tidegate.language.syntax import COMPLEMENT, STRING_OPERATORS, Operator, Predicate
from tidegate.matching import programs as k
from tidegate.matching.kernels import EXACT_MAX
from tidegate.matching.layout import Bools, Entries
from tidegate.matching.parts import (
    DEAD,
    F64,
    I32,
    I64,
    MOVING,
    SET,
    SHARED,
    U8,
    VERIFY,
)
from tidegate.matching.rows import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    STRING,
    TIME,
    UNDEFINED,
    Cells,
    StringPool,
    decode,
)
from tidegate.matching.sections import SectionReader, SectionWriter
from tidegate.matching.texts import TextPatterns

PRESENT = 0
NUMBER = 6
PATTERNS = 7
"""Kinds of channels: these three, BOOLEAN, STRING and TIME. In a channel of PATTERNS an event has
the set of all patterns that its string satisfies (see texts.py)."""

_LIFETIME = ("", TIME)
"""The channel of lifetimes; no attribute has an empty name."""

EXPANDED_MAX = 1024
"""An `in` list up to this long becomes an entry for each of its values."""

SATISFIED_MAX = 65_536
"""So many strings are remembered with the patterns that they satisfy."""

CHANNEL_KIND = {
    BOOLEAN: BOOLEAN, INTEGER: NUMBER, FLOAT: NUMBER, STRING: STRING, TIME: TIME,
}  # fmt: skip
COMPARISONS = {
    Operator.EQUAL: k.C_EQUAL,
    Operator.NOT_EQUAL: k.C_NOT_EQUAL,
    Operator.LESS: k.C_LESS,
    Operator.LESS_EQUAL: k.C_LESS_EQUAL,
    Operator.GREATER: k.C_GREATER,
    Operator.GREATER_EQUAL: k.C_GREATER_EQUAL,
}
POSITIVE = (Operator.LIKE, Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS)
_OPERATIONS = {
    "+": k.P_ADD, "-": k.P_SUBTRACT, "*": k.P_MULTIPLY, "/": k.P_DIVIDE, "%": k.P_REMAINDER,
    "min": k.P_MIN, "max": k.P_MAX, "abs": k.P_ABS, "floor": k.P_FLOOR, "ceil": k.P_CEIL,
    "sqrt": k.P_SQRT, "exp": k.P_EXP, "ln": k.P_LN, "sin": k.P_SIN, "cos": k.P_COS,
}  # fmt: skip


class Channels:
    """The channels, variables and programs that the constraints of an index refer to."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, int], int] = {}
        self.of_attribute: dict[str, list[tuple[int, int]]] = {}
        self.variables: dict[str, int] = {}
        self.program: list[int] = []
        self.patterns: dict[str, TextPatterns] = {}
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
                self.patterns[attribute] = TextPatterns()
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


@dataclass(slots=True)
class Block:
    """The entries of many rows that have the same constraints, but for the bounds."""

    length: int
    channels: list[int] = field(default_factory=list)
    low: list[F64] = field(default_factory=list)
    high: list[F64] = field(default_factory=list)
    moving: list[Moving] = field(default_factory=list)
    moving_attributes: frozenset[str] = frozenset()
    never: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    verify: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    shared: bool = False

    def constrain(self, channel: int, low: F64, high: F64) -> None:
        """Add a constraint; two that lie inside of bounds on one channel become one."""
        inside = not channel & SET and bool(np.all(low <= high))
        for index, other in enumerate(self.channels):
            if other == channel and inside and bool(np.all(self.low[index] <= self.high[index])):
                self.low[index] = np.maximum(self.low[index], low)
                self.high[index] = np.minimum(self.high[index], high)
                empty = self.low[index] > self.high[index]
                self.never = self.never | empty
                # what never holds must not be taken for the outside of its bounds
                self.high[index] = np.where(empty, self.low[index], self.high[index])
                return
        self.channels.append(channel)
        self.low.append(low)
        self.high.append(high)


@dataclass(frozen=True, slots=True)
class Moving:
    """A constraint whose bound is a program; each column has a constant of it for all entries."""

    channel: int
    comparison: int
    program: int
    constants: list[F64]


class Compiler:
    """Makes constraints of rows that have one shape and the same kinds of cells."""

    def __init__(self, channels: Channels, pool: StringPool) -> None:
        self._channels = channels
        self._pool = pool

    def blocks(self, shape: Shape, kinds: tuple[int, ...], cells: Cells) -> list[Block]:
        """A block of entries for each disjunct, or for each choice from its `in` lists."""
        blocks: list[Block] = []
        for conjunction in shape.disjuncts:
            choices = self._choices(conjunction, kinds)
            blocks += [self._block(choice, kinds, cells) for choice in choices]
        for block in blocks:
            block.shared = len(blocks) > 1
        return blocks

    def _choices(
        self, conjunction: tuple[Predicate, ...], kinds: tuple[int, ...]
    ) -> list[tuple[Predicate, ...]]:
        """The conjunction with each short `in` list replaced by one of its values."""
        options: list[list[Predicate]] = []
        count = 1
        for predicate in conjunction:
            expanded = [predicate]
            if predicate.operator is Operator.IN and all(
                isinstance(operand, Slot) for operand in predicate.operands
            ):
                values = [
                    Predicate(predicate.attribute, Operator.EQUAL, (operand,))
                    for operand in predicate.operands
                    if isinstance(operand, Slot) and kinds[operand.index] != UNDEFINED
                ]
                if count * len(values) <= EXPANDED_MAX:
                    expanded = values
            count *= max(1, len(expanded))
            options.append(expanded)
        return list(product(*options))

    def _block(
        self, conjunction: tuple[Predicate, ...], kinds: tuple[int, ...], cells: Cells
    ) -> Block:
        length = len(cells)
        nothing = np.zeros(length, np.bool_)
        block = Block(length, never=nothing, verify=nothing)
        block.moving_attributes = moving_attributes(conjunction)
        for predicate in conjunction:
            self._constrain(block, predicate, kinds, cells)
        return block

    def _constrain(
        self, block: Block, predicate: Predicate, kinds: tuple[int, ...], cells: Cells
    ) -> None:
        attribute, operator, operands = predicate.attribute, predicate.operator, predicate.operands
        if operator is Operator.PRESENT:
            self._anything(block, attribute, PRESENT)
        elif operator is Operator.NOT_IN:
            for operand in operands:
                self._compare(block, attribute, Operator.NOT_EQUAL, operand, kinds, cells)
        elif operator is Operator.IN:
            self._anything(block, attribute, PRESENT)
            block.verify = np.ones(block.length, np.bool_)
        else:
            self._compare(block, attribute, operator, operands[0], kinds, cells)

    def _anything(self, block: Block, attribute: str, kind: int) -> None:
        channel = self._channels.channel(attribute, kind)
        infinite = np.full(block.length, np.inf)
        block.constrain(channel, -infinite, infinite)

    def _compare(
        self,
        block: Block,
        attribute: str,
        operator: Operator,
        operand: Expression,
        kinds: tuple[int, ...],
        cells: Cells,
    ) -> None:
        moves = attribute in block.moving_attributes
        if operator not in STRING_OPERATORS and is_program(operand, kinds, moves=moves):
            self._move(block, attribute, operator, operand, kinds, cells)
            return
        if isinstance(operand, Slot):
            self._compare_cell(
                block, attribute, operator, kinds[operand.index], cells[:, operand.index]
            )
            return
        found = list(leaves(operand))
        slots = [kinds[leaf.index] for leaf in found if isinstance(leaf, Slot)]
        if any(kind in (UNDEFINED, BOOLEAN, STRING) for kind in slots):
            block.never = np.ones(block.length, np.bool_)
            self._anything(block, attribute, PRESENT)
        elif (
            operator in STRING_OPERATORS
            or TIME in slots
            or any(isinstance(leaf, (Elapsed, Variable, Now)) for leaf in found)
        ):
            # its kind is known only when it is evaluated, or it is too deep for a program
            self._anything(block, attribute, PRESENT)
            block.verify = np.ones(block.length, np.bool_)
        else:
            values = self._evaluated(operand, kinds, cells)
            undefined = np.isnan(values)
            block.never = block.never | undefined
            values = np.where(undefined, 0.0, values)
            self._bound(block, attribute, NUMBER, operator, values, np.abs(values) >= EXACT_MAX)

    def _evaluated(self, operand: Expression, kinds: tuple[int, ...], cells: Cells) -> F64:
        """An expression of constants, row by row; NaN where it is undefined."""
        result = np.empty(len(cells))
        for index, row in enumerate(cells):
            values = [decode(kind, cell, self._pool) for kind, cell in zip(kinds, row, strict=True)]

            def known(leaf: Expression, values: list[object] = values) -> Expression:  # type: ignore[assignment]
                if isinstance(leaf, Slot):
                    return Constant(values[leaf.index])  # type: ignore[arg-type]
                return leaf

            number = as_float(evaluate(rebuild(operand, known), Environment()))
            result[index] = np.nan if number is None else number
        return result

    def _compare_cell(
        self, block: Block, attribute: str, operator: Operator, kind: int, cells: I64
    ) -> None:
        if kind == UNDEFINED or (operator in STRING_OPERATORS and kind != STRING):
            block.never = np.ones(block.length, np.bool_)
            self._anything(block, attribute, PRESENT)
            return
        if operator in STRING_OPERATORS:
            channel = self._channels.channel(attribute, PATTERNS)
            low, high, never = pattern_bounds(
                attribute, operator, cells, self._channels, self._pool
            )
            block.never = block.never | never
            block.constrain(channel, low, high)
            return
        if kind == STRING and operator not in (Operator.EQUAL, Operator.NOT_EQUAL):
            self._anything(block, attribute, STRING)
            block.verify = np.ones(block.length, np.bool_)
            return
        values = cells.view(np.float64) + 0.0 if kind == FLOAT else cells.astype(np.float64)
        large = np.isfinite(values) & (np.abs(values) >= EXACT_MAX)
        self._bound(block, attribute, CHANNEL_KIND[kind], operator, values, large)

    def _bound(
        self,
        block: Block,
        attribute: str,
        kind: int,
        operator: Operator,
        values: F64,
        large: Bools,
    ) -> None:
        channel = self._channels.channel(attribute, kind)
        low, high, never = bounds(operator, values, whole=kind != NUMBER)
        if large.any():
            block.verify = block.verify | large
            wide_low, wide_high = widened(operator, values)
            low, high = np.where(large, wide_low, low), np.where(large, wide_high, high)
        block.never = block.never | never
        block.constrain(channel, low, high)

    def _move(
        self,
        block: Block,
        attribute: str,
        operator: Operator,
        operand: Expression,
        kinds: tuple[int, ...],
        cells: Cells,
    ) -> None:
        channel = self._channels.channel(attribute, NUMBER)
        if channel not in block.channels:
            self._anything(block, attribute, NUMBER)
        program = k.LINEAR
        if _linear_slots(operand) is None:
            code: list[int] = []
            _emit(operand, code, self._channels)
            program = self._channels.add_program((*code, k.P_END))
        columns = [_as_numbers(slot, kinds, cells) for slot in program_slots(operand)]
        block.moving.append(Moving(channel, COMPARISONS[operator], program, columns))


def _emit(expression: Expression, code: list[int], variables: Channels | None) -> bool:
    """Write the program of an expression: operands first, then the operation.

    False if it has none: it mentions something other than constants, `t` and known variables.
    """
    match expression:
        case Slot():
            code.append(k.P_CONSTANT)
        case Elapsed() if variables is not None:
            code.append(k.P_ELAPSED)
        case Variable(name) if variables is not None:
            code += [k.P_VARIABLE, variables.variable(name)]
        case Negated(operand):
            if not _emit(operand, code, variables):
                return False
            code.append(k.P_NEGATE)
        case Arithmetic(operator, left, right):
            if not (_emit(left, code, variables) and _emit(right, code, variables)):
                return False
            code.append(_OPERATIONS[operator])
        case Call(function, arguments):
            for place, argument in enumerate(arguments):
                if not _emit(argument, code, variables):
                    return False
                if place > 0 or len(arguments) == 1:
                    code.append(_OPERATIONS[function])
        case _:
            return False
    return True


def code_of(operand: Expression) -> list[int] | None:
    """The program of an operand that is computed from constants alone; None if it is not."""
    code: list[int] = []
    if not _emit(operand, code, None) or _stack_needed(operand) > k.STACK_MAX:
        return None
    return [*code, k.P_END]


def moving_attributes(conjunction: tuple[Predicate, ...]) -> frozenset[str]:
    """The attributes that are compared with functions of time or of the broker's variables.

    All numbers that such an attribute is compared with are taken for functions: the still
    constraint on its channel is the envelope of them all, and nothing else.
    """
    return frozenset(
        predicate.attribute
        for predicate in conjunction
        if any(_changes(operand) for operand in predicate.operands)
    )


def is_program(operand: Expression, kinds: Sequence[int], *, moves: bool) -> bool:
    """Whether an operand is compiled to a program, on an attribute that ``moves`` or does not."""
    found = list(leaves(operand))
    return (
        (moves or _changes(operand))
        and not isinstance(operand, Variable)
        and not any(isinstance(leaf, Now) for leaf in found)
        and all(kinds[leaf.index] in (INTEGER, FLOAT) for leaf in found if isinstance(leaf, Slot))
        and _stack_needed(operand) <= k.STACK_MAX
    )


def program_slots(operand: Expression) -> list[int | None]:
    """Where the constants of an operand's program come from; None stands for the number 1."""
    linear = _linear_slots(operand)
    if linear is not None:
        return linear
    return [leaf.index for leaf in leaves(operand) if isinstance(leaf, Slot)]


def _linear_slots(operand: Expression) -> list[int | None] | None:
    """The slots of `a` and `b` if an operand is `a + b * t`, or `a + t`."""
    match operand:
        case Arithmetic("+", Slot(a), Elapsed()) | Arithmetic("+", Elapsed(), Slot(a)):
            return [a, None]
        case Arithmetic("+", Slot(a), Arithmetic("*", Slot(b), Elapsed())):
            return [a, b]
        case Arithmetic("+", Slot(a), Arithmetic("*", Elapsed(), Slot(b))):
            return [a, b]
        case _:
            return None


def _changes(operand: Expression) -> bool:
    """Whether an operand is a function of time or of variables; a bare variable may be of any kind
    and is none."""
    return not isinstance(operand, Variable) and any(
        isinstance(leaf, (Elapsed, Variable)) for leaf in leaves(operand)
    )


def _stack_needed(expression: Expression) -> int:
    """How many values the program of an expression has at hand at once."""
    match expression:
        case Negated(operand):
            return _stack_needed(operand)
        case Arithmetic(_, left, right):
            return max(_stack_needed(left), 1 + _stack_needed(right))
        case Call(_, arguments):
            return max(_stack_needed(each) + (place > 0) for place, each in enumerate(arguments))
        case _:
            return 1


def bounds(operator: Operator, values: F64, *, whole: bool) -> tuple[F64, F64, Bools]:
    """The bounds of a comparison, and where it never holds.

    ``whole`` values are integers, and the next one is one more; others step to the next float.
    """
    infinite = np.full(len(values), np.inf)
    with np.errstate(over="ignore", under="ignore"):
        after = values + 1 if whole else np.nextafter(values, np.inf)
        before = values - 1 if whole else np.nextafter(values, -np.inf)
    never = np.zeros(len(values), np.bool_)
    match operator:
        case Operator.EQUAL:
            return values, values, never
        case Operator.LESS:
            return -infinite, before, values == -np.inf
        case Operator.LESS_EQUAL:
            return -infinite, values, never
        case Operator.GREATER:
            return after, infinite, values == np.inf
        case Operator.GREATER_EQUAL:
            return values, infinite, never
        case _:
            top, bottom = values == np.inf, values == -np.inf
            low = np.where(top, -np.inf, after)
            high = np.where(bottom, np.inf, before)
            return low, high, never


def pattern_bounds(
    attribute: str, operator: Operator, cells: I64, channels: Channels, pool: StringPool
) -> tuple[F64, F64, Bools]:
    """The bounds of patterns, given as cells of strings, and which of them never hold."""
    different, which = np.unique(cells, return_inverse=True)
    numbers = [
        channels.pattern(attribute, operator, pool.text(cell)) for cell in different.tolist()
    ]
    values = np.array([np.nan if each is None else each for each in numbers])[which]
    as_comparison = Operator.EQUAL if operator in POSITIVE else Operator.NOT_EQUAL
    bad = np.isnan(values)
    low, high, _ = bounds(as_comparison, np.where(bad, 0.0, values), whole=True)
    return low, high, bad


def widened(operator: Operator, values: F64) -> tuple[F64, F64]:
    """Bounds that hold whenever the comparison does, where floats stand for several integers."""
    infinite = np.full(len(values), np.inf)
    with np.errstate(over="ignore"):
        after, before = np.nextafter(values, np.inf), np.nextafter(values, -np.inf)
    match operator:
        case Operator.EQUAL:
            return values, values
        case Operator.LESS | Operator.LESS_EQUAL:
            return -infinite, after
        case Operator.GREATER | Operator.GREATER_EQUAL:
            return before, infinite
        case _:
            return -infinite, infinite


def entries_of(block: Block, subscriptions: I32, origin: I64) -> Entries:
    """The entries of a block, with constraints in ascending order of their channels."""
    order = sorted(range(len(block.channels)), key=lambda index: block.channels[index])
    width = len(order)
    flags: U8 = np.zeros(block.length, np.uint8)
    flags |= np.where(block.never, DEAD, 0).astype(np.uint8)
    flags |= np.where(block.verify, VERIFY, 0).astype(np.uint8)
    flags |= np.uint8((SHARED if block.shared else 0) | (MOVING if block.moving else 0))
    motion = _motion(block.moving, origin)
    return Entries(
        subscription=subscriptions.astype(np.int32),
        flags=flags,
        first=(np.arange(block.length + 1) * width).astype(np.int32),
        channel=np.tile(np.array([block.channels[i] for i in order], np.int32), block.length),
        low=_interleaved([block.low[i] for i in order]),
        high=_interleaved([block.high[i] for i in order]),
        motion_first=(np.arange(block.length + 1) * motion.shape[1]).astype(np.int32),
        motion=motion.ravel(),
    )


def _motion(moving: list[Moving], origin: I64) -> F64:
    """The motion of entries, a row for each."""
    if not moving:
        return np.zeros((len(origin), 0))
    never = np.full(len(origin), np.inf)
    columns: list[F64] = [origin.view(np.float64), never, -never]
    for each in moving:
        head = k.head(each.channel, each.comparison, len(each.constants))
        columns += [_as_words(head, len(origin)), _as_words(each.program, len(origin))]
        columns += each.constants
    return np.column_stack(columns)


def _as_words(value: int, count: int) -> F64:
    return np.full(count, value, np.int64).view(np.float64)


def _as_numbers(slot: int | None, kinds: Sequence[int], cells: Cells) -> F64:
    if slot is None:
        return np.ones(len(cells))
    column = cells[:, slot]
    return column.view(np.float64) if kinds[slot] == FLOAT else column.astype(np.float64)


def _interleaved(columns: list[F64]) -> F64:
    return np.column_stack(columns).ravel() if columns else np.zeros(0)

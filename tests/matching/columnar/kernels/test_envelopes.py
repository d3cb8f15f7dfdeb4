"""Envelopes may be too wide, never too narrow; and what is sure must be so."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from support.strategies import VARIABLES, neighbours, numbers
from tidegate.language.expressions import (
    CHOICES,
    FUNCTIONS,
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    Variable,
    evaluate,
)
from tidegate.language.filters import Filter
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.semantics import holds
from tidegate.language.shapes import split
from tidegate.language.syntax import Node, Operator, Predicate, all_of
from tidegate.language.syntax import predicates as predicates_of
from tidegate.language.values import Value
from tidegate.matching.arrays import F64, NO_TIME
from tidegate.matching.columnar.encoding import encode_variables
from tidegate.matching.columnar.entries.channels import NUMBER, Channels
from tidegate.matching.columnar.entries.constraints import Block, Compiler, entries_of
from tidegate.matching.columnar.kernels.envelopes import (
    NOTHING,
    elapsed,
    envelope,
    margin_of,
    run_program_over,
    shifted_by,
)
from tidegate.matching.columnar.kernels.layout import flat
from tidegate.matching.columnar.kernels.part import EXACT_MAX, pack
from tidegate.matching.columnar.kernels.programs import (
    EVERY,
    LINEAR,
    SHIFTED,
    STACK_MAX,
    run_program,
)
from tidegate.matching.columnar.store.cells import StringPool, encode
from tidegate.matching.subscription import Moment, Subscription

Interval = tuple[float, float]
Room = dict[str, Interval]
"""What the variables can be; one that is not named has no value."""

TURN = 2 * math.pi
SECOND = 1_000_000
COMPARISONS = [
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.LESS,
    Operator.LESS_EQUAL,
    Operator.GREATER,
    Operator.GREATER_EQUAL,
]


def ln(operand: Expression) -> Expression:
    return Call("ln", (operand,))


def functions() -> st.SearchStrategy[Expression]:
    """Numeric expressions of constants, `t` and variables."""
    leaves = st.one_of(
        st.just(Elapsed()),
        st.sampled_from(VARIABLES).map(Variable),
        numbers.map(Constant),
        st.integers(-5, 5).map(Constant),
    )
    names = sorted(FUNCTIONS.keys() - {"ln"})

    def extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            st.builds(Arithmetic, st.sampled_from("+-*/%"), inner, inner),
            st.builds(Negated, inner),
            st.builds(Call, st.sampled_from(names), st.tuples(inner)),
            st.builds(ln, inner),
            st.builds(Call, st.sampled_from(sorted(CHOICES)), several),
        )

    found = st.recursive(leaves, extend, max_leaves=6)
    return found.filter(lambda each: not isinstance(each, Variable))  # which may be of any kind


def between(two: tuple[float, float]) -> Interval:
    return float(min(two)), float(max(two))


ends = st.sampled_from([0.0, 1.0, -1.0, 60.0, 1e9, TURN / 4]) | st.floats(-1e9, 1e9)
times = st.tuples(ends, ends).map(between) | ends.map(lambda t: (t, t))
rooms = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(VARIABLES, st.tuples(numbers, numbers).map(between))
)
points = st.lists(st.tuples(ends, numbers, numbers), max_size=6)


def inside(interval: Interval, value: float) -> float:
    return min(max(float(value), interval[0]), interval[1])


def function(text: str) -> Expression:
    node = parse_filter(f"x < {text}")
    assert isinstance(node, Predicate)
    return node.operands[0]


def block_of(node: Node, channels: Channels) -> Block:
    """The entry of a conjunction without parameters."""
    shape, filled = split(node)
    pool = StringPool()
    row = [encode(leaf.value, pool) for leaf in filled if isinstance(leaf, Constant)]
    cells = np.array([[cell for _, cell in row]], np.int64)
    (block,) = Compiler(channels, pool).blocks(shape, tuple(kind for kind, _ in row), cells)
    return block


def rows_of(room: Room, channels: Channels) -> F64:
    """The least and the most that variables can be, as the kernels take it."""
    rows = np.repeat([[NOTHING[0]], [NOTHING[1]]], max(1, len(channels.variables)), axis=1)
    for name, number in channels.variables.items():
        rows[:, number] = room.get(name, NOTHING)
    return rows


class Machine:
    """The program of a function."""

    def __init__(self, expression: Expression) -> None:
        moves = Predicate("x", Operator.GREATER, (Elapsed(),))
        self.channels = Channels()
        node = all_of([Predicate("x", Operator.LESS, (expression,)), moves])
        moving = block_of(node, self.channels).moving[0]
        self.is_linear = moving.program == LINEAR
        self.at, self.first, self.shift = moving.program, 0, 0.0
        self.constants = np.array([column[0] for column in moving.constants])
        if not self.is_linear and moving.program & SHIFTED:
            self.at, self.first = moving.program ^ SHIFTED, 1
            self.shift = float(self.constants[0])
        self.code = np.array(self.channels.program, np.int32)

    def at_point(self, t: float, known: dict[str, Value]) -> float:
        values = encode_variables(known, self.channels)
        stack = np.empty(STACK_MAX)
        constants = self.constants, self.first
        return self.shift + run_program(self.code, self.at, *constants, t, values, 0, stack)

    def over(self, t: Interval, room: Room | None = None) -> tuple[float, float, bool]:
        rows = rows_of(room or {}, self.channels)
        stack = np.empty(2 * STACK_MAX)
        low, high = float(t[0]), float(t[1])
        found = run_program_over(
            self.code, self.at, self.constants, self.first, low, high, rows, stack
        )
        return shifted_by(self.shift, *found) if self.first else found


# -- programs over intervals ----------------------------------------------------------------------


@given(functions(), times, rooms, points)
@example(function("1 / (t - 5)"), (0.0, 10.0), {}, [(5.0, 0, 0)])
@example(function("1 % (t - 5)"), (0.0, 10.0), {}, [(5.0, 0, 0), (4.5, 0, 0)])
@example(function("sqrt(t - 5)"), (5.0, 10.0), {}, [])
@example(function("ln(t)"), (0.0, 5e-324), {}, [])
@example(function("exp(t) - exp(t)"), (0.0, 1000.0), {}, [])
@example(function("(t - 5) * infinity"), (0.0, 10.0), {}, [(5.0, 0, 0), (6.0, 0, 0)])
@example(function("@load - @mode"), (0.0, 0.0), {"load": (1, math.inf), "mode": (1, math.inf)}, [])
@example(function("sin(t * 1e300)"), (0.0, 1e9), {}, [(1.0, 0, 0)])
@example(function("cos(sin(t) * 1e6)"), (0.0, 1.0), {}, [(0.5, 0, 0)])
@example(function("-t % 3"), (0.0, 10.0), {}, [(2.9, 0, 0), (3.1, 0, 0)])
def test_an_interval_holds_every_value(
    expression: Expression, t: Interval, room: Room, points: list[tuple[float, float, float]]
) -> None:
    machine = Machine(expression)
    assume(not machine.is_linear)
    low, high, surely = machine.over(t, room)
    assert not math.isnan(low)
    assert not math.isnan(high)
    for moment, *values in [(t[0], 0, 0), (t[1], 0, 0), *points]:
        known: dict[str, Value] = {
            name: inside(room[name], value)
            for name, value in zip(VARIABLES, values, strict=True)
            if name in room
        }
        found = machine.at_point(inside(t, moment), known)
        assert low <= found <= high or (math.isnan(found) and not surely)


@pytest.mark.parametrize(
    ("text", "t", "expected"),
    [
        ("3 - 2 * t", (0, 10), (-17, 3)),
        ("t", (2, 5), (2, 5)),
        ("-t", (2, 5), (-5, -2)),
        ("t / 4", (0, 10), (0, 2.5)),
        ("1 / (t + 1)", (0, 9), (0.1, 1)),
        ("(t - 5) * (5 - t)", (0, 10), (-25, 25)),  # each factor on its own
        ("abs(t - 5)", (0, 7), (0, 5)),
        ("abs(t)", (-7, -5), (5, 7)),
        ("min(t, 4, 5)", (0, 10), (0, 4)),
        ("max(t, 4, 5)", (0, 10), (5, 10)),
        ("floor(t / 4)", (0, 10), (0, 2)),
        ("ceil(t / 4)", (0, 10), (0, 3)),
        ("sqrt(t)", (4, 9), (2, 3)),
        # without a wrap, and with one
        ("t % 60", (10, 50), (10, 50)),
        ("t % 60", (70, 110), (10, 50)),
        ("t % 60", (50, 59), (50, 59)),
        ("t % 60", (50, 60), (0, 60)),
        ("t % 60", (50, 70), (0, 60)),
        ("t % 60", (0, 1000), (0, 60)),
        ("t % 60", (-10, 10), (-10, 10)),
        ("t % 60", (-70, -50), (-60, 0)),
        ("t % -60", (70, 110), (10, 50)),
        ("t % infinity", (-10, 10), (-10, 10)),
        ("5 % t", (10, 20), (0, 5)),
        # a wave with its top or bottom inside
        ("sin(t)", (0, 100), (-1, 1)),
        ("sin(infinity + t)", (0, 1), (-1, 1)),
        # a moment is exact
        ("2 * t + 1", (3, 3), (7, 7)),
        ("t % 60", (61, 61), (1, 1)),
    ],
)
def test_intervals_are_tight(text: str, t: Interval, expected: Interval) -> None:
    low, high, _ = Machine(function(text)).over(t)
    assert (low, high) == expected


@pytest.mark.parametrize(
    ("text", "t", "expected"),
    [
        ("sin(t)", (0.1, 0.2), (math.sin(0.1), math.sin(0.2))),
        ("cos(t)", (0.1, 0.2), (math.cos(0.2), math.cos(0.1))),
        ("sin(t)", (0.1, 2), (math.sin(0.1), 1)),
        ("sin(t)", (3, 5), (-1, math.sin(3))),
        ("cos(t)", (-1, 0.5), (math.cos(-1), 1)),
        ("cos(t)", (2, 4), (-1, math.cos(2))),
        ("sin(t)", (1000.1, 1000.2), (math.sin(1000.1), math.sin(1000.2))),
        ("exp(t)", (-1, 1), (math.exp(-1), math.e)),
        ("ln(t)", (1, 10), (0, math.log(10))),
        ("5 * sin(t / 10) + 2", (0, 5), (2, 5 * math.sin(0.5) + 2)),
    ],
)
def test_intervals_of_inexact_functions_are_nearly_tight(
    text: str, t: Interval, expected: Interval
) -> None:
    low, high, surely = Machine(function(text)).over(t)
    assert (low, high) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert surely


@pytest.mark.parametrize(
    ("text", "surely"),
    [
        ("1 / (t + 1)", True),
        ("1 / t", False),
        ("1 % t", False),
        ("t % 60", True),
        ("sqrt(t + 1)", True),
        ("sqrt(t - 5)", False),
        ("ln(t + 1)", True),
        ("ln(t)", False),
        ("exp(t * 1000)", True),
        ("exp(t * 1000) - 1", False),
        ("sin(exp(t * 1000))", False),
        ("@load + t", False),  # it may be taken away
        ("0 * (1 / t)", False),
    ],
)
def test_what_surely_has_a_value(text: str, surely: bool) -> None:
    assert Machine(function(text)).over((0, 10), {"load": (0, 1)})[2] == surely


@pytest.mark.parametrize(
    "text",
    ["sqrt(-1 - t)", "ln(-t)", "t / 0", "t % 0", "@nobody + t", "1 + ln(-t)", "min(1, ln(-t))"],
)
def test_what_is_never_defined_is_nothing(text: str) -> None:
    assert Machine(function(text)).over((0, 10)) == (*NOTHING, False)


def test_the_logarithm_of_infinity_is_infinite() -> None:
    machine = Machine(function("ln(exp(1000 + t))"))
    assert machine.at_point(0.0, {}) == math.inf
    assert machine.over((0, 10))[:2] == (math.inf, math.inf)


# -- what `t` can be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end", "timeless", "since", "hold", "expected"),
    [
        (5_000_000, 9_000_000, False, 2_000_000, EVERY, (3, 7)),
        (5_000_000, 5_000_000, False, 2_000_000, EVERY, (3, 3)),
        (5_000_000, 9_000_000, True, 2_000_000, EVERY, (0, 7)),
        (1_000_000, 1_500_000, True, 2_000_000, EVERY, (-1, 0)),
        (1_000_000, 9_000_000, False, 2_000_000, EVERY, (-1, 7)),
        (0, -1, True, 2_000_000, EVERY, (0, 0)),
        (5_000_000, 9_000_000, False, NO_TIME, EVERY, (0, 0)),
        # every two seconds
        (5_000_000, 9_000_000, False, 2_000_000, EVERY + 2_000_000, (2, 6)),
        (6_000_000, 7_999_999, False, 2_000_000, EVERY + 2_000_000, (4, 4)),
        (1_000_000, 9_000_000, True, 2_000_000, EVERY + 2_000_000, (-2, 6)),
        (5_000_000, 9_000_000, False, NO_TIME, EVERY + 2_000_000, (0, 0)),
        # as of a time, but for events before it
        (5_000_000, 9_000_000, False, 2_000_000, 4_000_000, (2, 2)),
        (5_000_000, 9_000_000, False, 2_000_000, 8_000_000, (3, 6)),
        (5_000_000, 9_000_000, True, 2_000_000, 4_000_000, (0, 2)),
        (5_000_000, 9_000_000, False, NO_TIME, 4_000_000, (0, 0)),
    ],
)
def test_what_t_can_be(
    begin: int, end: int, timeless: bool, since: int, hold: int, expected: Interval
) -> None:
    assert elapsed(begin, end, timeless, np.int64(since), np.int64(hold)) == expected


# -- envelopes ------------------------------------------------------------------------------------


def enclosed(
    node: Node, since: int | None, times: tuple[int, int, bool], room: Room | None = None
) -> tuple[float, float, float, float]:
    """The envelope of what a conjunction asks of `x`."""
    channels = Channels()
    block = block_of(node, channels)
    channel = channels.channel("x", NUMBER)
    start = np.array([NO_TIME if since is None else since], np.int64)
    entries = entries_of(block, np.zeros(1, np.int32), start, np.array([EVERY]))
    packed = pack(flat(entries, np.array([*channels.program, 0], np.int32)))
    rows, stack = rows_of(room or {}, channels), np.empty(2 * STACK_MAX)
    stretch = np.array(times, np.int64)
    return envelope(packed.at, packed.i32, packed.f64, 0, np.int64(channel), stretch, rows, stack)


@pytest.mark.parametrize(
    ("text", "expected", "sure"),
    [
        ("x >= -3 + t", (7, math.inf), (17, math.inf)),
        ("x > -3 + t", (7, math.inf), (math.nextafter(17, 18), math.inf)),
        ("x <= 3 + t", (-math.inf, 23), (-math.inf, 13)),
        ("x < 3 + t", (-math.inf, 23), (-math.inf, math.nextafter(13, 12))),
        ("x between -3 + t and 3 + t", (7, 23), (17, 13)),
        ("x between -30 + t and 30 + t", (-20, 50), (-10, 40)),
        ("x = 2 * t", (20, 40), (40, 20)),
        ("x = 5 - 0 * t", (5, math.nextafter(5, 6)), (5, 5)),
        # what is compared with constants counts as well
        ("x > t and x < 12", (10, 12), (math.nextafter(20, 21), math.nextafter(12, 11))),
        # an empty envelope is a sliver somewhere
        ("x > t and x < 3", (10, math.nextafter(10, 11)), (20, 3)),
    ],
)
def test_envelopes_of_ten_to_twenty_seconds(text: str, expected: Interval, sure: Interval) -> None:
    found = enclosed(parse_filter(text), 0, (10 * SECOND, 20 * SECOND, False))
    assert found[:2] == expected
    assert found[2:] == pytest.approx(sure, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x >= exp(t * 1000)", (sys.float_info.max, math.inf)),
        ("x <= -exp(t * 1000)", (-math.inf, -sys.float_info.max)),
    ],
)
def test_an_infinite_bound_lets_infinity_pass(text: str, expected: Interval) -> None:
    found = enclosed(parse_filter(text), 0, (10 * SECOND, 20 * SECOND, False))
    assert found[:2] == expected


@pytest.mark.parametrize("text", ["x != t", "x < @load + t", "x < 1 / (t - 15)"])
def test_nothing_is_sure(text: str) -> None:
    times, room = (10 * SECOND, 20 * SECOND, False), {"load": (1.0, 2.0)}
    *_, low, _ = enclosed(parse_filter(text), 0, times, room)
    assert low == math.inf


def test_what_never_has_a_value_lets_no_usual_number_pass() -> None:
    low, _, sure_low, _ = enclosed(
        parse_filter("x < 5 and x > ln(-t)"), 0, (10 * SECOND, 20 * SECOND, False)
    )
    assert low == sys.float_info.max
    assert sure_low == math.inf


def test_an_envelope_is_of_one_channel() -> None:
    node = parse_filter("x > t and y < -t")
    assert enclosed(node, 0, (10 * SECOND, 20 * SECOND, False))[:2] == (10, math.inf)


def test_events_without_a_time_are_enclosed_too() -> None:
    node = parse_filter("x between t and t + 1")
    assert enclosed(node, 0, (10 * SECOND, 20 * SECOND, True))[:2] == (0, 21)
    assert enclosed(node, 0, (0, -1, True))[:2] == (0, 1)
    assert enclosed(node, None, (10 * SECOND, 20 * SECOND, False))[:2] == (0, 1)


lines = st.builds(
    Arithmetic,
    st.just("+"),
    numbers.map(Constant),
    st.builds(Arithmetic, st.just("*"), numbers.map(Constant), st.just(Elapsed())),
)
comparisons = st.builds(
    Predicate,
    st.just("x"),
    st.sampled_from(COMPARISONS),
    st.tuples(functions() | lines | st.integers(-5, 5).map(Constant)),
)
time_us = st.sampled_from([0, SECOND, -SECOND, 60 * SECOND]) | st.integers(-(10**10), 10**15)
stretches = st.tuples(time_us, time_us, st.booleans()).map(
    lambda drawn: (min(drawn[:2]), max(drawn[:2]), drawn[2])
)
no_times = st.just((0, -1, True))


@st.composite
def moments(draw: st.DrawFn, times: tuple[int, int, bool], room: Room) -> Moment:
    """A moment of a stretch; variables may also be taken away."""
    begin, end, timeless = times
    drawn: int | None = None
    if begin <= end and not (timeless and draw(st.booleans())):
        drawn = min(max(draw(st.sampled_from([begin, end]) | time_us), begin), end)
    names = draw(st.sets(st.sampled_from(sorted(room)))) if room else set()
    return Moment(drawn, {name: inside(room[name], draw(numbers)) for name in names})


@given(st.data())
def test_an_envelope_lets_pass_what_ever_passes(data: st.DataObject) -> None:
    """And what is sure passes at every moment."""
    node = all_of(data.draw(st.lists(comparisons, min_size=1, max_size=3)))
    since = data.draw(st.none() | time_us)
    times, room = data.draw(stretches | no_times), data.draw(rooms)
    assume(block_of(node, Channels()).moving)
    low, high, sure_low, sure_high = enclosed(node, since, times, room)
    assert low < high
    subscription = Subscription("s", Filter(node), {}, since)
    seen = data.draw(st.lists(moments(times, room), min_size=1, max_size=4))
    environments = [subscription.environment(moment) for moment in seen]
    values: list[Value | None] = [low, high, sure_low, sure_high, data.draw(numbers)]
    for predicate in predicates_of(node):
        values += [evaluate(predicate.operands[0], environment) for environment in environments]
    for x in {near for value in values if value is not None for near in neighbours(value)}:
        assert isinstance(x, (int, float))
        passes = [holds(node, {"x": x}, environment) for environment in environments]
        number = float(x)
        assert low <= number <= high or not any(passes)
        if sure_low <= number <= sure_high and abs(number) < EXACT_MAX:
            assert all(passes)


# -- margins --------------------------------------------------------------------------------------


@given(st.lists(numbers.map(float), min_size=4, max_size=4), st.lists(numbers, max_size=6))
@example([0.0, 1.0, 0.1, 0.9], [0.1, 0.9, 0.09999999999999999])
@example([0.0, 1e-300, 1e-310, 1e-301], [1e-305])
@example([-math.inf, 5.0, -math.inf, 4.0], [4, 4.5, -1e308])
@example([float(EXACT_MAX), math.inf, EXACT_MAX + 2.0, math.inf], [EXACT_MAX + 4])
def test_what_lies_inside_by_the_margin_is_sure(bounds: list[float], values: list[float]) -> None:
    low, high, sure_low, sure_high = bounds
    assume(low < high and low <= sure_low and sure_high <= high)
    margin = float(margin_of(low, high, sure_low, sure_high))
    assert margin >= 0.0
    near = [math.nextafter(end, to) for end in bounds[2:] for to in (-math.inf, end, math.inf)]
    for x in map(float, [*values, *near]):
        if low <= x <= high and low + margin <= x <= high - margin:
            assert sure_low <= x <= sure_high


@pytest.mark.parametrize(
    ("bounds", "least", "most"),
    [
        ((0.0, 10.0, 1.0, 9.0), 1.0, 1.000001),
        ((0.0, 10.0, 1.0, 7.0), 3.0, 3.000001),
        ((2.0, math.inf, 2.5, math.inf), 0.5, 0.500001),
        ((0.0, 10.0, 0.0, 10.0), 0.0, 0.0),
        ((0.0, 10.0, 6.0, 4.0), math.inf, math.inf),
        ((float(EXACT_MAX), math.inf, EXACT_MAX + 2.0, math.inf), math.inf, math.inf),
    ],
)
def test_margins(bounds: tuple[float, float, float, float], least: float, most: float) -> None:
    assert least <= float(margin_of(*bounds)) <= most

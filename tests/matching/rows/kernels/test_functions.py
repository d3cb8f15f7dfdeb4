"""The functions of an entry's motion hold exactly when the predicates of its filter do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from support.strategies import VARIABLES, numbers
from support.time_functions import block_of, evolving_functions, function
from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic
from tidegate.language.expressions import Expression, as_float, evaluate
from tidegate.language.filters import Filter, parse
from tidegate.language.semantics import holds
from tidegate.language.syntax import Node, Operator, Predicate, all_of
from tidegate.language.values import Value
from tidegate.matching.arrays import I64, NO_TIME
from tidegate.matching.rows.encoding import encode_event, encode_variables
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.kernels.flags import EXACT_MAX, MOVING, VERIFY
from tidegate.matching.rows.kernels.functions import check_functions
from tidegate.matching.rows.kernels.motion import EVERY, LINEAR, SHIFTED, write_motions
from tidegate.matching.rows.kernels.programs import STACK_MAX
from tidegate.matching.rows.store.cells import StringPool
from tidegate.matching.subscription import Moment, Subscription

SECOND = 1_000_000
COMPARISONS = [
    Operator.EQUAL, Operator.NOT_EQUAL, Operator.LESS, Operator.LESS_EQUAL, Operator.GREATER,
    Operator.GREATER_EQUAL,
]  # fmt: skip
FAILED = -1


def checked(
    node: Node,
    attributes: Mapping[str, Value],
    time_us: int | None = None,
    *,
    since: int | None = None,
    pin: int = EVERY,
    rows: Sequence[Mapping[str, Value]] = ({},),
    event: int = 0,
) -> int:
    """The flags of an event and an entry, of whose predicates all move.

    ``rows`` are the variables, for all events or for each; the event is at the index ``event``.
    """
    channels = Channels()
    block = block_of(node, channels)
    words = 5  # of another motion, which comes before it
    motion = write_motions(block.moving, _us(since), np.array([pin]))[0]
    motions = np.concatenate([np.full(words, math.nan), motion, np.full(words, math.nan)])
    matrix = np.full((event + 1, channels.columns), math.nan)
    matrix[event] = encode_event(attributes, channels, StringPool()).matrix[0]
    return int(
        check_functions(
            np.int64(MOVING),
            np.int64(words),
            np.int64(words + len(motion)),
            motions,
            motions.view(np.int64),
            np.array([*channels.program, 0], np.int32),
            matrix,
            np.int64(event),
            _us(time_us)[0],
            np.concatenate([encode_variables(row, channels) for row in rows]),
            np.empty(STACK_MAX),
        )
    )


def _us(time_us: int | None) -> I64:
    return np.array([NO_TIME if time_us is None else time_us], np.int64)


def node_of(text: str) -> Node:
    return parse(text).node


# -- against the language -------------------------------------------------------------------------

comparisons = st.lists(
    st.tuples(st.sampled_from(COMPARISONS), evolving_functions()), min_size=1, max_size=3
)
moments_us = st.none() | st.integers(-3 * SECOND, 9 * SECOND) | st.just(2**52)
modes: st.SearchStrategy[Evolve] = st.one_of(
    st.just(Lazy()),
    st.integers(1, 4 * SECOND).map(lambda us: Periodic(us / SECOND)),
)
variables = st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, numbers))


@given(comparisons, moments_us, moments_us, modes, variables, st.data())
@example([(Operator.NOT_EQUAL, function("1 / t"))], 0, 0, Lazy(), {}, None)
def test_functions_hold_when_the_predicates_do(
    compared: list[tuple[Operator, Expression]],
    time_us: int | None,
    since: int | None,
    mode: Evolve,
    known: dict[str, Value],
    data: st.DataObject | None,
) -> None:
    node = all_of([Predicate("x", operator, (operand,)) for operator, operand in compared])
    subscription = Subscription("s", Filter(node), since=since, evolve=mode)
    environment = subscription.environment(Moment(time_us, known))
    bound = as_float(evaluate(compared[0][1], environment))
    near = [0.0] if bound is None else [bound, *(math.nextafter(bound, to) for to in (-9e99, 9e99))]
    value = 1.0 if data is None else data.draw(st.sampled_from(near) | numbers)
    assume(not math.isnan(value))
    pin = EVERY + mode.interval_us if isinstance(mode, Periodic) else EVERY
    found = checked(node, {"x": value}, time_us, since=since, pin=pin, rows=[known])
    wanted = holds(node, {"x": value}, environment)
    if abs(value) < EXACT_MAX:
        assert found == (MOVING if wanted else FAILED)
    else:
        assert found in (FAILED, MOVING | VERIFY)
        assert found != FAILED or not wanted


# -- forms of functions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("x >= -3 + t and x <= 3 + t", [LINEAR, LINEAR]),
        ("x >= -3 + sin(t) and x <= 3 + sin(t)", [SHIFTED, SHIFTED]),
        ("x >= -3 + sin(t) and x <= 3 + 2 * cos(t)", [SHIFTED, SHIFTED]),
        ("x >= sin(t) * 3 - 3 and x <= 3 + sin(t)", [0, SHIFTED]),
    ],
)
def test_each_form_of_a_function(text: str, programs: list[int]) -> None:
    node = node_of(text)
    moving = block_of(node, Channels()).moving
    forms = [each.program if each.program == LINEAR else each.program & SHIFTED for each in moving]
    assert sorted(forms) == programs
    time_us = 1_500_000
    environment = Subscription("s", Filter(node), since=0).environment(Moment(time_us))
    for tenth in range(-70, 70):
        attributes: dict[str, Value] = {"x": tenth / 10}
        wanted = holds(node, attributes, environment)
        found = checked(node, attributes, time_us, since=0)
        assert found == (MOVING if wanted else FAILED)


@pytest.mark.parametrize("text", ["x < 1 / t", "x != 1 / t", "x != @none + t", "x = sqrt(-1 - t)"])
def test_an_undefined_bound_is_satisfied_by_nothing(text: str) -> None:
    assert checked(node_of(text), {"x": -1.0}) == FAILED


@pytest.mark.parametrize("text", ["x < 5 + t", "x != 5 + t"])
@pytest.mark.parametrize("attributes", [{}, {"x": "a"}, {"x": True}])
def test_an_event_without_a_number_satisfies_nothing(
    text: str, attributes: dict[str, Value]
) -> None:
    assert checked(node_of(text), attributes) == FAILED


@pytest.mark.parametrize("value", [2**53, 2**53 + 1, -(2**53), math.inf])
def test_what_a_float_cannot_decide_is_to_be_verified(value: float) -> None:
    node = node_of("x > t and x < 5 - t")
    assert checked(node, {"x": value}) == MOVING | VERIFY
    assert checked(node, {"x": 2**53 - 1}) == FAILED


def test_a_later_function_may_fail_after_one_that_is_to_be_verified() -> None:
    assert checked(node_of("x > t and y > t"), {"x": 2**53, "y": -1}) == FAILED


# -- times and variables --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time_us", "since", "t"),
    [(5 * SECOND, 2 * SECOND, 3.0), (1, 0, 1e-6), (0, SECOND, -1), (None, 0, 0), (7, None, 0)],
)
def test_t_is_the_time_since_the_subscription(
    time_us: int | None, since: int | None, t: float
) -> None:
    assert checked(node_of("x = t"), {"x": t}, time_us, since=since) == MOVING


def test_t_is_exact_for_times_that_a_float_would_round() -> None:
    far = 2**60
    assert checked(node_of("x = t"), {"x": 1e-6}, far + 1, since=far) == MOVING


@pytest.mark.parametrize(
    ("pin", "t"),
    [(EVERY, 3.5), (EVERY + 2 * SECOND, 2.0), (SECOND, 1.0), (9 * SECOND, 3.5)],
)
def test_functions_are_evaluated_for_the_time_of_the_pin(pin: int, t: float) -> None:
    assert checked(node_of("x = t"), {"x": t}, 3_500_000, since=0, pin=pin) == MOVING


def test_a_pin_is_the_one_of_a_cached_subscription() -> None:
    node = node_of("x = t")
    pinned = Subscription("s", Filter(node), since=0, evolve=Cached(9), pinned_at_us=SECOND)
    assert holds(node, {"x": 1.0}, pinned.environment(Moment(3 * SECOND)))
    assert checked(node, {"x": 1.0}, 3 * SECOND, since=0, pin=SECOND) == MOVING


def test_variables_have_one_row_for_all_events_or_one_for_each() -> None:
    node, rows = node_of("x = @load + t"), [{"load": 1}, {"load": 2}, {"load": 3}]
    assert checked(node, {"x": 3}, rows=rows, event=2) == MOVING
    assert checked(node, {"x": 2}, rows=rows, event=1) == MOVING
    assert checked(node, {"x": 1}, rows=rows[:1], event=2) == MOVING

"""Judgements of one event and of a batch, compared with the meaning of the language."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.language.events import Event
from tidegate.language.expressions import Expression, Now, Variable, evaluate
from tidegate.language.filters import parse
from tidegate.language.semantics import satisfies
from tidegate.language.syntax import STRING_OPERATORS, Operator
from tidegate.language.values import Value, kind_of, to_us
from tidegate.language.variables import Variables
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.batches import EventBatch
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.judgements import AHEAD, BACK, COMPARED, DELAY, Judgement
from tidegate.matching.rows.judging import judge_batch, judge_event
from tidegate.matching.subscription import Moment

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
VALUES: list[Value] = [
    FIRST, LAST, NOON, NOON + timedelta(microseconds=1), datetime(2300, 1, 1, tzinfo=UTC),
    0, 1, 1.0, -0.5, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), math.inf, -math.inf,
    "", "a", "ab", "a%", True, False,
]  # fmt: skip
OPERANDS: list[Expression] = [Variable("v"), Now(), *(
    parse(f"x < {text}").shape_and_row[0].disjuncts[0][0].operands[0]
    for text in ("now() - @v", "-@v", "max(@v, @w)")
)]  # fmt: skip
JUDGEMENTS = [
    Judgement("x", form, operand)
    for operand in OPERANDS
    for form in (COMPARED, DELAY, AHEAD, BACK, *(each.value for each in STRING_OPERATORS))
]
values = st.sampled_from(VALUES)
times = st.sampled_from([None, FIRST, LAST, NOON])


@pytest.fixture
def channels(monkeypatch: pytest.MonkeyPatch) -> Channels:
    monkeypatch.setattr("tidegate.matching.rows.entries.channels.JUDGEMENTS_MAX", len(JUDGEMENTS))
    return all_judgements()


def all_judgements() -> Channels:
    channels = Channels()
    channels.judgements = {each: number for number, each in enumerate(JUDGEMENTS)}
    channels.columns = len(JUDGEMENTS)
    return channels


CHANNELS = all_judgements()


def expected(judgement: Judgement, value: Value | None, moment: Moment) -> float:
    operand = evaluate(judgement.operand, moment.environment(None))
    if value is None or operand is None:
        return math.nan
    if judgement.form == COMPARED:
        if kind_of(value) is not kind_of(operand):
            return math.nan
        if satisfies(value, Operator.EQUAL, [operand]):
            return 0.0
        return 1.0 if satisfies(value, Operator.GREATER, [operand]) else -1.0
    if judgement.form in (DELAY, AHEAD, BACK):
        if not isinstance(value, datetime) or not isinstance(operand, datetime):
            return math.nan
        first, last = {
            DELAY: (operand, value), AHEAD: (operand, LAST), BACK: (FIRST, operand),
        }[judgement.form]  # fmt: skip
        return float(max(-(2**53), min(2**53, to_us(last) - to_us(first))))
    return 1.0 if satisfies(value, Operator(judgement.form), [operand]) else math.nan


@given(values, times, st.dictionaries(st.sampled_from("vw"), values))
def test_an_event_is_judged_as_the_language_says(
    value: Value, time: datetime | None, variables: dict[str, Value]
) -> None:
    moment = Moment(None if time is None else to_us(time), variables)
    matrix = np.full((1, CHANNELS.columns), np.nan)
    judge_event(matrix, {"x": value, "y": 1}, moment, CHANNELS)
    found = [matrix[0, number] for number in CHANNELS.judgements.values()]
    np.testing.assert_array_equal(found, [expected(each, value, moment) for each in JUDGEMENTS])


@given(
    st.lists(st.tuples(values | st.none(), times), min_size=1, max_size=6),
    st.dictionaries(st.sampled_from("vw"), values),
    st.booleans(),
)
def test_a_batch_is_judged_as_its_events_are(
    rows: list[tuple[Value | None, datetime | None]], variables: dict[str, Value], provided: bool
) -> None:
    """Values of several kinds in one batch; variables that are set, or depend on the time."""
    state = Variables()
    if provided:
        for name, value in variables.items():
            state.provide(name, partial(_unless_last, value))
    else:
        state.set(**variables)
    events = [Event({} if value is None else {"x": value}) for value, _ in rows]
    times_us = np.array([NO_TIME if time is None else to_us(time) for _, time in rows])
    batch = EventBatch.of_events([Event({"y": 1}), *events]).with_variables(state.state)
    batch = batch.judged_at(np.array([0, *times_us.tolist()]))
    matrix = np.full((len(rows), CHANNELS.columns), np.nan)
    judge_batch(matrix, batch, 1, times_us, CHANNELS)
    alone = np.full_like(matrix, np.nan)
    for row, event in enumerate(events):
        judge_event(alone[row : row + 1], event.attributes, batch.moment(row + 1), CHANNELS)
    np.testing.assert_array_equal(matrix, alone)


def _unless_last(value: Value, time: datetime | None) -> Value | None:
    return None if time == LAST else value


def test_an_event_without_the_attribute_is_not_judged(channels: Channels) -> None:
    matrix = np.full((1, channels.columns), np.nan)
    judge_event(matrix, {"y": 1}, Moment(0, {"v": 1, "w": 2}), channels)
    assert np.isnan(matrix).all()

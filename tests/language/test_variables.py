"""Variables: set, provided, and always there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from tidegate import BadValueError, Engine, VariableError
from tidegate.language.values import to_us
from tidegate.language.variables import DAY_US, Variables, VariableState
from tidegate.matching.registry import MATCHERS

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
every_matcher = pytest.mark.parametrize("matcher", sorted(MATCHERS))


def test_values_are_set_and_taken_away() -> None:
    variables = Variables()
    variables.set(mode="critical", load=0.5)
    before = variables.at(None)
    variables.set(load=None)
    assert dict(variables.at(None)) == {"mode": "critical"}
    assert dict(before) == {"mode": "critical", "load": 0.5}
    with pytest.raises(BadValueError, match="variable @load: a list"):
        variables.set(load=[1])


@pytest.mark.parametrize(
    ("time_us", "expected"),
    [
        (0, 0.0),
        (to_us(NOON), 43_200.0),
        (to_us(NOON) + 250_000, 43_200.25),
        (DAY_US - 1, 86_399.999999),
        (-1, 86_399.999999),  # the last moment of 1969
    ],
)
def test_the_time_of_day(time_us: int, expected: float) -> None:
    assert VariableState().at(time_us)["time_of_day"] == expected


def test_without_a_time_there_is_no_time_of_day() -> None:
    assert "time_of_day" not in Variables().at(None)
    assert len(Variables().at(None)) == 0


def test_what_is_set_goes_before_what_is_provided() -> None:
    variables = Variables()
    variables.provide("load", lambda _: 1)
    variables.set(load=2, time_of_day=3)
    assert (variables.at(5)["load"], variables.at(5)["time_of_day"]) == (2, 3)
    variables.set(load=None, time_of_day=None)
    assert dict(variables.at(5_000_000)) == {"load": 1, "time_of_day": 5.0}
    variables.provide("load", None)
    variables.provide("time_of_day", lambda _: "noon")
    assert dict(variables.at(5_000_000)) == {"time_of_day": "noon"}
    variables.provide("time_of_day", None)
    variables.provide("nobody", None)
    assert dict(variables.at(5_000_000)) == {"time_of_day": 5.0}


def test_a_provider_is_asked_with_the_time_of_the_event_and_only_once() -> None:
    asked: list[datetime | None] = []

    def provide(time: datetime | None) -> int:
        asked.append(time)
        return len(asked)

    variables = Variables()
    variables.provide("load", provide)
    seen = variables.at(to_us(NOON))
    assert asked == []
    assert [seen["load"], seen["load"], seen.get("load")] == [1, 1, 1]
    assert asked == [NOON]
    assert variables.at(None)["load"] == 2
    assert asked == [NOON, None]


def test_a_provider_that_fails_is_named() -> None:
    def broken(_: datetime | None) -> object:
        raise ValueError("no connection")

    variables = Variables()
    variables.provide("weather", broken)
    with pytest.raises(
        VariableError, match="@weather: its provider failed with ValueError: no connection"
    ) as caught:
        variables.at(None)["weather"]
    assert isinstance(caught.value.__cause__, ValueError)
    variables.provide("weather", lambda _: ["sun"])
    with pytest.raises(VariableError, match="variable @weather: a list is not a value"):
        variables.at(None)["weather"]


def test_a_provider_that_knows_nothing_leaves_the_variable_undefined() -> None:
    variables = Variables()
    variables.provide("weather", lambda _: None)
    assert variables.at(None).get("weather") is None


# -- in the engine --------------------------------------------------------------------------------


@every_matcher
def test_a_change_takes_effect_without_touching_subscriptions(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    engine.subscribe("distance < :near * @max_bandwidth / @used_bandwidth", id="s", near=10)
    engine.set_variables(max_bandwidth=100, used_bandwidth=100)
    assert engine.match({"distance": 15}) == []
    engine.set_variables(used_bandwidth=50)
    assert engine.match({"distance": 15}) == ["s"]
    engine.provide("used_bandwidth", lambda _: 100)
    assert engine.match({"distance": 15}) == ["s"]  # what is set goes first
    engine.set_variables(used_bandwidth=None)
    assert engine.match({"distance": 15}) == []


@every_matcher
def test_a_batch_has_the_time_of_day_of_each_event(matcher: str) -> None:
    engine = Engine(matcher=matcher, clock=lambda: None)
    engine.subscribe("x < @time_of_day", id="bare")
    engine.subscribe("x < @time_of_day - 3600", id="computed")
    engine.subscribe("hour = @hour and x >= 0", id="hour")
    engine.provide("hour", lambda time: None if time is None else time.hour)
    times = [NOON + timedelta(hours=hours) for hours in (-11, -1, 0, 1, 0)]
    rows = [{"x": 41_000, "hour": 12, "time": time} for time in times]
    events = pa.Table.from_pylist(
        rows, pa.schema({"x": pa.int64(), "hour": pa.int64(), "time": pa.timestamp("us", "UTC")})
    )
    found = sorted(
        (row["event"], row["subscription"])
        for row in engine.match_batch(events, event_time="time").to_pylist()
    )
    assert found == [
        (2, "bare"), (2, "hour"),
        (3, "bare"), (3, "computed"),
        (4, "bare"), (4, "hour"),
    ]  # fmt: skip
    singles = [
        (index, id)
        for index, row in enumerate(rows)
        for id in engine.match({"x": row["x"], "hour": 12}, time=times[index])
    ]
    assert sorted(singles) == found
    assert engine.match({"x": 0, "hour": 12}) == []  # at no time there is no time of day


@every_matcher
def test_the_provider_of_a_variable_that_no_filter_uses_is_not_asked(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    engine.provide("load", lambda _: 1 / 0)
    engine.subscribe("x = 1", id="s")
    assert engine.match({"x": 1}) == ["s"]
    assert engine.match_batch([{"x": 1}]).num_rows == 1
    engine.subscribe("x < 2 * @load", id="t")
    with pytest.raises(VariableError, match="ZeroDivisionError"):
        engine.match({"x": 1})
    with pytest.raises(VariableError, match="ZeroDivisionError"):
        engine.match_batch([{"x": 1}])
    engine.cancel("t")
    engine.provide("load", None)
    assert engine.match({"x": 1}) == ["s"]


def test_an_explanation_shows_the_values_of_variables() -> None:
    engine = Engine(matcher="naive")
    engine.subscribe("x < @time_of_day", id="s", since=NOON)
    explained = engine.explain("s", {"x": 1}, time=NOON)
    assert explained.matches
    assert "1 against 43200" in str(explained)

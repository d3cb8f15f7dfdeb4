from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.errors import BadValueError, EventError, LateEventsError
from tidegate.language.events import Event
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.patterns.sequence_matcher import Match, SequenceMatcher

START = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = ["x = 1", "x = 2", "x >= 1", "x in (0, 2)", "x != 1", "x = :p", "x <= t", "true"]


def event(x: object, second: float, **more: object) -> Event:
    return Event.of({"x": x, **more}, START + timedelta(seconds=second))


def seconds(at: Event) -> float:
    assert at.time is not None
    return (at.time - START).total_seconds()


def matches_of(pattern: Pattern, events: Iterable[Event], lateness_s: float = 0.0) -> list[Match]:
    matcher = SequenceMatcher(pattern, parameters={"p": 1}, since=START, lateness_s=lateness_s)
    found = [match for each in events for match in matcher.feed(each)]
    return found + matcher.flush()


def by_the_rules(pattern: Pattern, arrived: list[Event]) -> list[Match]:
    """All matches, found by going through the whole stream again for each attempt."""
    events = sorted(arrived, key=seconds)  # (1); sorting keeps the order of those that are equal
    fits = [
        [step.matches(each, {"p": 1}, t=seconds(each)) for each in events] for step in pattern.steps
    ]
    found: list[Match] = []
    begin = 0
    while begin < len(events):
        chosen: list[int] = []
        for fit in fits:  # (2)
            after = chosen[-1] + 1 if chosen else begin
            next_one = next((i for i in range(after, len(events)) if fit[i]), None)
            if next_one is None:
                break
            chosen.append(next_one)
        if len(chosen) == len(fits) and _in_time(pattern, events[chosen[0]], events[chosen[-1]]):
            found.append(tuple(events[i] for i in chosen))
            begin = chosen[-1] + 1  # (3)
        elif chosen and pattern.within_s is not None:
            begin = chosen[0] + 1  # (4)
        else:
            break
    return found


def _in_time(pattern: Pattern, first: Event, last: Event) -> bool:
    return pattern.within_s is None or seconds(last) - seconds(first) <= pattern.within_s


patterns = st.builds(
    lambda steps, within: parse_pattern(" then ".join(steps) + within),
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=4),
    st.sampled_from(["", " within 0 s", " within 2 s", " within 5 s", " within 30 s"]),
)
streams = st.lists(
    st.builds(event, st.sampled_from([0, 1, 2, None]), st.integers(0, 20)), max_size=25
)


@given(patterns, streams)
@example(parse_pattern("x = 1 then x = 2 then x = 1 within 2 s"), [event(1, 0), event(1, 1)])
def test_events_in_order(pattern: Pattern, stream: list[Event]) -> None:
    ordered = sorted(stream, key=seconds)
    assert matches_of(pattern, ordered) == by_the_rules(pattern, ordered)


@given(patterns, streams, st.sampled_from([0.0, 1.0, 3.0, 8.0, 100.0]))
def test_events_out_of_order(pattern: Pattern, stream: list[Event], lateness_s: float) -> None:
    late: list[Event] = []
    matcher = SequenceMatcher(
        pattern, parameters={"p": 1}, since=START, lateness_s=lateness_s, on_late=late.append
    )
    found = [match for each in stream for match in matcher.feed(each)] + matcher.flush()
    in_time: list[Event] = []
    too_late: list[Event] = []
    latest = -1.0
    for each in stream:
        (too_late if seconds(each) < latest - lateness_s else in_time).append(each)
        latest = max(latest, seconds(each))
    assert late == too_late
    assert matcher.late_count == len(too_late)
    assert found == by_the_rules(pattern, in_time)


@given(patterns, streams)
def test_a_match_is_given_as_soon_as_no_earlier_event_can_come(
    pattern: Pattern, stream: list[Event]
) -> None:
    matcher = SequenceMatcher(pattern, parameters={"p": 1}, since=START)
    for each in sorted(stream, key=seconds):
        for match in matcher.feed(each):
            assert match[-1] is each
    assert matcher.flush() == []


def names(matches: list[Match]) -> list[str]:
    return [" ".join(str(each.attributes["name"]) for each in match) for match in matches]


def test_the_first_a_and_the_first_b_behind_it() -> None:
    """Siena, 3.3: of several events that could match, the first ones do."""
    kinds = "A A B B A B A"
    events = [
        event(1 if kind == "A" else 2, index, name=f"{kind}{index}")
        for index, kind in enumerate(kinds.split(), 1)
    ]
    pattern = parse_pattern("x = 1 then x = 2")
    assert names(matches_of(pattern, events)) == ["A1 B3", "A5 B6"]


def test_one_event_satisfies_one_step() -> None:
    pattern = parse_pattern("x > 0 then x > 0")
    events = [event(1, index, name=str(index)) for index in range(5)]
    assert names(matches_of(pattern, events)) == ["0 1", "2 3"]


def test_an_attempt_out_of_time_makes_room_for_the_next() -> None:
    pattern = parse_pattern("x = 1 then x = 2 within 5 s")
    events = [event(1, 0, name="a"), event(1, 4, name="b"), event(2, 7, name="c")]
    assert names(matches_of(pattern, events)) == ["b c"]


def test_within_includes_its_last_moment() -> None:
    pattern = parse_pattern("x = 1 then x = 2 within 5 s")
    assert len(matches_of(pattern, [event(1, 0), event(2, 5)])) == 1
    assert matches_of(pattern, [event(1, 0), event(2, 5.000001)]) == []


def test_equal_times_count_in_the_order_of_arrival() -> None:
    pattern = parse_pattern("x = 1 then x = 2")
    assert len(matches_of(pattern, [event(1, 3), event(2, 3)], lateness_s=1.0)) == 1
    assert matches_of(pattern, [event(2, 3), event(1, 3)], lateness_s=1.0) == []


def test_events_wait_for_the_lateness_and_no_longer() -> None:
    matcher = SequenceMatcher(parse_pattern("x = 1 then x = 2"), lateness_s=2.0)
    assert matcher.feed(event(2, 1)) == []
    assert matcher.feed(event(1, 0)) == []
    assert matcher.feed(event(3, 2.999999)) == []
    assert len(matcher.feed(event(3, 3))) == 1


def test_late_events_are_counted_and_handed_over() -> None:
    late: list[Event] = []
    matcher = SequenceMatcher(parse_pattern("x = 1"), lateness_s=2.0, on_late=late.append)
    matcher.feed(event(0, 10))
    assert matcher.feed(event(1, 7.9)) == []
    assert len(matcher.feed(event(1, 8))) == 1
    assert [seconds(each) for each in late] == [7.9]
    assert matcher.late_count == 1
    silent = SequenceMatcher(parse_pattern("x = 1"))
    silent.feed(event(0, 10))
    silent.feed(event(1, 9))
    assert silent.late_count == 1


def test_too_many_events_that_wait() -> None:
    matcher = SequenceMatcher(parse_pattern("x = 1 then x = 2"), lateness_s=10.0, pending_max=2)
    matcher.feed(event(1, 0))
    matcher.feed(event(2, 5))
    with pytest.raises(LateEventsError, match="2 events wait for earlier ones; allow less"):
        matcher.feed(event(3, 9))
    # one that lets others go is taken
    assert matcher.feed(event(3, 10)) == []
    assert len(matcher.feed(event(3, 20))) == 1
    in_order = SequenceMatcher(parse_pattern("x = 1"), pending_max=0)
    assert len(in_order.feed(event(1, 0))) == 1


def test_events_that_match_no_step_are_ignored() -> None:
    matcher = SequenceMatcher(parse_pattern("x = 1 then x = 2 within 1 h"))
    matcher.feed(event(1, 0))
    for index in range(100):
        matcher.feed(event(3, index))
    assert len(matcher.feed(event(2, 200))) == 1


def test_t_counts_from_the_subscription_and_now_is_the_time_of_the_event() -> None:
    pattern = parse_pattern("x >= t then at = now()")
    at = START + timedelta(seconds=3)
    events = [event(1, 2), event(2, 2), event(0, 2, at=at), event(0, 3, at=at)]
    matcher = SequenceMatcher(pattern, since=START.replace(tzinfo=None))
    assert [len(matcher.feed(each)) for each in events] == [0, 0, 0, 1]


def test_parameters_and_variables() -> None:
    pattern = parse_pattern("x = :p then x = @v")
    matcher = SequenceMatcher(pattern, parameters={"p": 1}, variables={"v": 2})
    assert [len(matcher.feed(event(x, x))) for x in (1, 2)] == [0, 1]


def test_what_is_wrong_is_told() -> None:
    pattern = parse_pattern("x = 1")
    with pytest.raises(EventError, match="an event of a sequence needs its publication time"):
        SequenceMatcher(pattern).feed(Event.of({"x": 1}))
    for lateness_s in (-1.0, float("nan"), float("inf")):
        with pytest.raises(BadValueError, match="lateness_s must lie between 0 and"):
            SequenceMatcher(pattern, lateness_s=lateness_s)
    with pytest.raises(BadValueError, match="since is a datetime, not int"):
        SequenceMatcher(pattern, since=5)  # type: ignore[arg-type]
    with pytest.raises(BadValueError, match="parameter :p: a list is not a value"):
        SequenceMatcher(pattern, parameters={"p": []})

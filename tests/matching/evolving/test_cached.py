"""Cached lazy evaluation around a matcher that can pin filters, against rules and oracle."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.evolution_oracle import (
    CACHED,
    SECOND,
    EventAt,
    Evolution,
    batch_of,
    change_both,
    expected_pairs,
    pairs,
    subscription_lists,
    times_us,
    variable_values,
)
from support.strategies import events_aimed_at
from tidegate.errors import SubscriptionError, UnresolvedError
from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.filters import parse
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.evolving import cached
from tidegate.matching.evolving.cached import CachedMatcher
from tidegate.matching.matcher import PinningMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Moment, Subscription


class Inner(NaiveMatcher):
    """An inner matcher that records its pins and the lengths of its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.pins: list[tuple[list[str], int | None]] = []
        self.lengths: list[int] = []

    def pin(self, ids: Sequence[str], time_us: int | None) -> None:
        self.pins.append((sorted(ids), time_us))
        super().pin(ids, time_us)

    def match_batch(self, batch: EventBatch) -> Matches:
        self.lengths.append(batch.length)
        return super().match_batch(batch)


def caching(*subscriptions: Subscription) -> tuple[CachedMatcher, Inner]:
    inner = Inner()
    matcher = CachedMatcher(inner)
    matcher.add(subscriptions)
    return matcher, inner


def rising(
    id: str = "s", since: int | None = 0, threshold: float = 1.0, **parameters: Value
) -> Subscription:
    text = "x < :p + t" if parameters else "x < t"
    return Subscription(id, parse(text), parameters, since, evolve=Cached(threshold))


def match_at(matcher: CachedMatcher, seconds: float, **attributes: object) -> bool:
    moment = Moment(round(seconds * SECOND))
    return bool(matcher.match(Event.of(attributes), moment))


def pins_of(inner: Inner) -> list[float | None]:
    """The times of all pins so far, in seconds."""
    return [None if time_us is None else time_us / SECOND for _, time_us in inner.pins]


# -- against the oracle -----------------------------------------------------------------------


@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_single_events_go_by_the_rules(data: st.DataObject) -> None:
    """Events in any order of time, with changes in between."""
    added = data.draw(subscription_lists([*CACHED, None]))
    oracle, matcher = Evolution(), caching(*added)[0]
    for each in added:
        oracle.add(each)
    aimed = events_aimed_at(*(each.filter.node for each in added))
    for _ in range(data.draw(st.integers(1, 6))):
        attributes = data.draw(aimed)
        moment = Moment(data.draw(st.none() | times_us), data.draw(variable_values))
        found = matcher.match(Event(attributes), moment)
        assert sorted(found) == oracle.match(attributes, moment)
        if data.draw(st.booleans()):
            change_both(data, added, oracle, matcher)


@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_a_batch_gives_what_its_events_give_one_by_one(data: st.DataObject) -> None:
    """In chunks of any length, and with single events and changes in between."""
    added = data.draw(subscription_lists([*CACHED, None]))
    oracle, matcher = Evolution(), caching(*added)[0]
    for each in added:
        oracle.add(each)
    aimed = events_aimed_at(*(each.filter.node for each in added))
    variables = data.draw(variable_values)
    with mock.patch.object(cached, "CHUNK_EVENTS", data.draw(st.integers(1, 5))):
        for _ in range(data.draw(st.integers(1, 3))):
            events = data.draw(
                st.lists(st.builds(EventAt, aimed, times_us | st.none()), max_size=10)
            )
            wanted = expected_pairs(oracle, events, variables)
            assert pairs(matcher, batch_of(events, variables)) == wanted
            change_both(data, added, oracle, matcher)


# -- versions ---------------------------------------------------------------------------------


def test_a_version_is_good_up_to_and_including_the_threshold() -> None:
    matcher, inner = caching(rising())
    found = [match_at(matcher, seconds, x=2.5) for seconds in (2, 3, 3.000001, 4.000001)]
    assert found == [False, False, True, True]
    assert pins_of(inner) == [2, 3.000001]


def test_an_earlier_event_is_judged_at_its_own_time_and_makes_no_version() -> None:
    matcher, inner = caching(rising())
    assert match_at(matcher, 2, x=1)
    assert not match_at(matcher, 1, x=1.5)
    assert match_at(matcher, 1, x=0.5)
    assert not match_at(matcher, 3, x=2)  # still as of 2 s
    assert pins_of(inner) == [2]


def test_an_event_without_the_attributes_of_a_disjunct_makes_no_version() -> None:
    filter = parse("(x < t and y < t and a = 1) or z < now()")
    matcher, inner = caching(Subscription("s", filter, since=0, evolve=Cached(1.0)))
    for attributes in ({"x": 0}, {"y": 0, "a": 1}, {"a": 1}, {}):
        assert not match_at(matcher, 1, **attributes)
    assert inner.pins == []
    match_at(matcher, 1, x=0, y=0)  # `a` is not compared with time
    assert pins_of(inner) == [1]
    match_at(matcher, 3, z=0)
    assert pins_of(inner) == [1, 3]


def test_an_expired_version_is_not_used_by_events_that_cannot_renew_it() -> None:
    """They have none of the attributes that are compared with time, so no version matters."""
    filter = parse("x < t or a = 1")
    matcher, inner = caching(Subscription("s", filter, since=0, evolve=Cached(1.0)))
    match_at(matcher, 1, x=5)
    assert match_at(matcher, 9, a=1)
    assert not match_at(matcher, 9, a=2)
    assert pins_of(inner) == [1]


def test_an_event_without_time_makes_no_version() -> None:
    matcher, inner = caching(rising(), rising("eternal", since=None))
    assert matcher.match(Event.of({"x": -1}), Moment()) == ["s", "eternal"]
    timeless = batch_of([EventAt({"x": -1}, None)] * 2, {})
    assert len(pairs(matcher, timeless)) == 4
    assert inner.pins == []


def test_no_version_is_made_before_the_beginning() -> None:
    matcher, inner = caching(rising(since=2 * SECOND))
    assert not match_at(matcher, 1, x=-5)
    assert inner.pins == []
    match_at(matcher, 2, x=0)
    assert pins_of(inner) == [2]


def test_each_threshold_and_set_of_attributes_has_versions_of_its_own() -> None:
    other = Subscription("y", parse("y < t"), since=0, evolve=Cached(1.0))
    matcher, inner = caching(rising("short"), rising("long", threshold=5.0), other)
    for seconds in (1, 3, 7):
        match_at(matcher, seconds, x=0)
    match_at(matcher, 7.5, y=0)
    assert inner.pins == [
        (["long", "short"], SECOND),
        (["short"], 3 * SECOND),
        (["long", "short"], 7 * SECOND),
        (["y"], 15 * SECOND // 2),
    ]


def test_variables_and_parameters_are_as_of_the_event() -> None:
    added = Subscription("s", parse("x < :p + @load + t"), {"p": 0}, 0, evolve=Cached(9.0))
    matcher, _ = caching(added)
    event = Event.of({"x": 2.5})
    found = [
        matcher.match(event, Moment(seconds * SECOND, {"load": load}))
        for seconds, load in [(1, 0), (2, 1), (2, 2)]
    ]
    assert found == [[], [], ["s"]]


def test_filters_that_do_not_depend_on_time_have_no_versions() -> None:
    static = [
        Subscription("plain", parse("x < 1"), since=0, evolve=Cached(1.0)),
        Subscription("variable", parse("x < @load"), since=0, evolve=Cached(1.0)),
        Subscription("lazy", parse("x < t"), since=0),
    ]
    matcher, inner = caching(*static)
    events = [EventAt({"x": 0}, second * SECOND) for second in (1, 5, 9)]
    assert len(pairs(matcher, batch_of(events, {"load": 1}))) == 9
    assert (inner.pins, inner.lengths) == ([], [3])


# -- batches ----------------------------------------------------------------------------------


def test_a_batch_is_cut_before_each_event_that_makes_a_version() -> None:
    matcher, inner = caching(rising())
    seconds = [0, 0.5, 1, 1.5, 1.6, 1.2, 3, 3]
    events = [EventAt({"x": 0.7}, round(each * SECOND)) for each in seconds]
    assert pairs(matcher, batch_of(events, {})) == [(n, "s") for n in (3, 4, 5, 6, 7)]
    assert pins_of(inner) == [0, 1.5, 3]
    assert inner.lengths == [3, 3, 2]


def test_a_batch_without_times_is_not_cut() -> None:
    matcher, inner = caching(rising())
    batch = EventBatch.of_events([Event.of({"x": -1})] * 3)
    assert pairs(matcher, batch) == [(n, "s") for n in range(3)]
    assert (inner.pins, inner.lengths) == ([], [3])


def test_an_empty_batch() -> None:
    matcher, _ = caching(rising())
    assert pairs(matcher, batch_of([], {})) == []


def test_versions_last_from_one_chunk_and_batch_to_the_next() -> None:
    matcher, inner = caching(rising(threshold=10.0))
    events = [EventAt({"x": 1.5}, second * SECOND) for second in range(1, 8)]
    with mock.patch.object(cached, "CHUNK_EVENTS", 3):
        assert pairs(matcher, batch_of(events, {})) == []  # as of 1 s
    assert pairs(matcher, batch_of(events[:2], {})) == []
    assert pins_of(inner) == [1]


# -- changes ----------------------------------------------------------------------------------

INNER: list[type[PinningMatcher]] = [NaiveMatcher, ColumnarMatcher]
"""One that updates many subscriptions one by one, and one that does so in bulk."""


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("inner", INNER)
def test_an_update_ends_the_version(inner: type[PinningMatcher], many: bool) -> None:
    matcher = CachedMatcher(inner())
    matcher.add([rising(threshold=9.0, p=0), rising("other", threshold=9.0, p=0)])
    assert matcher.match(Event.of({"x": 1.5}), Moment(SECOND)) == []
    if many:
        matcher.update_many({"s": {"p": 0.25}})
    else:
        matcher.update("s", {"p": 0.25})
    assert matcher.get("s").pinned_at_us is None
    assert matcher.get("other").pinned_at_us == SECOND
    assert matcher.match(Event.of({"x": 1.5}), Moment(2 * SECOND)) == ["s"]
    assert matcher.get("s").pinned_at_us == 2 * SECOND


def test_an_update_without_a_version_needs_no_pin() -> None:
    matcher, inner = caching(Subscription("lazy", parse("x < :p + t"), {"p": 0}, 0))
    matcher.update("lazy", {"p": 1})
    matcher.update_many({"lazy": {"p": 2}})
    assert (inner.pins, matcher.get("lazy").parameters) == ([], {"p": 2})


@pytest.mark.parametrize("inner", INNER)
def test_many_are_updated_or_none(inner: type[PinningMatcher]) -> None:
    matcher = CachedMatcher(inner())
    matcher.add([rising("a", threshold=9.0, p=0), rising("b", threshold=9.0, p=0)])
    matcher.match(Event.of({"x": 0}), Moment(SECOND))
    with pytest.raises(KeyError, match="c"):
        matcher.update_many({"a": {"p": 9}, "c": {"p": 9}})
    with pytest.raises(UnresolvedError, match="subscription 'b' has no parameter :q; it has :p"):
        matcher.update_many({"a": {"p": 9}, "b": {"q": 9}})
    assert [matcher.get(id).parameters for id in "ab"] == [{"p": 0}, {"p": 0}]
    assert [matcher.get(id).pinned_at_us for id in "ab"] == [SECOND, SECOND]


def test_an_addition_that_is_refused_makes_no_versions() -> None:
    matcher, inner = caching(rising(threshold=9.0))
    with pytest.raises(SubscriptionError, match="there already is a subscription 's'"):
        matcher.add([rising("u"), rising("s")])
    assert ("u" in matcher, len(matcher)) == (False, 1)
    match_at(matcher, 1, x=0)
    match_at(matcher, 5, x=0)
    assert inner.pins == [(["s"], SECOND)]


def test_a_removed_subscription_is_pinned_no_more() -> None:
    matcher, inner = caching(rising("a"), rising("b"))
    match_at(matcher, 1, x=0)
    matcher.remove("a")
    assert ("a" in matcher, len(matcher)) == (False, 1)
    match_at(matcher, 5, x=0)
    assert inner.pins == [(["a", "b"], SECOND), (["b"], 5 * SECOND)]
    matcher.add([rising("a")])
    match_at(matcher, 5.5, x=0)
    assert inner.pins[2:] == [(["a"], 11 * SECOND // 2)]


def test_an_unknown_id_is_a_key_error() -> None:
    matcher, _ = caching(rising())
    for call in (
        lambda: matcher.remove("nobody"),
        lambda: matcher.update("nobody", {"p": 1}),
        lambda: matcher.update_many({"nobody": {"p": 1}}),
        lambda: matcher.get("nobody"),
    ):
        with pytest.raises(KeyError, match="nobody"):
            call()


def test_pins_are_resumed() -> None:
    """As after a restart: the inner matcher has the subscriptions and their pins already."""
    inner = Inner()
    static = Subscription("static", parse("x < 9"), evolve=Cached(1.0))
    inner.add([rising("a"), rising("b"), rising("c"), static])
    inner.pin(["a", "b"], 5 * SECOND)
    inner.pins.clear()
    matcher = CachedMatcher(inner)
    matcher.resume(inner.get(id) for id in ("a", "b", "c", "static"))
    assert sorted(matcher.match(Event.of({"x": 5.5}), Moment(6 * SECOND))) == ["c", "static"]
    match_at(matcher, 6.5, x=0)
    assert inner.pins == [(["c"], 6 * SECOND), (["a", "b"], 13 * SECOND // 2)]

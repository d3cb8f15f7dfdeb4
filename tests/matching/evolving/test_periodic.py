"""Periodic evolution around a matcher of static filters, against rules and oracle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.evolution_oracle import (
    PERIODIC,
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
from tidegate.language.evolve import Cached, Evolve, Periodic
from tidegate.language.expressions import Elapsed, Now
from tidegate.language.filters import parse
from tidegate.language.syntax import expression_leaves
from tidegate.language.values import Value, from_us
from tidegate.matching.evolving.periodic import STALE_MIN, PeriodicMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Moment, Subscription


class Inner(NaiveMatcher):
    """An inner matcher without periodic evolution, that counts its updates."""

    def __init__(self) -> None:
        super().__init__()
        self.updates: list[str] = []

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        checked = list(subscriptions)
        for each in checked:
            kinds = {type(leaf) for leaf in expression_leaves(each.filter.node)}
            if isinstance(each.evolve, Periodic):  # static all the same: without a beginning t is 0
                assert Now not in kinds
                assert Elapsed not in kinds or each.since is None
        super().add(checked)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        self.updates.append(id)
        super().update(id, parameters)


def periodic(*subscriptions: Subscription) -> tuple[PeriodicMatcher, Inner]:
    inner = Inner()
    matcher = PeriodicMatcher(inner)
    matcher.add(subscriptions)
    return matcher, inner


def rising(
    id: str = "s", since: int | None = 0, interval: float = 1.0, **parameters: Value
) -> Subscription:
    text = "x < :p + t" if parameters else "x < t"
    return Subscription(id, parse(text), parameters, since, evolve=Periodic(interval))


def elapsed(matcher: PeriodicMatcher, seconds: float) -> float:
    """The `t` that a filter `x < t` is evaluated with at a time, to a tenth."""
    moment = Moment(round(seconds * SECOND))
    tenths = [n for n in range(-50, 100) if matcher.match(Event.of({"x": n / 10 - 0.05}), moment)]
    return max(tenths) / 10


# -- against the oracle -----------------------------------------------------------------------


@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_single_events_go_by_the_rules(data: st.DataObject) -> None:
    """Events in any order of time, with changes in between."""
    added = data.draw(subscription_lists([*PERIODIC, None]))
    oracle, matcher = Evolution(), periodic(*added)[0]
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
    added = data.draw(subscription_lists([*PERIODIC, None]))
    oracle, matcher = Evolution(), periodic(*added)[0]
    for each in added:
        oracle.add(each)
    aimed = events_aimed_at(*(each.filter.node for each in added))
    events = data.draw(st.lists(st.builds(EventAt, aimed, times_us | st.none()), max_size=10))
    variables = data.draw(variable_values)
    wanted = expected_pairs(oracle, events, variables)
    assert pairs(matcher, batch_of(events, variables)) == wanted


# -- single rules -----------------------------------------------------------------------------


def test_t_is_rounded_down_to_a_whole_number_of_intervals() -> None:
    matcher, _ = periodic(rising(interval=0.5))
    at = [0.4, 0.5, 0.999999, 1.2, 3.0, 3.499999, 3.5]
    assert [elapsed(matcher, seconds) for seconds in at] == [0, 0.5, 0.5, 1, 3, 3, 3.5]


def test_intervals_count_from_the_origin_of_a_later_version() -> None:
    later = Subscription(
        "s", parse("x < t"), since=2 * SECOND, origin=SECOND // 4, evolve=Periodic(1.0)
    )
    matcher, _ = periodic(later)
    assert [elapsed(matcher, seconds) for seconds in (2, 2.24, 2.25, 3.3)] == [1, 1, 2, 3]


def test_the_answer_does_not_depend_on_the_events_before() -> None:
    """Late events meet the version of their time, which the inner matcher no longer has."""
    matcher, _ = periodic(rising())
    in_any_order = [3.5, 0.5, 2.5, 1.0, 3.5, 0.0, 4.0]
    assert [elapsed(matcher, seconds) for seconds in in_any_order] == [3, 0, 2, 1, 3, 0, 4]


def test_before_its_beginning_a_subscription_matches_nothing() -> None:
    matcher, _ = periodic(rising(since=2 * SECOND))
    event = Event.of({"x": -5})
    found = [bool(matcher.match(event, Moment(each * SECOND))) for each in (3, 1, 2)]
    assert found == [True, False, True]


def test_without_time_every_filter_is_judged_with_t_0() -> None:
    matcher, _ = periodic(rising())
    assert elapsed(matcher, 7) == 7
    assert matcher.match(Event.of({"x": -0.5}), Moment()) == ["s"]
    assert matcher.match(Event.of({"x": 0.5}), Moment()) == []


def test_now_is_the_time_of_the_version() -> None:
    """Without a beginning, intervals count from 1970, before which there are versions too."""
    filter = parse("when = now()")
    matcher, _ = periodic(Subscription("s", filter, evolve=Periodic(10.0)))
    for seconds, version in [(13, 10), (19, 10), (20, 20), (5, 0), (-1, -10)]:
        event = Event.of({"when": from_us(version * SECOND)})
        assert matcher.match(event, Moment(seconds * SECOND)) == ["s"]
        other = Event.of({"when": from_us((version + 1) * SECOND)})
        assert matcher.match(other, Moment(seconds * SECOND)) == []


def test_variables_and_parameters_are_as_of_the_event() -> None:
    added = Subscription("s", parse("x < :p + @load + t"), {"p": 0}, 0, evolve=Periodic(10.0))
    matcher, _ = periodic(added)
    event = Event.of({"x": 1})
    assert matcher.match(event, Moment(SECOND, {"load": 0})) == []
    assert matcher.match(event, Moment(SECOND, {"load": 2})) == ["s"]
    matcher.update("s", {"p": 2})
    assert matcher.match(event, Moment(SECOND, {"load": 0})) == ["s"]


def test_an_update_does_not_restart_the_interval() -> None:
    matcher, _ = periodic(rising(p=0.0))
    assert elapsed(matcher, 1.5) == 1
    matcher.update("s", {"p": 0.5})
    assert [elapsed(matcher, seconds) for seconds in (1.6, 1.9, 2.0)] == [1.5, 1.5, 2.5]
    assert elapsed(matcher, 0.5) == 0.5  # a late event, judged with the new value too


def test_of_missed_evolutions_only_the_last_is_made() -> None:
    matcher, inner = periodic(rising("a"), rising("b", interval=2.0))
    matcher.match(Event.of({"x": 0}), Moment(SECOND - 1))
    assert inner.updates == []
    matcher.match(Event.of({"x": 0}), Moment(1_001 * SECOND))
    assert sorted(inner.updates) == ["a", "b"]
    matcher.match(Event.of({"x": 0}), Moment(1_001 * SECOND + 1))
    matcher.match(Event.of({"x": 0}), Moment(3 * SECOND))  # late, which evolves nothing
    assert sorted(inner.updates) == ["a", "b"]
    matcher.match(Event.of({"x": 0}), Moment(1_002 * SECOND))
    assert sorted(inner.updates) == ["a", "a", "b", "b"]


def test_static_filters_do_not_evolve() -> None:
    """Neither `t` without a beginning, which is 0, nor a variable is a function of time."""
    static = [
        Subscription("plain", parse("x < 1"), since=0, evolve=Periodic(1.0)),
        Subscription("variable", parse("x < 1 + @load"), since=0, evolve=Periodic(1.0)),
        Subscription("no beginning", parse("x < 1 + t"), evolve=Periodic(1.0)),
    ]
    matcher, inner = periodic(*static)
    moment = Moment(5 * SECOND, {"load": 0})
    assert sorted(matcher.match(Event.of({"x": 0.5}), moment)) == sorted(e.id for e in static)
    assert inner.updates == []
    assert [inner.get(each.id) for each in static] == static


def test_get_returns_the_subscription_without_the_parameters_for_time() -> None:
    matcher, _ = periodic(rising(p=0.0))
    elapsed(matcher, 5.0)
    assert matcher.get("s") == rising(p=0.0)
    matcher.update("s", {"p": 1})
    assert matcher.get("s").parameters == {"p": 1}


def test_the_parameters_for_time_cannot_be_updated() -> None:
    matcher, _ = periodic(rising(p=0.0))
    for name in ("t()", "now()", "q"):
        with pytest.raises(UnresolvedError, match=r"it has :p$"):
            matcher.update("s", {"p": 9, name: 1})
    assert elapsed(matcher, 1.0) == 1


def test_an_addition_that_is_refused_leaves_the_old_subscription() -> None:
    matcher, inner = periodic(rising())
    with pytest.raises(SubscriptionError, match="there already is a subscription 's'"):
        matcher.add([rising("u"), rising("s", interval=5.0)])
    assert ("u" in matcher, len(matcher)) == (False, 1)
    assert [elapsed(matcher, seconds) for seconds in (1, 2, 6)] == [1, 2, 6]
    assert set(inner.updates) == {"s"}


def test_a_removed_subscription_evolves_no_more() -> None:
    matcher, inner = periodic(rising("a"), rising("b"))
    matcher.remove("a")
    assert ("a" in matcher, len(matcher)) == (False, 1)
    assert matcher.match(Event.of({"x": 0}), Moment(9 * SECOND)) == ["b"]
    assert inner.updates == ["b"]


def test_an_id_that_is_added_again_has_its_own_intervals() -> None:
    """The queue still has the evolution of the removed subscription, which must not be made."""
    matcher, inner = periodic(rising(interval=1.0))
    matcher.remove("s")
    matcher.add([rising(since=SECOND // 2, interval=2.0)])
    at = [1.5, 2.4, 2.5, 4.4, 4.5]
    assert [elapsed(matcher, seconds) for seconds in at] == [0, 0, 2, 2, 4]
    assert len(inner.updates) == 2


def test_an_unknown_id_is_a_key_error() -> None:
    matcher, _ = periodic(rising())
    for call in (
        lambda: matcher.remove("nobody"),
        lambda: matcher.update("nobody", {"p": 1}),
        lambda: matcher.get("nobody"),
        lambda: matcher.pin(["nobody"], 0),
    ):
        with pytest.raises(KeyError, match="nobody"):
            call()


def test_pins_go_to_the_inner_matcher() -> None:
    cached: Evolve = Cached(9.0)
    matcher, inner = periodic(Subscription("c", parse("x < t"), since=0, evolve=cached), rising())
    matcher.pin(["c"], SECOND)
    assert inner.get("c").pinned_at_us == SECOND
    assert matcher.match(Event.of({"x": 1.5}), Moment(3 * SECOND)) == ["s"]


def test_removed_subscriptions_leave_no_queue_behind() -> None:
    matcher = PeriodicMatcher(NaiveMatcher())
    matcher.add([Subscription("stays", parse("x < t"), since=0, evolve=Periodic(10.0))])
    for number in range(1_000):
        new = Subscription(f"{number}", parse("x < t"), since=0, evolve=Periodic(1e6))
        matcher.add([new])
        matcher.remove(f"{number}")
    assert len(matcher._queue) <= STALE_MIN + 3
    assert matcher.match(Event.of({"x": 5}), Moment(9_000_000)) == []
    assert matcher.match(Event.of({"x": 5}), Moment(10_000_000)) == ["stays"]

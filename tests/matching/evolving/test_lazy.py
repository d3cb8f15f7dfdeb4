"""Lazy evaluation around a matcher of static filters, against the oracle with whole filters."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.evolution_oracle import (
    CACHED,
    SECOND,
    EventAt,
    batch_of,
    evolving_nodes,
    pairs,
    subscription_lists,
    times_us,
    variable_values,
)
from support.strategies import events_aimed_at, values
from tidegate.errors import SubscriptionError, UnresolvedError
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Evolve, Lazy
from tidegate.language.filters import Filter, parse
from tidegate.language.syntax import Node
from tidegate.language.values import Value
from tidegate.matching.evolving.lazy import LazyMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Moment, Subscription

MODES: list[Evolve | None] = [None, Lazy(), *CACHED]
LIMIT = parse("a = :key and x < :limit + t")


class StaticOnly(NaiveMatcher):
    """An inner matcher that cannot have evolving filters, or with ``may_evolve`` no Cached ones."""

    def __init__(self, *, may_evolve: bool = False) -> None:
        super().__init__()
        self.may_evolve = may_evolve

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        checked = list(subscriptions)
        for each in checked:
            allowed = self.may_evolve and not isinstance(each.evolve, Cached)
            assert allowed or not each.filter.evolves
            assert each.parameters.keys() <= set(each.filter.parameters)
        super().add(checked)


def lazy(*subscriptions: Subscription, only_cached: bool = False) -> LazyMatcher:
    matcher = LazyMatcher(StaticOnly(may_evolve=only_cached), only_cached=only_cached)
    matcher.add(subscriptions)
    return matcher


def limited(id: str = "s", evolve: Evolve | None = None) -> Subscription:
    return Subscription(id, LIMIT, {"key": 1, "limit": 2}, since=0, evolve=evolve)


def seconds_that_match(matcher: LazyMatcher, x: float, a: int = 1) -> list[int]:
    event = Event.of({"a": a, "x": x})
    return [second for second in range(5) if matcher.match(event, Moment(second * SECOND))]


# -- against the oracle -----------------------------------------------------------------------


@pytest.mark.parametrize("only_cached", [False, True])
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_every_event_gets_what_whole_filters_give(only_cached: bool, data: st.DataObject) -> None:
    """With pins, updates, removals and additions in between."""
    added = data.draw(subscription_lists(MODES))
    oracle, matcher = NaiveMatcher(), lazy(*added, only_cached=only_cached)
    oracle.add(added)
    aimed = events_aimed_at(*(each.filter.node for each in added))
    for _ in range(data.draw(st.integers(1, 5))):
        event = Event(data.draw(aimed))
        moment = Moment(data.draw(st.none() | times_us), data.draw(variable_values))
        assert sorted(matcher.match(event, moment)) == sorted(oracle.match(event, moment))
        change_both(data, added, oracle, matcher)
    for each in added:
        if each.id in oracle:
            assert matcher.get(each.id) == oracle.get(each.id)


def change_both(
    data: st.DataObject, added: list[Subscription], oracle: NaiveMatcher, matcher: LazyMatcher
) -> None:
    chosen = data.draw(st.sampled_from(added))
    id, names = chosen.id, chosen.filter.parameters
    pins = isinstance(chosen.evolve, Cached) and chosen.filter.evolves
    for each in (oracle, matcher):
        assert (id in each) == (id in oracle)
    if id not in oracle:
        oracle.add([chosen])
        matcher.add([chosen])
        return
    match data.draw(st.sampled_from(["update"] * bool(names) + ["pin"] * pins + ["remove"])):
        case "update":
            new: dict[str, Value | None] = data.draw(
                st.fixed_dictionaries({}, optional=dict.fromkeys(names, values | st.none()))
            )
            oracle.update(id, new)
            matcher.update(id, new)
        case "pin":
            time_us = data.draw(times_us | st.none())
            oracle.pin([id], time_us)
            matcher.pin([id], time_us)
        case _:
            oracle.remove(id)
            matcher.remove(id)
    assert len(matcher) == len(oracle)


@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_a_batch_gives_what_its_events_give_one_by_one(data: st.DataObject) -> None:
    added = data.draw(subscription_lists(MODES))
    oracle, matcher = NaiveMatcher(), lazy(*added)
    oracle.add(added)
    aimed = events_aimed_at(*(each.filter.node for each in added))
    events = data.draw(st.lists(st.builds(EventAt, aimed, times_us | st.none()), max_size=8))
    batch = batch_of(events, data.draw(variable_values))
    assert pairs(matcher, batch) == pairs(oracle, batch)


@given(evolving_nodes)
def test_the_static_part_names_attributes_and_parameters_of_the_filter_only(node: Node) -> None:
    filter = Filter(node)
    inner = StaticOnly()
    LazyMatcher(inner).add([Subscription("s", filter)])
    assert set(inner.get("s").filter.parameters) <= set(filter.parameters)
    assert set(inner.get("s").filter.attributes) == set(filter.attributes)


# -- single rules -----------------------------------------------------------------------------


@pytest.mark.parametrize("evolve", [None, Lazy()])
def test_an_event_is_judged_at_its_own_time_in_any_order(evolve: Evolve | None) -> None:
    matcher = lazy(limited(evolve=evolve))
    assert seconds_that_match(matcher, 4.5) == [3, 4]
    event = Event.of({"a": 1, "x": 4.5})
    found = [bool(matcher.match(event, Moment(second * SECOND))) for second in (3, 2, 3, 0, 4)]
    assert found == [True, False, True, False, True]


def test_a_static_filter_is_given_to_the_inner_matcher_whole() -> None:
    inner = StaticOnly()
    static = Subscription("s", parse("x < :p or y > 1"), {"p": 1}, evolve=Cached(1.0))
    LazyMatcher(inner).add([static])
    assert inner.get("s") == static


def test_with_only_cached_the_inner_matcher_evaluates_other_filters_itself() -> None:
    inner = StaticOnly(may_evolve=True)
    matcher = LazyMatcher(inner, only_cached=True)
    matcher.add([limited("lazy", Lazy()), limited("cached", Cached(1.0))])
    assert inner.get("lazy").filter == LIMIT
    assert str(inner.get("cached").filter) == "a = :key and x is not null"
    assert matcher.get("cached").filter == LIMIT


def test_an_update_reaches_the_part_that_has_the_parameter() -> None:
    matcher = lazy(limited())
    matcher.update("s", {"limit": 0})  # the evolving part only
    assert seconds_that_match(matcher, 2.5) == [3, 4]
    matcher.update("s", {"key": 7})  # the static part only
    assert seconds_that_match(matcher, 2.5) == []
    assert seconds_that_match(matcher, 2.5, a=7) == [3, 4]
    matcher.update("s", {"key": 8, "limit": 2})
    assert seconds_that_match(matcher, 2.5, a=8) == [1, 2, 3, 4]
    matcher.update("s", {"limit": None})
    assert seconds_that_match(matcher, 2.5, a=8) == []
    assert matcher.get("s").parameters == {"key": 8}


def test_a_parameter_of_both_parts_is_updated_in_both() -> None:
    matcher = lazy(Subscription("s", parse("y > :p and x < :p + t"), {"p": 0}, since=0))
    event = Event.of({"y": 1, "x": 1.5})
    assert matcher.match(event, Moment(2 * SECOND)) == ["s"]
    matcher.update("s", {"p": 1})
    assert matcher.match(event, Moment(2 * SECOND)) == []
    matcher.update("s", {"p": 0.5})
    assert [matcher.match(event, Moment(second * SECOND)) for second in (1, 2)] == [[], ["s"]]


def test_an_update_that_is_refused_changes_neither_part() -> None:
    matcher = lazy(limited())
    with pytest.raises(UnresolvedError, match="no parameter :other; it has :key, :limit"):
        matcher.update("s", {"key": 7, "limit": 9, "other": 1})
    assert matcher.get("s") == limited()
    assert seconds_that_match(matcher, 4.5) == [3, 4]


def test_an_addition_that_is_refused_leaves_the_old_subscription() -> None:
    matcher = lazy(limited())
    with pytest.raises(SubscriptionError, match="there already is a subscription 's'"):
        matcher.add([limited("u"), Subscription("s", parse("x > t"), since=0)])
    assert ("u" in matcher, len(matcher)) == (False, 1)
    assert seconds_that_match(matcher, 4.5) == [3, 4]


def test_a_removed_id_can_be_added_with_a_static_filter() -> None:
    matcher = lazy(limited())
    matcher.remove("s")
    assert ("s" in matcher, len(matcher)) == (False, 0)
    matcher.add([Subscription("s", parse("x is not null"))])
    assert seconds_that_match(matcher, 4.5) == [0, 1, 2, 3, 4]


def test_an_unknown_id_is_a_key_error() -> None:
    matcher = lazy(limited(evolve=Cached(9.0)))
    for call in (
        lambda: matcher.remove("nobody"),
        lambda: matcher.update("nobody", {"limit": 1}),
        lambda: matcher.get("nobody"),
        lambda: matcher.pin(["nobody"], 0),
    ):
        with pytest.raises(KeyError, match="nobody"):
            call()


def test_a_pinned_filter_is_evaluated_as_of_its_pin_until_it_is_unpinned() -> None:
    matcher = lazy(limited(evolve=Cached(9.0)))
    matcher.pin(["s"], 2 * SECOND)
    assert seconds_that_match(matcher, 3.5) == [2, 3, 4]
    assert seconds_that_match(matcher, 4.5) == []
    assert seconds_that_match(matcher, 2.5) == [1, 2, 3, 4]  # before the pin, at its own time
    assert matcher.get("s").pinned_at_us == 2 * SECOND
    matcher.pin(["s"], None)
    assert seconds_that_match(matcher, 4.5) == [3, 4]

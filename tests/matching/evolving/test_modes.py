"""All evolve modes together, in every matcher, against the rules written down plainly."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.evolution_oracle import (
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
from support.small_parts import small_matcher
from support.strategies import events_aimed_at
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic
from tidegate.language.filters import parse
from tidegate.language.values import Value
from tidegate.matching.evolving.cached import CachedMatcher
from tidegate.matching.matcher import Matcher
from tidegate.matching.registry import MATCHERS
from tidegate.matching.subscription import Moment, Subscription

every_matcher = pytest.mark.parametrize("name", sorted(MATCHERS))


def made(name: str) -> Matcher:
    """A matcher with all modes, as an engine has it."""
    return CachedMatcher(MATCHERS[name].make())


@every_matcher
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_single_events_go_by_the_rules(name: str, data: st.DataObject) -> None:
    added = data.draw(subscription_lists())
    oracle, matcher = Evolution(), CachedMatcher(small_matcher(name))
    matcher.add(added)
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


@every_matcher
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_a_batch_gives_what_its_events_give_one_by_one(name: str, data: st.DataObject) -> None:
    added = data.draw(subscription_lists())
    aimed = events_aimed_at(*(each.filter.node for each in added))
    variables = data.draw(variable_values)
    oracle, matcher = Evolution(), CachedMatcher(small_matcher(name))
    matcher.add(added)
    for each in added:
        oracle.add(each)
    for _ in range(data.draw(st.integers(1, 2))):
        events = data.draw(st.lists(st.builds(EventAt, aimed, times_us | st.none()), max_size=12))
        wanted = expected_pairs(oracle, events, variables)
        assert pairs(matcher, batch_of(events, variables)) == wanted
        change_both(data, added, oracle, matcher)


TEMPLATES = [
    "a = {i} and x >= {f} + t and x <= {g} + t",
    "a = {i} and x < {f} + :p * t",
    "x >= {f} * sin(t) and x <= {g} + t / 10 and y > :p",
    "y < {f} or x > {g} + 0.1 * t",
    "x > t / 4 and y > {f} + t / 8",
    "x > {f} and a = {j}",
    "when > now() or x < t / 5",
]
MODES: list[Evolve | None] = [
    None, Lazy(), Periodic(0.25), Periodic(1), Cached(0.25), Cached(0.7),
]  # fmt: skip


@pytest.mark.slow
@every_matcher
@pytest.mark.parametrize("seed", range(2))
def test_hundreds_with_churn_go_by_the_rules(name: str, seed: int) -> None:
    """Enough subscriptions for cohorts, queues, clusters and bitmaps, changed all the time."""
    rng = random.Random(seed)
    oracle, matcher = Evolution(), made(name)
    time_us = 0

    def add(count: int, start: int) -> None:
        new = []
        for number in range(start, start + count):
            low = rng.random()
            text = rng.choice(TEMPLATES).format(
                i=rng.randrange(3), j=rng.randrange(3), f=round(low, 2), g=round(low + 0.4, 2)
            )
            filter = parse(text)
            known: dict[str, Value] = {each: rng.random() for each in filter.parameters}
            since = rng.choice([None, time_us, time_us - 10, time_us + SECOND // 3])
            new.append(Subscription(f"s{number}", filter, known, since, evolve=rng.choice(MODES)))
        matcher.add(new)
        for each in new:
            oracle.add(each)

    add(300, 0)
    for step in range(6):
        events: list[EventAt] = []
        for _ in range(20):
            time_us += rng.choice([0, 10_000, 60_000, 400_000])
            judged_us = max(0, time_us - rng.choice([0, 0, 0, 300_000]))
            event: dict[str, Value] = {
                "a": rng.randrange(3), "x": rng.random() * 2, "y": rng.random(),
                "when": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us),
            }  # fmt: skip
            some = {each: value for each, value in event.items() if rng.random() < 0.8}
            events.append(EventAt(some, judged_us))
        assert pairs(matcher, batch_of(events, {})) == expected_pairs(oracle, events, {})
        for id in rng.sample(sorted(oracle.subscriptions), 30):
            oracle.remove(id)
            matcher.remove(id)
        for id in rng.sample(sorted(oracle.subscriptions), 60):
            if oracle.subscriptions[id].filter.parameters:
                value = {"p": rng.random()}
                oracle.update(id, value)
                matcher.update(id, value)
        add(rng.choice([2, 40]), 1_000 * (step + 1))

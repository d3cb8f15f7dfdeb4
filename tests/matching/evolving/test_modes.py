"""All ways to evolve, in every matcher, against the rules written down plainly."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.evolution_oracle import SECOND, Evolution, evolves
from support.small_parts import small_parts
from support.strategies import (
    PARAMETERS,
    VARIABLES,
    events_aimed_at,
    expressions,
    functions_of_time,
    nodes,
    predicates,
    values,
)
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch
from tidegate.matching.engine import MATCHERS
from tidegate.matching.evolving.cached import CachedMatcher
from tidegate.matching.matcher import Matcher
from tidegate.matching.subscription import Moment, Subscription

every_matcher = pytest.mark.parametrize("name", sorted(MATCHERS))

moving_nodes = nodes(
    st.one_of(predicates(), predicates(expressions()), predicates(functions_of_time()))
)
settings_of = st.fixed_dictionaries({}, optional=dict.fromkeys(PARAMETERS, values))
variables = st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, values))
begins = st.none() | st.sampled_from([0, SECOND, SECOND // 2, 3])
moments = st.sampled_from([*range(0, 4 * SECOND, SECOND // 10), 1, 3, SECOND - 1, SECOND + 1])
"""Few and close, so that events meet borders between versions, and some come out of order."""


def made(name: str) -> Matcher:
    return CachedMatcher(MATCHERS[name]())


@st.composite
def subscriptions(draw: st.DrawFn) -> list[Subscription]:
    found = []
    for number in range(draw(st.integers(1, 6))):
        filter = Filter(draw(moving_nodes))
        known = {n: v for n, v in draw(settings_of).items() if n in filter.parameters}
        since = draw(begins)
        until = draw(st.none() | st.just(2 * SECOND))
        found.append(
            Subscription(f"s{number}", filter, known, since, until=until, evolve=draw(evolves))
        )
    return found


def change(
    data: st.DataObject, asked: Sequence[Subscription], oracle: Evolution, matcher: Matcher
) -> None:
    """One change to both: an update, a removal, or an addition of what was removed."""
    chosen = data.draw(st.sampled_from(asked))
    id, names = chosen.id, chosen.filter.parameters
    if id not in oracle.there:
        oracle.add(chosen)
        matcher.add([chosen])
    elif len(names) and data.draw(st.booleans()):
        new: dict[str, Value | None] = data.draw(
            st.fixed_dictionaries({}, optional=dict.fromkeys(names, values | st.none()))
        )
        oracle.update(id, new)
        matcher.update(id, new)
        assert matcher.get(id).parameters == oracle.there[id].parameters
        assert set(matcher.get(id).filter.parameters) == set(chosen.filter.parameters)
    else:
        oracle.remove(id)
        matcher.remove(id)


@every_matcher
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_single_events_go_by_the_rules(name: str, data: st.DataObject) -> None:
    asked = data.draw(subscriptions())
    oracle, matcher = Evolution(), made(name)
    with small_parts():
        matcher.add(asked)
        for each in asked:
            oracle.add(each)
        aimed = events_aimed_at(*(each.filter.node for each in asked))
        for _ in range(data.draw(st.integers(1, 6))):
            attributes = data.draw(aimed)
            moment = Moment(data.draw(st.none() | moments), data.draw(variables))
            found = matcher.match(Event(attributes), moment)
            assert sorted(found) == oracle.match(attributes, moment)
            if data.draw(st.booleans()):
                change(data, asked, oracle, matcher)


@every_matcher
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_a_batch_gives_what_its_events_give_one_by_one(name: str, data: st.DataObject) -> None:
    asked = data.draw(subscriptions())
    aimed = events_aimed_at(*(each.filter.node for each in asked))
    known = data.draw(variables)
    oracle, matcher = Evolution(), made(name)
    with small_parts():
        matcher.add(asked)
        for each in asked:
            oracle.add(each)
        for _ in range(data.draw(st.integers(1, 2))):
            events = data.draw(st.lists(aimed, max_size=12))
            times = [data.draw(moments) for _ in events]
            batch = EventBatch.of_events([Event(each) for each in events]).knowing(known)
            found = matcher.match_batch(batch.judged_at(np.array(times, np.int64)))
            listed = zip(found.events.tolist(), found.subscriptions.to_pylist(), strict=True)
            wanted = [
                (index, id)
                for index, (each, time_us) in enumerate(zip(events, times, strict=True))
                for id in oracle.match(each, Moment(time_us, known))
            ]
            assert sorted(listed) == wanted
            change(data, asked, oracle, matcher)


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


@every_matcher
@pytest.mark.parametrize("seed", range(2))
def test_hundreds_with_churn_go_by_the_rules(name: str, seed: int) -> None:
    """Enough subscriptions for cohorts, queues, segments and bitmaps, changed all the time."""
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
        events, times = [], []
        for _ in range(20):
            time_us += rng.choice([0, 10_000, 60_000, 400_000])
            times.append(max(0, time_us - rng.choice([0, 0, 0, 300_000])))
            event: dict[str, Value] = {
                "a": rng.randrange(3), "x": rng.random() * 2, "y": rng.random(),
                "when": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us),
            }  # fmt: skip
            events.append({each: value for each, value in event.items() if rng.random() < 0.8})
        batch = EventBatch.of_events([Event(each) for each in events])
        found = matcher.match_batch(batch.judged_at(np.array(times, np.int64)))
        listed = zip(found.events.tolist(), found.subscriptions.to_pylist(), strict=True)
        assert sorted(listed) == [
            (index, id)
            for index, (each, time) in enumerate(zip(events, times, strict=True))
            for id in oracle.match(each, Moment(time))
        ]
        for id in rng.sample(sorted(oracle.there), 30):
            oracle.remove(id)
            matcher.remove(id)
        for id in rng.sample(sorted(oracle.there), 60):
            if oracle.there[id].filter.parameters:
                value = {"p": rng.random()}
                oracle.update(id, value)
                matcher.update(id, value)
        add(rng.choice([2, 40]), 1_000 * (step + 1))

"""What bounds of floats cannot express is decided by the index too, with the oracle's answer.

Order of strings, long integers, far timestamps, variables and `now()`: all without asking the
meaning of the language for each pair, which takes microseconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.footprints import footprint, forgetful
from support.small_parts import small_columnar, small_tree
from tidegate import Engine
from tidegate.language.events import Event
from tidegate.language.evolve import Evolve, Lazy, Periodic
from tidegate.language.filters import parse
from tidegate.language.values import Value, to_us
from tidegate.matching.batches import EventBatch
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.rows import event_matching
from tidegate.matching.rows.entries import order_labels
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.matcher import TreeMatcher

pytestmark = pytest.mark.filterwarnings("ignore::tidegate.errors.NeverMatchesWarning")

Fast = ColumnarMatcher | TreeMatcher
MAKERS: dict[str, Callable[[], Fast]] = {"columnar": small_columnar, "tree": small_tree}

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
EDGE = datetime(2255, 6, 5, 23, 47, 34, 740992, tzinfo=UTC)
"""2**53 microseconds after 1970."""
SHARED = "a long prefix that they share, "
TEXTS: list[Value] = [
    "", "a", "aa", "a\x00", "b", f"{SHARED}1", f"{SHARED}2", "é", "\uffff", "\U0001f600", "a%",
]  # fmt: skip
LONG: list[Value] = [
    2**53 - 1, 2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 2**63 - 1, 2**63 - 2, -(2**63),
    float(2**53), float(2**53 + 2), 2.0**63, 1e300, -1e300, float("inf"), -float("inf"), 0, 1.5,
]  # fmt: skip
TIMES: list[Value] = [
    FIRST, LAST, NOON, EDGE, datetime(1700, 1, 1, tzinfo=UTC),
    *(time + timedelta(microseconds=step) for time in (NOON, EDGE) for step in (-1, 1)),
    *(NOON + timedelta(seconds=step) for step in (-60, -1, 1, 60)),
    FIRST + timedelta(seconds=1), LAST - timedelta(seconds=1),
]  # fmt: skip
SECONDS: list[Value] = [0, 1, -1, 60, 0.5, 5e-7, 1.5e-6, 2.5e-6, 4e9, 5e9, -1e300]
EVERYTHING = [*TEXTS, *LONG, *TIMES, *SECONDS, True, False]

COMPARISONS = ["<", "<=", ">", ">=", "=", "!="]
PLAIN = [
    "x {} :a", "x {} :a and x {} :b", "x {} :a or y {} :b", "x in (:a, :b)", "x not in (:a, :b)",
    "x between :a and :b and y is not null", "x {} :a and y {} :b",
]  # fmt: skip
COMPUTED = [
    "x {} @v", "x {} now()", "x {} -@v", "x {} @v - now()", "x {} max(@v, @w)", "x like @v",
    "x not contains @w", "x starts with @v", "x between @v and @w", "x in (@v, :a, now())",
    "x not in (@v, :a)", "x {} :a and x {} @w", "x {} @v or y {} now()", "x {} now() - :a",
    "x {} now() + :a - :b", "x {} now() - (:a + 1)", "x {} @v - :a", "x {} :a + @v",
    "x {} :a + :b", "x {} :a - :b - 60", "x {} @v * 2 and x > :a", "x {} @v - :a and y {} :b",
    "x {} :a * (now() - @v)", "x {} @v + t", "x {} t + now()", "x {} :a + t",
]  # fmt: skip


def filters(templates: list[str]) -> st.SearchStrategy[str]:
    return st.tuples(
        st.sampled_from(templates), st.sampled_from(COMPARISONS), st.sampled_from(COMPARISONS)
    ).map(lambda each: each[0].format(each[1], each[2]))


def scenario(
    chance: random.Random, matchers: list[Any], texts: list[str], values: list[Value]
) -> None:
    """Add subscriptions, update them, and compare all matches with those of the first matcher."""
    modes: list[Evolve | None] = [None, None, Lazy(), Periodic(10)]
    subscriptions = [
        Subscription(
            str(number),
            parse(text),
            {name: chance.choice(values) for name in "ab" if f":{name}" in text},
            since=chance.choice([None, to_us(NOON) - 10**8]),
            evolve=chance.choice(modes),
        )
        for number, text in enumerate(texts)
    ]
    for matcher in matchers:
        matcher.add(subscriptions)
    for _ in range(4):
        changed = chance.choice(subscriptions)
        update = {name: chance.choice([*values, None]) for name in changed.parameters}
        for matcher in matchers:
            matcher.update(changed.id, update)
        events = [
            Event({name: chance.choice(values) for name in "xy" if chance.random() < 0.9})
            for _ in range(6)
        ]
        variables = {name: chance.choice(values) for name in "vw" if chance.random() < 0.8}
        times = [time for time in chance.choices(TIMES, k=6) if isinstance(time, datetime)]
        for event, time in zip(events, times, strict=True):
            moment = Moment(to_us(time) if chance.random() < 0.9 else None, variables)
            expected, *found = (sorted(each.match(event, moment)) for each in matchers)
            assert found == [expected] * len(found), (event, moment)
        batch = EventBatch.of_events(events).with_variables(variables)
        batch = batch.judged_at(np.array([to_us(time) for time in times]))
        expected_pairs, *found_pairs = (pairs(each, batch) for each in matchers)
        assert found_pairs == [expected_pairs] * len(found_pairs)


def pairs(matcher: Any, batch: EventBatch) -> list[tuple[int, str]]:
    found = matcher.match_batch(batch)
    return sorted(zip(found.events.tolist(), found.subscriptions.to_pylist(), strict=True))


def matchers() -> list[Any]:
    return [NaiveMatcher(), small_columnar(), small_tree()]


@given(st.randoms(use_true_random=False), st.lists(filters(PLAIN), min_size=1, max_size=25))
def test_strings_and_long_values(chance: random.Random, texts: list[str]) -> None:
    scenario(chance, matchers(), texts, chance.choice([TEXTS, LONG, TIMES, EVERYTHING]))


@given(st.randoms(use_true_random=False), st.lists(filters(COMPUTED), min_size=1, max_size=15))
def test_variables_and_times(chance: random.Random, texts: list[str]) -> None:
    scenario(chance, matchers(), texts, chance.choice([TIMES + SECONDS, EVERYTHING]))


SOME_VARIABLES: list[dict[str, Value]] = [
    {"v": NOON, "w": "a"},
    {"v": "a", "w": 2**53 + 1},
    {},
]
DECIDED = [*PLAIN, *COMPUTED[:13], "x {} now() - 60", "x {} now() + 1.5 - 60", "x {} @v + 5"]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_nothing_is_verified(make: Callable[[], Fast], monkeypatch: pytest.MonkeyPatch) -> None:
    """All of this is decided by the index: the meaning of the language is not asked for a pair."""
    chance = random.Random(7)
    matcher, oracle = make(), NaiveMatcher()
    subscriptions = []
    for number in range(300):
        text = chance.choice(DECIDED).format(chance.choice(COMPARISONS), chance.choice(COMPARISONS))
        parameters = {name: chance.choice(EVERYTHING) for name in "ab" if f":{name}" in text}
        subscriptions.append(Subscription(str(number), parse(text), parameters))
    matcher.add(subscriptions)
    oracle.add(subscriptions)

    def asked(subscription: Subscription, *_: object) -> bool:
        raise AssertionError(f"verified: {subscription}")

    monkeypatch.setattr(event_matching, "is_match", asked)
    for value in EVERYTHING:
        for variables in SOME_VARIABLES:
            event, moment = Event({"x": value, "y": value}), Moment(to_us(NOON), variables)
            assert sorted(matcher.match(event, moment)) == sorted(oracle.match(event, moment))


@pytest.mark.parametrize("name", ["columnar", "tree"])
def test_a_variable_becomes_a_timestamp_and_a_number_again(name: str) -> None:
    engine, oracle = Engine(matcher=name), Engine(matcher="naive")
    for each in (engine, oracle):
        each.subscribe("x > @v - 60", id="s", since=NOON)
        each.subscribe("x < @v + :a and x > 0", id="u", since=NOON, parameters={"a": 5})
    answers = []
    for value in (3, NOON, "text", NOON + timedelta(seconds=30), 7, NOON, None):
        for each in (engine, oracle):
            each.set_variables(v=value)
        for x in (1, NOON, NOON - timedelta(seconds=60), "text"):
            event = {"x": x}
            expected = sorted(oracle.match(event, time=NOON))
            assert sorted(engine.match(event, time=NOON)) == expected
            answers.append(expected)
        for each in (engine, oracle):
            each.update("u", a=value if isinstance(value, int) else 1)
    assert ["s"] in answers
    assert ["u"] in answers or ["s", "u"] in answers


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_label_is_not_lost_when_a_neighbour_goes(make: Callable[[], Fast]) -> None:
    matcher = make()
    texts = ["b", "d", "f"]
    matcher.add(Subscription(text, parse("s >= :p"), {"p": text}) for text in texts)
    matcher.remove("b")
    matcher.update("f", {"p": "e"})
    matcher.add([Subscription("b", parse("s < :p"), {"p": "dd"})])
    found = {s: sorted(matcher.match(Event({"s": s}), Moment())) for s in ("", "c", "d", "dd", "e")}
    assert found == {"": ["b"], "c": ["b"], "d": ["b", "d"], "dd": ["d"], "e": ["d", "f"]}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_bounds_that_come_ever_closer_get_labels_again(
    make: Callable[[], Fast], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gap without room is made wide again, and answers are right at every step."""
    monkeypatch.setattr(order_labels, "LABEL_MAX", 2**9)
    matcher, oracle = make(), NaiveMatcher()
    for each in (matcher, oracle):
        each.add(Subscription(text, parse("s > :p"), {"p": text}) for text in ("a", "z"))
    most = 0
    for number in range(120):
        text = f"m{number:03}" if number % 2 else f"m{999 - number:03}"
        for each in (matcher, oracle):
            each.add([Subscription(text, parse("s > :p"), {"p": text})])
        for s in (text, f"{text}!", "m", "n"):
            event = Event({"s": s})
            assert sorted(matcher.match(event, Moment())) == sorted(oracle.match(event, Moment()))
        most = max(most, matcher._channels.orders.strings("s").crowded)
    assert most > 0
    assert matcher._channels.orders.strings("s").crowded < 9


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_labels_and_judgements_are_given_back(make: Callable[[], Fast]) -> None:
    matcher = make()
    forgetful(matcher)
    sizes = []
    for cycle in range(1_600):
        text = "s < :p and x > :q and y = @{} and z > now() - :q".format("abc"[cycle % 3])
        parameters: dict[str, Value] = {"p": f"text {cycle}", "q": 2**60 + cycle}
        matcher.add([Subscription("s", parse(text), parameters)])
        matcher.update("s", {"p": f"other {cycle}", "q": 2**61 + cycle})
        if cycle % 400 == 0:
            matcher.match(Event({"s": "t", "x": 2**62, "y": 1}), Moment(0, {"a": 1}))
            assert len(matcher._channels.judgements) <= 4
            sizes.append(footprint(matcher)["order labels"])
        matcher.remove("s")
    assert max(sizes) <= 1_100  # long numbers are looked through when there are 1,024


@pytest.mark.slow
def test_a_snapshot_goes_on_with_its_labels(tmp_path: Path) -> None:
    oracle, matcher = NaiveMatcher(), small_columnar()
    chance = random.Random(3)
    texts = [chance.choice([*PLAIN, *COMPUTED[:20]]).format("<", ">=") for _ in range(60)]
    scenario(chance, [oracle, matcher], texts, EVERYTHING)
    matcher.save(tmp_path / "snapshot")
    loaded = ColumnarMatcher.load(tmp_path / "snapshot")
    more = [
        Subscription(f"new {number}", parse("x < :a"), {"a": f"m{number}"}) for number in range(9)
    ]
    for each in (oracle, loaded):
        each.add(more)
        each.remove("0")
    for value in EVERYTHING:
        for variables in SOME_VARIABLES:
            event, moment = Event({"x": value, "y": value}), Moment(to_us(NOON), variables)
            assert sorted(loaded.match(event, moment)) == sorted(oracle.match(event, moment))

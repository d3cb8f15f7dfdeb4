"""What comes and goes: numbers are used again and mean nothing else, and nothing grows for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.footprints import RowMatcher, check_counts, forgetful
from support.small_parts import small_columnar, small_matcher, small_tree
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.batches import EventBatch
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.matcher import Matcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Moment, Subscription

pytestmark = pytest.mark.filterwarnings("ignore::tidegate.errors.NeverMatchesWarning")

TEMPLATES = [
    "{a} = '{s}'",
    "{a} = 1 and {b} > :n",
    "{a} contains '{s}'",
    "{a} contains :s",
    "{a} starts with :s and {b} = 1",
    "{a} like '%{s}_%' or {b} ends with :s",
    "{a} not contains '{s}' and {b} < :n",
    "{a} != '{s}' and {a} != :s",
    "{a} in ('{s}', :s, 1)",
    "{a} = :s and {b} = '{s}'",
    "{a} < :n + @{b} and {b} = 1",
    "{a} > :n - 2 * sin(t) * @{a}",
    "{a} between :n + t and 3 + 2 * t",
    "{a} is not null and {b} >= '{s}'",
]
NAMES = ["n0", "n1", "n2", "n3", "n4", "n5"]
TEXTS = ["a", "b", "ab", "ba", "abc", "cab", ""]

names = st.sampled_from(NAMES)
texts = st.sampled_from(TEXTS)
numbers = st.integers(-2, 4)
parameters = st.fixed_dictionaries({"s": texts | numbers, "n": numbers})
ids = st.integers(0, 7)
adding = st.tuples(st.just("add"), ids, st.sampled_from(TEMPLATES), names, names, texts, parameters)
events = st.dictionaries(names, texts | numbers, max_size=4)
steps = st.lists(
    adding
    | st.tuples(st.just("update"), ids, parameters)
    | st.tuples(st.just("cancel"), ids)
    | st.tuples(st.just("match"), events, st.integers(0, 3)),
    max_size=40,
)


def apply(step: tuple[Any, ...], matchers: list[Matcher]) -> None:
    """Make a change in all matchers, if it can be made."""
    id = str(step[1])
    there = id in matchers[0]
    match step:
        case ("add", _, template, a, b, text, values) if not there:
            filter = parse(template.format(a=a, b=b, s=text))
            kept = {name: values[name] for name in filter.parameters}
            for each in matchers:
                each.add([Subscription(id, filter, kept, since=0)])
        case ("update", _, values) if there:
            mine = matchers[0].get(id).filter.parameters
            for each in matchers:
                each.update(id, {name: values[name] for name in mine})
        case ("cancel", _) if there:
            for each in matchers:
                each.remove(id)


def check_same(oracle: Matcher, matcher: Matcher, events: list[dict[str, Any]], time: int) -> None:
    """Compare the matches of events, alone and in a batch."""
    moment = Moment(time * 1_000_000, {name: index - 1 for index, name in enumerate(NAMES)})
    for event in events:
        taken = Event.of(event)
        assert sorted(matcher.match(taken, moment)) == sorted(oracle.match(taken, moment)), event
    batch = EventBatch.of_events([Event.of(each) for each in events])
    found = [
        sorted(zip(each.events.tolist(), each.subscriptions.to_pylist(), strict=True))
        for each in (m.match_batch(batch) for m in (oracle, matcher))
    ]
    assert found[0] == found[1]


EVENTS: list[dict[str, Any]] = [
    *(dict.fromkeys(NAMES, text) for text in TEXTS),
    *(dict.fromkeys(NAMES, number) for number in (-1, 1, 3)),
    *({name: value} for name in NAMES for value in ("ab", 1)),
]


def run(steps: list[tuple[Any, ...]], matcher: Matcher) -> None:
    """Run steps with a matcher beside the oracle."""
    oracle = NaiveMatcher()
    for step in steps:
        if step[0] == "match":
            check_same(oracle, matcher, [step[1], {}], step[2])
        else:
            apply(step, [oracle, matcher])
            if isinstance(matcher, RowMatcher):
                check_counts(matcher)
    check_same(oracle, matcher, EVENTS, 2)


@pytest.mark.parametrize("make", [small_columnar, small_tree])
@settings(max_examples=150)
@given(steps=steps)
def test_reused_numbers_never_mean_what_they_meant(
    make: Callable[[], RowMatcher], steps: list[tuple[Any, ...]]
) -> None:
    matcher = make()
    forgetful(matcher)
    run(steps, matcher)


@pytest.mark.parametrize("name", ["rete", "poset"])
@given(steps=steps)
def test_other_matchers_agree_while_names_come_and_go(
    name: str, steps: list[tuple[Any, ...]]
) -> None:
    run(steps, small_matcher(name))


@given(before=steps, after=steps)
def test_a_snapshot_has_free_numbers(
    before: list[tuple[Any, ...]], after: list[tuple[Any, ...]], tmp_path_factory: Any
) -> None:
    oracle, matcher = NaiveMatcher(), small_columnar()
    forgetful(matcher)
    for step in before:
        apply(step, [oracle, matcher])
    path: Path = tmp_path_factory.mktemp("snapshots") / "snapshot"
    matcher.save(path)
    loaded = ColumnarMatcher.load(path)
    forgetful(loaded)
    check_counts(loaded)
    for step in after:
        apply(step, [oracle, loaded])
        check_counts(loaded)
    check_same(oracle, loaded, EVENTS, 1)

"""What the columnar matcher can do beyond other matchers: past versions of subscriptions."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.small_parts import small_columnar, small_sizes
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.semantics import holds
from tidegate.language.values import Value, from_us
from tidegate.matching.batches import EventBatch
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.rows.event_matching import CHUNK_EVENTS
from tidegate.matching.subscription import Moment, Subscription

X_IS_1 = EventBatch.of_events([Event.of({"x": 1})])


def version(id: str, text: str, since: int, until: int | None, **more: Value) -> Subscription:
    return Subscription(id, Filter(parse_filter(text)), more, since, None, until)


def found_at(matcher: ColumnarMatcher, *time_us: int, x: float = 1) -> list[list[str]]:
    """The ids that match `x` at each of some times; single events and a batch agree."""
    alone = [sorted(matcher.match(Event.of({"x": x}), Moment(each))) for each in time_us]
    batch = EventBatch.of_events([Event.of({"x": x})] * len(time_us))
    found = matcher.match_batch(batch.judged_at(np.array(time_us, np.int64)))
    together: list[list[str]] = [[] for _ in time_us]
    for event, id in zip(found.events.tolist(), found.subscriptions.to_pylist(), strict=True):
        together[event].append(id)
    assert [sorted(each) for each in together] == alone
    return alone


def test_versions_of_the_past_hold_for_their_time_only() -> None:
    matcher = ColumnarMatcher()
    matcher.add([version("a", "x = 2", 20, None)])
    numbers = matcher.keep_past([version("a", "x = 1", 0, 10), version("a", "x = 1", 15, 20)])
    assert found_at(matcher, -1, 0, 9, 10, 14, 15, 19, 20) == [
        *([], ["a"], ["a"], [], [], ["a"], ["a"], [])
    ]
    assert len(set(numbers.tolist())) == 2
    assert sorted(matcher.past()) == [(numbers[0], "a", 0), (numbers[1], "a", 15)]
    assert len(matcher) == 1


def test_the_past_is_not_known_by_its_ids() -> None:
    matcher = ColumnarMatcher()
    numbers = matcher.keep_past([version("a", "x = 1", 0, 10)])
    assert ("a" in matcher, len(matcher)) == (False, 0)
    with pytest.raises(KeyError):
        matcher.remove("a")
    matcher.add([version("a", "x = 1", 10, None)])
    assert found_at(matcher, 9, 10) == [["a"], ["a"]]
    matcher.remove("a")
    assert found_at(matcher, 9, 10) == [["a"], []]
    matcher.forget_past(numbers.tolist())
    assert found_at(matcher, 9, 10) == [[], []]
    assert list(matcher.past()) == []


def test_numbers_go_from_the_past_to_the_present_and_back() -> None:
    matcher = ColumnarMatcher()
    for step in range(5):
        (old,) = matcher.keep_past([version("a", "x = 1 or x = 3", 0, 10)]).tolist()
        matcher.forget_past([old])
        matcher.add([version("b", "x = 1", 5, None)])
        assert found_at(matcher, 0, 5) == [[], ["b"]]
        matcher.remove("b")
        (new,) = matcher.keep_past([version("c", "false", 0, 10)]).tolist()
        assert (old, new) == (0, 0), step
        assert found_at(matcher, 0, 5) == [[], []]
        matcher.forget_past([new])


def test_a_subscription_begins_at_another_time_and_t_counts_on() -> None:
    matcher = ColumnarMatcher()
    matcher.add([version("a", "x = t", 0, None)])
    ended, began = matcher.succeed(["a"], np.array([3_000_000]), [{}])
    assert (ended.tolist(), began.tolist()) == ([1], [0])
    matcher.forget_past(ended.tolist())
    assert found_at(matcher, 2_000_000, x=2) == [[]]
    assert found_at(matcher, 3_000_000, x=3) == [["a"]]
    assert (matcher.get("a").since, matcher.get("a").origin) == (3_000_000, 0)


def test_an_origin_counts_for_entries_that_are_verified_too() -> None:
    """The order of strings is checked by the meaning of the language, with `t` as it is there."""
    text = "s > 'a' and x = t and x < :limit"
    event = Event.of({"s": "b", "x": 5})
    matcher = ColumnarMatcher()
    now = replace(version("a", text, 4_000_000, None, limit=9), origin=0)
    matcher.add([now])
    matcher.keep_past([replace(now, id="b", until=6_000_000)])
    assert sorted(matcher.match(event, Moment(5_000_000))) == ["a", "b"]
    assert matcher.match(event, Moment(9_000_000)) == []


def test_matches_say_which_version_it_was() -> None:
    matcher = ColumnarMatcher()
    matcher.add([replace(version("a", "x = 1", 10, None), subscriber="me")])
    matcher.add([Subscription("b", Filter(parse_filter("x > 0")))])
    matcher.keep_past([version("a", "x = 1", 0, 10)])
    batch = EventBatch.of_events([Event.of({"x": 1})] * 2).judged_at(np.array([9, 10]))
    found = matcher.match_versions(batch)
    columns = (found.columns.subscription, found.columns.subscriber, found.columns.since)
    values = [column.take(found.numbers).to_pylist() for column in columns]
    assert sorted(zip(found.events.tolist(), *values, strict=True), key=str) == [
        (0, "a", None, from_us(0)),
        (0, "b", None, None),
        (1, "a", "me", from_us(10)),
        (1, "b", None, None),
    ]


@pytest.mark.parametrize(
    "texts",
    [
        [f"x < {i}" for i in range(5_000)],  # one large cluster, of several tiles
        [f"s = '{'ab'[i % 2]}' and x < {i}" for i in range(2_000)],  # two large clusters
        [f"s = 'b' and x < {i}" for i in range(2_000)] + ["s = 'a' and x > 0"],  # large and small
    ],
    ids=["tiles", "clusters", "large and small"],
)
def test_matches_of_a_batch_are_ordered_by_event_with_a_single_group(texts: list[str]) -> None:
    matcher = ColumnarMatcher()
    filters = map(Filter, map(parse_filter, texts))
    matcher.add(Subscription(str(i), filter) for i, filter in enumerate(filters))
    values = [10, 1_500, 700, 0, 1_990, 3]
    batch = EventBatch.of_events(
        [Event.of({"x": x, "s": "ab"[i % 2]}) for i, x in enumerate(values)]
    )
    events = matcher.match_batch(batch).events
    assert len(set(events.tolist())) > 3
    assert np.all(np.diff(events) >= 0)


def test_more_events_than_are_matched_at_once() -> None:
    matcher = ColumnarMatcher()
    matcher.keep_past([version("a", "x >= 0", 0, CHUNK_EVENTS), version("b", "x >= 0", 5, 9999)])
    count = CHUNK_EVENTS + 500
    batch = EventBatch.of_events([Event.of({"x": 1})] * count).judged_at(np.arange(count))
    found = matcher.match_versions(batch)
    ids = found.columns.subscription.take(found.numbers).to_pylist()
    listed = sorted(zip(found.events.tolist(), ids, strict=True))
    lives = {"a": range(CHUNK_EVENTS), "b": range(5, count)}
    assert listed == sorted((event, id) for id, life in lives.items() for event in life)


def test_events_with_and_without_times_in_one_batch() -> None:
    matcher = ColumnarMatcher()
    matcher.add([version("now", "x = 1", 20, None)])
    matcher.keep_past([version("past", "x = 1", 0, 10), version("moves", "x = 1 + t", 0, 10)])
    batch = EventBatch.of_events([Event.of({"x": 1})] * 3)
    found = matcher.match_batch(batch.judged_at(np.array([-(2**63), 0, 30])))
    assert sorted(zip(found.events.tolist(), found.subscriptions.to_pylist(), strict=True)) == [
        *((0, "now"), (1, "moves"), (1, "past"), (2, "now"))
    ]


def test_an_attribute_without_a_name_is_not_the_time() -> None:
    matcher = ColumnarMatcher()
    matcher.keep_past([version("a", "x = 1", 0, 10)])
    table = EventBatch(1, [("x", X_IS_1.columns[0][1]), ("", X_IS_1.columns[0][1])])
    assert matcher.match_batch(table).events.tolist() == []
    assert matcher.match_batch(table.judged_at(np.array([5]))).events.tolist() == [0]


def test_versions_in_many_parts_match_at_their_times() -> None:
    """They come in any order, and some lived a thousand times as long."""
    short = [version(f"s{n}", "x = 1", 10 * n, 10 * n + 10) for n in range(400)]
    long = [version(f"l{n}", "x = 1", 100 * n, 100 * n + 10_000) for n in range(16)]
    mixed = [*short, *long]
    random.Random(1).shuffle(mixed)
    matcher = small_columnar()
    numbers = matcher.keep_past(mixed)
    times = (-1, 0, 1234, 2000, 3999, 4000, 9999, 11_500, 10**6)
    for count in (0, 200, 210, len(mixed)):
        matcher.forget_past(numbers[:count].tolist())
        numbers, mixed = numbers[count:], mixed[count:]
        assert found_at(matcher, *times) == [
            sorted(each.id for each in mixed if each.lives(Moment(time_us))) for time_us in times
        ]


# -- bounds that move -------------------------------------------------------------------------

MOVING = ["x >= {k} + t and x <= {k} + 3 + t", "x < {k} * t", "x > {k} * sin(t)", "x = {k} + t"]
FAR = [0, 1_000_000, 7_500_000, 60_000_000, 86_400_000_000, 10**15, -(10**15)]


def naively(versions: Iterable[Subscription], event: Event, moment: Moment) -> list[str]:
    return sorted(
        each.id
        for each in versions
        if each.lives(moment)
        and holds(each.filter.node, event.attributes, each.environment(moment))
    )


def moving_versions(rng: random.Random, first: int, count: int) -> list[Subscription]:
    found = []
    for number in range(first, first + count):
        since = rng.choice(FAR) + rng.choice([0, 1, 1_000_000])
        text = rng.choice(MOVING).format(k=rng.randrange(4))
        made = version(f"v{number}", text, since, since + rng.choice([1, 10**6, 10**8]))
        found.append(replace(made, origin=since - rng.choice([0, 10**6, 10**10])))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_moving_versions_and_events_of_times_far_apart(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    matcher = small_columnar()
    now = [replace(each, until=None) for each in moving_versions(rng, 0, 10)]
    matcher.add(now)
    known: dict[int, Subscription] = {}
    for step in range(12):
        new = moving_versions(rng, 100 * (step + 1), rng.choice([1, 6, 30]))
        known |= zip(matcher.keep_past(new).tolist(), new, strict=True)
        for _ in range(5):
            event = Event.of({"x": rng.choice([rng.randrange(-3, 9), 10_001, 4.5])})
            moment = Moment(rng.choice(FAR) + rng.choice([0, 1, 999_999, 10**6]))
            expected = naively([*now, *known.values()], event, moment)
            assert sorted(matcher.match(event, moment)) == expected
        gone = rng.sample(sorted(known), len(known) // 3)
        matcher.forget_past(gone)
        for number in gone:
            del known[number]
        if step % 5 == 4:
            matcher.save(tmp_path / str(step))
            matcher = ColumnarMatcher.load(tmp_path / str(step), sizes=small_sizes())
    assert {number for number, _, _ in matcher.past()} == known.keys()


def test_a_batch_of_all_times_at_once() -> None:
    rng = random.Random(9)
    versions = moving_versions(rng, 0, 60)
    events = [Event.of({"x": rng.randrange(-3, 9)}) for _ in range(60)]
    time_us = [rng.choice(FAR) + rng.choice([0, 1, 10**6]) for _ in events]
    batch = EventBatch.of_events(events).judged_at(np.array(time_us))
    expected = [
        (index, id)
        for index, event in enumerate(events)
        for id in naively(versions, event, Moment(time_us[index]))
    ]
    assert expected
    matcher = small_columnar()
    matcher.keep_past(versions)
    found = matcher.match_batch(batch)
    assert (
        sorted(zip(found.events.tolist(), found.subscriptions.to_pylist(), strict=True)) == expected
    )


# -- snapshots ------------------------------------------------------------------------------------


def test_a_sample_of_each_shape_and_kinds_of_values() -> None:
    matcher = ColumnarMatcher()
    for number in range(5):
        matcher.add([version(f"n{number}", "x = :p", 0, None, p=number)])
        matcher.add([version(f"s{number}", "x = :p", 0, None, p=str(number))])
        matcher.add([version(f"t{number}", "true", 0, None)])
    matcher.add([version("gone", "y = 1", 0, None), version("unset", "x = :p", 0, None)])
    matcher.remove("gone")
    matcher.keep_past([version("past", "z = 1", 0, 10)])
    assert sorted(each.id for each in matcher.samples()) == ["n0", "s0", "t0", "unset"]


def test_notes_are_kept_with_a_snapshot(tmp_path: Path) -> None:
    matcher = ColumnarMatcher()
    matcher.save(tmp_path / "s", notes=lambda: {"space": ["a"]})
    assert ColumnarMatcher.load(tmp_path / "s").notes == {"space": ["a"]}
    matcher.save(tmp_path / "s")
    assert ColumnarMatcher.load(tmp_path / "s").notes == {}

"""Matching as of the time of each event, against the fold of the changes."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.change_logs import (
    BEGINNING,
    COARSE,
    END,
    MICROSECOND,
    NOON,
    Delivery,
    Judged,
    batch_of,
    event_lists,
    expected,
    in_order,
    logs,
    times,
    variable_values,
)
from support.small_parts import small_sizes
from tidegate.language.events import Event
from tidegate.language.evolve import Periodic
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch
from tidegate.matching.columnar.sizes import DEFAULT_SIZES, IndexSizes
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.timelines import Timelines, versions_of
from tidegate.matching.history.versions import Version, VersionDelta
from tidegate.matching.records import SubscriptionRecord

pytestmark = pytest.mark.slow

NO_VARIABLES: dict[str, Value] = {}
SECOND = timedelta(seconds=1)


def found_by(
    matcher: AsOfMatcher, events: Sequence[Judged], variables: Mapping[str, Value] = NO_VARIABLES
) -> list[Delivery]:
    return deliveries(matcher, batch_of(events, variables))


def deliveries(matcher: AsOfMatcher, batch: EventBatch) -> list[Delivery]:
    found = matcher.match(batch)
    assert found.events.tolist() == sorted(found.events.tolist())
    columns = (found.columns.subscription, found.columns.subscriber, found.columns.since)
    listed = zip(
        found.events.tolist(),
        *(column.take(found.numbers).to_pylist() for column in columns),
        strict=True,
    )
    return sorted((Delivery(*each) for each in listed), key=in_order)


def reloaded(matcher: AsOfMatcher, sizes: IndexSizes = DEFAULT_SIZES) -> AsOfMatcher:
    """The matcher as its file has it, which is mapped and so may be unlinked."""
    with tempfile.TemporaryDirectory() as folder:
        matcher.save(Path(folder) / "index")
        return AsOfMatcher.load(Path(folder) / "index", sizes=sizes)


@dataclass
class Stream:
    """Changes and borders as they come, with a matcher that follows them."""

    sizes: IndexSizes = DEFAULT_SIZES
    timelines: Timelines = field(default_factory=Timelines)
    matcher: AsOfMatcher = field(init=False)
    log: list[Change] = field(default_factory=list)
    border: datetime = BEGINNING

    def __post_init__(self) -> None:
        self.matcher = AsOfMatcher(sizes=self.sizes)

    def reload(self) -> None:
        self.matcher = reloaded(self.matcher, self.sizes)

    def take(self, changes: Sequence[Change]) -> None:
        """Take changes that come; those of times that are final come too late."""
        in_time = [change for change in changes if change.time >= self.border]
        self.log += in_time
        self.matcher.apply(VersionDelta.of(self.timelines.take(in_time)))

    def make_final(self, border: datetime) -> None:
        self.border = max(self.border, border)
        ended, _ = self.timelines.make_final(self.border)
        self.matcher.apply(VersionDelta.of([], ended))

    def agrees(
        self, events: Sequence[Judged], variables: Mapping[str, Value] = NO_VARIABLES
    ) -> bool:
        """Whether the matches are those of the fold of the log, for times that are not final."""
        chosen = [each for each in events if each.time >= self.border]
        wanted = expected(self.log, chosen, variables)
        return found_by(self.matcher, chosen, variables) == wanted


sizes_of_parts = st.sampled_from([1, 2, 8]).map(small_sizes)


def in_chunks(data: st.DataObject, log: list[Change]) -> Iterator[list[Change]]:
    while log:
        size = data.draw(st.integers(1, len(log)))
        yield log[:size]
        log = log[size:]


# -- any log ----------------------------------------------------------------------------------


@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_built_at_once_it_agrees_with_the_fold(data: st.DataObject) -> None:
    log = data.draw(logs())
    events = data.draw(event_lists(log))
    variables = data.draw(variable_values)
    wanted = expected(log, events, variables)
    versions, _ = versions_of(log)
    assert found_by(AsOfMatcher(versions), events, variables) == wanted
    sizes = data.draw(sizes_of_parts)
    matcher = AsOfMatcher(versions, sizes=sizes)
    assert found_by(matcher, events, variables) == wanted
    assert found_by(reloaded(matcher, sizes), events, variables) == wanted


@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_fed_in_chunks_it_agrees_with_the_fold(data: st.DataObject) -> None:
    """Late changes rewrite the past; files in between change nothing."""
    log = data.draw(logs())
    events = data.draw(event_lists(log))
    variables = data.draw(variable_values)
    stream = Stream(data.draw(sizes_of_parts))
    for chunk in in_chunks(data, log):
        stream.take(chunk)
        if data.draw(st.booleans()):
            stream.reload()
        if data.draw(st.booleans()):
            assert stream.agrees(events, variables)
    assert stream.agrees(events, variables)


@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_what_is_final_is_forgotten_and_the_rest_stays(data: st.DataObject) -> None:
    log = data.draw(logs())
    events = data.draw(event_lists(log))
    stream = Stream(data.draw(sizes_of_parts))
    for chunk in in_chunks(data, log):
        stream.take(chunk)
        if data.draw(st.booleans()):
            stream.make_final(data.draw(times))
        if data.draw(st.booleans()):
            stream.reload()
        assert stream.agrees(events)
    stream.make_final(END)
    assert stream.agrees([*events, Judged({"a": 1}, END)])


@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_events_one_by_one_in_any_order_get_what_they_get_together(data: st.DataObject) -> None:
    """Moving bounds are enclosed for another time window with each event, far ahead and back."""
    log = data.draw(logs())
    events = data.draw(event_lists(log))
    versions, _ = versions_of(log)
    matcher = AsOfMatcher(versions, sizes=small_sizes(2))
    for event in events:
        assert found_by(matcher, [event]) == expected(log, [event], {})


# -- single rules -----------------------------------------------------------------------------


def subscribe(time: datetime, id: str, filter: str, **params: object) -> Change:
    return Change(time, Op.SUBSCRIBE, id, filter, params)


def update(time: datetime, id: str, **params: object) -> Change:
    return Change(time, Op.UPDATE, id, None, params)


def unsubscribe(time: datetime, id: str) -> Change:
    return Change(time, Op.UNSUBSCRIBE, id)


def matched(matcher: AsOfMatcher, *events: tuple[datetime, object]) -> list[str]:
    """For each event, a time and a value of `x`, the ids that match, joined."""
    judged = [Judged(Event.of({"x": x}).attributes, time) for time, x in events]
    return ids_by_event(found_by(matcher, judged), len(events))


def matched_now(matcher: AsOfMatcher, *values: object) -> list[str]:
    """For each event without a time, a value of `x`, the ids that match, joined."""
    batch = EventBatch.of_events([Event.of({"x": x}) for x in values])
    return ids_by_event(deliveries(matcher, batch), len(values))


def ids_by_event(found: Sequence[Delivery], count: int) -> list[str]:
    return [
        "".join(each.subscription for each in found if each.event == index)
        for index in range(count)
    ]


@pytest.mark.parametrize("time", [BEGINNING, NOON, COARSE, END - 5 * MICROSECOND])
def test_a_version_is_in_force_from_its_time_until_before_its_end(time: datetime) -> None:
    before = [] if time == BEGINNING else [(time - MICROSECOND, 1)]
    log = [subscribe(time, "a", "x = 1"), unsubscribe(time + 3 * MICROSECOND, "a")]
    for size in (4, 0):
        filling = [f"filling{number}" for number in range(size)]
        log += [subscribe(time, id, "x = 7") for id in filling]
        log += [unsubscribe(time + MICROSECOND, id) for id in filling]
        matcher = AsOfMatcher(versions_of(log)[0], sizes=small_sizes())
        events = [(time + step * MICROSECOND, 1) for step in range(5)]
        assert matched(matcher, *before, *events) == ["" for _ in before] + [*"aaa", "", ""]


def test_an_end_that_no_float_can_tell() -> None:
    log = [subscribe(NOON, "a", "x = 1"), unsubscribe(COARSE, "a")]
    matcher = AsOfMatcher(versions_of(log)[0])
    assert matched(matcher, (COARSE - MICROSECOND, 1), (COARSE, 1)) == ["a", ""]


@pytest.mark.parametrize(
    "first", [COARSE, BEGINNING, datetime.fromtimestamp(2**52 / 1e6, NOON.tzinfo)]
)
def test_versions_of_a_microsecond_where_floats_are_coarse(first: datetime) -> None:
    """Their ranges of time look like equalities, and must not hide them from their part."""
    steps = [first + number * MICROSECOND for number in range(40)]
    log = [subscribe(time, "a", "x > 0") for time in steps]
    log += [unsubscribe(time + MICROSECOND, "a") for time in steps]
    log.sort(key=lambda change: (change.time, change.op is Op.SUBSCRIBE))
    for past_max in (8, 1000):
        matcher = AsOfMatcher(versions_of(log)[0], sizes=small_sizes(past_max))
        assert [matched(matcher, (time, 1)) for time in steps] == [["a"]] * 40


def test_t_keeps_counting_through_updates_and_restarts_with_a_new_subscription() -> None:
    log = [
        subscribe(NOON, "a", "x = :k + t", k=0),
        update(NOON + 2 * SECOND, "a", k=10),
        unsubscribe(NOON + 4 * SECOND, "a"),
        subscribe(NOON + 4 * SECOND, "a", "x = :k + t", k=0),
    ]
    stream = Stream()
    for change in log:
        stream.take([change])
        stream.reload()
    events = [(NOON + n * SECOND, x) for n, x in [(1, 1), (2, 12), (3, 13), (3, 3), (4, 0), (5, 1)]]
    assert matched(stream.matcher, *events) == ["a", "a", "a", "", "a", "a"]


def test_a_parameter_of_another_type_that_python_takes_for_equal() -> None:
    stream = Stream()
    stream.take([subscribe(NOON, "a", "x = :k", k=1)])
    stream.take([update(NOON, "a", k=True)])
    assert matched(stream.matcher, (NOON, True), (NOON, 1)) == ["a", ""]
    stream.take([update(NOON, "a", k=1.0)])
    assert matched(stream.matcher, (NOON, True), (NOON, 1)) == ["", "a"]


def test_a_late_change_goes_between_two_versions() -> None:
    stream = Stream()
    stream.take([subscribe(NOON, "a", "x = :k", k=0), update(NOON + 2 * SECOND, "a", k=2)])
    stream.reload()
    stream.take([update(NOON + SECOND, "a", k=1)])
    events = [(NOON + step * SECOND, x) for step in range(4) for x in range(3)]
    assert matched(stream.matcher, *events) == [
        *("a", "", ""), *("", "a", ""), *("", "", "a"), *("", "", "a"),
    ]  # fmt: skip
    assert matched_now(stream.matcher, 0, 1, 2) == ["", "", "a"]


def test_a_subscription_that_begins_again_at_the_same_time_in_another_mode() -> None:
    """The versions before and after differ in parameters and mode, and begin at one time."""
    stream = Stream()
    stream.take([subscribe(NOON, "a", "x <= :k + t", k=0)])
    again = Change(NOON, Op.SUBSCRIBE, "a", "x <= :k + t", {"k": 0}, evolve=Periodic(10.0))
    stream.take([unsubscribe(NOON, "a"), again, update(NOON + SECOND, "a", k=1)])
    events = [(NOON + step * SECOND / 2, x) for step, x in [(0, 0), (1, 0.25), (4, 1), (4, 1.5)]]
    assert matched(stream.matcher, *events) == ["a", "", "a", ""]


def test_a_late_unsubscription_ends_what_came_after_it() -> None:
    stream = Stream()
    stream.take([subscribe(NOON, "a", "x = :k", k=0), update(NOON + 2 * SECOND, "a", k=0)])
    stream.take([unsubscribe(NOON + SECOND, "a")])
    assert matched(stream.matcher, (NOON, 0), (NOON + SECOND, 0), (NOON + 3 * SECOND, 0)) == [
        *("a", "", ""),
    ]
    assert matched_now(stream.matcher, 0) == [""]


def test_an_id_that_comes_and_goes_at_one_time_never_was() -> None:
    stream = Stream()
    stream.take([subscribe(NOON, "a", "x = 0")])
    assert matched_now(stream.matcher, 0) == ["a"]
    stream.take([unsubscribe(NOON, "a")])
    assert matched(stream.matcher, (NOON, 0), (NOON + SECOND, 0)) == ["", ""]
    assert matched_now(stream.matcher, 0) == [""]


def test_events_without_a_time_meet_open_versions_only() -> None:
    log = [
        subscribe(NOON, "a", "x = :k", k=0),
        update(NOON + SECOND, "a", k=1),
        subscribe(NOON, "b", "x >= 0"),
        unsubscribe(NOON + SECOND, "b"),
    ]
    matcher = AsOfMatcher(versions_of(log)[0])
    assert matched_now(matcher, 0, 1) == ["", "a"]


def test_without_versions_there_is_nothing() -> None:
    matcher = AsOfMatcher()
    assert matched(matcher, (NOON, 0)) == matched_now(matcher, 0) == [""]
    matcher.apply(VersionDelta.of([]))
    assert matched(reloaded(matcher), (NOON, 0)) == [""]
    assert deliveries(matcher, EventBatch.of_events([])) == []


# -- rows of a table --------------------------------------------------------------------------


def test_rows_that_end_need_no_beginning() -> None:
    """Tables of subscriptions may have `until` alone; then `t` is 0."""
    versions = [
        SubscriptionRecord("a", "x = t", until=NOON),
        SubscriptionRecord("b", "x = t", since=NOON - SECOND, until=NOON),
        SubscriptionRecord("c", "x = t", since=NOON),
        SubscriptionRecord("d", "x = t"),
    ]
    for matcher in (AsOfMatcher(versions), reloaded(AsOfMatcher(versions))):
        events = [(BEGINNING, 0), (NOON - SECOND, 0), (NOON - MICROSECOND, 0), (NOON, 0)]
        assert matched(matcher, *events) == ["ad", "abd", "ad", "cd"]
        matcher.apply(VersionDelta.of([], versions[:2]))
        assert matched(matcher, *events) == ["d", "d", "d", "cd"]


def test_a_row_that_ends_before_it_begins_is_never_in_force() -> None:
    versions = [SubscriptionRecord("a", "x = 0", since=NOON, until=NOON - SECOND)]
    versions += [SubscriptionRecord("b", "x = 0", since=NOON, until=NOON)]
    steps = [-2 * SECOND, -SECOND, -MICROSECOND, MICROSECOND, SECOND]
    matcher = AsOfMatcher(versions, sizes=small_sizes(1))
    assert matched(matcher, (NOON, 0), *((NOON + step, 0) for step in steps)) == [""] * 6


# -- many versions ----------------------------------------------------------------------------

KINDS = [
    "x < :k",
    "x = :k and y > 1",
    "x >= :k + t and x <= :k + 2 + t",
    "x = :k or y = :k",
    "s in ('s1', 's2') and x > :k",
    "s starts with 's' and y < :k",
    "x > 3 * sin(:k * t)",
    "false",
]


def changes_of(rng: random.Random, id: str, span_s: int) -> list[Change]:
    """The life of a subscription: some updates, a few of them of the filter, perhaps an end."""
    begin, *later = sorted(rng.randrange(span_s) for _ in range(rng.randrange(1, 12)))
    made = [subscribe(NOON + begin * SECOND, id, rng.choice(KINDS[:-1]), k=rng.randrange(8))]
    for second in later:
        change = update(NOON + second * SECOND, id, k=rng.choice([rng.randrange(8), "s1", None]))
        made.append(change)
        if rng.random() < 0.1:
            made.append(Change(change.time, Op.UPDATE, id, rng.choice(KINDS), None))
    if rng.random() < 0.5:
        made.append(unsubscribe(made[-1].time + rng.choice([MICROSECOND, SECOND]), id))
    return made


def some_events(rng: random.Random, count: int, span_s: int) -> list[Judged]:
    return [
        Judged(
            {"x": rng.randrange(-2, 9), "y": rng.randrange(9), "s": f"s{rng.randrange(4)}"},
            NOON
            + timedelta(seconds=rng.randrange(-1, span_s + 2), microseconds=rng.randrange(-1, 2)),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_hundreds_of_versions_in_many_eras(seed: int) -> None:
    """With late changes, borders and reloads, until all versions are forgotten."""
    rng = random.Random(seed)
    span_s = rng.choice([20, 100_000])
    log = [each for number in range(60) for each in changes_of(rng, f"n{number}", span_s)]
    log.sort(key=lambda change: change.time + rng.random() * span_s / 10 * SECOND)
    stream = Stream(small_sizes())
    for begin in range(0, len(log), 50):
        stream.take(log[begin : begin + 50])
        if begin % 100 == 0:
            stream.make_final(stream.border + span_s / 12 * SECOND)
            stream.reload()
        assert stream.agrees(some_events(rng, 20, span_s))
    assert stream.agrees(some_events(rng, 40, span_s))
    stream.make_final(NOON + span_s * SECOND)
    assert stream.agrees(some_events(rng, 40, span_s))


def test_a_thousand_versions_of_one_subscription() -> None:
    """With the limits as they are: the past has an open part and one that is laid out."""
    steps = [NOON + number * SECOND for number in range(1000)]
    log = [subscribe(NOON - SECOND, "a", "x = :k and y >= t", k=-1)]
    log += [update(time, "a", k=number) for number, time in enumerate(steps)]
    whole = AsOfMatcher(versions_of(log)[0])
    stream = Stream()
    stream.take(log[:900])
    for begin in range(900, len(log), 10):
        stream.take(log[begin : begin + 10])
    rng = random.Random(1)
    picked = rng.sample(range(1000), 50)
    events = [Judged({"x": k, "y": k + shift}, steps[k]) for k in picked for shift in (0, 1, 2)]
    wanted = expected(log, events, {})
    assert len(wanted) == 100
    assert found_by(whole, events) == found_by(stream.matcher, events) == wanted


def test_versions_are_identified_by_their_beginning() -> None:
    versions: list[Version] = versions_of(
        [subscribe(NOON, "a", "x >= :k", k=0), update(NOON + SECOND, "a", k=-1)]
    )[0]
    found = found_by(AsOfMatcher(versions), [Judged({"x": 1}, NOON + n * SECOND) for n in (0, 1)])
    assert [each.version for each in found] == [NOON, NOON + SECOND]

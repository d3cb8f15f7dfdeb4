"""The state of a stream: the same after any crash as without one."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidegate import StateError
from tidegate.language.values import to_us
from tidegate.matching.batches import EventBatch
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.timelines import versions_of
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.streaming.state_identity import StreamIdentity
from tidegate.spark.streaming.stream_state import StreamState
from tidegate.spark.streaming.timeline_slices import SLICES

START = datetime(2026, 1, 1, tzinfo=UTC)
LATENESS = timedelta(seconds=20)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def drawn(rng: random.Random, batch: int) -> list[Change]:
    """The changes of a batch, some of them late, some that cannot be applied."""
    found: list[Change] = []
    for _ in range(12):
        time, id, kind = at(batch * 5 + rng.uniform(-14, 5)), f"s{rng.randint(0, 5)}", rng.random()
        if kind < 0.4:
            found.append(Change(time, Op.SUBSCRIBE, id, "a < :p", {"p": rng.randint(0, 9)}))
        elif kind < 0.8:
            found.append(Change(time, Op.UPDATE, id, None, {"p": rng.randint(0, 9)}))
        else:
            found.append(Change(time, Op.UNSUBSCRIBE, id))
    return found


def matches(matcher: AsOfMatcher, since: datetime) -> set[tuple[object, ...]]:
    """The matches of events with many values and times: time, value and subscription."""
    seconds = np.arange(0, 60, 0.5)
    values = np.tile(np.arange(10.0), len(seconds))
    time_us = to_us(START) + np.repeat(seconds * 1e6, 10).astype(np.int64)
    kept = time_us >= to_us(since)
    batch = EventBatch.of(pa.table({"a": pa.array(values[kept])})).judged_at(time_us[kept])
    found = matcher.match(batch)
    ids = found.columns.subscription.take(found.numbers).to_pylist()
    return set(
        zip(time_us[kept][found.events].tolist(), values[kept][found.events], ids, strict=True)
    )


IDENTITY = StreamIdentity("query", "time", "struct<a:double>", "a", grouped=False)


def apply(state: StreamState, batch: int, changes: list[Change]) -> list[Change]:
    """Apply changes as a micro-batch does; returns those that hold, the late ones as they do."""
    border = state.border
    applied = state.apply(batch, changes)
    if state.needs_snapshot:
        state.index(batch).save()
        state.use_snapshot(batch)
    late = [each for each in changes if border is not None and each.time < border]
    assert applied.late == len(late)
    assert all(each in late for each in applied.outdated)
    return [
        replace(each, held_from=border) if each in late else each
        for each in changes
        if each not in applied.outdated
    ]


@pytest.mark.parametrize("delta_min", [5, 2_000])
@pytest.mark.parametrize("seed", range(4))
def test_any_batch_may_be_tried_again(
    tmp_path: Path, seed: int, delta_min: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.spark.streaming.stream_state.DELTA_MIN", delta_min)
    monkeypatch.setattr("tidegate.spark.streaming.timeline_slices.CHANGES_MIN", 4 * delta_min)
    rng = random.Random(seed)
    holding: list[Change] = []
    state = StreamState(LocalFolder(tmp_path), LATENESS)
    for batch in range(8):
        changes = drawn(rng, batch)
        for _ in range(rng.choice([0, 0, 1, 2])):  # attempts that are killed
            state.begin(batch, IDENTITY)
            if rng.random() < 0.7:
                apply(state, batch, changes)
                state.index(batch).open()
            if rng.random() < 0.5:
                state = StreamState(LocalFolder(tmp_path), LATENESS)
        state.begin(batch, IDENTITY)
        holding += apply(state, batch, changes)
        border = state.border or START
        wanted = AsOfMatcher(versions_of(holding)[0])
        assert matches(state.index(batch).open(), border) == matches(wanted, border)
        state.end(batch, to_us(at(batch * 5 + 5)))


def test_a_checkpoint_without_its_state_is_refused(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    with pytest.raises(StateError, match=r"has no state .* it must be kept together"):
        StreamState(folder, LATENESS).begin(5, IDENTITY)
    StreamState(folder, LATENESS).begin(0, IDENTITY)
    with pytest.raises(StateError, match="does not know of batch 4; it must be kept together"):
        StreamState(folder, LATENESS).begin(5, IDENTITY)


def test_old_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.spark.streaming.stream_state.DELTA_MIN", 3)
    monkeypatch.setattr("tidegate.spark.streaming.timeline_slices.CHANGES_MIN", 64)
    state = StreamState(LocalFolder(tmp_path), LATENESS)
    for batch in range(30):
        state.begin(batch, IDENTITY)
        state.spools.write(f"{batch}/rows", b"")
        apply(state, batch, drawn(random.Random(batch), batch))
        state.end(batch, to_us(at(batch * 5)))
    found = Counter(path.parent.name for path in tmp_path.rglob("*") if path.is_file())
    assert found["snapshot"] <= 2
    assert found["timelines"] <= 2 * SLICES
    assert max(found["changes"], found["delta"], found["done"]) <= 10


@pytest.mark.parametrize("batches", [90, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_state_stays_as_small_as_it_was(
    tmp_path: Path, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under steady change files and bytes do not grow with the number of batches."""
    if batches < 100:  # then all files are replaced often enough to see it
        monkeypatch.setattr("tidegate.spark.streaming.stream_state.DELTA_MIN", 100)
        monkeypatch.setattr("tidegate.spark.streaming.timeline_slices.CHANGES_MIN", 100)
    rng = random.Random(1)
    sizes: list[tuple[int, int]] = []
    state = StreamState(LocalFolder(tmp_path), LATENESS)
    begun = [Change(START, Op.SUBSCRIBE, f"s{n}", "a < :p", {"p": 0}) for n in range(100)]
    for batch in range(batches):
        state.begin(batch, IDENTITY)
        state.spools.write(f"{batch}/rows", bytes(1_000))
        updates = [
            Change(at(batch + n / 20), Op.UPDATE, f"s{rng.randint(0, 99)}", None, {"p": batch})
            for n in range(20)
        ]
        apply(state, batch, updates if batch else begun)
        state.end(batch, to_us(at(batch)))
        files = [path for path in tmp_path.rglob("*") if path.is_file()] if batch % 7 == 0 else []
        if files:
            sizes.append((len(files), sum(path.stat().st_size for path in files)))
    early, late = sizes[len(sizes) // 3 : 2 * len(sizes) // 3], sizes[2 * len(sizes) // 3 :]
    for which in (0, 1):
        most, before = (max(each[which] for each in some) for some in (late, early))
        assert most <= 1.3 * before, (early[-1], late[-1])


def test_only_spools_that_matter_are_read(tmp_path: Path) -> None:
    state = StreamState(LocalFolder(tmp_path), LATENESS)
    for batch in range(3):
        state.begin(batch, IDENTITY)
        state.spools.write(f"{batch}/rows", b"")
        state.apply(batch, [])
        state.end(batch, to_us(at(batch)))
    state.begin(3, IDENTITY)
    assert state.spooled_since(3, to_us(at(1))) == [1, 2]


def test_the_border_does_not_go_back_when_the_lateness_is_raised(tmp_path: Path) -> None:
    folder, hour = LocalFolder(tmp_path), timedelta(hours=1)
    borders: list[datetime | None] = []
    for batch, lateness in enumerate([LATENESS, LATENESS, hour, hour, LATENESS]):
        state = StreamState(folder, lateness)  # restarted
        state.begin(batch, IDENTITY)
        borders.append(state.border)
        state.apply(batch, [])
        state.end(batch, to_us(at(1_800 * batch + 1_000)))
    first = at(1_000) - LATENESS
    assert borders == [None, first, first, at(4_600) - hour, at(6_400) - LATENESS]


def test_a_second_driver_is_noticed_before_a_batch_is_done(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    first, second = StreamState(folder, LATENESS), StreamState(folder, LATENESS)
    first.begin(0, IDENTITY)
    second.begin(0, IDENTITY)  # in the same process, where Spark has stopped the first
    first.apply(0, [])
    with pytest.raises(StateError, match="has taken it over; this query must stop"):
        first.end(0, None)
    assert not folder.exists("done/0.json")

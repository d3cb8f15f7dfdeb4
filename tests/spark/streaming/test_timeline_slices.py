"""Timelines in slices are the same as undivided ones, also after they were read from files."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tidegate import StateError
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.timelines import Timelines
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.streaming import timeline_slices
from tidegate.spark.streaming.timeline_slices import SLICES, TimelineSlices

START = datetime(2026, 1, 1, tzinfo=UTC)
LATENESS = timedelta(seconds=20)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def drawn(rng: random.Random, batch: int) -> list[Change]:
    found: list[Change] = []
    for _ in range(40):
        time, id = at(batch * 5 + rng.uniform(-14, 5)), f"s{rng.randint(0, 40)}"
        op = rng.choice([Op.SUBSCRIBE, Op.UPDATE, Op.UPDATE, Op.UNSUBSCRIBE])
        filter = "a < :p" if op is Op.SUBSCRIBE else None
        params = None if op is Op.UNSUBSCRIBE else {"p": rng.randint(0, 9)}
        found.append(Change(time, op, id, filter, params))
    return found


def texts(items: Iterable[object]) -> list[str]:
    return sorted(map(str, items))


@pytest.mark.parametrize("changes_min", [16, 300, 10_000])
def test_slices_are_as_one_also_after_they_were_read_again(
    tmp_path: Path, changes_min: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline_slices, "CHANGES_MIN", changes_min)
    rng = random.Random(changes_min)
    whole, slices = Timelines(), TimelineSlices(LocalFolder(tmp_path))
    for batch in range(12):
        border = at(batch * 5 - 20) if batch else None
        changes = [each for each in drawn(rng, batch) if border is None or each.time >= border]
        ended, refused = ([], []) if border is None else whole.make_final(border)
        differences = whole.take(changes)
        if rng.random() < 0.3:  # an attempt that is killed
            slices.fold(batch, border, changes)
            slices = TimelineSlices.recover(LocalFolder(tmp_path), batch - 1)
        folded = slices.fold(batch, border, changes)
        assert texts(folded.ended) == texts(ended)
        assert texts(folded.refused) == texts(refused)
        assert texts(folded.differences) == texts(differences)
        assert len(slices) == len(whole)
        if rng.random() < 0.5:
            slices = TimelineSlices.recover(LocalFolder(tmp_path), batch)
            assert len(slices) == len(whole)
        assert slices.current == whole.current > 0
        slices.remove_outdated()
    written = {path.stem.split("-")[0] for path in (tmp_path / "timelines").glob("*.json")}
    assert len(written) == (0 if changes_min == 10_000 else SLICES)


def test_a_batch_writes_as_much_as_it_has_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline_slices, "CHANGES_MIN", 1)
    slices = TimelineSlices(LocalFolder(tmp_path))
    count = 1_600
    table = [Change(at(0), Op.SUBSCRIBE, f"s{n}", "a < :p", {"p": n}) for n in range(count)]
    slices.fold(0, None, table)
    for batch in range(1, 35):  # some more changes than there are subscriptions
        numbers = range(batch % 32, count, 32)
        changes = [Change(at(batch), Op.UPDATE, f"s{n}", None, {"p": 0}) for n in numbers]
        before = set((tmp_path / "timelines").iterdir())
        slices.fold(batch, None, changes)
        assert len(set((tmp_path / "timelines").iterdir()) - before) <= 1
        slices.remove_outdated()
    assert min(int(path.stem) for path in (tmp_path / "changes").iterdir()) > 0


def test_a_file_of_changes_that_is_missing_is_named(tmp_path: Path) -> None:
    TimelineSlices(LocalFolder(tmp_path)).fold(0, None, drawn(random.Random(1), 0))
    (tmp_path / "changes" / "0.json").unlink()
    with pytest.raises(StateError, match=r"changes/0\.json: No such file"):
        TimelineSlices.recover(LocalFolder(tmp_path), 0)

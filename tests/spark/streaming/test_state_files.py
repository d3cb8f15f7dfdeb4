"""Changes and versions in the files of a stream's state come back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import strings, times, values
from tidegate import StateError
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.versions import Version, VersionDifference
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.streaming.state_files import (
    change_as_json,
    change_of_json,
    difference_as_json,
    difference_of_json,
    numbers_in,
    read_json,
    write_json,
)

params = st.dictionaries(strings, values, max_size=3)
changes = st.builds(
    Change, times, st.sampled_from(Op), strings, st.none() | strings, st.none() | params,
    st.none() | strings,
)  # fmt: skip
versions = st.builds(
    Version, strings, strings, params, st.none() | strings, times, st.none() | times, times
)


@given(changes)
def test_changes_come_back(change: Change) -> None:
    again = change_of_json(json.loads(json.dumps(change_as_json(change))))
    assert again == change
    assert _kinds(again.params or {}) == _kinds(change.params or {})


@given(st.lists(versions, max_size=2), st.lists(versions, max_size=2))
def test_differences_come_back(before: list[Version], after: list[Version]) -> None:
    difference = VersionDifference(tuple(before), tuple(after))
    again = difference_of_json(json.loads(json.dumps(difference_as_json(difference))))
    assert again == difference
    for old, new in zip(before, again.before, strict=True):
        assert _kinds(old.params) == _kinds(new.params)


def _kinds(params: object) -> list[type]:
    assert isinstance(params, dict)
    return [type(value) for value in params.values()]


def test_a_file_is_there_as_a_whole(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    write_json(folder, "deep/1.json", {"a": [1, None]})
    assert read_json(folder, "deep/1.json") == {"a": [1, None]}
    assert [each.name for each in (tmp_path / "deep").iterdir()] == ["1.json"]


def test_batches_are_found_by_the_names_of_their_files(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    assert numbers_in(folder, "done") == []
    for name in ("done/10.json", "done/9.json", "done/x.json", "done/2/a", "other/3.json"):
        folder.write(name, b"")
    assert numbers_in(folder, "done") == [2, 9, 10]


def test_what_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"1\.json: No such file"):
        read_json(LocalFolder(tmp_path), "1.json")
    (tmp_path / "1.json").write_text('{"a":')
    with pytest.raises(StateError, match=r"1\.json: is damaged"):
        read_json(LocalFolder(tmp_path), "1.json")

"""Local folders: renames, and what a reader sees while a file is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.spark.storage.local_folder import LocalFolder


def test_a_folder_is_renamed_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    folder.write("_staging/7/a", b"x")
    assert folder.has_rename
    folder.rename("_staging/7", "deep/batch=1")
    assert folder.folder("deep/batch=1").names() == ["a"]
    assert folder.folder("_staging").names() == []


def test_a_file_that_is_written_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = LocalFolder(tmp_path)
    folder.write("a", b"old")

    def killed(self: Path, target: Path) -> Path:
        raise InterruptedError(f"before {self} was {target}")

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(InterruptedError):
        folder.write("a", b"new")
    with pytest.raises(InterruptedError):
        folder.upload(tmp_path / "a", "b")
    assert folder.names() == ["a"]
    assert folder.read("a") == b"old"


def test_spark_finds_it_whatever_its_default_file_system_is(tmp_path: Path) -> None:
    assert LocalFolder(tmp_path / "a b").spark_path == f"file://{tmp_path}/a b"

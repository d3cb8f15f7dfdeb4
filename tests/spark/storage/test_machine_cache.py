"""One copy of a file for all processes of a machine, which goes when nobody uses it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidegate.spark.storage.machine_cache import UNUSED_S_MAX, HeldFile, cache_folder, hold


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", str(tmp_path))
    return tmp_path / "tidegate"


@pytest.fixture
def held() -> Iterator[list[HeldFile]]:
    files: list[HeldFile] = []
    yield files
    for each in files:
        each.release()


def write(path: Path) -> None:
    path.write_text("content")


def fail(path: Path) -> None:
    raise AssertionError(f"there is a copy, and {path} is not needed")


def age(path: Path) -> None:
    before = path.stat().st_mtime - UNUSED_S_MAX - 1
    os.utime(path, (before, before))


def test_a_file_is_fetched_once(folder: Path, held: list[HeldFile]) -> None:
    held += [hold("a", write), hold("a", fail)]
    assert held[0].path == held[1].path == folder / "a"
    assert held[0].path.read_text() == "content"


def test_of_many_that_ask_at_once_one_fetches(held: list[HeldFile]) -> None:
    fetched: list[Path] = []

    def fetch(path: Path) -> None:
        fetched.append(path)
        write(path)

    with ThreadPoolExecutor(8) as threads:
        held += threads.map(lambda _: hold("a", fetch), range(8))
    assert len(fetched) == 1


def test_files_go_when_they_are_old_and_nobody_holds_them(
    folder: Path, held: list[HeldFile]
) -> None:
    held += [hold(name, write) for name in ("held", "unheld", "young")]
    for each in held[1:]:
        each.release()
    for name in ("held", "unheld"):
        age(folder / name)
    (folder / "killed.part").write_text("half")
    held.append(hold("next", write))
    assert sorted(path.name for path in folder.iterdir()) == ["held", "lock", "next", "young"]
    age(folder / "held")
    held.append(hold("held", fail))  # which makes it young again
    held[0].release()
    held[-1].release()
    held.append(hold("one more", write))
    assert (folder / "held").exists()


def test_what_a_killed_process_held_is_held_no_more(folder: Path, held: list[HeldFile]) -> None:
    code = """
import os, signal
from pathlib import Path
from tidegate.spark.storage.machine_cache import hold
held = hold("a", lambda path: path.write_text("content"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert (folder / "a").exists()
    age(folder / "a")
    held.append(hold("b", write))
    assert not (folder / "a").exists()


def test_a_fetch_that_fails_leaves_nothing(folder: Path, held: list[HeldFile]) -> None:
    def broken(path: Path) -> None:
        path.write_text("half")
        raise OSError("the network is down")

    with pytest.raises(OSError, match="the network is down"):
        hold("a", broken)
    held.append(hold("a", write))
    assert held[0].path.read_text() == "content"
    assert sorted(path.name for path in folder.iterdir()) == ["a", "lock"]


def test_the_folder_is_one_that_goes_with_the_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["SPARK_EXECUTOR_DIRS", "LOCAL_DIRS", "SPARK_LOCAL_DIRS"]
    for name, separator in zip(names, [os.pathsep, ",", ","], strict=True):
        monkeypatch.setenv(name, f"{tmp_path / name}{separator}/elsewhere")
    for name in names:
        assert cache_folder() == tmp_path / name / "tidegate"
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    assert cache_folder() == tmp_path / "temp" / "tidegate"

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.cli import progress as module
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.progress import ProgressBars
from tidegate.errors import TidegateError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(work: Callable[[ProgressBars], object], *, wanted: bool = True) -> str:
    """What some work shows on a terminal."""
    with redirect_stderr(Terminal()) as terminal:
        work(ProgressBars(wanted=wanted))
    return terminal.getvalue()


def hundred_steps(progress: ProgressBars) -> None:
    with progress.steps("matching", 100) as advance:
        advance(40)
        advance(60)


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHOWN_AFTER_S", -1.0)


def test_short_work_shows_nothing() -> None:
    assert shown(hundred_steps) == ""


@pytest.mark.usefixtures("_at_once")
def test_long_work_shows_a_bar() -> None:
    assert "matching" in shown(hundred_steps)
    assert "100%" in shown(hundred_steps)


@pytest.mark.usefixtures("_at_once")
def test_a_bar_that_is_not_wanted() -> None:
    assert shown(hundred_steps, wanted=False) == ""


@pytest.mark.usefixtures("_at_once")
def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("{}\n" * 10, encoding="utf-8")
    file = InputFile(str(tmp_path / "events.jsonl"))

    def read(progress: ProgressBars) -> None:
        with progress.reading(file) as advance:
            assert len(list(file.lines(advance))) == 10

    assert "100%" in shown(read)


@pytest.mark.usefixtures("_at_once")
def test_a_parquet_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": range(10)}), tmp_path / "events.parquet")
    file = InputFile(str(tmp_path / "events.parquet"))

    def read(progress: ProgressBars) -> None:
        with progress.reading(file) as advance:
            assert [start for start, _ in file.tables(4, advance)] == [0, 4, 8]

    assert "100%" in shown(read)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(TidegateError, match="nowhere: cannot be read: No such file"):
        shown(lambda progress: progress.reading(InputFile("nowhere")).__enter__())


@pytest.mark.usefixtures("_at_once")
def test_of_stdin_the_length_is_not_known() -> None:
    def read(progress: ProgressBars) -> None:
        with progress.reading(InputFile("-")) as advance:
            advance(100)

    assert shown(read) == ""


@pytest.mark.usefixtures("_at_once")
def test_a_stderr_that_is_no_terminal() -> None:
    with redirect_stderr(io.StringIO()) as plain:
        hundred_steps(ProgressBars(wanted=True))
    assert plain.getvalue() == ""

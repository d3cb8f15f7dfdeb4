"""Bad lines are reported in the order of their files and numbers; only the first are printed."""

from __future__ import annotations

import random

import pytest

from tidegate import TidegateError
from tidegate.cli.files.bad_lines import SHOWN_MAX, BadLines
from tidegate.cli.files.input_file import InputFile

FIRST, SECOND = InputFile("a.jsonl"), InputFile("b.parquet")


def refused(bad: BadLines) -> list[str]:
    with pytest.raises(TidegateError) as found:
        bad.raise_errors()
    return str(found.value).split("\nerror: ")


def test_none() -> None:
    bad = BadLines(skip=False)
    bad.raise_errors()
    assert not bad.has_errors


def test_they_are_reported_in_order() -> None:
    bad = BadLines(skip=False)
    for file, number in ((FIRST, 7), (SECOND, 0), (FIRST, 2)):
        bad.add(file, number, TidegateError("is bad"))
    assert bad.has_errors
    assert refused(bad) == [
        "a.jsonl, line 2: is bad", "a.jsonl, line 7: is bad", "b.parquet, row 0: is bad",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "more"),
    [
        (SHOWN_MAX, []),
        (SHOWN_MAX + 1, ["... and 1 more bad line"]),
        (SHOWN_MAX + 90, ["... and 90 more bad lines"]),
    ],
)
def test_the_first_are_shown(count: int, more: list[str]) -> None:
    numbers = list(range(1, count + 1))
    random.Random(1).shuffle(numbers)
    bad = BadLines(skip=False)
    for number in numbers:
        bad.add(FIRST, number, TidegateError("is bad"))
    shown = [f"a.jsonl, line {number}: is bad" for number in range(1, SHOWN_MAX + 1)]
    assert refused(bad) == shown + more


def test_those_that_are_skipped_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    bad = BadLines(skip=True)
    bad.print_skipped()
    assert capsys.readouterr().err == ""
    bad.add(FIRST, 3, TidegateError("is bad"))
    bad.add(SECOND, 4, TidegateError("is worse"))
    bad.add(SECOND, 5, TidegateError("is worse"))
    bad.raise_errors()
    assert not bad.has_errors
    bad.print_skipped()
    assert capsys.readouterr().err.splitlines() == [
        "skipped: a.jsonl, line 3: is bad",
        "skipped: b.parquet, row 4: is worse",
        "skipped: b.parquet, row 5: is worse",
        "skipped 3 bad lines in all: 1 of a.jsonl, 2 of b.parquet",
    ]

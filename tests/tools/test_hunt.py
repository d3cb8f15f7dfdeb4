"""The hunt for failures: what it prints when a property test fails, and when it ends."""

from __future__ import annotations

import math
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from support.pages import ROOT


@pytest.fixture(scope="module")
def hunt() -> ModuleType:
    """The program, which is not part of the package."""
    spec = spec_from_file_location("hunt", ROOT / "tools" / "hunt.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_failed_tests_are_found_in_the_summary_of_pytest(hunt: ModuleType) -> None:
    output = (
        "FAILED tests/a.py::test_b[x y] - AssertionError: 1 - 2\n"
        "FAILED tests/a.py::test_c@spark - ValueError\n"
        "ERROR tests/d.py\n3 failed, 1 passed\n"
    )
    assert hunt.failed_tests(output) == [
        "tests/a.py::test_b[x y]",
        "tests/a.py::test_c@spark",
        "tests/d.py",
    ]


def test_the_command_repeats_one_test(hunt: ModuleType) -> None:
    assert hunt.repeating_command("tests/a.py::test_b[x y]", 7) == (
        ".venv/bin/pytest 'tests/a.py::test_b[x y]' --hypothesis-seed=7"
    )
    assert hunt.repeating_command("tests/a.py::test_c@spark", 7) == (
        ".venv/bin/pytest tests/a.py::test_c --hypothesis-seed=7"
    )


def pytest_args(folder: Path, test: str) -> list[str]:
    """The arguments for a file of one test, which is written to a folder."""
    file = folder / "test_written.py"
    imports = "from hypothesis import given, strategies as st\n"
    file.write_text(f"{imports}@given(st.integers())\n{test}\n", encoding="utf-8")
    return ["-n0", "-p", "no:cacheprovider", f"--rootdir={folder}", str(file)]


def test_a_property_that_fails_is_repeated_by_the_printed_command(
    hunt: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = pytest_args(tmp_path, "def test_small(n): assert n < 1000")
    assert hunt.hunt_properties(arguments, 5) == hunt.FOUND
    printed = capsys.readouterr().out
    assert "test_written.py::test_small --hypothesis-seed=5" in printed


@pytest.mark.parametrize(
    ("test", "more", "trouble"),
    [
        ("def no_test(n): pass", [], "pytest collected no property test (exit code 5)"),
        ("def test(n): pass", ["--bogus"], "pytest does not understand its arguments (exit code 4"),
        ("nonsense", [], "pytest was interrupted, perhaps by a test file that cannot be imported"),
    ],
)
def test_tests_that_cannot_run_are_no_find(
    hunt: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    test: str,
    more: list[str],
    trouble: str,
) -> None:
    assert hunt.hunt_properties([*pytest_args(tmp_path, test), *more], 5) == hunt.BROKEN
    printed = capsys.readouterr().out
    assert f"hunt: {trouble}" in printed
    assert "repeat with" not in printed


def test_a_round_is_the_overlays_and_each_folder_with_property_tests(hunt: ModuleType) -> None:
    parts = hunt.parts_of_a_round(["-n", "3"]).keys()
    assert parts >= {"overlays, random-graph", "tests/language", "tests/matching", "tests/routing"}
    assert "tests/support" not in parts


@pytest.mark.parametrize("selection", [["-k", "covers"], [str(ROOT / "tests/language")]])
def test_tests_that_are_selected_are_one_part(hunt: ModuleType, selection: list[str]) -> None:
    parts = hunt.parts_of_a_round(["-n", "3", *selection])
    assert [name for name in parts if "overlays" not in name] == ["selected property tests"]


class Parts:
    """Parts of a round that record when they are run, and end with an exit code or by Ctrl-C."""

    def __init__(self, **exit_codes: int | None) -> None:
        self.done: list[str] = []
        self.parts = {
            name: partial(self._run, name, exit_code) for name, exit_code in exit_codes.items()
        }

    def _run(self, name: str, exit_code: int | None, seed: int) -> int:
        assert seed >= 0
        self.done.append(name)
        if exit_code is None:
            raise KeyboardInterrupt
        return exit_code


def test_no_part_begins_after_the_given_time(
    hunt: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Parts(overlays=0, language=0)
    assert hunt.hunt(made.parts, end=-math.inf) == 0
    assert made.done == ["overlays"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[1:] == [
        "  overlays: passed in 0 s",
        "hunt: time is up in round 1, after 1 part; nothing found",
    ]


@pytest.mark.parametrize("exit_code", [1, 2])
def test_a_part_that_fails_ends_the_hunt(hunt: ModuleType, exit_code: int) -> None:
    made = Parts(overlays=0, language=exit_code, matching=0)
    assert hunt.hunt(made.parts, end=math.inf) == exit_code
    assert made.done == ["overlays", "language"]


def test_an_interrupt_ends_with_a_summary(
    hunt: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Parts(overlays=0, language=0, matching=None)
    assert hunt.hunt(made.parts, end=math.inf) == 130
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "hunt: interrupted in round 1, after 2 parts; nothing found"

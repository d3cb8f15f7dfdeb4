"""The hunt for failures: what it prints when a property test fails."""

from __future__ import annotations

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


def test_a_property_that_fails_is_repeated_by_the_printed_command(
    hunt: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "test_broken.py"
    broken.write_text(
        "from hypothesis import given, strategies as st\n"
        "@given(st.integers())\n"
        "def test_small(n): assert n < 1000\n",
        encoding="utf-8",
    )
    arguments = ["-n0", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(broken)]
    assert not hunt.hunt_properties(5, arguments)
    printed = capsys.readouterr().out
    assert "test_broken.py::test_small --hypothesis-seed=5" in printed

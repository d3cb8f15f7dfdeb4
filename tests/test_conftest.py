"""The test suite gives the same result every time: property tests draw the same examples."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.pages import ROOT

PROPERTY = """
import json, os
from hypothesis import given, strategies as st
DRAWN = []

@given(st.integers(), st.text(max_size=5), st.floats())
def test_anything(number, text, size):
    DRAWN.append([number, text, repr(size)])

def test_last():
    with open(os.environ["DRAWN"], "w") as file:
        json.dump(DRAWN, file)
"""


def drawn(folder: Path, *arguments: str, without: str | None = None) -> list[object]:
    """The examples of a property in a pytest run of its own, below the conftest of this suite.

    Lines of the conftest that begin with ``without`` are left out.
    """
    lines = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if without is None or not line.startswith(without)]
    (folder / "conftest.py").write_text("".join(kept), encoding="utf-8")
    (folder / "test_property.py").write_text(PROPERTY, encoding="utf-8")
    file = folder / "drawn.json"
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, f"--rootdir={folder}", *arguments, str(folder / "test_property.py")],
        check=True,
        capture_output=True,
        cwd=folder,
        env={"DRAWN": str(file), "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'src'}"},
    )
    examples: list[object] = json.loads(file.read_text(encoding="utf-8"))
    return examples


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    return drawn(tmp_path_factory.mktemp("usual"))


@pytest.mark.slow
def test_examples_are_the_same_whatever_was_imported_before(
    usual: list[object], tmp_path: Path
) -> None:
    assert len(usual) == 100
    assert drawn(tmp_path, "-p", "tidegate.simulation.scenario") == usual


@pytest.mark.slow
def test_constants_of_imported_modules_would_make_a_difference(
    usual: list[object], tmp_path: Path
) -> None:
    """The test above would pass for nothing if that module were imported in any case."""
    changed = drawn(
        tmp_path, "-p", "tidegate.simulation.scenario", without="providers._get_local_constants ="
    )
    assert changed != usual


@pytest.mark.slow
def test_a_seed_brings_chance_that_can_be_repeated(usual: list[object], tmp_path: Path) -> None:
    first = drawn(tmp_path, "--hypothesis-seed=7")
    assert first != usual
    assert drawn(tmp_path, "--hypothesis-seed=7") == first
    assert drawn(tmp_path, "--hypothesis-seed=8") != first

"""The program behind `make fuzz`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.pages import ROOT


@pytest.mark.slow
def test_a_round_finds_nothing_and_ends() -> None:
    command = [sys.executable, str(ROOT / "tools" / "fuzz.py"), "--minutes", "0.01", "--seed", "7"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (
        0,
        "fuzz: round 1, seed 7\nfuzz: time is up after round 1; nothing found\n",
    )

"""The same answers on a cluster, where executors are processes with files of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import on_a_cluster


@pytest.mark.soak
def test_a_table_and_a_stream_on_two_executors(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, on_a_cluster.__file__, str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["table"] == sorted(
        [number, "a" if number % 100 < 10 else "b"]
        for number in range(200)
        if number % 100 < 10 or number % 100 >= 95
    )
    assert found["stream"] == [n for n in range(30) if n % 10 * 10 < (50 if n < 15 else 5)]

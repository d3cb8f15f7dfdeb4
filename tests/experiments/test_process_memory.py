"""Resident memory: the peak is that of this process, not of the one that started it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tidegate.experiments.process_memory import (
    peak_resident_bytes,
    proportional_bytes,
    resident_bytes,
)

pytestmark = pytest.mark.slow

CHILD = "from tidegate.experiments.process_memory import peak_resident_bytes as peak; print(peak())"


def test_memory_that_is_used_is_resident() -> None:
    before = resident_bytes()
    block = np.ones(50_000_000, np.uint8)
    assert resident_bytes() - before > len(block) // 2
    assert peak_resident_bytes() >= resident_bytes() // 2


def test_a_child_does_not_begin_with_the_peak_of_its_parent() -> None:
    block = np.ones(600_000_000, np.uint8)
    output = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, check=True).stdout
    assert int(output) < len(block) // 2


def test_shared_memory_counts_once() -> None:
    found = {process: held for process, _, held in proportional_bytes(os.getpid())}
    assert os.getpid() in found
    assert 0 < found[os.getpid()] <= resident_bytes() * 1.1

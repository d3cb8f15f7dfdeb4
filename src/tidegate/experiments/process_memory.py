"""Resident memory of this process, as Linux reports it."""

from __future__ import annotations

import os
from pathlib import Path


def resident_bytes() -> int:
    """The memory that is resident now."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")


def peak_resident_bytes() -> int:
    """The most memory that was resident since the process began."""
    # VmHWM, "high water mark": unlike ru_maxrss it does not begin with the peak of the parent.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024

"""Memory of this process and of others, as Linux reports it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
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


def proportional_bytes(root: int) -> Iterator[tuple[int, str, int]]:
    """The processes below and including one: id, command, and memory.

    A page that several processes share counts for each by its share, so the sum is what they need
    together. Processes that end meanwhile are left out.
    """
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
                command, _, rest = text.partition("(")[2].rpartition(")")
                parents[int(folder.name)] = int(rest.split()[1]), command
    for process, (_, command) in parents.items():
        above = process
        while above != root and above in parents:
            above = parents[above][0]
        if above == root:
            with suppress(OSError):
                lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
                (share,) = [line for line in lines.splitlines() if line.startswith("Pss:")]
                yield process, command, int(share.split()[1]) * 1024

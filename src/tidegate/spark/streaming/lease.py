"""The lease of a stream's state: two drivers with one checkpoint would spoil each other's files.

The holder writes down who it is and when it last began a batch. Another driver takes the lease over
if the holder's process is dead, which is known on one machine, or if the holder was not seen for
some time. A holder that was slow and lost the lease notices before it notes a batch as done.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from pathlib import Path

from tidegate.errors import StateError
from tidegate.spark.storage.folder import Folder
from tidegate.spark.streaming.state_files import Json, read_json, write_json

LEASE_S = 60
"""A holder on another machine that was not seen for so long has lost the lease."""
STOPPING_S = 10
"""A holder on this machine may take so long to stop, as the processes of Spark Connect do."""
_POLL_S = 0.5
_FILE = "lease.json"


class Lease:
    """The lease of the state in a folder, for one query at a time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._owner = uuid.uuid4().hex
        self._renewed_s: float | None = None
        """When this query was last noted as seen; None before it had the lease."""

    def take(self) -> None:
        """Take the lease, or renew it. Raises StateError if another query has it.

        If that is on this machine, this waits for its end for ``STOPPING_S``; if it is on another
        one, until it is seen again, or for ``LEASE_S``.
        """
        if self._renewed_s is not None:
            self.check()
            if time.time() - self._renewed_s < LEASE_S / 4:
                return
        elif self._folder.exists(_FILE):
            self._wait_for(read_json(self._folder, _FILE))
        self._renewed_s = time.time()
        document = {**_this_process(), "owner": self._owner, "renewed": self._renewed_s}
        write_json(self._folder, _FILE, document)

    def check(self) -> None:
        """Raise StateError unless this query still has the lease."""
        holder = read_json(self._folder, _FILE)
        if holder["owner"] != self._owner:
            raise StateError(f"{self._described(holder)} has taken it over; this query must stop")

    def _wait_for(self, holder: Json) -> None:
        """Wait until the holder has lost the lease."""
        is_here = holder["machine"] == _machine()
        if is_here and holder["pid"] == os.getpid():
            return  # a query of this process, which Spark has stopped
        seen_s, begun_s = holder["renewed"], time.time()
        while True:
            if is_here:
                has_ended, has_stayed = not _is_alive(holder), time.time() - begun_s >= STOPPING_S
            else:
                has_ended, has_stayed = time.time() - seen_s >= LEASE_S, holder["renewed"] != seen_s
            if has_stayed and not (is_here and has_ended):
                raise StateError(
                    f"{self._described(holder)}; stop that, or take another checkpoint"
                )
            if has_ended:
                return
            time.sleep(_POLL_S)
            holder = read_json(self._folder, _FILE)

    def _described(self, holder: Json) -> str:
        machine = str(holder["machine"]).partition(" ")[0]
        return f"{self._folder.location} is in use: process {holder['pid']} on {machine}"


def _this_process() -> dict[str, object]:
    pid = os.getpid()
    return {"machine": _machine(), "pid": pid, "started": _started(pid)}


def _machine() -> str:
    """This machine, or the container, in which a process is known by its number."""
    return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"


def _started(pid: int) -> str | None:
    """When a process began, in the system's own count; None if there is no such process.

    A process that has ended and that its parent has not asked for yet does not count.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field, the name in parentheses, may have spaces; the third is the state, the 22nd
    # the time.
    fields = status.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _is_alive(holder: Json) -> bool:
    # A number is given again to other processes, but not with the same time.
    return bool(_started(int(holder["pid"])) == holder["started"])

"""What the state of a stream belongs to, checked when a query starts with it.

A query that is restarted with other columns would find rows of before in the spool, and one whose
own files of Spark were lost would begin with batch 0 again and deliver everything once more. So
that is refused. The lateness may change; see `StreamState.border`.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass

from tidegate.errors import StateError
from tidegate.spark.storage.folder import Folder, as_state_error
from tidegate.spark.streaming.state_files import read_json, write_json

FORMAT = 3
"""The version of the files of a state; another one is refused."""
IDENTITY_FILE = "id.json"

_ADVICE = "or begin with another checkpoint"


@dataclass(frozen=True, slots=True)
class StreamIdentity:
    """What must be the same as when the state was made."""

    query: str
    """The id of the query in Spark's own files of the checkpoint."""
    event_time: str | None
    columns: str
    """The columns of events and their types, in Spark's notation."""
    kept: str
    """The columns of events that are part of deliveries."""
    grouped: bool


_NOUNS = {
    "event_time": "the time of events is column {}",
    "columns": "the events have the columns {}",
    "kept": "deliveries have the columns {} of events",
    "grouped": "that deliveries are grouped is {}",
}


def token_of(folder: Folder, identity: StreamIdentity, *, first: bool) -> str:
    """The token of the state in a folder, after it was checked that the state is of this identity.

    The token tells this state from one that was in the same folder before it was deleted: a worker
    may still keep the index of that one. Before the ``first`` batch there may be no state yet.
    """
    with as_state_error(folder, IDENTITY_FILE):
        exists = folder.exists(IDENTITY_FILE)
    if not exists:
        if not first:
            raise StateError(
                f"{folder.location} has no state of the stream, of which Spark has run batches "
                "already; it must be kept together with Spark's own files in the checkpoint: "
                f"restore it, {_ADVICE}"
            )
        token = uuid.uuid4().hex
        write_json(folder, IDENTITY_FILE, {"format": FORMAT, "token": token, **asdict(identity)})
        return token
    stored = read_json(folder, IDENTITY_FILE)
    written = stored.get("format") if isinstance(stored, dict) else 1
    if written != FORMAT:
        raise StateError(
            f"{folder.location} is of format {written}, and this Tidegate reads {FORMAT}; "
            "continue with the Tidegate that wrote it, " + _ADVICE
        )
    _check(folder, stored, asdict(identity))
    return str(stored["token"])


def _check(folder: Folder, stored: dict[str, object], now: dict[str, object]) -> None:
    if stored["query"] != now["query"]:
        raise StateError(
            f"{folder.location} belongs to the query {stored['query']}, and this is "
            f"{now['query']}: Spark's own files of the checkpoint were lost or replaced; restore "
            f"them, {_ADVICE}"
        )
    for name, noun in _NOUNS.items():
        if stored[name] != now[name]:
            raise StateError(
                f"{folder.location}: {noun.format(now[name])}, and that was {stored[name]} when "
                "the stream began; late changes could not correct what was delivered. Change it "
                f"back, {_ADVICE}"
            )

"""The JSON files of a stream's state, and the JSON forms of changes, versions and timelines.

Records are arrays without field names, because there are many of them. The values of parameters
keep their types.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tidegate.errors import StateError
from tidegate.language.evolve import Evolve, parse_evolve
from tidegate.language.json_values import values_from_json, values_to_json
from tidegate.language.values import from_us, to_us
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.timelines import TimelineRecord
from tidegate.matching.history.versions import Succession, Version, VersionDifference
from tidegate.spark.storage.folder import Folder, as_state_error

Json = Any


def change_as_json(change: Change) -> Json:
    """The JSON form of a change."""
    return [
        to_us(change.time), change.op.value, change.id, change.filter,
        _params_as_json(change.params), change.subscriber, _evolve_as_json(change.evolve),
        change.seq, None if change.held_from is None else to_us(change.held_from),
    ]  # fmt: skip


def change_of_json(fields: Json) -> Change:
    """The change of a JSON form."""
    time_us, op, id, filter, params, subscriber, evolve, seq, held_us = fields
    time, values = _time_of_json(time_us), _params_of_json(params)
    held_from = None if held_us is None else _time_of_json(held_us)
    mode = _evolve_of_json(evolve)
    return Change(time, Op(op), id, filter, values, subscriber, mode, seq, held_from)


def version_as_json(version: Version) -> Json:
    """The JSON form of a version."""
    times = [version.since, version.until, version.origin]
    return [
        version.id, version.filter, _params_as_json(version.params), version.subscriber,
        *(None if each is None else to_us(each) for each in times),
        _evolve_as_json(version.evolve),
    ]  # fmt: skip


def version_of_json(fields: Json) -> Version:
    """The version of a JSON form."""
    id, filter, params, subscriber, *times, evolve = fields
    since, until, origin = (None if each is None else from_us(each) for each in times)
    values = _params_of_json(params) or {}
    mode = _evolve_of_json(evolve)
    return Version(id, filter, values, subscriber, since, until, origin, mode)


def difference_as_json(difference: VersionDifference) -> Json:
    """The JSON form of a difference."""
    return [
        [version_as_json(each) for each in side] for side in (difference.before, difference.after)
    ]


def difference_of_json(fields: Json) -> VersionDifference:
    """The difference of a JSON form."""
    before, after = (tuple(version_of_json(each) for each in side) for side in fields)
    return VersionDifference(before, after)


def _evolve_as_json(evolve: Evolve | None) -> Json:
    return None if evolve is None else str(evolve)


def _evolve_of_json(text: Json) -> Evolve | None:
    return None if text is None else parse_evolve(text)


def succession_as_json(succession: Succession) -> Json:
    """The JSON form of a succession."""
    return [succession.id, to_us(succession.since), _params_as_json(succession.params)]


def succession_of_json(fields: Json) -> Succession:
    """The succession of a JSON form."""
    id, time_us, params = fields
    return Succession(id, _time_of_json(time_us), _params_of_json(params) or {})


def timeline_as_json(timeline: TimelineRecord) -> Json:
    """The JSON form of a timeline."""
    id, base, params, changed, changes = timeline
    return [
        id,
        None if base is None else version_as_json(base),
        _params_as_json(params),
        None if changed is None else to_us(changed),
        [change_as_json(each) for each in changes],
    ]


def timeline_of_json(fields: Json) -> TimelineRecord:
    """The timeline of a JSON form."""
    id, base, params, changed_us, changes = fields
    return (
        id,
        None if base is None else version_of_json(base),
        _params_of_json(params) or {},
        None if changed_us is None else _time_of_json(changed_us),
        [change_of_json(each) for each in changes],
    )


def _time_of_json(time_us: int) -> datetime:
    time = from_us(time_us)
    if time is None:
        raise StateError(f"a change at {time_us} microseconds is outside the years 1 to 9999")
    return time


def _params_as_json(params: Mapping[str, object] | None) -> Json:
    return None if params is None else values_to_json(params)


def _params_of_json(values: Json) -> Mapping[str, object] | None:
    return None if values is None else values_from_json(values)


def write_json(folder: Folder, name: str, document: Json) -> None:
    """Write a file durably; after a crash it exists as a whole or not at all."""
    # Not json.dump, which takes many times as long: it has no fast path in C.
    content = json.dumps(document, separators=(",", ":")).encode()
    with as_state_error(folder, name):
        folder.write(name, content)


def read_json(folder: Folder, name: str) -> Json:
    """Read a file that ``write_json`` wrote."""
    with as_state_error(folder, name):
        content = folder.read(name)
    try:
        return json.loads(content)
    except ValueError:
        raise StateError(
            f"{folder.location}/{name}: is damaged; it is part of the state of a stream"
        ) from None


def numbers_in(folder: Folder, kind: str) -> list[int]:
    """The batches that have a file or folder of a kind, which is named after its batch."""
    stems = (name.partition(".")[0] for name in folder.folder(kind).names())
    return sorted(int(stem) for stem in stems if stem.isdigit())

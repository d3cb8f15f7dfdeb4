"""Changes, versions and timelines as JSON, for the files of a stream's state.

Values keep their kinds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tidegate.errors import StateError
from tidegate.language.evolve import Evolve, parse_evolve
from tidegate.language.values import from_us, to_us, to_value
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.versions import Succession, Version, VersionDifference

Json = Any


def change_as_json(change: Change) -> Json:
    """A change."""
    return [
        to_us(change.time), change.op.value, change.id, change.filter,
        _params_as_json(change.params), change.subscriber, _evolve_as_json(change.evolve),
    ]  # fmt: skip


def change_of_json(noted: Json) -> Change:
    """The change that was noted."""
    time_us, op, id, filter, params, subscriber, evolve = noted
    time, known = _time_of_json(time_us), _params_of_json(params)
    return Change(time, Op(op), id, filter, known, subscriber, _evolve_of_json(evolve))


def version_as_json(version: Version) -> Json:
    """A version."""
    times = [version.since, version.until, version.origin]
    return [
        version.id, version.filter, _params_as_json(version.params), version.subscriber,
        *(None if each is None else to_us(each) for each in times),
        _evolve_as_json(version.evolve),
    ]  # fmt: skip


def version_of_json(noted: Json) -> Version:
    """The version that was noted."""
    id, filter, params, subscriber, *times, evolve = noted
    since, until, origin = (None if each is None else from_us(each) for each in times)
    known = _params_of_json(params) or {}
    how = _evolve_of_json(evolve)
    return Version(id, filter, known, subscriber, since, until, origin, how)


def difference_as_json(difference: VersionDifference) -> Json:
    """A difference."""
    return [
        [version_as_json(each) for each in some] for some in (difference.before, difference.after)
    ]


def difference_of_json(noted: Json) -> VersionDifference:
    """The difference that was noted."""
    before, after = (tuple(version_of_json(each) for each in some) for some in noted)
    return VersionDifference(before, after)


def _evolve_as_json(evolve: Evolve | None) -> Json:
    return None if evolve is None else str(evolve)


def _evolve_of_json(noted: Json) -> Evolve | None:
    return None if noted is None else parse_evolve(noted)


def succession_as_json(succession: Succession) -> Json:
    """A succession."""
    return [succession.id, to_us(succession.since), _params_as_json(succession.params)]


def succession_of_json(noted: Json) -> Succession:
    """The succession that was noted."""
    id, time_us, params = noted
    return Succession(id, _time_of_json(time_us), _params_of_json(params) or {})


TimelineRecord = tuple[str, Version | None, Mapping[str, object], list[Change]]
"""What `Timelines.dump` gives for each subscription."""


def timeline_as_json(timeline: TimelineRecord) -> Json:
    """A timeline."""
    id, base, params, changes = timeline
    return [
        id,
        None if base is None else version_as_json(base),
        _params_as_json(params),
        [change_as_json(each) for each in changes],
    ]


def timeline_of_json(noted: Json) -> TimelineRecord:
    """The timeline that was noted."""
    id, base, params, changes = noted
    return (
        id,
        None if base is None else version_of_json(base),
        _params_of_json(params) or {},
        [change_of_json(each) for each in changes],
    )


def _time_of_json(time_us: int) -> datetime:
    time = from_us(time_us)
    if time is None:
        raise StateError(f"a change at {time_us} microseconds is outside the years 1 to 9999")
    return time


def _params_as_json(params: Mapping[str, object] | None) -> Json:
    if params is None:
        return None
    noted: dict[str, Json] = {}
    for name, raw in params.items():
        value = to_value(raw)
        noted[name] = [to_us(value)] if isinstance(value, datetime) else value
    return noted


def _params_of_json(noted: Json) -> dict[str, object] | None:
    if noted is None:
        return None
    return {
        name: from_us(value[0]) if isinstance(value, list) else value
        for name, value in noted.items()
    }


def write_json(path: Path, noted: Json) -> None:
    """Write a file that is there as a whole or not at all, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(json.dumps(noted, separators=(",", ":")))  # json.dump takes many times as long
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_json(path: Path) -> Json:
    """Read a file that ``write_json`` wrote."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise StateError(f"{path}: {error.strerror or error}") from None
    except ValueError:
        raise StateError(f"{path}: is damaged; it is part of the state of a stream") from None

from __future__ import annotations

import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import change_logs
from support.command_line import Folder, Row, pairs
from tidegate.cli import pacing
from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.hints import Hints
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.replay import ChangeLog, play
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import to_us
from tidegate.matching.engine import Engine

FILES = ("--changes", "log.jsonl", "--events", "events.jsonl", "--event-time", "time")


def at(second: float) -> str:
    return (datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=second)).isoformat()


def change(second: float, op: str, id: str, **more: object) -> dict[str, object]:
    return {"time": at(second), "op": op, "id": id, **more}


def events_at(*seconds: float, **attributes: object) -> list[dict[str, object]]:
    return [{"time": at(second), **attributes} for second in seconds]


@pytest.fixture(params=["naive", "columnar", "poset", "rete", "summary"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def replay(folder: Folder, engine: str, log: list[Any], events: list[Any]) -> list[tuple[int, str]]:
    folder.write("log.jsonl", log)
    folder.write("events.jsonl", events)
    return folder.match(*FILES, "--engine", engine)


# -- what a log means -------------------------------------------------------------------------


def test_a_subscription_holds_from_its_time_until_it_ends(folder: Folder, engine: str) -> None:
    log = [change(3, "unsubscribe", "a"), change(1, "subscribe", "a", filter="true")]
    events = events_at(3, 1, 2.999999, 0.999999, 2)
    assert replay(folder, engine, log, events) == [(1, "a"), (2, "a"), (4, "a")]


def test_an_update_holds_from_its_time_on(folder: Folder, engine: str) -> None:
    log = [
        change(0, "subscribe", "a", filter="x < :k and x > :l", params={"k": 5, "l": 0}),
        change(2, "update", "a", params={"k": 1}),
        change(4, "update", "a", params={"k": 5, "l": 3}),
        change(6, "update", "a", params={"k": None}),
    ]
    events = events_at(1, 1.999999, 2, 3, 4, 5, 6, x=3.5)
    assert replay(folder, engine, log, events) == [(0, "a"), (1, "a"), (4, "a"), (5, "a")]


def test_an_update_does_not_restart_t(folder: Folder, engine: str) -> None:
    log = [
        change(0, "subscribe", "a", filter="x = :k + t", params={"k": 0}),
        change(2, "update", "a", params={"k": 1}),
        change(4, "update", "a", filter="x = :k + 10 * t"),
    ]
    events = [{"time": at(second), "x": x} for second, x in [(1, 1), (3, 3), (3, 4), (5, 51)]]
    assert replay(folder, engine, log, events) == [(0, "a"), (2, "a"), (3, "a")]


def test_subscribing_again_does(folder: Folder, engine: str) -> None:
    log = [
        change(0, "subscribe", "a", filter="x = t"),
        change(2, "unsubscribe", "a"),
        change(2, "subscribe", "a", filter="x = t"),
    ]
    events = [{"time": at(second), "x": x} for second, x in [(1, 1), (2, 0), (3, 3), (3, 1)]]
    assert replay(folder, engine, log, events) == [(0, "a"), (1, "a"), (3, "a")]


def test_parameters_that_are_not_named_stay(folder: Folder, engine: str) -> None:
    log = [
        change(0, "subscribe", "a", filter="x < :k and y = :l", params={"k": 1, "l": "z"}),
        change(1, "update", "a", filter="y = :l"),
        change(2, "update", "a", filter="x >= :k and x < :m", params={"m": 5}),
        change(3, "update", "a", filter="x < :k and y = :l", params={"k": 2}),
    ]
    events = events_at(0, 1, 2, 3, x=1, y="z")
    assert replay(folder, engine, log, events) == [(1, "a"), (2, "a"), (3, "a")]


def test_changes_of_one_time_are_made_in_the_order_of_the_file(folder: Folder, engine: str) -> None:
    log = [
        change(2, "update", "a", params={"k": 2}),
        change(2, "update", "a", params={"k": 3}),
        change(1, "subscribe", "a", filter="x = :k", params={"k": 0}),
        change(1, "update", "a", params={"k": 1}),
    ]
    events = [{"time": at(second), "x": x} for second in (1, 2) for x in range(4)]
    assert replay(folder, engine, log, events) == [(1, "a"), (7, "a")]


def test_times_are_moments_not_texts(folder: Folder, engine: str) -> None:
    log = [{**change(0, "subscribe", "a", filter="true"), "time": "2026-01-02T01:00:01+01:00"}]
    events = [{"time": "2026-01-02T00:00:00.5Z"}, {"time": "2026-01-01T23:00:01-01:00"}]
    assert replay(folder, engine, log, events) == [(1, "a")]


def test_no_events_and_no_changes(folder: Folder, engine: str) -> None:
    assert replay(folder, engine, [], events_at(1)) == []
    assert replay(folder, engine, [change(1, "subscribe", "a", filter="true")], []) == []


def test_parquet_is_as_json_lines(folder: Folder, engine: str) -> None:
    log = [
        change(0, "subscribe", "a", filter="x = :k and s = 'u'", params={"k": 1}),
        change(0, "subscribe", "b", filter="d.e = true", subscriber="me"),
        change(2, "update", "a", params={"k": 2}),
        change(3, "update", "a", filter="x = :k"),
        change(4, "unsubscribe", "b"),
    ]
    events: list[dict[str, object]] = [
        {"time": at(second), "x": x, "s": "u" if second < 3 else "v", "d": {"e": x == 1}}
        for second in (4, 3, 1, 0, 2)
        for x in (1, 2)
        for _ in range(6)
    ]
    expected = replay(folder, engine, log, events)
    assert {id for _, id in expected} == {"a", "b"}
    for times in (_with_times(log), log):
        folder.write_parquet("log.parquet", pa.Table.from_pylist(times))
        for rows in (_with_times(events), events):
            table = pa.Table.from_pylist(rows)
            folder.write_parquet("events.parquet", table, row_group_size=10)
            found = folder.match(
                "--changes", "log.parquet", "--events", "events.parquet",
                "--event-time", "time", "--engine", engine,
            )  # fmt: skip
            assert found == expected


def _with_times(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**row, "time": datetime.fromisoformat(str(row["time"]))} for row in rows]


# -- bad lines --------------------------------------------------------------------------------

GOOD = change(0, "subscribe", "a", filter="x = :k", params={"k": 1})

BAD: list[tuple[Row, str]] = [
    ({"op": "unsubscribe", "id": "a"}, "time: is missing"),
    (
        {"time": "noon", "op": "unsubscribe", "id": "a"},
        "time: 'noon' is not a timestamp; write it as 2026-01-02T03:04:05Z",
    ),
    ({"time": at(1), "id": "a"}, "op: is missing"),
    (
        change(1, "cancel", "a"),
        "op: there is no 'cancel'; there are subscribe, update, unsubscribe",
    ),
    ({"time": at(1), "op": "unsubscribe"}, "id: is missing"),
    (change(1, "subscribe", "b"), "filter: is missing"),
    (change(1, "update", "a"), "an update needs params, a filter, or both"),
    (change(1, "update", "a", filter=""), "filter: is empty"),
    (
        change(1, "update", "a", params={"k": 2}, subscriber="me"),
        "subscriber: has no place in a row of op update",
    ),
    (
        change(1, "unsubscribe", "a", params={"k": 2}),
        "params: has no place in a row of op unsubscribe",
    ),
    (
        change(1, "subscribe", "b", filter="true", until=at(2)),
        "there is no field 'until'; a change has time, op, id, filter, params, subscriber, evolve, "
        "seq",
    ),
    (
        change(1, "unsubscribe", "b"),
        "there is no subscription 'b' at 2026-01-02T00:00:01+00:00",
    ),
    (
        change(1, "update", "b", params={"k": 2}),
        "there is no subscription 'b' at 2026-01-02T00:00:01+00:00",
    ),
    (
        change(-1, "update", "a", params={"k": 2}),
        "there is no subscription 'a' at 2026-01-01T23:59:59+00:00",
    ),
    (change(1, "subscribe", "a", filter="true"), "there already is a subscription 'a'"),
    (
        change(1, "update", "a", params={"l": 2}),
        "subscription 'a' has no parameter :l; it has :k",
    ),
    (
        change(1, "update", "a", params={"k": [2]}),
        "parameter :k: a list is not a value; send one event for each of its items",
    ),
    (
        change(1, "update", "a", filter="y = :l", params={"k": 2}),
        "subscription 'a': the filter has no parameter :k; it has :l",
    ),
    (
        change(1, "update", "a", filter="y = :l", params={"l": [2]}),
        "subscription 'a': parameter :l: "
        "a list is not a value; send one event for each of its items",
    ),
    (
        change(1, "update", "a", filter="x <"),
        "subscription 'a': a value must follow '<', but the text ends\n  x <\n     ^",
    ),
    (
        change(1, "subscribe", "b", filter="x <"),
        "subscription 'b': a value must follow '<', but the text ends\n  x <\n     ^",
    ),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_a_bad_change(folder: Folder, line: Row, reason: str) -> None:
    folder.write("log.jsonl", [line, GOOD])
    folder.write("events.jsonl", events_at(2, x=1))
    said = folder.refused("match", *FILES, "--output", "matches.jsonl")
    assert said == f"error: log.jsonl, line 1: {reason}\n"
    ran = folder.run("match", *FILES, "--skip-bad")
    assert (ran.code, pairs(ran.out)) == (0, [(0, "a")])
    assert ran.err == (
        f"skipped: log.jsonl, line 1: {reason}\nskipped 1 bad line in all: 1 of log.jsonl\n"
    )


def test_changes_after_the_last_event_are_checked_too(folder: Folder) -> None:
    folder.write("log.jsonl", [GOOD, change(9, "subscribe", "b", filter="x <")])
    folder.write("events.jsonl", events_at(2, x=1))
    assert folder.refused("match", *FILES).startswith("error: log.jsonl, line 2: subscription 'b':")


def test_what_follows_from_a_bad_change_is_bad(folder: Folder) -> None:
    folder.write("log.jsonl", [
        change(1, "subscribe", "b", filter="x <"),
        change(1, "subscribe", "c", filter="true"),
        change(2, "unsubscribe", "b"),
        change(3, "subscribe", "b", filter="true"),
    ])  # fmt: skip
    folder.write("events.jsonl", events_at(2, 3))
    ran = folder.run("match", *FILES, "--skip-bad")
    assert pairs(ran.out) == [(0, "c"), (1, "b"), (1, "c")]
    assert ran.err.endswith("skipped 2 bad lines in all: 2 of log.jsonl\n")


def test_subscribing_again_after_a_bad_subscribe_of_the_same_id(folder: Folder) -> None:
    """With nothing between the two, which are then subscribed together."""
    folder.write("log.jsonl", [
        change(1, "subscribe", "b", filter="x <"),
        change(1, "subscribe", "b", filter="true"),
        change(1, "subscribe", "b", filter="false"),
    ])  # fmt: skip
    folder.write("events.jsonl", events_at(1))
    ran = folder.run("match", *FILES, "--skip-bad")
    assert pairs(ran.out) == [(0, "b")]
    assert "line 1: subscription 'b': a value must follow '<'" in ran.err
    assert "line 3: there already is a subscription 'b'" in ran.err


def test_bad_events(folder: Folder) -> None:
    folder.write("log.jsonl", [GOOD])
    folder.write("events.jsonl", [{"x": 1}, *events_at(2, x=1)])
    reason = "events.jsonl, line 1: the event has no 'time', the attribute with its time"
    assert folder.refused("match", *FILES) == f"error: {reason}\n"
    assert pairs(folder.run("match", *FILES, "--skip-bad").out) == [(1, "a")]


def test_columns_of_changes(folder: Folder) -> None:
    folder.write_parquet("log.parquet", pa.table({"id": ["a"], "op": ["unsubscribe"]}))
    folder.write("events.jsonl", [])
    files = ("--changes", "log.parquet", "--events", "events.jsonl", "--event-time", "time")
    assert folder.refused("match", *files) == "error: log.parquet: there is no column 'time'\n"


# -- against the definition -------------------------------------------------------------------

FILTERS = {
    "x < :k": ["k"],
    "x between :k and :l + t": ["k", "l"],
    "x = :k + t": ["k"],
    "s = 'a' and x > :l": ["l"],
    "s != 'a' or x = :k": ["k"],
    "y is not null or time < now()": [],
    "x >= -3 + t and x <= 3 + t": [],
    "x > 5 * sin(t)": [],
}
HALVES = st.integers(0, 20).map(lambda half: half / 2)
VALUES = st.sampled_from([0, 1, 2, 3.5, -1, "a"])


@st.composite
def logs(draw: st.DrawFn) -> list[dict[str, object]]:
    """Valid logs, in any order; the changes of one subscription are of different times."""
    rows: list[dict[str, object]] = []
    for id in draw(st.lists(st.sampled_from("abcdef"), unique=True)):
        filter = ""
        for second in sorted(draw(st.lists(HALVES, unique=True, max_size=6))):
            op = (
                draw(st.sampled_from(["update", "update", "unsubscribe"]))
                if filter
                else "subscribe"
            )
            row = change(second, op, id)
            if op == "subscribe" or (op == "update" and draw(st.booleans())):
                row["filter"] = filter = draw(st.sampled_from(list(FILTERS)))
            if op != "unsubscribe":
                names = st.sampled_from(FILTERS[filter]) if FILTERS[filter] else st.nothing()
                row["params"] = draw(st.dictionaries(names, VALUES | st.none()))
            else:
                filter = ""
            rows.append(row)
    return draw(st.permutations(rows))


event_lists = st.lists(
    st.fixed_dictionaries(
        {"time": HALVES.map(at)}, optional={"x": VALUES, "y": VALUES, "s": st.sampled_from("ab")}
    ),
    max_size=40,
)


def moment(row: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(row["time"])


def as_of(log: list[dict[str, Any]], events: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """For each event and id, what the changes up to then have made of the subscription."""
    found: list[tuple[int, str]] = []
    in_order = sorted(log, key=moment)
    for index, event in enumerate(events):
        now = moment(event)
        for id in {row["id"] for row in log}:
            made = [row for row in in_order if row["id"] == id and moment(row) <= now]
            if not made or made[-1]["op"] == "unsubscribe":
                continue
            first = max(place for place, row in enumerate(made) if row["op"] == "subscribe")
            filter = [row["filter"] for row in made[first:] if "filter" in row][-1]
            params: dict[str, object] = {}
            for row in made[first:]:
                params |= row.get("params", {})
            t = (now - moment(made[first])).total_seconds()
            if parse(filter).matches({**event, "time": now}, params, t=t, now=now):
                found.append((index, id))
    return sorted(found)


@settings(max_examples=settings().max_examples // 2)
@given(logs(), event_lists, st.sampled_from([0, 8]))
def test_events_are_judged_as_of_their_time(
    log: list[dict[str, object]], events: list[dict[str, object]], alone_max: int
) -> None:
    with (
        tempfile.TemporaryDirectory() as path,
        mock.patch.object(pacing, "SINGLE_MAX", alone_max),
    ):
        folder = Folder(Path(path))
        outputs = []
        for engine in ("naive", "columnar"):
            assert replay(folder, engine, log, events) == as_of(log, events)
            folder.run("match", *FILES, "--engine", engine, "--output", engine)
            outputs.append((folder.path / engine).read_bytes())
        assert outputs[0] == outputs[1]


@settings(max_examples=settings().max_examples // 2)
@given(st.data(), st.sampled_from(["naive", "columnar", "poset", "rete", "summary"]))
def test_any_log_gives_what_its_fold_gives(data: st.DataObject, matcher: str) -> None:
    """Bad changes and changes of one time included."""
    log = data.draw(change_logs.logs())
    events = data.draw(change_logs.event_lists(log))
    events.sort(key=lambda event: event.time)
    variables = data.draw(change_logs.variable_values)
    engine = Engine(matcher=matcher, clock=lambda: None)
    engine.set_variables(**variables)
    made = ChangeLog(engine, InputFile("log"), BadLines(skip=True), Hints())
    in_order = sorted(enumerate(log), key=lambda numbered: numbered[1].time)
    time_us = np.array([to_us(event.time) for event in events], np.int64)
    found: list[tuple[int, str]] = []
    for begin, end in play(made, in_order, time_us):
        for index in range(begin, end):
            event = Event(events[index].attributes, events[index].time)
            found += [(index, id) for id in engine.match(event)]
    expected = change_logs.expected(log, events, variables)
    assert sorted(found) == [(each.event, each.subscription) for each in expected]


def test_a_long_log(folder: Folder) -> None:
    """Many changes and events: first interleaved, then a run of events after all changes."""
    rng = random.Random(1)
    log: list[dict[str, object]] = []
    for number in range(150):
        begun = rng.uniform(0, 50)
        log.append(
            change(begun, "subscribe", f"s{number}", filter="x < :k + t", params={"k": number})
        )
        for _ in range(rng.randrange(8)):
            params = {"k": rng.randrange(300)}
            log.append(change(rng.uniform(begun, 90), "update", f"s{number}", params=params))
        if rng.random() < 0.5:
            log.append(change(rng.uniform(90, 100), "unsubscribe", f"s{number}"))
    rng.shuffle(log)
    moments = [rng.uniform(0, 60) for _ in range(200)] + [rng.uniform(98, 110) for _ in range(300)]
    events = [{"time": at(moment), "x": rng.randrange(150, 500)} for moment in moments]
    rng.shuffle(events)
    found = {engine: replay(folder, engine, log, events) for engine in ("naive", "columnar")}
    assert found["naive"] == found["columnar"]
    some = rng.sample(range(len(events)), 20)
    assert [pair for pair in found["naive"] if pair[0] in some] == sorted(
        (some[place], id) for place, id in as_of(log, [events[index] for index in some])
    )

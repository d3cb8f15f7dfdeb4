from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.command_line import Folder, pairs
from tidegate.cli import pacing
from tidegate.cli.files.events import CHUNK_EVENTS
from tidegate.experiments.workloads import WORKLOADS
from tidegate.language.filters import parse

SUBSCRIPTIONS: list[dict[str, object]] = [
    {"id": "cheap", "filter": "price < :limit", "params": {"limit": 10}},
    {"id": "all IBM", "filter": "symbol = 'IBM'", "subscriber": "desk-7"},
    {"id": "Zürich", "filter": "place.city = 'Zürich' or closed = true"},
]
EVENTS: list[dict[str, object]] = [
    {"symbol": "IBM", "price": 9.5},
    {"symbol": "SUN", "price": 10, "closed": True},
    {"symbol": "IBM", "price": None, "place": {"city": "Zürich"}},
    {},
]
MATCHES = (
    '{"event": 0, "subscription": "all IBM"}\n'
    '{"event": 0, "subscription": "cheap"}\n'
    '{"event": 1, "subscription": "Zürich"}\n'
    '{"event": 2, "subscription": "Zürich"}\n'
    '{"event": 2, "subscription": "all IBM"}\n'
)

FILES = ("--subscriptions", "wanted.jsonl", "--events", "events.jsonl")


@pytest.fixture
def market(folder: Folder) -> Folder:
    folder.write("wanted.jsonl", SUBSCRIPTIONS)
    folder.write("events.jsonl", EVENTS)
    return folder


def at(second: float) -> str:
    return (datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=second)).isoformat()


# -- the matches ------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["naive", "columnar", "poset", "rete", "summary"])
def test_matches_are_ordered_by_event_then_id(market: Folder, engine: str) -> None:
    ran = market.run("match", *FILES, "--engine", engine)
    assert (ran.code, ran.out, ran.err) == (0, MATCHES, "")


def test_matches_in_a_file(market: Folder) -> None:
    ran = market.run("match", *FILES, "--output", "matches.jsonl")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert market.read("matches.jsonl") == MATCHES
    assert market.files() == ["events.jsonl", "matches.jsonl", "wanted.jsonl"]


def test_matches_as_parquet(market: Folder) -> None:
    market.run("match", *FILES, "--output", "matches.parquet")
    table = market.read_parquet("matches.parquet")
    assert table.schema.names == ["event", "subscription"]
    assert table.schema.types == [pa.int64(), pa.string()]
    assert [tuple(row.values()) for row in table.to_pylist()] == pairs(MATCHES)


def test_no_matches(folder: Folder) -> None:
    folder.write("wanted.jsonl", [])
    folder.write("events.jsonl", EVENTS)
    assert folder.match(*FILES) == []
    for name in ("matches.jsonl", "matches.parquet"):
        assert folder.run("match", *FILES, "--output", name).code == 0
    assert folder.read("matches.jsonl") == ""
    assert folder.read_parquet("matches.parquet").num_rows == 0


def test_no_events(folder: Folder) -> None:
    folder.write("wanted.jsonl", SUBSCRIPTIONS)
    folder.write("events.jsonl", [])
    assert folder.match(*FILES) == []


def test_the_index_counts_events_not_lines(folder: Folder) -> None:
    folder.write(
        "wanted.jsonl", [{"id": "a", "filter": "x = 1"}, "", {"id": "b", "filter": "x = 2"}]
    )
    folder.write("events.jsonl", ["", '{"x": 1}', "   ", '  {"x": 2}\r', '{"x": 1}', ""])
    assert folder.match(*FILES) == [(0, "a"), (1, "b"), (2, "a")]


def test_a_byte_order_mark_is_passed_over(folder: Folder) -> None:
    folder.write("wanted.jsonl", ['\N{BOM}{"id": "a", "filter": "x = 1"}'])
    folder.write("events.jsonl", ['\N{BOM}{"x": 1}'])
    assert folder.match(*FILES) == [(0, "a")]


def test_events_from_stdin(market: Folder) -> None:
    events = (market.path / "events.jsonl").read_bytes()
    ran = market.run("match", "--subscriptions", "wanted.jsonl", "--events", "-", stdin=events)
    assert (ran.code, ran.out, ran.err) == (0, MATCHES, "")


def test_bad_lines_of_stdin(market: Folder) -> None:
    ran = market.run("match", "--subscriptions", "wanted.jsonl", "--events", "-", stdin=b"{}\n[]\n")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: stdin, line 2: must be a JSON object, not a list\n"


def test_matches_of_many_subscriptions(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches shrink where each event matches much, and the file is the same."""
    folder.write("wanted.jsonl", [{"id": f"s{n}", "filter": f"x >= {n}"} for n in range(40)])
    folder.write("events.jsonl", [{"x": n % 60} for n in range(300)])
    expected = folder.match(*FILES)
    monkeypatch.setattr(pacing, "BATCH_MATCHES", 100)
    assert folder.match(*FILES) == expected
    assert len(expected) == sum(min(n % 60, 39) + 1 for n in range(300))


def test_many_chunks_are_as_one(folder: Folder) -> None:
    count = 2 * CHUNK_EVENTS + 10
    folder.write("wanted.jsonl", [
        {"id": "few", "filter": "x in (0, 19999, 20000, 40009)"},
        {"id": "half", "filter": f"x >= {count // 2}"},
    ])  # fmt: skip
    folder.write("events.jsonl", ({"x": index} for index in range(count)))
    found = folder.match(*FILES)
    assert [event for event, id in found if id == "few"] == [0, 19999, 20000, 40009]
    assert [event for event, id in found if id == "half"] == list(range(count // 2, count))
    assert found == sorted(found)
    table = pa.table({"x": range(count)})
    folder.write_parquet("events.parquet", table, row_group_size=7_000)
    assert folder.match("--subscriptions", "wanted.jsonl", "--events", "events.parquet") == found


@pytest.mark.slow  # starts the program twice
def test_the_program_itself(market: Folder) -> None:
    program = Path(sys.executable).parent / "tidegate"
    command = [str(program), "match", *FILES]
    ran = subprocess.run(command, cwd=market.path, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout.decode(), ran.stderr) == (0, MATCHES, b"")
    market.write("events.jsonl", ["{"])
    ran = subprocess.run(command, cwd=market.path, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(b"error: events.jsonl, line 1: not valid JSON: ")


# -- times ------------------------------------------------------------------------------------


def test_without_times_t_is_0_and_now_is_undefined(folder: Folder) -> None:
    folder.write("wanted.jsonl", [
        {"id": "t", "filter": "x = t", "since": at(0), "until": at(1)},
        {"id": "now", "filter": "time <= now()"},
        {"id": "string", "filter": f"time = '{at(5)}'"},
    ])  # fmt: skip
    folder.write("events.jsonl", [{"x": 0, "time": at(5)}, {"x": 5, "time": at(5)}])
    assert folder.match(*FILES) == [(0, "string"), (0, "t"), (1, "string")]


def test_event_time(folder: Folder) -> None:
    folder.write("wanted.jsonl", [
        {"id": "t", "filter": "x = t", "since": at(0)},
        {"id": "now", "filter": "time = now()"},
        {"id": "string", "filter": f"time = '{at(5)}'"},
        {"id": "since forever", "filter": "x = t"},
    ])  # fmt: skip
    folder.write("events.jsonl", [{"x": 0, "time": at(5)}, {"x": 5, "time": at(5)}])
    found = folder.match(*FILES, "--event-time", "time")
    assert found == [(0, "now"), (0, "since forever"), (1, "now"), (1, "t")]


def test_since_is_inclusive_and_until_exclusive(folder: Folder) -> None:
    folder.write("wanted.jsonl", [
        {"id": "both", "filter": "true", "since": at(1), "until": at(3)},
        {"id": "since", "filter": "true", "since": "2026-01-02T01:00:01+01:00"},
        {"id": "until", "filter": "true", "until": at(3)},
    ])  # fmt: skip
    seconds = [1, 0.999999, 3, 2.999999]
    folder.write("events.jsonl", [{"meta": {"at": at(second)}} for second in seconds])
    assert folder.match(*FILES, "--event-time", "meta.at") == [
        (0, "both"), (0, "since"), (0, "until"), (1, "until"),
        (2, "since"), (3, "both"), (3, "since"), (3, "until"),
    ]  # fmt: skip


def test_timestamps(folder: Folder) -> None:
    folder.write("wanted.jsonl", [
        {"id": "early", "filter": "a < timestamp '2026-01-02T00:00:02Z'"},
        {"id": "string", "filter": "b = 'x'"},
        {"id": "deep", "filter": "c.d > timestamp '2026-01-02T00:00:02Z'"},
    ])  # fmt: skip
    folder.write("events.jsonl", [{"a": at(1)}, {"a": at(2), "b": "x"}, {"c": {"d": at(3)}}])
    assert folder.match(*FILES, "--timestamps", "a, c.d") == [
        (0, "early"), (1, "string"), (2, "deep"),
    ]  # fmt: skip
    assert folder.match(*FILES) == [(1, "string")]


# -- numbers of JSON --------------------------------------------------------------------------


def test_numbers_are_exact(folder: Folder) -> None:
    folder.write("wanted.jsonl", [
        {"id": "int", "filter": "x = :v", "params": {"v": 2**53 + 1}},
        {"id": "max", "filter": "x = 9223372036854775807"},
        {"id": "infinite", "filter": "x = infinity"},
        {"id": "any", "filter": "x is not null"},
    ])  # fmt: skip
    lines = ["9007199254740993", "9007199254740992", str(2**63 - 1), "Infinity", "1e999", "NaN"]
    folder.write("events.jsonl", [f'{{"x": {line}}}' for line in lines])
    assert folder.match(*FILES) == [
        (0, "any"), (0, "int"), (1, "any"), (2, "any"), (2, "max"),
        (3, "any"), (3, "infinite"), (4, "any"), (4, "infinite"),
    ]  # fmt: skip


# -- Parquet ----------------------------------------------------------------------------------


def test_parquet_is_as_json_lines(market: Folder) -> None:
    market.write_parquet("wanted.parquet", pa.Table.from_pylist(SUBSCRIPTIONS))
    market.write_parquet("events.parquet", pa.Table.from_pylist(EVENTS, pa.schema(_EVENT_COLUMNS)))
    for engine in ("naive", "columnar"):
        for wanted in ("wanted.jsonl", "wanted.parquet"):
            files = ("--subscriptions", wanted, "--events", "events.parquet", "--engine", engine)
            assert market.run("match", *files).out == MATCHES


_EVENT_COLUMNS: Any = {
    "symbol": pa.dictionary(pa.int32(), pa.string()),
    "price": pa.float32(),
    "closed": pa.bool_(),
    "place": pa.struct([("city", pa.large_string())]),
}


@pytest.mark.parametrize(
    "params",
    [
        pa.array([{"v": 1, "w": None}, {"v": None, "w": 5}]),
        pa.array([[("v", 1)], [("w", 5)]], pa.map_(pa.string(), pa.int64())),
        pa.array(['{"v": 1}', '{"w": 5}']),
    ],
    ids=["struct", "map", "json"],
)
def test_params_in_parquet(folder: Folder, params: Any) -> None:
    table = pa.table({"id": ["a", "b"], "filter": ["x = :v", "x = :w"], "params": params})
    folder.write_parquet("wanted.parquet", table)
    folder.write("events.jsonl", [{"x": 1}, {"x": 5}])
    found = folder.match("--subscriptions", "wanted.parquet", "--events", "events.jsonl")
    assert found == [(0, "a"), (1, "b")]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_in_parquet(folder: Folder, unit: Any) -> None:
    kind = pa.timestamp(unit, "Europe/Zurich")
    moments = [datetime(2026, 1, 2, 0, 0, second, tzinfo=UTC) for second in range(3)]
    folder.write_parquet("wanted.parquet", pa.table({
        "id": ["a"], "filter": ["x = t"],
        "since": pa.array([moments[1]], kind), "until": pa.array([moments[2]], kind),
    }))  # fmt: skip
    folder.write_parquet("events.parquet", pa.table({"x": [0] * 3, "at": pa.array(moments, kind)}))
    files = ("--subscriptions", "wanted.parquet", "--events", "events.parquet")
    assert folder.match(*files, "--event-time", "at") == [(1, "a")]
    assert folder.match(*files) == [(0, "a"), (1, "a"), (2, "a")]


def test_times_as_strings_in_parquet(folder: Folder) -> None:
    folder.write("wanted.jsonl", [{"id": "a", "filter": "x = t and b < now()", "since": at(0)}])
    folder.write_parquet("events.parquet", pa.table({
        "x": [1, 5], "m": [{"at": at(1)}, {"at": at(2)}],
        "b": pa.array([at(0), None]).dictionary_encode(),
    }))  # fmt: skip
    found = folder.match(
        "--subscriptions", "wanted.jsonl", "--events", "events.parquet",
        "--event-time", "m.at", "--timestamps", "b",
    )  # fmt: skip
    assert found == [(0, "a")]


# -- bad lines --------------------------------------------------------------------------------

BAD_SUBSCRIPTIONS: list[tuple[Mapping[str, object] | str | bytes, str]] = [
    ('{"id": "a"', "not valid JSON: expecting ',' delimiter at column 11"),
    ('{"id": "a", "filter": "x = 1"} {}', "not valid JSON: extra data at column 32"),
    ("[]", "must be a JSON object, not a list"),
    ("7", "must be a JSON object, not the number 7"),
    (b'{"id": "\xff"}', "is not UTF-8"),
    ("[" * 100_000, "is nested too deeply"),
    ('{"id": "a", "filter": "x = 1", "id": "b"}', "the name 'id' occurs twice in one object"),
    ({"filter": "x = 1"}, "id: is missing"),
    ({"id": 7, "filter": "x = 1"}, "id: must be a string, not the number 7"),
    ({"id": "", "filter": "x = 1"}, "id: is empty"),
    (
        '{"id": "\\ud800", "filter": "x = 1"}',
        "id: a string must be valid Unicode, without lone surrogates",
    ),
    ({"id": "a"}, "filter: is missing"),
    ({"id": "a", "filter": True}, "filter: must be a string, not a boolean"),
    (
        {"id": "a", "filter": "x = 1", "colour": 1},
        "there is no field 'colour'; "
        "a subscription has id, filter, subscriber, params, evolve, since, until",
    ),
    (
        {"id": "a", "filter": "price < volume"},
        "subscription 'a': the right side of '<' must be a value; 'volume' would be an attribute. "
        "Write :volume for a parameter or 'volume' for a string\n"
        "  price < volume\n"
        "          ^^^^^^",
    ),
    (
        {"id": "a", "filter": "x < :v", "params": {"w": 1}},
        "subscription 'a': the filter has no parameter :w; it has :v",
    ),
    (
        {"id": "a", "filter": "x < :v", "params": {"v": [1]}},
        "subscription 'a': parameter :v: "
        "a list is not a value; send one event for each of its items",
    ),
    (
        {"id": "a", "filter": "x = 1", "params": [1]},
        "params: must be an object of names and values",
    ),
    (
        {"id": "a", "filter": "x = 1", "since": "today"},
        "since: 'today' is not a timestamp; write it as 2026-01-02T03:04:05Z",
    ),
    (
        {"id": "a", "filter": "x = 1", "until": 5},
        "until: must be a timestamp, as 2026-01-02T03:04:05Z",
    ),
    ({"id": "good", "filter": "x = 1"}, "there already is a subscription 'good'"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_SUBSCRIPTIONS)
def test_a_bad_subscription(folder: Folder, line: Any, reason: str) -> None:
    folder.write("wanted.jsonl", [{"id": "good", "filter": "x = 1"}, "", line])
    folder.write("events.jsonl", [{"x": 1}])
    said = folder.refused("match", *FILES, "--output", "matches.jsonl")
    assert said == f"error: wanted.jsonl, line 3: {reason}\n"
    ran = folder.run("match", *FILES, "--skip-bad")
    assert (ran.code, pairs(ran.out)) == (0, [(0, "good")])
    assert ran.err == (
        f"skipped: wanted.jsonl, line 3: {reason}\nskipped 1 bad line in all: 1 of wanted.jsonl\n"
    )


BAD_EVENTS: list[tuple[Mapping[str, object] | str | bytes, str]] = [
    ("{", "not valid JSON: expecting property name enclosed in double quotes at column 2"),
    ("null", "must be a JSON object, not null"),
    (b'{"x": "\xff"}', "is not UTF-8"),
    ('{"x": 1, "x": 1}', "the name 'x' occurs twice in one object"),
    ({"a": {"x": 1}, "a.x": 1}, "attribute 'a.x' is in the event twice"),
    ({"": 1}, "'': the name of an attribute is a string, not empty"),
    (
        {"a": {"x": [1]}},
        "attribute 'a.x': a list is not a value; send one event for each of its items",
    ),
    (
        {"x": 2**63},
        "attribute 'x': an integer must fit in 64 bits; a larger number can be sent as a float",
    ),
    (
        '{"x": ' + "9" * 5000 + "}",
        "attribute 'x': an integer must fit in 64 bits; a larger number can be sent as a float",
    ),
    ('{"x": "\\ud800"}', "attribute 'x': a string must be valid Unicode, without lone surrogates"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_EVENTS)
def test_a_bad_event(folder: Folder, line: Any, reason: str) -> None:
    folder.write("wanted.jsonl", [{"id": "a", "filter": "x = 1"}])
    folder.write("events.jsonl", [{"x": 1}, line, {"x": 1}])
    said = folder.refused("match", *FILES, "--output", "matches.jsonl")
    assert said == f"error: events.jsonl, line 2: {reason}\n"
    ran = folder.run("match", *FILES, "--skip-bad")
    assert (ran.code, pairs(ran.out)) == (0, [(0, "a"), (2, "a")])
    assert ran.err == (
        f"skipped: events.jsonl, line 2: {reason}\nskipped 1 bad line in all: 1 of events.jsonl\n"
    )


BAD_TIMES: list[tuple[object, str]] = [
    ({"x": 1}, "the event has no 'time', the attribute with its time"),
    ({"time": None}, "the event has no 'time', the attribute with its time"),
    (
        {"time": "noon"},
        "attribute 'time': 'noon' is not a timestamp; write it as 2026-01-02T03:04:05Z",
    ),
    ({"time": 5}, "attribute 'time': must be a timestamp, as '2026-01-02T03:04:05Z'"),
    (
        {"time": at(0), "b": "noon"},
        "attribute 'b': 'noon' is not a timestamp; write it as 2026-01-02T03:04:05Z",
    ),
    (
        {"time": at(0), "b": False},
        "attribute 'b': must be a timestamp, as '2026-01-02T03:04:05Z'",
    ),
]


@pytest.mark.parametrize(("line", "reason"), BAD_TIMES)
def test_a_bad_time(folder: Folder, line: Any, reason: str) -> None:
    folder.write("wanted.jsonl", [])
    folder.write("events.jsonl", [{"time": at(0)}, line])
    said = folder.refused("match", *FILES, "--event-time", "time", "--timestamps", "b")
    assert said == f"error: events.jsonl, line 2: {reason}\n"


def test_the_first_bad_lines_are_shown_in_order(folder: Folder) -> None:
    lines = ['{"id": "a", "filter": "x <"}', "{", *['{"id": 1}'] * 3, '{"id": "a", "filter": "x"}']
    folder.write("wanted.jsonl", [*lines, *["nothing"] * 10])
    folder.write("events.jsonl", ["{"])
    said = folder.refused("match", *FILES)
    starts = [line for line in said.splitlines() if line.startswith("error: ")]
    assert [line.split(":")[1] for line in starts[:-1]] == [
        f" wanted.jsonl, line {number}" for number in range(1, 11)
    ]
    assert starts[-1] == "error: ... and 6 more bad lines"


def test_bad_lines_of_both_files_are_skipped(folder: Folder) -> None:
    folder.write("wanted.jsonl", ["{", {"id": "a", "filter": "x = 1"}, *["nothing"] * 10])
    folder.write("events.jsonl", [{"x": 1}, "{", "[]", {"x": 1}])
    ran = folder.run("match", *FILES, "--skip-bad")
    assert (ran.code, pairs(ran.out)) == (0, [(0, "a"), (3, "a")])
    shown = ran.err.splitlines()
    assert len(shown) == 11
    assert shown[-1] == "skipped 13 bad lines in all: 11 of wanted.jsonl, 2 of events.jsonl"


def test_bad_lines_after_many_good_ones(folder: Folder) -> None:
    """What was matched before a bad line came is not written either."""
    folder.write("wanted.jsonl", [{"id": "a", "filter": "x = 1"}])
    folder.write("events.jsonl", [*[{"x": 1}] * (CHUNK_EVENTS + 1), "[]", {"x": 1}, "nothing"])
    assert folder.refused("match", *FILES, "--output", "matches.jsonl") == (
        f"error: events.jsonl, line {CHUNK_EVENTS + 2}: must be a JSON object, not a list\n"
        f"error: events.jsonl, line {CHUNK_EVENTS + 4}: "
        "not valid JSON: expecting value at column 1\n"
    )


def test_an_old_file_stays_on_an_error(market: Folder) -> None:
    market.write("matches.jsonl", ["old"])
    market.write("events.jsonl", ["{"])
    market.refused("match", *FILES, "--output", "matches.jsonl")
    assert market.read("matches.jsonl") == "old\n"


def test_bad_rows_of_parquet(folder: Folder) -> None:
    folder.write("wanted.jsonl", [{"id": "a", "filter": "x > 0"}])
    folder.write_parquet("events.parquet", pa.table({
        "x": pa.array([1, 2**63, 3, 4, None, 2**64 - 1], pa.uint64()),
        "at": [at(0), at(0), "noon", None, at(1), None],
    }))  # fmt: skip
    files = ("--subscriptions", "wanted.jsonl", "--events", "events.parquet")
    assert folder.refused("match", *files, "--event-time", "at") == (
        "error: events.parquet, row 1: column 'x': a value does not fit in 64 bits with a sign\n"
        "error: events.parquet, row 2: attribute 'at': 'noon' is not a timestamp; "
        "write it as 2026-01-02T03:04:05Z\n"
        "error: events.parquet, row 3: the event has no 'at', the attribute with its time\n"
        "error: events.parquet, row 5: the event has no 'at', the attribute with its time\n"
    )
    ran = folder.run("match", *files, "--event-time", "at", "--skip-bad")
    assert pairs(ran.out) == [(0, "a")]
    assert ran.err.endswith("skipped 4 bad lines in all: 4 of events.parquet\n")


def test_times_of_parquet_must_be_in_the_calendar(folder: Folder) -> None:
    times = pa.array([0, 2**62, None, -(2**62)], pa.timestamp("us"))
    reason = "a timestamp must lie in the years 1 to 9999 in UTC"
    folder.write("wanted.jsonl", [{"id": "a", "filter": "true"}])
    folder.write_parquet("events.parquet", pa.table({"x": times}))
    assert folder.refused("match", *FILES[:2], "--events", "events.parquet") == (
        f"error: events.parquet, row 1: column 'x': {reason}\n"
        f"error: events.parquet, row 3: column 'x': {reason}\n"
    )
    columns: Any = {"id": list("abcd"), "filter": ["true"] * 4, "since": times}
    folder.write_parquet("wanted.parquet", pa.table(columns))
    said = folder.refused(
        "match", "--subscriptions", "wanted.parquet", "--events", "events.parquet"
    )
    assert said == f"error: wanted.parquet: column 'since': {reason}\n"


def test_a_column_that_occurs_twice(market: Folder) -> None:
    columns: list[Any] = [pa.array(["a"]), pa.array(["b"]), pa.array(["true"])]
    table = pa.Table.from_arrays(columns, names=["id", "id", "filter"])
    market.write_parquet("wanted.parquet", table)
    said = market.refused("match", "--subscriptions", "wanted.parquet", *FILES[2:])
    assert said == "error: wanted.parquet: column 'id' occurs twice\n"


def test_strings_of_parquet_must_be_unicode(folder: Folder) -> None:
    folder.write("wanted.jsonl", [{"id": "a", "filter": "x != 'b'"}])
    text = pa.array([b"a", b"\xff", b"c"]).view(pa.string())
    folder.write_parquet("events.parquet", pa.table({"x": text}))
    files = ("--subscriptions", "wanted.jsonl", "--events", "events.parquet")
    assert "error: events.parquet, row 1: " in folder.refused("match", *files)
    assert pairs(folder.run("match", *files, "--skip-bad").out) == [(0, "a"), (2, "a")]


def test_bad_rows_of_subscriptions_in_parquet(folder: Folder) -> None:
    folder.write_parquet("wanted.parquet", pa.table({
        "id": ["a", None, "c", "d"],
        "filter": ["x = 1", "x = 2", "x <", "x = :v"],
        "params": [None, None, None, "{"],
    }))  # fmt: skip
    folder.write("events.jsonl", [{"x": 1}])
    files = ("--subscriptions", "wanted.parquet", "--events", "events.jsonl")
    assert folder.refused("match", *files) == (
        "error: wanted.parquet, row 1: id: is missing\n"
        "error: wanted.parquet, row 2: subscription 'c': a value must follow '<', "
        "but the text ends\n  x <\n     ^\n"
        "error: wanted.parquet, row 3: params: not valid JSON: "
        "expecting property name enclosed in double quotes at column 2\n"
    )
    assert pairs(folder.run("match", *files, "--skip-bad").out) == [(0, "a")]


# -- files that cannot be used ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["missing.jsonl", "missing.parquet"])
@pytest.mark.parametrize("option", ["--subscriptions", "--events"])
def test_a_missing_file(market: Folder, option: str, name: str) -> None:
    files = dict(zip(FILES[::2], FILES[1::2], strict=True)) | {option: name}
    said = market.refused("match", *(word for pair in files.items() for word in pair))
    assert said == f"error: {name}: cannot be read: No such file or directory\n"


@pytest.mark.parametrize("option", ["--subscriptions", "--events"])
def test_a_file_that_is_not_parquet(market: Folder, option: str) -> None:
    market.write("no.parquet", ["nothing"])
    files = dict(zip(FILES[::2], FILES[1::2], strict=True)) | {option: "no.parquet"}
    said = market.refused("match", *(word for pair in files.items() for word in pair))
    assert said.startswith("error: no.parquet: cannot be read as Parquet: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"id": ["a"]}, "there is no column 'filter'"),
        (
            {"id": ["a"], "filter": ["x = 1"], "colour": [1]},
            "there is no field 'colour'; "
            "a subscription has id, filter, subscriber, params, evolve, since, until",
        ),
    ],
)
def test_columns_of_subscriptions(market: Folder, columns: Any, reason: str) -> None:
    market.write_parquet("wanted.parquet", pa.table(columns))
    files = ("--subscriptions", "wanted.parquet", "--events", "events.jsonl")
    assert market.refused("match", *files, "--skip-bad") == f"error: wanted.parquet: {reason}\n"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"at": [at(0)], "x": [[1]]}, "column 'x': a list is not a value"),
        ({"x": [1]}, "there is no column 'at'"),
        ({"at": [1]}, "column 'at': must be timestamps or strings, not int64"),
        ({"at": [at(0)], "x": [{"y": 1}], "x.y": [1]}, "the table has two columns 'x.y'"),
    ],
)
def test_columns_of_events(market: Folder, columns: Any, reason: str) -> None:
    market.write_parquet("events.parquet", pa.table(columns))
    files = ("--subscriptions", "wanted.jsonl", "--events", "events.parquet")
    said = market.refused("match", *files, "--event-time", "at", "--skip-bad")
    assert said == f"error: events.parquet: {reason}\n"


def test_an_output_that_cannot_be_written(market: Folder) -> None:
    said = market.refused("match", *FILES, "--output", "nowhere/matches.jsonl")
    assert said == "error: nowhere/matches.jsonl: cannot be written: No such file or directory\n"
    (market.path / "folder").mkdir()
    said = market.refused("match", *FILES, "--output", "folder")
    assert said == "error: folder: cannot be written: Is a directory\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--events", "e"), "give one of --subscriptions and --changes"),
        ((*FILES, "--changes", "c"), "give one of --subscriptions and --changes"),
        (("--changes", "c", "--events", "e"), "--changes needs --event-time"),
        (("--subscriptions", "s"), "Missing option '--events'"),
        ((*FILES, "--engine", "magic"), "Invalid value for '--engine'"),
    ],
)
def test_usage(market: Folder, arguments: tuple[str, ...], reason: str) -> None:
    assert reason in market.refused("match", *arguments)


# -- against the language, whatever the files -------------------------------------------------

seconds = st.integers(0, 6).map(lambda half: half / 2)
numbers = st.sampled_from([0, 1, 2, 3, 0.5, -1, 2**53 + 1])
filters = st.sampled_from([
    "x < :v", "x between :v and 2 + t", "x = t", "x != :v or s = 'a'", "s in ('a', 'ü')",
    "s like '%a' and x >= :v * 2", "time <= now()", "x > 0 or true", "not (x = :v)",
    "d.e >= :v - t",
])  # fmt: skip
ids = st.text('ab"é\\\n\U0001f600', min_size=1, max_size=3)


@st.composite
def subscription_rows(draw: st.DrawFn) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for id in draw(st.lists(ids, unique=True, max_size=8)):
        text = draw(filters)
        row: dict[str, object] = {"id": id, "filter": text}
        if ":v" in text:
            row["params"] = {"v": draw(numbers)}
        for name in ("since", "until"):
            if draw(st.booleans()):
                row[name] = at(draw(seconds))
        rows.append(row)
    return rows


event_rows = st.lists(
    st.fixed_dictionaries(
        {"time": seconds.map(at)},
        optional={
            "x": st.one_of(numbers, st.none(), st.just("a")),
            "s": st.sampled_from(["a", "ba", "ü", "", 1]),
            "d": st.fixed_dictionaries({"e": numbers}),
        },
    ),
    max_size=20,
)


def matches_by_definition(
    rows: list[dict[str, object]], events: list[dict[str, object]]
) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for index, event in enumerate(events):
        now = datetime.fromisoformat(str(event["time"]))
        for row in rows:
            since = datetime.fromisoformat(str(row["since"])) if "since" in row else None
            until = datetime.fromisoformat(str(row["until"])) if "until" in row else None
            if (since and now < since) or (until and until <= now):
                continue
            params: Any = row.get("params", {})
            t = (now - since).total_seconds() if since else 0.0
            if parse(str(row["filter"])).matches({**event, "time": now}, params, t=t, now=now):
                found.append((index, str(row["id"])))
    return sorted(found)


@settings(max_examples=settings().max_examples // 3)
@given(subscription_rows(), event_rows, st.sampled_from([0, 8]))
def test_all_engines_and_formats_agree(
    rows: list[dict[str, object]], events: list[dict[str, object]], alone_max: int
) -> None:
    with (
        tempfile.TemporaryDirectory() as path,
        mock.patch.object(pacing, "SINGLE_MAX", alone_max),
    ):
        folder = Folder(Path(path))
        folder.write("wanted.jsonl", rows)
        folder.write("events.jsonl", events)
        for engine in ("naive", "columnar"):
            for name in (f"{engine}.jsonl", f"{engine}.parquet"):
                ran = folder.run(
                    "match", *FILES, "--event-time", "time", "--engine", engine, "--output", name,
                    "--no-hints",
                )  # fmt: skip
                assert (ran.code, ran.err) == (0, "")
        assert pairs(folder.read("naive.jsonl")) == matches_by_definition(rows, events)
        for name in ("jsonl", "parquet"):
            naive, columnar = (folder.path / f"{engine}.{name}" for engine in ("naive", "columnar"))
            assert naive.read_bytes() == columnar.read_bytes()
        table = folder.read_parquet("naive.parquet")
        assert [tuple(row.values()) for row in table.to_pylist()] == pairs(
            folder.read("naive.jsonl")
        )


@pytest.mark.parametrize("name", WORKLOADS)
def test_engines_agree_on_the_workloads(folder: Folder, name: str) -> None:
    workload = WORKLOADS[name]
    folder.write_parquet("wanted.parquet", workload.subscriptions(200))
    folder.write_parquet("events.parquet", workload.events(100))
    times = ("--event-time", "time") if workload.is_timed else ()
    for engine in ("naive", "columnar"):
        ran = folder.run(
            "match", "--subscriptions", "wanted.parquet", "--events", "events.parquet", *times,
            "--engine", engine, "--output", engine,
        )  # fmt: skip
        assert (ran.code, ran.err) == (0, "")
    assert folder.read("naive") == folder.read("columnar")


def test_ids_are_escaped_as_json_says(folder: Folder) -> None:
    names = ['quo"te', "back\\slash", "new\nline", "\x00", "\u2028", "\U0001f600", "é"]
    folder.write("wanted.jsonl", [{"id": name, "filter": "true"} for name in names])
    folder.write("events.jsonl", [{}])
    out = folder.run("match", *FILES).out
    assert [json.loads(line)["subscription"] for line in out.split("\n")[:-1]] == sorted(names)


# -- in a space -----------------------------------------------------------------------------------


@pytest.fixture
def trades(folder: Folder) -> Folder:
    types = {"symbol": "string", "price": "float", "volume": "integer", "at": "timestamp"}
    folder.write("space.json", [{"name": "trades", "attributes": types}])
    return folder


@pytest.mark.parametrize("engine", ["naive", "columnar"])
def test_strings_are_timestamps_where_the_space_says_so(trades: Folder, engine: str) -> None:
    rows: list[Mapping[str, object]] = [
        {"symbol": at(5), "at": at(5), "volume": 3.0},
        {"at": at(1), "volume": 4},
    ]
    trades.write("events.jsonl", rows)
    trades.write_parquet("events.parquet", pa.Table.from_pylist([dict(row) for row in rows]))
    late = f"at > timestamp '{at(2)}' and symbol = '{at(5)}'"
    trades.write(
        "wanted.jsonl", [{"id": "late", "filter": late}, {"id": "v", "filter": "volume=4"}]
    )
    for events in ("events.jsonl", "events.parquet"):
        given = ("--subscriptions", "wanted.jsonl", "--events", events, "--engine", engine)
        assert trades.match(*given) == [(1, "v")]
        assert trades.match(*given, "--space", "space.json") == [(0, "late"), (1, "v")]


@pytest.mark.parametrize("engine", ["naive", "columnar"])
def test_strings_of_parameters_are_timestamps_too(trades: Folder, engine: str) -> None:
    change = {"op": "update", "id": "a"}
    trades.write("log.jsonl", [
        {"time": at(0), "op": "subscribe", "id": "a", "filter": "at < :p", "params": {"p": at(2)}},
        {"time": at(4), **change, "params": {"p": "soon"}},
        {"time": at(5), **change, "params": {"p": at(7)}},
        {"time": at(8), **change, "filter": "at > :p and symbol != :q", "params": {"q": at(5)}},
    ])  # fmt: skip
    trades.write("events.jsonl", [{"at": at(time), "symbol": "x"} for time in range(1, 11)])
    given = ("--changes", "log.jsonl", "--events", "events.jsonl", "--event-time", "at")
    ran = trades.run("match", *given, "--space", "space.json", "--skip-bad", "--engine", engine)
    assert (ran.code, pairs(ran.out)) == (0, [(each, "a") for each in (0, 4, 5, 7, 8, 9)])
    assert "log.jsonl, line 2: parameter :p: 'soon' is not a timestamp; write it as" in ran.err
    trades.write("wanted.jsonl", [
        {"id": "a", "filter": "at < :p", "params": {"p": at(2)}},
        {"id": "b", "filter": "at < :p", "params": {"p": "soon"}},
    ])  # fmt: skip
    given = ("--subscriptions", "wanted.jsonl", "--events", "events.jsonl", "--space", "space.json")
    ran = trades.run("match", *given, "--skip-bad", "--engine", engine)
    assert (ran.code, pairs(ran.out)) == (0, [(0, "a")])
    assert "wanted.jsonl, line 2: subscription 'b': parameter :p: 'soon' is not a" in ran.err


def test_events_and_subscriptions_that_do_not_fit_are_bad_lines(trades: Folder) -> None:
    rows: list[dict[str, object]] = [{"price": 1}, {"prize": 1}, {"price": 1, "volume": 1.5}]
    trades.write("events.jsonl", rows)
    trades.write_parquet(
        "events.parquet", pa.table({"price": [1, None, 1], "prize": [None, 1, None],
                                    "volume": [None, None, 1.5]}))  # fmt: skip
    filters = {"a": "price < 5", "b": "prize < 5", "c": "price < :p"}
    subscriptions = [{"id": id, "filter": each} for id, each in filters.items()]
    subscriptions[2]["params"] = {"p": "low"}  # type: ignore[assignment]
    trades.write("wanted.jsonl", subscriptions)
    given = ("match", "--subscriptions", "wanted.jsonl", "--space", "space.json", "--events")
    said = trades.refused(*given, "events.jsonl")
    assert said.startswith(
        "error: wanted.jsonl, line 2: subscription 'b': space 'trades' has no attribute 'prize' "
        "(did you mean 'price'?)\n  prize < 5\n  ^^^^^\nerror: wanted.jsonl, line 3: subscription "
        "'c': price is a float in space 'trades'; compare it with a number, not :p, a string\n"
    )
    reasons = []
    for events in ("events.jsonl", "events.parquet"):
        ran = trades.run(*given, events, "--skip-bad")
        assert (ran.code, pairs(ran.out)) == (0, [(0, "a")])
        lines = [line for line in ran.err.splitlines() if line.startswith("skipped: events")]
        reasons.append([line.split(": ", 2)[2] for line in lines])
    assert (
        reasons[0]
        == reasons[1]
        == [
            "space 'trades' has no attribute 'prize' (did you mean 'price'?)",
            "attribute 'volume' is an integer in space 'trades', not the float 1.5",
        ]
    )


def test_changes_that_do_not_fit_are_bad_lines(trades: Folder) -> None:
    """The time of events is an attribute like any other."""
    change = {"op": "update", "id": "a"}
    trades.write("log.jsonl", [
        {"time": at(0), "op": "subscribe", "id": "a", "filter": "price < :p", "params": {"p": 5}},
        {"time": at(1), **change, "params": {"p": "low"}},
        {"time": at(2), **change, "filter": "prize < :p"},
        {"time": at(4), **change, "filter": "price > :p"},
    ])  # fmt: skip
    trades.write("events.jsonl", [{"at": at(3), "price": 1}, {"at": at(5), "price": 1}])
    given = ("--changes", "log.jsonl", "--events", "events.jsonl", "--event-time", "at")
    ran = trades.run("match", *given, "--space", "space.json", "--skip-bad")
    assert (ran.code, pairs(ran.out)) == (0, [(0, "a")])
    assert "log.jsonl, line 2: price is a float in space 'trades'" in ran.err
    assert "log.jsonl, line 3: subscription 'a': space 'trades' has no attribute 'prize'" in ran.err
    assert "there is no field" not in ran.err
    said = trades.refused("match", *given, "--space", "events.jsonl")
    assert said.startswith("error: events.jsonl: not valid JSON")

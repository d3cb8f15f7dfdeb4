from __future__ import annotations

import json

import pyarrow as pa
import pytest

from support.command_line import Folder

WANTED: list[dict[str, object] | str] = [
    {"id": "cheap", "filter": "symbol = 'IBM' and price < :limit", "params": {"limit": 10.0}},
    "this line is bad",
    {
        "id": "moving",
        "filter": "x >= -3 + t",
        "since": "2026-01-02T00:00:00Z",
        "until": "2026-01-03T00:00:00Z",
    },
]
IN_FILE = ("explain", "--subscriptions", "wanted.jsonl", "--id")


@pytest.fixture
def wanted(folder: Folder) -> Folder:
    folder.write("wanted.jsonl", WANTED)
    return folder


def test_a_match(wanted: Folder) -> None:
    ran = wanted.run(*IN_FILE, "cheap", "--event", '{"symbol": "IBM", "price": 9.5}')
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "subscription 'cheap' matches (t = 0 s)\n"
        "  yes  all of\n"
        "    yes  symbol = 'IBM'                    'IBM' against 'IBM'\n"
        "    yes  price < :limit                    9.5 against 10.0\n"
    )


def test_no_match(wanted: Folder) -> None:
    ran = wanted.run(*IN_FILE, "cheap", "--event", '{"price": 12}')
    assert (ran.code, ran.err) == (1, "")
    assert ran.out == (
        "subscription 'cheap' does not match (t = 0 s)\n"
        "  no   all of\n"
        "    no   symbol = 'IBM'                    the event has no such attribute\n"
        "    no   price < :limit                    12 against 10.0, off by 2\n"
        "missing from the event: symbol\n"
    )


def test_as_json(wanted: Folder) -> None:
    ran = wanted.run(*IN_FILE, "cheap", "--event", '{"symbol": "IBM", "price": 12}', "--json")
    assert (ran.code, ran.err) == (1, "")
    assert json.loads(ran.out) == {
        "subscription": "cheap",
        "matches": False,
        "in_force": True,
        "t": 0.0,
        "missing": [],
        "explanation": {
            "operator": "and",
            "holds": False,
            "parts": [
                {
                    "predicate": "symbol = 'IBM'",
                    "holds": True,
                    "value": "IBM",
                    "compared_with": ["IBM"],
                    "off": 0.0,
                },
                {
                    "predicate": "price < :limit",
                    "holds": False,
                    "value": 12,
                    "compared_with": [10.0],
                    "off": 2.0,
                },
            ],
        },
    }


@pytest.mark.parametrize(
    "time",
    [
        ("--time", "2026-01-02T00:00:05Z", "--event", '{"x": 2}'),
        ("--event-time", "m.at", "--event", '{"x": 2, "m": {"at": "2026-01-02T01:00:05+01:00"}}'),
    ],
)
def test_the_time_of_the_event(wanted: Folder, time: tuple[str, ...]) -> None:
    ran = wanted.run(*IN_FILE, "moving", *time)
    assert ran.out.startswith("subscription 'moving' matches (t = 5 s)\n")
    assert ran.code == 0


@pytest.mark.parametrize("time", ["2026-01-01T23:59:59Z", "2026-01-03T00:00:00Z"])
def test_outside_of_its_life_a_subscription_matches_nothing(wanted: Folder, time: str) -> None:
    ran = wanted.run(*IN_FILE, "moving", "--time", time, "--event", '{"x": 1000000}')
    assert ran.out.startswith("subscription 'moving' does not match")
    assert ran.code == 1


def test_a_filter(folder: Folder) -> None:
    ran = folder.run(
        "explain",
        "--filter",
        "price < :limit",
        "--params",
        '{"limit": 3}',
        "--event",
        '{"price": 4}',
    )
    assert (ran.code, ran.err) == (1, "")
    assert ran.out == (
        "subscription 'filter' does not match (t = 0 s)\n"
        "  no   price < :limit                    4 against 3, off by 1\n"
    )


def test_a_filter_that_moves(folder: Folder) -> None:
    ran = folder.run(
        "explain", "--filter", "x > t and at < now()", "--event", '{"x": 9, "at": "2026-01-02"}',
        "--timestamps", "at", "--since", "2026-01-02T00:00:00Z", "--time", "2026-01-02T00:00:08Z",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    assert "9 against 8.0" in ran.out


def test_infinities_as_json(folder: Folder) -> None:
    ran = folder.run("explain", "--filter", "x < 3", "--event", '{"x": Infinity}', "--json")
    assert '"value": "infinity"' in ran.out
    assert "Infinity" not in ran.out


def test_a_parquet_file(folder: Folder) -> None:
    folder.write_parquet("wanted.parquet", pa.table({"id": ["a", "b"], "filter": ["x <", "x < 3"]}))
    ran = folder.run(
        "explain", "--subscriptions", "wanted.parquet", "--id", "b", "--event", '{"x": 2}'
    )
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((*IN_FILE, "other", "--event", "{}"), "wanted.jsonl: there is no subscription 'other'"),
        ((*IN_FILE, "cheap", "--event", "{"), "--event: not valid JSON: expecting property name"),
        ((*IN_FILE, "cheap", "--event", '{"a": []}'), "--event: attribute 'a': a list is not a"),
        (
            (*IN_FILE, "cheap", "--event", "{}", "--time", "noon"),
            "--time: 'noon' is not a timestamp",
        ),
        (
            (*IN_FILE, "cheap", "--event", "{}", "--event-time", "at"),
            "--event: the event has no 'at'",
        ),
        (
            ("explain", "--subscriptions", "missing.jsonl", "--id", "a", "--event", "{}"),
            "missing.jsonl: cannot be read: No such file or directory",
        ),
        (
            ("explain", "--filter", "x < :k", "--params", "[]", "--event", "{}"),
            "--params: must be a JSON object, not a list",
        ),
        (
            ("explain", "--filter", "x < :k", "--params", '{"l": 1}', "--event", "{}"),
            "subscription 'filter': the filter has no parameter :l; it has :k",
        ),
        (
            ("explain", "--filter", "x < 3", "--since", "noon", "--event", "{}"),
            "--since: 'noon' is not a timestamp",
        ),
        (("explain", "--filter", "x <", "--event", "{}"), "a value must follow '<'"),
        (("explain", "--filter", "", "--event", "{}"), "subscription 'filter': "),
    ],
)
def test_bad_input(wanted: Folder, arguments: tuple[str, ...], reason: str) -> None:
    said = wanted.refused(*arguments)
    assert said.startswith("error: ")
    assert reason in said


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--event", "{}"), "give one of --subscriptions and --filter"),
        (
            ("--filter", "x = 1", "--subscriptions", "s", "--event", "{}"),
            "give one of --subscriptions and --filter",
        ),
        (("--subscriptions", "s", "--event", "{}"), "--subscriptions needs --id"),
        (
            ("--subscriptions", "s", "--id", "a", "--params", "{}", "--event", "{}"),
            "--params goes with --filter; the file has its own",
        ),
        (
            ("--filter", "x = 1", "--event", "{}", "--time", "a", "--event-time", "b"),
            "give one of --event-time and --time",
        ),
        (("--filter", "x = 1"), "Missing option '--event'"),
    ],
)
def test_usage(folder: Folder, arguments: tuple[str, ...], reason: str) -> None:
    assert reason in folder.refused("explain", *arguments)


def test_in_a_space_strings_become_timestamps_and_what_does_not_fit_is_refused(
    folder: Folder,
) -> None:
    space: dict[str, object] = {"at": "timestamp", "price": "float"}
    folder.write("s.json", [{"name": "trades", "attributes": space}])
    wanted = ("explain", "--space", "s.json", "--filter", "at > timestamp '2026-01-01'")
    assert folder.run(*wanted, "--event", '{"at": "2026-01-02T00:00:00Z"}').code == 0
    given = ("explain", "--space", "s.json", "--filter", "at > :p", "--params")
    event = ("--event", '{"at": "2026-01-02T00:00:00Z"}')
    assert folder.run(*given, '{"p": "2026-01-01"}', *event).code == 0
    assert folder.run(*given, '{"p": "2026-01-03"}', *event).code == 1
    said = folder.refused(*given, '{"p": "soon"}', *event)
    assert said.startswith("error: subscription 'filter': parameter :p: 'soon' is not a timestamp")
    said = folder.refused(*wanted, "--event", '{"prize": 1}')
    assert said == (
        "error: --event: space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
    )
    said = folder.refused(
        "explain", "--space", "s.json", "--filter", "price > 'a'", "--event", "{}"
    )
    assert said.startswith("error: subscription 'filter': price is a float in space 'trades'")
    assert said.endswith("\n  price > 'a'\n          ^^^\n")

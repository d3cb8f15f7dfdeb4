"""`tidegate backtest`, on files."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from support.command_line import Folder

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

EVENTS: list[dict[str, object]] = [
    {"symbol": "IBM", "price": 9.5, "time": "2026-01-02T09:00:10Z"},
    {"symbol": "SUN", "price": 4, "time": "2026-01-02T09:00:20Z"},
    {"symbol": "IBM", "Price": 1, "price": "none", "time": "2026-01-02T09:00:40Z"},
    {"symbol": "IBM", "price": 11, "time": "2026-01-02T09:01:00Z"},
]
WANTED: list[dict[str, object]] = [
    {"id": "cheap", "filter": "price < :limit", "params": {"limit": 10}, "subscriber": "desk-7"},
    {"id": "IBM", "filter": "symbol = 'IBM'"},
]
LOG: list[dict[str, object]] = [
    {"time": "2026-01-02T09:00:00Z", "op": "subscribe", **WANTED[0]},
    {"time": "2026-01-02T09:00:30Z", "op": "update", "id": "cheap", "params": {"limit": 12}},
]
TIMED = ("--events", "events.jsonl", "--event-time", "time")
TABLE = ("backtest", *TIMED, "--subscriptions", "wanted.jsonl")


@pytest.fixture
def market(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("events.jsonl", EVENTS)
    folder.write("wanted.jsonl", WANTED)
    folder.write("log.jsonl", LOG)
    return folder


def counts(folder: Folder, *arguments: str) -> tuple[int, ...]:
    """What is counted, where all is well: live, changed, entering, leaving."""
    found = counted(folder, *arguments)
    return tuple(found[name] for name in ("live", "changed", "entering", "leaving"))


def counted(folder: Folder, *arguments: str) -> dict[str, Any]:
    ran = folder.run(*arguments, "--json")
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, Any] = json.loads(ran.out)
    return found


# -- what is tried ----------------------------------------------------------------------------


def test_a_summary(market: Folder) -> None:
    ran = market.run(*TABLE, "--set", "cheap", "limit=5", "--unsubscribe", "IBM", "--every", "30s")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "4 events from 2026-01-02 09:00:10 to 09:01:00 UTC; 2 subscriptions differ",
        "",
        "            deliveries   over time, a mark for 30 s, the highest for 3",
        "live                 5   █▃▃",
        "changed              1   ▃",
        "entering             0",
        "leaving              4   ▆▃▃",
        "",
        "subscriber        live   changed  entering   leaving",
        "IBM                  3         0         0         3",
        "desk-7               2         1         0         1",
    ]


def test_a_new_filter_needs_no_live_table(market: Folder) -> None:
    filter = ("--filter", "price < :p + t", "--params", '{"p": 4}', "--subscriber", "eve")
    found = counted(market, "backtest", *TIMED, *filter)
    assert (found["changed"], found["entering"], found["events"]) == (2, 2, 4)
    assert found["subscribers"][0]["subscriber"] == "eve"
    timeless = ("--filter", "price >= 4", "--events", "events.jsonl")
    assert counts(market, "backtest", *timeless) == (0, 3, 3, 0)
    since = ("--filter", "price >= 4", "--since", "2026-01-02T09:01:00Z", "--id", "later")
    assert counts(market, *TABLE, *since) == (0, 1, 1, 0)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--set", "cheap", "limit=12"], (2, 3, 1, 0)),
        (["--set", "cheap", "limit=null"], (2, 0, 0, 2)),
        (["--set", "cheap", 'limit="zero"'], (2, 1, 1, 2)),
        (["--filter-of", "cheap", "price > :least", "--set", "cheap", "least=9"], (2, 2, 1, 1)),
        (
            [
                "--filter-of",
                "cheap",
                "time >= :from",
                "--set",
                "cheap",
                "from=timestamp '2026-01-02T09:00:20Z'",
            ],
            (2, 3, 2, 1),
        ),
        (["--unsubscribe", "cheap", "--since", "2026-01-02T09:00:20Z"], (2, 1, 0, 1)),
    ],
)
def test_changes(market: Folder, options: list[str], wanted: tuple[int, ...]) -> None:
    assert counts(market, *TABLE, *options) == wanted


def test_a_log(market: Folder) -> None:
    log = ("backtest", *TIMED, "--changes", "log.jsonl")
    assert counts(market, *log, "--set", "cheap", "limit=10") == (3, 2, 0, 1)
    assert counts(market, *log, "--instead", "wanted.jsonl") == (3, 5, 3, 1)
    assert counts(market, *TABLE, "--instead", "log.jsonl") == (5, 3, 1, 3)


def test_parquet(market: Folder) -> None:
    start = datetime(2026, 1, 2, tzinfo=UTC)
    times = pa.array([start + timedelta(days=n) for n in range(3)])
    prices = pa.array(["a", "b", "a"]).dictionary_encode()
    market.write_parquet("e.parquet", pa.table({"time": times, "p": prices}))
    table = pa.table({"id": ["s"], "filter": ["p = :p"], "params": [{"p": "a"}]})
    market.write_parquet("s.parquet", table)
    files = ("--events", "e.parquet", "--event-time", "time", "--subscriptions", "s.parquet")
    found = counted(market, "backtest", *files, "--set", "s", 'p="b"', "--every", "1d")
    assert [each["entering"] for each in found["buckets"]] == [0, 1, 0]
    assert [each["leaving"] for each in found["buckets"]] == [1, 0, 1]


def test_no_events(market: Folder) -> None:
    market.write("events.jsonl", [])
    assert counts(market, *TABLE, "--unsubscribe", "IBM") == (0, 0, 0, 0)
    ran = market.run(*TABLE, "--unsubscribe", "IBM", "--chart", "c.png")
    assert (ran.code, ran.err) == (0, "there are no events, so no chart was drawn\n")


# -- the chart --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chart.png", "chart.svg"])
def test_a_chart(market: Folder, name: str) -> None:
    ran = market.run(*TABLE, "--set", "cheap", "limit=12", "--chart", name)
    assert (ran.code, ran.err) == (0, f"drew {name}\n")
    assert (market.path / name).stat().st_size > 10_000


def test_a_chart_without_matplotlib(market: Folder) -> None:
    with mock.patch.dict(sys.modules, {"tidegate.spark.backtesting.chart": None}):
        ran = market.run(*TABLE, "--set", "cheap", "limit=12", "--chart", "c.png")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: --chart needs the extra `bench`: ")


def test_a_backtest_without_spark(market: Folder) -> None:
    with mock.patch.dict(sys.modules, {"tidegate.cli.spark_session": None}):
        ran = market.run(*TABLE, "--set", "cheap", "limit=12")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: a backtest needs the extra `spark`: ")


# -- what is wrong ----------------------------------------------------------------------------


def test_bad_lines(market: Folder) -> None:
    market.write("events.jsonl", [EVENTS[0], '{"price": [1]}', *EVENTS[1:]])
    market.write("wanted.jsonl", [*WANTED, {"id": "bad", "filter": "x <"}, WANTED[0]])
    arguments = (*TABLE, "--set", "cheap", "limit=12")
    said = market.refused(*arguments)
    assert said.startswith("error: wanted.jsonl, line 3: subscription 'bad': ")
    assert "error: wanted.jsonl, line 4: there already is a subscription 'cheap'" in said
    market.write("wanted.jsonl", WANTED)
    assert market.refused(*arguments).startswith("error: events.jsonl, line 2: attribute 'price'")
    ran = market.run(*arguments, "--skip-bad", "--json")
    assert (ran.code, json.loads(ran.out)["events"]) == (0, 4)
    assert ran.err.splitlines()[-1] == "skipped 1 bad line in all: 1 of events.jsonl"


def test_bad_changes(market: Folder) -> None:
    market.write("log.jsonl", [*LOG, {**LOG[1], "id": "z"}])
    said = market.refused("backtest", *TIMED, "--changes", "log.jsonl", "--unsubscribe", "cheap")
    assert said.startswith("error: log.jsonl, line 3: there is no subscription 'z' at 2026-01-02")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "say what to try: --filter, or --instead, or any of --set"),
        (["--filter", "x = 1", "--unsubscribe", "IBM"], "say what to try"),
        (["--instead", "log.jsonl", "--unsubscribe", "IBM"], "say what to try"),
        (["--unsubscribe", "IBM", "--params", "{}"], "--params goes with --filter"),
        (["--instead", "log.jsonl", "--since", "2026-01-02"], "--since does not go with --instead"),
        (
            ["--unsubscribe", "IBM", "--changes", "log.jsonl"],
            "one of --subscriptions and --changes",
        ),
        (["--set", "cheap", "limit"], "--set takes ID NAME=VALUE, and 'limit' is no NAME=VALUE"),
        (["--filter-of", "IBM", "a=1", "--filter-of", "IBM", "a=2"], "two filters to 'IBM'"),
        (["--unsubscribe", "IBM", "--chart", "c.txt"], "--chart takes a file of .pdf, .png, .svg"),
        (["--unsubscribe", "IBM", "--chart", "no/c.png"], "there is no folder 'no'"),
        (["--unsubscribe", "z"], "error: there is no subscription 'z'"),
        (["--set", "cheap", "least=1"], "'cheap': the filter has no parameter :least"),
        (["--set", "cheap", "limit=[1]"], "parameter :limit: a list is not a value"),
        (["--unsubscribe", "IBM", "--since", "soon"], "error: --since: 'soon' is not a timestamp"),
        (["--filter", "x = :p", "--params", "{"], "error: --params: not valid JSON"),
        (["--filter", "price < volume"], "\n  price < volume\n          ^^^^^^\n"),
        (["--filter-of", "IBM", "x <"], "error: subscription 'IBM': "),
        (["--unsubscribe", "IBM", "--every", "5 weeks"], "'5 weeks' is not a duration"),
        (["--unsubscribe", "IBM", "--every", "1ms"], "there would be 50,001 buckets of 1 ms"),
        (["--instead", "no.jsonl"], "no.jsonl: cannot be read"),
    ],
)
def test_what_is_refused(market: Folder, options: list[str], reason: str) -> None:
    assert reason in market.refused(*TABLE, *options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--unsubscribe", "IBM"], "give one of --subscriptions and --changes to compare with"),
        (["--changes", "log.jsonl", "--unsubscribe", "IBM"], "--changes needs --event-time"),
        (["--filter", "x = 1", "--since", "2026-01-02"], "--since needs --event-time"),
        (["--filter", "x = 1", "--every", "1s"], "--every needs --event-time"),
        (["--filter", "x = 1", "--chart", "c.png"], "--chart needs --event-time"),
        (
            ["--subscriptions", "wanted.jsonl", "--instead", "log.jsonl"],
            "log.jsonl is a log of changes, which needs --event-time",
        ),
    ],
)
def test_what_is_refused_without_times(market: Folder, options: list[str], reason: str) -> None:
    assert reason in market.refused("backtest", "--events", "events.jsonl", *options)


def test_a_session_that_is_there_is_left_as_it_is(market: Folder, spark: SparkSession) -> None:
    assert counts(market, *TABLE, "--unsubscribe", "IBM") == (3, 0, 0, 3)
    assert SparkSession.getActiveSession() is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


# -- in a space -----------------------------------------------------------------------------------


def test_a_backtest_in_a_space(market: Folder) -> None:
    types = {"symbol": "string", "price": "float", "time": "timestamp"}
    market.write("space.json", [{"name": "trades", "attributes": types}])
    market.write("events.jsonl", [EVENTS[0], EVENTS[1], EVENTS[3]])
    late = {"id": "late", "filter": "time > :p", "params": {"p": "2026-01-02T09:00:15Z"}}
    market.write("wanted.jsonl", [*WANTED, late])
    given = (*TABLE, "--space", "space.json")
    assert counts(market, *given, "--set", "late", 'p="2026-01-02T09:00:30Z"') == (2, 1, 0, 1)
    new = ("--filter", "time > :p", "--params")
    assert counts(market, *given, *new, '{"p": "2026-01-02T09:00:30Z"}') == (0, 1, 1, 0)
    said = market.refused(*given, "--set", "late", 'p="soon"')
    assert said.startswith("error: parameter :p: 'soon' is not a timestamp")
    said = market.refused(*given, "--set", "cheap", 'limit="low"')
    assert said.startswith("error: subscription 'cheap': price is a float in space 'trades'")
    said = market.refused(*given, "--filter-of", "cheap", "true or prize < :limit")
    assert said.startswith("error: subscription 'cheap': space 'trades' has no attribute 'prize'")
    market.write("wanted.jsonl", [{"id": "bad", "filter": "prize < 5"}])
    said = market.refused(*given, "--filter", "price < 5")
    assert said.startswith("error: wanted.jsonl, line 1: subscription 'bad': space 'trades' has no")
    market.write("wanted.jsonl", WANTED)
    market.write("events.jsonl", EVENTS)
    said = market.refused(*given, "--filter", "price < 5")
    assert "error: events.jsonl, line 3: space 'trades' has no attribute 'Price'" in said

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from support.command_line import Folder
from tidegate.cli.files import hints

EVENTS: list[dict[str, object]] = [
    {"symbol": "IBM", "price": 9.5, "at": "2026-01-02T03:04:05Z", "size": 1},
    {"symbol": "SUN", "price": None, "at": "2026-01-03T00:00:00Z", "size": "L"},
]


def hints_of(folder: Folder, *subscriptions: Mapping[str, object], options: str = "") -> list[str]:
    folder.write("wanted.jsonl", [{"id": f"s{n}", **row} for n, row in enumerate(subscriptions)])
    folder.write("events.jsonl", EVENTS)
    files = ("--subscriptions", "wanted.jsonl", "--events", "events.jsonl")
    ran = folder.run("match", *files, *options.split())
    assert ran.code == 0
    return [line.removeprefix("hint: ") for line in ran.err.splitlines()]


@pytest.mark.parametrize(
    ("filter", "hint"),
    [
        ("prcie > 3", "no event has the attribute prcie (did you mean price?)"),
        ("Price > 3", "no event has the attribute Price (did you mean price?)"),
        ("price > 3 or volume = 2", "no event has the attribute volume"),
        ("price = 'low'", "price is a number in all events, and is compared with a string"),
        ("price like 'l%'", "price is a number in all events, and `like` takes strings"),
        ("price < :limit", "parameter :limit has no value, and what is compared with it matches "
         "nothing"),
        ("at > timestamp '2026-01-01T00:00:00Z'", "at is a string in all events, and is compared "
         "with a timestamp; --timestamps at reads it as a timestamp"),
        ("price > 3 and price < 2", "no event can match the filter"),
    ],
)  # fmt: skip
def test_a_filter_that_looks_mistaken(folder: Folder, filter: str, hint: str) -> None:
    assert hints_of(folder, {"filter": filter}) == [f"subscription 's0': {hint}"]


@pytest.mark.parametrize(
    "filter",
    [
        "price > 3 and symbol != 'IBM'",
        "size = 1 or size = 'L'",  # events have both kinds
        "price > @floor",
        "price > 3 + t",
        "false",
    ],
)
def test_a_filter_that_may_be_meant(folder: Folder, filter: str) -> None:
    assert hints_of(folder, {"filter": filter}) == []


def test_the_text_of_a_time_is_named(folder: Folder) -> None:
    (hint,) = hints_of(folder, {"filter": "at > '2026-01-01'"}, options="--timestamps at")
    assert hint.endswith("a string; a time is written timestamp '2026-01-02T03:04:05Z'")


def test_one_mistake_is_said_once(folder: Folder) -> None:
    filters = [*(f"prcie > {n}" for n in range(3)), "prcie < 1 and price > 2"]
    (hint,) = hints_of(folder, *({"filter": each} for each in filters))
    assert hint.startswith("subscription 's0' and 3 others: no event has the attribute prcie")


def test_many_mistakes_are_counted(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "SHOWN_MAX", 2)
    found = hints_of(folder, *({"filter": f"z{n} = 1"} for n in range(5)))
    assert len(found) == 3
    assert found[-1] == "3 more"


def test_they_can_be_switched_off(folder: Folder) -> None:
    assert hints_of(folder, {"filter": "prcie > 3"}, options="--no-hints") == []


def test_a_parameter_may_be_set_by_a_later_change(folder: Folder) -> None:
    log: list[dict[str, object]] = [
        {"time": "2026-01-01T00:00:00Z", "op": "subscribe", "id": "a", "filter": "prcie < :limit"},
        {"time": "2026-01-02T00:00:00Z", "op": "update", "id": "a", "params": {"limit": 3}},
    ]
    folder.write("log.jsonl", log)
    folder.write("events.jsonl", EVENTS)
    ran = folder.run(
        "match", "--changes", "log.jsonl", "--events", "events.jsonl", "--event-time", "at"
    )
    assert ran.err == (
        "hint: subscription 'a': no event has the attribute prcie (did you mean price?)\n"
    )


def test_a_column_without_values_is_in_no_event(folder: Folder) -> None:
    folder.write("wanted.jsonl", [{"id": "a", "filter": "price > 1 and note = 'x'"}])
    table = pa.table({"price": [1.5], "note": pa.array([None], pa.string())})
    folder.write_parquet("events.parquet", table)
    ran = folder.run("match", "--subscriptions", "wanted.jsonl", "--events", "events.parquet")
    assert ran.err == "hint: subscription 'a': no event has the attribute note\n"


def test_no_events_give_no_hints_about_them(folder: Folder) -> None:
    folder.write("wanted.jsonl", [{"id": "a", "filter": "price > 1"}])
    folder.write("none.jsonl", [])
    ran = folder.run("match", "--subscriptions", "wanted.jsonl", "--events", "none.jsonl")
    assert (ran.code, ran.out, ran.err) == (0, "", "")

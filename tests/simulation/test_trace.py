from __future__ import annotations

import json

from support.traced_run import traced
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.routing import messages as m
from tidegate.routing.messages import Client, Key
from tidegate.simulation.trace import CONTENT_CHARS_MAX, Trace, content

LINES = traced("subscription")


def test_a_trace_is_the_same_each_time() -> None:
    assert traced("subscription") == LINES


def test_the_fields_of_lines() -> None:
    header, *records = map(json.loads, LINES)
    assert header["tidegate_trace"] == 2
    assert header["overlay"]["name"] == "random-graph"
    kinds = {record.get("kind") for record in records}
    assert {"Notify", "FilterDelta", "Deliver", "Announce", "Connect", "Accept"} <= kinds
    times = [record["us"] for record in records]
    assert times == sorted(times)
    message = next(record for record in records if record.get("kind") == "Notify")
    assert set(message) == {"us", "from", "to", "kind", "content"}


def test_content_of_messages() -> None:
    offers = m.AdvertisementDelta((), (Key(3, "b1"), Key(4, None)))
    assert content(offers) == "-3@b1; -4"
    assert content(m.Refused(m.Suspend(), "no")) == "Suspend: no"
    publication = m.Publication(Event.of({"x": 1}), m.Stamp("b", 0, 1), "p")
    notify = m.Notify(publication, "b", frozenset(["d", "c"]))
    assert content(notify) == "b:0:1 {'x': 1} on b for c, d"
    examined = m.Notify(publication, None, frozenset("d"), m.Examination("e", 0b101, 7))
    assert content(examined) == "b:0:1 {'x': 1} for d examined by e after 101"
    update = m.SummaryUpdate(3, ("a", "b"), (m.Validity("a", 1, 9),), b"xy")
    assert content(update) == "3 of a, b: 2 bytes 8fe62899; a 1..9"
    assert content(m.SummaryUpdate(4, (), (), b"xy")) == "4: 2 bytes 8fe62899"
    assert content(m.Echo("b", 1)) == "Echo(origin='b', number=1)"


def test_content_of_filter_deltas() -> None:
    updated = ((Key(3, "b1"), ((0, 5), (2, "a"))), (Key(4, None), ((1, 1.5),)))
    evolving = EvolvingFilter(parse("x < t"), 7)
    delta = m.FilterDelta(((Key(2, None), evolving),), (Key(1, None),), updated)
    assert content(delta) == "+2 x < t since 7 us; -1; ~3@b1 {0: 5, 2: 'a'}; ~4 {1: 1.5}"
    assert content(m.InForce("s", 3)) == "InForce(name='s', version=3)"


def test_content_of_deliveries() -> None:
    publication = m.Publication(Event.of({"x": 1}), m.Stamp("b", 0, 1), "p")
    named = m.Deliver(
        publication, (m.MatchedVersion("s", 3), m.MatchedVersion("u", 4)), unnamed=False
    )
    assert content(named) == "b:0:1 {'x': 1} for s 3, u 4"
    assert content(m.Deliver(publication)) == "b:0:1 {'x': 1}"


def test_long_content_is_cut_and_has_a_checksum() -> None:
    def line(last: str) -> str:
        lines: list[str] = []
        event = Event.of({"text": "x" * 500 + last})
        message = m.Deliver(m.Publication(event, m.Stamp("b", 0, 1), "p"))
        Trace(lines.append)(0, "b", Client("s"), message)
        return lines[0]

    assert len(line("a")) < CONTENT_CHARS_MAX + 150
    assert line("a") != line("b")

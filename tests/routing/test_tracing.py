"""A trace says who would get an event, and by which brokers, with all routings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.broker_network import Network
from tidegate.language.events import Event
from tidegate.routing.messages import Advertise, Client, Subscribe, Traced
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.strategies import STRATEGIES
from tidegate.routing.tracing import VISITS_MAX

LINE = [("a", "b"), ("b", "c"), ("b", "d")]
RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")]


def traced(network: Network, broker: str, event: dict[str, Any]) -> list[dict[str, Any]]:
    """The reports of a trace that begins at a broker."""
    reports: list[dict[str, Any]] = []
    traces = network.brokers[broker].traces
    network.now_us += 1
    number, sent = traces.begin(
        Event.of(event), Client("feed"), None, network.now_us, reports.append
    )
    network.take(broker, sent)
    network.run()
    traces.end(number)
    assert not network.refused
    return reports


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.sampled_from([(LINE, Architecture.ACYCLIC), (RING, Architecture.GENERAL)]),
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3), st.booleans()), max_size=6),
    st.lists(st.integers(-1, 5), max_size=4),
)
def test_a_trace_names_those_who_get_the_event(
    routing: str,
    overlay: tuple[list[tuple[str, str]], Architecture],
    wanted: list[tuple[str, int, bool]],
    events: list[int],
) -> None:
    links, architecture = overlay
    network = Network(links, routing, architecture)
    network.ask("a", "feed", Advertise("x is not null"))
    for number, (broker, low, has_name) in enumerate(wanted):
        name = "n" if has_name else None
        network.ask(broker, f"client{number}", Subscribe(f"x >= {low} and x < 4", name))
    network.wait()
    for x in events:
        before = {client: len(network.delivered(client)) for client in network.received}
        reports = traced(network, "a", {"x": x})
        assert before == {client: len(network.delivered(client)) for client in network.received}
        network.publish("a", "feed", x=x)
        network.run()
        got = sorted(client for client in before if len(network.delivered(client)) > before[client])
        assert got == sorted(each["client"] for r in reports for each in r["delivered"])
        expected = 1 + sum(len(each["passed_on"]) for each in reports)
        assert len(reports) == expected


def test_event_that_its_publisher_has_not_advertised() -> None:
    network = Network(LINE, "advertisement")
    [report] = traced(network, "a", {"x": 1})
    assert "has not advertised such an event" in report["refused"]


def test_report_finds_no_way_back_over_a_lost_link() -> None:
    network = Network(LINE)
    network.subscribe("c", "ann", "x > 0")
    network.run()
    reports: list[dict[str, Any]] = []
    _, sent = network.brokers["a"].traces.begin(
        Event.of({"x": 1}), Client("feed"), None, network.now_us, reports.append
    )
    network.take("a", sent)
    network.arrive("a", "b")
    network.cut("a", "b")
    network.run()
    assert [each["broker"] for each in reports] == ["a"]


def test_a_trace_that_goes_round_ends() -> None:
    network = Network([("a", "b")])
    network.subscribe("a", "ann", "x > 0")
    network.run()
    sent: list[Any] = []
    broker = network.brokers["b"]
    _, out = broker.traces.begin(Event.of({"x": 1}), Client("feed"), None, 1, lambda _: None)
    [(_, message)] = out
    for _ in range(VISITS_MAX + 5):
        sent += network.brokers["a"].handle(message, "b", network.now_us)
    assert len(sent) == VISITS_MAX


@pytest.mark.parametrize("report", ["", "[]", '{"broker": 5}', "{"])
def test_malformed_reports_are_refused(report: str) -> None:
    network = Network([("a", "b")])
    broker = network.brokers["a"]
    number, _ = broker.traces.begin(Event.of({"x": 1}), Client("feed"), None, 1, lambda _: None)
    [(_, answer)] = broker.handle(Traced("a", number, report), "b", network.now_us)
    assert "malformed" in str(answer)
    assert broker.handle(Traced("a", number + 1, report), "b", network.now_us) == []


def test_reports_are_json_of_a_bounded_size() -> None:
    network = Network([("a", "b")])
    for number in range(50):
        long = " or ".join(f"x = {n}.5" for n in range(200))
        network.subscribe("b", f"client{number}", f"({long}) and y = '{'z' * 1_000}'")
    network.run()
    [report] = traced(network, "b", {"x": 1, "y": "z"})
    assert report["others"] == 50
    assert len(json.dumps(report)) < 1 << 16

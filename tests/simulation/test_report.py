from __future__ import annotations

import json
from dataclasses import replace

from tidegate.simulation.clients import Tally
from tidegate.simulation.drawing.loads import loads_from_json
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.report import Delays, delays_of
from tidegate.simulation.scenario import Scenario, Simulation, SlowSubscribers
from tidegate.simulation.workloads import Demand

CHAIN = generate("chain", 3)
SCENARIO = Scenario(
    CHAIN,
    demand=Demand(publishers=2, subscribers=40, duration_s=1.0),
    processor_us=500,
    slow=SlowSubscribers(40, 50_000),
)
REPORT = Simulation(SCENARIO).run()


def test_lines() -> None:
    lines = dict(line.split(maxsplit=1) for line in REPORT.lines())
    assert lines["overlay"] == "chain, 3 brokers, 2 links"
    assert lines["run"] == "subscription routing, zipf workload, seed 0"
    assert lines["delivered"].endswith(f" of {REPORT.wanted:,} wanted, 0 spurious")
    assert lines["backlog"].startswith("up to ")
    assert "(queue " in lines["and"]
    assert "requests" not in lines
    with_crash = replace(REPORT, unheard=3)
    assert any("0 refused, 3 to brokers that were down" in line for line in with_crash.lines())


def test_figures_of_summaries() -> None:
    report = Simulation(replace(SCENARIO, routing="summaries")).run()
    figures = report.summaries
    assert figures is not None
    assert (figures.updates, figures.withdrawals) == (2, 0)
    lines = dict(line.split(maxsplit=1) for line in report.lines())
    assert lines["summaries"].startswith(f"2 updates of {figures.bytes:,} bytes, 0 withdrawals;")
    assert figures.link_hops == report.kinds["Notify"]
    assert json.loads(report.to_json())["summaries"]["event_hops"] == figures.event_hops
    assert REPORT.summaries is None


def test_one_of_something_is_not_in_the_plural() -> None:
    alone = replace(
        REPORT, brokers=1, links=(), published=1, backlog_max=1, link_messages=1, link_bytes=1,
        in_vain=1,
    )  # fmt: skip
    lines = {line[:14].strip(): line[14:] for line in alone.lines()}
    assert lines["overlay"] == "chain, 1 broker, 0 links"
    assert lines["published"] == "1 event"
    assert lines["backlog"] == "up to 1 delivery before one slow subscriber"
    assert lines["on links"] == "1 message, 1 byte"
    assert lines["in vain"] == "1 event that a broker had no use for"


def test_json() -> None:
    record = json.loads(REPORT.to_json())
    assert record["kinds"]["Publish"] == record["published"] == REPORT.published
    assert [each["name"] for each in record["loads"]] == [each.name for each in REPORT.loads]
    assert set(record["delays"]) == {"median_ms", "p99_ms", "max_ms"}


def test_loads_are_what_pictures_read() -> None:
    loads = loads_from_json(REPORT.loads_json(), CHAIN)
    assert sum(loads.links.values()) == REPORT.link_messages
    assert sum(loads.brokers.values()) == sum(each.handled for each in REPORT.loads)


def test_delays() -> None:
    tally = Tally()
    assert delays_of(tally) is None
    tally.delays_us.extend([*range(1_000, 100_000, 1_000), 500_000])
    assert delays_of(tally) == Delays(50.0, 99.0, 500.0)

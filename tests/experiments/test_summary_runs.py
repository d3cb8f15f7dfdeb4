"""Runs of networks that route by summaries, and that computed figures are what brokers send."""

from __future__ import annotations

import pytest

from tidegate.experiments.summary_runs import event_hops, simulated
from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.paper_networks import summaries13
from tidegate.simulation.overlays.plain_networks import one_domain

GRAPH = one_domain(
    "graph",
    "abcdef",
    [(a, b, 0.01) for a, b in ("ab", "bc", "cd", "de", "ea", "be", "bf")],
    Architecture.GENERAL,
)
"""A graph with circles: so each broker has a spanning tree of its own."""


@pytest.mark.slow  # propagates the subscriptions of 6 brokers in three networks
def test_brokers_send_what_was_computed() -> None:
    told: list[str] = []
    rows = list(simulated(12, 6, topology=GRAPH, progress=told.append))
    assert [row.method for row in rows] == ["summaries", "covering", "covering, one tree"]
    for row in rows:
        # Brokers send a batch as one summary, but filter by filter. A summary is sent on a period
        # after it came, and so a second time by those that had new subscriptions of their own.
        assert row.messages >= row.computed_messages > 0
        if row.method == "summaries":
            assert row.computed_bytes <= row.bytes < 3 * row.computed_bytes
        else:
            assert row.bytes == row.computed_bytes
    assert len(told) == 3


Hops = dict[tuple[str, int | None, bool, float], float]


@pytest.fixture(scope="module")
def hops() -> Hops:
    rows = list(event_hops(1, (0.1, 1.0), (None, 2), topology=summaries13()))
    for row in rows:
        assert row.link_hops >= row.hops
        assert 0 < row.matched_busiest <= 1
        assert row.matched_busiest <= row.matched <= 13
    return {(row.routing, row.degree_max, row.to_hubs, row.popularity): row.hops for row in rows}


def test_what_everybody_wants_comes_to_each_broker_once(hops: Hops) -> None:
    assert {value for (_, _, _, popularity), value in hops.items() if popularity == 1} == {12}


def test_virtual_degrees_cost_hops(hops: Hops) -> None:
    assert hops["summaries", 2, False, 0.1] > hops["summaries", None, False, 0.1]
    assert ("summaries", None, True, 0.1) in hops

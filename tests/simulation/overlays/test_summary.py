from __future__ import annotations

import pytest

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.overlays.summary import summarize


def test_figures() -> None:
    made = summarize(generate("summaries13"))
    assert (made.brokers, made.links, made.diameter_hops) == (13, 12, 7)
    assert made.mean_degree == pytest.approx(24 / 13)
    assert made.delays_s == (0.01, 0.01)
    assert (made.domains, made.regions) == ({Architecture.ACYCLIC: 1}, 0)


def test_lines() -> None:
    assert summarize(generate("gryphon")).lines() == [
        "name          gryphon",
        "brokers       39",
        "links         42",
        "diameter      5 hops",
        "mean degree   2.15",
        "delays        10 to 75 ms",
        "domains       1 general",
        "regions       3",
    ]


def test_one_broker() -> None:
    assert summarize(generate("centralized")).lines()[3:] == [
        "diameter      0 hops",
        "mean degree   0.00",
        "delays        none",
        "domains       none",
        "regions       none",
    ]


def test_several_domains() -> None:
    lines = summarize(generate("hierarchies-in-graph")).lines()
    assert "domains       6 hierarchical, 1 general" in lines

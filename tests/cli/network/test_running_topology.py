from __future__ import annotations

import pytest

from tidegate.cli.network.running_topology import overlay_of
from tidegate.errors import NetworkError
from tidegate.routing.overlay.domains import Architecture


def state(architecture: str = "acyclic") -> dict[str, object]:
    links = [{"a": "a", "b": "b", "cost_us": 1_500}, {"a": "b", "b": "c", "cost_us": 10}]
    domain = {"name": "main", "architecture": architecture, "brokers": ["a", "b", "c", "gone"],
              "links": links}  # fmt: skip
    return {"broker": "a", "domains": [domain]}


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [("acyclic", Architecture.ACYCLIC), ("general", Architecture.GENERAL),
     ("hierarchical", Architecture.ACYCLIC)],
)  # fmt: skip
def test_overlay_of_a_state(architecture: str, kind: Architecture) -> None:
    overlay = overlay_of(state(architecture))
    assert overlay.brokers == ("a", "b", "c")
    assert overlay.domains == {"main": kind}
    assert [(each.a, each.b, each.delay_s) for each in overlay.links] == [
        ("a", "b", 0.0015), ("b", "c", 0.00001),
    ]  # fmt: skip


def test_a_broker_alone() -> None:
    domain = {"name": "main", "architecture": "acyclic", "brokers": ["a"], "links": []}
    assert overlay_of({"broker": "a", "domains": [domain]}).brokers == ("a",)


def test_other_answers() -> None:
    with pytest.raises(NetworkError, match="has told no domains"):
        overlay_of({"broker": "a"})

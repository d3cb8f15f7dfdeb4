from __future__ import annotations

import pytest

from tidegate.experiments.parametric import SCENARIOS, measure, row, timed_costs
from tidegate.simulation.parametric import ChangeMethod


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_overlays_are_those_of_the_paper(scenario: str) -> None:
    adaptation = SCENARIOS[scenario](10.0, ChangeMethod.UPDATE, "poset", 1.0)
    topology = adaptation.topology
    assert len(topology.brokers) == 20
    assert len(adaptation.publishers) == (200 if scenario == "highway" else 5)
    assert scenario == "highway" or len(adaptation.subscribers) == 150


def test_a_run_goes_by_what_brokers_really_take() -> None:
    speed = measure("trading", ChangeMethod.UPDATE, 10.0, duration_s=0.5)
    assert {"Interests ~", "Notify", "Publish", "Update"} <= set(speed.costs_us)
    assert all(each >= 1 for each in speed.costs_us.values())
    assert 0 < speed.outcome.busiest < 1
    assert speed.outcome.missed == 0
    assert row(speed)["way"] == "update"
    assert row(speed)["missed"] == 0


def test_costs_are_timed_by_kind() -> None:
    adaptation = SCENARIOS["trading"](10.0, ChangeMethod.CANCEL_FIRST, "poset", 0.5)
    assert {"Cancel", "Interests +", "Interests -"} <= set(timed_costs(adaptation))

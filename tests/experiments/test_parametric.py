from __future__ import annotations

import pytest

from tidegate.experiments.parametric import SCENARIOS, measure, row, timed_costs
from tidegate.simulation.parametric_run import ChangeMethod

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_overlays_are_those_of_the_paper(scenario: str) -> None:
    settings = SCENARIOS[scenario](10.0, ChangeMethod.UPDATE, "poset", 1.0)
    topology = settings.topology
    assert len(topology.brokers) == 20
    assert len(settings.publishers) == (200 if scenario == "highway" else 5)
    assert scenario == "highway" or len(settings.subscribers) == 150


def test_a_run_charges_the_measured_times_of_brokers() -> None:
    speed = measure("trading", ChangeMethod.UPDATE, 10.0, duration_s=0.5)
    assert {"FilterDelta ~", "Notify", "Publish", "Update"} <= set(speed.costs_us)
    assert all(each >= 1 for each in speed.costs_us.values())
    assert 0 < speed.outcome.busiest < 1
    assert speed.outcome.missed == 0
    assert row(speed)["method"] == "update"
    assert row(speed)["missed"] == 0


def test_costs_are_timed_by_kind() -> None:
    settings = SCENARIOS["trading"](10.0, ChangeMethod.CANCEL_FIRST, "poset", 0.5)
    assert {"Cancel", "FilterDelta +", "FilterDelta -"} <= set(timed_costs(settings))

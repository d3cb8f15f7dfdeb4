from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tidegate.routing.messages import Message
from tidegate.simulation.costs import Costs
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.parametric_run import (
    HIGHWAY,
    TRADING,
    ChangeMethod,
    ParametricRun,
    ParametricScenario,
)

pytestmark = pytest.mark.slow

SMALL = replace(HIGHWAY, topics=8, reach=3.0, step=0.2)
CHAIN = generate("chain", 4)
ENDS = (CHAIN.brokers[0], CHAIN.brokers[-1])


def scenario(
    method: ChangeMethod, *, substrate: str = "poset", costs: Costs | None = None
) -> ParametricScenario:
    return ParametricScenario(
        SMALL,
        CHAIN,
        publishers=(ENDS[0],) * 2,
        subscribers=(ENDS[1],) * 8,
        changes_per_s=40.0,
        events_per_s=400.0,
        method=method,
        substrate=substrate,
        duration_s=2.0,
        costs=costs or Costs(),
    )


@pytest.mark.parametrize("substrate", ["poset", "naive"])
@pytest.mark.parametrize("costs", [Costs(), Costs(base_us=1_500)], ids=["free", "busy"])
def test_updates_miss_nothing_and_deliver_nothing_twice(substrate: str, costs: Costs) -> None:
    outcome = ParametricRun(
        scenario(ChangeMethod.UPDATE, substrate=substrate, costs=costs)
    ).outcome()
    assert outcome.changes > 50
    assert outcome.delivered_per_s > 1
    assert (outcome.missed, outcome.twice) == (0, 0)
    assert outcome.delay_ms is not None
    assert (
        outcome.delay_ms > 3 * 10 + 2 * 10
    )  # three links for the event, and access for the change and the event


def test_cancelling_first_misses_events() -> None:
    missed = (
        ParametricRun(scenario(ChangeMethod.CANCEL_FIRST, costs=Costs(base_us=1_500)))
        .outcome()
        .missed
    )
    assert missed > 0


def test_subscribing_first_delivers_events_twice() -> None:
    twice = (
        ParametricRun(scenario(ChangeMethod.SUBSCRIBE_FIRST, costs=Costs(base_us=1_500)))
        .outcome()
        .twice
    )
    assert twice > 0


def test_an_update_takes_fewer_messages() -> None:
    messages = {each: ParametricRun(scenario(each)).outcome().messages for each in ChangeMethod}
    assert 1.5 * messages[ChangeMethod.UPDATE] < messages[ChangeMethod.SUBSCRIBE_FIRST]
    assert 1.5 * messages[ChangeMethod.UPDATE] < messages[ChangeMethod.CANCEL_FIRST]


def test_updates_cause_fewer_spurious_events() -> None:
    far = replace(SMALL, step=3.0)
    spurious = {
        method: ParametricRun(replace(scenario(method), application=far)).outcome().spurious_per_s
        for method in ChangeMethod
    }
    assert 0 < 3 * spurious[ChangeMethod.UPDATE] < spurious[ChangeMethod.SUBSCRIBE_FIRST]


def test_one_seed_is_one_run() -> None:
    assert (
        ParametricRun(scenario(ChangeMethod.UPDATE)).outcome()
        == ParametricRun(scenario(ChangeMethod.UPDATE)).outcome()
    )


def test_brokers_can_be_timed() -> None:
    kinds: set[str] = set()

    def record(message: Message, seconds: float) -> None:
        assert seconds >= 0
        kinds.add(type(message).__name__)

    ParametricRun(scenario(ChangeMethod.UPDATE), record).outcome()
    assert {"Publish", "Notify", "Update", "FilterDelta"} <= kinds


def test_points_stay_within_the_extent() -> None:
    random = Random(1)
    for value in (0.0, 1.0, TRADING.extent):
        moved = [TRADING.moved(random, (value,)) for _ in range(50)]
        assert all(0 <= each <= TRADING.extent for (each,) in moved)
        assert len(set(moved)) > 5


def test_a_filter_matches_events_near_a_point() -> None:
    bounds = HIGHWAY.bounds((5.0, 7.0))
    near = HIGHWAY.filter().bind(topic=1, **bounds)
    assert near.matches({"topic": 1, "x": 6.9, "y": 5.1})
    assert not near.matches({"topic": 1, "x": 7.1, "y": 5.1})
    assert not near.matches({"topic": 2, "x": 6.9, "y": 5.1})

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tidegate.routing.messages import Message
from tidegate.simulation.costs import Costs
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.parametric import HIGHWAY, TRADING, Adaptation, ChangeMethod, ParametricRun

SMALL = replace(HIGHWAY, topics=8, around=3.0, step=0.2)
CHAIN = generate("chain", 4)
ENDS = (CHAIN.brokers[0], CHAIN.brokers[-1])


def adaptation(
    way: ChangeMethod, *, substrate: str = "poset", costs: Costs | None = None
) -> Adaptation:
    return Adaptation(
        SMALL,
        CHAIN,
        publishers=(ENDS[0],) * 2,
        subscribers=(ENDS[1],) * 8,
        changes_per_s=40.0,
        events_per_s=400.0,
        way=way,
        substrate=substrate,
        duration_s=2.0,
        costs=costs or Costs(),
    )


@pytest.mark.parametrize("substrate", ["poset", "naive"])
@pytest.mark.parametrize("costs", [Costs(), Costs(base_us=1_500)], ids=["free", "busy"])
def test_updates_miss_nothing_and_deliver_nothing_twice(substrate: str, costs: Costs) -> None:
    outcome = ParametricRun(
        adaptation(ChangeMethod.UPDATE, substrate=substrate, costs=costs)
    ).outcome()
    assert outcome.changes > 50
    assert outcome.delivered_per_s > 1
    assert (outcome.missed, outcome.twice) == (0, 0)
    assert outcome.delay_ms is not None
    assert outcome.delay_ms > 3 * 10 + 2 * 10  # the links and the way of the change


def test_subscribing_anew_leaves_a_gap() -> None:
    missed = (
        ParametricRun(adaptation(ChangeMethod.CANCEL_FIRST, costs=Costs(base_us=1_500)))
        .outcome()
        .missed
    )
    assert missed > 0


def test_two_subscriptions_at_a_time_give_events_twice() -> None:
    twice = (
        ParametricRun(adaptation(ChangeMethod.SUBSCRIBE_FIRST, costs=Costs(base_us=1_500)))
        .outcome()
        .twice
    )
    assert twice > 0


def test_an_update_takes_fewer_messages() -> None:
    messages = {way: ParametricRun(adaptation(way)).outcome().messages for way in ChangeMethod}
    assert 1.5 * messages[ChangeMethod.UPDATE] < messages[ChangeMethod.SUBSCRIBE_FIRST]
    assert 1.5 * messages[ChangeMethod.UPDATE] < messages[ChangeMethod.CANCEL_FIRST]


def test_what_comes_after_a_change_and_matched_before_it_is_spurious() -> None:
    far = replace(SMALL, step=3.0)
    spurious = {
        way: ParametricRun(replace(adaptation(way), application=far)).outcome().spurious_per_s
        for way in ChangeMethod
    }
    assert 0 < 3 * spurious[ChangeMethod.UPDATE] < spurious[ChangeMethod.SUBSCRIBE_FIRST]


def test_one_seed_is_one_run() -> None:
    assert (
        ParametricRun(adaptation(ChangeMethod.UPDATE)).outcome()
        == ParametricRun(adaptation(ChangeMethod.UPDATE)).outcome()
    )


def test_brokers_can_be_timed() -> None:
    kinds: set[str] = set()

    def note(message: Message, seconds: float) -> None:
        assert seconds >= 0
        kinds.add(type(message).__name__)

    ParametricRun(adaptation(ChangeMethod.UPDATE), note).outcome()
    assert {"Publish", "Notify", "Update", "Interests"} <= kinds


def test_points_stay_where_there_are_any() -> None:
    random = Random(1)
    for value in (0.0, 1.0, TRADING.span):
        moved = [TRADING.moved(random, (value,)) for _ in range(50)]
        assert all(0 <= each <= TRADING.span for (each,) in moved)
        assert len(set(moved)) > 5


def test_subscribers_ask_for_what_is_around_a_point() -> None:
    bounds = HIGHWAY.bounds((5.0, 7.0))
    near = HIGHWAY.filter().bind(topic=1, **bounds)
    assert near.matches({"topic": 1, "x": 6.9, "y": 5.1})
    assert not near.matches({"topic": 1, "x": 7.1, "y": 5.1})
    assert not near.matches({"topic": 2, "x": 6.9, "y": 5.1})

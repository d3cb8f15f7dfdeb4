"""Evolving filters cross each link once; then nothing is sent because time passes.

"Self-Evolving Subscriptions", 4: every broker evaluates the filter by itself, those away from the
subscriber with an estimate, the subscriber's own exactly.
"""

from __future__ import annotations

import pytest

from support.broker_network import Network
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.matching.poset.wanted_filter import EvolvingFilter, underlying_filter
from tidegate.routing.cell_updates import identity
from tidegate.routing.messages import (
    Cancel,
    FilterDelta,
    Key,
    MatchedVersion,
    Message,
    Notify,
    Publish,
    Subscribe,
    Update,
)
from tidegate.routing.overlay.domains import Architecture

SECOND = 1_000_000
LINE = [("a", "b"), ("b", "c"), ("c", "d")]
GAME = "x >= -3 + t and x <= 3 + t and y >= -2 + t and y <= 2 + t"
EVOLVE_MODES: list[Evolve | None] = [None, Lazy(), Periodic(1.0), Cached(1.0)]
every_evolve_mode = pytest.mark.parametrize("evolve", EVOLVE_MODES, ids=str)


class Watched(Network):
    """A network that records what goes over each link."""

    def __init__(self, *arguments: object, **more: object) -> None:
        self.passed: list[tuple[str, str, Message]] = []
        super().__init__(*arguments, **more)  # type: ignore[arg-type]
        self.passed.clear()

    def arrive(self, sender: str, receiver: str) -> None:
        self.passed.append((sender, receiver, self.waiting[sender, receiver][0]))
        super().arrive(sender, receiver)

    def count(self, kind: type[Message]) -> int:
        return sum(isinstance(message, kind) for _, _, message in self.passed)

    def publish_at(self, second: float, broker: str = "a", **attributes: object) -> None:
        """Publish an event when its time has come, and let it arrive."""
        self.now_us = max(self.now_us, round(second * SECOND))
        event = Event.of(attributes, from_us(round(second * SECOND)))
        self.ask(broker, "pub", Publish(event))
        self.run()


def evolving(text: str, evolve: Evolve | None = None, name: str = "s", **values: int) -> Subscribe:
    return Subscribe(text, name, values, evolve, version=1, origin_us=0)


@every_evolve_mode
@pytest.mark.parametrize("substrate", ["poset", "columnar"])
def test_nothing_is_sent_because_time_passes(evolve: Evolve | None, substrate: str) -> None:
    network = Watched(LINE, substrate=substrate)
    network.ask("d", "ann", evolving(GAME, evolve))
    network.ask("d", "bob", evolving("x < 5 * sin(t)", evolve))
    network.run()
    assert network.count(FilterDelta) == len(network.passed) == 6
    network.passed.clear()
    for second in range(1, 100):
        network.now_us = second * SECOND
        for broker in network.brokers.values():
            assert broker.due_us is None
            assert broker.wake(network.now_us) == []
    assert not any(network.waiting.values())
    for second in range(100, 110):
        network.publish_at(second, x=second, y=second)
    assert network.count(Notify) == len(network.passed) == 30
    assert len(network.delivered("ann")) == 10


@every_evolve_mode
@pytest.mark.parametrize("architecture", Architecture, ids=lambda each: each.value)
def test_it_crosses_each_link_once(evolve: Evolve | None, architecture: Architecture) -> None:
    links = [*LINE, ("d", "a"), ("b", "d")] if architecture is Architecture.GENERAL else LINE
    network = Watched(links, architecture=architecture)
    network.ask("a", "ann", evolving(GAME, evolve))
    network.run()
    crossed = [(sender, receiver) for sender, receiver, _ in network.passed]
    assert len(crossed) == len(set(crossed)) == 3
    for _, _, message in network.passed:
        assert isinstance(message, FilterDelta)
        ((_, item),) = message.added
        assert identity(item) == identity(EvolvingFilter(parse(GAME), 0, evolve))


@every_evolve_mode
def test_the_game_of_the_paper(evolve: Evolve | None) -> None:
    """Figure 1: an apple at (4, 3) is out of reach at first, and within it after a second."""
    network = Watched(LINE)
    network.ask("d", "ann", evolving(GAME, evolve))
    network.run()
    for second in (0, 0.5, 1, 1.5, 5, 5.5, 8):
        network.publish_at(second, x=4, y=3, at=second)
    assert [event["at"] for event in network.delivered("ann")] == [1, 1.5, 5]


@every_evolve_mode
def test_events_far_from_the_filter_stay_at_their_broker(evolve: Evolve | None) -> None:
    network = Watched(LINE)
    network.ask("d", "ann", evolving("x between t - 2 and t + 2", evolve))
    network.run()
    network.passed.clear()
    for second in range(50, 60):
        network.publish_at(second, x=second - 20)
        network.publish_at(second, x=second + 20)
    assert network.passed == []
    network.publish_at(60, x=62.5)  # a little too far: an estimate may let it through
    near = 3 if isinstance(evolve, Periodic | Cached) else 0
    assert network.count(Notify) == near
    assert network.delivered("ann") == []


def test_a_filter_that_is_wider_for_all_time_hides_others() -> None:
    network = Watched(LINE)
    network.ask("d", "ann", evolving("x < 9 + t"))
    network.run()
    network.passed.clear()
    network.ask("d", "bob", evolving("x < 5 + t"))
    network.ask("d", "cy", evolving("x < 5"))
    network.run()
    assert network.passed == []
    network.publish_at(10, x=14)
    assert network.delivered("bob") == [{"x": 14}]
    assert network.delivered("cy") == []


def test_a_filter_that_overtakes_another_one_is_not_hidden() -> None:
    network = Watched(LINE)
    network.ask("d", "ann", evolving("x < 9 + t"))
    network.ask("d", "bob", evolving("x < 5 + 2 * t"))
    network.run()
    assert network.count(FilterDelta) == 6
    network.publish_at(10, x=24)
    assert network.delivered("bob") == [{"x": 24}]
    assert network.delivered("ann") == []


def test_a_hidden_filter_is_sent_when_the_wider_one_is_cancelled() -> None:
    network = Watched(LINE)
    network.ask("d", "ann", evolving("x < 9 + t"))
    network.ask("d", "bob", evolving("x < 5 + t"))
    network.run()
    network.passed.clear()
    network.ask("d", "ann", Cancel("s"))
    network.run()
    cells = {message.updated[0][1] for _, _, message in network.passed}  # type: ignore[union-attr]
    assert cells == {((0, 5),)}  # the same function from the same moment: only a value differs
    assert len(network.passed) == 3


def test_a_parameter_inside_a_function() -> None:
    network = Watched(LINE)
    network.ask("d", "ann", evolving("x between :at - 1 + t and :at + 1 + t", at=0))
    network.run()
    network.passed.clear()
    network.ask("d", "ann", Update("s", 2, {"at": 100}))
    network.run()
    both_bounds = (Key(1, None), ((0, 100), (2, 100)))
    assert [message for *_, message in network.passed] == [FilterDelta(updated=(both_bounds,))] * 3
    network.passed.clear()
    for x in (10, 110):
        network.publish_at(10, x=x)
    assert network.delivered("ann") == [{"x": 110}]
    assert network.matches("ann") == [(MatchedVersion("s", 2),)]
    assert network.count(Notify) == 3


def test_a_filter_with_a_later_origin_is_another_filter() -> None:
    network = Watched(LINE)
    network.ask("d", "ann", evolving("x between t - 1 and t + 1"))
    network.ask("d", "bob", Subscribe("x between t - 1 and t + 1", "s", origin_us=30 * SECOND))
    network.run()
    for x in (10, 40):
        network.publish_at(40, x=x)
    assert network.delivered("ann") == [{"x": 40}]
    assert network.delivered("bob") == [{"x": 10}]


def test_variables_stay_at_home() -> None:
    """Other brokers do not know the variables, and only ask for the attribute."""
    network = Watched(LINE)
    network.ask("d", "ann", evolving("x < @limit and y < t"))
    network.run()
    items = {
        str(underlying_filter(item))
        for _, _, message in network.passed
        if isinstance(message, FilterDelta)
        for _, item in message.added
    }
    assert items == {"x is not null and y < t"}
    network.passed.clear()
    for limit in (5, 50):
        network.brokers["d"].variables.set(limit=limit)
        network.publish_at(9, x=10, y=3)
    assert network.delivered("ann") == [{"x": 10, "y": 3}]
    assert network.count(FilterDelta) == 0


def test_advertisements_that_it_can_ever_overlap_count() -> None:
    network = Watched(LINE, "advertisement")
    network.advertise("a", "pub", "x > 100")
    network.run()
    network.passed.clear()
    network.ask("d", "ann", evolving("x < t"))
    network.ask("d", "bob", evolving("x < 100 - t"))  # which never meets it
    network.run()
    assert network.count(FilterDelta) == 3
    network.publish_at(200, x=150)
    assert network.delivered("ann") == [{"x": 150}]
    assert network.delivered("bob") == []

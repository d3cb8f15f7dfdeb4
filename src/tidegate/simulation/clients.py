"""Publishers and subscribers of a simulation, and what they see."""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass, field

from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.values import to_us
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.routing import messages as m
from tidegate.routing.clients.client_state import ClientState
from tidegate.routing.messages import Message
from tidegate.simulation.topics import AT_LEAST
from tidegate.simulation.workloads import PublisherPlan, SubscriberPlan
from tidegate.simulation.world import World


@dataclass(slots=True)
class Tally:
    """What all clients together have done and seen."""

    published: int = 0
    wanted: int = 0
    """Deliveries that there should be, by the subscriptions at the times of publication."""
    delays_us: array[int] = field(default_factory=lambda: array("q"))
    """From publication to when the subscriber is done with it, for each delivery."""
    spurious: int = 0
    """Deliveries to those who no longer ask for such events."""
    refused: int = 0
    unheard: int = 0
    """Requests to a broker that was down."""
    backlog_max: int = 0
    """The most deliveries that a subscriber had before it."""


NAME = "wanted"
"""What a subscriber calls a subscription that it updates."""


class SimulatedPublisher:
    """Publishes by its plan."""

    def __init__(self, plan: PublisherPlan, world: World, tally: Tally) -> None:
        self.plan = plan
        self._world = world
        self._tally = tally

    def receive(self, message: Message, now_us: int) -> None:  # noqa: ARG002 - time is of no matter
        """Take what comes from the broker, which can only be a refusal."""
        self._tally.refused += isinstance(message, m.Refused)

    def introduce(self) -> None:
        """Say what will be published."""
        _request(
            self._world, self.plan, m.Advertise(self.plan.portfolio.advertisement()), self._tally
        )

    def publish(self, wanted: Interest) -> None:
        """Publish the next event."""
        event = self.plan.portfolio.event(self.plan.random, self._world.now_us)
        self._tally.published += 1
        self._tally.wanted += wanted.count(event)
        _request(self._world, self.plan, m.Publish(event), self._tally)


class SimulatedSubscriber:
    """Subscribes by its plan; takes ``service_us`` for each delivery, one after the other."""

    def __init__(
        self, plan: SubscriberPlan, world: World, tally: Tally, service_us: int = 0
    ) -> None:
        self.plan = plan
        self._world = world
        self._tally = tally
        self._service_us = service_us
        self._state = ClientState()
        self._filter = self._next()
        self._done_us: deque[int] = deque()
        """When it will be done with each delivery that it has."""

    def receive(self, message: Message, now_us: int) -> None:
        """Take what comes from the broker."""
        tally = self._tally
        if not isinstance(message, m.Deliver):
            tally.refused += isinstance(message, m.Refused)
            return
        event = message.publication.event
        tally.spurious += not self._filter.matches(event)
        assert event.time is not None  # publishers say it
        tally.delays_us.append(self._work(now_us) - to_us(event.time))

    def _work(self, now_us: int) -> int:
        """Queue a delivery; gives when it will be done."""
        if not self._service_us:
            return now_us
        queue = self._done_us
        while queue and queue[0] <= now_us:
            queue.popleft()
        done_us = (queue[-1] if queue else now_us) + self._service_us
        queue.append(done_us)
        self._tally.backlog_max = max(self._tally.backlog_max, len(queue))
        return done_us

    def _next(self) -> Filter:
        """What it asks for next; by its parameters, if it has a subscription with such."""
        if not self.plan.by_updates:
            return self.plan.wanted()
        values = self.plan.values()
        if NAME in self._state:
            self._update = self._state.update(NAME, values)
        else:
            self._state.subscribe(NAME, AT_LEAST, values, now_us=self._world.now_us)
        return AT_LEAST.bind(**values)

    def introduce(self) -> None:
        """Ask for what it wants, of a broker that knows nothing of it."""
        wanted = self._state.again() if self.plan.by_updates else [m.Subscribe(self._filter)]
        for each in wanted:
            self._request(each)

    def _request(self, message: Message) -> None:
        _request(self._world, self.plan, message, self._tally)

    def enter(self, interest: Interest) -> None:
        """Count among those who want something."""
        interest.add(self._filter)

    def change(self, interest: Interest) -> None:
        """Ask for something else."""
        interest.remove(self._filter)
        before, self._filter = self._filter, self._next()
        interest.add(self._filter)
        if self.plan.by_updates:
            self._request(self._update)
        else:
            self._request(m.Unsubscribe(before))
            self.introduce()


def _request(
    world: World, plan: PublisherPlan | SubscriberPlan, message: Message, tally: Tally
) -> None:
    tally.unheard += not world.sites[plan.broker].is_up
    world.request(plan.client, message)


class Interest:
    """Who wants what at the moment, wherever they are."""

    def __init__(self) -> None:
        self._poset: Poset[Filter] = Poset(FILTERS)
        self._counts: dict[PosetNode[Filter], int] = {}

    def add(self, wanted: Filter) -> None:
        """One more wants it."""
        node = self._poset.insert(wanted)
        self._counts[node] = self._counts.get(node, 0) + 1

    def remove(self, wanted: Filter) -> None:
        """One less wants it."""
        node = self._poset.find(wanted)
        assert node is not None
        self._counts[node] -= 1
        if not self._counts[node]:
            del self._counts[node]
            self._poset.remove(node)

    def count(self, event: Event) -> int:
        """How many want an event."""
        return sum(self._counts[node] for node in self._poset.matching(event))

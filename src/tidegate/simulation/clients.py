"""Publishers and subscribers of a simulation, and the count of what they do and receive."""

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
from tidegate.simulation.workloads import PublisherSchedule, SubscriberSchedule
from tidegate.simulation.world import World


@dataclass(slots=True)
class Tally:
    """Counts over all clients."""

    published: int = 0
    wanted: int = 0
    """Expected deliveries, by the subscriptions at the times of publication."""
    delays_us: array[int] = field(default_factory=lambda: array("q"))
    """For each delivery the time from publication until the subscriber has handled it."""
    spurious: int = 0
    """Deliveries to subscribers whose current filter does not match."""
    refused: int = 0
    unheard: int = 0
    """Requests to a broker that was down."""
    backlog_max: int = 0
    """The largest number of deliveries in the queue of one subscriber."""


SUBSCRIPTION_NAME = "wanted"
"""The name under which a subscriber with parameters subscribes."""


class SimulatedPublisher:
    """Publishes at the times of its schedule."""

    def __init__(self, schedule: PublisherSchedule, world: World, tally: Tally) -> None:
        self.schedule = schedule
        self._world = world
        self._tally = tally

    def receive(self, message: Message, now_us: int) -> None:  # noqa: ARG002 - of the protocol
        """Handle a message from the broker, which can only be a refusal."""
        self._tally.refused += isinstance(message, m.Refused)

    def advertise(self) -> None:
        """Advertise the events that will be published."""
        advertisement = self.schedule.portfolio.advertisement()
        _request(self._world, self.schedule, m.Advertise(advertisement), self._tally)

    def publish(self, expected: ExpectedDeliveries) -> None:
        """Publish the next event."""
        event = self.schedule.portfolio.event(self.schedule.random, self._world.now_us)
        self._tally.published += 1
        self._tally.wanted += expected.count(event)
        _request(self._world, self.schedule, m.Publish(event), self._tally)


class SimulatedSubscriber:
    """Subscribes and changes its filter at the times of its schedule.

    It handles one delivery after another and takes ``service_us`` for each.
    """

    def __init__(
        self, schedule: SubscriberSchedule, world: World, tally: Tally, service_us: int = 0
    ) -> None:
        self.schedule = schedule
        self._world = world
        self._tally = tally
        self._service_us = service_us
        self._state = ClientState()
        self._filter = self._next_filter()
        self._done_us: deque[int] = deque()
        """The time at which each delivery in its queue will have been handled."""

    def receive(self, message: Message, now_us: int) -> None:
        """Count a delivery or a refusal."""
        tally = self._tally
        if not isinstance(message, m.Deliver):
            tally.refused += isinstance(message, m.Refused)
            return
        event = message.publication.event
        tally.spurious += not self._filter.matches(event)
        assert event.time is not None  # set by the publisher
        tally.delays_us.append(self._queue_delivery(now_us) - to_us(event.time))

    def _queue_delivery(self, now_us: int) -> int:
        """Queue a delivery; returns when it will have been handled."""
        if not self._service_us:
            return now_us
        queue = self._done_us
        while queue and queue[0] <= now_us:
            queue.popleft()
        done_us = (queue[-1] if queue else now_us) + self._service_us
        queue.append(done_us)
        self._tally.backlog_max = max(self._tally.backlog_max, len(queue))
        return done_us

    def _next_filter(self) -> Filter:
        """Draw the next filter; with ``by_updates``, as new values of the same parameters."""
        if not self.schedule.by_updates:
            return self.schedule.next_filter()
        values = self.schedule.next_values()
        # `ClientState` gives each update the next version, so one that is drawn must be sent.
        if SUBSCRIPTION_NAME in self._state:
            self._update = self._state.update(SUBSCRIPTION_NAME, values)
        else:
            self._state.subscribe(SUBSCRIPTION_NAME, AT_LEAST, values, now_us=self._world.now_us)
        return AT_LEAST.bind(**values)

    def subscribe(self) -> None:
        """Subscribe at a broker that knows nothing of this client."""
        wanted = (
            self._state.resubscribe() if self.schedule.by_updates else [m.Subscribe(self._filter)]
        )
        for each in wanted:
            self._request(each)

    def _request(self, message: Message) -> None:
        _request(self._world, self.schedule, message, self._tally)

    def count_in(self, expected: ExpectedDeliveries) -> None:
        """Expect deliveries from now on."""
        expected.add(self._filter)

    def change(self, expected: ExpectedDeliveries) -> None:
        """Change the filter, by an update or by a new subscription."""
        expected.remove(self._filter)
        before, self._filter = self._filter, self._next_filter()
        expected.add(self._filter)
        if self.schedule.by_updates:
            self._request(self._update)
        else:
            self._request(m.Unsubscribe(before))
            self.subscribe()


def _request(
    world: World, schedule: PublisherSchedule | SubscriberSchedule, message: Message, tally: Tally
) -> None:
    tally.unheard += not world.sites[schedule.broker].is_up
    world.request(schedule.client, message)


class ExpectedDeliveries:
    """The filters of all subscribers at this moment, to count the deliveries that an event needs.

    The poset makes that fast where many subscribers have few different filters.
    """

    def __init__(self) -> None:
        self._poset: Poset[Filter] = Poset(FILTERS)
        self._counts: dict[PosetNode[Filter], int] = {}

    def add(self, filter: Filter) -> None:
        """Add the filter of a subscriber."""
        node = self._poset.insert(filter)
        self._counts[node] = self._counts.get(node, 0) + 1

    def remove(self, filter: Filter) -> None:
        """Remove the filter of a subscriber."""
        node = self._poset.find(filter)
        assert node is not None
        self._counts[node] -= 1
        if not self._counts[node]:
            del self._counts[node]
            self._poset.remove(node)

    def count(self, event: Event) -> int:
        """The number of subscribers whose filter matches an event."""
        return sum(self._counts[node] for node in self._poset.matching(event))

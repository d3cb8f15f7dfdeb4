"""Subscribers that keep changing their filters, by updates or by new subscriptions.

The two scenarios of Parametric Subscriptions, 5: cars on a highway that want events near them, and
traders whose limits follow the market. Each subscriber has one subscription and changes its values
again and again. Measured is what the paper measures:

- *delay*: the time from a change until the first event arrives that matches the new filter and not
  the old one;
- *spurious*: events that arrive after a change and match only the old filter;
- *delivered*: events that match the current filter, per second and subscriber;

and besides: *missed*, events that did not arrive although they match every filter that the
subscriber had around the time of publication; *twice*, events that arrive twice, or once for two
subscriptions of which one replaces the other; and the messages between brokers.
"""

from __future__ import annotations

from array import array
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from random import Random
from statistics import median

from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value, from_us
from tidegate.matching.poset.wanted_filter import event_us
from tidegate.matching.subscription import Subscription
from tidegate.routing import messages as m
from tidegate.routing.clients.client_state import ClientState, matches_now
from tidegate.routing.messages import Address, Client, Message, Peer, Stamp
from tidegate.simulation.arrivals import arrivals
from tidegate.simulation.costs import FREE, Costs
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.world import SilentClient, Stopwatch, World

WARM_UP_S = 0.5
"""Nothing is counted before this, in simulated time."""
ACCESS_DELAY_US = 10_000
"""The time from a client to its broker, and back; as long as the delay of a link."""
UNCERTAIN_US = 2_000_000
"""How long before and after its publication an event may be matched with an older or newer filter.

More than any change takes to reach all brokers. Within it, nobody can tell which one is right.
"""
_NEVER_US = 1 << 62


class ChangeMethod(Enum):
    """How a subscriber changes its filter.

    It is not notified when a new subscription has reached all brokers. So with SUBSCRIBE_FIRST,
    which must not miss events, it keeps the old one until an event arrives that matches only the
    new one (Parametric Subscriptions, 4.2).
    """

    UPDATE = "update"
    CANCEL_FIRST = "cancel, then subscribe"
    SUBSCRIBE_FIRST = "subscribe, then cancel"


@dataclass(frozen=True, slots=True)
class Application:
    """The events and filters of a scenario, and how filters change.

    An event has a topic and a point. A subscriber wants the events of one topic near a point of its
    own, so its filter has an equality, and a lower and an upper bound on each axis.
    """

    axes: tuple[str, ...]
    """The attributes that are the coordinates of a point."""
    topics: int
    extent: float
    """Coordinates are between 0 and this."""
    reach: float
    """The largest distance, on each axis, of wanted events from the point of a subscriber."""
    step: float
    """The largest change of a coordinate in one change of a filter."""

    def event(self, random: Random, now_us: int) -> Event:
        """Draw an event."""
        topic = random.randrange(self.topics)
        point = zip(self.axes, self.point(random), strict=True)
        return Event({"topic": topic, **dict(point)}, from_us(now_us))

    def point(self, random: Random) -> tuple[float, ...]:
        """Draw a point."""
        return tuple(random.uniform(0.0, self.extent) for _ in self.axes)

    def moved(self, random: Random, point: tuple[float, ...]) -> tuple[float, ...]:
        """Draw the point to which a subscriber moves in one change."""
        steps = [random.uniform(-self.step, self.step) for _ in self.axes]
        return tuple(
            max(0.0, min(self.extent, value + step))
            for value, step in zip(point, steps, strict=True)
        )

    def filter(self) -> Filter:
        """The filter of all subscribers, with their topic and bounds as parameters."""
        bounds = [f"{axis} between :{axis}_low and :{axis}_high" for axis in self.axes]
        return parse(" and ".join(["topic = :topic", *bounds]))

    def bounds(self, point: tuple[float, ...]) -> dict[str, Value]:
        """The values of a subscriber's parameters at a point, without the topic."""
        values: dict[str, Value] = {}
        for axis, value in zip(self.axes, point, strict=True):
            values |= {f"{axis}_low": value - self.reach, f"{axis}_high": value + self.reach}
        return values

    def advertisement(self) -> str:
        """The advertisement of all publishers."""
        return " and ".join(f"{name} is not null" for name in ("topic", *self.axes))


HIGHWAY = Application(("x", "y"), topics=20, extent=10.0, reach=2.0, step=1.0)
"""Cars want measurements near them: a topic is a kind of sensor, a point is a place."""
TRADING = Application(("price",), topics=200, extent=100.0, reach=20.0, step=10.0)
"""Traders want prices near one that they follow: a topic is a commodity."""


@dataclass(frozen=True, slots=True)
class ParametricScenario:
    """The settings of a run."""

    application: Application
    topology: Topology
    publishers: tuple[Peer, ...]
    """The broker of each publisher."""
    subscribers: tuple[Peer, ...]
    """The broker of each subscriber."""
    changes_per_s: float
    """Changes at each broker that has subscribers, by all of them together."""
    events_per_s: float
    """Events of all publishers together."""
    method: ChangeMethod = ChangeMethod.UPDATE
    routing: str = "subscription"
    substrate: str = "poset"
    duration_s: float = 5.0
    costs: Costs = FREE
    seed: int = 1


@dataclass(slots=True)
class ParametricTally:
    """Counts over all subscribers."""

    changes: int = 0
    delivered: int = 0
    spurious: int = 0
    twice: int = 0
    missed: int = 0
    delays_us: array[int] = field(default_factory=lambda: array("q"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of a run; the module's docstring explains them."""

    changes: int
    delay_ms: float | None
    """The median; None if no event matched only after a change."""
    spurious_per_s: float
    """Per subscriber."""
    delivered_per_s: float
    """Per subscriber; only events that arrived before the end."""
    missed: int
    twice: int
    messages: int
    """Messages between brokers that change filters."""
    bytes: int
    """The size of these messages."""
    busiest: float
    """The share of time that the busiest broker worked."""


class ChangingSubscriber:
    """A subscriber that changes its filter."""

    def __init__(self, run: ParametricRun, number: int, broker: Peer) -> None:
        scenario = run.scenario
        self._run = run
        self._random = Random(f"changer {number} of {scenario.seed}")
        self._state = ClientState()
        self.client = Client(f"s{number}")
        self._application = scenario.application
        self._point = self._application.point(self._random)
        self._topic = self._random.randrange(self._application.topics)
        self._filter = run.filter
        self._name = "0"
        self._outdated: list[str] = []
        """The names of subscriptions that are replaced and not yet cancelled."""
        self._before: Subscription | None = None
        """The subscription before the last change, until its delay has been measured."""
        self._changed_us = 0
        self._past: list[tuple[int, Subscription]] = []
        """All past subscriptions, with the time at which each ended."""
        self._seen: set[Stamp] = set()
        run.world.admit(self.client, self, broker)

    @property
    def current(self) -> Subscription:
        """The current subscription."""
        return self._state[self._name].subscription

    def begin(self) -> None:
        """Subscribe."""
        self._send(self._subscribe())

    def change(self) -> None:
        """Move to another point and change the filter accordingly."""
        self._before = self.current
        self._changed_us = self._run.world.now_us
        self._past.append((self._changed_us, self._before))
        self._point = self._application.moved(self._random, self._point)
        self._run.tally.changes += self._run.is_counted(self._changed_us)
        old = self._name
        match self._run.scenario.method:
            case ChangeMethod.UPDATE:
                self._send(self._state.update(old, self._application.bounds(self._point)))
            case ChangeMethod.CANCEL_FIRST:
                # In between no broker holds a filter, and events are missed.
                self._send(self._state.cancel(old))
                self._send(self._subscribe())
            case ChangeMethod.SUBSCRIBE_FIRST:
                # A new name, because a second subscription of the same name would be refused.
                self._name = str(int(old) + 1)
                self._outdated.append(old)
                self._send(self._subscribe())

    def _subscribe(self) -> m.Subscribe:
        values: dict[str, Value] = {"topic": self._topic, **self._application.bounds(self._point)}
        return self._state.subscribe(
            self._name, self._filter, values, now_us=self._run.world.now_us
        )

    def _send(self, request: Message) -> None:
        world = self._run.world
        world.at(world.now_us + ACCESS_DELAY_US, partial(world.request, self.client, request))

    def receive(self, message: Message, now_us: int) -> None:
        """Take a delivery after the delay from the broker to the client."""
        if isinstance(message, m.Deliver):
            self._run.world.at(now_us + ACCESS_DELAY_US, partial(self._count, message))

    def _count(self, message: m.Deliver) -> None:
        now_us = self._run.world.now_us
        tally, event = self._run.tally, message.publication.event
        stamp = message.publication.stamp
        tally.twice += len(message.matches) - 1 + (stamp in self._seen)
        self._seen.add(stamp)
        if self._outdated:
            self._cancel_outdated(event)
        if not self._run.is_counted(now_us):
            return
        if not matches_now(self.current, event):
            tally.spurious += 1
            return
        tally.delivered += 1
        if self._before is not None and not matches_now(self._before, event):
            tally.delays_us.append(now_us - self._changed_us)
            self._before = None

    def _cancel_outdated(self, event: Event) -> None:
        """Cancel replaced subscriptions that an event does not match.

        It has arrived nevertheless, so the new subscription has reached its publisher's broker.
        """
        for name in list(self._outdated):
            if not matches_now(self._state[name].subscription, event):
                self._outdated.remove(name)
                self._send(self._state.cancel(name))

    def misses(self, publication: m.Publication) -> bool:
        """Whether an event did not arrive that matches all filters around its time."""
        event = publication.event
        if event.attributes["topic"] != self._topic or publication.stamp in self._seen:
            return False
        if not matches_now(self.current, event):
            return False
        begin_us, end_us = event_us(event) - UNCERTAIN_US, event_us(event) + UNCERTAIN_US
        ends = [until_us for until_us, _ in self._past]
        around = self._past[bisect(ends, begin_us) : bisect(ends, end_us) + 1]
        return all(matches_now(each, event) for _, each in around)


class ParametricRun:
    """One run of a scenario."""

    def __init__(self, scenario: ParametricScenario, stopwatch: Stopwatch | None = None) -> None:
        self.scenario = scenario
        self.tally = ParametricTally()
        self.filter = scenario.application.filter()
        self.world = World(
            scenario.topology,
            scenario.routing,
            scenario.seed,
            costs=scenario.costs,
            substrate=scenario.substrate,
            stopwatch=stopwatch,
            observer=self._observe,
        )
        self._begin_us = 0
        self._end_us = 0
        self._published: dict[Stamp, m.Publication] = {}
        self._messages = self._bytes = 0
        self._subscribers = [
            ChangingSubscriber(self, number, broker)
            for number, broker in enumerate(scenario.subscribers)
        ]

    def is_counted(self, now_us: int) -> bool:
        """Whether a time is after the warm-up and before the end."""
        return self._begin_us <= now_us < self._end_us

    def _observe(self, now_us: int, _sender: Address, _receiver: Address, message: Message) -> None:
        """Keep publications, and count the messages that change filters."""
        if isinstance(message, m.Notify) and self.is_counted(event_us(message.publication.event)):
            self._published.setdefault(message.publication.stamp, message.publication)
        elif isinstance(message, m.FilterDelta) and self.is_counted(now_us):
            self._messages += 1
            self._bytes += FREE.bytes(message)

    def outcome(self) -> Outcome:
        """Run the scenario and return its figures."""
        scenario, world, tally = self.scenario, self.world, self.tally
        self._set_up()
        begun_us = world.now_us
        self._begin_us = begun_us + round(WARM_UP_S * 1e6)
        self._end_us = self._begin_us + round(scenario.duration_s * 1e6)
        self._schedule(begun_us)
        world.run(self._end_us)
        busiest = max(site.busy_us for site in world.sites.values()) / (self._end_us - begun_us)
        seconds = len(self._subscribers) * scenario.duration_s
        delivered, spurious = tally.delivered / seconds, tally.spurious / seconds
        messages, size = self._messages, self._bytes
        self._end_us = _NEVER_US  # count also what arrives now, so that it is not missed
        world.run()
        return Outcome(
            tally.changes,
            median(tally.delays_us) / 1e3 if tally.delays_us else None,
            spurious,
            delivered,
            self._missed(),
            tally.twice,
            messages,
            size,
            busiest,
        )

    def _missed(self) -> int:
        return sum(
            subscriber.misses(publication)
            for publication in self._published.values()
            for subscriber in self._subscribers
        )

    def _set_up(self) -> None:
        """Advertise, then subscribe, until all brokers have all filters."""
        advertisement = parse_advertisement(self.scenario.application.advertisement())
        for number, broker in enumerate(self.scenario.publishers):
            client = Client(f"p{number}")
            self.world.admit(client, SilentClient(), broker)
            self.world.request(client, m.Advertise(advertisement))
        self.world.run()
        for subscriber in self._subscribers:
            subscriber.begin()
        self.world.run()

    def _schedule(self, begun_us: int) -> None:
        scenario = self.scenario
        edges = len(set(scenario.subscribers))
        rate = scenario.changes_per_s * edges / max(1, len(self._subscribers))
        for number, subscriber in enumerate(self._subscribers):
            random = Random(f"changes {number} of {scenario.seed}")
            self._repeat(arrivals(random, rate), subscriber.change, begun_us)
        for number in range(len(scenario.publishers)):
            random = Random(f"events {number} of {scenario.seed}")
            rate = scenario.events_per_s / len(scenario.publishers)
            self._repeat(arrivals(random, rate), self._publish_action(number, random), begun_us)

    def _publish_action(self, number: int, random: Random) -> Callable[[], None]:
        client = Client(f"p{number}")

        def publish() -> None:
            event = self.scenario.application.event(random, self.world.now_us)
            self.world.request(client, m.Publish(event))

        return publish

    def _repeat(self, times_us: Iterator[int], action: Callable[[], None], begun_us: int) -> None:
        def schedule() -> None:
            time_us = begun_us + next(times_us, _NEVER_US)
            if time_us < self._end_us:
                self.world.at(time_us, tick)

        def tick() -> None:
            action()
            schedule()

        schedule()

"""Subscribers whose wishes change all the time: by updates, or by subscribing anew.

The two scenarios of "Parametric Subscriptions", 5: cars on a highway that ask for what happens near
them, and traders whose limits follow the market. Each subscriber has one subscription and changes a
value of it again and again. What is measured is what the paper measures:

- *delay*: from a change until the first event comes that matches since the change, and did not
  before it;
- *spurious*: events that come after a change and match only what was asked for before it;
- *delivered*: events that subscribers take, by second and subscriber;

and besides: *missed*, events that do not come though they match all that was asked for around the
time they were published, *twice*, events that come twice, or for two subscriptions of which one was
to take the place of the other, and the messages it takes.
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
from tidegate.routing.clients.client_state import ClientState, wants
from tidegate.routing.messages import Address, Client, Message, Peer, Stamp
from tidegate.simulation.arrivals import arrivals
from tidegate.simulation.costs import FREE, Costs
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.world import Stopwatch, World

WARM_UP_S = 0.5
"""What is published before this is not counted."""
ACCESS_US = 10_000
"""How long it takes from a client to its broker and back from there; a link takes as long."""
AROUND_US = 2_000_000
"""What was asked for so long before and after an event may be what it is judged by."""


class ChangeMethod(Enum):
    """How a subscriber changes what it asks for.

    It does not get to know when a new subscription has come to all brokers. So whoever subscribes
    anew and does not want to miss anything keeps the old one until an event comes which that does
    not match ("Parametric Subscriptions", 4.2).
    """

    UPDATE = "update"
    CANCEL_FIRST = "cancel, then subscribe"
    SUBSCRIBE_FIRST = "subscribe, then cancel"


@dataclass(frozen=True, slots=True)
class Application:
    """What is published, asked for and changed.

    An event is about a topic, at a point; subscribers ask for a topic and what lies around a point
    of their own. So of the predicates one part compares for equality, and equal parts are lower
    and upper bounds.
    """

    axes: tuple[str, ...]
    """The attributes that make a point."""
    topics: int
    span: float
    """Points are between 0 and this, on each axis."""
    around: float
    """How far from its point a subscriber asks, to each side."""
    step: float
    """How far a point goes in one change, at most, on each axis."""

    def event(self, random: Random, now_us: int) -> Event:
        """What a publisher publishes."""
        topic = random.randrange(self.topics)
        point = zip(self.axes, self.point(random), strict=True)
        return Event({"topic": topic, **dict(point)}, from_us(now_us))

    def point(self, random: Random) -> tuple[float, ...]:
        """Any point."""
        return tuple(random.uniform(0.0, self.span) for _ in self.axes)

    def moved(self, random: Random, point: tuple[float, ...]) -> tuple[float, ...]:
        """A point after a change."""
        steps = [random.uniform(-self.step, self.step) for _ in self.axes]
        return tuple(
            max(0.0, min(self.span, value + step)) for value, step in zip(point, steps, strict=True)
        )

    def filter(self) -> Filter:
        """What subscribers ask for."""
        bounds = [f"{axis} between :{axis}_low and :{axis}_high" for axis in self.axes]
        return parse(" and ".join(["topic = :topic", *bounds]))

    def bounds(self, point: tuple[float, ...]) -> dict[str, Value]:
        """The parameters of a subscriber at a point, but for the topic."""
        values: dict[str, Value] = {}
        for axis, value in zip(self.axes, point, strict=True):
            values |= {f"{axis}_low": value - self.around, f"{axis}_high": value + self.around}
        return values

    def offered(self) -> str:
        """What publishers advertise."""
        return " and ".join(f"{name} is not null" for name in ("topic", *self.axes))


HIGHWAY = Application(("x", "y"), topics=20, span=10.0, around=2.0, step=1.0)
"""A topic is what sensors measure, a point is a place; cars ask for what is around them."""
TRADING = Application(("price",), topics=200, span=100.0, around=20.0, step=10.0)
"""A topic is a commodity; traders ask for prices around one that they follow."""


@dataclass(frozen=True, slots=True)
class Adaptation:
    """One run."""

    application: Application
    topology: Topology
    publishers: tuple[Peer, ...]
    """Where publishers are, one for each name."""
    subscribers: tuple[Peer, ...]
    changes_per_s: float
    """How many changes there are at each broker that has subscribers."""
    events_per_s: float
    """Of all publishers together."""
    way: ChangeMethod = ChangeMethod.UPDATE
    routing: str = "subscription"
    substrate: str = "poset"
    duration_s: float = 5.0
    costs: Costs = FREE
    seed: int = 1


@dataclass(slots=True)
class ParametricTally:
    """What all subscribers have seen."""

    changes: int = 0
    delivered: int = 0
    spurious: int = 0
    twice: int = 0
    missed: int = 0
    delays_us: array[int] = field(default_factory=lambda: array("q"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run went."""

    changes: int
    delay_ms: float | None
    """The median; None if no event came because of a change."""
    spurious_per_s: float
    """By subscriber."""
    delivered_per_s: float
    """By subscriber, of events that came before the end."""
    missed: int
    twice: int
    messages: int
    """On links, for changes only."""
    bytes: int
    busiest: float
    """The share of its time that the busiest broker worked."""


class Changer:
    """A subscriber that changes what it asks for."""

    def __init__(self, run: ParametricRun, number: int, broker: Peer) -> None:
        adaptation = run.adaptation
        self._run = run
        self._random = Random(f"changer {number} of {adaptation.seed}")
        self._state = ClientState()
        self.client = Client(f"s{number}")
        self._application = adaptation.application
        self._point = self._application.point(self._random)
        self._topic = self._random.randrange(self._application.topics)
        self._filter = run.filter
        self._name = "0"
        self._outdated: list[str] = []
        """Subscriptions that are to be cancelled."""
        self._before: Subscription | None = None
        self._changed_us = 0
        self._asked: list[tuple[int, Subscription]] = []
        """All that it has asked for, and until when."""
        self._seen: set[Stamp] = set()
        run.world.admit(self.client, self, broker)

    @property
    def now(self) -> Subscription:
        """What it asks for."""
        return self._state[self._name].subscription

    def begin(self) -> None:
        """Subscribe."""
        self._send(self._subscribe())

    def change(self) -> None:
        """Ask for something else."""
        self._before = self.now
        self._changed_us = self._run.world.now_us
        self._asked.append((self._changed_us, self._before))
        self._point = self._application.moved(self._random, self._point)
        self._run.tally.changes += self._run.counts(self._changed_us)
        old = self._name
        match self._run.adaptation.way:
            case ChangeMethod.UPDATE:
                self._send(self._state.update(old, self._application.bounds(self._point)))
            case ChangeMethod.CANCEL_FIRST:
                self._send(self._state.cancel(old))
                self._send(self._subscribe())
            case ChangeMethod.SUBSCRIBE_FIRST:
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
        world.at(world.now_us + ACCESS_US, partial(world.request, self.client, request))

    def receive(self, message: Message, now_us: int) -> None:
        """Get what comes from the broker, after a while."""
        if isinstance(message, m.Deliver):
            self._run.world.at(now_us + ACCESS_US, partial(self._take, message))

    def _take(self, message: m.Deliver) -> None:
        now_us = self._run.world.now_us
        tally, event = self._run.tally, message.publication.event
        stamp = message.publication.stamp
        tally.twice += len(message.matches) - 1 + (stamp in self._seen)
        self._seen.add(stamp)
        if self._outdated:
            self._cancel_outdated(event)
        if not self._run.counts(now_us):
            return
        if not wants(self.now, event):
            tally.spurious += 1
            return
        tally.delivered += 1
        if self._before is not None and not wants(self._before, event):
            tally.delays_us.append(now_us - self._changed_us)
            self._before = None

    def _cancel_outdated(self, event: Event) -> None:
        """An event has come that some do not match, so another subscription is there by now."""
        for name in list(self._outdated):
            if not wants(self._state[name].subscription, event):
                self._outdated.remove(name)
                self._send(self._state.cancel(name))

    def misses(self, publication: m.Publication) -> bool:
        """Whether an event has not come that matches all that was asked for around its time."""
        event = publication.event
        if event.attributes["topic"] != self._topic or publication.stamp in self._seen:
            return False
        if not wants(self.now, event):
            return False
        begin_us, end_us = event_us(event) - AROUND_US, event_us(event) + AROUND_US
        ends = [until_us for until_us, _ in self._asked]
        around = self._asked[bisect(ends, begin_us) : bisect(ends, end_us) + 1]
        return all(wants(each, event) for _, each in around)


class ParametricRun:
    """Subscribers, publishers and brokers, and what is seen of them."""

    def __init__(self, adaptation: Adaptation, stopwatch: Stopwatch | None = None) -> None:
        self.adaptation = adaptation
        self.tally = ParametricTally()
        self.filter = adaptation.application.filter()
        self.world = World(
            adaptation.topology,
            adaptation.routing,
            adaptation.seed,
            costs=adaptation.costs,
            substrate=adaptation.substrate,
            stopwatch=stopwatch,
            watcher=self._watch,
        )
        self._begin_us = 0
        self._end_us = 0
        self._published: dict[Stamp, m.Publication] = {}
        self._messages = self._bytes = 0
        self._changers = [
            Changer(self, number, broker) for number, broker in enumerate(adaptation.subscribers)
        ]

    def counts(self, now_us: int) -> bool:
        """Whether it is after the beginning and before the end."""
        return self._begin_us <= now_us < self._end_us

    def _watch(
        self,
        now_us: int,
        sender: Address,  # noqa: ARG002 - whoever sends it
        receiver: Address,  # noqa: ARG002 - whoever gets it
        message: Message,
    ) -> None:
        """Take note of what is published, and of what it takes to change what is asked for."""
        if isinstance(message, m.Notify) and self.counts(event_us(message.publication.event)):
            self._published.setdefault(message.publication.stamp, message.publication)
        elif isinstance(message, m.Interests) and self.counts(now_us):
            self._messages += 1
            self._bytes += FREE.bytes(message)

    def outcome(self) -> Outcome:
        """Run it."""
        adaptation, world, tally = self.adaptation, self.world, self.tally
        self._introduce()
        begun_us = world.now_us
        self._begin_us = begun_us + round(WARM_UP_S * 1e6)
        self._end_us = self._begin_us + round(adaptation.duration_s * 1e6)
        self._schedule(begun_us)
        world.run(self._end_us)
        busiest = max(site.busy_us for site in world.sites.values()) / (self._end_us - begun_us)
        seconds = len(self._changers) * adaptation.duration_s
        delivered, spurious = tally.delivered / seconds, tally.spurious / seconds
        messages, size = self._messages, self._bytes
        self._end_us = 1 << 62  # what is still on its way is not missed
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
            changer.misses(publication)
            for publication in self._published.values()
            for changer in self._changers
        )

    def _introduce(self) -> None:
        """Have all clients there, and what they ask for everywhere."""
        offered = parse_advertisement(self.adaptation.application.offered())
        for number, broker in enumerate(self.adaptation.publishers):
            client = Client(f"p{number}")
            self.world.admit(client, _Nobody(), broker)
            self.world.request(client, m.Advertise(offered))
        self.world.run()
        for changer in self._changers:
            changer.begin()
        self.world.run()

    def _schedule(self, begun_us: int) -> None:
        adaptation = self.adaptation
        edges = len(set(adaptation.subscribers))
        per_changer = adaptation.changes_per_s * edges / max(1, len(self._changers))
        for number, changer in enumerate(self._changers):
            random = Random(f"changes {number} of {adaptation.seed}")
            self._repeat(arrivals(random, per_changer), changer.change, begun_us)
        for number in range(len(adaptation.publishers)):
            random = Random(f"events {number} of {adaptation.seed}")
            rate = adaptation.events_per_s / len(adaptation.publishers)
            self._repeat(arrivals(random, rate), self._publishing(number, random), begun_us)

    def _publishing(self, number: int, random: Random) -> Callable[[], None]:
        client = Client(f"p{number}")

        def publish() -> None:
            event = self.adaptation.application.event(random, self.world.now_us)
            self.world.request(client, m.Publish(event))

        return publish

    def _repeat(self, times_us: Iterator[int], action: Callable[[], None], begun_us: int) -> None:
        def schedule() -> None:
            time_us = begun_us + next(times_us, 1 << 62)
            if time_us < self._end_us:
                self.world.at(time_us, tick)

        def tick() -> None:
            action()
            schedule()

        schedule()


class _Nobody:
    """A publisher, which gets nothing."""

    def receive(self, message: Message, now_us: int) -> None:
        """Take what comes."""

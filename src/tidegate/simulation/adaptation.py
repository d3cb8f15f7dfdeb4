"""Subscribers whose wishes change all the time: by updates, or by subscribing anew.

The two scenarios of "Parametric Subscriptions", 5: cars on a highway that ask for what happens near
them, and traders whose limits follow the market. Each subscriber has one subscription and changes a
value of it again and again. What is measured is what the paper measures:

- *delay*: from a change until the first event comes that matches since the change, and did not
  before it;
- *spurious*: events that come after a change and match only what was asked for before it;
- *delivered*: events that subscribers take, by second and subscriber;

and besides: *missed*, events that do not come though they match all that was asked for around the
time they were published, *twice*, events that come twice, and the messages it takes.
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

from tidegate.adapting.moving import event_us
from tidegate.language.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value, from_micros
from tidegate.matching.subscription import Subscription
from tidegate.routing import messages as m
from tidegate.routing.client_state import ClientState, wants
from tidegate.routing.messages import Address, Client, Message, Peer, Stamp
from tidegate.simulation.arrivals import arrivals
from tidegate.simulation.costs import FREE, Costs
from tidegate.simulation.topology import Topology
from tidegate.simulation.world import Stopwatch, World

WARM_UP_S = 0.5
"""What is published before this is not counted."""
ACCESS_US = 10_000
"""How long it takes from a client to its broker and back from there; a link takes as long."""
AROUND_US = 2_000_000
"""What was asked for so long before and after an event may be what it is judged by."""


class Way(Enum):
    """How a subscriber changes what it asks for."""

    UPDATE = "update"
    CANCEL_FIRST = "cancel, then subscribe"
    SUBSCRIBE_FIRST = "subscribe, then cancel"


@dataclass(frozen=True, slots=True)
class Application:
    """What is published, asked for and changed."""

    filters: tuple[tuple[float, Filter], ...]
    """What subscribers ask for, with how often; all have the parameters `:topic` and `:value`."""
    topics: int
    values: int
    """How many values there are; they are 0, 1, 2 ..."""
    step: int
    """How far a value goes in one change, at most."""

    def event(self, random: Random, now_us: int) -> Event:
        """What a publisher publishes."""
        attributes: dict[str, Value] = {
            "topic": random.randrange(self.topics),
            "value": random.randrange(self.values),
            "amount": random.randrange(1_000),
        }
        return Event(attributes, from_micros(now_us))

    def moved(self, random: Random, value: int) -> int:
        """The value after a change."""
        return max(0, min(self.values - 1, value + random.choice((-1, 1)) * self._by(random)))

    def _by(self, random: Random) -> int:
        return random.randint(1, self.step)


def _filters(*shares: tuple[float, str]) -> tuple[tuple[float, Filter], ...]:
    return tuple(
        (share, parse(f"topic = :topic and value {operator} :value")) for share, operator in shares
    )


HIGHWAY = Application(
    _filters((0.4, ">="), (0.4, "<="), (0.2, "=")), topics=20, values=100, step=10
)
"""A topic is a stretch of road, a value a place on it."""
TRADING = Application(
    _filters((0.35, "<="), (0.33, ">="), (0.32, "=")), topics=200, values=100, step=10
)
"""A topic is a commodity, a value its price."""


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
    way: Way = Way.UPDATE
    routing: str = "subscription"
    substrate: str = "poset"
    duration_s: float = 5.0
    costs: Costs = FREE
    seed: int = 1


@dataclass(slots=True)
class Tally:
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

    def __init__(self, run: Run, number: int, broker: Peer) -> None:
        adaptation = run.adaptation
        self._run = run
        self._random = Random(f"changer {number} of {adaptation.seed}")
        self._state = ClientState()
        self.client = Client(f"s{number}")
        self._application = adaptation.application
        self._value = self._random.randrange(self._application.values)
        self._topic = self._random.randrange(self._application.topics)
        shares = [share for share, _ in self._application.filters]
        ((_, self._filter),) = self._random.choices(self._application.filters, shares)
        self._name = "0"
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
        self._value = self._application.moved(self._random, self._value)
        self._run.tally.changes += self._run.counts(self._changed_us)
        old = self._name
        match self._run.adaptation.way:
            case Way.UPDATE:
                self._send(self._state.update(old, {"value": self._value}))
            case Way.CANCEL_FIRST:
                self._send(self._state.cancel(old))
                self._send(self._subscribe())
            case Way.SUBSCRIBE_FIRST:
                self._name = str(int(old) + 1)
                self._send(self._subscribe())
                self._send(self._state.cancel(old))

    def _subscribe(self) -> m.Subscribe:
        values: dict[str, Value] = {"topic": self._topic, "value": self._value}
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
        tally.twice += stamp in self._seen
        self._seen.add(stamp)
        if not self._run.counts(now_us):
            return
        if not wants(self.now, event):
            tally.spurious += 1
            return
        tally.delivered += 1
        if self._before is not None and not wants(self._before, event):
            tally.delays_us.append(now_us - self._changed_us)
            self._before = None

    def misses(self, publication: m.Publication) -> bool:
        """Whether an event has not come that matches all that was asked for around its time."""
        event = publication.event
        if publication.stamp in self._seen or not wants(self.now, event):
            return False
        begin_us, end_us = event_us(event) - AROUND_US, event_us(event) + AROUND_US
        ends = [until_us for until_us, _ in self._asked]
        around = self._asked[bisect(ends, begin_us) : bisect(ends, end_us) + 1]
        return all(wants(each, event) for _, each in around)


class Run:
    """Subscribers, publishers and brokers, and what is seen of them."""

    def __init__(self, adaptation: Adaptation, stopwatch: Stopwatch | None = None) -> None:
        self.adaptation = adaptation
        self.tally = Tally()
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
        offered = parse_advertisement("topic is not null and value is not null and amount >= 0")
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

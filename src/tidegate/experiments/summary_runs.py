"""Simulated networks of brokers that route by summaries, beside subscription forwarding (5.2).

- `event_hops`: what an event costs by its popularity (figure 10), and how the load is spread.
- `simulated`: what brokers send for new subscriptions, beside what `summaries.bandwidth` computes.

An event matches a subscriber at each of some brokers chosen at random, as in the paper; each broker
publishes as many. A *hop* is, as the paper counts it, a message to a broker that examines the event
or has a subscriber, however far away; with subscription forwarding it is a link, because each
broker on the way matches the event. *Link hops* are messages on links in both cases. A broker has
*matched* an event if it looked for subscriptions of other brokers that want it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.summaries import (
    VARIANTS,
    PropagationCost,
    bandwidth,
    drawn_subscriptions,
)
from tidegate.experiments.summary_backbone import Backbone
from tidegate.experiments.summary_workload import ID_BYTES, PlacedInterest, filter_bytes
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.routing import messages as m
from tidegate.routing.messages import Address, Client, Message, Peer
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.simulation.overlays.paper_networks import isp24
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.scenario import rare_collections
from tidegate.simulation.world import SilentClient, World

POPULARITIES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
DEGREES: tuple[int | None, ...] = (None, 4, 3, 2)
"""Virtual degrees; None for the real ones."""
BATCH_MAX = 1_000_000
"""So that the new subscriptions of a period are one batch."""


# -- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventHops:
    """What an event costs, on average."""

    overlay: str
    routing: str
    degree_max: int | None
    to_hubs: bool
    popularity: float
    """The share of the brokers that have a subscriber for it."""
    hops: float
    """As the paper counts them."""
    link_hops: float
    matched: float
    """Brokers that match the event."""
    matched_busiest: float
    """The share of the events that the broker which matches most of them matches."""
    handled_busiest: float
    """Messages that come to the broker which most of them come to."""


def event_hops(
    events: int,
    popularities: Sequence[float] = POPULARITIES,
    degrees: Iterable[int | None] = DEGREES,
    *,
    seed: int = 1,
    topology: Topology | None = None,
    progress: Progress = silent,
) -> Iterator[EventHops]:
    """Rows for each routing and popularity; each broker publishes ``events`` for each of them."""
    overlay = topology or isp24()
    cases: list[tuple[str, SummarySettings]] = [("subscription", _settings())]
    cases += [("summaries", _settings(degree)) for degree in degrees]
    cases.append(("summaries", _settings(to_hubs=True)))
    for routing, settings in cases:
        ways = "to hubs" if settings.to_hubs else f"degree {settings.degree_max or 'as it is'}"
        progress(f"{routing}, {ways}")
        run = _EventRun(World(overlay, routing, seed, summaries=settings))
        for popularity in popularities:
            run.publish(events, popularity, Random(f"{popularity} of {seed}"))
            yield run.row(overlay.name, routing, settings, popularity)


def _settings(degree_max: int | None = None, *, to_hubs: bool = False) -> SummarySettings:
    return SummarySettings(degree_max=degree_max, to_hubs=to_hubs, batch_max=BATCH_MAX)


class _EventRun:
    """A world in which each broker has one subscriber, who wants what names the broker."""

    @rare_collections()
    def __init__(self, world: World) -> None:
        self._world = world
        self._handled: Counter[Peer] = Counter()
        self._published: Counter[Peer] = Counter()
        self._before = self._counts()
        for index, broker in enumerate(world.topology.brokers):
            _admit(world, broker)
            world.request(_client(broker), m.Subscribe(parse(f"{_mark(index)} = true")))
        world.run()
        world.observer = self._observe

    def _observe(self, _now_us: int, _sender: Address, receiver: Address, message: Message) -> None:
        if isinstance(message, m.Notify) and not isinstance(receiver, Client):
            self._handled[receiver] += 1

    @rare_collections()
    def publish(self, events: int, popularity: float, random: Random) -> None:
        """Publish events of a popularity, one after the other."""
        brokers = self._world.topology.brokers
        wanted = max(1, round(popularity * len(brokers)))
        self._handled.clear()
        self._published.clear()
        self._before = self._counts()
        for _ in range(events):
            for broker in brokers:
                marks = random.sample(range(len(brokers)), wanted)
                event = Event.of({_mark(index): True for index in marks})
                self._published[broker] += 1
                self._world.request(_client(broker), m.Publish(event))
                self._world.run()

    def _counts(self) -> list[tuple[int, int]]:
        """For each broker the events examined, and the hops as the paper counts them."""
        found = []
        for site in self._world.sites.values():
            summaries = site.broker.summaries
            counts = None if summaries is None else summaries.counts
            found.append(
                (0, 0)
                if counts is None
                else (counts.examined, counts.to_examiners + counts.to_owners)
            )
        return found

    def row(
        self, overlay: str, routing: str, settings: SummarySettings, popularity: float
    ) -> EventHops:
        """The figures of the events that were published last."""
        events = self._published.total()
        link_hops = self._handled.total() / events
        differences = [
            (examined - examined_before, hops - hops_before)
            for (examined, hops), (examined_before, hops_before) in zip(
                self._counts(), self._before, strict=True
            )
        ]
        if routing == "summaries":
            matched = [examined for examined, _ in differences]
            hops = sum(each for _, each in differences) / events
        else:
            brokers = self._world.topology.brokers
            matched = [self._handled[each] + self._published[each] for each in brokers]
            hops = link_hops
        return EventHops(
            overlay,
            routing,
            settings.degree_max,
            settings.to_hubs,
            popularity,
            hops,
            link_hops,
            sum(matched) / events,
            max(matched) / events,
            max(self._handled.values(), default=0) / events,
        )


def _mark(index: int) -> str:
    return f"b{index}"


def _client(broker: Peer) -> Client:
    return Client(f"client at {broker}")


def _admit(world: World, broker: Peer) -> None:
    world.admit(_client(broker), SilentClient(), broker)


# -- propagation ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SimulatedCost:
    """What brokers send for the new subscriptions of a period."""

    method: str
    subsumption: float
    subscriptions: int
    new: int
    bytes: int
    computed_bytes: int
    """What `summaries.bandwidth` says."""
    messages: int
    """Messages with summaries or filters, between brokers."""
    computed_messages: int


SIMULATED = {
    "summaries": "summaries",
    "covering": "subscription",
    "covering, one tree": "subscription",
}
"""The routings, by the methods of `summaries.bandwidth`."""


def simulated(
    subscriptions: int,
    new: int,
    subsumptions: Iterable[float] = (0.5,),
    *,
    seed: int = 1,
    topology: Topology | None = None,
    progress: Progress = silent,
) -> Iterator[SimulatedCost]:
    """A row for each subsumption and method."""
    backbone = Backbone(topology or isp24())
    for subsumption in subsumptions:
        computed = {
            row.method: row
            for row in bandwidth(
                subscriptions, (new,), (subsumption,), VARIANTS[:1], seed=seed,
                topology=backbone.topology,
            )
        }  # fmt: skip
        drawn = drawn_subscriptions(backbone, subsumption, subscriptions, (new,), seed)
        stages: list[list[PlacedInterest]] = [[], []]
        for stage, each in zip(drawn.stages, drawn.placed, strict=True):
            stages[stage].append(each)
        for method, routing in SIMULATED.items():
            progress(f"{method}, simulated, subsumption {subsumption:g}")
            overlay = backbone.as_tree() if method.endswith("tree") else backbone.topology
            world = World(overlay, routing, seed, summaries=_settings())
            size, messages = _propagated(world, stages)
            yield _simulated_cost(computed[method], size, messages)


def _simulated_cost(computed: PropagationCost, size: int, messages: int) -> SimulatedCost:
    return SimulatedCost(
        computed.method, computed.subsumption, computed.subscriptions, computed.new,
        size, computed.bytes, messages, computed.messages,
    )  # fmt: skip


@rare_collections()
def _propagated(world: World, stages: Sequence[Sequence[PlacedInterest]]) -> tuple[int, int]:
    """Subscribe stage by stage; returns the bytes and the messages of the last one."""
    for broker in world.topology.brokers:
        _admit(world, broker)
    size = messages = 0

    def observe(_now_us: int, _sender: Address, receiver: Address, message: Message) -> None:
        nonlocal size, messages
        if isinstance(message, m.SummaryUpdate):
            size += len(message.tables)
            messages += 1
        elif isinstance(message, m.FilterDelta) and not isinstance(receiver, Client):
            size += sum(filter_bytes(each) for _, each in message.added)
            size += ID_BYTES * len(message.removed)
            messages += 1

    world.observer = observe
    for placed in stages:
        size = messages = 0
        for each in placed:
            # By name: a client's wider subscription does not take the place of its narrower ones.
            request = m.Subscribe(each.filter, name=f"s{each.number}")
            world.request(_client(each.broker), request)
        world.run()
    return size, messages

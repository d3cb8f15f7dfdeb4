"""Gryphon's evaluation of link matching (4.1), on its network of 39 brokers.

- `overload_rates` (chart 2): the highest rate at which the publishers P1 to P3 can publish without
  an overloaded broker, by routing, share of matches and number of subscriptions; also with bursts.
- `steps_by_hops` (chart 3): matching steps of an event on its way over 1 to 6 brokers, beside those
  of one broker that matches it with all subscriptions (centralized matching).
- `premise_costs`: what it costs that every broker holds all subscriptions, beside the other
  routings: filters held, messages and bytes.

Processor time, as the paper models it: a fixed software latency for each message at a broker, and
time for each matching step. The paper gives 10 us as its estimate for a step of an efficient
implementation. It does not give the latency. The one chosen here, 700 us, lets flooding reach about
1,400 events a second, which is near the 3 times 450 of chart 1. Forwarding of filters takes no
processor time: the paper assumes that subscriptions change rarely.

Unlike in the paper, the three publishers are the only ones: nobody else's events load the brokers.
Clients are at their brokers, so the hop of 1 ms to them is left out; neither rates nor steps depend
on it. The steps of link matching include the further searches of one event in 64, from which the
search rule learns (`routing/links/search_rule.py`). It has learned before rates and steps are
measured.

All routings match with the same search tree, so that their steps compare: with one factored
attribute for chart 2 and three for chart 3, as in the paper. In match-first the first broker
matches an event with all subscriptions, and each target does so again to find its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from random import Random
from statistics import fmean

from tidegate.experiments.gryphon_workload import (
    PUBLISHERS,
    GryphonWorkload,
    PlacedFilter,
    matched_share,
    placed_filters,
    region_number,
)
from tidegate.experiments.progress import Progress, silent
from tidegate.language.events import Event
from tidegate.matching.matcher import COLLECTED
from tidegate.matching.poset.wanted_filter import event_us
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import TreeTuning
from tidegate.routing import messages as m
from tidegate.routing.messages import Address, Client, Message, Peer
from tidegate.simulation.arrivals import Bursts, arrivals
from tidegate.simulation.costs import FREE, Costs
from tidegate.simulation.overlays.paper_networks import gryphon
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.scenario import rare_collections
from tidegate.simulation.world import SilentClient, World

QUEUE_MAX = 80
"""A broker whose queue gets as long is overloaded (4.1)."""
RATE_ERROR_PER_S = 5.0
"""The error of a highest rate, as in the paper."""
RATE_MAX_PER_S = 100_000.0
COSTS = Costs(by_kind_us={"Publish": 700, "Notify": 700}, step_us=10.0)
SLICE_US = 50_000
"""How often a trial looks for overloaded brokers."""
WARM_UP_S, WARM_UP_RATE_PER_S = 4.0, 100.0
"""A trial before the first one that counts: enough events for the search rule to be applied."""
MATCH_SAMPLES = 50
"""Events with which the share of matches is measured."""

CHART_2_ROUTINGS = ("flooding", "match-first", "link-matching")
PREMISE_ROUTINGS = ("flooding", "match-first", "subscription", "link-matching")


@dataclass(frozen=True, slots=True)
class GryphonSetting:
    """What all experiments share."""

    workload: GryphonWorkload
    factored: int = 1
    """How many attributes the search trees factor out."""
    seed: int = 1

    def filters(self, topology: Topology, count: int) -> list[PlacedFilter]:
        """The subscriptions."""
        return list(placed_filters(self.workload, topology, count, self.seed))

    def world(self, routing: str, filters: Sequence[PlacedFilter]) -> World:
        """The network, with all subscriptions at all brokers that need them."""
        world = self.empty_world(routing)
        _subscribe(world, filters)
        return world

    def empty_world(self, routing: str) -> World:
        """The network without clients."""
        return World(gryphon(), routing, self.seed, substrate=self.matcher)

    def matcher(self) -> TreeMatcher:
        """A search tree, which counts its steps."""
        return TreeMatcher(TreeTuning(factored=self.factored))


@rare_collections()
def _subscribe(world: World, filters: Sequence[PlacedFilter]) -> None:
    for broker in PUBLISHERS:
        world.admit(_publisher(broker), SilentClient(), broker)
    for each in filters:
        if each.client not in world.home:
            world.admit(each.client, SilentClient(), each.broker)
        # By name: a client's wider subscription does not take the place of its narrower ones.
        world.request(each.client, m.Subscribe(each.filter, name=each.name))
    world.run()


CHART_2 = GryphonSetting(GryphonWorkload(attributes=15), factored=1)
CHART_3 = GryphonSetting(GryphonWorkload(attributes=10), factored=3)


def _publisher(broker: Peer) -> Client:
    return Client(f"publisher at {broker}")


# -- chart 2 --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OverloadRate:
    """The highest rate of each publisher at which no broker is overloaded."""

    routing: str
    subscriptions: int
    degradation: float
    matched_share: float
    """The share of the subscriptions that an event matches, on average."""
    bursts: bool
    rate_per_s: float


def overload_rates(
    subscriptions: Sequence[int],
    degradations: Sequence[float],
    routings: Sequence[str] = CHART_2_ROUTINGS,
    *,
    setting: GryphonSetting = CHART_2,
    bursts: Bursts | None = None,
    duration_s: float = 2.0,
    progress: Progress = silent,
) -> Iterator[OverloadRate]:
    """Chart 2: a row for each degradation, number of subscriptions and routing."""
    for degradation in degradations:
        varied = replace(setting, workload=replace(setting.workload, degradation=degradation))
        for count in subscriptions:
            filters = varied.filters(gryphon(), count)
            share = matched_share(filters, _sample_events(varied, MATCH_SAMPLES))
            for routing in routings:
                progress(f"{routing}: {count:,} subscriptions, D = {degradation:g}")
                world = varied.world(routing, filters)
                is_overloaded(world, varied, WARM_UP_S, None, WARM_UP_RATE_PER_S)
                trial = partial(is_overloaded, world, varied, duration_s, bursts)
                rate_per_s = highest_rate(trial)
                yield OverloadRate(
                    routing, count, degradation, share, bursts is not None, rate_per_s
                )


def highest_rate(is_too_high: Callable[[float], bool]) -> float:
    """The highest rate that is not too high, by bisection, up to RATE_ERROR_PER_S.

    >>> 495 <= highest_rate(lambda rate: rate > 500) <= 500
    True
    """
    low, high = 0.0, 100.0
    while high < RATE_MAX_PER_S and not is_too_high(high):
        low, high = high, 2 * high
    while high - low > RATE_ERROR_PER_S:
        middle = (low + high) / 2
        if is_too_high(middle):
            high = middle
        else:
            low = middle
    return low


@rare_collections()
def is_overloaded(
    world: World,
    setting: GryphonSetting,
    duration_s: float,
    bursts: Bursts | None,
    rate_per_s: float,
) -> bool:
    """Publish for a while at this rate of each publisher; returns whether a broker is overloaded.

    The world is idle before and after, so that one world serves for many trials.
    """
    world.costs = COSTS
    for site in world.sites.values():
        site.waiting_max = 0
    end_us = world.now_us + round(duration_s * 1e6)
    trial = _Trial(world, setting, rate_per_s, end_us, bursts)
    overloaded = False
    while world.now_us < end_us and not overloaded:
        world.run(min(end_us, world.now_us + SLICE_US))
        overloaded = any(site.waiting_max >= QUEUE_MAX for site in world.sites.values())
    trial.stop()
    world.run()
    return overloaded


class _Trial:
    """Publishers that publish at random times until they are stopped."""

    def __init__(
        self,
        world: World,
        setting: GryphonSetting,
        rate_per_s: float,
        end_us: int,
        bursts: Bursts | None,
    ) -> None:
        self._world = world
        self._setting = setting
        self._is_stopped = False
        begun_us = world.now_us
        for broker in PUBLISHERS:
            random = Random(f"events at {broker} of {setting.seed}")
            times_us = arrivals(random, rate_per_s, bursts)
            for time_us in takewhile(lambda each: begun_us + each < end_us, times_us):
                world.at(begun_us + time_us, partial(self._publish, broker, random))

    def _publish(self, broker: Peer, random: Random) -> None:
        if not self._is_stopped:
            region = region_number(self._world.topology, broker)
            event = self._setting.workload.random_event(random, region, self._world.now_us)
            self._world.request(_publisher(broker), m.Publish(event))

    def stop(self) -> None:
        """Publish nothing more."""
        self._is_stopped = True


def _sample_events(setting: GryphonSetting, count: int) -> list[Event]:
    """Events of all publishers in turn."""
    topology = gryphon()
    random = Random(f"sample of {setting.seed}")
    regions = [region_number(topology, broker) for broker in PUBLISHERS]
    return [
        setting.workload.random_event(random, regions[number % len(regions)], number + 1)
        for number in range(count)
    ]


# -- chart 3 --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HopSteps:
    """Matching steps of an event on its way to its subscribers, on average."""

    subscriptions: int
    hops: int | None
    """Brokers that have matched the event on its way; None for centralized matching."""
    steps: float
    """The sum over these brokers."""
    samples: int
    """Pairs of an event and a broker that delivers it; for centralized matching, events."""


def steps_by_hops(
    subscriptions: Sequence[int],
    events: int = 1000,
    *,
    setting: GryphonSetting = CHART_3,
    progress: Progress = silent,
) -> Iterator[HopSteps]:
    """Chart 3: a row for each number of subscriptions and hops, and one for centralized matching.

    An event is published and delivered before the next one; processors are not modelled.
    """
    published = _sample_events(setting, events)
    for count in subscriptions:
        progress(f"steps with {count:,} subscriptions")
        filters = setting.filters(gryphon(), count)
        world = setting.world("link-matching", filters)
        _steps_on_the_way(world, published)  # the search rule learns
        by_hops = _steps_on_the_way(world, published)
        for hops, samples in sorted(by_hops.items()):
            yield HopSteps(count, hops, fmean(samples), len(samples))
        yield HopSteps(count, None, _centralized_steps(setting, filters, published), events)


@rare_collections()
def _steps_on_the_way(world: World, events: Sequence[Event]) -> dict[int, list[int]]:
    """The sums of steps on the ways of all events to all brokers that deliver them, by hops."""
    delivering: set[Peer] = set()

    def observe(_now_us: int, sender: Address, _receiver: Address, message: Message) -> None:
        if isinstance(message, m.Deliver) and not isinstance(sender, Client):
            delivering.add(sender)

    world.observer = observe
    by_hops: dict[int, list[int]] = {}
    for number, event in enumerate(events):
        publisher = PUBLISHERS[number % len(PUBLISHERS)]
        before = {name: site.broker.matching.steps for name, site in world.sites.items()}
        delivering.clear()
        world.request(_publisher(publisher), m.Publish(event))
        world.run()
        # A broker handles an event once at most, so the difference is its steps for this one.
        for broker in sorted(delivering):
            way = _way(world, publisher, broker)
            steps = sum(world.sites[each].broker.matching.steps - before[each] for each in way)
            by_hops.setdefault(len(way), []).append(steps)
    return by_hops


def _way(world: World, publisher: Peer, broker: Peer) -> list[Peer]:
    """The brokers from one to another, both included, backwards."""
    (domain,) = world.sites[publisher].broker.domains.by_name.values()
    parents = domain.graph.tree(publisher).parents
    way = [broker]
    while way[-1] != publisher:
        way.append(parents[way[-1]])
    return way


def _centralized_steps(
    setting: GryphonSetting, filters: Sequence[PlacedFilter], events: Sequence[Event]
) -> float:
    """The mean number of steps of one matcher with all subscriptions."""
    matcher = setting.matcher()
    matcher.add(Subscription(each.name, each.filter) for each in filters)
    for each in filters:
        matcher.set_links(each.name, COLLECTED)
    return fmean(
        matcher.match_links(event, Moment(event_us(event)), COLLECTED).steps for event in events
    )


# -- the premise ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PremiseCost:
    """What a routing costs, for the same subscriptions and events."""

    routing: str
    subscriptions: int
    events: int
    filters_held: int
    """Filters in the tables of all brokers."""
    filter_messages: int
    filter_bytes: int
    event_messages: int
    """Messages between brokers."""
    event_bytes: int
    deliveries: int


def premise_costs(
    subscriptions: int,
    events: int,
    routings: Sequence[str] = PREMISE_ROUTINGS,
    *,
    setting: GryphonSetting = CHART_2,
    progress: Progress = silent,
) -> Iterator[PremiseCost]:
    """The costs of holding and forwarding filters, and of events: a row for each routing."""
    filters = setting.filters(gryphon(), subscriptions)
    published = _sample_events(setting, events)
    for routing in routings:
        progress(f"{routing}: {subscriptions:,} subscriptions, {events:,} events")
        world = setting.empty_world(routing)
        traffic = _Traffic()
        world.observer = traffic
        _subscribe(world, filters)
        for number, event in enumerate(published):
            world.request(_publisher(PUBLISHERS[number % len(PUBLISHERS)]), m.Publish(event))
            world.run()
        yield PremiseCost(
            routing,
            subscriptions,
            events,
            sum(len(site.broker.subscriptions.poset) for site in world.sites.values()),
            traffic.messages[m.FilterDelta],
            traffic.bytes[m.FilterDelta],
            traffic.messages[m.Notify],
            traffic.bytes[m.Notify],
            traffic.messages[m.Deliver],
        )


class _Traffic:
    """Counts the messages that brokers send; an observer of a world."""

    def __init__(self) -> None:
        self.messages: Counter[type[Message]] = Counter()
        self.bytes: Counter[type[Message]] = Counter()

    def __call__(
        self, _now_us: int, sender: Address, _receiver: Address, message: Message, /
    ) -> None:
        if not isinstance(sender, Client):
            self.messages[type(message)] += 1
            self.bytes[type(message)] += FREE.bytes(message)

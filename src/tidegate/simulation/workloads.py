"""What clients do over time: who publishes and subscribes, how often, and what it is about.

A workload is a few settings; `WORKLOADS` has them by name. With a seed it is one plan, in which
every client has a generator of its own, so that one more client changes nothing for the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle
from random import Random

from tidegate.errors import SimulationError
from tidegate.language.filters import Filter
from tidegate.language.values import Value
from tidegate.routing.messages import Client, Peer
from tidegate.simulation.arrivals import Bursts, arrivals
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.topics import Portfolio, Topics

CLIENTS_MAX = 1_000_000
TOPICS = 100


@dataclass(frozen=True, slots=True)
class ClientWorkload:
    """How clients behave."""

    summary: str
    skew: float = 0.0
    """The exponent of Zipf's law; 0 makes all topics equally popular."""
    bursts: Bursts | None = None
    is_regional: bool = False
    """Whether each region has a ranking of topics of its own."""
    churn_per_s: float = 0.0
    """How often a subscriber asks for something else instead."""
    by_updates: bool = False
    """Whether it does so by changing parameters, and not by subscribing anew."""


WORKLOADS: Mapping[str, ClientWorkload] = {
    "steady": ClientWorkload("Poisson arrivals, all topics equally popular"),
    "bursts": ClientWorkload("publishers that are silent nine tenths of the time", bursts=Bursts()),
    "zipf": ClientWorkload("a few topics are popular, most are not", skew=1.0),
    "regional": ClientWorkload(
        "as zipf, with other topics in each region", skew=1.0, is_regional=True
    ),
    "churn": ClientWorkload("as zipf, with subscriptions that change", skew=1.0, churn_per_s=0.5),
    "updates": ClientWorkload(
        "as churn, by changes of parameters", skew=1.0, churn_per_s=0.5, by_updates=True
    ),
}


@dataclass(frozen=True, slots=True)
class Demand:
    """How much of it there is; ``rate_per_s`` is for all publishers together."""

    publishers: int = 10
    subscribers: int = 100
    rate_per_s: float = 100.0
    duration_s: float = 10.0

    def __post_init__(self) -> None:
        for what, count in (("publishers", self.publishers), ("subscribers", self.subscribers)):
            if not 0 <= count <= CLIENTS_MAX:
                raise SimulationError(f"{count} {what}; 0 to {CLIENTS_MAX} can be had")
        for what, value in (("rate", self.rate_per_s), ("duration", self.duration_s)):
            if not (math.isfinite(value) and value >= 0):
                raise SimulationError(f"a {what} of {value}; a number of 0 or more is right")


@dataclass(frozen=True, slots=True)
class PublisherPlan:
    """What a publisher does."""

    client: Client
    broker: Peer
    portfolio: Portfolio
    random: Random
    times_us: Iterator[int]
    """When it publishes, counted from the beginning, without end."""


@dataclass(frozen=True, slots=True)
class SubscriberPlan:
    """What a subscriber does."""

    client: Client
    broker: Peer
    topics: Topics
    random: Random
    times_us: Iterator[int]
    """When it asks for something else."""
    by_updates: bool = False

    def wanted(self) -> Filter:
        """What it asks for next."""
        return self.topics.wanted(self.random)

    def values(self) -> dict[str, Value]:
        """What it asks for next, as values of parameters."""
        return self.topics.values(self.random)


class ClientPlan:
    """What all clients do in an overlay.

    >>> from tidegate.simulation.overlays.generators import generate
    >>> plan = Plan(WORKLOADS["zipf"], Demand(publishers=2, subscribers=3), generate("chain", 2), 1)
    >>> [(each.client.identity, each.broker) for each in plan.subscribers()]
    [('s0', 'b1'), ('s1', 'b0'), ('s2', 'b1')]
    """

    def __init__(
        self, workload: ClientWorkload, demand: Demand, topology: Topology, seed: int
    ) -> None:
        if workload.is_regional and not topology.regions:
            raise SimulationError(
                f"the overlay {topology.name!r} has no regions, which this workload needs"
            )
        self._workload = workload
        self._demand = demand
        self._topology = topology
        self._seed = seed
        regions = sorted(set(topology.regions.values()))
        shifts = range(0, TOPICS, max(1, TOPICS // max(1, len(regions))))
        self._topics = {
            region: Topics(TOPICS, workload.skew, shift if workload.is_regional else 0)
            for region, shift in zip(regions, cycle(shifts), strict=False)
        }
        self._anywhere = Topics(TOPICS, workload.skew)

    def publishers(self) -> Iterator[PublisherPlan]:
        """All publishers, spread evenly over the brokers."""
        demand = self._demand
        rate_per_s = demand.rate_per_s / max(1, demand.publishers)
        for number, broker in enumerate(self._places("publishers", demand.publishers)):
            random = Random(f"publisher {number} of {self._seed}")
            region = self._topology.regions.get(broker, "none")
            portfolio = Portfolio.drawn(self._topics_at(broker), region, random)
            times = arrivals(random, rate_per_s, self._workload.bursts)
            yield PublisherPlan(Client(f"p{number}"), broker, portfolio, random, times)

    def subscribers(self) -> Iterator[SubscriberPlan]:
        """All subscribers, spread evenly over the brokers."""
        for number, broker in enumerate(self._places("subscribers", self._demand.subscribers)):
            random = Random(f"subscriber {number} of {self._seed}")
            times = arrivals(random, self._workload.churn_per_s)
            topics = self._topics_at(broker)
            client, by_updates = Client(f"s{number}"), self._workload.by_updates
            yield SubscriberPlan(client, broker, topics, random, times, by_updates)

    def _topics_at(self, broker: Peer) -> Topics:
        return self._topics.get(self._topology.regions.get(broker, ""), self._anywhere)

    def _places(self, what: str, count: int) -> Iterator[Peer]:
        brokers = list(self._topology.brokers)
        Random(f"{what} of {self._seed}").shuffle(brokers)
        for _, broker in zip(range(count), cycle(brokers), strict=False):
            yield broker


def workload(name: str) -> ClientWorkload:
    """The workload of a name."""
    if name not in WORKLOADS:
        raise SimulationError(f"there is no workload {name!r}; there are {', '.join(WORKLOADS)}")
    return WORKLOADS[name]

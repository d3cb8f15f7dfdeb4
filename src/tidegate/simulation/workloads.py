"""Workloads: how many clients publish and subscribe where, how often, and on which topics.

A workload is a few settings; `WORKLOADS` has them by name. `ClientPlan` makes a schedule for each
client from it, with a random generator of its own, seeded with the client's number. So one more
client changes nothing for the others, and one seed is one plan.
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
    """The settings of a workload."""

    summary: str
    skew: float = 0.0
    """The exponent of Zipf's law; 0 makes all topics equally popular."""
    bursts: Bursts | None = None
    """None if publishers are evenly active."""
    is_regional: bool = False
    """Whether each region has its own ranking of topics."""
    churn_per_s: float = 0.0
    """How often a subscriber changes its filter."""
    by_updates: bool = False
    """Whether it does so by updating parameters, and not by a new subscription."""


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
    """The size of a workload; ``rate_per_s`` is that of all publishers together."""

    publishers: int = 10
    subscribers: int = 100
    rate_per_s: float = 100.0
    duration_s: float = 10.0

    def __post_init__(self) -> None:
        for what, count in (("publishers", self.publishers), ("subscribers", self.subscribers)):
            if not 0 <= count <= CLIENTS_MAX:
                raise SimulationError(
                    f"the number of {what} must be between 0 and {CLIENTS_MAX}, not {count}"
                )
        for what, value in (("rate", self.rate_per_s), ("duration", self.duration_s)):
            if not (math.isfinite(value) and value >= 0):
                raise SimulationError(f"the {what} must be a finite number >= 0, not {value}")


@dataclass(frozen=True, slots=True)
class PublisherSchedule:
    """The events of a publisher and their times."""

    client: Client
    broker: Peer
    portfolio: Portfolio
    random: Random
    times_us: Iterator[int]
    """When it publishes, counted from the start, without end."""


@dataclass(frozen=True, slots=True)
class SubscriberSchedule:
    """The filters of a subscriber and the times at which it changes them."""

    client: Client
    broker: Peer
    topics: Topics
    random: Random
    times_us: Iterator[int]
    """When it changes its filter, counted from the start."""
    by_updates: bool = False

    def next_filter(self) -> Filter:
        """Draw the next filter."""
        return self.topics.random_filter(self.random)

    def next_values(self) -> dict[str, Value]:
        """Draw the next filter, as values for the parameters of `AT_LEAST`."""
        return self.topics.random_values(self.random)


class ClientPlan:
    """The schedules of all clients of an overlay.

    >>> from tidegate.simulation.overlays.generators import generate
    >>> demand = Demand(publishers=2, subscribers=3)
    >>> plan = ClientPlan(WORKLOADS["zipf"], demand, generate("chain", 2), seed=1)
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
        # Rankings are rotated as far from each other as possible; with more regions than topics
        # some share one.
        shifts = range(0, TOPICS, max(1, TOPICS // max(1, len(regions))))
        self._topics = {
            region: Topics(TOPICS, workload.skew, shift if workload.is_regional else 0)
            for region, shift in zip(regions, cycle(shifts), strict=False)
        }
        self._elsewhere = Topics(TOPICS, workload.skew)  # for brokers without a region

    def publishers(self) -> Iterator[PublisherSchedule]:
        """The schedules of all publishers, which are spread evenly over the brokers."""
        demand = self._demand
        rate_per_s = demand.rate_per_s / max(1, demand.publishers)
        for number, broker in enumerate(self._brokers_for("publishers", demand.publishers)):
            random = Random(f"publisher {number} of {self._seed}")
            region = self._topology.regions.get(broker, "none")
            portfolio = Portfolio.random(self._topics_at(broker), region, random)
            times = arrivals(random, rate_per_s, self._workload.bursts)
            yield PublisherSchedule(Client(f"p{number}"), broker, portfolio, random, times)

    def subscribers(self) -> Iterator[SubscriberSchedule]:
        """The schedules of all subscribers, which are spread evenly over the brokers."""
        for number, broker in enumerate(self._brokers_for("subscribers", self._demand.subscribers)):
            random = Random(f"subscriber {number} of {self._seed}")
            times = arrivals(random, self._workload.churn_per_s)
            topics = self._topics_at(broker)
            client, by_updates = Client(f"s{number}"), self._workload.by_updates
            yield SubscriberSchedule(client, broker, topics, random, times, by_updates)

    def _topics_at(self, broker: Peer) -> Topics:
        return self._topics.get(self._topology.regions.get(broker, ""), self._elsewhere)

    def _brokers_for(self, role: str, count: int) -> Iterator[Peer]:
        brokers = list(self._topology.brokers)
        Random(f"{role} of {self._seed}").shuffle(brokers)
        for _, broker in zip(range(count), cycle(brokers), strict=False):
            yield broker


def workload(name: str) -> ClientWorkload:
    """The workload with a name; raises SimulationError if there is none."""
    if name not in WORKLOADS:
        raise SimulationError(f"there is no workload {name!r}; there are {', '.join(WORKLOADS)}")
    return WORKLOADS[name]

"""The workload of Gryphon's simulation: random subscriptions and events with regional favourites.

As in "An Efficient Multicast Protocol", 4.1: a subscription cares about the first attribute with
probability P, and about each further one with a probability that is lower by the factor D; for
those it asks for one value. Values follow Zipf's law, in subscriptions and in events, and each
region has its own order of favourite values. A smaller D means more wildcards and more matches.

Chosen here, because the paper does not say: Zipf's exponent is 1; the orders of two regions are
rotations of each other; the three publishers whose events are tracked are at leaves, one in each
region. Subscriptions are spread evenly over 10 clients at each broker. With 10 attributes of 3
values, P = 0.98 and D = 82 % an event matches 1.7 % of the subscriptions; the paper has 1.3 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random

from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value, from_us
from tidegate.routing.messages import Client, Peer
from tidegate.simulation.overlays.topology import Topology

CLIENTS_PER_BROKER = 10
PUBLISHERS: tuple[Peer, ...] = ("A.1.1", "B.2.2", "C.3.3")
"""The brokers of the publishers P1, P2 and P3."""


@dataclass(frozen=True, slots=True)
class GryphonWorkload:
    """The settings of a workload."""

    attributes: int = 15
    values: int = 3
    """Values of each attribute."""
    care: float = 0.98
    """P: the probability that a subscription cares about the first attribute."""
    degradation: float = 0.82
    """D: the factor by which this probability is lower for each further attribute."""
    skew: float = 1.0
    """The exponent of Zipf's law."""

    def random_filter(self, random: Random, region: int) -> Filter:
        """Draw the filter of a subscriber in a region.

        >>> print(GryphonWorkload(attributes=6).random_filter(Random(5), region=1))
        a0 = 2 and a1 = 0 and a4 = 1
        """
        return parse(self.random_text(random, region))

    def random_text(self, random: Random, region: int) -> str:
        """Draw the filter of a subscriber in a region, as a text."""
        wanted = [
            f"a{index} = {self._draw(random, region)}"
            for index in range(self.attributes)
            if random.random() < self.care * self.degradation**index
        ]
        return " and ".join(wanted) or "true"

    def random_event(self, random: Random, region: int, time_us: int) -> Event:
        """Draw an event of a publisher in a region."""
        attributes: dict[str, Value] = {
            f"a{index}": self._draw(random, region) for index in range(self.attributes)
        }
        return Event(attributes, from_us(time_us))

    def _draw(self, random: Random, region: int) -> int:
        weights = [1 / rank**self.skew for rank in range(1, self.values + 1)]
        (rank,) = random.choices(range(self.values), weights)
        return (rank + region) % self.values


@dataclass(frozen=True, slots=True)
class PlacedFilter:
    """A subscription: its filter, and the client and broker that have it."""

    client: Client
    broker: Peer
    name: str
    filter: Filter


def region_number(topology: Topology, broker: Peer) -> int:
    """The number of the region of a broker."""
    return sorted(set(topology.regions.values())).index(topology.regions[broker])


def placed_filters(
    workload: GryphonWorkload, topology: Topology, count: int, seed: int
) -> Iterator[PlacedFilter]:
    """Subscriptions, in turn at each broker; fewer of them are the first of more."""
    for number, broker in enumerate(islice(cycle(topology.brokers), count)):
        random = Random(f"subscription {number} of {seed}")
        filter = workload.random_filter(random, region_number(topology, broker))
        client = number // len(topology.brokers) % CLIENTS_PER_BROKER
        yield PlacedFilter(Client(f"{broker}/{client}"), broker, f"s{number}", filter)


def matched_share(filters: Sequence[PlacedFilter], events: Sequence[Event]) -> float:
    """The share of the subscriptions that an event matches, on average."""
    matches = sum(each.filter.matches(event) for each in filters for event in events)
    return matches / max(1, len(filters) * len(events))

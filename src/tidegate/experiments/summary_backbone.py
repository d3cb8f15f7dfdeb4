"""Where subscriptions go in a network, by summaries and by covering, computed without running it.

Covering (Siena, 4.2.1). A *channel* is what some brokers' subscriptions cross together: links, and
the brokers whose subscriptions may hide each other on them. A subscription crosses unless another
one of these brokers covers it (of equal ones the first crosses). In a general graph each broker has
a spanning tree of its own, so that only its own subscriptions hide each other (`forwarding`); on
one tree for all, a channel is a direction of a link, with all brokers behind it.

Summaries. Algorithm 2 as `Plan` has it: each broker sends once, when it has what its children send.

Tests compare both with simulated networks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tidegate.experiments.summary_workload import PlacedInterest, filter_bytes
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode, closure, parents_of
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.matching.summary.merging import merge
from tidegate.matching.summary.tables import SummaryTables
from tidegate.routing.messages import Peer
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.overlay.graph import Graph, Tree
from tidegate.routing.summaries.plan import Plan, plan_of
from tidegate.simulation.overlays.plain_networks import one_domain
from tidegate.simulation.overlays.topology import Topology


@dataclass(frozen=True, slots=True)
class Channel:
    """Links that the subscriptions of some brokers cross."""

    sources: frozenset[Peer]
    links: int


@dataclass(frozen=True)
class Backbone:
    """A network of brokers in one domain."""

    topology: Topology

    @cached_property
    def graph(self) -> Graph:
        """The links, with their delays."""
        costs: dict[Peer, dict[Peer, int]] = {}
        for link in self.topology.links:
            delay_us = round(link.delay_s * 1e6)
            costs.setdefault(link.a, {})[link.b] = delay_us
            costs.setdefault(link.b, {})[link.a] = delay_us
        return Graph(costs)

    @property
    def brokers(self) -> tuple[Peer, ...]:
        """All brokers."""
        return self.topology.brokers

    def plan(self, degree_max: int | None = None, *, to_hubs: bool = False) -> Plan:
        """Who sends summaries to whom."""
        return plan_of(self.graph, self.brokers[0], degree_max, to_hubs=to_hubs)

    def hops(self, tree: Tree) -> Iterator[int]:
        """The number of links between the root of a tree and each other broker."""
        for broker in self.brokers:
            count, at = 0, broker
            while at != tree.root:
                at, count = tree.parents[at], count + 1
            yield count

    @cached_property
    def mean_hops(self) -> float:
        """The mean number of links from any broker to any other."""
        count = len(self.brokers)
        total = sum(sum(self.hops(self.graph.tree(each))) for each in self.brokers)
        return total / (count * (count - 1))

    @cached_property
    def middle(self) -> Tree:
        """The tree of shortest paths that has the fewest links to its root."""
        trees = [self.graph.tree(each) for each in self.brokers]
        return min(trees, key=lambda tree: sum(self.hops(tree)))

    def as_tree(self) -> Topology:
        """The overlay of which only the links of the middle tree are left."""
        links = [
            (link.a, link.b, link.delay_s)
            for link in self.topology.links
            if link.b in self.middle.children(link.a) or link.a in self.middle.children(link.b)
        ]
        return one_domain("tree", self.brokers, links, Architecture.ACYCLIC)

    def channels(self, *, one_tree: bool) -> list[Channel]:
        """The channels, on one tree for all or on a tree for each broker."""
        if not one_tree:
            return [Channel(frozenset((each,)), len(self.brokers) - 1) for each in self.brokers]
        everybody = frozenset(self.brokers)
        found = []
        for broker in self.middle.parents:
            below = frozenset(self.middle.subtree(broker))
            found += [Channel(below, 1), Channel(everybody - below, 1)]
        return found


class CoveredSubscriptions:
    """Subscriptions of all brokers, and which of them hide which.

    Each has a *stage*: 0 if it is held before the period, a higher one if it is new.
    """

    def __init__(self, stages: Sequence[Iterable[PlacedInterest]]) -> None:
        """``stages`` are the subscriptions by stage."""
        self.placed = [each for stage in stages for each in stage]
        self.stages = [number for number, stage in enumerate(stages) for _ in stage]
        self.bytes = [filter_bytes(each.filter) for each in self.placed]
        self._of_broker: dict[Peer, list[int]] = {}
        for index, each in enumerate(self.placed):
            self._of_broker.setdefault(each.broker, []).append(index)
        self._hiders = self._found_hiders()

    def _found_hiders(self) -> list[list[tuple[Peer, int]]]:
        """For each subscription the brokers and stages of those that hide it."""
        poset: Poset[WantedFilter] = Poset(FILTERS)
        nodes = [poset.insert(each.filter) for each in self.placed]
        at: dict[PosetNode[WantedFilter], list[int]] = {}
        hiders = []
        for index, node in enumerate(nodes):
            hiders.append(list(at.get(node, ())))
            at.setdefault(node, []).append(index)
        for index, node in enumerate(nodes):
            for above in closure(node.above, parents_of):
                hiders[index] += at[above]
        return [
            list({(self.placed[i].broker, self.stages[i]): None for i in found}) for found in hiders
        ]

    def crossing(self, channel: Channel, stage: int) -> Iterator[int]:
        """The indexes of the subscriptions up to a stage that cross a channel."""
        for source in channel.sources & self._of_broker.keys():
            for index in self._of_broker[source]:
                if self.stages[index] <= stage and not any(
                    by <= stage and broker in channel.sources for broker, by in self._hiders[index]
                ):
                    yield index

    def uncovered(self, broker: Peer, stage: int) -> Iterator[PlacedInterest]:
        """The subscriptions of a broker up to a stage that no other one of it covers."""
        alone = Channel(frozenset((broker,)), 0)
        return (self.placed[index] for index in self.crossing(alone, stage))

    def wanted(self, broker: Peer, stage: int, subsumption: bool) -> Iterator[PlacedInterest]:
        """The subscriptions of a broker up to a stage that its summary has, with what is covered
        or without it."""
        if subsumption:
            return self.uncovered(broker, stage)
        of_broker = self._of_broker.get(broker, ())
        return (self.placed[index] for index in of_broker if self.stages[index] <= stage)

    def covered_share(self, stage: int) -> float:
        """The share of the subscriptions up to a stage that another one of their broker covers."""
        total = sum(each <= stage for each in self.stages)
        left = sum(1 for broker in self._of_broker for _ in self.uncovered(broker, stage))
        return 1 - left / total


def sent_summaries(plan: Plan, own: Mapping[Peer, SummaryTables]) -> dict[Peer, SummaryTables]:
    """What each broker sends: its summary merged with those of the children that send before it."""
    sent: dict[Peer, SummaryTables] = {}

    def send(broker: Peer) -> SummaryTables:
        if broker not in sent:
            sent[broker] = merge([own[broker], *map(send, plan.lower_children(broker))])
        return sent[broker]

    for broker in plan.brokers:
        send(broker)
    return sent


def known_summaries(
    plan: Plan, own: Mapping[Peer, SummaryTables], sent: Mapping[Peer, SummaryTables]
) -> dict[Peer, SummaryTables]:
    """What each broker holds when all have sent."""
    return {
        broker: merge([own[broker], *(sent[child] for child in plan.children(broker))])
        for broker in plan.brokers
    }

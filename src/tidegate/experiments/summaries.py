"""Subscription summaries beside covering and broadcast: bytes to propagate and to hold (5.2).

The network is the backbone of 24 brokers, the subscriptions are those of `summary_workload`. Each
broker holds S subscriptions, and sigma new ones come in a period.

- `bandwidth`: bytes and messages with which the new ones reach all who need them (figures 8, 9).
- `storage`: bytes that all brokers hold then (figure 11).
- `simulated`: what the brokers themselves send in a simulated network, at a small size.

What is counted. Of summaries, the bytes of the wire form, as differences to what the receiver
holds. Of covering and broadcast, each filter on each link it crosses, by `filter_bytes`; they are
sent in batches too, so neither has headers. A *message* is a batch from one broker to another, and
with a tree for each broker, on one of the trees.

Beside the bytes stands ``formula_bytes``, what the paper would count: for summaries equations (1)
and (2), as the difference that the new ones make; for broadcast its product of averages; for
covering its model, in which each broker keeps back what comes to it with a probability (the wanted
subsumption, times the degree of the broker over the highest degree). A subscription has 50 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.summary_backbone import (
    Backbone,
    CoveredSubscriptions,
    known_summaries,
    sent_summaries,
)
from tidegate.experiments.summary_workload import ID_BYTES, SummaryWorkload
from tidegate.matching.summary.budget import EXACT_ENOUGH, PAPER, SummaryBudget
from tidegate.matching.summary.summary import Summary
from tidegate.matching.summary.tables import SummaryTables
from tidegate.matching.summary.wire import encode, encode_difference
from tidegate.matching.summary.wire.sizes import formula_bytes
from tidegate.routing.messages import Peer
from tidegate.simulation.overlays.paper_networks import isp24
from tidegate.simulation.overlays.topology import Topology

SUBSUMPTIONS = (0.1, 0.25, 0.5, 0.75, 0.9)
SUBSCRIPTION_BYTES = 50
"""The average size of a subscription in the paper."""


@dataclass(frozen=True, slots=True)
class SummaryVariant:
    """A way to summarize."""

    name: str
    budget: SummaryBudget = EXACT_ENOUGH
    subsumption: bool = True
    """Whether subscriptions that another one of the same broker covers are left out."""
    degree_max: int | None = None
    to_hubs: bool = False


VARIANTS = (
    SummaryVariant("summaries"),
    SummaryVariant("summaries, degree 3", degree_max=3),
    SummaryVariant("summaries, to hubs", to_hubs=True),
    SummaryVariant("summaries, 16 rows", SummaryBudget(rows_max=16)),
    SummaryVariant("summaries of all", subsumption=False),
    SummaryVariant("summaries of all, as in 3.1", PAPER, subsumption=False),
)
"""The first ones leave out what is covered; the last one is the paper's own."""


@dataclass(frozen=True, slots=True)
class PropagationCost:
    """What it costs that the new subscriptions of a period are propagated."""

    method: str
    subsumption: float
    covered_share: float
    """The share of all subscriptions that another one at the same broker covers."""
    subscriptions: int
    """Of each broker before the period: S."""
    new: int
    """Of each broker in the period: sigma."""
    bytes: int
    formula_bytes: int | None
    messages: int


@dataclass(frozen=True, slots=True)
class StorageCost:
    """What all brokers hold."""

    method: str
    subsumption: float
    covered_share: float
    subscriptions: int
    """Of each broker."""
    bytes: int
    formula_bytes: int | None
    home_bytes: int
    """The subscriptions of each broker's own clients as they are, if ``bytes`` is without them."""


# -- bandwidth ------------------------------------------------------------------------------------


def bandwidth(
    subscriptions: int,
    new: Sequence[int],
    subsumptions: Iterable[float] = SUBSUMPTIONS,
    variants: Iterable[SummaryVariant] = VARIANTS,
    *,
    seed: int = 1,
    topology: Topology | None = None,
    progress: Progress = silent,
) -> Iterator[PropagationCost]:
    """Rows for each subsumption, number of new subscriptions and method."""
    backbone = Backbone(topology or isp24())
    new = sorted(new)
    for subsumption in subsumptions:
        progress(f"subsumption {subsumption:g}: which subscriptions cover which")
        drawn = drawn_subscriptions(backbone, subsumption, subscriptions, new, seed)
        share = drawn.covered_share(0)
        for stage, count in enumerate(new, 1):
            yield from (
                PropagationCost(method, subsumption, share, subscriptions, count, *costs)
                for method, costs in _forwarding_costs(backbone, drawn, subsumption, stage, count)
            )
        for variant in variants:
            progress(f"subsumption {subsumption:g}: {variant.name}")
            for count, costs in zip(new, _summary_costs(backbone, drawn, variant), strict=True):
                yield PropagationCost(
                    variant.name, subsumption, share, subscriptions, count, *costs
                )


def drawn_subscriptions(
    backbone: Backbone, subsumption: float, held: int, new: Sequence[int], seed: int
) -> CoveredSubscriptions:
    """The subscriptions held before the period are stage 0, those of each ``new`` a stage."""
    workload = SummaryWorkload(backbone.brokers, subsumption, held, seed)
    by_broker = workload.subscriptions(held + max(new, default=0))
    ends = [held, *(held + count for count in new)]
    return CoveredSubscriptions(
        [
            [each for placed in by_broker for each in placed[begin:end]]
            for begin, end in zip([0, *ends], ends, strict=False)
        ]
    )


Costs = tuple[int, int | None, int]
"""Bytes, bytes by formula, and messages."""


def _forwarding_costs(
    backbone: Backbone, drawn: CoveredSubscriptions, subsumption: float, stage: int, count: int
) -> Iterator[tuple[str, Costs]]:
    """The costs of broadcast and of covering."""
    brokers = len(backbone.brokers)
    size_of = dict.fromkeys(backbone.brokers, 0)
    for index, each in enumerate(drawn.placed):
        if 0 < drawn.stages[index] <= stage:
            size_of[each.broker] += drawn.bytes[index]
    hops_of = {each: sum(backbone.hops(backbone.graph.tree(each))) for each in backbone.brokers}
    unicast = sum(size * hops_of[each] for each, size in size_of.items())
    product = (brokers - 1) * backbone.mean_hops * brokers * count * SUBSCRIPTION_BYTES
    yield "broadcast", (unicast, round(product), sum(hops_of.values()))
    flooded = sum(size_of.values()) * (brokers - 1)
    yield "broadcast along trees", (flooded, None, brokers * (brokers - 1))
    modelled = modelled_crossings(backbone, subsumption) * count * SUBSCRIPTION_BYTES
    yield "covering", _covering_cost(backbone, drawn, stage, round(modelled), one_tree=False)
    yield "covering, one tree", _covering_cost(backbone, drawn, stage, None, one_tree=True)


def modelled_crossings(backbone: Backbone, subsumption: float) -> float:
    """The links that the paper's model lets one subscription of each broker cross, in all."""
    neighbours = backbone.graph.neighbours
    degree_max = max(len(neighbours(each)) for each in backbone.brokers)
    passes = {
        each: 1 - subsumption * len(neighbours(each)) / degree_max for each in backbone.brokers
    }
    total = 0.0
    for tree in map(backbone.graph.tree, backbone.brokers):
        for broker in tree.parents:
            way = [broker]
            while way[-1] != tree.root:
                way.append(tree.parents[way[-1]])
            total += prod(passes[each] for each in way[1:])
    return total


def _covering_cost(
    backbone: Backbone,
    drawn: CoveredSubscriptions,
    stage: int,
    formula: int | None,
    *,
    one_tree: bool,
) -> Costs:
    total = messages = 0
    for channel in backbone.channels(one_tree=one_tree):
        before = set(drawn.crossing(channel, 0))
        after = set(drawn.crossing(channel, stage))
        if before != after:
            added = sum(drawn.bytes[index] for index in after - before)
            total += channel.links * (added + ID_BYTES * len(before - after))
            messages += channel.links
    return total, formula, messages


def _summary_costs(
    backbone: Backbone, drawn: CoveredSubscriptions, variant: SummaryVariant
) -> Iterator[Costs]:
    """The costs of the stages after the first."""
    plan = backbone.plan(variant.degree_max, to_hubs=variant.to_hubs)
    stages = (sent_summaries(plan, own) for own in own_summaries(backbone, drawn, variant))
    before = next(stages)
    for after in stages:
        size = formula = messages = 0
        for broker in plan.brokers:
            old, new = before[broker], after[broker]
            if plan.parent(broker) is not None and old != new:
                size += len(encode_difference(old, new))
                formula += formula_bytes(new) - formula_bytes(old)
                messages += 1
        yield size, formula, messages


def own_summaries(
    backbone: Backbone, drawn: CoveredSubscriptions, variant: SummaryVariant
) -> Iterator[dict[Peer, SummaryTables]]:
    """The own summaries of all brokers, at each stage."""
    summaries = {each: Summary(variant.budget) for each in backbone.brokers}
    entered: dict[Peer, set[int]] = {each: set() for each in backbone.brokers}
    for stage in range(max(drawn.stages, default=0) + 1):
        for broker, summary in summaries.items():
            wanted = {
                each.number: each.filter
                for each in drawn.wanted(broker, stage, variant.subsumption)
            }
            for number in entered[broker] - wanted.keys():
                summary.remove(broker, number)
            for number in sorted(wanted.keys() - entered[broker]):
                summary.add(broker, number, wanted[number])
            entered[broker] = set(wanted)
        yield {broker: summary.tables() for broker, summary in summaries.items()}


# -- storage --------------------------------------------------------------------------------------


def storage(
    subscriptions: Iterable[int],
    subsumptions: Iterable[float] = (0.1, 0.9),
    variants: Iterable[SummaryVariant] = VARIANTS,
    *,
    seed: int = 1,
    topology: Topology | None = None,
    progress: Progress = silent,
) -> Iterator[StorageCost]:
    """Rows for each subsumption, number of subscriptions and method."""
    backbone = Backbone(topology or isp24())
    variants = tuple(variants)
    for subsumption in subsumptions:
        for count in subscriptions:
            progress(f"storage, subsumption {subsumption:g}, {count:,} subscriptions")
            drawn = drawn_subscriptions(backbone, subsumption, count, (), seed)
            share = drawn.covered_share(0)
            for method, costs in _stored(backbone, drawn, variants):
                yield StorageCost(method, subsumption, share, count, *costs)


def _stored(
    backbone: Backbone, drawn: CoveredSubscriptions, variants: Iterable[SummaryVariant]
) -> Iterator[tuple[str, Costs]]:
    home = sum(drawn.bytes)
    average = len(drawn.placed) * SUBSCRIPTION_BYTES
    yield "broadcast", (len(backbone.brokers) * home, len(backbone.brokers) * average, 0)
    for method, one_tree in (("covering", False), ("covering, one tree", True)):
        crossing = sum(
            channel.links * sum(drawn.bytes[index] for index in drawn.crossing(channel, 0))
            for channel in backbone.channels(one_tree=one_tree)
        )
        yield method, (home + crossing, None, 0)
    for variant in variants:
        plan = backbone.plan(variant.degree_max, to_hubs=variant.to_hubs)
        own = next(own_summaries(backbone, drawn, variant))
        known = known_summaries(plan, own, sent_summaries(plan, own))
        yield variant.name, (*_sizes(known), home)


def _sizes(tables: Mapping[Peer, SummaryTables]) -> tuple[int, int]:
    """The bytes of the wire form, and those of the formulas."""
    return (
        sum(len(encode(each)) for each in tables.values()),
        sum(formula_bytes(each) for each in tables.values()),
    )

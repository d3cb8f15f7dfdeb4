"""What a merged summary of all brokers costs to match, and what its budget costs in precision.

- `matching_times`: an event against the summary of all brokers' subscriptions, beside the columnar
  index of the same subscriptions, which is exact. They take turns, in processor time.
- `precision`: by budget, the bytes that brokers send until all summaries are where they belong, and
  how many events come to a broker at which they match nothing (false positives at home).

The subscriptions and events are those of `summary_workload`: half of the events match, most of the
others only seem to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import thread_time

from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.summaries import (
    VARIANTS,
    SummaryVariant,
    drawn_subscriptions,
    own_summaries,
)
from tidegate.experiments.summary_backbone import Backbone, CoveredSubscriptions, sent_summaries
from tidegate.experiments.summary_workload import events
from tidegate.language.events import Event
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.summary.budget import PAPER, SummaryBudget
from tidegate.matching.summary.index import SummaryIndex
from tidegate.matching.summary.merging import merge
from tidegate.matching.summary.tables import SummaryTables
from tidegate.matching.summary.wire import encode
from tidegate.routing.messages import Peer
from tidegate.simulation.overlays.paper_networks import isp24
from tidegate.simulation.overlays.topology import Topology

ROWS = (256, 64, 16, 8, 4, 2, 1)
"""Budgets: rows of each table of the summary of one broker."""
PAPER_BUDGET = "as in 3.1"
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class MatchingTime:
    """Processor time of an event, as the median of some rounds."""

    method: str
    subsumption: float
    subscriptions: int
    """Of all brokers."""
    entries: int
    """Subscriptions in the summary or index."""
    us: float
    fastest_us: float
    slowest_us: float
    found: float
    """Subscriptions found an event."""


@dataclass(frozen=True, slots=True)
class Precision:
    """What a budget saves, and what it costs."""

    budget: str
    rows_max: int | None
    """Of a table; None if rows are not limited."""
    subsumption: float
    covered_left_out: bool
    subscriptions: int
    """Of each broker."""
    bytes: int
    """Sent by all brokers, in full."""
    brokers_found: float
    """Brokers to which an event is sent."""
    brokers_matching: float
    """Those of them at which it matches."""
    in_vain: float
    """The share of the events sent to brokers that match nothing there."""


class _Exact:
    """The columnar index of all subscriptions."""

    def __init__(self, drawn: CoveredSubscriptions) -> None:
        self._matcher = ColumnarMatcher()
        self._owners = [each.broker for each in drawn.placed]
        self._matcher.add(
            [Subscription(str(index), each.filter) for index, each in enumerate(drawn.placed)]
        )

    def matching(self, event: Event) -> list[str]:
        """The indexes of the subscriptions that an event matches."""
        return self._matcher.match(event, Moment())

    def owners_matching(self, event: Event) -> set[Peer]:
        """The brokers with a subscription that an event matches."""
        return {self._owners[int(index)] for index in self.matching(event)}


# -- matching -------------------------------------------------------------------------------------


def matching_times(
    subscriptions: int,
    events_count: int = 200,
    subsumptions: Iterable[float] = (0.5,),
    variants: Sequence[SummaryVariant] = VARIANTS,
    *,
    rounds: int = ROUNDS,
    seed: int = 1,
    topology: Topology | None = None,
    progress: Progress = silent,
) -> Iterator[MatchingTime]:
    """A row for each subsumption and method; each broker has ``subscriptions``."""
    backbone = Backbone(topology or isp24())
    for subsumption in subsumptions:
        progress(f"matching, subsumption {subsumption:g}")
        drawn = drawn_subscriptions(backbone, subsumption, subscriptions, (), seed)
        given = events(drawn.placed, events_count, seed)
        methods: dict[str, Callable[[Event], Sequence[object]]] = {
            "columnar index": _Exact(drawn).matching
        }
        entries = {"columnar index": len(drawn.placed)}
        for variant in variants:
            # the merged summary does not depend on the plan
            if variant.degree_max is None and not variant.to_hubs:
                index = SummaryIndex(_merged(backbone, drawn, variant))
                methods[variant.name], entries[variant.name] = index.matching, len(index)
        found = {name: sum(len(match(event)) for event in given) for name, match in methods.items()}
        times: dict[str, list[float]] = {name: [] for name in methods}
        for _ in range(rounds):
            for name, match in methods.items():
                begun_s = thread_time()
                for event in given:
                    match(event)
                times[name].append((thread_time() - begun_s) / len(given) * 1e6)
        for name, each in times.items():
            yield MatchingTime(
                name, subsumption, len(drawn.placed), entries[name],
                median(each), min(each), max(each), found[name] / len(given),
            )  # fmt: skip


def _merged(
    backbone: Backbone, drawn: CoveredSubscriptions, variant: SummaryVariant
) -> SummaryTables:
    return merge(list(next(own_summaries(backbone, drawn, variant)).values()))


# -- precision ------------------------------------------------------------------------------------


def precision(
    subscriptions: int,
    events_count: int = 500,
    subsumptions: Iterable[float] = (0.5,),
    rows: Sequence[int] = ROWS,
    *,
    seed: int = 1,
    topology: Topology | None = None,
    progress: Progress = silent,
) -> Iterator[Precision]:
    """Rows for each subsumption and budget, without and with what is covered at home."""
    backbone = Backbone(topology or isp24())
    for subsumption in subsumptions:
        drawn = drawn_subscriptions(backbone, subsumption, subscriptions, (), seed)
        exact = _Exact(drawn)
        given = events(drawn.placed, events_count, seed)
        wanted = [exact.owners_matching(event) for event in given]
        for variant in _budgets(rows):
            progress(f"precision, subsumption {subsumption:g}: {variant.name}")
            own = next(own_summaries(backbone, drawn, variant))
            index = SummaryIndex(merge(list(own.values())))
            found = [index.owners_matching(event) for event in given]
            assert all(few <= many for few, many in zip(wanted, found, strict=True))
            brokers_found, brokers_matching = sum(map(len, found)), sum(map(len, wanted))
            limit = variant.budget.rows_max
            yield Precision(
                variant.name,
                limit if limit in rows else None,
                subsumption,
                variant.subsumption,
                subscriptions,
                _sent_bytes(backbone, own),
                brokers_found / len(given),
                brokers_matching / len(given),
                1 - brokers_matching / max(1, brokers_found),
            )


def _budgets(rows: Sequence[int]) -> Iterator[SummaryVariant]:
    for subsumption in (True, False):
        yield SummaryVariant("exact", subsumption=subsumption)
        if not subsumption:
            yield SummaryVariant(PAPER_BUDGET, PAPER, subsumption)
        for count in rows:
            yield SummaryVariant(f"{count} rows", SummaryBudget(rows_max=count), subsumption)


def _sent_bytes(backbone: Backbone, own: Mapping[Peer, SummaryTables]) -> int:
    plan = backbone.plan()
    return sum(
        len(encode(tables))
        for broker, tables in sent_summaries(plan, own).items()
        if plan.parent(broker) is not None
    )

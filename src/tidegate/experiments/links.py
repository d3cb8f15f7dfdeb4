"""Benchmark of link matching: the search tree and the columnar index, and matching in full.

A broker has some links and a few subscribers of its own; every subscription is behind one link, or
is its own (COLLECTED). For each event it needs to know which links to pass it on to, and which of
its own subscribers get it. Four methods find the same answer:

- `tree links`, `columnar links`: a search that looks for undecided links only (Gryphon, 3);
- `tree full`, `columnar full`: all subscriptions that match, whose links are then joined.

Workloads: Gryphon's with 10 attributes of 3 values, where an event matches 1.7 % of the
subscriptions (`gryphon`) or, as they care about more attributes, 0.07 % (`gryphon-rare`), and
`ranges` and `market` of the matching benchmarks.

Localities: subscriptions are *spread* over the links at random, or those that ask for similar
values are behind the same link (*regional*): in Gryphon's workload a link leads to one of three
regions with favourites of their own; else links are shares of the subscriptions in the order of
their first range. So an event that matches many subscriptions still goes over few links.

The methods take turns, event by event from the same list. Times are processor time of the thread,
which other work on the machine changes less than time that passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, median
from time import thread_time
from typing import NamedTuple

import numpy as np

from tidegate.experiments.gryphon_workload import GryphonWorkload
from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.workloads import WORKLOADS as MATCHING_WORKLOADS
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.parsing.bulk import BulkParser
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.matcher import (
    COLLECTED,
    LinkMatcher,
    LinkMatches,
    StepCountingMatcher,
)
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.matcher import TreeMatcher

SIZES = (1_000, 10_000, 100_000)
LINKS = (3, 10)
LOCALITIES = ("spread", "regional")
EVENTS = 400
OWN_SHARE = 1 / 39
"""The share of a broker's own subscriptions: that of one of the paper's 39 brokers."""
REGIONS = 3

GRYPHON = {
    "gryphon": GryphonWorkload(attributes=10),
    "gryphon-rare": GryphonWorkload(attributes=10, degradation=0.95),
}
WORKLOADS = (*GRYPHON, "ranges", "market")


@dataclass(frozen=True, slots=True)
class LinkSpeed:
    """Figures of one method, for each event."""

    workload: str
    subscriptions: int
    links: int
    locality: str
    method: str
    median_us: float
    slowest_us: float
    fastest_us: float
    steps: float | None
    """Matching steps; None for a method that does not count them."""
    matches: float
    """Subscriptions that match."""
    found: float
    """Links over which the event goes."""
    own: float
    """The broker's own subscriptions that match."""
    set_links_us: float
    """The time to set the links of a subscription."""
    is_same: bool
    """Whether the answers are those of matching in full with the columnar index."""


class LinkWorkload(NamedTuple):
    """Subscriptions, where each lies by its content, and events to search links for."""

    filters: list[Filter]
    region: list[int]
    """A region of each subscription; those of one region ask for similar values."""
    regions: int
    events: list[Event]


def workload(name: str, size: int, events: int = EVENTS, seed: int = 1) -> LinkWorkload:
    """The workload of a name; the same seed gives the same one."""
    if name in GRYPHON:
        return _gryphon(GRYPHON[name], size, events, seed)
    chosen = MATCHING_WORKLOADS[name]
    # the place of a subscription is the low bound of its first range
    place = np.full(size, np.nan)
    for condition in chosen.conditions(size, seed):
        if not condition.names:
            new = np.isnan(place[condition.rows])
            place[condition.rows[new]] = condition.low[new]
    region = np.empty(size, np.int64)
    region[np.argsort(place, kind="stable")] = np.arange(size)
    table = chosen.events(events, seed)
    return LinkWorkload(
        list(_parsed(map(str, chosen.subscriptions(size, seed)["filter"].to_pylist()))),
        region.tolist(),
        size,
        [Event.of(row) for row in table.to_pylist()],
    )


def _gryphon(settings: GryphonWorkload, size: int, events: int, seed: int) -> LinkWorkload:
    random = Random(seed)
    region = [random.randrange(REGIONS) for _ in range(size)]
    drawn = [settings.random_event(random, random.randrange(REGIONS), 0) for _ in range(events)]
    return LinkWorkload(
        list(_parsed(settings.random_text(random, each) for each in region)),
        region,
        REGIONS,
        [Event(each.attributes) for each in drawn],
    )


def _parsed(texts: Iterable[str]) -> Iterator[Filter]:
    parser = BulkParser()
    return (Filter.of_shape(*parser.read(text)) for text in texts)


def assigned_links(
    drawn: LinkWorkload, links: int, locality: str, own_share: float = OWN_SHARE, seed: int = 1
) -> list[int]:
    """The set of links of each subscription: one link, or COLLECTED for the broker's own.

    >>> drawn = LinkWorkload([], [0, 1, 2, 2], 3, [])
    >>> assigned_links(drawn, 3, "regional", own_share=0)
    [2, 4, 8, 8]
    """
    random = Random(seed)
    assigned = []
    for region in drawn.region:
        if random.random() < own_share:
            assigned.append(COLLECTED)
        elif locality == "spread":
            assigned.append(2 << random.randrange(links))
        else:
            # one of the links that lead to the region, or the link that leads to several regions
            first, last = (links * each // drawn.regions for each in (region, region + 1))
            assigned.append(2 << random.randrange(first, max(first + 1, last)))
    return assigned


def measure(
    name: str,
    sizes: Iterable[int] = SIZES,
    links: Sequence[int] = LINKS,
    localities: Sequence[str] = LOCALITIES,
    *,
    own_share: float = OWN_SHARE,
    rounds: int = 5,
    events: int = EVENTS,
    progress: Progress = silent,
) -> Iterator[LinkSpeed]:
    """Measure a workload: a row for each size, number of links, locality and method."""
    for size in sizes:
        drawn = workload(name, size, events)
        matchers: dict[str, LinkMatcher] = {"columnar": ColumnarMatcher(), "tree": TreeMatcher()}
        for kind, matcher in matchers.items():
            progress(f"{name}, {size:,} subscriptions: building {kind}")
            matcher.add(
                Subscription(str(number), filter) for number, filter in enumerate(drawn.filters)
            )
            matcher.match(drawn.events[0], Moment())  # lays out what is pending
        for count in links:
            for locality in localities:
                progress(f"{name}, {size:,} subscriptions: {count} links, {locality}")
                assigned = assigned_links(drawn, count, locality, own_share)
                set_us = {kind: _set_links(each, assigned) for kind, each in matchers.items()}
                case = _Case(name, size, count, locality, matchers, assigned, set_us)
                yield from _measured(case, drawn.events, rounds)


@dataclass(frozen=True, slots=True)
class _Case:
    """Matchers with the same subscriptions and links."""

    workload: str
    subscriptions: int
    links: int
    locality: str
    matchers: dict[str, LinkMatcher]
    assigned: list[int]
    set_links_us: dict[str, float]

    @property
    def mask(self) -> int:
        """All links, and COLLECTED if the broker has subscribers of its own."""
        return (2 << self.links) - 2 | (COLLECTED in self.assigned)

    def methods(self) -> dict[str, Callable[[Event], LinkMatches]]:
        """The methods to compare, by name; the first one is the reference."""
        return {
            f"{kind} {extent}": method(matcher)
            for extent, method in (("full", self._in_full), ("links", self._by_links))
            for kind, matcher in self.matchers.items()
        }

    def _by_links(self, matcher: LinkMatcher) -> Callable[[Event], LinkMatches]:
        mask = self.mask
        return lambda event: matcher.match_links(event, Moment(), mask)

    def _in_full(self, matcher: LinkMatcher) -> Callable[[Event], LinkMatches]:
        links_of = {str(number): links for number, links in enumerate(self.assigned)}
        counting = matcher if isinstance(matcher, StepCountingMatcher) else None

        def search(event: Event) -> LinkMatches:
            before = counting.steps if counting else 0
            ids = matcher.match(event, Moment())
            found = 0
            for id in ids:
                found |= links_of[id]
            steps = counting.steps - before if counting else 0
            return LinkMatches(found, [id for id in ids if links_of[id] & COLLECTED], steps)

        return search


def _set_links(matcher: LinkMatcher, assigned: Sequence[int]) -> float:
    """Set the links of all subscriptions; returns the time for each, in microseconds."""
    start = thread_time()
    for number, links in enumerate(assigned):
        matcher.set_links(str(number), links)
    return (thread_time() - start) * 1e6 / len(assigned)


def _measured(case: _Case, events: Sequence[Event], rounds: int) -> Iterator[LinkSpeed]:
    methods = case.methods()
    answers = {name: [search(event) for event in events] for name, search in methods.items()}
    times_us: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name, search in methods.items():
            start = thread_time()
            for event in events:
                search(event)
            times_us[name].append((thread_time() - start) * 1e6 / len(events))
    expected = next(iter(answers.values()))
    matches = fmean(len(case.matchers["columnar"].match(each, Moment())) for each in events)
    for name, found in answers.items():
        kind, _ = name.split()
        yield LinkSpeed(
            case.workload,
            case.subscriptions,
            case.links,
            case.locality,
            name,
            median(times_us[name]),
            max(times_us[name]),
            min(times_us[name]),
            fmean(each.steps for each in found) or None,
            matches,
            fmean((each.links & ~COLLECTED).bit_count() for each in found),
            fmean(len(each.collected) for each in found),
            case.set_links_us[kind],
            all(_is_same(*pair) for pair in zip(found, expected, strict=True)),
        )


def _is_same(found: LinkMatches, expected: LinkMatches) -> bool:
    return found.links == expected.links and set(found.collected) == set(expected.collected)

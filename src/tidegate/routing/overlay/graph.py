"""The brokers of a domain and the links between them, with the shortest path between any two.

Rules. (1) Costs are integers and no two paths have the same cost, so there is one shortest path
between two brokers, it is the same in both directions, and parts of it are shortest paths too.
(2) A link counts when both ends have announced it.

From (1): the tree that is rooted at a subscriber and the tree that is rooted at a publisher join
the two by the same brokers, so an event meets the subscription on its way (Siena, 4.2: reverse
paths on a spanning tree for each source).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

Cost = tuple[int, int]
"""What a path costs: microseconds, and a number of its own that tells equal ones apart."""

NO_COST: Cost = (0, 0)
GRAPHS_MAX = 64


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a broker says of its links: its neighbours in a domain and the cost to each."""

    broker: str
    version: int
    """The later of two announcements of a broker has the greater one."""
    costs_us: tuple[tuple[str, int], ...]


class Graph:
    """The links of a domain; does not change."""

    def __init__(self, links: Mapping[str, Mapping[str, int]]) -> None:
        self._links = links
        self._trees: dict[str, Tree] = {}

    @classmethod
    def of(cls, announcements: Iterable[Announcement]) -> Graph:
        """The graph that some announcements give; brokers that know the same share one."""
        said = {each.broker: each.costs_us for each in announcements}
        return _graph_of(tuple(sorted(said.items())))

    def neighbours(self, broker: str) -> Mapping[str, int]:
        """The neighbours of a broker, and the cost to each."""
        return self._links.get(broker, {})

    def tree(self, root: str) -> Tree:
        """The shortest paths from a broker."""
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = _shortest_paths(self._links, root)
        return tree

    def reaches(self, one: str, other: str) -> bool:
        """Whether there is a path between two brokers."""
        return one == other or any(each == other for each in self._around(one))

    def _around(self, broker: str) -> Iterator[str]:
        """All brokers that can be reached from one, nearest first."""
        seen = {broker}
        waiting = [broker]
        for each in waiting:
            for near in self.neighbours(each):
                if near not in seen:
                    seen.add(near)
                    waiting.append(near)
                    yield near


@dataclass(frozen=True, slots=True)
class Tree:
    """The shortest paths from a root to all brokers that it reaches."""

    root: str
    costs: Mapping[str, Cost]
    parents: Mapping[str, str]
    _children: dict[str, list[str]] = field(default_factory=dict)

    def children(self, broker: str) -> list[str]:
        """The neighbours of a broker whose paths from the root lead through it."""
        return self._children.get(broker, [])

    def leads(self, through: Tree, to: str) -> bool:
        """Whether the path from this root to a broker leads through the root of another tree."""
        here, there, onward = (
            self.costs.get(through.root),
            self.costs.get(to),
            through.costs.get(to),
        )
        if here is None or there is None or onward is None:
            return False
        return (here[0] + onward[0], here[1] + onward[1]) == there


def _shortest_paths(links: Mapping[str, Mapping[str, int]], root: str) -> Tree:
    costs: dict[str, Cost] = {}
    parents: dict[str, str] = {}
    waiting: list[tuple[Cost, str, str]] = [(NO_COST, root, "")]
    while waiting:
        cost, broker, parent = heapq.heappop(waiting)
        if broker in costs:
            continue
        costs[broker] = cost
        if broker != root:
            parents[broker] = parent
        for near, link_us in links.get(broker, {}).items():
            if near not in costs:
                onward = (cost[0] + link_us, cost[1] + _own_number(broker, near))
                heapq.heappush(waiting, (onward, near, broker))
    tree = Tree(root, costs, parents)
    for broker, parent in parents.items():
        tree._children.setdefault(parent, []).append(broker)
    return tree


@lru_cache(maxsize=1 << 16)
def _own_number(a: str, b: str) -> int:
    """A number for a link, the same from both ends; sums of some of them are never the same."""
    ends = "\0".join(sorted((a, b)))
    return int.from_bytes(blake2b(ends.encode(), digest_size=12).digest(), "big")


@lru_cache(maxsize=GRAPHS_MAX)
def _graph_of(said: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]) -> Graph:
    costs = {broker: dict(near) for broker, near in said}
    links: dict[str, dict[str, int]] = {}
    for broker, near in costs.items():
        for other, cost in near.items():
            back = costs.get(other, {}).get(broker)
            if back is not None:
                links.setdefault(broker, {})[other] = max(cost, back)
    return Graph(links)

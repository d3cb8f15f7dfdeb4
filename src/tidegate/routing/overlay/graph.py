"""The brokers of a domain and the links between them, with the shortest path between any two.

Rules.

(1) Costs of paths are integers, and no two paths have the same cost. So there is one shortest path
    between two brokers, it is the same in both directions, and its parts are shortest paths too.
(2) A link counts when both ends have announced it.

From (1): the tree rooted at a subscriber's broker and the tree rooted at a publisher's broker join
the two by the same path. An event that goes down the publisher's tree therefore meets the
subscription at each broker of this path (Siena, 4.2: reverse paths on a tree for each source).
Floats as costs would break rule (1), because their sums depend on the order of addition.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

Cost = tuple[int, int]
"""The cost of a path: microseconds, and the sum of the tie-breakers of its links."""

NO_COST: Cost = (0, 0)
GRAPHS_MAX = 64
"""How many graphs are shared by brokers that know the same links."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """The links of a broker in a domain, as it announces them: its neighbours with costs."""

    broker: str
    version: int
    """Later announcements of a broker have higher versions."""
    costs_us: tuple[tuple[str, int], ...]


class Graph:
    """The links of a domain; immutable, so that brokers can share it with its trees."""

    def __init__(self, links: Mapping[str, Mapping[str, int]]) -> None:
        self._links = links
        self._trees: dict[str, Tree] = {}

    @classmethod
    def of(cls, announcements: Iterable[Announcement]) -> Graph:
        """The graph of the announced links; brokers that know the same links share one object."""
        announced = {each.broker: each.costs_us for each in announcements}
        return _graph_of(tuple(sorted(announced.items())))

    def neighbours(self, broker: str) -> Mapping[str, int]:
        """The neighbours of a broker, with the cost of each link in microseconds."""
        return self._links.get(broker, {})

    def tree(self, root: str) -> Tree:
        """The tree of shortest paths from a broker."""
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = _shortest_paths(self._links, root)
        return tree

    def reaches(self, one: str, other: str) -> bool:
        """Whether there is a path between two brokers."""
        return one == other or any(each == other for each in self._reachable_from(one))

    def _reachable_from(self, broker: str) -> Iterator[str]:
        """All other brokers that can be reached from one, nearest first."""
        seen = {broker}
        waiting = [broker]
        for each in waiting:
            for neighbour in self.neighbours(each):
                if neighbour not in seen:
                    seen.add(neighbour)
                    waiting.append(neighbour)
                    yield neighbour


@dataclass(frozen=True, slots=True)
class Tree:
    """The shortest paths from a root to all brokers that it reaches."""

    root: str
    costs: Mapping[str, Cost]
    parents: Mapping[str, str]
    """The last broker before each one, on the path from the root."""
    _children: dict[str, list[str]] = field(default_factory=dict)

    def children(self, broker: str) -> list[str]:
        """The neighbours of a broker whose paths from the root lead through it."""
        return self._children.get(broker, [])

    def subtree(self, broker: str) -> list[str]:
        """The brokers whose paths from the root lead through a broker, which is the first."""
        found = [broker]
        for each in found:
            found += self.children(each)
        return found

    def passes(self, through: Tree, to: str) -> bool:
        """Whether the path from this root to a broker passes through the root of another tree.

        As no two paths cost the same, it does exactly if the costs of its two parts add up.
        """
        first_part, whole, second_part = (
            self.costs.get(through.root),
            self.costs.get(to),
            through.costs.get(to),
        )
        if first_part is None or whole is None or second_part is None:
            return False
        return (first_part[0] + second_part[0], first_part[1] + second_part[1]) == whole


def _shortest_paths(links: Mapping[str, Mapping[str, int]], root: str) -> Tree:
    """Dijkstra's algorithm."""
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
        for neighbour, link_us in links.get(broker, {}).items():
            if neighbour not in costs:
                onward = (cost[0] + link_us, cost[1] + _tie_breaker(broker, neighbour))
                heapq.heappush(waiting, (onward, neighbour, broker))
    tree = Tree(root, costs, parents)
    for broker, parent in parents.items():
        tree._children.setdefault(parent, []).append(broker)
    return tree


@lru_cache(maxsize=1 << 16)
def _tie_breaker(a: str, b: str) -> int:
    """A number for a link, the same from both ends and at all brokers.

    It has 96 bits of a hash of the names, so the sums along two paths are never equal in practice.
    Python's own `hash` would differ from process to process.
    """
    ends = "\0".join(sorted((a, b)))
    return int.from_bytes(blake2b(ends.encode(), digest_size=12).digest(), "big")


@lru_cache(maxsize=GRAPHS_MAX)
def _graph_of(announced: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]) -> Graph:
    costs = {broker: dict(neighbours) for broker, neighbours in announced}
    links: dict[str, dict[str, int]] = {}
    for broker, neighbours in costs.items():
        for other, cost in neighbours.items():
            back = costs.get(other, {}).get(broker)
            if back is not None:
                # Both ends must use the same cost: the higher of the two.
                links.setdefault(broker, {})[other] = max(cost, back)
    return Graph(links)

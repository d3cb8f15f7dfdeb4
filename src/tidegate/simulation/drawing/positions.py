"""Layout of an overlay: the positions at which its brokers are drawn.

Positions that are part of an overlay are kept. A hierarchy hangs from its root, and other trees
spread around their centre, so that no links cross. A graph with cycles is laid out by Kamada and
Kawai's method: distances on the page follow those over the links, with long delays compressed, so
that near brokers form clusters. Its cost grows with the pairs of brokers, so a large graph is laid
out like its tree of shortest paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import acos, cos, log2, pi, sin

import networkx as nx

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.reshaping import central, hierarchical
from tidegate.simulation.overlays.topology import Topology

GRAPH_BROKERS_MAX = 200
"""The size up to which a graph with cycles is laid out by distances."""
HANGING_LEAVES_MAX = 30
"""The width up to which a hierarchy hangs from its root; a wider one spreads around it."""

Positions = Mapping[str, tuple[float, float]]


def layout(topology: Topology) -> Positions:
    """A point for each broker; the same overlay always has the same points."""
    if len(topology.positions) == len(topology.brokers):
        return topology.positions
    if not topology.is_acyclic and len(topology.brokers) <= GRAPH_BROKERS_MAX:
        return _by_distances(topology)
    root = _root(topology)
    tree = _TreeDrawing(hierarchical(topology, root), root)
    hangs = set(topology.domains.values()) == {Architecture.HIERARCHICAL}
    if hangs and tree.leaves[root] <= HANGING_LEAVES_MAX:
        return tree.hanging()
    return tree.around()


def _root(topology: Topology) -> str:
    """The root of a hierarchy, or else the centre of the overlay."""
    if set(topology.domains.values()) == {Architecture.HIERARCHICAL}:
        return next(broker for broker in topology.brokers if topology.master(broker) is None)
    return central(topology)


class _TreeDrawing:
    """A tree to be laid out: each broker gets a share of the width, by the leaves below it."""

    def __init__(self, hierarchy: Topology, root: str) -> None:
        self._children: dict[str, list[str]] = {broker: [] for broker in hierarchy.brokers}
        for link in hierarchy.links:
            self._children[link.a].append(link.b)
        self._order = [root]
        self._depths = {root: 0}
        for broker in self._order:  # grows during the loop: breadth first
            for child in self._children[broker]:
                self._depths[child] = self._depths[broker] + 1
                self._order.append(child)
        self.leaves: dict[str, int] = {}
        for broker in reversed(self._order):
            below = sum(self.leaves[child] for child in self._children[broker])
            self.leaves[broker] = max(1, below)

    def hanging(self) -> Positions:
        """Levels below each other, each broker above the middle of its children."""
        step = 0.6 * self.leaves[self._order[0]] / max(1, *self._depths.values())
        return {
            broker: (middle, -step * self._depths[broker])
            for broker, middle in self._middles().items()
        }

    def around(self) -> Positions:
        """Levels as rings around the root; a chain becomes a straight line.

        The children of a broker stay within the tangent of its ring, so that no link cuts through
        the rings inside and crosses others (Eades, "Drawing Free Trees").
        """
        root = self._order[0]
        sectors = {root: (-pi / 2, 2 * pi)}
        positions = {}
        for broker in self._order:
            start, width = sectors[broker]
            angle, radius = start + width / 2, self._depths[broker]
            positions[broker] = (radius * cos(angle), radius * sin(angle))
            width = min(width, 2 * acos(radius / (radius + 1)) if radius else width)
            start = angle - width / 2
            for child in self._children[broker]:
                share = width * self.leaves[child] / self.leaves[broker]
                sectors[child] = (start, share)
                start += share
        return positions

    def _middles(self) -> dict[str, float]:
        """The middle of each broker's share of 0 to the number of leaves."""
        starts = {self._order[0]: 0.0}
        for broker in self._order:
            start = starts[broker]
            for child in self._children[broker]:
                starts[child] = start
                start += self.leaves[child]
        return {broker: start + self.leaves[broker] / 2 for broker, start in starts.items()}


def _by_distances(topology: Topology) -> Positions:
    """Kamada and Kawai's layout, which starts from that of the tree of shortest paths."""
    # Drawn lengths grow with the logarithm of delays, which differ by a factor of a hundred.
    shortest_s = min((link.delay_s for link in topology.links if link.delay_s), default=1.0)
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(topology.brokers)
    for link in topology.links:
        graph.add_edge(link.a, link.b, length=1 + log2(max(1, link.delay_s / shortest_s)) / 2)
    root = central(topology)
    start = _TreeDrawing(hierarchical(topology, root), root).around()
    laid_out = nx.kamada_kawai_layout(graph, pos=dict(start), weight="length")
    return {broker: (float(x), float(y)) for broker, (x, y) in laid_out.items()}

"""A summary of an overlay in a few figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import networkx as nx

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.counting import counted
from tidegate.simulation.overlays.topology import Topology


@dataclass(frozen=True, slots=True)
class OverlaySummary:
    """The size and structure of an overlay.

    The diameter is the largest number of links on a shortest path between two brokers.
    """

    name: str
    brokers: int
    links: int
    diameter_hops: int
    mean_degree: float
    delays_s: tuple[float, float] | None
    domains: Mapping[Architecture, int]
    regions: int

    def lines(self) -> list[str]:
        """The figures as lines of text."""
        rows = {
            "name": self.name,
            "brokers": f"{self.brokers:,}",
            "links": f"{self.links:,}",
            "diameter": counted(self.diameter_hops, "hop"),
            "mean degree": f"{self.mean_degree:.2f}",
            "delays": self._delays(),
            "domains": ", ".join(f"{n:,} {kind.value}" for kind, n in self.domains.items()),
            "regions": f"{self.regions:,}" if self.regions else "",
        }
        return [f"{name:<14}{text or 'none'}" for name, text in rows.items()]

    def _delays(self) -> str:
        if self.delays_s is None:
            return ""
        low, high = (f"{1000 * delay_s:g}" for delay_s in self.delays_s)
        return f"{low} ms" if low == high else f"{low} to {high} ms"


def summarize(topology: Topology) -> OverlaySummary:
    """Compute the summary of an overlay.

    >>> from tidegate.simulation.overlays.generators import generate
    >>> summarize(generate("chain", 5)).diameter_hops
    4
    """
    delays_s = [link.delay_s for link in topology.links]
    kinds = Counter(topology.domains.values())
    return OverlaySummary(
        topology.name,
        len(topology.brokers),
        len(topology.links),
        nx.diameter(topology.graph(), usebounds=True),  # bounds avoid a search from every broker
        2 * len(topology.links) / len(topology.brokers),
        (min(delays_s), max(delays_s)) if delays_s else None,
        {kind: kinds[kind] for kind in Architecture if kind in kinds},
        len(set(topology.regions.values())),
    )

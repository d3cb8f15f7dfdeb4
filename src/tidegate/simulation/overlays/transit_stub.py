"""Networks of the transit-stub model, on which Siena was studied (Siena, 6).

The model is that of the generator GT-ITM (Zegura, Calvert and Bhattacharjee, How to model an
internetwork, 1996): *transit* domains are backbones, joined with each other; each of their nodes
has *stub* domains, the networks of organisations, whose traffic with others goes through it. Its
usual network of 100 sites has one transit domain of 4 nodes, each with 3 stub domains of 8 sites:
4 (1 + 3 × 8) = 100. Other sizes keep these proportions; the sizes of stub domains vary around 8.

The study puts a broker at each site and links those of neighbouring sites. The general overlay has
all links; `reshaping.py` derives an acyclic and a hierarchical one from it.

"Domain" here is the model's word for a part of the Internet. These parts are the overlay's regions;
in the sense of `topology.py` all links are of one domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.plain_networks import (
    MEAN_DEGREE,
    connected_pairs,
    one_domain,
    random_delay_s,
)
from tidegate.simulation.overlays.topology import Topology

SITES_PER_TRANSIT_NODE = 25
SITES_PER_STUB = 8
TRANSIT_NODES_PER_DOMAIN_MAX = 8

# The ranges do not overlap, so a path inside a stub is always shorter than one around it.
_STUB_DELAYS_S = (0.001, 0.005)
_STUB_TO_TRANSIT_DELAYS_S = (0.006, 0.015)
_TRANSIT_DELAYS_S = (0.020, 0.050)
_BETWEEN_TRANSITS_DELAYS_S = (0.060, 0.100)

_DelayRange = tuple[float, float]


def transit_stub(brokers: int = 100, seed: int = 0) -> Topology:
    """A general overlay on a random transit-stub network.

    Transit brokers are called `t0.1` (node 1 of transit domain 0), stub brokers `s7.2`; the region
    of a broker is the part before the dot.

    >>> overlay = transit_stub(100, seed=3)
    >>> overlay.regions["t0.1"], len(set(overlay.regions.values()))
    ('t0', 13)
    """
    return _Builder(Random(seed)).build(brokers)


class _Builder:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._regions: dict[str, str] = {}
        self._links: list[tuple[str, str, float]] = []

    def build(self, brokers: int) -> Topology:
        transit_count = max(1, round(brokers / SITES_PER_TRANSIT_NODE))
        stubs_total = brokers - min(transit_count, brokers)
        transits = self._transits(min(transit_count, brokers))
        stub_count = -(-stubs_total // SITES_PER_STUB)
        for number, size in enumerate(self._split(stubs_total, stub_count)):
            stub = self._region(f"s{number}", size, _STUB_DELAYS_S)
            transit = transits[number % len(transits)]
            self._join(transit, self._random.choice(stub), _STUB_TO_TRANSIT_DELAYS_S)
        return one_domain(
            "transit-stub", self._regions, self._links, Architecture.GENERAL, self._regions
        )

    def _transits(self, count: int) -> list[str]:
        """Add the transit domains and the links between them; returns their nodes."""
        domains = -(-count // TRANSIT_NODES_PER_DOMAIN_MAX)
        transits = [
            self._region(f"t{number}", size, _TRANSIT_DELAYS_S)
            for number, size in enumerate(self._split(count, domains))
        ]
        for a, b in connected_pairs(domains, MEAN_DEGREE, self._random):
            ends = self._random.choice(transits[a]), self._random.choice(transits[b])
            self._join(*ends, _BETWEEN_TRANSITS_DELAYS_S)
        return [node for transit in transits for node in transit]

    def _region(self, region: str, size: int, delays_s: _DelayRange) -> Sequence[str]:
        """Add a transit or stub domain, a connected random graph; returns its nodes."""
        nodes = [f"{region}.{i}" for i in range(size)]
        self._regions.update(dict.fromkeys(nodes, region))
        for a, b in connected_pairs(size, MEAN_DEGREE, self._random):
            self._join(nodes[a], nodes[b], delays_s)
        return nodes

    def _join(self, a: str, b: str, delays_s: _DelayRange) -> None:
        self._links.append((a, b, random_delay_s(*delays_s, self._random)))

    def _split(self, total: int, parts: int) -> list[int]:
        """Random sizes that add up to the total, each at least 1."""
        sizes = [1] * parts
        for _ in range(total - parts):
            sizes[self._random.randrange(parts)] += 1
        return sizes

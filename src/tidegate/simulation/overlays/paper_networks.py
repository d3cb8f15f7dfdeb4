"""The overlays on which the papers evaluated, as far as their texts describe them.

Where the copy of a paper lacks a figure, or the paper never listed the links, the docstring names
what was chosen here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import asin, cos, radians, sin, sqrt

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.plain_networks import DELAY_S, one_domain
from tidegate.simulation.overlays.topology import Topology

_EARTH_RADIUS_KM = 6371.0
_FIBRE_KM_PER_S = 200_000.0  # two thirds of the speed of light

_SUMMARIES_13 = "1-2 2-5 3-5 4-5 5-6 5-7 7-8 8-9 8-10 10-11 11-12 11-13"

_City = tuple[float, float, str]
"""Longitude and latitude in degrees, and the region."""

_CITIES: dict[str, _City] = {
    "Seattle": (-122.33, 47.61, "west"),
    "Portland": (-122.68, 45.52, "west"),
    "San Francisco": (-122.42, 37.77, "west"),
    "San Jose": (-121.89, 37.34, "west"),
    "Los Angeles": (-118.24, 34.05, "west"),
    "Phoenix": (-112.07, 33.45, "west"),
    "Salt Lake City": (-111.89, 40.76, "west"),
    "Denver": (-104.99, 39.74, "middle"),
    "Dallas": (-96.80, 32.78, "middle"),
    "Houston": (-95.37, 29.76, "middle"),
    "Kansas City": (-94.58, 39.10, "middle"),
    "Minneapolis": (-93.27, 44.98, "middle"),
    "St. Louis": (-90.20, 38.63, "middle"),
    "New Orleans": (-90.07, 29.95, "middle"),
    "Chicago": (-87.63, 41.88, "middle"),
    "Nashville": (-86.78, 36.16, "east"),
    "Atlanta": (-84.39, 33.75, "east"),
    "Detroit": (-83.05, 42.33, "east"),
    "Cleveland": (-81.69, 41.50, "east"),
    "Miami": (-80.19, 25.76, "east"),
    "Washington": (-77.04, 38.91, "east"),
    "Philadelphia": (-75.17, 39.95, "east"),
    "New York": (-74.01, 40.71, "east"),
    "Boston": (-71.06, 42.36, "east"),
}
_ROUTES = (
    "Seattle-Portland-San Francisco-San Jose-Los Angeles-Phoenix-Dallas-Houston-New Orleans",
    "New Orleans-Atlanta-Washington-Philadelphia-New York-Boston-Cleveland-Detroit-Chicago",
    "Seattle-Minneapolis-Chicago-New York",
    "San Francisco-Salt Lake City-Denver-Kansas City-St. Louis-Chicago",
    "San Jose-Dallas-Kansas City",
    "Los Angeles-Salt Lake City",
    "Houston-Miami-Atlanta-Nashville-St. Louis-Washington",
    "Dallas-Atlanta",
    "Denver-Chicago",
    "Cleveland-Washington-New York",
    "Miami-Washington",
)

_CWIX_CITIES: dict[str, _City] = {
    "San Francisco": _CITIES["San Francisco"],
    "Los Angeles": _CITIES["Los Angeles"],
    "Denver": _CITIES["Denver"],
    "Kansas City": _CITIES["Kansas City"],
    "Dallas": _CITIES["Dallas"],
    "Houston": _CITIES["Houston"],
    "Chicago": _CITIES["Chicago"],
    "Cleveland": _CITIES["Cleveland"],
    "Akron": (-81.52, 41.08, "east"),
    "Pittsburgh": (-80.00, 40.44, "east"),
    "Richmond": (-77.44, 37.54, "east"),
    "Baltimore": (-76.61, 39.29, "east"),
    "Philadelphia": _CITIES["Philadelphia"],
    "Pennsauken": (-75.06, 39.96, "east"),
    "New York": _CITIES["New York"],
    "Hartford": (-72.69, 41.76, "east"),
    "Boston": _CITIES["Boston"],
    "Atlanta": _CITIES["Atlanta"],
    "Raleigh": (-78.64, 35.78, "east"),
    "Jacksonville": (-81.66, 30.33, "east"),
    "Orlando": (-81.38, 28.54, "east"),
    "Tampa": (-82.46, 27.95, "east"),
    "Fort Lauderdale": (-80.14, 26.12, "east"),
    "Miami": _CITIES["Miami"],
}
_CWIX_ROUTES = (
    "New York-San Francisco-Los Angeles-Dallas-Atlanta-Baltimore-Philadelphia-Pennsauken-New York",
    "San Francisco-Denver-Kansas City-Chicago-New York-Hartford-Boston-New York",
    "Kansas City-Dallas-Houston",
    "Chicago-Akron-Pittsburgh-Baltimore-Richmond-Raleigh-Jacksonville-Orlando-Fort Lauderdale",
    "Akron-Cleveland",
    "Miami-Fort Lauderdale-Tampa-Atlanta",
)


def gryphon() -> Topology:
    """The 39 brokers of Gryphon's simulation (link matching, 4.1).

    Three trees of 13 brokers far from each other. Their roots are linked with each other (65, 50
    and 75 ms); links to the second level take 25 ms, to the third 10 ms, and to clients, which are
    not part of an overlay, 1 ms. Figure 5 is missing, and with it the shape of a tree and the
    lateral links. The text says only that these are few, take 50 ms, and are not between roots.
    Chosen here: a root with 3 children that have 3 each; a lateral link between the second levels
    of any two trees; and which of the links between roots has which delay.

    Brokers are named by their path from the root: `A`, `A.1`, `A.1.2`.
    """
    regions: dict[str, str] = {}
    links = [("A", "B", 0.065), ("B", "C", 0.050), ("A", "C", 0.075)]
    for root in "ABC":
        regions[root] = root
        for i in (1, 2, 3):
            regions[f"{root}.{i}"] = root
            links.append((root, f"{root}.{i}", 0.025))
            for j in (1, 2, 3):
                regions[f"{root}.{i}.{j}"] = root
                links.append((f"{root}.{i}", f"{root}.{i}.{j}", 0.010))
    links += [("A.3", "B.1", 0.050), ("B.3", "C.1", 0.050), ("C.3", "A.1", 0.050)]
    return one_domain("gryphon", regions, links, Architecture.GENERAL, regions)


def summaries13() -> Topology:
    """The tree of 13 brokers of the example of subscription summaries (example 3, figure 7).

    The figure is missing, but the text determines the links: it names the leaves and the brokers of
    degree 2, says that 5 has degree 5, whose summaries 2, 5 and 8 merge, to which brokers 7 and 10
    may send, and that it is a tree. It gives no delays; here all links have the same.
    """
    links = [tuple(pair.split("-")) for pair in _SUMMARIES_13.split()]
    brokers = [str(number) for number in range(1, 14)]
    delayed = [(a, b, DELAY_S) for a, b in links]
    return one_domain("summaries13", brokers, delayed, Architecture.ACYCLIC)


def isp24() -> Topology:
    """A backbone of 24 cities of the United States, in place of that of subscription summaries.

    The paper (5.2.1) used the backbone of Cable & Wireless, with 24 nodes, and refers to a web page
    that no longer exists; it lists no links (`cwix24` is probably nearer to it). The cities and
    links were chosen here, after the maps that providers published: routes along the coasts and
    some across the continent, degrees from 2 to 6. A delay is that of light in fibre along the
    great circle.
    """
    return _backbone("isp24", _CITIES, _ROUTES)


def cwix24() -> Topology:
    """The backbone of Cable & Wireless in the United States, with 24 nodes.

    Probably that of subscription summaries (5.2.1), which has as many: the links are those of the
    provider's map as the Internet Topology Zoo has it (Cwix), without the links to other countries.
    There two nodes have the name Pittsburgh; the one between Philadelphia and New York is called
    Pennsauken here. Three cities are at the end of a single link, and 12 have two.
    """
    return _backbone("cwix24", _CWIX_CITIES, _CWIX_ROUTES)


def _backbone(name: str, cities: Mapping[str, _City], routes: Iterable[str]) -> Topology:
    links = []
    for route in routes:
        ways = pairwise(route.split("-"))
        links += [(a, b, _fibre_delay_s(cities[a], cities[b])) for a, b in ways]
    regions = {city: region for city, (_, _, region) in cities.items()}
    positions = {city: (x * cos(radians(38)), y) for city, (x, y, _) in cities.items()}
    return one_domain(name, cities, links, Architecture.GENERAL, regions, positions)


def highway20() -> Topology:
    """20 brokers along highways (parametric subscriptions, 5.4), every link 10 ms.

    Of the paper's overlay it is known that it has 20 brokers and is a connected graph. Chosen here:
    five highways lead out of a city, with four brokers each, and two ring roads cross them. `h2.3`
    is broker 3, from the city outwards, of highway 2; a highway is a region.
    """
    regions: dict[str, str] = {}
    positions: dict[str, tuple[float, float]] = {}
    links = []
    for highway in range(5):
        angle = radians(90 - 72 * highway)
        for i in range(4):
            regions[f"h{highway}.{i}"] = f"h{highway}"
            positions[f"h{highway}.{i}"] = ((i + 1) * cos(angle), (i + 1) * sin(angle))
        links += [(f"h{highway}.{i}", f"h{highway}.{i + 1}", DELAY_S) for i in range(3)]
        for ring in (0, 2):
            links.append((f"h{highway}.{ring}", f"h{(highway + 1) % 5}.{ring}", DELAY_S))
    return one_domain("highway20", regions, links, Architecture.GENERAL, regions, positions)


def trading20() -> Topology:
    """20 brokers of a trading system (parametric subscriptions, 5.5), every link 10 ms.

    The paper's hierarchy: market data at the top, below it clearing houses, brokerages, and small
    firms; publishers are at the top, and at least 3 brokers lie between them and subscribers, who
    are thus at brokerages or firms. The sizes of the levels were chosen here: 1, 3, 6 and 10. The
    region of a broker is its clearing house, that of the top is `market`.
    """
    regions = {"market": "market"}
    links = []
    for level, above, count in (
        ("clearing", "market", 3),
        ("brokerage", "clearing", 6),
        ("firm", "brokerage", 10),
    ):
        parents = [broker for broker in regions if broker.startswith(above)]
        for i in range(count):
            parent, broker = parents[i % len(parents)], f"{level}{i}"
            regions[broker] = broker if level == "clearing" else regions[parent]
            links.append((parent, broker, DELAY_S))
    return one_domain("trading20", regions, links, Architecture.HIERARCHICAL, regions)


def _fibre_delay_s(a: _City, b: _City) -> float:
    """The time of light in fibre between two cities, in whole microseconds (haversine formula)."""
    (lon_a, lat_a, _), (lon_b, lat_b, _) = a, b
    lon_a, lat_a, lon_b, lat_b = map(radians, (lon_a, lat_a, lon_b, lat_b))
    half_chord = sqrt(
        sin((lat_b - lat_a) / 2) ** 2 + cos(lat_a) * cos(lat_b) * sin((lon_b - lon_a) / 2) ** 2
    )
    return round(2 * _EARTH_RADIUS_KM * asin(half_chord) / _FIBRE_KM_PER_S, 6)

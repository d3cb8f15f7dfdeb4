"""The loads of an overlay, that is, the messages of its links and brokers, for pictures.

As JSON: {"links": {"a-b": 12}, "brokers": {"a": 40}}. Either may be absent, and so may links and
brokers without messages. The ends of a link may be named in either order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.errors import TopologyError
from tidegate.simulation.overlays.topology import Link, Topology


@dataclass(frozen=True, slots=True)
class Loads:
    """The numbers of messages; links and brokers that are absent have none."""

    links: Mapping[Link, float] = field(default_factory=dict)
    brokers: Mapping[str, float] = field(default_factory=dict)


def loads_from_json(text: str | bytes, topology: Topology) -> Loads:
    """Read the loads of an overlay; raises TopologyError that names what is wrong.

    >>> from tidegate.simulation.overlays.generators import generate
    >>> loads_from_json('{"brokers": {"b1": 7}}', generate("chain", 3)).brokers
    {'b1': 7}
    """
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TopologyError(f"loads are not valid JSON: {error}") from None
    if not isinstance(decoded, dict) or not set(decoded) <= {"links", "brokers"}:
        raise TopologyError('loads must be a JSON object with "links", "brokers" or both')
    named = _links_by_name(topology)
    links: dict[Link, float] = {}
    for name, load in _counts(decoded, "links").items():
        if name not in named:
            raise TopologyError(f"loads of {name!r}: there is no such link in {topology.name!r}")
        link = named[name]
        if link is None:
            raise TopologyError(f"loads of {name!r}: two links have this name")
        links[link] = links.get(link, 0) + load  # each direction may have its own entry
    brokers = _counts(decoded, "brokers")
    for broker in brokers:
        topology.links_of(broker)  # raises if there is no such broker
    return Loads(links, brokers)


def _links_by_name(topology: Topology) -> dict[str, Link | None]:
    """Links by both of their names; None for a name of two links.

    `a-b-c` may be the link of `a` and `b-c` or that of `a-b` and `c`.
    """
    by_name: dict[str, Link | None] = {}
    for link in topology.links:
        for name in (f"{link.a}-{link.b}", f"{link.b}-{link.a}"):
            by_name[name] = None if name in by_name else link
    return by_name


def _counts(decoded: Mapping[str, object], field: str) -> dict[str, float]:
    counts = decoded.get(field, {})
    if not isinstance(counts, dict):
        raise TopologyError(f"{field!r} of loads must be an object of names and numbers")
    for name, count in counts.items():
        is_number = isinstance(count, int | float) and not isinstance(count, bool)
        if not is_number or not 0 <= count < math.inf:
            raise TopologyError(f"the load of {name!r} must be a number, 0 or more")
    return counts

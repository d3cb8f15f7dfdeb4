"""How many messages went over links and through brokers, for pictures of an overlay.

As JSON: {"links": {"a-b": 12}, "brokers": {"a": 40}}; either may be left out, and so may a link or
broker without messages. The ends of a link are named in either order.
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
    """Messages of links and of brokers; what is not named has none."""

    links: Mapping[Link, float] = field(default_factory=dict)
    brokers: Mapping[str, float] = field(default_factory=dict)


def loads_from_json(text: str | bytes, topology: Topology) -> Loads:
    """Read the loads of an overlay; raises TopologyError for what it has not.

    >>> from tidegate.simulation.overlays.generators import generate
    >>> loads_from_json('{"brokers": {"b1": 7}}', generate("chain", 3)).brokers
    {'b1': 7}
    """
    try:
        made = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TopologyError(f"loads that are not valid JSON: {error}") from None
    if not isinstance(made, dict) or not set(made) <= {"links", "brokers"}:
        raise TopologyError('loads must be a JSON object with "links", "brokers" or both')
    named = _links_by_name(topology)
    links: dict[Link, float] = {}
    for name, load in _counts(made, "links").items():
        if name not in named:
            raise TopologyError(f"loads of {name!r}: there is no such link in {topology.name!r}")
        link = named[name]
        if link is None:
            raise TopologyError(f"loads of {name!r}: there are two links that this could be")
        links[link] = links.get(link, 0) + load  # each direction may have its own entry
    brokers = _counts(made, "brokers")
    for broker in brokers:
        topology.links_of(broker)  # raises if there is no such broker
    return Loads(links, brokers)


def _links_by_name(topology: Topology) -> dict[str, Link | None]:
    """Links by both of their names; None where names of brokers with hyphens make two links one."""
    found: dict[str, Link | None] = {}
    for link in topology.links:
        for name in (f"{link.a}-{link.b}", f"{link.b}-{link.a}"):
            found[name] = None if name in found else link
    return found


def _counts(made: Mapping[str, object], field: str) -> dict[str, float]:
    counts = made.get(field, {})
    if not isinstance(counts, dict):
        raise TopologyError(f"{field!r} of loads must be an object of names and numbers")
    for name, count in counts.items():
        number = isinstance(count, int | float) and not isinstance(count, bool)
        if not number or not 0 <= count < math.inf:
            raise TopologyError(f"the load of {name!r} must be a number, 0 or more")
    return counts

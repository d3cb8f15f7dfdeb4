"""The overlay of a network that runs, as its brokers have announced it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.errors import NetworkError
from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.topology import Link, Topology


def overlay_of(state: Mapping[str, Any]) -> Topology:
    """The overlay that a broker knows, from the state that its admin port tells.

    A hierarchical domain is shown as an acyclic one: brokers announce their links, and not who is
    whose master.
    """
    brokers: dict[str, None] = {}
    links: list[Link] = []
    domains: dict[str, Architecture] = {}
    try:
        for domain in state["domains"]:
            brokers.update(dict.fromkeys(domain["brokers"]))
            if domain["links"]:
                is_general = domain["architecture"] == Architecture.GENERAL.value
                kind = Architecture.GENERAL if is_general else Architecture.ACYCLIC
                domains[domain["name"]] = kind
            links += [
                Link(each["a"], each["b"], each["cost_us"] / 1e6, domain["name"])
                for each in domain["links"]
            ]
        linked = {name for link in links for name in (link.a, link.b)}
        # A broker that is gone is known until its links are forgotten, but nothing leads to it.
        names = tuple(name for name in brokers if name in linked or name == state["broker"])
        return Topology(f"the network of {state['broker']}", names, tuple(links), domains)
    except (KeyError, TypeError) as error:
        raise NetworkError(f"the admin port has told no domains: {error!r}") from None

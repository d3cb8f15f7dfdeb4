from __future__ import annotations

import pickle
import re
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import TopologyError
from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.topology import NAME_CHARS_MAX, Link, Topology

ACYCLIC, GENERAL, HIERARCHICAL = (
    Architecture.ACYCLIC,
    Architecture.GENERAL,
    Architecture.HIERARCHICAL,
)


def overlay(links: str, **domains: Architecture) -> Topology:
    """`x: a-b b-c; y: c-d` are links of the domains x and y; brokers are single letters."""
    made = []
    for part in filter(None, links.split(";")):
        domain, _, pairs = part.strip().partition(":")
        for a, _, b in (pair.partition("-") for pair in pairs.split()):
            made.append(Link(a, b, 0.01, domain))
    brokers = dict.fromkeys(end for link in made for end in (link.a, link.b))
    return Topology("test", tuple(brokers), tuple(made), domains)


def refused(reason: str) -> pytest.RaisesExc[TopologyError]:
    return pytest.raises(TopologyError, match=re.escape(reason))


def test_lookups() -> None:
    made = overlay("x: a-b b-c; y: d-b d-e", x=ACYCLIC, y=HIERARCHICAL)
    assert made.neighbours("b") == ("a", "c", "d")
    assert made.link("b", "d") is made.link("d", "b") is made.links[2]
    assert made.links_of("e") == (made.links[3],)
    assert made.domains_of("b") == ("x", "y")
    assert [made.master(broker) for broker in "abde"] == [None, "d", None, "d"]
    assert made.is_acyclic
    assert not overlay("x: a-b b-c c-a", x=GENERAL).is_acyclic


def test_what_is_not_there() -> None:
    made = overlay("x: a-b b-c", x=ACYCLIC)
    with refused("there is no broker 'z' in 'test'"):
        made.neighbours("z")
    with refused("there is no link between 'a' and 'c' in 'test'"):
        made.link("a", "c")


def test_it_is_a_value() -> None:
    links = (Link("a", "b", 0.01, "x"),)
    domains = {"x": GENERAL}
    made = Topology("test", ("a", "b"), links, domains)
    domains["x"] = ACYCLIC
    assert made.domains == {"x": GENERAL}
    again = Topology("test", ("a", "b"), links, {"x": GENERAL})
    assert made == again == pickle.loads(pickle.dumps(made))
    assert hash(made) == hash(again)
    with pytest.raises(FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]


def test_the_graph_has_the_delays() -> None:
    graph = overlay("x: a-b b-c", x=ACYCLIC).graph()
    assert sorted(graph.edges(data="delay_s")) == [("a", "b", 0.01), ("b", "c", 0.01)]


def test_one_broker_is_an_overlay() -> None:
    assert Topology("one", ("a",), (), {}).neighbours("a") == ()


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "x" * (NAME_CHARS_MAX + 1), "a\nb", "\x1b[31m"])
def test_names(name: str) -> None:
    with refused("is no name for a broker, which has 1 to 100 printable characters"):
        Topology("test", (name,), (), {})


def test_brokers() -> None:
    with refused("an overlay has at least one broker"):
        Topology("test", (), (), {})
    with refused("the broker 'a' is named twice"):
        Topology("test", ("a", "a"), (), {})
    with refused("'z' has a region, but there is no such broker"):
        Topology("test", ("a",), (), {}, regions={"z": "north"})
    with refused("'z' has a position, but there is no such broker"):
        Topology("test", ("a",), (), {}, positions={"z": (0, 0)})
    with refused("'a' has the position (nan, 0), which is not finite"):
        Topology("test", ("a",), (), {}, positions={"a": (float("nan"), 0)})
    with refused("100001 brokers; the limit is 100000"):
        Topology("test", ("a",) * 100_001, (), {})
    with refused("1000001 links; the limit is 1000000"):
        Topology("test", ("a",), (Link("a", "b", 0.01, "x"),) * 1_000_001, {})


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        (Link("a", "a", 0.01, "x"), "a link from 'a' to itself"),
        (Link("a", "z", 0.01, "x"), "the link 'a' to 'z': there is no broker 'z'"),
        (Link("z", "b", 0.01, "x"), "the link 'z' to 'b': there is no broker 'z'"),
        (Link("a", "b", 0.01, "y"), "is of the domain 'y', which is not declared"),
        (Link("a", "b", -1, "x"), "has a delay of -1 s; it must be finite and not negative"),
        (
            Link("a", "b", float("nan"), "x"),
            "has a delay of nan s; it must be finite and not negative",
        ),
        (
            Link("a", "b", 0.01, "x", 0),
            "has a bandwidth of 0 bytes/s; it must be finite and above 0",
        ),
    ],
)
def test_links(link: Link, reason: str) -> None:
    with refused(reason):
        Topology("test", ("a", "b"), (link,), {"x": ACYCLIC})


@pytest.mark.parametrize("architecture", list(Architecture))
def test_two_links_between_the_same_brokers(architecture: Architecture) -> None:
    with refused("there are two links between 'b' and 'a'"):
        overlay("x: a-b b-a", x=architecture)


def test_cycles_in_a_domain() -> None:
    with refused("the link 'c' to 'a' closes a cycle in the acyclic domain 'x'"):
        overlay("x: a-b b-c c-a", x=ACYCLIC)
    with refused("the link 'c' to 'a' closes a cycle in the hierarchical domain 'x'"):
        overlay("x: a-b b-c c-a", x=HIERARCHICAL)
    overlay("x: a-b b-c c-a", x=GENERAL)


def test_two_masters() -> None:
    with refused("the broker 'c' has two masters, 'a' and 'b'"):
        overlay("x: a-c b-c", x=HIERARCHICAL)
    with refused("the broker 'c' has two masters, 'a' and 'b'"):
        overlay("x: a-c; y: b-c", x=HIERARCHICAL, y=HIERARCHICAL)


def test_not_connected() -> None:
    with refused("not connected: no path leads from 'a' to 'c'"):
        overlay("x: a-b; y: c-d", x=ACYCLIC, y=ACYCLIC)
    with refused("not connected: no path leads from 'a' to 'b'"):
        Topology("test", ("a", "b"), (), {})


def test_a_domain_is_connected_by_its_own_links() -> None:
    with refused("the domain 'x' is in 2 parts; its own links must connect it"):
        overlay("x: a-b c-d; y: b-c", x=GENERAL, y=GENERAL)


def test_a_domain_without_links() -> None:
    with refused("the domain 'y' has no links"):
        overlay("x: a-b", x=GENERAL, y=GENERAL)


def test_cycles_across_domains() -> None:
    with refused("a cycle across domains: the gateway 'c' joins 'y' to domains that another"):
        overlay("x: a-b b-c; y: a-d d-c", x=ACYCLIC, y=ACYCLIC)
    with refused("a cycle across domains"):
        overlay("x: a-b; y: b-c; z: c-a", x=GENERAL, y=GENERAL, z=GENERAL)
    overlay("x: a-b; y: b-c; z: b-d", x=GENERAL, y=GENERAL, z=GENERAL)  # one gateway of three


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde")), min_size=1, max_size=8)
)
def test_an_overlay_without_cycles_has_a_link_less_than_brokers(
    pairs: list[tuple[str, str]],
) -> None:
    links = " ".join(f"{a}-{b}" for a, b in pairs)
    try:
        made = overlay(f"x: {links}", x=ACYCLIC)
    except TopologyError:
        return
    assert made.is_acyclic
    assert len(made.links) == len(pairs)

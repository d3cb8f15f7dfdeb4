"""Virtual links and masks on a small graph, worked out by hand.

    a --10-- b --10-- c
             |        |
             20       10
             |        |
             e --10-- d

The paths a-b-e and b-e take the lateral link b-e. All others do without it: from c to e it is
c-d-e, from d to b it is d-c-b.
"""

from __future__ import annotations

import pytest

from tidegate.matching.matcher import COLLECTED
from tidegate.routing.askers import NeighbourAsker
from tidegate.routing.links.virtual_links import LinkNumbers, VirtualLink, virtual_links
from tidegate.routing.messages import Client, Key
from tidegate.routing.overlay.broker_domains import BrokerDomains
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.overlay.graph import Announcement

LINKS = {("a", "b"): 10, ("b", "c"): 10, ("c", "d"): 10, ("d", "e"): 10, ("b", "e"): 20}


def domain_of(me: str, links: dict[tuple[str, str], int], name: str = "d") -> Domain:
    """A domain as one broker sees it that knows all links."""
    domain = Domain(name, Architecture.GENERAL, me)
    costs: dict[str, dict[str, int]] = {}
    for (one, other), cost_us in links.items():
        costs.setdefault(one, {})[other] = cost_us
        costs.setdefault(other, {})[one] = cost_us
    domain.learn([Announcement(each, 1, tuple(sorted(costs[each].items()))) for each in costs])
    for peer, cost_us in costs[me].items():
        domain.link(peer, cost_us)
    return domain


def numbers_of(*domains: Domain) -> LinkNumbers:
    numbers = LinkNumbers(
        BrokerDomains(
            {domain.name: domain for domain in domains},
            {peer: domain for domain in domains for peer in domain.neighbours},
        )
    )
    assert numbers.refresh()
    return numbers


def groups(domain: Domain) -> set[tuple[str, str, str]]:
    """Each virtual link as text: its neighbour, homes and trees."""
    return {
        (link.peer, "".join(sorted(link.homes)), "".join(sorted(link.trees)))
        for link in virtual_links(domain)
    }


def test_the_virtual_links_of_a_broker_with_a_lateral_link() -> None:
    assert groups(domain_of("b", LINKS)) == {
        ("a", "a", "bcde"),  # whoever publishes, a is behind b
        ("e", "e", "ab"),  # c and d reach e without b
        ("c", "cd", "ab"),  # e reaches c and d without b
    }
    assert groups(domain_of("c", LINKS)) == {
        ("b", "ab", "cd"),  # e reaches a and b by its own link to b
        ("d", "d", "abc"),
        ("d", "e", "c"),  # the split: from a and b, d is behind c, but e is not
    }
    assert groups(domain_of("a", LINKS)) == {("b", "bcde", "a")}


def test_the_nearest_homes_come_first() -> None:
    assert virtual_links(domain_of("e", LINKS))[0] == VirtualLink("d", frozenset("e"), ("d", "c"))


def test_a_tree_needs_no_virtual_links() -> None:
    tree = {("a", "b"): 10, ("b", "c"): 10, ("b", "d"): 10, ("d", "e"): 10}
    assert groups(domain_of("b", tree)) == {
        ("a", "a", "bcde"),
        ("c", "c", "abde"),
        ("d", "de", "abc"),
    }


def test_a_broker_without_links_has_no_virtual_links() -> None:
    assert virtual_links(Domain("d", Architecture.GENERAL, "a")) == []


def homes_in(numbers: LinkNumbers, mask: int, homes: str, domain: Domain) -> str:
    """Those of some brokers whose links are in a mask."""
    peer = next(iter(domain.neighbours))
    return "".join(
        home for home in homes if numbers.of_askers([NeighbourAsker(peer, Key(1, home))]) & mask
    )


@pytest.mark.parametrize(
    ("tree", "downstream"), [("a", "d"), ("b", "d"), ("c", "abde"), ("d", "ab"), ("e", "")]
)
def test_the_mask_of_a_tree_has_what_is_downstream_on_it(tree: str, downstream: str) -> None:
    domain = domain_of("c", LINKS)
    numbers = numbers_of(domain)
    mask = numbers.mask([(domain, tree, None)])
    assert homes_in(numbers, mask, "abde", domain) == downstream
    assert not mask & COLLECTED


def test_the_mask_of_an_unknown_tree_is_empty() -> None:
    domain = domain_of("c", LINKS)
    assert numbers_of(domain).mask([(domain, "nobody", None)]) == 0


def test_an_event_never_goes_back_to_its_sender() -> None:
    domain = domain_of("c", LINKS)
    numbers = numbers_of(domain)
    mask = numbers.mask([(domain, "c", "d")])  # d claims that c has published the event
    assert numbers.peers(mask, domain) == ["b"]


def test_virtual_links_to_one_neighbour_are_joined() -> None:
    domain = domain_of("c", LINKS)
    numbers = numbers_of(domain)
    both = numbers.of_askers([NeighbourAsker("d", Key(1, "d")), NeighbourAsker("d", Key(2, "e"))])
    assert both.bit_count() == 2
    assert numbers.peers(both, domain) == ["d"]


def test_the_links_of_askers() -> None:
    domain = domain_of("c", LINKS)
    numbers = numbers_of(domain)
    assert numbers.of_askers([Client("ann")]) == COLLECTED
    assert numbers.of_askers([NeighbourAsker("d", Key(1, "nobody"))]) == 0
    # The home counts, not the neighbour that has sent the filter.
    by_b, by_d = (numbers.of_askers([NeighbourAsker(peer, Key(1, "e"))]) for peer in "bd")
    assert by_b == by_d
    assert numbers.peers(by_b, domain) == ["d"]


def test_links_are_numbered_again_when_the_graph_changes() -> None:
    domain = domain_of("c", LINKS)
    numbers = numbers_of(domain)
    assert not numbers.refresh()
    # The lateral link is gone: b and e announce that they no longer have it.
    domain.learn([Announcement("b", 2, (("a", 10), ("c", 10))), Announcement("e", 2, (("d", 10),))])
    assert numbers.refresh()
    assert groups(domain) == {("b", "ab", "cde"), ("d", "de", "abc")}
    mask = numbers.mask([(domain, "e", None)])
    assert homes_in(numbers, mask, "abde", domain) == "ab"


def test_a_gateway_joins_the_masks_of_its_domains() -> None:
    one = domain_of("c", LINKS, "one")
    two = domain_of("c", {("c", "x"): 10, ("x", "y"): 10}, "two")
    numbers = numbers_of(one, two)
    # From d in the first domain; in the second, the gateway is the root.
    mask = numbers.mask([(one, "d", "d"), (two, "c", None)])
    assert numbers.peers(mask, one) == ["b"]
    assert numbers.peers(mask, two) == ["x"]
    # The same name is another home in each domain.
    assert numbers.of_askers([NeighbourAsker("x", Key(1, "a"))]) == 0

"""Random runs of link matching: flooding is always right, and broken links are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable

import pytest

from tidegate.matching.matcher import COLLECTED, LinkMatcher
from tidegate.routing.links.link_matching import LinkMatching, OwnFilters
from tidegate.routing.links.search_rule import SearchRule
from tidegate.routing.links.virtual_links import LinkNumbers, VirtualLink
from tidegate.routing.messages import Address, Message, Notify
from tidegate.routing.overlay.broker_domains import TreeInDomain
from tidegate.routing.substrates import FilterNode, link_matcher
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.verifying import random_run
from tidegate.simulation.verifying.random_run import Mix, RandomRun
from tidegate.simulation.verifying.verification import VERIFIED_TOPOLOGIES, VerificationCase, cases
from tidegate.simulation.world import World

pytestmark = pytest.mark.slow


def finds(text: str, topology: str, seeds: int = 30) -> bool:
    """Whether one of some runs has a problem with a text."""
    return any(
        text in problem
        for seed in range(seeds)
        for problem in VerificationCase("link-matching", seed, topology, 6).problems()
    )


def is_set_at_each(monkeypatch: pytest.MonkeyPatch, way: str, period: int) -> None:
    """Let the rule choose a way for all events, or for those outside of every third step."""

    def chosen(rule: SearchRule) -> bool:
        return period == 1 or rule._events % period > 0

    always = property(chosen, lambda _rule, _value: None)
    monkeypatch.setattr(SearchRule, way, always, raising=False)


@pytest.mark.parametrize("topology", VERIFIED_TOPOLOGIES)
@pytest.mark.parametrize(("way", "period"), [("floods", 1), ("floods", 3), ("searches_apart", 3)])
def test_a_broker_may_search_in_each_way_at_any_time(
    topology: str, way: str, period: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_set_at_each(monkeypatch, way, period)
    for case in cases(range(8), [topology], ["link-matching"]):
        assert case.problems() == [], case.command


@pytest.mark.parametrize("topology", VERIFIED_TOPOLOGIES)
def test_the_columnar_index_finds_the_same_links(topology: str) -> None:
    for seed in range(3):
        brokers = None if topology == "centralized" else 4 + 2 * seed
        mix = Mix(substrate="columnar")
        run = RandomRun(generate(topology, brokers, seed), "link-matching", seed, mix)
        assert run.problems() == [], (topology, seed)


@pytest.mark.parametrize("topology", VERIFIED_TOPOLOGIES)
def test_no_link_carries_an_event_twice_or_with_a_list_of_targets(topology: str) -> None:
    carried: Counter[object] = Counter()

    def observe(_now_us: int, sender: Address, receiver: Address, message: Message) -> None:
        if isinstance(message, Notify):
            assert message.targets is None
            carried[frozenset((sender, receiver)), message.publication.stamp] += 1

    for seed in range(4):
        brokers = None if topology == "centralized" else 4 + seed
        mix = Mix(failures=False)
        run = RandomRun(generate(topology, brokers, seed), "link-matching", seed, mix)
        run.world.observer = observe
        carried.clear()
        assert run.problems() == []
        assert topology == "centralized" or set(carried.values()) == {1}


# -- broken links: each must be found, by the invariants and by the deliveries ---------------------


@pytest.fixture
def no_invariants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only deliveries are checked."""

    def nothing(_world: World) -> list[str]:
        return []

    monkeypatch.setattr(random_run, "broken_invariants", nothing)


def lose_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_askers(numbers: LinkNumbers, askers: Iterable[Hashable]) -> int:
        links = right(numbers, askers)
        return links & ~(COLLECTED << 2)

    right = LinkNumbers.of_askers
    monkeypatch.setattr(LinkNumbers, "of_askers", of_askers)


def lose_a_link_of_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    def mask(numbers: LinkNumbers, trees: Iterable[TreeInDomain]) -> int:
        links = right(numbers, trees)
        return links & (links - 1)  # without the lowest

    right = LinkNumbers.mask
    monkeypatch.setattr(LinkNumbers, "mask", mask)


def lose_an_annotation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The matcher does not take note of the highest link of a filter."""

    def set_links(matcher: LinkMatcher, id: str, links: int) -> None:
        right(matcher, id, links ^ 1 << links.bit_length() - 1 if links > COLLECTED else links)

    matcher_type = type(link_matcher(None)())
    right: Callable[..., None] = matcher_type.set_links
    monkeypatch.setattr(matcher_type, "set_links", set_links)


def keep_the_first_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refresh(numbers: LinkNumbers) -> bool:
        return right(numbers) if not numbers._graphs else False

    right = LinkNumbers.refresh
    monkeypatch.setattr(LinkNumbers, "refresh", refresh)


def do_not_split_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """One link for all homes behind a neighbour, downstream wherever one of them is."""

    def add(numbers: LinkNumbers, domain: str, link: VirtualLink, bit: int) -> None:
        right(numbers, domain, link, numbers._of_peer.get(link.peer, bit))

    right: Callable[..., None] = LinkNumbers._add
    monkeypatch.setattr(LinkNumbers, "_add", add)


def forget_links_of_changed_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    def askers_changed(matching: LinkMatching, node: object) -> None:
        """Links stay as they were when the filter came."""

    def prepare(matching: LinkMatching) -> None:
        right(matching)
        matching.askers_changed = askers_changed.__get__(matching)  # type: ignore[method-assign]

    right = LinkMatching.prepare
    monkeypatch.setattr(LinkMatching, "prepare", prepare)


def keep_the_first_own_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(_own: OwnFilters, _node: object) -> None:
        """Updates come to the filters of all brokers only."""

    monkeypatch.setattr(OwnFilters, "change", change)


def lose_own_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    def add(own: OwnFilters, node: FilterNode) -> None:
        if node.number % 3:
            right(own, node)

    right = OwnFilters.add
    monkeypatch.setattr(OwnFilters, "add", add)


Sabotage = Callable[[pytest.MonkeyPatch], None]
FOUND_ON: dict[Sabotage, str] = {
    lose_a_link: "random-graph",
    lose_a_link_of_a_mask: "random-graph",
    keep_the_first_links: "random-graph",
    forget_links_of_changed_filters: "random-tree",
}
"""Sabotage, and an architecture on which it shows. In wrong annotations the invariants see
nothing; from links that are not split no delivery suffers."""


@pytest.mark.parametrize("sabotage", [*FOUND_ON, do_not_split_links])
def test_the_invariants_find_it(sabotage: Sabotage, monkeypatch: pytest.MonkeyPatch) -> None:
    sabotage(monkeypatch)
    assert finds(" leads to ", FOUND_ON.get(sabotage, "random-graph"))


def test_the_invariants_find_lost_own_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    lose_own_filters(monkeypatch)
    assert finds("is not among the broker's own filters", "random-tree")


@pytest.mark.parametrize(
    "sabotage", [*FOUND_ON, lose_an_annotation, keep_the_first_own_filters, lose_own_filters]
)
@pytest.mark.usefixtures("no_invariants")
def test_the_deliveries_find_it(sabotage: Sabotage, monkeypatch: pytest.MonkeyPatch) -> None:
    sabotage(monkeypatch)
    assert finds("0 times, not 1", FOUND_ON.get(sabotage, "random-graph"))

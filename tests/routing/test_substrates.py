"""Whatever finds the filters that an event matches finds the same ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from support.moving_strategies import events_at, moving_filters, moving_lines, origins, standing
from support.small_parts import small_parts
from support.strategies import filters
from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Lazy, Periodic
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter
from tidegate.routing.forwarding import Forwarding, NamedAsker
from tidegate.routing.messages import Client
from tidegate.routing.substrates import (
    SUBSTRATES,
    MatcherSubstrate,
    PosetSubstrate,
    Substrate,
    substrate,
)

SECOND = 1_000_000


class Several:
    """Tells several substrates of the same nodes."""

    def __init__(self, poset: Poset[WantedFilter]) -> None:
        self.all: dict[str, Substrate] = {name: substrate(name)(poset) for name in SUBSTRATES}

    def add(self, node: PosetNode[WantedFilter]) -> None:
        for each in self.all.values():
            each.add(node)

    def remove(self, node: PosetNode[WantedFilter]) -> None:
        for each in self.all.values():
            each.remove(node)

    def change(self, node: PosetNode[WantedFilter]) -> None:
        for each in self.all.values():
            each.change(node)

    def found(self, event: Event) -> dict[str, Numbers]:
        """The numbers of the nodes that each finds."""
        return {
            name: tuple(sorted(node.number for node in each.matching(event)))
            for name, each in self.all.items()
        }


Numbers = tuple[int, ...]


def by_all(*numbers: int) -> dict[str, Numbers]:
    return dict.fromkeys(SUBSTRATES, numbers)


@pytest.fixture(autouse=True, scope="module")
def parts() -> Iterator[None]:
    """As few subscriptions as these are laid out as many would be."""
    with small_parts():
        yield


still_ones: st.SearchStrategy[WantedFilter] = filters
moving_ones: st.SearchStrategy[WantedFilter] = st.builds(
    standing, moving_lines | moving_filters, origins
)
claims = st.builds(NamedAsker, st.just(Client("ann")), st.sampled_from("abcde"))


class Churn(RuleBasedStateMachine):
    """A table of filters that come, change and go, and every substrate there is."""

    def __init__(self) -> None:
        super().__init__()
        self.table: Forwarding[WantedFilter] = Forwarding(FILTERS, lambda _node: ())
        self.several = Several(self.table.poset)
        self.table.listener = self.several

    @rule(claim=claims, item=still_ones | moving_ones)
    def put(self, claim: NamedAsker, item: WantedFilter) -> None:
        self.table.claim(claim, item)

    @rule(claim=claims, data=st.data())
    def change_values(self, claim: NamedAsker, data: st.DataObject) -> None:
        """Most updates are of this kind: the same structure, other values."""
        low, high = data.draw(st.tuples(st.integers(-2, 4), st.sampled_from([0, 1.5, 3, "b"])))
        text = data.draw(st.sampled_from(["a > {0} and b <= {1}", "a between {0} - t and {1} + t"]))
        if isinstance(high, str):
            text = text.replace("{1} + t", "7 + t").replace("{1}", "'b'")
        self.table.claim(claim, standing(parse(text.format(low, high)), SECOND))

    @rule(claim=claims)
    def take(self, claim: NamedAsker) -> None:
        self.table.release(claim)

    @rule(
        time_us=st.sampled_from([0, 1, SECOND, 3 * SECOND, 61 * SECOND, -2 * SECOND]),
        data=st.data(),
    )
    def match(self, time_us: int, data: st.DataObject) -> None:
        nodes = list(self.table.poset)
        event = data.draw(events_at(time_us, *(node.item for node in nodes)))
        exact = sorted(node.number for node in nodes if node.item.matches(event))
        assert self.several.found(event) == by_all(*exact)


Churn.TestCase.settings = settings(
    stateful_step_count=15, max_examples=settings().max_examples // 4
)
TestChurn = Churn.TestCase


def test_there_are_the_poset_and_all_matchers() -> None:
    poset = Poset(FILTERS)
    assert SUBSTRATES[0] == "poset"
    assert {"naive", "columnar"} < set(SUBSTRATES)
    assert isinstance(substrate("poset")(poset), PosetSubstrate)
    assert isinstance(substrate("columnar")(poset), MatcherSubstrate)
    with pytest.raises(RoutingError, match="there is no substrate 'rhyme'; there are poset, "):
        substrate("rhyme")


def at(second: float, **attributes: object) -> Event:
    return Event.of(attributes, from_us(round(second * SECOND)))


@pytest.mark.parametrize("evolve", [None, Lazy(), Periodic(4.0), Cached(4.0)])
def test_the_poset_goes_by_estimates_where_the_subscriber_says_so(
    evolve: Periodic | Cached | Lazy | None,
) -> None:
    poset = Poset(FILTERS)
    several = Several(poset)
    node = poset.insert(EvolvingFilter(parse("x between t - 1 and t + 1"), 0, evolve))
    several.add(node)
    matched, near, far = at(0, x=1), at(0, x=3), at(0, x=99)
    assert several.found(matched) == by_all(0)
    estimated = (0,) if isinstance(evolve, Periodic | Cached) else ()
    assert several.found(near) == {**by_all(), "poset": estimated}
    assert several.found(far) == by_all()


def test_a_node_that_begins_to_move_and_stops() -> None:
    poset = Poset(FILTERS)
    several = Several(poset)
    node = poset.insert(parse("x < 1"))
    several.add(node)
    for item, matched, other in (
        (EvolvingFilter(parse("x < t"), 0), 4, 6),
        (EvolvingFilter(parse("x < t + 2"), 0), 6, 8),
        (EvolvingFilter(parse("x < t"), 2 * SECOND), 2, 4),
        (parse("x < 1"), 0, 2),
        (parse("x < 'b'"), "a", 0),
        (parse("x < 3"), 2, 4),
    ):
        assert poset.rebind(node, item) is node
        several.change(node)
        assert several.found(at(5, x=matched)) == by_all(node.number)
        assert several.found(at(5, x=other)) == by_all()
    several.remove(node)
    assert several.found(at(5, x=2)) == {**by_all(), "poset": (0,)}


class Counted(NaiveMatcher):
    """Counts what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def add(self, subscriptions) -> None:  # type: ignore[no-untyped-def]
        self.done.append("add")
        super().add(subscriptions)

    def remove(self, id: str) -> None:
        self.done.append("remove")
        super().remove(id)

    def update(self, id, parameters) -> None:  # type: ignore[no-untyped-def]
        self.done.append(f"update {dict(parameters)}")
        super().update(id, parameters)


def test_values_are_written_in_place_where_the_structure_stays() -> None:
    matcher = Counted()
    found = MatcherSubstrate(matcher)
    poset = Poset(FILTERS)
    node = poset.insert(parse("price < 10 and symbol = 'IBM'"))
    found.add(node)
    poset.rebind(node, parse("price < 30 and symbol = 'IBM'"))
    found.change(node)
    assert matcher.done == ["add", "update {'c0': 30}"]
    poset.rebind(node, parse("price < 30"))
    found.change(node)
    assert matcher.done[2:] == ["remove", "add"]
    assert found.matching(at(0, price=29)) == [node]


def test_what_moves_has_values_that_are_written_in_place_too() -> None:
    matcher = ColumnarMatcher()
    found = MatcherSubstrate(matcher)
    poset = Poset(FILTERS)
    node = poset.insert(EvolvingFilter(parse("x < 3 + t"), 10 * SECOND))
    found.add(node)
    assert found.matching(at(12, x=4)) == [node]
    assert found.matching(at(5, x=2)) == [node]  # as it began
    assert found.matching(at(5, x=4)) == []
    poset.rebind(node, EvolvingFilter(parse("x < 1 + t"), 10 * SECOND))
    found.change(node)
    assert found.matching(at(12, x=4)) == []
    assert found.matching(at(12, x=2)) == [node]

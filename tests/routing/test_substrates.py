"""All substrates find the same filters for an event."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from support.evolving_strategies import (
    events_at,
    filters_of_time,
    linear_filters,
    origins,
    wanted_filter,
)
from support.small_parts import small_matcher
from support.strategies import filters
from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Lazy, Periodic
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.matcher import COLLECTED
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter
from tidegate.matching.subscription import Moment
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.routing.askers import NamedAsker
from tidegate.routing.forwarding import Forwarding
from tidegate.routing.messages import Client
from tidegate.routing.substrates import (
    SUBSTRATES,
    MatcherSubstrate,
    PosetSubstrate,
    Substrate,
    link_matcher,
    substrate,
)
from tidegate.routing.tables.covered_nodes import CoveredNodes

SECOND = 1_000_000


class AllSubstrates:
    """All substrates, with the same nodes."""

    def __init__(self, poset: Poset[WantedFilter]) -> None:
        # With small sizes, so that the few filters of these tests are laid out as many would be.
        self.all: dict[str, Substrate] = {
            name: PosetSubstrate(poset)
            if name == "poset"
            else MatcherSubstrate(small_matcher(name))
            for name in SUBSTRATES
        }

    def add(self, node: PosetNode[WantedFilter]) -> None:
        for each in self.all.values():
            each.add(node)

    def remove(self, node: PosetNode[WantedFilter]) -> None:
        for each in self.all.values():
            each.remove(node)

    def change(self, node: PosetNode[WantedFilter]) -> None:
        for each in self.all.values():
            each.change(node)

    def askers_changed(self, node: PosetNode[WantedFilter]) -> None:
        for each in self.all.values():
            each.askers_changed(node)

    def matching(self, event: Event) -> dict[str, Numbers]:
        """The numbers of the nodes that each substrate finds."""
        return {
            name: tuple(sorted(node.number for node in each.matching(event)))
            for name, each in self.all.items()
        }


Numbers = tuple[int, ...]


def by_all(*numbers: int) -> dict[str, Numbers]:
    return dict.fromkeys(SUBSTRATES, numbers)


static_filters: st.SearchStrategy[WantedFilter] = filters
evolving_filters: st.SearchStrategy[WantedFilter] = st.builds(
    wanted_filter, linear_filters | filters_of_time, origins
)
named_askers = st.builds(NamedAsker, st.just(Client("ann")), st.sampled_from("abcde"))


class Churn(RuleBasedStateMachine):
    """A table of filters that are added, updated and removed, with all substrates."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Forwarding(CoveredNodes(FILTERS, lambda _node: ()), FILTERS.covers)
        assert isinstance(self.table.poset, Poset)
        self.substrates = AllSubstrates(self.table.poset)
        self.table.listen(self.substrates)

    @rule(asker=named_askers, item=static_filters | evolving_filters)
    def put(self, asker: NamedAsker, item: WantedFilter) -> None:
        self.table.set_named(asker, item)

    @rule(asker=named_askers, data=st.data())
    def change_values(self, asker: NamedAsker, data: st.DataObject) -> None:
        """Most updates are of this kind: the same structure, other values."""
        low, high = data.draw(st.tuples(st.integers(-2, 4), st.sampled_from([0, 1.5, 3, "b"])))
        text = data.draw(st.sampled_from(["a > {0} and b <= {1}", "a between {0} - t and {1} + t"]))
        if isinstance(high, str):
            text = text.replace("{1} + t", "7 + t").replace("{1}", "'b'")
        self.table.set_named(asker, wanted_filter(parse(text.format(low, high)), SECOND))

    @rule(asker=named_askers)
    def take(self, asker: NamedAsker) -> None:
        self.table.cancel_named(asker)

    @rule(
        time_us=st.sampled_from([0, 1, SECOND, 3 * SECOND, 61 * SECOND, -2 * SECOND]),
        data=st.data(),
    )
    def match(self, time_us: int, data: st.DataObject) -> None:
        nodes = list(self.table.poset)
        event = data.draw(events_at(time_us, *(node.item for node in nodes)))
        exact = sorted(node.number for node in nodes if node.item.matches(event))
        assert self.substrates.matching(event) == by_all(*exact)


Churn.TestCase.settings = settings(
    stateful_step_count=15, max_examples=settings().max_examples // 4
)
TestChurn = Churn.TestCase


def test_a_matcher_with_settings_of_its_own() -> None:
    made: list[NaiveMatcher] = []

    def make() -> NaiveMatcher:
        made.append(NaiveMatcher())
        return made[-1]

    found = substrate(make, Poset(FILTERS))
    assert isinstance(found, MatcherSubstrate)
    assert link_matcher(make)() is made[1]


def test_there_are_the_poset_and_all_matchers() -> None:
    poset = Poset(FILTERS)
    assert SUBSTRATES[0] == "poset"
    assert {"naive", "columnar"} < set(SUBSTRATES)
    assert isinstance(substrate("poset", poset), PosetSubstrate)
    assert isinstance(substrate("columnar", poset), MatcherSubstrate)
    with pytest.raises(RoutingError, match="there is no substrate 'rhyme'; there are poset, "):
        substrate("rhyme", poset)


def test_steps_are_those_of_a_matcher_that_counts_them() -> None:
    tree, counted, columnar = TreeMatcher(), TreeMatcher(), ColumnarMatcher()
    poset = Poset(FILTERS)
    substrates = [MatcherSubstrate(matcher) for matcher in (tree, counted, columnar)]
    for value in range(50):
        node = poset.insert(parse(f"x = {value % 7} and y = {value}"))
        for each in substrates:
            each.add(node)
        substrates[1].write()
        counted.set_links(str(node.number), COLLECTED)
    event = at(0, x=3, y=10)
    collected = counted.match_links(event, Moment(0), COLLECTED)
    assert [[node.number for node in each.matching(event)] for each in substrates] == [[10]] * 3
    assert substrates[0].steps == collected.steps > 0
    assert substrates[2].steps == 0
    assert columnar.match_links(event, Moment(0), COLLECTED).links == 0, "nobody set a link"


def at(second: float, **attributes: object) -> Event:
    return Event.of(attributes, from_us(round(second * SECOND)))


@pytest.mark.parametrize("evolve", [None, Lazy(), Periodic(4.0), Cached(4.0)])
def test_the_poset_uses_estimates_if_the_evolve_mode_allows_them(
    evolve: Periodic | Cached | Lazy | None,
) -> None:
    poset = Poset(FILTERS)
    substrates = AllSubstrates(poset)
    node = poset.insert(EvolvingFilter(parse("x between t - 1 and t + 1"), 0, evolve))
    substrates.add(node)
    matched, near, far = at(0, x=1), at(0, x=3), at(0, x=99)
    assert substrates.matching(matched) == by_all(0)
    estimated = (0,) if isinstance(evolve, Periodic | Cached) else ()
    assert substrates.matching(near) == {**by_all(), "poset": estimated}
    assert substrates.matching(far) == by_all()


def test_a_node_whose_filter_evolves_for_a_while() -> None:
    poset = Poset(FILTERS)
    substrates = AllSubstrates(poset)
    node = poset.insert(parse("x < 1"))
    substrates.add(node)
    for item, matched, other in (
        (EvolvingFilter(parse("x < t"), 0), 4, 6),
        (EvolvingFilter(parse("x < t + 2"), 0), 6, 8),
        (EvolvingFilter(parse("x < t"), 2 * SECOND), 2, 4),
        (parse("x < 1"), 0, 2),
        (parse("x < 'b'"), "a", 0),
        (parse("x < 3"), 2, 4),
    ):
        assert poset.rebind(node, item) is node
        substrates.change(node)
        assert substrates.matching(at(5, x=matched)) == by_all(node.number)
        assert substrates.matching(at(5, x=other)) == by_all()
    substrates.remove(node)
    assert substrates.matching(at(5, x=2)) == {**by_all(), "poset": (0,)}


class RecordingMatcher(NaiveMatcher):
    """Records how it is changed."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[str] = []

    def add(self, subscriptions) -> None:  # type: ignore[no-untyped-def]
        self.changes.append("add")
        super().add(subscriptions)

    def remove(self, id: str) -> None:
        self.changes.append("remove")
        super().remove(id)

    def update(self, id, parameters) -> None:  # type: ignore[no-untyped-def]
        self.changes.append(f"update {dict(parameters)}")
        super().update(id, parameters)


def test_values_are_written_in_place_where_the_structure_stays() -> None:
    matcher = RecordingMatcher()
    by_matcher = MatcherSubstrate(matcher)
    poset = Poset(FILTERS)
    node = poset.insert(parse("price < 10 and symbol = 'IBM'"))
    by_matcher.add(node)
    by_matcher.write()
    poset.rebind(node, parse("price < 30 and symbol = 'IBM'"))
    by_matcher.change(node)
    by_matcher.write()
    assert matcher.changes == ["add", "update {'c0': 30}"]
    poset.rebind(node, parse("price < 30"))
    by_matcher.change(node)
    by_matcher.write()
    assert matcher.changes[2:] == ["remove", "add"]
    assert by_matcher.matching(at(0, price=29)) == [node]


def test_values_of_evolving_filters_are_written_in_place_too() -> None:
    matcher = ColumnarMatcher()
    by_matcher = MatcherSubstrate(matcher)
    poset = Poset(FILTERS)
    node = poset.insert(EvolvingFilter(parse("x < 3 + t"), 10 * SECOND))
    by_matcher.add(node)
    assert by_matcher.matching(at(12, x=4)) == [node]
    assert by_matcher.matching(at(5, x=2)) == [node]  # as it began
    assert by_matcher.matching(at(5, x=4)) == []
    poset.rebind(node, EvolvingFilter(parse("x < 1 + t"), 10 * SECOND))
    by_matcher.change(node)
    assert by_matcher.matching(at(12, x=4)) == []
    assert by_matcher.matching(at(12, x=2)) == [node]

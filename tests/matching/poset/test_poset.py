"""The poset against a plain one: every pair compared, all edges computed from scratch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import permutations, product
from typing import Generic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.evolving_strategies import wanted_filter
from support.strategies import (
    NAMES,
    conjunctions,
    events_aimed_at,
    filters,
    functions_of_time,
    nodes,
    predicates,
    typed_events_aimed_at,
    typed_predicates,
)
from tidegate.errors import UnresolvedError
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.syntax import Operator, all_of
from tidegate.language.values import from_us
from tidegate.matching.poset.coverage import ADVERTISEMENTS, FILTERS, Coverage
from tidegate.matching.poset.nodes import PosetNode, T, by_number, children_of, closure, parents_of
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, underlying_filter

# -- the plain poset --------------------------------------------------------------------------


class PlainPoset(Generic[T]):
    """What a poset must look like: numbered items, each compared with each."""

    def __init__(self, coverage: Coverage[T], items: Sequence[tuple[int, T]]) -> None:
        self.items = items
        self.pairs = {
            (a, b)
            for (a, wide), (b, narrow) in product(items, repeat=2)
            if a != b and coverage.covers(wide, narrow)
        }

    @property
    def is_transitive(self) -> bool:
        chains = [(a, d) for a, b in self.pairs for c, d in self.pairs if b == c]
        return all(a == d or (a, d) in self.pairs for a, d in chains)

    def edges(self) -> set[tuple[int, int]]:
        names = [number for number, _ in self.items]
        between = {
            (a, b)
            for a, b in self.pairs
            for x in names
            if (a, x) in self.pairs and (x, b) in self.pairs
        }
        return self.pairs - between


def new_poset(coverage: Coverage[T]) -> Poset[T]:
    """A poset that compares even a few boxes as arrays, and singles out the nearest of them."""
    return Poset(coverage, loop_max=1, sort_min=1)


def edges(poset: Poset[T]) -> set[tuple[int, int]]:
    downwards = {(node.number, child.number) for node in poset for child in node.children}
    upwards = {(parent.number, node.number) for node in poset for parent in node.parents}
    assert downwards == upwards
    return downwards


def ancestors(node: PosetNode[T]) -> list[PosetNode[T]]:
    """All nodes above a node, by their numbers."""
    return by_number(closure(node.parents, parents_of))


def descendants(node: PosetNode[T]) -> list[PosetNode[T]]:
    """All nodes below a node, by their numbers."""
    return by_number(closure(node.children, children_of))


def numbers(nodes: Sequence[PosetNode[T]]) -> list[int]:
    found = [node.number for node in nodes]
    assert found == sorted(found)
    return found


def check(poset: Poset[T], coverage: Coverage[T], others: Sequence[T]) -> None:
    """Compare the poset with the plain one, where covering is transitive."""
    plain = PlainPoset(coverage, [(node.number, node.item) for node in by_number(poset)])
    assert not {(b, a) for a, b in plain.pairs} & plain.pairs, "equal items share a node"
    if not plain.is_transitive:
        return
    assert edges(poset) == plain.edges()
    below = {b for _, b in plain.pairs}
    assert numbers(poset.roots()) == [n for n, _ in plain.items if n not in below]
    for node in poset:
        assert poset.find(node.item) is node
        assert numbers(ancestors(node)) == sorted(a for a, b in plain.pairs if b == node.number)
        assert numbers(descendants(node)) == sorted(b for a, b in plain.pairs if a == node.number)
    for item in others:
        if not check_other(poset, coverage, plain, item):
            break  # the edges may be others than before


def check_other(poset: Poset[T], coverage: Coverage[T], plain: PlainPoset[T], item: T) -> bool:
    """Insert an item, compare its place, and remove it; False where covering is not transitive."""
    above = [n for n, each in plain.items if coverage.covers(each, item)]
    below = [n for n, each in plain.items if coverage.covers(item, each)]
    equal = [n for n in above if n in below]
    is_transitive = PlainPoset(coverage, [*plain.items, (-1, item)]).is_transitive
    found = poset.find(item)
    if is_transitive:
        assert equal == ([] if found is None else [found.number])
    node = poset.insert(item)
    if node.number in dict(plain.items):
        if is_transitive:
            assert node is found
        return is_transitive
    assert set(above) <= set(numbers(ancestors(node)))
    assert set(below) <= set(numbers(descendants(node)))
    if is_transitive:
        assert numbers(ancestors(node)) == above
        assert numbers(descendants(node)) == below
    poset.remove(node)
    assert edges(poset) == plain.edges() or not is_transitive
    return is_transitive


def churn(data: st.DataObject, coverage: Coverage[T], items: st.SearchStrategy[T]) -> Poset[T]:
    """A poset after some insertions, removals and changes in place, checked."""
    poset = new_poset(coverage)
    kept: dict[int, tuple[list[str], list[str]]] = {}
    for step in range(data.draw(st.integers(1, 10))):
        if len(poset) and data.draw(st.integers(0, 3)) == 0:
            removed = data.draw(st.sampled_from(list(poset)))
            poset.remove(removed)
            assert removed not in poset
            assert (removed.parents, removed.children) == ([], [])
            del kept[removed.number]
        elif len(poset) and data.draw(st.integers(0, 3)) == 0:
            changed = data.draw(st.sampled_from(list(poset)))
            if poset.rebind(changed, data.draw(items)) is not changed:
                assert changed not in poset
                assert (changed.parents, changed.children) == ([], [])
                del kept[changed.number]
        else:
            node = poset.insert(data.draw(items))
            node.subscribers.add(f"s{step}")
            node.forwards.add(f"f{step % 3}")
            subscribers, forwards = kept.setdefault(node.number, ([], []))
            subscribers.append(f"s{step}")
            forwards += [] if f"f{step % 3}" in forwards else [f"f{step % 3}"]
    check(poset, coverage, data.draw(st.lists(items, max_size=2)))
    assert {n.number: (list(n.subscribers), list(n.forwards)) for n in poset} == kept
    return poset


# -- properties -------------------------------------------------------------------------------

few = st.sampled_from([0, 1, 2, 3])
narrow_operators = [
    Operator.EQUAL, Operator.LESS, Operator.GREATER_EQUAL, Operator.NOT_EQUAL, Operator.PRESENT,
]  # fmt: skip


@st.composite
def crowded(draw: st.DrawFn) -> Filter:
    """Conjunctions of few values on few attributes, so that most of them are related."""
    parts = []
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True)):
        operator = draw(st.sampled_from(narrow_operators))
        text = "" if operator is Operator.PRESENT else f" {draw(few)}"
        parts.append(f"{name} {operator.value}{text}")
    return parse(" and ".join(parts) or "true")


@given(st.data())
def test_filters_that_are_mostly_related(data: st.DataObject) -> None:
    poset = churn(data, FILTERS, crowded())
    event = Event(data.draw(events_aimed_at(*(node.item.node for node in poset))))
    matched = [node for node in by_number(poset) if node.item.matches(event)]
    assert poset.matching(event) == matched


@given(st.data())
def test_conjunctions_without_patterns(data: st.DataObject) -> None:
    poset = churn(data, FILTERS, conjunctions(typed_predicates(patterns=False)))
    event = Event(data.draw(typed_events_aimed_at(*(node.item.node for node in poset))))
    assert poset.matching(event) == [node for node in by_number(poset) if node.item.matches(event)]


@given(st.data())
def test_any_filters(data: st.DataObject) -> None:
    """With patterns and disjunctions covering is not always seen, but answers are right."""
    poset = churn(data, FILTERS, filters | nodes(typed_predicates()).map(Filter))
    event = Event(data.draw(events_aimed_at(*(node.item.node for node in poset))))
    assert poset.matching(event) == [node for node in by_number(poset) if node.item.matches(event)]
    for node in poset:
        assert node not in ancestors(node)
        for wide, narrow in permutations(node.parents, 2):
            assert wide not in ancestors(narrow)
        below = [node, *descendants(node)]
        assert all(each.item.matches(event) <= node.item.matches(event) for each in below)


@settings(max_examples=settings().max_examples // 4)  # slow to compare
@given(st.data())
def test_evolving_filters(data: st.DataObject) -> None:
    filters = conjunctions(predicates(functions_of_time()) | typed_predicates(patterns=False))
    items: st.SearchStrategy[WantedFilter] = st.builds(
        wanted_filter, filters, st.sampled_from((0, 10**7))
    )
    poset = churn(data, FILTERS, items)
    aimed = data.draw(events_aimed_at(*(underlying_filter(node.item).node for node in poset)))
    for time_us in (0, 5_000_000, 10_000_001):
        event = Event(aimed, from_us(time_us))
        assert poset.matching(event) == [
            node for node in by_number(poset) if node.item.matches(event)
        ]
        for node in poset:
            below = [node, *descendants(node)]
            assert all(each.item.matches(event) <= node.item.matches(event) for each in below)


def advertisement(filter: Filter) -> Advertisement:
    return parse_advertisement(str(filter))


@given(st.data())
def test_advertisements(data: st.DataObject) -> None:
    items = (conjunctions(typed_predicates(patterns=False)) | crowded()).map(advertisement)
    poset = churn(data, ADVERTISEMENTS, items)
    event = Event(data.draw(typed_events_aimed_at(*(node.item.node for node in poset))))
    assert poset.matching(event) == [node for node in by_number(poset) if node.item.allows(event)]


# -- examples ---------------------------------------------------------------------------------


def poset_of(*texts: str) -> tuple[Poset[WantedFilter], Callable[[str], PosetNode[WantedFilter]]]:
    poset = new_poset(FILTERS)
    made = {text: poset.insert(parse(text)) for text in texts}
    return poset, made.__getitem__


def test_the_poset_of_simple_subscriptions() -> None:
    """Siena, 4.2: only immediate relations are kept, whatever the order of insertion."""
    price, denver = "price < 500", "orig = 'DEN'"
    both = "airline = 'UA' and price < 300"
    all_three = "orig = 'DEN' and airline = 'UA' and price < 200"
    milan = "orig = 'DEN' and airline = 'UA' and price < 100 and dest = 'MXP'"
    for texts in permutations([price, denver, both, all_three, milan]):
        poset, node = poset_of(*texts)
        assert set(poset.roots()) == {node(price), node(denver)}
        assert node(price).children == [node(both)]
        assert node(both).children == [node(all_three)]
        assert node(denver).children == [node(all_three)]
        assert node(all_three).children == [node(milan)]
        assert node(milan).children == []
        assert set(ancestors(node(milan))) == set(poset) - {node(milan)}


def test_a_wider_subscription_becomes_the_root() -> None:
    """Siena, 4.3: UA, then UA to Denver below it, then any airline above both."""
    ua, denver = "airline = 'UA'", "airline = 'UA' and dest = 'DEN'"
    poset, node = poset_of(ua, denver)
    assert poset.roots() == [node(ua)]
    anyone = poset.insert(parse("airline is not null"))
    assert poset.roots() == [anyone]
    assert anyone.children == [node(ua)]
    assert descendants(anyone) == [node(ua), node(denver)]
    poset.remove(node(ua))
    assert anyone.children == [node(denver)]
    poset.remove(anyone)
    assert poset.roots() == [node(denver)]


def test_an_equal_filter_is_the_same_node() -> None:
    poset, node = poset_of("price between 1 and 5")
    assert poset.insert(parse("price <= 5 and price >= 1")) is node("price between 1 and 5")
    assert len(poset) == 1


def test_two_paths_down_and_one_is_removed() -> None:
    top, left, right, bottom = "a > 0", "a > 0 and b > 0", "a > 1", "a > 1 and b > 0"
    poset, node = poset_of(bottom, right, left, top)
    assert node(top).children == [node(right), node(left)]
    poset.remove(node(left))
    assert node(top).children == [node(right)]
    poset.remove(node(right))
    assert node(top).children == [node(bottom)]


def test_a_filter_that_never_matches_is_below_all_others() -> None:
    poset, node = poset_of("a = 1", "false", "b = 1", "a = 1 and b = 1")
    assert node("a = 1").children == [node("a = 1 and b = 1")] == node("b = 1").children
    assert node("false").parents == [node("a = 1 and b = 1")]
    never = Filter(all_of([parse("a < 1").node, parse("a > 1").node]))
    assert poset.insert(never) is node("false")
    poset.remove(node("a = 1 and b = 1"))
    assert node("false").parents == [node("a = 1"), node("b = 1")]
    assert poset.roots() == [node("a = 1"), node("b = 1")]


def test_a_node_is_removed_once() -> None:
    poset, node = poset_of("a = 1")
    poset.remove(node("a = 1"))
    with pytest.raises(KeyError):
        poset.remove(node("a = 1"))


def test_an_evolving_filter_that_never_matches_is_bottom_too() -> None:
    poset = new_poset(FILTERS)
    contradiction = parse("a = t").node, parse("a starts with 'x'").node
    never = poset.insert(EvolvingFilter(Filter(all_of(contradiction)), 0))
    assert poset.insert(parse("false")) is never


def test_parameters_must_be_bound() -> None:
    poset, _ = poset_of("a < 1")
    with pytest.raises(UnresolvedError, match=":limit"):
        poset.insert(parse("a < :limit"))
    assert len(poset) == 1
    assert poset.insert(parse("a < :limit").bind(limit=0)).parents


def test_evolving_filters_with_one_origin() -> None:
    poset = new_poset(FILTERS)
    texts = ("x < 3 + t", "x < 2 + t", "x < 3 + 2 * t")
    third, second, first = (poset.insert(EvolvingFilter(parse(text), 0)) for text in texts)
    static = poset.insert(parse("x < 2"))
    assert second.children == [static]
    assert third.children == [second]
    assert poset.roots() == [first]


def test_evolving_filters_with_different_origins() -> None:
    poset = new_poset(FILTERS)
    early = poset.insert(EvolvingFilter(parse("x < t"), 0))
    late = poset.insert(EvolvingFilter(parse("x < t"), 10_000_000))
    assert early.children == [late]
    static = poset.insert(parse("x < 0"))
    assert static.parents == [late]


def test_an_evolving_filter_that_never_changes_equals_a_static_one() -> None:
    poset = new_poset(FILTERS)
    constant = poset.insert(EvolvingFilter(parse("y < 5 + 0 * sin(t)"), 0))
    assert poset.find(parse("y < 5")) is constant
    assert poset.insert(parse("y < 5")) is constant


# -- rebind -----------------------------------------------------------------------------------


def test_a_node_moves_to_where_its_new_item_belongs() -> None:
    poset, node = poset_of("x < 10", "x < 5", "x < 7 and y = 1", "z = 1")
    five = node("x < 5")
    five.subscribers.add("ann")
    five.forwards.add("p")
    number = five.number
    assert poset.rebind(five, parse("x < 30")) is five
    assert poset.roots() == [five, node("z = 1")]
    assert five.children == [node("x < 10")]
    assert node("x < 10").children == [node("x < 7 and y = 1")]
    assert (five.number, list(five.subscribers), list(five.forwards)) == (number, ["ann"], ["p"])
    assert poset.find(parse("x < 5")) is None
    assert poset.find(parse("x < 30")) is five

    poset.rebind(five, parse("z = 1 and y = 1"))
    assert poset.roots() == [node("x < 10"), node("z = 1")]
    assert node("z = 1").children == [five]
    assert poset.matching(Event.of({"z": 1, "y": 1})) == [five, node("z = 1")]
    assert poset.matching(Event.of({"x": 20})) == []


def test_a_node_that_becomes_equal_to_another_is_removed() -> None:
    poset, node = poset_of("x < 10", "x < 5", "x < 3")
    assert poset.rebind(node("x < 5"), parse("x < 10 and x < 20")) is node("x < 10")
    assert node("x < 5") not in poset
    assert node("x < 10").children == [node("x < 3")]
    assert len(poset) == 2
    with pytest.raises(KeyError):
        poset.rebind(node("x < 5"), parse("x < 1"))


def test_an_equal_item_with_another_text_stays_in_its_place() -> None:
    poset, node = poset_of("x < 10", "x < 5", "x < 3")
    five = node("x < 5")
    assert poset.rebind(five, parse("x < 5 and x < 6")) is five
    assert str(five.item) == "x < 5 and x < 6"
    assert five.parents == [node("x < 10")]
    assert five.children == [node("x < 3")]


def test_a_node_becomes_evolving_and_static_again() -> None:
    poset, node = poset_of("x < 10", "x < 5", "x is not null")
    five, anything = node("x < 5"), node("x is not null")
    assert poset.rebind(five, EvolvingFilter(parse("x < 10 + t"), 0)) is five
    assert five.evolves
    assert five.parents == [anything]
    assert five.children == [node("x < 10")]
    later = Event({"x": 12}, from_us(5_000_000))
    assert poset.matching(later) == [five, anything]
    assert poset.matching(later, include_evolving=False) == [anything]
    poset.rebind(five, EvolvingFilter(parse("x < 10 - t"), 0))
    assert five.parents == [node("x < 10")]
    poset.rebind(five, parse("false"))
    assert [five.evolves] == [False]  # as a list: mypy takes it for True since the assert above
    assert five.parents == [node("x < 10")]
    poset.rebind(five, parse("x < 2"))
    assert five.parents == [node("x < 10")]
    assert poset.matching(Event({"x": 1}, from_us(0))) == [node("x < 10"), five, anything]


def test_an_item_that_cannot_be_placed_changes_nothing() -> None:
    poset, node = poset_of("x < 10", "x < 5")
    with pytest.raises(UnresolvedError, match=":limit"):
        poset.rebind(node("x < 5"), parse("x < :limit"))
    assert node("x < 5") in poset
    assert node("x < 10").children == [node("x < 5")]


def test_an_advertisement_covers_one_that_names_fewer_attributes() -> None:
    poset = new_poset(ADVERTISEMENTS)
    quotes = poset.insert(parse_advertisement("symbol is not null and price > 0"))
    symbols = poset.insert(parse_advertisement("symbol = 'IBM' and symbol = 'DEC'"))
    assert quotes.children == [symbols]
    assert poset.insert(parse_advertisement("symbol in ('DEC', 'IBM')")) is symbols


PROGRAM = """
from tidegate.language.filters import parse
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.poset import Poset
poset = Poset(FILTERS)
for a in range(4):
    for name in ("x", "y", "z"):
        node = poset.insert(parse(f"{name} > {a} and s = 's{a % 2}' or {name} = 's'"))
        node.subscribers |= {"one", "two"} if a < 0 else {f"c{a}"}
for node in list(poset)[::5]:
    poset.remove(node)
print(poset.roots(), [(n, n.children, n.parents, n.subscribers) for n in poset])
"""


def test_nothing_depends_on_hashes() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1

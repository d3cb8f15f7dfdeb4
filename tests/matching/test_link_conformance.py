"""The rules that every matcher keeps that finds links, and their agreement with the oracle."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.random_changes import RandomChanges, RandomUpdates
from support.small_parts import small_columnar, small_tree
from support.strategies import (
    PARAMETERS,
    VARIABLES,
    events_aimed_at,
    expressions,
    nodes,
    predicates,
    values,
)
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.matcher import COLLECTED, LinkMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.registry import MATCHERS
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import PLAIN

WEST, EAST, FAR = 2, 4, 1 << 130
ALL = COLLECTED | WEST | EAST | FAR
ONE = Event.of({"x": 1})

MAKERS: dict[str, Callable[[], LinkMatcher]] = {
    "naive": NaiveMatcher,
    "columnar": ColumnarMatcher,
    "columnar with small parts": small_columnar,
    "tree": TreeMatcher,
    "tree with small leaves": small_tree,
    "tree as in the paper": lambda: TreeMatcher(PLAIN),
}
every_fast_one = pytest.mark.parametrize("name", sorted(MAKERS.keys() - {"naive"}))


def test_every_matcher_that_finds_links_is_tested() -> None:
    able = {name for name in MATCHERS if isinstance(MATCHERS[name].make(), LinkMatcher)}
    assert able == MAKERS.keys() & MATCHERS.keys()


@pytest.fixture(params=sorted(MAKERS))
def matcher(request: pytest.FixtureRequest) -> LinkMatcher:
    return MAKERS[request.param]()


def add(matcher: LinkMatcher, id: str, text: str, links: int = 0, **more: int) -> None:
    matcher.add([Subscription(id, parse(text), **more)])  # type: ignore[arg-type]
    if links:
        matcher.set_links(id, links)


def links_of(matcher: LinkMatcher, event: Event = ONE, mask: int = ALL) -> tuple[int, list[str]]:
    found = matcher.match_links(event, Moment(), mask)
    return found.links, sorted(found.collected)


def test_links_of_those_that_match(matcher: LinkMatcher) -> None:
    add(matcher, "a", "x = 1", WEST)
    add(matcher, "b", "x < 5", EAST | FAR)
    add(matcher, "c", "x = 2", EAST)
    assert links_of(matcher) == (WEST | EAST | FAR, [])
    assert links_of(matcher, mask=WEST | FAR) == (WEST | FAR, [])
    assert links_of(matcher, mask=1 << 500) == links_of(matcher, mask=0) == (0, [])
    assert links_of(matcher, Event.of({"x": 2})) == (EAST | FAR, [])
    assert links_of(matcher, Event.of({"x": 9})) == (0, [])


def test_subscriptions_of_the_link_collected_are_returned(matcher: LinkMatcher) -> None:
    for id, text in {"a": "x = 1", "b": "x < 5", "c": "x = 2", "d": "x = 1"}.items():
        add(matcher, id, text, WEST if id == "d" else COLLECTED | WEST)
    assert links_of(matcher) == (COLLECTED | WEST, ["a", "b"])
    assert links_of(matcher, mask=WEST) == (WEST, [])
    assert links_of(matcher, mask=COLLECTED) == (COLLECTED, ["a", "b"])


def test_a_disjunction_is_collected_once(matcher: LinkMatcher) -> None:
    add(matcher, "a", "x = 1 or y = 1 or x < 5", COLLECTED | EAST)
    assert links_of(matcher, Event.of({"x": 1, "y": 1})) == (COLLECTED | EAST, ["a"])


def test_without_links_only_match_finds_a_subscription(matcher: LinkMatcher) -> None:
    add(matcher, "a", "x = 1")
    assert matcher.match(ONE, Moment()) == ["a"]
    assert links_of(matcher) == (0, [])
    add(matcher, "b", "x = 1", WEST)
    assert sorted(matcher.match(ONE, Moment())) == ["a", "b"]
    assert links_of(matcher) == (WEST, [])


def test_links_are_replaced(matcher: LinkMatcher) -> None:
    add(matcher, "a", "x = 1", WEST)
    add(matcher, "b", "x = 1 or x = 2", COLLECTED)
    for links in (EAST, FAR | WEST, COLLECTED, 0, WEST):
        matcher.set_links("a", links)
        found, collected = links_of(matcher)
        assert found == links | COLLECTED
        assert collected == (["a", "b"] if links & COLLECTED else ["b"])


def test_a_new_subscription_does_not_have_the_links_of_a_removed_one(matcher: LinkMatcher) -> None:
    for text in ("x = 1", "x = 1 or x = 3", "x > 0"):
        add(matcher, "a", text, WEST | COLLECTED)
        assert links_of(matcher) == (WEST | COLLECTED, ["a"])
        matcher.remove("a")
        add(matcher, "a", text)
        assert links_of(matcher) == (0, [])
        matcher.remove("a")
        assert links_of(matcher) == (0, [])


def test_an_update_leaves_the_links_as_they_are(matcher: LinkMatcher) -> None:
    for id, text in {"range": "x < :p", "key": "x = :p", "both": "x = :p or x < :p - 1"}.items():
        matcher.add([Subscription(id, parse(text), {"p": 7})])
        matcher.set_links(id, {"range": WEST, "key": EAST, "both": FAR}[id])
    assert links_of(matcher, Event.of({"x": 7})) == (EAST | FAR, [])
    for id in ("range", "key", "both"):
        matcher.update(id, {"p": 1})
    assert links_of(matcher) == (EAST | FAR, [])
    assert links_of(matcher, Event.of({"x": 7})) == (0, [])
    assert links_of(matcher, Event.of({"x": -1})) == (WEST | FAR, [])


def test_what_is_verified_decides_links_too(matcher: LinkMatcher) -> None:
    """The order of strings, integers beyond 2**53, and functions near the bound."""
    add(matcher, "text", "s > 'm'", WEST)
    add(matcher, "long", f"x >= {2**60 + 1}", EAST | COLLECTED)
    add(matcher, "moves", "y < 10 + t", FAR, since=0)
    for s, x, y, expected in (
        ("n", 2**60, 9, WEST | FAR),
        ("a", 2**60 + 1, 12, EAST | COLLECTED),
        ("mm", 2**60 + 1, 10.5, WEST | EAST | COLLECTED | FAR),
    ):
        event = Event.of({"s": s, "x": x, "y": y})
        found = matcher.match_links(event, Moment(1_000_000), ALL)
        assert found.links == expected
        assert found.collected == (["long"] if expected & COLLECTED else [])


def test_lifetimes_count(matcher: LinkMatcher) -> None:
    add(matcher, "early", "x = 1", WEST, since=0, until=5)
    add(matcher, "late", "x = 1", EAST | COLLECTED, since=5)
    found = {time_us: matcher.match_links(ONE, Moment(time_us), ALL) for time_us in (4, 5, None)}
    expected = {4: WEST, 5: EAST | COLLECTED, None: WEST | EAST | COLLECTED}
    assert {time_us: each.links for time_us, each in found.items()} == expected
    assert [each.collected for each in found.values()] == [[], ["late"], ["late"]]


def test_an_unknown_id_is_a_key_error(matcher: LinkMatcher) -> None:
    add(matcher, "a", "x = 1", WEST)
    with pytest.raises(KeyError, match="nobody"):
        matcher.set_links("nobody", EAST)
    assert links_of(matcher) == (WEST, [])


# -- agreement with the oracle ------------------------------------------------------------------


@every_fast_one
@settings(max_examples=max(3, settings().max_examples // 20))
@given(st.integers(0, 2**32))
def test_random_changes(name: str, seed: int) -> None:
    RandomChanges(seed, MAKERS[name]()).run(70)


@every_fast_one
@settings(max_examples=max(3, settings().max_examples // 20))
@given(st.integers(0, 2**32))
def test_random_updates(name: str, seed: int) -> None:
    RandomUpdates(seed, MAKERS[name]()).run(70)


open_nodes = nodes(st.one_of(predicates(), predicates(expressions())))
settings_of = st.fixed_dictionaries({}, optional=dict.fromkeys(PARAMETERS, values))
variables = st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, values))
moments = st.none() | st.integers(0, 10**7)
link_sets = st.integers(0, 7) | st.integers(0, 2**70)


@every_fast_one
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_any_filters_agree_with_naive(name: str, data: st.DataObject) -> None:
    """Events at the bounds of all forms of filters, links that change on the way."""
    filters = data.draw(st.lists(open_nodes.map(Filter), min_size=1, max_size=10))
    naive, fast = NaiveMatcher(), MAKERS[name]()
    for number, filter in enumerate(filters):
        kept = {n: v for n, v in data.draw(settings_of).items() if n in filter.parameters}
        links = data.draw(link_sets)
        for each in (naive, fast):
            each.add([Subscription(str(number), filter, kept)])
            each.set_links(str(number), links)
    aimed = events_aimed_at(*(each.node for each in filters))
    for _ in range(data.draw(st.integers(1, 4))):
        event, mask = Event(data.draw(aimed)), data.draw(link_sets)
        moment = Moment(data.draw(moments), data.draw(variables))
        found, expected = (each.match_links(event, moment, mask) for each in (fast, naive))
        assert found.links == expected.links
        assert sorted(found.collected) == sorted(expected.collected)
        id, links = str(data.draw(st.integers(0, len(filters) - 1))), data.draw(link_sets)
        for each in (naive, fast):
            each.set_links(id, links)

"""Merged filters match exactly what their members match, whatever is added and removed."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tidegate.language.filters import parse
from tidegate.language.limits import Limits
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, underlying_filter
from tidegate.routing.merging import MergedFilters
from tidegate.simulation.verifying.random_filters import random_event, random_filter


def nodes(*texts: str) -> list[PosetNode[WantedFilter]]:
    poset = Poset(FILTERS)
    return [poset.insert(parse(text)) for text in texts]


def texts(added: list[tuple[int, WantedFilter]]) -> list[str]:
    return [str(filter) for _, filter in added]


def test_filters_that_can_be_merged_exactly_are_sent_as_one() -> None:
    groups = MergedFilters()
    low, middle, other = nodes("price < 5", "price between 5 and 9", "name = 'a'")
    assert groups.change([], [low], []) == ([], [(1, low.item)])
    dropped, added = groups.change([], [middle, other], [])
    assert dropped == [1]
    assert texts(added) == ["price <= 9", "name = 'a'"]


def test_filters_whose_merge_would_be_wider_are_sent_each() -> None:
    groups = MergedFilters()
    both, neither, one = "x < 5 and y < 5", "x > 9 and y > 9", "x < 3"
    _, added = groups.change([], nodes(both, neither, one), [])
    assert texts(added) == [both, neither, one]


def test_the_rest_of_a_group_is_merged_again_when_a_member_leaves() -> None:
    groups = MergedFilters()
    low, middle, high = nodes("x < 5", "x between 5 and 9", "x > 9")
    ((number, whole),) = groups.change([], [low, middle, high], [])[1]
    assert underlying_filter(whole).equals(parse("x <= 9 or x > 9"))
    dropped, added = groups.change([middle], [], [])
    assert dropped == [number]
    assert all(not underlying_filter(each).matches({"x": 7}) for _, each in added)
    assert all(any(underlying_filter(each).matches({"x": x}) for _, each in added) for x in (1, 20))


def test_a_filter_that_came_and_went_is_not_sent() -> None:
    groups = MergedFilters()
    (node,) = nodes("x < 5")
    assert groups.change([node], [node], []) == ([], [])


def test_evolving_filters_are_sent_as_they_are() -> None:
    poset = Poset(FILTERS)
    items: list[WantedFilter] = [
        EvolvingFilter(parse("x < t"), 0),
        parse("x > 7"),
        parse("x between 2 and 7"),
    ]
    _, added = MergedFilters().change([], [poset.insert(each) for each in items], [])
    assert texts(added) == ["x < t since 0 us", "x >= 2"]


def test_a_merged_filter_does_not_exceed_the_limits() -> None:
    groups = MergedFilters(Limits(cost_max=4))
    _, added = groups.change([], nodes(*(f"x = {n}" for n in (1, 3, 5, 7, 9))), [])
    assert [str(each).count(",") + 1 for _, each in added] == [3, 2]


@given(st.integers(0, 2**32))
def test_what_is_sent_matches_what_any_of_the_filters_matches(seed: int) -> None:
    """With random changes; and only what was sent before is removed."""
    random = Random(seed)
    poset = Poset(FILTERS)
    groups = MergedFilters()
    here: dict[PosetNode[WantedFilter], None] = {}
    sent: dict[int, WantedFilter] = {}
    for _ in range(8):
        added = [poset.insert(random_filter(random)) for _ in range(random.randrange(4))]
        removed = [each for each in here if random.random() < 0.2]
        added = [each for each in dict.fromkeys(added) if each not in here and each not in removed]
        updated = [each for each in here if each not in removed and random.random() < 0.2]
        updated = [each for each in updated if poset.rebind(each, random_filter(random)) is each]
        lost = [each for each in here if each not in poset]
        removed = list(dict.fromkeys([*removed, *lost]))
        added = [each for each in added if each in poset]
        dissolved, sent_now = groups.change(removed, added, updated)
        for number in dissolved:
            del sent[number]
        assert not sent.keys() & {number for number, _ in sent_now}
        sent.update(sent_now)
        here = {each: None for each in [*here, *added] if each not in removed}
        for _ in range(10):
            event = random_event(random)
            assert any(each.matches(event) for each in sent.values()) == any(
                each.item.matches(event) for each in here
            )

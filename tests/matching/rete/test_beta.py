from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.small_parts import small_parts
from support.sound_network import check_sound
from tidegate.language.algebra.normal_form import disjuncts
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.syntax import Operator
from tidegate.language.values import Kind
from tidegate.matching.rete.alpha import Fact
from tidegate.matching.rete.beta import BetaNetwork, JoinChain
from tidegate.matching.rete.conditions import (
    Condition,
    NeverCondition,
    OtherPredicate,
    PatternCondition,
    Points,
    ValueRange,
    steps_of,
)
from tidegate.matching.subscription import Moment


def equal(attribute: str, *values: int | str) -> Points:
    return Points(attribute, frozenset(values))


def below(attribute: str, high: float) -> ValueRange:
    return ValueRange(attribute, Kind.NUMBER, 0, high)


def reached(network: BetaNetwork, **event: object) -> set[str]:
    fact = Fact(Event.of(event), Moment(), network.alphas)
    return {chain.id for chain in network.reached(fact)}


def test_chains_share_what_they_begin_with() -> None:
    network = BetaNetwork()
    first = network.weave("a", [equal("s", 1), below("x", 5), below("y", 5)])
    second = network.weave("b", [equal("s", 1), below("x", 5), below("y", 6)])
    third = network.weave("c", [equal("s", 2), below("x", 5)])
    assert first.end.before is second.end.before
    assert third.end.alpha is first.end.before.alpha  # the condition, not the join
    assert (len(network.alphas), len(list(network))) == (5, 6)
    check_sound(network)
    for chain in (first, second, third):
        network.unravel(chain)
        check_sound(network)
    assert len(network.alphas) == 0
    assert network.root.followers == {}


def test_the_conjunction_of_nothing_is_always_reached() -> None:
    network = BetaNetwork()
    chain = network.weave("a", [])
    assert reached(network) == {"a"}
    network.unravel(chain)
    assert reached(network) == set()


def test_a_condition_of_one_chain_is_changed_in_place() -> None:
    network = BetaNetwork()
    chain = network.weave("a", [equal("s", 1), below("x", 5), below("y", 5)])
    network.weave("b", [equal("s", 1)])
    joins = list(network)
    alphas = [join.alpha for join in joins]
    network.change(chain, 1, below("x", 9))
    check_sound(network)
    assert list(network) == joins
    assert [join.alpha for join in joins] == alphas
    assert reached(network, s=1, x=8, y=1) == {"a", "b"}
    network.change(chain, 1, NeverCondition("x"))
    assert [join.alpha for join in network] == alphas
    assert reached(network, s=1, x=8, y=1) == {"b"}


def test_a_condition_that_others_use_elsewhere_is_exchanged() -> None:
    network = BetaNetwork()
    chain = network.weave("a", [equal("s", 1), below("x", 5), below("y", 5)])
    other = network.weave("b", [equal("s", 2), below("x", 5)])
    joins = list(network)
    network.change(chain, 1, below("x", 9))
    check_sound(network)
    assert set(network) == set(joins)
    assert reached(network, s=1, x=8, y=1) == {"a"}
    assert reached(network, s=2, x=8, y=1) == set()
    network.change(other, 1, below("x", 9))  # equal again: one node
    assert other.end.alpha is chain.end.before.alpha
    check_sound(network)


def test_from_a_join_of_several_chains_one_is_split_off() -> None:
    network = BetaNetwork()
    chain = network.weave("a", [equal("s", 1), below("x", 5), below("y", 5)])
    network.weave("b", [equal("s", 1), below("x", 5), below("y", 6)])
    first, end = chain.end.before.before, chain.end
    network.change(chain, 1, below("x", 9))
    check_sound(network)
    assert chain.end is end  # what was its own is as it was, further down
    assert end.before.alpha.condition == below("x", 9)
    assert end.before.before is first
    assert reached(network, s=1, x=8, y=1) == {"a"}
    assert reached(network, s=1, x=4, y=1) == {"a", "b"}


def test_all_that_is_shared_below_a_split_is_made_anew() -> None:
    network = BetaNetwork()
    conditions: list[Condition] = [equal("s", 1), below("x", 5), below("y", 5)]
    chain, other = network.weave("a", conditions), network.weave("b", conditions)
    network.change(chain, 0, equal("s", 2))
    check_sound(network)
    assert chain.end is not other.end
    assert chain.end.alpha is other.end.alpha
    assert reached(network, s=2, x=1, y=1) == {"a"}
    assert reached(network, s=1, x=1, y=1) == {"b"}


def test_a_chain_that_becomes_like_another_shares_its_joins() -> None:
    network = BetaNetwork()
    chain = network.weave("a", [equal("s", 1), below("x", 5), below("y", 5)])
    other = network.weave("b", [equal("s", 2), below("x", 5), below("y", 5)])
    network.change(chain, 0, equal("s", 2))
    check_sound(network)
    assert chain.end is other.end
    assert len(list(network)) == 3
    network.change(chain, 1, below("x", 7))
    check_sound(network)
    assert len(list(network)) == 5
    assert reached(network, s=2, x=6, y=1) == {"a"}


def test_one_condition_may_stand_in_a_chain_twice() -> None:
    network = BetaNetwork()
    chain = network.weave("a", [equal("s", 1), equal("s", 1)])
    network.change(chain, 1, equal("s", 2))
    check_sound(network)
    assert reached(network, s=1) == set()
    network.change(chain, 1, equal("s", 1))
    check_sound(network)
    assert reached(network, s=1) == {"a"}


@pytest.mark.parametrize(
    "conditions",
    [
        [equal("s", number) for number in range(20)],
        [equal("s", number, number + 1) for number in range(20)],
        [below("s", number) for number in range(1, 21)],
        [PatternCondition("s", Operator.CONTAINS, f"{number}") for number in range(20)],
        [OtherPredicate(parse(f"s != {number}").node) for number in range(20)],  # type: ignore[arg-type]
    ],
    ids=["values", "lists", "ranges", "patterns", "others"],
)
def test_a_fan_finds_what_single_questions_find(conditions: list[Condition]) -> None:
    network = BetaNetwork()
    chains = [
        network.weave(f"c{number}", [condition]) for number, condition in enumerate(conditions)
    ]
    assert network.root.fan is not None
    check_sound(network)
    for value in (0, 7, 19, "7", "1 2 3", None, True):
        fact = Fact(Event.of({"s": value}), Moment(), network.alphas)
        asked = {chain.id for chain in chains if fact.meets(chain.end.alpha)}
        assert reached(network, s=value) == asked
    for chain in chains:
        network.unravel(chain)
        check_sound(network)
    assert network.root.fan is None


def test_what_moves_is_not_evaluated_before_all_else_is_met() -> None:
    network = BetaNetwork()
    steps = steps_of(*disjuncts(parse("s = 1 and x > t").node))
    network.weave("a", [step.condition({}, 0) for step in steps])
    for value, evaluated in ((2, []), (1, [0])):
        fact = Fact(Event.of({"s": value, "x": 1}), Moment(0), network.alphas)
        network.reached(fact)
        assert list(fact._environments) == evaluated


conditions: st.SearchStrategy[Condition] = st.one_of(
    st.builds(equal, st.just("s"), st.integers(0, 2)),
    st.builds(below, st.sampled_from("sx"), st.integers(1, 3)),
    st.builds(NeverCondition, st.just("x")),
    st.builds(PatternCondition, st.just("t"), st.just(Operator.CONTAINS), st.sampled_from("ab")),
)


@given(st.data())
def test_chains_that_change_are_as_if_woven_anew(data: st.DataObject) -> None:
    with small_parts():
        change_and_weave_anew(data)


def change_and_weave_anew(data: st.DataObject) -> None:
    network = BetaNetwork()
    chains: dict[JoinChain, list[Condition]] = {}
    for number in range(data.draw(st.integers(1, 6))):
        drawn = data.draw(st.lists(conditions, min_size=1, max_size=4))
        chains[network.weave(f"c{number}", drawn)] = drawn
    for _ in range(data.draw(st.integers(1, 12))):
        chain = data.draw(st.sampled_from(list(chains)))
        place = data.draw(st.integers(0, len(chains[chain]) - 1))
        chains[chain][place] = data.draw(conditions)
        network.change(chain, place, chains[chain][place])
        check_sound(network)
    fresh = BetaNetwork()
    ends = {chain.id: fresh.weave(chain.id, asked).end for chain, asked in chains.items()}
    assert len(fresh.alphas) == len(network.alphas)
    assert len(list(fresh)) == len(list(network))
    for chain in chains:
        assert {each.id for each in chain.end.endings} == {
            each.id for each in ends[chain.id].endings
        }
    event = {"s": data.draw(st.integers(0, 3)), "x": data.draw(st.integers(0, 3)), "t": "ab"}
    assert reached(network, **event) == reached(fresh, **event)

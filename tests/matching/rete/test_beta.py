from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sound_network import check_sound, joins_of, sizes
from tidegate.language.algebra.normal_form import disjuncts
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.syntax import Operator
from tidegate.language.values import Kind
from tidegate.matching.rete.alpha import AlphaNetwork, AlphaNode, Fact
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


def matching(network: BetaNetwork, **event: object) -> set[str]:
    fact = Fact(Event.of(event), Moment(), network.alphas)
    return {chain.id for chain in network.matching(fact)}


def test_chains_share_what_they_begin_with() -> None:
    network = BetaNetwork()
    first = network.add("a", [equal("s", 1), below("x", 5), below("y", 5)])
    second = network.add("b", [equal("s", 1), below("x", 5), below("y", 6)])
    third = network.add("c", [equal("s", 2), below("x", 5)])
    assert first.end.before is second.end.before
    assert third.end.alpha is first.end.before.alpha  # the condition, not the join
    assert sizes(network) == (5, 6)
    check_sound(network)
    for chain in (first, second, third):
        network.remove(chain)
        check_sound(network)
    assert sizes(network) == (0, 0)


def test_the_conjunction_of_nothing_always_matches() -> None:
    network = BetaNetwork()
    chain = network.add("a", [])
    assert matching(network) == {"a"}
    network.remove(chain)
    assert matching(network) == set()


def test_a_condition_of_one_chain_is_changed_in_place() -> None:
    network = BetaNetwork()
    chain = network.add("a", [equal("s", 1), below("x", 5), below("y", 5)])
    network.add("b", [equal("s", 1)])
    joins = joins_of(network)
    alphas = [join.alpha for join in joins]
    network.change(chain, 1, below("x", 9))
    check_sound(network)
    assert joins_of(network) == joins
    assert [join.alpha for join in joins] == alphas
    assert matching(network, s=1, x=8, y=1) == {"a", "b"}
    network.change(chain, 1, NeverCondition("x"))
    assert [join.alpha for join in joins_of(network)] == alphas
    assert matching(network, s=1, x=8, y=1) == {"b"}


def test_a_condition_that_others_use_elsewhere_is_exchanged() -> None:
    network = BetaNetwork()
    chain = network.add("a", [equal("s", 1), below("x", 5), below("y", 5)])
    other = network.add("b", [equal("s", 2), below("x", 5)])
    joins = joins_of(network)
    network.change(chain, 1, below("x", 9))
    check_sound(network)
    assert set(joins_of(network)) == set(joins)
    assert matching(network, s=1, x=8, y=1) == {"a"}
    assert matching(network, s=2, x=8, y=1) == set()
    network.change(other, 1, below("x", 9))  # equal again: one node
    assert other.end.alpha is chain.end.before.alpha
    check_sound(network)


def test_from_a_join_of_several_chains_one_is_split_off() -> None:
    network = BetaNetwork()
    chain = network.add("a", [equal("s", 1), below("x", 5), below("y", 5)])
    network.add("b", [equal("s", 1), below("x", 5), below("y", 6)])
    first, end = chain.end.before.before, chain.end
    network.change(chain, 1, below("x", 9))
    check_sound(network)
    assert chain.end is end  # the join of this chain alone was moved
    assert end.before.alpha.condition == below("x", 9)
    assert end.before.before is first
    assert matching(network, s=1, x=8, y=1) == {"a"}
    assert matching(network, s=1, x=4, y=1) == {"a", "b"}


def test_joins_shared_below_a_split_get_copies() -> None:
    network = BetaNetwork()
    conditions: list[Condition] = [equal("s", 1), below("x", 5), below("y", 5)]
    chain, other = network.add("a", conditions), network.add("b", conditions)
    network.change(chain, 0, equal("s", 2))
    check_sound(network)
    assert chain.end is not other.end
    assert chain.end.alpha is other.end.alpha
    assert matching(network, s=2, x=1, y=1) == {"a"}
    assert matching(network, s=1, x=1, y=1) == {"b"}


def test_a_chain_that_becomes_like_another_shares_its_joins() -> None:
    network = BetaNetwork()
    chain = network.add("a", [equal("s", 1), below("x", 5), below("y", 5)])
    other = network.add("b", [equal("s", 2), below("x", 5), below("y", 5)])
    network.change(chain, 0, equal("s", 2))
    check_sound(network)
    assert chain.end is other.end
    assert len(joins_of(network)) == 3
    network.change(chain, 1, below("x", 7))
    check_sound(network)
    assert len(joins_of(network)) == 5
    assert matching(network, s=2, x=6, y=1) == {"a"}


def test_one_condition_may_stand_in_a_chain_twice() -> None:
    network = BetaNetwork()
    chain = network.add("a", [equal("s", 1), equal("s", 1)])
    network.change(chain, 1, equal("s", 2))
    check_sound(network)
    assert matching(network, s=1) == set()
    network.change(chain, 1, equal("s", 1))
    check_sound(network)
    assert matching(network, s=1) == {"a"}


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
def test_a_fan_finds_what_single_tests_find(conditions: list[Condition]) -> None:
    network = BetaNetwork()
    chains = [network.add(f"c{number}", [condition]) for number, condition in enumerate(conditions)]
    assert network.root.fan is not None
    check_sound(network)
    for value in (0, 7, 19, "7", "1 2 3", None, True):
        fact = Fact(Event.of({"s": value}), Moment(), network.alphas)
        expected = {chain.id for chain in chains if fact.meets(chain.end.alpha)}
        assert matching(network, s=value) == expected
    for chain in chains:
        network.remove(chain)
        check_sound(network)
    assert network.root.fan is None


class RecordingFact(Fact):
    """Records the attributes of the conditions that are tested."""

    def __init__(self, event: Event, moment: Moment, network: AlphaNetwork) -> None:
        super().__init__(event, moment, network)
        self.tested: list[str] = []

    def meets(self, node: AlphaNode) -> bool:
        self.tested.append(node.condition.attribute)
        return super().meets(node)


def test_an_evolving_condition_is_evaluated_only_if_all_others_are_met() -> None:
    network = BetaNetwork()
    steps = steps_of(*disjuncts(parse("s = 1 and x > t").node))
    network.add("a", [step.condition({}, 0) for step in steps])
    for value, tested in ((2, ["s"]), (1, ["s", "x"])):
        fact = RecordingFact(Event.of({"s": value, "x": 1}), Moment(0), network.alphas)
        network.matching(fact)
        assert fact.tested == tested


conditions: st.SearchStrategy[Condition] = st.one_of(
    st.builds(equal, st.just("s"), st.integers(0, 2)),
    st.builds(below, st.sampled_from("sx"), st.integers(1, 3)),
    st.builds(NeverCondition, st.just("x")),
    st.builds(PatternCondition, st.just("t"), st.just(Operator.CONTAINS), st.sampled_from("ab")),
)


@given(st.data())
def test_changed_chains_are_as_if_just_added(data: st.DataObject) -> None:
    network = BetaNetwork(fan_min=2, run_max=4)
    chains: dict[JoinChain, list[Condition]] = {}
    for number in range(data.draw(st.integers(1, 6))):
        drawn = data.draw(st.lists(conditions, min_size=1, max_size=4))
        chains[network.add(f"c{number}", drawn)] = drawn
    for _ in range(data.draw(st.integers(1, 12))):
        chain = data.draw(st.sampled_from(list(chains)))
        position = data.draw(st.integers(0, len(chains[chain]) - 1))
        chains[chain][position] = data.draw(conditions)
        network.change(chain, position, chains[chain][position])
        check_sound(network)
    fresh = BetaNetwork()
    ends = {chain.id: fresh.add(chain.id, drawn).end for chain, drawn in chains.items()}
    assert sizes(fresh) == sizes(network)
    for chain in chains:
        assert {each.id for each in chain.end.endings} == {
            each.id for each in ends[chain.id].endings
        }
    event = {"s": data.draw(st.integers(0, 3)), "x": data.draw(st.integers(0, 3)), "t": "ab"}
    assert matching(network, **event) == matching(fresh, **event)

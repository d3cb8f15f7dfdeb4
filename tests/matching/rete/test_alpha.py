from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import (
    PARAMETERS,
    VARIABLES,
    events_aimed_at,
    expressions,
    predicates,
    strings,
    values,
)
from tidegate.language.algebra.normal_form import disjuncts
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.semantics import holds
from tidegate.language.syntax import Operator, Predicate, all_of
from tidegate.language.values import Kind
from tidegate.matching.rete import alpha as module
from tidegate.matching.rete.alpha import AlphaNetwork, AlphaNode, Fact
from tidegate.matching.rete.conditions import (
    Condition,
    NeverCondition,
    PatternCondition,
    Points,
    ValueRange,
    steps_of,
)
from tidegate.matching.string_patterns import StringPatterns
from tidegate.matching.subscription import Moment

CHEAP = ValueRange("price", Kind.NUMBER, 0, 10)
IBM = Points("symbol", frozenset({"IBM"}))


def met(network: AlphaNetwork, event: dict[str, object]) -> list[AlphaNode]:
    fact = Fact(Event.of(event), Moment(), network)
    return [node for node in network if fact.meets(node)]


def test_equal_conditions_are_one_node_until_the_last_use_is_given_up() -> None:
    network = AlphaNetwork()
    node = network.take(CHEAP)
    assert network.take(ValueRange("price", Kind.NUMBER, 0.0, 10.0)) is node
    assert (len(network), node.uses) == (1, 2)
    network.release(node)
    assert network.find(CHEAP) is node
    network.release(node)
    assert network.find(CHEAP) is None
    assert len(network) == 0


def test_a_node_is_changed_in_place() -> None:
    network = AlphaNetwork()
    node = network.take(IBM)
    conditions: list[Condition] = [
        Points("symbol", frozenset({"MSFT", "IBM"})),
        PatternCondition("symbol", Operator.ENDS_WITH, "M"),
        ValueRange("symbol", Kind.STRING, "I", "J"),
        NeverCondition("symbol"),
        IBM,
    ]
    for condition in conditions:
        network.change(node, condition)
        assert network.find(condition) is node
        assert len(network) == 1
        found = met(network, {"symbol": "IBM"})
        assert found == ([] if isinstance(condition, NeverCondition) else [node])
        assert met(network, {"symbol": "M$"}) == []


def test_nothing_is_left_in_the_indexes() -> None:
    network = AlphaNetwork()
    nodes = [
        network.take(IBM),
        network.take(Points("symbol", frozenset({"IBM", "MSFT"}))),
        network.take(PatternCondition("symbol", Operator.CONTAINS, "B")),
    ]
    event = Event.of({"symbol": "IBM"})
    assert list(network.on_points(event.attributes)) == nodes[:2]
    assert list(network.on_patterns("symbol", "IBM")) == nodes[2:]
    for node in nodes:
        network.release(node)
    assert (network._points, network._patterns) == ({}, {})
    assert network.on_points(event.attributes) == {}
    assert network.on_patterns("symbol", "IBM") == {}


def test_patterns_that_are_gone_do_not_stay_in_the_index_for_ever() -> None:
    network = AlphaNetwork()
    kept = network.take(PatternCondition("s", Operator.CONTAINS, "kept"))
    for number in range(1000):
        network.release(network.take(PatternCondition("s", Operator.CONTAINS, f"gone{number}")))
    index: StringPatterns = network._patterns["s"]._index
    assert len(index) < 100
    assert list(network.on_patterns("s", "kept gone1")) == [kept]


@given(st.lists(strings, min_size=1, max_size=6), strings)
def test_patterns_are_found_after_the_index_is_made_anew(texts: list[str], value: str) -> None:
    network = AlphaNetwork()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SPARE_PATTERNS", 0)
        for text in texts[1:]:
            network.take(PatternCondition("s", Operator.STARTS_WITH, text))
        node = network.take(PatternCondition("s", Operator.CONTAINS, texts[0]))
        for text in texts[1:]:
            found = network.find(PatternCondition("s", Operator.STARTS_WITH, text))
            assert found is not None
            network.release(found)
            assert (node in network.on_patterns("s", value)) is (texts[0] in value)


def test_patterns_are_looked_for_once_for_an_event() -> None:
    network = AlphaNetwork()
    network.take(PatternCondition("s", Operator.CONTAINS, "a"))
    fact = Fact(Event.of({"s": "abc"}), Moment(), network)
    assert fact.on_patterns("s") is fact.on_patterns("s")
    assert list(fact.on_patterns("other")) == []


def test_kinds_are_told_apart() -> None:
    network = AlphaNetwork()
    for text in ("x = 1", "x = true", "x >= 0", "x >= false", "x != 2", "x != 'a'"):
        (conjunction,) = disjuncts(parse(text).node)
        network.take(steps_of(conjunction)[0].condition({}, None))
    number, boolean = ([type(n.condition) for n in met(network, {"x": x})] for x in (1, True))
    assert [each.__name__ for each in number] == ["Points", "Band", "Asked"]
    assert [each.__name__ for each in boolean] == ["Points", "Band"]
    assert met(network, {"x": None}) == met(network, {"y": 1}) == []


parameters = st.fixed_dictionaries({}, optional=dict.fromkeys(PARAMETERS, values))
variables = st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, values))
moments = st.none() | st.integers(0, 10**7)


@given(st.lists(predicates() | predicates(expressions()), min_size=1, max_size=4), st.data())
def test_an_event_meets_the_steps_of_what_it_matches(
    asked: list[Predicate], data: st.DataObject
) -> None:
    known, origin = data.draw(parameters), data.draw(moments)
    moment = Moment(data.draw(moments), data.draw(variables))
    event = Event(data.draw(events_aimed_at(*asked)))
    environment = moment.environment(origin, known)
    for conjunction in disjuncts(all_of(asked)):
        network = AlphaNetwork()
        nodes = [network.take(step.condition(known, origin)) for step in steps_of(conjunction)]
        fact = Fact(event, moment, network)
        expected = all(holds(each, event.attributes, environment) for each in conjunction)
        assert all(fact.meets(each) for each in nodes) is expected

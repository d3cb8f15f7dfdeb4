from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from support.sound_network import alphas_of, check_empty, indexed_patterns
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
from tidegate.matching.rete.alpha import AlphaNetwork, AlphaNode, Fact
from tidegate.matching.rete.conditions import (
    Condition,
    NeverCondition,
    PatternCondition,
    Points,
    ValueRange,
    steps_of,
)
from tidegate.matching.subscription import Moment

CHEAP = ValueRange("price", Kind.NUMBER, 0, 10)
IBM = Points("symbol", frozenset({"IBM"}))


def met(network: AlphaNetwork, event: dict[str, object]) -> list[AlphaNode]:
    fact = Fact(Event.of(event), Moment(), network)
    return [node for node in alphas_of(network) if fact.meets(node)]


def test_equal_conditions_are_one_node_until_the_last_use_is_given_up() -> None:
    network = AlphaNetwork()
    node = network.acquire(CHEAP)
    assert network.acquire(ValueRange("price", Kind.NUMBER, 0.0, 10.0)) is node
    assert (alphas_of(network), node.uses) == ([node], 2)
    network.release(node)
    assert network.find(CHEAP) is node
    network.release(node)
    assert network.find(CHEAP) is None
    check_empty(network)


def test_a_node_is_changed_in_place() -> None:
    network = AlphaNetwork()
    node = network.acquire(IBM)
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
        assert alphas_of(network) == [node]
        found = met(network, {"symbol": "IBM"})
        assert found == ([] if isinstance(condition, NeverCondition) else [node])
        assert met(network, {"symbol": "M$"}) == []


def test_released_nodes_leave_nothing_in_the_indexes() -> None:
    network = AlphaNetwork()
    nodes = [
        network.acquire(IBM),
        network.acquire(Points("symbol", frozenset({"IBM", "MSFT"}))),
        network.acquire(PatternCondition("symbol", Operator.CONTAINS, "B")),
    ]
    event = Event.of({"symbol": "IBM"})
    assert list(network.met_points(event.attributes)) == nodes[:2]
    assert list(network.met_patterns("symbol", "IBM")) == nodes[2:]
    for node in nodes:
        network.release(node)
    check_empty(network)
    assert network.met_points(event.attributes) == {}
    assert network.met_patterns("symbol", "IBM") == {}


def test_unused_patterns_do_not_stay_in_the_index_for_ever() -> None:
    network = AlphaNetwork()
    kept = network.acquire(PatternCondition("s", Operator.CONTAINS, "kept"))
    for number in range(1000):
        network.release(
            network.acquire(PatternCondition("s", Operator.CONTAINS, f"unused{number}"))
        )
    assert indexed_patterns(network, "s") == 1
    assert list(network.met_patterns("s", "kept unused1")) == [kept]


@given(st.lists(strings, min_size=1, max_size=6), strings)
def test_patterns_are_found_after_the_index_is_built_again(texts: list[str], value: str) -> None:
    network = AlphaNetwork()
    for text in texts[1:]:
        network.acquire(PatternCondition("s", Operator.STARTS_WITH, text))
    node = network.acquire(PatternCondition("s", Operator.CONTAINS, texts[0]))
    for text in texts[1:]:
        found = network.find(PatternCondition("s", Operator.STARTS_WITH, text))
        assert found is not None
        network.release(found)
        assert (node in network.met_patterns("s", value)) is (texts[0] in value)


def test_patterns_are_looked_for_once_for_an_event() -> None:
    network = AlphaNetwork()
    network.acquire(PatternCondition("s", Operator.CONTAINS, "a"))
    fact = Fact(Event.of({"s": "abc"}), Moment(), network)
    assert fact.met_patterns("s") is fact.met_patterns("s")
    assert list(fact.met_patterns("other")) == []


def test_kinds_are_told_apart() -> None:
    network = AlphaNetwork()
    for text in ("x = 1", "x = true", "x >= 0", "x >= false", "x != 2", "x != 'a'"):
        (conjunction,) = disjuncts(parse(text).node)
        network.acquire(steps_of(conjunction)[0].condition({}, None))
    number, boolean = ([type(n.condition) for n in met(network, {"x": x})] for x in (1, True))
    assert [each.__name__ for each in number] == ["Points", "ValueRange", "OtherPredicate"]
    assert [each.__name__ for each in boolean] == ["Points", "ValueRange"]
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
        nodes = [network.acquire(step.condition(known, origin)) for step in steps_of(conjunction)]
        fact = Fact(event, moment, network)
        expected = all(holds(each, event.attributes, environment) for each in conjunction)
        assert all(fact.meets(each) for each in nodes) is expected

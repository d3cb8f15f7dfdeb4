"""Grants: nothing outside of them is delivered or published, whatever changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import strategies
from support.broker_network import Network
from support.evolving_strategies import filters_of_time
from tidegate.errors import AccessError
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Lazy, Periodic
from tidegate.language.expressions import Environment
from tidegate.language.filters import Filter, parse
from tidegate.language.limits import DEFAULT_LIMITS
from tidegate.language.patterns.pattern import parse_pattern
from tidegate.language.semantics import holds
from tidegate.language.spaces import Space
from tidegate.language.values import Value, from_us
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.matching.subscription import Moment
from tidegate.routing.grants import EVERYTHING, NOTHING, BrokerGrants, Grant
from tidegate.routing.messages import (
    Advertise,
    Client,
    Deliver,
    DeliverSequence,
    Publish,
    Refused,
    Resume,
    Subscribe,
    Suspend,
    Unsubscribe,
    Update,
)
from tidegate.routing.strategies import STRATEGIES

ANN = Client("ann")
START_US = 1_000_000_000
LINE = [("a", "b"), ("b", "c")]


def granting(text: str, *, narrows: bool, publish: str | None = None) -> Callable[[str], Grant]:
    """Grants in which `ann` is limited, `eve` may do nothing, and others may do everything."""
    offered = None if publish is None else parse_advertisement(publish)
    grants = {"ann": Grant(parse(text), offered, narrows), "eve": NOTHING}
    return lambda identity: grants.get(identity, EVERYTHING)


def refusals(network: Network, client: str, *requests: object) -> list[str]:
    found = []
    for request in requests:
        answers = network.ask("a", client, request)  # type: ignore[arg-type]
        found += [each.reason for each in answers if isinstance(each, Refused)]
    network.run()
    return found


def delivered(network: Network, client: str) -> list[dict[str, Value]]:
    return [
        dict(each.publication.event.attributes)
        for each in network.received.get(client, [])
        if isinstance(each, Deliver)
    ]


# -- what is refused ------------------------------------------------------------------------------


def test_what_asks_for_more_is_refused_and_changes_nothing() -> None:
    network = Network(LINE, grant_of=granting("price < 10", narrows=False))
    assert refusals(network, "ann", Subscribe("price < 5"), Subscribe("price < 9", "s")) == []
    wide = [
        Subscribe("price < 11"),
        Subscribe("symbol = 'IBM'"),
        Subscribe("price < 5 or symbol = 'IBM'"),
        Subscribe("price < :limit", "t", {"limit": 10.5}),
        Subscribe("price < 5 + t", "t"),
        Subscribe("price < @mode", "t"),
        Subscribe("price < 5 then price < 11 within 1 s"),
        Update("s", 1, filter="price < 12"),
    ]
    found = refusals(network, "ann", *wide)
    assert len(found) == len(wide)
    assert all("'ann' may get `price < 10`, and `" in each for each in found)
    network.publish("c", "bob", price=10, symbol="IBM")
    network.publish("c", "bob", price=7)
    network.run()
    assert delivered(network, "ann") == [{"price": 7}]
    assert network.brokers["a"].named.version(ANN, "s") == 0


def test_a_parameter_moves_within_the_grant_only() -> None:
    network = Network(LINE, grant_of=granting("price < 10", narrows=False))
    assert refusals(network, "ann", Subscribe("price < :limit", "s", {"limit": 3})) == []
    assert refusals(network, "ann", Update("s", 1, {"limit": 10})) == []
    assert len(refusals(network, "ann", Update("s", 2, {"limit": 11}))) == 1
    assert network.brokers["a"].named.version(ANN, "s") == 1
    for price in (9, 10):
        network.publish("c", "bob", price=price)
        network.run()
    assert delivered(network, "ann") == [{"price": 9}]


def test_an_evolving_filter_must_stay_within_the_grant_for_ever() -> None:
    network = Network(LINE, grant_of=granting("x >= 0 and x <= 100", narrows=False))
    ok = Subscribe("x >= min(t, 10) and x <= 20", "s", evolve=Periodic(1.0))
    assert refusals(network, "ann", ok) == []
    leaves = Subscribe("x >= 10 - t and x <= 20", "u", evolve=Lazy())
    assert len(refusals(network, "ann", leaves)) == 1


def test_who_is_granted_nothing_gets_nothing() -> None:
    network = Network(LINE, grant_of=granting("price < 10", narrows=False))
    assert len(refusals(network, "eve", Subscribe("price < 1"), Subscribe("price < 1", "s"))) == 2
    events = Event.of({"price": 1}), Event({})
    assert len(refusals(network, "eve", *map(Publish, events))) == 2


# -- what is narrowed -----------------------------------------------------------------------------


def test_what_asks_for_more_is_narrowed() -> None:
    network = Network(LINE, grant_of=granting("price < 10", narrows=True))
    requests = [
        Subscribe("symbol = 'IBM'"),
        Subscribe("price < :limit", "s", {"limit": 5}),
        Update("s", 1, {"limit": 50}),
        Subscribe("price < 9 + t", "t"),
        Update("t", 1, filter="price < 20 + t"),
    ]
    assert refusals(network, "ann", *requests) == []
    network.run()
    for price in (1, 9.5, 10, 15, 30):
        network.publish("c", "bob", price=price, symbol="IBM")
        network.publish("c", "bob", symbol="IBM")
        network.run()
    assert delivered(network, "ann") == [{"price": p, "symbol": "IBM"} for p in (1, 9.5)]
    # the broker has it as it was written; what other brokers were asked for is narrowed
    named = network.brokers["a"].named.present(ANN, "s")
    assert named is not None
    assert str(named.subscription.filter) == "price < :limit"
    assert refusals(network, "ann", Unsubscribe("symbol = 'IBM'")) == []


def test_a_pattern_is_narrowed_step_by_step() -> None:
    network = Network([("a", "b")], grant_of=granting("price < 10", narrows=True))
    assert refusals(network, "ann", Subscribe("kind = 'x' then kind = 'y' within 10 s")) == []
    network.run()
    for kind, price in (("x", 20), ("y", 1), ("x", 2), ("y", 30), ("y", 3)):
        network.now_us += 1_000
        network.publish("a", "bob", kind=kind, price=price)
        network.run()
    network.now_us += 3_600_000_000
    for _ in range(3):
        network.take("a", network.brokers["a"].wake(network.now_us))
        network.run()
    (match,) = [each for each in network.received["ann"] if isinstance(each, DeliverSequence)]
    assert [each.event["price"] for each in match.publications] == [2, 3]
    pattern = parse_pattern("kind = 'x' then kind = 'y' within 10 s")
    grants = network.brokers["a"].grants
    assert match.pattern == grants.wanted(pattern, ANN)
    assert grants.wanted(match.pattern, ANN) == match.pattern
    assert refusals(network, "ann", Unsubscribe(match.pattern)) == []


def test_what_is_too_large_with_the_grant_is_refused() -> None:
    many = " or ".join(f"price = {n}" for n in range(100))
    network = Network(LINE, grant_of=granting(many, narrows=True))
    wide = " or ".join(f"x = {n}" for n in range(100))
    (reason,) = refusals(network, "ann", Subscribe(wide))
    assert "more than 256 disjuncts" in reason


def test_a_client_that_moves_is_held_to_the_grant_of_the_new_broker() -> None:
    network = Network(LINE, grant_of=granting("price < 10", narrows=True))
    wide = [Subscribe("symbol = 'IBM'"), Subscribe("price < 30", "s"), Advertise("price > 0")]
    assert refusals(network, "ann", *wide) == []
    network.run()
    narrow = granting("price < 5", narrows=True, publish="price > 7")("ann")
    network.brokers["c"].grants = BrokerGrants(lambda _: narrow, DEFAULT_LIMITS)
    network.ask("a", "ann", Suspend())
    network.publish("b", "bob", price=7, symbol="IBM")
    network.run()
    network.ask("c", "ann", Resume("a", 1))
    network.run()
    assert [each for each in network.received["ann"] if isinstance(each, Refused)]  # Advertise
    before = len(delivered(network, "ann"))
    for price in (1, 5, 9, 20):
        network.brokers["b"].grants = BrokerGrants(None, DEFAULT_LIMITS)
        network.publish("b", "bob", price=price, symbol="IBM")
        network.run()
    assert delivered(network, "ann")[before:] == [{"price": 1, "symbol": "IBM"}]


# -- publishing -----------------------------------------------------------------------------------


def test_only_what_is_granted_is_published_and_advertised() -> None:
    grant_of = granting("price < 10", narrows=True, publish="price > 0 and symbol = 'IBM'")
    network = Network(LINE, only_advertised=False, grant_of=grant_of)
    network.subscribe("c", "bob", "price is not null")
    network.run()
    published = [
        Publish(Event.of(each))
        for each in ({"price": 1}, {"price": -1}, {"price": 1, "other": 1}, {"price": "1"})
    ]
    found = refusals(network, "ann", *published)
    network.run()
    assert delivered(network, "bob") == [{"price": 1}]
    assert len(found) == 3
    assert "'ann' may publish `price > 0 and symbol = 'IBM'`, which this event is not" in found[0]
    offers = [Advertise("price > 5"), Advertise("price > -5"), Advertise("volume > 1")]
    found = refusals(network, "ann", *offers)
    assert len(found) == 2
    assert "cannot advertise `price > -5`" in found[0]


def test_grants_know_no_spaces() -> None:
    space = Space("trades", {"price": float})
    grant_of = granting("price < 10", narrows=True, publish="price > 0")
    network = Network(LINE, only_advertised=False, spaces=[space], grant_of=grant_of)
    requests = [
        Subscribe("price < 30", "s", space="trades"),
        Advertise("price > 5", "trades"),
        Publish(Event.of({"price": 3.0}), "trades"),
    ]
    assert refusals(network, "ann", *requests) == []
    refused = Publish(Event.of({"price": -1.0}), "trades"), Advertise("price > -5", "trades")
    assert len(refusals(network, "ann", *refused)) == 2
    network.ask("a", "bob", Publish(Event.of({"price": 20.0}), "trades"))
    assert delivered(network, "ann") == [{"price": 3.0}]


def test_answers_of_the_grants() -> None:
    grants = BrokerGrants(granting("price < 10", narrows=False), DEFAULT_LIMITS)
    assert grants
    assert not BrokerGrants(None, DEFAULT_LIMITS)
    assert grants.may_get(ANN, Event.of({"price": 9}))
    assert not grants.may_get(ANN, Event.of({"price": 10}))
    assert grants.may_get(Client("bob"), Event({}))
    assert not grants.limits_publishing(ANN)
    assert grants.limits_publishing(Client("eve"))
    with pytest.raises(AccessError):
        grants.wanted(EvolvingFilter(parse("price < t"), 0), ANN)


# -- against the oracle ---------------------------------------------------------------------------

wanted = strategies.filters | filters_of_time
grants = strategies.nodes(strategies.typed_predicates()).map(Filter) | strategies.conjunctions(
    strategies.typed_predicates()
)


@pytest.mark.filterwarnings("ignore::tidegate.errors.TidegateWarning")
@settings(max_examples=30)
@given(data=st.data(), narrows=st.booleans())
@pytest.mark.parametrize(
    ("routing", "substrate"),
    [("subscription", each) for each in ("poset", "columnar", "rete")]
    + [(each, None) for each in STRATEGIES if each not in ("subscription", "advertisement")],
)
def test_nothing_outside_of_a_grant_is_delivered(
    routing: str, substrate: str | None, narrows: bool, data: st.DataObject
) -> None:
    """... and within it exactly what the oracle says, through all changes of the subscription."""
    granted = data.draw(ground(grants))
    grant = Grant(granted, None, narrows)
    network = Network(
        [("a", "b")], routing, only_advertised=False, substrate=substrate,
        grant_of=lambda identity: grant if identity == "ann" else EVERYTHING,
    )  # fmt: skip
    broker = network.brokers["a"]
    network.now_us = START_US
    values = {name: data.draw(strategies.values) for name in strategies.PARAMETERS}
    filter = data.draw(wanted)
    request = Subscribe(filter, "s", values_of(filter, values), Lazy())
    network.ask("a", "ann", request)
    for version in range(1, data.draw(st.integers(2, 4))):
        network.run()
        network.now_us += data.draw(st.sampled_from([1, 1_500_000, 30_000_000]))
        named = broker.named.present(ANN, "s")
        node = (filter if named is None else named.subscription.filter).node
        attributes = data.draw(strategies.events_aimed_at(node, granted.node))
        event = Event(attributes, from_us(network.now_us))
        expected = False
        if named is not None:
            moment = Moment(network.now_us, broker.variables.at(network.now_us))
            subscription = named.subscription
            expected = subscription.lives(moment) and holds(
                node, event.attributes, subscription.exact_environment(moment)
            )
        is_granted = holds(granted.node, event.attributes, Environment())
        if not narrows and named is not None:
            assert is_granted or not expected  # a refused subscription would not be there
        before = len(delivered(network, "ann"))
        network.ask(data.draw(st.sampled_from(["a", "b"])), "bob", Publish(event))
        network.run()
        assert len(delivered(network, "ann")) - before == (expected and is_granted)
        change = data.draw(st.booleans())
        if named is not None and change:
            changed = values_of(named.subscription.filter, {
                name: data.draw(strategies.values) for name in strategies.PARAMETERS
            })  # fmt: skip
            network.ask("a", "ann", Update("s", version, changed))
        elif named is not None:
            other = data.draw(wanted)
            network.ask("a", "ann", Update("s", version, values_of(other, values), filter=other))


def ground(filters: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    """Filters made of constants."""
    return filters.map(lambda each: each if not (each.parameters or each.evolves) else each.at({}))


def values_of(filter: Filter, values: dict[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name in filter.parameters}

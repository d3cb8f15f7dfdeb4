"""Deltas of neighbours and deltas for neighbours; what is refused is in test_bad_input.py."""

from __future__ import annotations

import pytest

from support.broker_network import BrokerHarness, Network
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.filters import parse
from tidegate.routing.broker import Broker
from tidegate.routing.messages import (
    AdvertisementDelta,
    Client,
    FilterDelta,
    Key,
    Outgoing,
    Refused,
    Subscribe,
    Update,
)
from tidegate.routing.strategies import strategy

ANN = Client("ann")
ONE, TWO = Key(1, None), Key(2, None)


def a_broker(routing: str = "subscription", *, merging: bool = False) -> Broker:
    """Broker m with neighbours p and q."""
    return BrokerHarness(Broker("m", strategy(routing), merging=merging), "p", "q").broker


def sent(broker: Broker, sender: Client | str, message: FilterDelta | Subscribe) -> Outgoing:
    return broker.handle(message, sender, now_us=1)


# -- deltas of neighbours -----------------------------------------------------------------------


def test_a_delta_is_applied_as_a_whole() -> None:
    broker = a_broker()
    sent(broker, "p", FilterDelta(((ONE, parse("x > 5")), (TWO, parse("y > 5")))))
    key = Key(3, None)
    delta = FilterDelta(((key, parse("z > 5")),), (ONE,), ((TWO, ((0, 7),)),))
    sent(broker, "p", delta)
    table = broker.subscriptions
    assert sorted(str(node.item) for node in table.poset) == ["y > 7", "z > 5"]
    assert [table.has_key("p", each) for each in (ONE, TWO, key)] == [False, True, True]
    assert table.item_of_peer("p", TWO) == parse("y > 7")


def test_a_filter_that_only_changes_its_key_is_not_sent_on() -> None:
    broker = a_broker()
    sent(broker, "p", FilterDelta(((ONE, parse("x > 5")),)))
    assert sent(broker, "p", FilterDelta(((TWO, parse("x > 5")),), (ONE,))) == []


def test_a_filter_of_another_structure_may_come_under_a_known_key() -> None:
    broker = a_broker()
    sent(broker, "p", FilterDelta(((ONE, parse("x > 5")),)))
    ((peer, delta),) = sent(broker, "p", FilterDelta(((ONE, parse("y = 1")),)))
    assert peer == "q"
    assert delta == FilterDelta(((ONE, parse("y = 1")),))
    assert [str(node.item) for node in broker.subscriptions.poset] == ["y = 1"]


def test_what_a_neighbour_has_sent_goes_with_its_link() -> None:
    broker = a_broker("advertisement")
    offered = parse_advertisement("x > 0")
    broker.handle(AdvertisementDelta(((ONE, offered),)), "p", now_us=1)
    sent(broker, "q", FilterDelta(((ONE, parse("x > 5")),)))
    assert list(broker.subscriptions.sent("p").values()) == [parse("x > 5")]
    assert list(broker.advertisements.sent("q").values()) == [offered]
    assert broker.tables.forget("p") == [offered]
    assert len(broker.advertisements.poset) == 0
    assert broker.subscriptions.sent("p") == {}


# -- deltas for neighbours ----------------------------------------------------------------------


@pytest.mark.parametrize("merging", [False, True])
def test_each_neighbour_gets_one_delta_of_a_kind(merging: bool) -> None:
    broker = a_broker(merging=merging)
    sent(broker, ANN, Subscribe("x > 5"))
    sent(broker, ANN, Subscribe("y = 1", "s", version=1))
    more = FilterDelta(((ONE, parse("x > 3")), (TWO, parse("y = 2"))))
    ((peer, delta),) = sent(broker, "p", more)
    assert peer == "q"
    assert isinstance(delta, FilterDelta)
    assert broker.tables.settle() == []  # and then nothing is left to send


def test_a_filter_that_is_written_in_another_order_is_not_sent() -> None:
    broker = a_broker()
    sent(broker, ANN, Subscribe("x > 5 and y = 1", "s", version=1))
    update = Update("s", 2, filter="y = 1 and x > 5")
    assert broker.handle(update, ANN, now_us=2) == []


def test_advertisements_open_the_way_for_subscriptions_that_overlap_them() -> None:
    broker = a_broker("advertisement")
    assert sent(broker, ANN, Subscribe("x > 5")) == []
    assert sent(broker, ANN, Subscribe("y = 1")) == []
    offered = AdvertisementDelta(((ONE, parse_advertisement("x > 0")),))
    replies = broker.handle(offered, "p", now_us=1)
    assert [(peer, type(each)) for peer, each in replies] == [
        ("q", AdvertisementDelta),
        ("p", FilterDelta),
    ]
    assert [str(item) for item in broker.subscriptions.sent("p").values()] == ["x > 5"]
    broker.handle(AdvertisementDelta((), (ONE,)), "p", now_us=1)
    assert broker.subscriptions.sent("p") == {}


@pytest.mark.parametrize(
    "routing", ["flooding", "match-first", "subscription", "link-matching", "summaries"]
)
def test_other_strategies_do_not_send_advertisements(routing: str) -> None:
    network = Network([("a", "b")], routing)
    network.advertise("a", "pub", "x > 0")
    assert not any(network.waiting.values())


def test_a_refused_delta_is_answered_and_leaves_the_tables_alone() -> None:
    broker = a_broker()
    delta = FilterDelta(((ONE, parse("x > 5")),), (TWO,))
    ((peer, answer),) = sent(broker, "p", delta)
    assert peer == "p"
    assert isinstance(answer, Refused)
    assert len(broker.subscriptions.poset) == 0

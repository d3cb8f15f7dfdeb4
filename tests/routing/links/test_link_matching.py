"""Brokers that route by link matching: what they hold, and which links carry an event."""

from __future__ import annotations

from collections import Counter

import pytest

from support.broker_network import Network
from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.matching.matcher import COLLECTED
from tidegate.routing.broker import Broker
from tidegate.routing.links.link_matching import LinkMatching
from tidegate.routing.links.search_rule import (
    EVENTS_PER_FIRST_SAMPLE,
    EVENTS_PER_SAMPLE,
    SAMPLES,
    SearchRule,
)
from tidegate.routing.messages import (
    Client,
    Deliver,
    FilterDelta,
    InForce,
    Key,
    Notify,
    Publication,
    Refused,
    Resume,
    Stamp,
    Subscribe,
    Suspend,
    Unsubscribe,
    Update,
)
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.strategies import strategy

COSTS = {("a", "b"): 10, ("b", "c"): 10, ("c", "d"): 10, ("d", "e"): 10, ("b", "e"): 20}
"""The graph of `test_virtual_links.py`."""


def general_graph() -> Network:
    network = Network([], "link-matching", Architecture.GENERAL)
    for (one, other), cost_us in COSTS.items():
        network.connect(one, other, cost_us)
    return network


def line() -> Network:
    return Network([("a", "b"), ("b", "c")], "link-matching")


def matching(network: Network, broker: str) -> LinkMatching:
    links = network.brokers[broker].matching
    assert isinstance(links, LinkMatching)
    return links


def carried(network: Network) -> Counter[str]:
    """How often each link carries an event until none is on its way."""
    count: Counter[str] = Counter()
    while any(network.waiting.values()):
        link = next(link for link, messages in network.waiting.items() if messages)
        message = network.waiting[link][0]
        if isinstance(message, Notify):
            assert message.targets is None
            count["".join(link)] += 1
        network.arrive(*link)
    return count


def held(network: Network, broker: str) -> set[str]:
    return {str(node.item) for node in network.brokers[broker].subscriptions.poset}


# -- filters --------------------------------------------------------------------------------------


def test_every_broker_holds_every_filter_whatever_covers_it() -> None:
    network = general_graph()
    for broker, wanted in (("a", "x > 0"), ("c", "x > 3"), ("c", "x > 5"), ("e", "x > 3")):
        network.subscribe(broker, f"{wanted} at {broker}", wanted)
    network.run()
    for broker in "abcde":
        assert held(network, broker) == {"x > 0", "x > 3", "x > 5"}
    network.ask("a", "x > 0 at a", Unsubscribe("x > 0"))
    network.run()
    for broker in "abcde":
        assert held(network, broker) == {"x > 3", "x > 5"}


def test_an_update_changes_cells_at_every_broker() -> None:
    network = line()
    network.ask("c", "ann", Subscribe("x < :n", name="low", parameters={"n": 3}))
    network.run()
    network.publish("a", "pub", x=5)
    assert carried(network) == {}
    assert network.ask("c", "ann", Update("low", 2, {"n": 9}, confirm=True)) == []
    network.run()
    assert any(isinstance(each, InForce) for each in network.received["ann"])
    assert held(network, "a") == {"x < 9"}
    network.publish("a", "pub", x=5)
    assert carried(network) == {"ab": 1, "bc": 1}


def test_an_update_of_the_structure_keeps_the_links() -> None:
    network = line()
    network.ask("c", "ann", Subscribe("x < 3", name="low"))
    network.run()
    network.publish("a", "pub", x=1)
    network.run()
    network.ask("c", "ann", Update("low", 2, filter="x > 8 and y = 1"))
    network.run()
    network.publish("a", "pub", x=9, y=1)
    assert carried(network) == {"ab": 1, "bc": 1}
    assert len(network.delivered("ann")) == 2


def test_merged_filters_lead_to_the_same_home() -> None:
    network = Network([("a", "b"), ("b", "c")], "link-matching", merging=True)
    network.subscribe("c", "ann", "x < 5")
    network.subscribe("c", "bob", "x between 5 and 9")
    network.run()
    assert held(network, "a") == {"x <= 9"}
    network.publish("a", "pub", x=7)
    assert carried(network) == {"ab": 1, "bc": 1}
    assert (network.delivered("ann"), network.delivered("bob")) == ([], [{"x": 7}])


def test_a_client_that_moves_gets_everything_once() -> None:
    network = line()
    network.subscribe("c", "ann", "x > 0")
    network.run()
    network.ask("c", "ann", Suspend())
    network.publish("b", "pub", x=1)
    network.run()
    network.ask("a", "ann", Resume("c", 1))
    network.publish("b", "pub", x=2)
    network.run()
    network.publish("b", "pub", x=3)
    assert carried(network) == {"ba": 1}
    assert network.delivered("ann") == [{"x": 1}, {"x": 2}, {"x": 3}]


# -- events ---------------------------------------------------------------------------------------


def test_an_event_goes_down_the_tree_of_its_publisher() -> None:
    network = general_graph()
    for broker in "abcde":
        network.subscribe(broker, f"at-{broker}", "x > 0")
    network.run()
    network.publish("a", "pub", x=1)
    assert carried(network) == {"ab": 1, "bc": 1, "cd": 1, "be": 1}
    network.publish("e", "pub", x=2)
    assert carried(network) == {"ed": 1, "dc": 1, "eb": 1, "ba": 1}
    for broker in "abcde":
        assert network.delivered(f"at-{broker}") == [{"x": 1}, {"x": 2}]


def test_a_broker_behind_two_virtual_links_gets_an_event_once() -> None:
    network = general_graph()
    network.subscribe("d", "dan", "x > 0")
    network.subscribe("e", "eve", "x > 1")
    network.run()
    network.publish("c", "pub", x=2)  # both are downstream, over two virtual links to d
    assert carried(network) == {"cd": 1, "de": 1}
    network.publish("a", "pub", x=3)  # e is behind b
    assert carried(network) == {"ab": 1, "bc": 1, "cd": 1, "be": 1}
    assert network.delivered("dan") == network.delivered("eve") == [{"x": 2}, {"x": 3}]


def test_without_the_split_of_a_link_a_broker_would_get_an_event_in_vain() -> None:
    network = general_graph()
    network.subscribe("d", "dan", "x > 5")
    network.subscribe("e", "eve", "x > 0")
    network.run()
    network.publish("a", "pub", x=1)  # at c, the link to d must not carry it for e
    assert carried(network) == {"ab": 1, "be": 1}


def test_links_follow_the_graph() -> None:
    network = general_graph()
    network.subscribe("e", "eve", "x > 0")
    network.run()
    network.publish("a", "pub", x=1)
    assert carried(network) == {"ab": 1, "be": 1}
    network.cut("b", "e")
    network.run()
    network.publish("a", "pub", x=2)
    assert carried(network) == {"ab": 1, "bc": 1, "cd": 1, "de": 1}
    network.connect("b", "e", 20)
    network.publish("a", "pub", x=3)
    assert carried(network) == {"ab": 1, "be": 1}
    assert network.delivered("eve") == [{"x": 1}, {"x": 2}, {"x": 3}]


@pytest.mark.parametrize("architecture", [Architecture.ACYCLIC, Architecture.HIERARCHICAL])
def test_an_event_nobody_wants_stays_where_it_is(architecture: Architecture) -> None:
    network = Network([("a", "b"), ("b", "c")], "link-matching", architecture)
    network.subscribe("b", "ann", "x > 5")
    network.run()
    network.publish("a", "pub", x=1)
    assert carried(network) == {}
    network.publish("c", "pub", x=9)
    assert carried(network) == {"cb": 1}
    assert network.delivered("ann") == [{"x": 9}]


def test_links_are_prepared_for_changed_filters_only() -> None:
    network = line()
    network.subscribe("c", "ann", "x > 0")
    network.run()
    links = matching(network, "b")
    links.prepare()
    (node,) = network.brokers["b"].subscriptions.poset
    before = links.links_of(node)
    assert before.bit_count() == 1
    network.subscribe("b", "bob", "x > 0")
    assert links.links_of(node) == before
    network.publish("a", "pub", x=1)
    network.run()
    assert links.links_of(node) == before | COLLECTED


# -- flooding -------------------------------------------------------------------------------------

LEARNING = SAMPLES * EVENTS_PER_FIRST_SAMPLE
UNLEARNING = 5 * EVENTS_PER_SAMPLE
"""Enough spurious messages to stop at once."""
ALWAYS = property(lambda _rule: True, lambda _rule, _floods: None)


def test_a_broker_floods_where_every_link_gets_the_events_anyway() -> None:
    network = line()
    network.subscribe("c", "cy", "x >= 0")
    network.run()
    for _ in range(LEARNING):
        network.publish("a", "pub", x=1)
        network.run()
    assert matching(network, "a").rule.floods
    assert matching(network, "b").rule.floods
    assert not matching(network, "c").rule.floods  # it has no link to flood
    network.publish("a", "pub", x=-1)
    assert carried(network) == {"ab": 1, "bc": 1}  # in vain
    assert len(network.delivered("cy")) == LEARNING
    for _ in range(UNLEARNING):
        network.publish("a", "pub", x=-1)
        network.run()
    assert not matching(network, "a").rule.floods
    network.publish("a", "pub", x=-1)
    assert carried(network) == {}
    assert len(network.delivered("cy")) == LEARNING


def test_a_flooding_broker_delivers_to_its_own_clients_what_they_want(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SearchRule, "floods", ALWAYS, raising=False)
    network = general_graph()
    network.subscribe("c", "cy", "x > 5")
    network.subscribe("e", "eve", "x > 0")
    network.run()
    network.publish("a", "pub", x=1)
    assert carried(network) == {"ab": 1, "bc": 1, "cd": 1, "be": 1}
    assert network.delivered("cy") == []
    assert network.delivered("eve") == [{"x": 1}]


# -- bad input ------------------------------------------------------------------------------------


def notify(tree: str | None, targets: frozenset[str] | None = None) -> Notify:
    event = Event.of({"x": 1}, from_us(3))
    return Notify(Publication(event, Stamp("a", 1, 1), "pub"), tree, targets)


def test_events_that_do_not_fit_are_refused() -> None:
    network = line()
    network.subscribe("c", "cy", "x > 0")
    network.run()
    broker = network.brokers["b"]
    for message, reason in (
        (notify(None), "has a tree for each source"),
        (notify("a", frozenset("c")), "a list of targets, which this routing does not use"),
    ):
        ((receiver, answer),) = broker.handle(message, "a", 5)
        assert receiver == "a"
        assert isinstance(answer, Refused)
        assert reason in answer.reason
    # Nothing was changed: the same event is new when it comes as it should.
    assert [receiver for receiver, _ in broker.handle(notify("a"), "a", 6)] == ["c"]


def test_filters_that_do_not_fit_are_refused() -> None:
    network = line()
    network.subscribe("c", "cy", "x > 0")
    network.run()
    links = matching(network, "b")
    links.prepare()
    before = dict(links._links)
    for delta, reason in (
        (FilterDelta(((Key(9, None), parse("x > 1")),)), "has a tree for each source"),
        (FilterDelta(((Key(9, "c"), parse("x > :n")),)), "whose values are known"),
        (FilterDelta(removed=(Key(9, "c"),)), "which it has not sent"),
        (FilterDelta(updated=((Key(1, "c"), ((7, 1),)),)), "has no cell 7"),
    ):
        ((_, answer),) = network.brokers["b"].handle(delta, "c", 5)
        assert isinstance(answer, Refused)
        assert reason in answer.reason
    links.prepare()
    assert links._links == before


def test_an_event_on_an_unknown_tree_goes_to_the_clients_of_the_broker_only() -> None:
    network = line()
    for broker in "bc":
        network.subscribe(broker, f"at-{broker}", "x > 0")
    network.run()
    ((receiver, message),) = network.brokers["b"].handle(notify("nobody"), "a", 5)
    assert receiver == Client("at-b")
    assert isinstance(message, Deliver)


def test_the_matcher_must_find_links() -> None:
    Broker("b", strategy("link-matching"), substrate="naive")
    for name in ("rete", "poset", "summary", "magic"):
        with pytest.raises(RoutingError, match=f"finds the links of events, not '{name}'; there"):
            Broker("b", strategy("link-matching"), substrate=name)

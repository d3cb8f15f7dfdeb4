"""The figures of "Parametric Subscriptions", section 4, step by step: what goes over which link.

The network is that of figure 1: subscribers c1 and c2 at broker b1, c3 and c4 at b2, publishers c5
at b4 and c6 at b5, and b3 in the middle. In a step, `+1 price < 10` is a filter that is sent as a
whole under the key 1, `~1 {0: 30}` an update of its first cell, and `-1` its removal.
"""

from __future__ import annotations

from support.broker_network import Network
from tidegate.routing.messages import (
    Cancel,
    FilterDelta,
    MatchedVersion,
    Message,
    Subscribe,
    Unsubscribe,
    Update,
)
from tidegate.routing.overlay.domains import Architecture

FIGURE_1 = [("b1", "b3"), ("b2", "b3"), ("b3", "b4"), ("b3", "b5")]
HOME = {"c1": "b1", "c2": "b1", "c3": "b2", "c4": "b2", "c5": "b4", "c6": "b5"}
Step = dict[str, list[str]]


class Figure(Network):
    """The network of figure 1, with both publishers."""

    def __init__(self) -> None:
        super().__init__(FIGURE_1, "advertisement")
        for publisher in ("c5", "c6"):
            self.advertise(HOME[publisher], publisher, "price > 0 and volume > 0")
        self.run()

    def step_of(self, client: str, message: Message) -> Step:
        """Send a request of a client; returns what then goes over each link, in order."""
        return messages(self, HOME[client], client, message)

    def quote(self, publisher: str, price: float) -> None:
        self.publish(HOME[publisher], publisher, price=price)

    def prices(self, client: str) -> list[object]:
        return [event["price"] for event in self.delivered(client)]

    def roots(self, broker: str) -> list[str]:
        return [str(node.item) for node in self.brokers[broker].subscriptions.poset if node.is_root]


def messages(network: Network, broker: str, client: str, message: Message) -> Step:
    """Send a request of a client; returns what then goes over each link, in order."""
    assert network.ask(broker, client, message) == []
    step: Step = {}
    while links := [link for link, waiting in network.waiting.items() if waiting]:
        sent = network.waiting[links[0]][0]
        step.setdefault(">".join(links[0]), []).append(text(sent))
        network.arrive(*links[0])
    return step


def text(message: Message) -> str:
    if not isinstance(message, FilterDelta):
        return type(message).__name__
    parts = [f"+{key.number} {item}" for key, item in message.added]
    parts += [f"~{key.number} {dict(cells)}" for key, cells in message.updated]
    parts += [f"-{key.number}" for key in message.removed]
    return "; ".join(parts)


def priced(name: str, limit: float, version: int = 1) -> Subscribe:
    """Ask for quotes below a limit that can be changed."""
    return Subscribe("price < :x", name, {"x": limit}, version=version)


# -- figure 4 -----------------------------------------------------------------------------------


def test_re_subscription() -> None:
    """Figure 4: two steps, and in between the subscriber has no subscription."""
    figure = Figure()
    assert figure.step_of("c1", Subscribe("price < 10")) == {
        "b1>b3": ["+1 price < 10"], "b3>b4": ["+1 price < 10"], "b3>b5": ["+2 price < 10"]
    }  # fmt: skip
    assert figure.step_of("c2", Subscribe("price < 5")) == {}  # covered
    assert figure.roots("b1") == figure.roots("b3") == ["price < 10"]

    # constants are lifted to variables, so the other filter goes out as a value
    assert figure.step_of("c1", Unsubscribe("price < 10")) == {
        "b1>b3": ["~1 {0: 5}"], "b3>b4": ["~1 {0: 5}"], "b3>b5": ["~2 {0: 5}"]
    }  # fmt: skip
    assert figure.roots("b1") == figure.roots("b3") == ["price < 5"]
    figure.quote("c5", 7)
    figure.run()

    assert figure.step_of("c1", Subscribe("price < 30")) == {
        "b1>b3": ["~1 {0: 30}"], "b3>b4": ["~1 {0: 30}"], "b3>b5": ["~2 {0: 30}"]
    }  # fmt: skip
    assert figure.roots("b1") == figure.roots("b3") == ["price < 30"]
    assert figure.prices("c1") == []  # 7 was below 10 and is below 30


# -- figure 7 -----------------------------------------------------------------------------------


def subscribed() -> Figure:
    """All four have subscribed; the steps are those of figures 1 and 7."""
    figure = Figure()
    assert figure.step_of("c1", priced("s", 10)) == {
        "b1>b3": ["+1 price < 10"], "b3>b4": ["+1 price < 10"], "b3>b5": ["+2 price < 10"]
    }  # fmt: skip
    assert figure.step_of("c2", priced("s", 5)) == {}
    assert figure.step_of("c3", priced("s", 8)) == {"b2>b3": ["+1 price < 8"]}  # hidden at b3
    assert figure.step_of("c4", priced("s", 2)) == {}
    return figure


def test_an_update() -> None:
    """Figure 7: one message on each link, with the value only, under the key of each link."""
    figure = subscribed()
    assert figure.step_of("c1", Update("s", 2, {"x": 30})) == {
        "b1>b3": ["~1 {0: 30}"], "b3>b4": ["~1 {0: 30}"], "b3>b5": ["~2 {0: 30}"]
    }  # fmt: skip
    assert figure.roots("b1") == figure.roots("b3") == figure.roots("b5") == ["price < 30"]
    for price in (7, 29, 31):
        figure.quote("c5", price)
    figure.run()
    assert figure.prices("c1") == [7, 29]
    assert figure.prices("c2") == figure.prices("c4") == []
    assert figure.prices("c3") == [7]


def test_an_update_that_is_hidden_goes_no_further() -> None:
    figure = subscribed()
    assert figure.step_of("c2", Update("s", 2, {"x": 9})) == {}  # behind 10 at b1
    assert figure.step_of("c3", Update("s", 2, {"x": 9.5})) == {"b2>b3": ["~1 {0: 9.5}"]}  # at b3
    figure.quote("c6", 8.5)
    figure.run()
    assert [figure.prices(client) for client in ("c1", "c2", "c3", "c4")] == [[8.5]] * 3 + [[]]


def test_the_root_becomes_another_one() -> None:
    """The key stays: what was c1's filter at b3 is c2's now, and then c3's at b4."""
    figure = subscribed()
    assert figure.step_of("c2", Update("s", 2, {"x": 12})) == {
        "b1>b3": ["~1 {0: 12}"], "b3>b4": ["~1 {0: 12}"], "b3>b5": ["~2 {0: 12}"]
    }  # fmt: skip
    assert figure.step_of("c1", Update("s", 2, {"x": 1})) == {}  # covered now
    assert figure.step_of("c2", Update("s", 3, {"x": 4})) == {
        "b1>b3": ["~1 {0: 4}"], "b3>b4": ["~1 {0: 8}"], "b3>b5": ["~2 {0: 8}"]
    }  # fmt: skip
    assert figure.roots("b3") == ["price < 8"]
    assert figure.step_of("c3", Cancel("s")) == {
        "b2>b3": ["~1 {0: 2}"], "b3>b4": ["~1 {0: 4}"], "b3>b5": ["~2 {0: 4}"]
    }  # fmt: skip


def test_equal_values_share_what_was_sent() -> None:
    figure = subscribed()
    assert figure.step_of("c2", Update("s", 2, {"x": 10})) == {}
    assert len(figure.brokers["b1"].subscriptions.poset) == 1
    assert figure.step_of("c1", Update("s", 2, {"x": 3})) == {}  # c2 still asks for it
    figure.quote("c5", 9)
    figure.run()
    assert (figure.prices("c1"), figure.prices("c2")) == ([], [9])


def test_what_is_not_changed_is_not_sent() -> None:
    figure = subscribed()
    assert figure.step_of("c1", Update("s", 2, {"x": 10})) == {}
    assert figure.step_of("c1", Update("s", 3)) == {}
    assert figure.step_of("c1", Update("s", 4, filter="price < 10")) == {}


def test_a_value_of_another_kind() -> None:
    network = Network([("b1", "b3"), ("b3", "b4")])
    for client, limit in (("c1", 10), ("c2", 5)):
        messages(network, "b1", client, priced("s", limit))
    assert messages(network, "b1", "c1", Update("s", 2, {"x": "ten"})) == {
        "b1>b3": ["+2 price < 5; ~1 {0: 'ten'}"], "b3>b4": ["+2 price < 5; ~1 {0: 'ten'}"]
    }  # fmt: skip
    network.publish("b4", "c5", price="nine")
    network.publish("b4", "c5", price=4)
    network.run()
    assert network.delivered("c1") == [{"price": "nine"}]
    assert network.delivered("c2") == [{"price": 4}]


def test_a_value_for_which_nobody_publishes() -> None:
    """Advertisements are of numbers: what asks for strings goes nowhere."""
    figure = subscribed()
    assert figure.step_of("c1", Update("s", 2, {"x": "ten"})) == {
        "b1>b3": ["~1 {0: 5}"], "b3>b4": ["~1 {0: 8}"], "b3>b5": ["~2 {0: 8}"]
    }  # fmt: skip


# -- other structures ---------------------------------------------------------------------------


def test_another_structure_is_one_replacement() -> None:
    """Predicates are removed and added: all that changes for a neighbour is in one message."""
    figure = subscribed()
    narrow = Update("s", 2, filter="price < :x and volume > :v", parameters={"v": 100})
    assert figure.step_of("c1", narrow) == {
        "b1>b3": ["+1 price < 10 and volume > 100; +2 price < 5"],
        "b3>b4": ["+1 price < 10 and volume > 100; +3 price < 8"],
        "b3>b5": ["+2 price < 10 and volume > 100; +4 price < 8"],
    }
    assert figure.step_of("c1", Update("s", 3, {"v": 200})) == {
        "b1>b3": ["~1 {1: 200}"], "b3>b4": ["~1 {1: 200}"], "b3>b5": ["~2 {1: 200}"]
    }  # fmt: skip
    assert figure.step_of("c1", Update("s", 4, {"x": 20}, filter="price < :x")) == {
        "b1>b3": ["+1 price < 20; -2"],
        "b3>b4": ["+1 price < 20; -3"],
        "b3>b5": ["+2 price < 20; -4"],
    }


def test_nothing_is_missed_while_the_structure_changes() -> None:
    """An event that matches before and after comes once, wherever the replacement is by then."""
    for steps in range(6):
        figure = subscribed()
        wide = "price < :x or volume > 5"
        figure.ask("b1", "c1", Update("s", 2, filter=wide))
        for _ in range(steps):
            figure.step()
        figure.quote("c5", 9)
        figure.quote("c6", 9)
        figure.run()
        assert figure.prices("c1") == [9, 9]


def test_several_parameters_change_as_one() -> None:
    figure = Figure()
    between = Subscribe("price > :low and price < :high", "s", {"low": 1, "high": 2}, version=1)
    figure.step_of("c1", between)
    assert figure.step_of("c1", Update("s", 2, {"low": 5, "high": 6})) == {
        "b1>b3": ["~1 {0: 6, 1: 5}"], "b3>b4": ["~1 {0: 6, 1: 5}"], "b3>b5": ["~2 {0: 6, 1: 5}"]
    }  # fmt: skip


def test_a_value_that_is_taken_away_and_given_again() -> None:
    figure = subscribed()
    assert figure.step_of("c1", Update("s", 2, {"x": None})) == {
        "b1>b3": ["~1 {0: 5}"], "b3>b4": ["~1 {0: 8}"], "b3>b5": ["~2 {0: 8}"]
    }  # fmt: skip
    assert figure.step_of("c1", Update("s", 3, {"x": 9})) == {
        "b1>b3": ["~1 {0: 9}"], "b3>b4": ["~1 {0: 9}"], "b3>b5": ["~2 {0: 9}"]
    }  # fmt: skip


def test_deliveries_name_the_version() -> None:
    figure = subscribed()
    figure.quote("c5", 4)
    figure.run()
    figure.step_of("c1", Update("s", 7, {"x": 30}))
    figure.quote("c5", 4)
    figure.run()
    versions = [getattr(each, "matches", None) for each in figure.received["c1"]]
    assert versions == [(MatchedVersion("s", 1),), (MatchedVersion("s", 7),)]


# -- on other overlays --------------------------------------------------------------------------


def test_where_each_source_has_a_tree_each_link_of_it_has_one_message() -> None:
    ring = [("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b1"), ("b2", "b4")]
    network = Network(ring, architecture=Architecture.GENERAL)
    first = messages(network, "b1", "c1", priced("s", 10))
    assert len(first) == 3  # a tree of four brokers
    assert all(len(told) == 1 for told in first.values())
    then = messages(network, "b1", "c1", Update("s", 2, {"x": 30}))
    assert then == {link: [f"~{told[1:2]} {{0: 30}}"] for link, (told,) in first.items()}


def test_in_a_hierarchy_updates_go_up() -> None:
    network = Network(
        [("b1", "b3"), ("b2", "b3"), ("b3", "b5")], architecture=Architecture.HIERARCHICAL
    )
    assert list(messages(network, "b1", "c1", priced("s", 10))) == ["b1>b3", "b3>b5"]
    assert messages(network, "b1", "c1", Update("s", 2, {"x": 30})) == {
        "b1>b3": ["~1 {0: 30}"], "b3>b5": ["~1 {0: 30}"]
    }  # fmt: skip


def test_where_subscriptions_are_sent_nowhere_updates_are_not_either() -> None:
    network = Network(FIGURE_1, "flooding")
    assert messages(network, "b1", "c1", priced("s", 10)) == {}
    assert messages(network, "b1", "c1", Update("s", 2, {"x": 30})) == {}
    network.publish("b5", "c6", price=20)
    network.run()
    assert network.delivered("c1") == [{"price": 20}]

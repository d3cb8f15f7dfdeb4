"""What is sent equals rule (1) computed from scratch, and neighbours hold exactly that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tidegate.language.filters import Filter, parse
from tidegate.matching.poset.antichain import Antichain
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.routing.askers import Asker, NamedAsker, NeighbourAsker
from tidegate.routing.cell_updates import differing_cells, identity, structure, with_cells
from tidegate.routing.forwarding import Forwarding
from tidegate.routing.messages import Client, Key
from tidegate.routing.outbox import Destination
from tidegate.routing.tables.covered_nodes import CoveredNodes
from tidegate.routing.tables.deferred_nodes import DeferredNodes
from tidegate.routing.tables.node_table import NodeTable

PEERS = ["p", "q", "r"]
TREES = ["t", "u"]
CLIENTS = [Client("ann"), Client("bob")]
FILTERS_USED = [
    parse(f"x >= {low} and x <= {high}{more}")
    for low in range(3) for high in range(low, 3) for more in ("", " and y = 1", " and y > 0")
] + [parse("x >= 0"), parse("x <= 2 and x >= 0"), parse("y = 1"), parse("true")]  # fmt: skip

items = st.sampled_from(FILTERS_USED)
clients = st.sampled_from(CLIENTS)
named_askers = st.builds(NamedAsker, clients, st.sampled_from("ab"))
peers = st.sampled_from(PEERS)
keys = st.builds(Key, st.integers(0, 3), st.sampled_from(TREES))


@dataclass
class Receiver:
    """A neighbour that holds what it was sent."""

    held: dict[Key, WantedFilter] = field(default_factory=dict)


class Tables(RuleBasedStateMachine):
    """A table; beside it plain lists of what each asker asked for, and what neighbours hold."""

    def __init__(self) -> None:
        super().__init__()
        self.up = set(PEERS)
        self.asked: dict[Asker, list[Filter]] = {}
        self.receivers = {peer: Receiver() for peer in PEERS}
        self.per_tree = True

    @initialize(per_tree=st.booleans(), by_item=st.booleans(), deferred=st.booleans())
    def begin(self, per_tree: bool, by_item: bool, deferred: bool) -> None:
        self.per_tree = per_tree

        def covered() -> CoveredNodes[WantedFilter]:
            return CoveredNodes(FILTERS, self.destinations, structure=structure, by_item=by_item)

        nodes: NodeTable[WantedFilter] = (
            DeferredNodes(identity, covered, lambda: bool(self.up)) if deferred else covered()
        )
        self.table = Forwarding(nodes, FILTERS.covers)

    def destinations(self, node: PosetNode[WantedFilter]) -> Iterable[Destination]:
        return sorted(
            {
                destination
                for asker in node.subscribers
                for destination in self.destinations_of(asker)
            }
        )

    def destinations_of(self, asker: object) -> Iterable[Destination]:
        """All neighbours but the one it came from; on its tree, if there are several."""
        tree = "me"
        sender = None
        if isinstance(asker, NeighbourAsker):
            tree, sender = str(asker.key.tree), asker.peer
        return {
            Destination(peer, tree if self.per_tree else None) for peer in self.up if peer != sender
        }

    @rule(client=clients, item=items)
    def ask(self, client: Client, item: Filter) -> None:
        held = self.asked.setdefault(client, [])
        is_new = not any(each.covers(item) for each in held)
        if is_new:
            held[:] = [each for each in held if not item.covers(each)] + [item]
        assert self.table.ask(client, item) == is_new

    @rule(client=clients, item=items)
    def cancel(self, client: Client, item: Filter) -> None:
        held = self.asked.setdefault(client, [])
        left = [each for each in held if not item.covers(each)]
        assert self.table.cancel(client, item) == len(held) - len(left)
        held[:] = left

    @rule(asker=named_askers, item=items)
    def set_named(self, asker: NamedAsker, item: Filter) -> None:
        self.table.set_named(asker, item)
        self.asked[asker] = [item]

    @rule(asker=named_askers)
    def cancel_named(self, asker: NamedAsker) -> None:
        self.table.cancel_named(asker)
        self.asked.pop(asker, None)

    @rule(peer=peers, key=keys, item=items)
    def put(self, peer: str, key: Key, item: Filter) -> None:
        if peer in self.up:
            self.table.put(peer, key, item)
            self.asked[NeighbourAsker(peer, key)] = [item]

    @rule(peer=peers, some=st.lists(keys, max_size=4))
    def remove(self, peer: str, some: list[Key]) -> None:
        self.table.remove(peer, some)
        for key in some:
            self.asked.pop(NeighbourAsker(peer, key), None)

    @rule(peer=peers)
    def lose(self, peer: str) -> None:
        self.up.discard(peer)
        self.table.forget(peer)
        self.receivers[peer] = Receiver()
        for asker in [each for each in self.asked if isinstance(each, NeighbourAsker)]:
            if asker.peer == peer:
                del self.asked[asker]

    @rule(peer=peers)
    def regain(self, peer: str) -> None:
        self.up.add(peer)
        self.table.mark_all()

    @rule()
    def settle(self) -> None:
        for peer, sent in self.table.settle().items():
            held = self.receivers[peer].held
            for key in sent.removed:
                del held[key]
            for key, item in sent.added:
                assert key not in held or structure(held[key]) != structure(item)
                held[key] = item
            for key, old, new in sent.updated:
                assert str(old) == str(held[key])
                assert structure(old) == structure(new)
                by_cells = with_cells(held[key], differing_cells(old, new))
                assert FILTERS.covers(by_cells, new)
                assert FILTERS.covers(new, by_cells)
                held[key] = new
        self.check_who_asked()
        expected = self.from_scratch()
        forwards = {
            str(node.item): {each for each in node.forwards if isinstance(each, Destination)}
            for node in self.table.poset
        }
        if self.up:
            assert {self.name(item): destinations for item, destinations in expected} == forwards
        else:  # a deferred table does not look for equal items while it sends nothing
            assert not any(forwards.values())
        for peer, receiver in self.receivers.items():
            should = sorted(
                (self.name(item), str(destination.tree))
                for item, destinations in expected
                for destination in destinations
                if destination.peer == peer
            )
            has = sorted((str(item), str(key.tree)) for key, item in receiver.held.items())
            assert has == should

    def name(self, item: WantedFilter) -> str:
        """The text of the item that the poset has for equal items."""
        node = self.table.poset.find(item)
        assert node is not None
        return str(node.item)

    def from_scratch(self) -> list[tuple[Filter, set[Destination]]]:
        """Rule (1), widest filters first, so that what covers a filter comes before it."""
        groups: list[tuple[Filter, set[Destination]]] = []
        for asker, held in self.asked.items():
            for item in held:
                same = next((each for each in groups if each[0].equals(item)), None)
                if same is None:
                    same = item, set()
                    groups.append(same)
                same[1].update(self.destinations_of(asker))
        forwards: list[tuple[Filter, set[Destination]]] = []
        for item, destinations in sorted(
            groups, key=lambda each: -sum(each[0].covers(other) for other, _ in groups)
        ):
            hidden = [sent for wide, sent in forwards if wide.covers(item)]
            forwards.append((item, destinations.difference(*hidden)))
        return forwards

    def check_who_asked(self) -> None:
        for client in CLIENTS:
            held = {self.name(node.item) for node in self.table.nodes_of(client)}
            assert held == {self.name(item) for item in self.asked.get(client, ())}
        for peer in PEERS:
            mine = {
                asker.key: self.name(held[0])
                for asker, held in self.asked.items()
                if isinstance(asker, NeighbourAsker) and asker.peer == peer
            }
            assert {key: self.name(self.table.item_of_peer(peer, key)) for key in mine} == mine
            assert len(self.table.nodes_of_peer(peer)) == len(mine)
            assert all(self.table.has_key(peer, key) == (key in mine) for key in _all_keys())

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        for client in CLIENTS:
            self.table.cancel(client, parse("true"))
            for name in "ab":
                self.table.cancel_named(NamedAsker(client, name))
        for peer in PEERS:
            self.table.remove(peer, _all_keys())
        self.asked.clear()
        self.settle()
        assert len(self.table.poset) == 0
        assert not any(receiver.held for receiver in self.receivers.values())


def _all_keys() -> list[Key]:
    return [Key(number, tree) for number in range(4) for tree in TREES]


Tables.TestCase.settings = settings(stateful_step_count=40)
TestTables = Tables.TestCase


ANN, BOB = CLIENTS


def everywhere(node: PosetNode[WantedFilter]) -> list[Destination]:
    """To p and q, but not back to the neighbour that alone has asked."""
    asking = [each.peer for each in node.subscribers if isinstance(each, NeighbourAsker)]
    others = len(node.subscribers) - len(asking)
    return [Destination(peer, None) for peer in "pq" if others or asking != [peer]]


def table() -> Forwarding[WantedFilter]:
    return Forwarding(CoveredNodes(FILTERS, everywhere), FILTERS.covers)


def settled(table: Forwarding[WantedFilter]) -> dict[str, tuple[list[str], int]]:
    """Settle; returns what is added at each neighbour, and how many items are removed."""
    return {
        peer: ([str(item) for _, item in sent.added], len(sent.removed))
        for peer, sent in table.settle().items()
    }


def test_a_wider_one_replaces_the_narrower_one_of_the_same_client() -> None:
    it = table()
    it.ask(ANN, parse("x > 5"))
    it.settle()
    assert it.ask(ANN, parse("x > 3"))
    assert [str(node.item) for node in it.poset] == ["x > 3"]
    assert settled(it) == {"p": (["x > 3"], 1), "q": (["x > 3"], 1)}
    assert not it.ask(ANN, parse("x > 4"))
    assert settled(it) == {}


def test_the_narrower_one_of_another_client_stays_but_is_not_sent() -> None:
    it = table()
    it.ask(ANN, parse("x > 5"))
    it.settle()
    it.ask(BOB, parse("x > 3"))
    assert settled(it) == {"p": (["x > 3"], 1), "q": (["x > 3"], 1)}
    assert len(it.poset) == 2


def test_in_an_antichain_nothing_is_hidden() -> None:
    nodes = CoveredNodes(FILTERS, everywhere, antichain=Antichain(identity))
    it: Forwarding[WantedFilter] = Forwarding(nodes, FILTERS.covers)
    it.ask(ANN, parse("x > 5"))
    it.settle()
    it.ask(BOB, parse("x > 7"))
    assert settled(it) == {"p": (["x > 7"], 0), "q": (["x > 7"], 0)}
    assert not it.ask(ANN, parse("x > 8"))  # for one client, covering counts as always
    assert it.cancel(BOB, parse("x > 0")) == 1
    assert settled(it) == {"p": ([], 1), "q": ([], 1)}
    it.put("p", Key(1, None), parse("x > 5"))
    assert [len(node.subscribers) for node in it.poset] == [2]


def test_a_hidden_filter_is_sent_in_the_message_that_removes_the_wider_one() -> None:
    it = table()
    it.ask(ANN, parse("x > 5"))
    it.ask(BOB, parse("x > 3"))
    it.settle()
    assert it.cancel(BOB, parse("x > 3")) == 1
    assert settled(it) == {"p": (["x > 5"], 1), "q": (["x > 5"], 1)}


def test_cancelling_removes_all_that_is_covered_and_carves_nothing_out() -> None:
    it = table()
    for text in ("x > 5", "x < 0", "y = 1"):
        it.ask(ANN, parse(text))
    assert it.cancel(ANN, parse("x > 7")) == 0  # covers none of them
    assert it.cancel(ANN, parse("x is not null")) == 2
    assert [str(node.item) for node in it.nodes_of(ANN)] == ["y = 1"]


def test_a_filter_that_came_and_went_between_two_messages_is_not_sent() -> None:
    it = table()
    it.ask(ANN, parse("x > 5"))
    it.cancel(ANN, parse("x > 5"))
    assert settled(it) == {}


def test_equal_filters_are_sent_once_and_stay_until_the_last_one_goes() -> None:
    it = table()
    it.ask(ANN, parse("x > 5 and x > 3"))
    it.ask(BOB, parse("x > 5"))
    assert len(it.poset) == 1
    assert {peer: len(added) for peer, (added, _) in settled(it).items()} == {"p": 1, "q": 1}
    it.cancel(ANN, parse("x > 5"))
    assert settled(it) == {}
    it.cancel(BOB, parse("x > 5"))
    assert settled(it) == {"p": ([], 1), "q": ([], 1)}


def test_a_key_that_a_neighbour_uses_again_means_the_new_filter() -> None:
    it = table()
    it.put("p", Key(1, None), parse("x > 5"))
    it.settle()
    it.put("p", Key(1, None), parse("x > 9"))
    assert settled(it) == {"q": (["x > 9"], 0)}  # it replaces the old one, under its key
    assert len(it.nodes_of_peer("p")) == 1


def test_a_neighbour_that_was_forgotten_is_sent_everything_again() -> None:
    it = table()
    it.ask(ANN, parse("x > 5"))
    it.settle()
    it.forget("p")
    assert settled(it) == {"p": (["x > 5"], 0)}  # here it is still a neighbour


@given(st.permutations(FILTERS_USED[:8]), st.permutations(FILTERS_USED[:8]))
def test_the_order_of_asking_does_not_matter(one: list[Filter], other: list[Filter]) -> None:
    sent: list[list[str]] = []
    for order in (one, other):
        it = table()
        for number, item in enumerate(order):
            it.put("p", Key(number, None), item)
        added, _ = settled(it)["q"]
        sent.append(sorted(added))
    assert sent[0] == sent[1]


# -- named subscriptions ------------------------------------------------------------------------

LIMIT, OTHER = NamedAsker(ANN, "limit"), NamedAsker(ANN, "other")


def lifted() -> Forwarding[WantedFilter]:
    """A table that knows the structure of filters, so that a change of values is an update."""
    return Forwarding(CoveredNodes(FILTERS, everywhere, structure=structure), FILTERS.covers)


class Neighbourhood:
    """Whether there is anyone to send to."""

    def __init__(self) -> None:
        self.exists = True
        self.tables = 0
        """How many tables of covered nodes were made."""


def deferred() -> tuple[Forwarding[WantedFilter], Neighbourhood]:
    """A table that places its nodes when it settles, if there are neighbours."""
    neighbourhood = Neighbourhood()

    def covered() -> CoveredNodes[WantedFilter]:
        neighbourhood.tables += 1
        return CoveredNodes(FILTERS, everywhere, structure=structure)

    nodes = DeferredNodes(identity, covered, lambda: neighbourhood.exists)
    return Forwarding(nodes, FILTERS.covers), neighbourhood


def updates(table: Forwarding[WantedFilter]) -> dict[str, tuple[list[str], list[str], int]]:
    """Settle; returns what is added and updated at each neighbour, and how much is removed."""
    return {
        peer: (
            [str(item) for _, item in sent.added],
            [f"{old} -> {new}" for _, old, new in sent.updated],
            len(sent.removed),
        )
        for peer, sent in table.settle().items()
    }


def test_a_named_filter_replaces_nothing_and_is_not_replaced() -> None:
    it = lifted()
    it.ask(ANN, parse("x > 5"))
    it.set_named(LIMIT, parse("x > 7"))
    it.set_named(OTHER, parse("x > 0"))
    it.ask(ANN, parse("x > 3"))
    assert [str(node.item) for node in it.nodes_of(ANN)] == ["x > 3"]
    assert [str(node.item) for node in it.nodes_of(LIMIT)] == ["x > 7"]
    assert it.cancel(ANN, parse("x > 0")) == 1
    assert len(it.poset) == 2
    it.cancel_named(OTHER)
    it.cancel_named(LIMIT)
    it.cancel_named(LIMIT)  # which is not there any more
    assert len(it.poset) == 0
    assert updates(it) == {}


def test_a_node_with_one_asker_is_kept_by_an_update() -> None:
    it = lifted()
    it.set_named(LIMIT, parse("x > 5"))
    it.settle()
    (before,) = it.nodes_of(LIMIT)
    it.set_named(LIMIT, parse("x > 7"))
    assert it.nodes_of(LIMIT) == [before]
    assert updates(it) == {peer: ([], ["x > 5 -> x > 7"], 0) for peer in "pq"}
    it.set_named(LIMIT, parse("x > 7"))
    assert updates(it) == {}


def test_a_node_that_is_shared_stays_with_the_others() -> None:
    it = lifted()
    it.set_named(LIMIT, parse("x > 5"))
    it.ask(BOB, parse("x > 5"))
    it.settle()
    it.set_named(LIMIT, parse("x > 7"))
    assert len(it.poset) == 2
    assert updates(it) == {}  # hidden by what bob still asks for
    it.set_named(LIMIT, parse("x > 1"))
    assert updates(it) == {peer: ([], ["x > 5 -> x > 1"], 0) for peer in "pq"}
    it.set_named(LIMIT, parse("x > 5"))
    assert len(it.poset) == 1
    assert updates(it) == {peer: ([], ["x > 1 -> x > 5"], 0) for peer in "pq"}


def test_an_update_that_no_longer_hides_others_sends_them_in_the_same_message() -> None:
    it = lifted()
    it.set_named(LIMIT, parse("x > 1"))
    it.set_named(OTHER, parse("x > 5"))
    it.ask(BOB, parse("x > 3"))
    it.settle()
    it.set_named(LIMIT, parse("x > 9"))  # below both now
    assert updates(it) == {peer: ([], ["x > 1 -> x > 3"], 0) for peer in "pq"}
    it.set_named(LIMIT, parse("y = 1"))
    assert updates(it) == {peer: (["y = 1"], [], 0) for peer in "pq"}
    it.set_named(LIMIT, parse("x > 2"))
    assert updates(it) == {peer: (["x > 2"], [], 1) for peer in "pq"}


def test_a_neighbour_that_changes_a_value_keeps_its_node() -> None:
    it = lifted()
    it.put("p", Key(1, None), parse("x > 5"))
    it.settle()
    (before,) = it.nodes_of_peer("p")
    it.put("p", Key(1, None), parse("x > 9"))
    assert it.nodes_of_peer("p") == [before]
    assert updates(it) == {"q": ([], ["x > 5 -> x > 9"], 0)}
    assert it.item_of_peer("p", Key(1, None)) == parse("x > 9")


def test_a_filter_of_a_neighbour_is_kept_as_it_was_sent() -> None:
    """Cells of an update count in the row that was sent, however the node's item is written."""
    it = lifted()
    it.ask(ANN, parse("x > 5 and x > 3"))
    it.put("p", Key(1, None), parse("x > 5"))
    assert len(it.poset) == 1
    assert it.item_of_peer("p", Key(1, None)) == parse("x > 5")


class RecordingListener:
    """Records the calls, and the items of the nodes."""

    def __init__(self) -> None:
        self.items: dict[int, str] = {}
        self.calls: list[str] = []
        self.asked: list[tuple[int, int]] = []

    def add(self, node: PosetNode[WantedFilter]) -> None:
        assert node.number not in self.items
        self._note("add", node)

    def change(self, node: PosetNode[WantedFilter]) -> None:
        assert node.number in self.items
        self._note("change", node)

    def remove(self, node: PosetNode[WantedFilter]) -> None:
        del self.items[node.number]
        self.calls.append("remove")

    def askers_changed(self, node: PosetNode[WantedFilter]) -> None:
        assert node.number in self.items
        self.asked.append((node.number, len(node.subscribers)))

    def _note(self, what: str, node: PosetNode[WantedFilter]) -> None:
        self.items[node.number] = str(node.item)
        self.calls.append(what)


@pytest.mark.parametrize("table", [lifted, lambda: deferred()[0]])
def test_a_listener_is_called_for_every_change_of_the_nodes(
    table: Callable[[], Forwarding[WantedFilter]],
) -> None:
    it = table()
    listener = RecordingListener()
    it.listen(listener)
    it.set_named(LIMIT, parse("x > 5"))
    it.ask(BOB, parse("x > 5"))
    assert listener.calls == ["add"]
    it.set_named(LIMIT, parse("x > 7"))
    assert listener.calls == ["add", "add"]
    it.set_named(LIMIT, parse("x > 8"))
    assert listener.calls[2:] == ["change"]
    it.set_named(LIMIT, parse("x > 5"))  # to bob's node
    assert listener.calls[3:] == ["remove"]
    first = min(number for number, _ in listener.asked)
    asked = [(number - first, count) for number, count in listener.asked]
    assert asked == [(0, 1), (0, 2), (0, 1), (1, 1), (0, 2)]
    assert list(listener.items.values()) == ["x > 5"] == [str(node.item) for node in it.poset]
    it.cancel(BOB, parse("x > 5"))
    it.cancel_named(LIMIT)
    assert listener.items == {}

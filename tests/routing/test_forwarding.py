"""What is sent against rule (1) computed from scratch, and what a neighbour makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tidegate.language.filters import Filter, parse
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.routing.cell_updates import altered, differing_cells, structure
from tidegate.routing.forwarding import Asker, Forwarding, NamedAsker, NeighbourAsker
from tidegate.routing.messages import Client, Key
from tidegate.routing.outbox import Destination

PEERS = ["p", "q", "r"]
TREES = ["t", "u"]
CLIENTS = [Client("ann"), Client("bob")]
FILTERS_USED = [
    parse(f"x >= {low} and x <= {high}{more}")
    for low in range(3) for high in range(low, 3) for more in ("", " and y = 1", " and y > 0")
] + [parse("x >= 0"), parse("x <= 2 and x >= 0"), parse("y = 1"), parse("true")]  # fmt: skip

items = st.sampled_from(FILTERS_USED)
clients = st.sampled_from(CLIENTS)
claims = st.builds(NamedAsker, clients, st.sampled_from("ab"))
peers = st.sampled_from(PEERS)
keys = st.builds(Key, st.integers(0, 3), st.sampled_from(TREES))


@dataclass
class Receiver:
    """A neighbour that has only what it was sent, and does not take back what it never had."""

    held: dict[Key, WantedFilter] = field(default_factory=dict)


class Tables(RuleBasedStateMachine):
    """A table, beside it plain lists of who asked for what, and what the neighbours were sent."""

    def __init__(self) -> None:
        super().__init__()
        self.up = set(PEERS)
        self.asked: dict[Asker, list[Filter]] = {}
        self.receivers = {peer: Receiver() for peer in PEERS}
        self.per_tree = True

    @initialize(per_tree=st.booleans(), by_item=st.booleans())
    def begin(self, per_tree: bool, by_item: bool) -> None:
        self.per_tree = per_tree
        self.table: Forwarding[WantedFilter] = Forwarding(
            FILTERS, self.wanted, structure=structure, by_item=by_item
        )

    def wanted(self, node: PosetNode[WantedFilter]) -> Iterable[Destination]:
        return sorted({label for asker in node.subscribers for label in self.spread(asker)})

    def spread(self, asker: object) -> Iterable[Destination]:
        """To all neighbours but the one it came from; on its tree, if there are several."""
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

    @rule(claim=claims, item=items)
    def claim(self, claim: NamedAsker, item: Filter) -> None:
        self.table.claim(claim, item)
        self.asked[claim] = [item]

    @rule(claim=claims)
    def release(self, claim: NamedAsker) -> None:
        self.table.release(claim)
        self.asked.pop(claim, None)

    @rule(peer=peers, key=keys, item=items)
    def put(self, peer: str, key: Key, item: Filter) -> None:
        if peer in self.up:
            self.table.put(peer, key, item)
            self.asked[NeighbourAsker(peer, key)] = [item]

    @rule(peer=peers, some=st.lists(keys, max_size=4))
    def take_back(self, peer: str, some: list[Key]) -> None:
        self.table.take_back(peer, some)
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
            for key in sent.dropped:
                del held[key]
            for key, item in sent.added:
                assert key not in held or structure(held[key]) != structure(item)
                held[key] = item
            for key, old, new in sent.altered:
                assert str(old) == str(held[key])
                assert structure(old) == structure(new)
                by_cells = altered(held[key], differing_cells(old, new))
                assert FILTERS.covers(by_cells, new)
                assert FILTERS.covers(new, by_cells)
                held[key] = new
        self.check_who_asked()
        expected = self.from_scratch()
        forwards = {
            str(node.item): {each for each in node.forwards if isinstance(each, Destination)}
            for node in self.table.poset
        }
        assert {self.name(item): labels for item, labels in expected} == forwards
        for peer, receiver in self.receivers.items():
            should = sorted(
                (self.name(item), str(label.tree))
                for item, labels in expected for label in labels if label.peer == peer
            )  # fmt: skip
            has = sorted((str(item), str(key.tree)) for key, item in receiver.held.items())
            assert has == should

    def name(self, item: WantedFilter) -> str:
        """The text by which the poset knows what means the same."""
        node = self.table.poset.find(item)
        assert node is not None
        return str(node.item)

    def from_scratch(self) -> list[tuple[Filter, set[Destination]]]:
        """Rule (1): widest first, so that what covers something is known before it."""
        groups: list[tuple[Filter, set[Destination]]] = []
        for asker, held in self.asked.items():
            for item in held:
                same = next((each for each in groups if each[0].equals(item)), None)
                if same is None:
                    same = item, set()
                    groups.append(same)
                same[1].update(self.spread(asker))
        found: list[tuple[Filter, set[Destination]]] = []
        for item, labels in sorted(
            groups, key=lambda each: -sum(each[0].covers(other) for other, _ in groups)
        ):
            hidden = [sent for wide, sent in found if wide.covers(item)]
            found.append((item, labels.difference(*hidden)))
        return found

    def check_who_asked(self) -> None:
        for client in CLIENTS:
            held = {str(node.item) for node in self.table.held(client)}
            assert held == {self.name(item) for item in self.asked.get(client, ())}
        for peer in PEERS:
            mine = {
                asker.key: self.name(held[0])
                for asker, held in self.asked.items()
                if isinstance(asker, NeighbourAsker) and asker.peer == peer
            }
            assert {key: self.name(self.table.item(peer, key)) for key in mine} == mine
            assert len(self.table.held_by(peer)) == len(mine)
            assert all(self.table.holds(peer, key) == (key in mine) for key in _all_keys())

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        for client in CLIENTS:
            self.table.cancel(client, parse("true"))
            for name in "ab":
                self.table.release(NamedAsker(client, name))
        for peer in PEERS:
            self.table.take_back(peer, _all_keys())
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
    """To p and q, but not back to who asked."""
    asking = [each.peer for each in node.subscribers if isinstance(each, NeighbourAsker)]
    others = len(node.subscribers) - len(asking)
    return [Destination(peer, None) for peer in "pq" if others or asking != [peer]]


def table() -> Forwarding[WantedFilter]:
    return Forwarding(FILTERS, everywhere)


def told(table: Forwarding[WantedFilter]) -> dict[str, tuple[list[str], int]]:
    """What is added for each neighbour, and how much is taken back."""
    return {
        peer: ([str(item) for _, item in sent.added], len(sent.dropped))
        for peer, sent in table.settle().items()
    }


def test_a_wider_one_replaces_the_narrower_one_of_the_same_client() -> None:
    it = table()
    it.ask(ANN, parse("x > 5"))
    it.settle()
    assert it.ask(ANN, parse("x > 3"))
    assert [str(node.item) for node in it.poset] == ["x > 3"]
    assert told(it) == {"p": (["x > 3"], 1), "q": (["x > 3"], 1)}
    assert not it.ask(ANN, parse("x > 4"))
    assert told(it) == {}


def test_the_narrower_one_of_another_client_stays_but_is_not_sent() -> None:
    it = table()
    it.ask(ANN, parse("x > 5"))
    it.settle()
    it.ask(BOB, parse("x > 3"))
    assert told(it) == {"p": (["x > 3"], 1), "q": (["x > 3"], 1)}
    assert len(it.poset) == 2


def test_what_was_hidden_goes_out_in_the_message_that_takes_the_other_back() -> None:
    it = table()
    it.ask(ANN, parse("x > 5"))
    it.ask(BOB, parse("x > 3"))
    it.settle()
    assert it.cancel(BOB, parse("x > 3")) == 1
    assert told(it) == {"p": (["x > 5"], 1), "q": (["x > 5"], 1)}


def test_cancelling_by_covering_takes_all_that_is_covered_and_carves_nothing_out() -> None:
    it = table()
    for text in ("x > 5", "x < 0", "y = 1"):
        it.ask(ANN, parse(text))
    assert it.cancel(ANN, parse("x > 7")) == 0  # covers none of them
    assert it.cancel(ANN, parse("x is not null")) == 2
    assert [str(node.item) for node in it.held(ANN)] == ["y = 1"]


def test_what_came_and_went_between_two_messages_is_not_sent() -> None:
    it = table()
    it.ask(ANN, parse("x > 5"))
    it.cancel(ANN, parse("x > 5"))
    assert told(it) == {}


def test_equal_filters_are_sent_once_and_stay_until_the_last_one_goes() -> None:
    it = table()
    it.ask(ANN, parse("x > 5 and x > 3"))
    it.ask(BOB, parse("x > 5"))
    assert len(it.poset) == 1
    assert {peer: len(added) for peer, (added, _) in told(it).items()} == {"p": 1, "q": 1}
    it.cancel(ANN, parse("x > 5"))
    assert told(it) == {}
    it.cancel(BOB, parse("x > 5"))
    assert told(it) == {"p": ([], 1), "q": ([], 1)}


def test_a_neighbour_that_uses_a_name_again_means_the_new_one() -> None:
    it = table()
    it.put("p", Key(1, None), parse("x > 5"))
    it.settle()
    it.put("p", Key(1, None), parse("x > 9"))
    assert told(it) == {"q": (["x > 9"], 0)}  # in place of the old one, by its name
    assert len(it.held_by("p")) == 1


def test_a_neighbour_that_was_forgotten_is_sent_everything_again() -> None:
    it = table()
    it.ask(ANN, parse("x > 5"))
    it.settle()
    it.forget("p")
    assert told(it) == {"p": (["x > 5"], 0)}  # here it is still a neighbour


@given(st.permutations(FILTERS_USED[:8]), st.permutations(FILTERS_USED[:8]))
def test_the_order_of_asking_does_not_matter(one: list[Filter], other: list[Filter]) -> None:
    sent: list[list[str]] = []
    for order in (one, other):
        it = table()
        for number, item in enumerate(order):
            it.put("p", Key(number, None), item)
        added, _ = told(it)["q"]
        sent.append(sorted(added))
    assert sent[0] == sent[1]


# -- what has a name ----------------------------------------------------------------------------

LIMIT, OTHER = NamedAsker(ANN, "limit"), NamedAsker(ANN, "other")


def lifted() -> Forwarding[WantedFilter]:
    """A table in which values are cells, so that a change of values is an update."""
    return Forwarding(FILTERS, everywhere, structure=structure)


def updates(table: Forwarding[WantedFilter]) -> dict[str, tuple[list[str], list[str], int]]:
    """What is added for each neighbour, what is altered, and how much is taken back."""
    return {
        peer: (
            [str(item) for _, item in sent.added],
            [f"{old} -> {new}" for _, old, new in sent.altered],
            len(sent.dropped),
        )
        for peer, sent in table.settle().items()
    }


def test_a_claim_replaces_nothing_and_is_not_replaced() -> None:
    it = lifted()
    it.ask(ANN, parse("x > 5"))
    it.claim(LIMIT, parse("x > 7"))
    it.claim(OTHER, parse("x > 0"))
    it.ask(ANN, parse("x > 3"))
    assert [str(node.item) for node in it.held(ANN)] == ["x > 3"]
    assert [str(node.item) for node in it.held(LIMIT)] == ["x > 7"]
    assert it.cancel(ANN, parse("x > 0")) == 1
    assert len(it.poset) == 2
    it.release(OTHER)
    it.release(LIMIT)
    it.release(LIMIT)  # which is not there any more
    assert len(it.poset) == 0
    assert updates(it) == {}


def test_a_node_of_its_own_is_kept() -> None:
    it = lifted()
    it.claim(LIMIT, parse("x > 5"))
    it.settle()
    (before,) = it.held(LIMIT)
    it.claim(LIMIT, parse("x > 7"))
    assert it.held(LIMIT) == [before]
    assert updates(it) == {peer: ([], ["x > 5 -> x > 7"], 0) for peer in "pq"}
    it.claim(LIMIT, parse("x > 7"))
    assert updates(it) == {}


def test_a_node_that_is_shared_stays_with_the_others() -> None:
    it = lifted()
    it.claim(LIMIT, parse("x > 5"))
    it.ask(BOB, parse("x > 5"))
    it.settle()
    it.claim(LIMIT, parse("x > 7"))
    assert len(it.poset) == 2
    assert updates(it) == {}  # hidden by what bob still asks for
    it.claim(LIMIT, parse("x > 1"))
    assert updates(it) == {peer: ([], ["x > 5 -> x > 1"], 0) for peer in "pq"}
    it.claim(LIMIT, parse("x > 5"))
    assert len(it.poset) == 1
    assert updates(it) == {peer: ([], ["x > 1 -> x > 5"], 0) for peer in "pq"}


def test_what_was_hidden_comes_to_light_in_the_same_message() -> None:
    it = lifted()
    it.claim(LIMIT, parse("x > 1"))
    it.claim(OTHER, parse("x > 5"))
    it.ask(BOB, parse("x > 3"))
    it.settle()
    it.claim(LIMIT, parse("x > 9"))  # below both now
    assert updates(it) == {peer: ([], ["x > 1 -> x > 3"], 0) for peer in "pq"}
    it.claim(LIMIT, parse("y = 1"))
    assert updates(it) == {peer: (["y = 1"], [], 0) for peer in "pq"}
    it.claim(LIMIT, parse("x > 2"))
    assert updates(it) == {peer: (["x > 2"], [], 1) for peer in "pq"}


def test_a_neighbour_that_changes_a_value_keeps_its_node() -> None:
    it = lifted()
    it.put("p", Key(1, None), parse("x > 5"))
    it.settle()
    (before,) = it.held_by("p")
    it.put("p", Key(1, None), parse("x > 9"))
    assert it.held_by("p") == [before]
    assert updates(it) == {"q": ([], ["x > 5 -> x > 9"], 0)}
    assert it.item("p", Key(1, None)) == parse("x > 9")


def test_what_a_neighbour_has_said_is_kept_as_it_said_it() -> None:
    """Cells count in what was sent, however the one it shares a node with is written."""
    it = lifted()
    it.ask(ANN, parse("x > 5 and x > 3"))
    it.put("p", Key(1, None), parse("x > 5"))
    assert len(it.poset) == 1
    assert it.item("p", Key(1, None)) == parse("x > 5")


class Listed:
    """Takes note of what it is told."""

    def __init__(self) -> None:
        self.items: dict[int, str] = {}
        self.told: list[str] = []

    def add(self, node: PosetNode[WantedFilter]) -> None:
        assert node.number not in self.items
        self._note("add", node)

    def change(self, node: PosetNode[WantedFilter]) -> None:
        assert node.number in self.items
        self._note("change", node)

    def remove(self, node: PosetNode[WantedFilter]) -> None:
        del self.items[node.number]
        self.told.append("remove")

    def _note(self, what: str, node: PosetNode[WantedFilter]) -> None:
        self.items[node.number] = str(node.item)
        self.told.append(what)


def test_a_listener_knows_all_nodes() -> None:
    it = lifted()
    listed = it.listener = Listed()
    it.claim(LIMIT, parse("x > 5"))
    it.ask(BOB, parse("x > 5"))
    assert listed.told == ["add"]
    it.claim(LIMIT, parse("x > 7"))
    assert listed.told == ["add", "add"]
    it.claim(LIMIT, parse("x > 8"))
    assert listed.told[2:] == ["change"]
    it.claim(LIMIT, parse("x > 5"))  # to bob's node
    assert listed.told[3:] == ["remove"]
    assert list(listed.items.values()) == ["x > 5"] == [str(node.item) for node in it.poset]
    it.cancel(BOB, parse("x > 5"))
    it.release(LIMIT)
    assert listed.items == {}

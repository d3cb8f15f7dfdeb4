"""The keys under which neighbours hold items, and the deltas that bring them up to date."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter
from tidegate.routing.cell_updates import differing_cells, structure, with_cells
from tidegate.routing.merging import MergedFilters
from tidegate.routing.messages import Key
from tidegate.routing.outbox import (
    Destination,
    DestinationChange,
    NeighbourDelta,
    OneFilterEach,
    Outbox,
)

P, Q, P_ON_T = Destination("p", None), Destination("q", None), Destination("p", "t")


@dataclass
class Sender:
    """An outbox, with a poset for the nodes that go into it."""

    outbox: Outbox[WantedFilter] = field(default_factory=lambda: Outbox(OneFilterEach, structure))
    poset: Poset[WantedFilter] = field(default_factory=lambda: Poset(FILTERS))

    def node(self, text: str) -> PosetNode[WantedFilter]:
        return self.poset.insert(parse(text))

    def send(
        self,
        *destinations: Destination,
        removed: list[PosetNode[WantedFilter]] | None = None,
        added: list[PosetNode[WantedFilter]] | None = None,
        updated: list[PosetNode[WantedFilter]] | None = None,
    ) -> dict[str, tuple[list[str], list[str], list[int]]]:
        """Change destinations; returns what each neighbour is sent, as `shown`."""
        change: DestinationChange[WantedFilter] = DestinationChange()
        change.removed, change.added, change.updated = removed or [], added or [], updated or []
        deltas = self.outbox.change(dict.fromkeys(destinations, change))
        return {peer: shown(delta) for peer, delta in deltas.items()}


def shown(sent: NeighbourDelta[WantedFilter]) -> tuple[list[str], list[str], list[int]]:
    """What a delta adds, what it updates, and which key numbers it removes."""
    return (
        [f"{key.number}: {item}" for key, item in sent.added],
        [f"{key.number}: {old} -> {new}" for key, old, new in sent.updated],
        [key.number for key in sent.removed],
    )


def test_each_destination_has_keys_of_its_own() -> None:
    sender = Sender()
    cheap = sender.node("price < 10")
    assert sender.send(P, Q, P_ON_T, added=[cheap]) == {
        "p": (["1: price < 10", "3: price < 10"], [], []),
        "q": (["2: price < 10"], [], []),
    }
    assert set(sender.outbox.sent("p")) == {Key(1, None), Key(3, "t")}
    assert set(sender.outbox.sent("q")) == {Key(2, None)}
    assert sender.outbox.sent("r") == {}


def test_other_values_are_sent_as_an_update_under_the_same_key() -> None:
    sender = Sender()
    cheap = sender.node("price < 10")
    sender.send(P, added=[cheap])
    cheap.item = parse("price < 30")
    assert sender.send(P, updated=[cheap]) == {"p": ([], ["1: price < 10 -> price < 30"], [])}
    assert [str(each) for each in sender.outbox.sent("p").values()] == ["price < 30"]


def test_another_structure_is_sent_as_a_whole_under_the_same_key() -> None:
    sender = Sender()
    cheap = sender.node("price < 10")
    sender.send(P, added=[cheap])
    cheap.item = parse("price < 10 and symbol = 'IBM'")
    assert sender.send(P, updated=[cheap]) == {"p": (["1: price < 10 and symbol = 'IBM'"], [], [])}


def test_an_equal_item_is_not_sent_again() -> None:
    sender = Sender()
    cheap = sender.node("price < 10")
    sender.send(P, added=[cheap])
    cheap.item = parse("price < 10")
    assert sender.send(P, updated=[cheap]) == {}
    assert sender.send(P) == {}


def test_an_item_takes_over_the_key_of_one_with_the_same_structure() -> None:
    """The root of a poset is another one, but at the neighbour only a value changes."""
    sender = Sender()
    ten, five = sender.node("price < 10"), sender.node("price < 5")
    sender.send(P, added=[ten])
    assert sender.send(P, removed=[ten], added=[five]) == {
        "p": ([], ["1: price < 10 -> price < 5"], [])
    }
    assert sender.send(P, removed=[five]) == {"p": ([], [], [1])}
    assert sender.outbox.sent("p") == {}


def test_an_item_of_another_structure_gets_a_new_key() -> None:
    sender = Sender()
    cheap, ibm = sender.node("price < 10"), sender.node("symbol = 'IBM'")
    sender.send(P, added=[cheap])
    assert sender.send(P, removed=[cheap], added=[ibm]) == {"p": (["2: symbol = 'IBM'"], [], [1])}


def test_keys_are_taken_over_in_the_order_of_removal() -> None:
    sender = Sender()
    old = [sender.node(f"price < {price}") for price in (1, 2, 3)]
    new = [sender.node(f"price > {price}") for price in (7, 8)]
    more = [sender.node(f"price < {price}") for price in (4, 5)]
    sender.send(P, added=old)
    assert sender.send(P, removed=old, added=[new[0], *more, new[1]]) == {
        "p": (
            ["4: price > 7", "5: price > 8"],
            ["1: price < 1 -> price < 4", "2: price < 2 -> price < 5"],
            [3],
        )
    }


def test_a_key_is_taken_over_at_one_destination_and_not_at_another() -> None:
    sender = Sender()
    ten, five = sender.node("price < 10"), sender.node("price < 5")
    sender.send(P, Q, added=[ten])
    sender.send(Q, added=[five])
    assert sender.send(P, removed=[ten], added=[five]) == {
        "p": ([], ["1: price < 10 -> price < 5"], [])
    }
    assert sender.send(Q, removed=[ten]) == {"q": ([], [], [2])}
    assert set(sender.outbox.sent("q")) == {Key(3, None)}


def test_a_forgotten_neighbour_gets_everything_under_new_keys() -> None:
    sender = Sender()
    ten = sender.node("price < 10")
    sender.send(P, Q, P_ON_T, added=[ten])
    sender.outbox.forget("p")
    assert sender.outbox.sent("p") == {}
    assert sender.send(P, added=[ten]) == {"p": (["4: price < 10"], [], [])}
    assert set(sender.outbox.sent("q")) == {Key(2, None)}


def test_evolving_filters_with_another_origin_have_another_structure() -> None:
    sender = Sender()
    early, late = (sender.poset.insert(EvolvingFilter(parse("x < t"), us)) for us in (0, 5))
    sender.send(P, added=[early])
    sent = sender.send(P, removed=[early], added=[late])
    assert sent == {"p": (["2: x < t since 5 us"], [], [1])}


# -- random changes -----------------------------------------------------------------------------

WANTED: list[WantedFilter] = [
    *(parse(f"x >= {low} and x <= {high}") for low in range(3) for high in range(low, 3)),
    *(parse(f"x >= {low} and y = {y}") for low in range(2) for y in range(2)),
    parse("x in (0, 2)"),
    parse("x < 2 or y = 1"),
    *(EvolvingFilter(parse(f"x < {low} + t"), 0) for low in range(2)),
]
EVENTS = [Event({"x": x, "y": y}, from_us(1)) for x in range(-1, 4) for y in range(2)]


class Post(RuleBasedStateMachine):
    """Items of two destinations change; the neighbour knows only the deltas it was sent."""

    @initialize(merging=st.booleans())
    def begin(self, merging: bool) -> None:
        self.merging = merging
        self.outbox: Outbox[WantedFilter] = Outbox(
            MergedFilters if merging else OneFilterEach, structure
        )
        self.numbers = 0
        self.at: dict[Destination, list[PosetNode[WantedFilter]]] = {P: [], P_ON_T: []}
        self.held: dict[Key, WantedFilter] = {}
        self.ever: dict[Key, Destination] = {}

    @rule(
        destination=st.sampled_from([P, P_ON_T]),
        added=st.lists(st.sampled_from(WANTED), max_size=3),
        removed=st.integers(0, 2),
        updated=st.lists(st.sampled_from(WANTED), max_size=2),
    )
    def change(
        self,
        destination: Destination,
        added: list[WantedFilter],
        removed: int,
        updated: list[WantedFilter],
    ) -> None:
        change: DestinationChange[WantedFilter] = DestinationChange()
        nodes = self.at[destination]
        change.removed, rest = nodes[:removed], nodes[removed:]
        for node, item in zip(rest, updated, strict=False):
            node.item = item
            change.updated.append(node)
        for item in added:
            self.numbers += 1
            change.added.append(PosetNode(item, self.numbers, [], evolves=False))
        self.at[destination] = [*rest, *change.added]
        deltas = self.outbox.change({destination: change})
        assert set(deltas) <= {"p"}
        if "p" in deltas:
            self.take(deltas["p"], destination)
        assert dict(self.outbox.sent("p")) == self.held
        self.check(destination)

    def take(self, sent: NeighbourDelta[WantedFilter], destination: Destination) -> None:
        keys = [key for key, *_ in (*sent.added, *sent.updated)] + sent.removed
        assert len(set(keys)) == len(keys)
        for key, item in sent.added:
            assert key not in self.held or structure(self.held[key]) != structure(item)
            assert self.ever.setdefault(key, destination) == destination
            self.held[key] = item
        for key, old, new in sent.updated:
            assert self.held[key] == old
            assert old != new
            assert structure(old) == structure(new)
            by_cells = with_cells(old, differing_cells(old, new))
            assert all(by_cells.matches(event) == new.matches(event) for event in EVENTS)
            self.held[key] = new
        for key in sent.removed:
            del self.held[key]

    def check(self, destination: Destination) -> None:
        held = [item for key, item in self.held.items() if key.tree == destination.tree]
        items = [node.item for node in self.at[destination]]
        if not self.merging:
            assert sorted(map(str, held)) == sorted(map(str, items))
        for event in EVENTS:
            assert any(each.matches(event) for each in held) == any(
                each.matches(event) for each in items
            )
        assert len(held) <= len(items)


Post.TestCase.settings = settings(stateful_step_count=15)
TestPost = Post.TestCase


@given(st.lists(st.sampled_from(WANTED), min_size=1, max_size=6))
def test_an_outbox_that_is_emptied_has_sent_nothing(items: list[WantedFilter]) -> None:
    for wire_form in (OneFilterEach[WantedFilter], MergedFilters):
        outbox: Outbox[WantedFilter] = Outbox(wire_form, structure)
        nodes = [PosetNode(item, number, [], evolves=False) for number, item in enumerate(items)]
        change: DestinationChange[WantedFilter] = DestinationChange()
        change.added = nodes
        outbox.change({P: change})
        change = DestinationChange()
        change.removed = nodes
        (sent,) = outbox.change({P: change}).values()
        assert not sent.added
        assert not sent.updated
        assert outbox.sent("p") == {}


def test_an_empty_delta_is_falsy() -> None:
    sent: NeighbourDelta[WantedFilter] = NeighbourDelta()
    assert not sent
    sent.removed.append(Key(1, None))
    assert sent


@pytest.mark.parametrize("merging", [False, True])
def test_a_change_without_nodes_sends_nothing(merging: bool) -> None:
    outbox: Outbox[WantedFilter] = Outbox(MergedFilters if merging else OneFilterEach, structure)
    assert outbox.change({P: DestinationChange()}) == {}

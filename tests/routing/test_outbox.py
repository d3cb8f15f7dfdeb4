"""What is sent to whom under which name, and what is sent of it when it changes."""

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
from tidegate.routing.cell_updates import altered, differing_cells, structure
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
    """An outbox, and the things that are in it."""

    outbox: Outbox[WantedFilter] = field(default_factory=lambda: Outbox(OneFilterEach, structure))
    poset: Poset[WantedFilter] = field(default_factory=lambda: Poset(FILTERS))

    def node(self, text: str) -> PosetNode[WantedFilter]:
        return self.poset.insert(parse(text))

    def send(
        self,
        *labels: Destination,
        gone: list[PosetNode[WantedFilter]] | None = None,
        new: list[PosetNode[WantedFilter]] | None = None,
        altered: list[PosetNode[WantedFilter]] | None = None,
    ) -> dict[str, tuple[list[str], list[str], list[int]]]:
        """What each neighbour is told: what is added, what is altered, and what is dropped."""
        change: DestinationChange[WantedFilter] = DestinationChange()
        change.gone, change.new, change.altered = gone or [], new or [], altered or []
        told = self.outbox.change(dict.fromkeys(labels, change))
        return {peer: shown(sent) for peer, sent in told.items()}


def shown(sent: NeighbourDelta[WantedFilter]) -> tuple[list[str], list[str], list[int]]:
    return (
        [f"{key.number}: {item}" for key, item in sent.added],
        [f"{key.number}: {old} -> {new}" for key, old, new in sent.altered],
        [key.number for key in sent.dropped],
    )


def test_each_place_has_names_of_its_own() -> None:
    sender = Sender()
    cheap = sender.node("price < 10")
    assert sender.send(P, Q, P_ON_T, new=[cheap]) == {
        "p": (["1: price < 10", "3: price < 10"], [], []),
        "q": (["2: price < 10"], [], []),
    }
    assert set(sender.outbox.sent("p")) == {Key(1, None), Key(3, "t")}
    assert set(sender.outbox.sent("q")) == {Key(2, None)}
    assert sender.outbox.sent("r") == {}


def test_other_values_go_as_an_update_under_the_same_name() -> None:
    sender = Sender()
    cheap = sender.node("price < 10")
    sender.send(P, new=[cheap])
    cheap.item = parse("price < 30")
    assert sender.send(P, altered=[cheap]) == {"p": ([], ["1: price < 10 -> price < 30"], [])}
    assert [str(each) for each in sender.outbox.sent("p").values()] == ["price < 30"]


def test_another_structure_goes_as_a_whole_under_the_same_name() -> None:
    sender = Sender()
    cheap = sender.node("price < 10")
    sender.send(P, new=[cheap])
    cheap.item = parse("price < 10 and symbol = 'IBM'")
    assert sender.send(P, altered=[cheap]) == {"p": (["1: price < 10 and symbol = 'IBM'"], [], [])}


def test_what_is_written_alike_is_not_sent_again() -> None:
    sender = Sender()
    cheap = sender.node("price < 10")
    sender.send(P, new=[cheap])
    cheap.item = parse("price < 10")
    assert sender.send(P, altered=[cheap]) == {}
    assert sender.send(P) == {}


def test_what_comes_in_the_place_of_something_alike_takes_its_name() -> None:
    """The root of a poset is another one, but at the neighbour only a value changes."""
    sender = Sender()
    ten, five = sender.node("price < 10"), sender.node("price < 5")
    sender.send(P, new=[ten])
    assert sender.send(P, gone=[ten], new=[five]) == {"p": ([], ["1: price < 10 -> price < 5"], [])}
    assert sender.send(P, gone=[five]) == {"p": ([], [], [1])}
    assert sender.outbox.sent("p") == {}


def test_what_comes_in_the_place_of_something_else_has_a_new_name() -> None:
    sender = Sender()
    cheap, ibm = sender.node("price < 10"), sender.node("symbol = 'IBM'")
    sender.send(P, new=[cheap])
    assert sender.send(P, gone=[cheap], new=[ibm]) == {"p": (["2: symbol = 'IBM'"], [], [1])}


def test_names_go_round_in_the_order_in_which_they_are_free() -> None:
    sender = Sender()
    gone = [sender.node(f"price < {price}") for price in (1, 2, 3)]
    new = [sender.node(f"price > {price}") for price in (7, 8)]
    more = [sender.node(f"price < {price}") for price in (4, 5)]
    sender.send(P, new=gone)
    assert sender.send(P, gone=gone, new=[new[0], *more, new[1]]) == {
        "p": (
            ["4: price > 7", "5: price > 8"],
            ["1: price < 1 -> price < 4", "2: price < 2 -> price < 5"],
            [3],
        )
    }


def test_a_name_is_taken_over_at_one_place_and_not_at_another() -> None:
    sender = Sender()
    ten, five = sender.node("price < 10"), sender.node("price < 5")
    sender.send(P, Q, new=[ten])
    sender.send(Q, new=[five])
    assert sender.send(P, gone=[ten], new=[five]) == {"p": ([], ["1: price < 10 -> price < 5"], [])}
    assert sender.send(Q, gone=[ten]) == {"q": ([], [], [2])}
    assert set(sender.outbox.sent("q")) == {Key(3, None)}


def test_who_was_forgotten_gets_everything_under_new_names() -> None:
    sender = Sender()
    ten = sender.node("price < 10")
    sender.send(P, Q, P_ON_T, new=[ten])
    sender.outbox.forget("p")
    assert sender.outbox.sent("p") == {}
    assert sender.send(P, new=[ten]) == {"p": (["4: price < 10"], [], [])}
    assert set(sender.outbox.sent("q")) == {Key(2, None)}


def test_what_moves_from_another_moment_on_has_another_structure() -> None:
    sender = Sender()
    early, late = (sender.poset.insert(EvolvingFilter(parse("x < t"), us)) for us in (0, 5))
    sender.send(P, new=[early])
    told = sender.send(P, gone=[early], new=[late])
    assert told == {"p": (["2: x < t since 5 us"], [], [1])}


# -- whatever comes and goes --------------------------------------------------------------------

WANTED: list[WantedFilter] = [
    *(parse(f"x >= {low} and x <= {high}") for low in range(3) for high in range(low, 3)),
    *(parse(f"x >= {low} and y = {y}") for low in range(2) for y in range(2)),
    parse("x in (0, 2)"),
    parse("x < 2 or y = 1"),
    *(EvolvingFilter(parse(f"x < {low} + t"), 0) for low in range(2)),
]
EVENTS = [Event({"x": x, "y": y}, from_us(1)) for x in range(-1, 4) for y in range(2)]


class Post(RuleBasedStateMachine):
    """Things go to two places and change; the neighbour knows only what it was told."""

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
        label=st.sampled_from([P, P_ON_T]),
        new=st.lists(st.sampled_from(WANTED), max_size=3),
        gone=st.integers(0, 2),
        others=st.lists(st.sampled_from(WANTED), max_size=2),
    )
    def change(
        self, label: Destination, new: list[WantedFilter], gone: int, others: list[WantedFilter]
    ) -> None:
        change: DestinationChange[WantedFilter] = DestinationChange()
        there = self.at[label]
        change.gone, rest = there[:gone], there[gone:]
        for node, item in zip(rest, others, strict=False):
            node.item = item
            change.altered.append(node)
        for item in new:
            self.numbers += 1
            change.new.append(PosetNode(item, self.numbers, [], moves=False))
        self.at[label] = [*rest, *change.new]
        told = self.outbox.change({label: change})
        assert set(told) <= {"p"}
        if "p" in told:
            self.take(told["p"], label)
        assert dict(self.outbox.sent("p")) == self.held
        self.check(label)

    def take(self, sent: NeighbourDelta[WantedFilter], label: Destination) -> None:
        named = [key for key, *_ in (*sent.added, *sent.altered)] + sent.dropped
        assert len(set(named)) == len(named)
        for key, item in sent.added:
            assert key not in self.held or structure(self.held[key]) != structure(item)
            assert self.ever.setdefault(key, label) == label
            self.held[key] = item
        for key, old, new in sent.altered:
            assert self.held[key] == old
            assert old != new
            assert structure(old) == structure(new)
            cells = altered(old, differing_cells(old, new))
            assert all(cells.matches(event) == new.matches(event) for event in EVENTS)
            self.held[key] = new
        for key in sent.dropped:
            del self.held[key]

    def check(self, label: Destination) -> None:
        held = [item for key, item in self.held.items() if key.tree == label.tree]
        there = [node.item for node in self.at[label]]
        if not self.merging:
            assert sorted(map(str, held)) == sorted(map(str, there))
        for event in EVENTS:
            assert any(each.matches(event) for each in held) == any(
                each.matches(event) for each in there
            )
        assert len(held) <= len(there)


Post.TestCase.settings = settings(stateful_step_count=15)
TestPost = Post.TestCase


@given(st.lists(st.sampled_from(WANTED), min_size=1, max_size=6))
def test_an_outbox_that_is_emptied_has_sent_nothing(items: list[WantedFilter]) -> None:
    for packing in (OneFilterEach[WantedFilter], MergedFilters):
        outbox: Outbox[WantedFilter] = Outbox(packing, structure)
        nodes = [PosetNode(item, number, [], moves=False) for number, item in enumerate(items)]
        change: DestinationChange[WantedFilter] = DestinationChange()
        change.new = nodes
        outbox.change({P: change})
        change = DestinationChange()
        change.gone = nodes
        (sent,) = outbox.change({P: change}).values()
        assert not sent.added
        assert not sent.altered
        assert outbox.sent("p") == {}


def test_nothing_to_say_is_falsy() -> None:
    sent: NeighbourDelta[WantedFilter] = NeighbourDelta()
    assert not sent
    sent.dropped.append(Key(1, None))
    assert sent


@pytest.mark.parametrize("merging", [False, True])
def test_what_came_and_went_is_not_sent(merging: bool) -> None:
    outbox: Outbox[WantedFilter] = Outbox(MergedFilters if merging else OneFilterEach, structure)
    assert outbox.change({P: DestinationChange()}) == {}

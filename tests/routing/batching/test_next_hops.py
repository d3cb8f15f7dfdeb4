"""Next hops are asked for once for all events that go on alike."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.language.events import Event
from tidegate.routing.askers import NeighbourAsker
from tidegate.routing.batching.admission import Way
from tidegate.routing.batching.columns import Coded
from tidegate.routing.batching.next_hops import PassedOnRows, add_next_hops
from tidegate.routing.messages import Key, Notify, Publication, Stamp
from tidegate.routing.strategies import Hops

SOME = Publication(Event({}), Stamp("b", 1, 1), "pub")
LENGTH = 6


@given(
    count=st.sampled_from([3, 70]),  # sets that fit in bits, and others
    pairs=st.lists(st.tuples(st.integers(0, LENGTH - 1), st.integers(0, 2))),
    routed=st.lists(st.booleans(), min_size=LENGTH, max_size=LENGTH),
    senders=st.lists(st.sampled_from(["a", None]), min_size=LENGTH, max_size=LENGTH),
)
def test_each_event_goes_where_it_would_go_by_itself(
    count: int, pairs: list[tuple[int, int]], routed: list[bool], senders: list[str | None]
) -> None:
    askers = [NeighbourAsker(f"p{number}", Key(0, None)) for number in range(count)]
    asked: list[tuple[str | None, tuple[str, ...]]] = []

    def hops(sender: str | None, asking: list[NeighbourAsker]) -> Hops:
        wanting = [each.peer for each in asking] + ([] if sender is None else [f"to {sender}"])
        return [(peer, Notify(SOME, sender)) for peer in wanting]

    def hops_of(event: int, asking: list[NeighbourAsker]) -> Hops:
        asked.append((senders[event], tuple(each.peer for each in asking)))
        return hops(senders[event], asking)

    events = np.array([event for event, _ in pairs], np.int32)
    numbers = np.array([number for _, number in pairs], np.int64) * (count // 3)
    into = PassedOnRows()
    ways = Coded.of(Way(each) for each in senders)
    add_next_hops(into, np.array(routed), ways, (events, numbers), askers, hops_of)

    expected: dict[str, list[tuple[int, str | None]]] = {}
    for event in range(LENGTH):
        if routed[event]:
            mine = sorted(set(numbers[events == event].tolist()))
            for peer, notify in hops(senders[event], [askers[each] for each in mine]):
                expected.setdefault(peer, []).append((event, notify.tree))
    found = {
        peer: list(zip(passed.events.tolist(), passed.trees.rows(), strict=True))
        for peer, passed in into.in_order().items()
    }
    assert found == expected
    assert len(asked) == len(set(asked))

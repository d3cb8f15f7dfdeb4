"""The next hops of a batch of events, where the strategy decides by the askers of filters.

Events that came the same way and whose filters the same neighbours have asked for go on alike, so
the strategy is asked once for each such combination, of which a batch has few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from tidegate.matching.arrays import I32, I64, Bools
from tidegate.routing.askers import NeighbourAsker
from tidegate.routing.batching.admission import Way
from tidegate.routing.batching.columns import Coded
from tidegate.routing.batching.routed import PassedOn
from tidegate.routing.messages import Peer
from tidegate.routing.strategies import Hops

HopsOf = Callable[[int, list[NeighbourAsker]], Hops]
"""The next hops of an event, given by its number, with the neighbours that have asked for it."""

_BITS_MAX = 62
"""Neighbours and trees whose set fits in a positive integer of 64 bits."""


class PassedOnRows:
    """The events that go on to each neighbour, collected in any order."""

    def __init__(self) -> None:
        self._rows: dict[Peer, list[tuple[I32, Way]]] = {}

    def add(self, events: I32, hops: Hops) -> None:
        """Add the next hops that some events have in common."""
        for peer, notify in hops:
            way = Way(None, notify.tree, notify.targets, notify.examination)
            self._rows.setdefault(peer, []).append((events, way))

    def in_order(self) -> Mapping[Peer, PassedOn]:
        """The events for each neighbour in their order."""
        return {peer: _passed_on(rows) for peer, rows in self._rows.items()}


def _passed_on(rows: list[tuple[I32, Way]]) -> PassedOn:
    events = np.concatenate([each for each, _ in rows])
    order = np.argsort(events, kind="stable")
    lengths = [len(each) for each, _ in rows]

    def column(coded: Coded) -> Coded:  # type: ignore[type-arg]
        return Coded(coded.values, np.repeat(coded.codes, lengths)[order])

    return PassedOn(
        events[order],
        column(Coded.of(way.tree for _, way in rows)),
        column(Coded.of(way.targets for _, way in rows)),
        column(Coded.of(way.examination for _, way in rows)),
    )


def add_next_hops(
    into: PassedOnRows,
    routed: Bools,
    ways: Coded[Way],
    asking: tuple[I32, I64],
    askers: list[NeighbourAsker],
    hops_of: HopsOf,
) -> None:
    """Add the next hops of the routed events.

    ``asking`` are the pairs of an event and a neighbour that has asked for it, as an index into
    ``askers``.
    """
    events = np.flatnonzero(routed).astype(np.int32)
    if not len(events):
        return
    sets, members = _asker_sets(len(routed), asking, len(askers))
    combined = sets[events].astype(np.int64) * len(ways.values) + ways.codes[events]
    _, first, group = np.unique(combined, return_index=True, return_inverse=True)
    order = np.argsort(group, kind="stable")
    bounds = np.cumsum(np.bincount(group, minlength=len(first)))[:-1]
    for example, chosen in zip(first.tolist(), np.split(events[order], bounds), strict=True):
        event = events.item(example)
        wanting = [askers[each] for each in members[sets.item(event)]]
        hops = hops_of(event, wanting)
        if hops:
            into.add(chosen, hops)


def _asker_sets(
    length: int, asking: tuple[I32, I64], count: int
) -> tuple[I32, list[tuple[int, ...]]]:
    """For each event the number of the set of its askers, and the members of each set."""
    events, askers = asking
    numbers = np.zeros(length, np.int32)
    if not len(events):
        return numbers, [()]
    if count <= _BITS_MAX:
        bits = np.zeros(length, np.int64)
        np.bitwise_or.at(bits, events, np.int64(1) << askers)
        distinct, inverse = np.unique(bits, return_inverse=True)
        members = [tuple(_bits_of(each)) for each in distinct.tolist()]
        return inverse.astype(np.int32), members
    known: dict[tuple[int, ...], int] = {(): 0}
    pairs = np.unique(np.stack([events.astype(np.int64), askers]), axis=1)
    begins = np.flatnonzero(np.diff(pairs[0], prepend=-1))
    for event, each in zip(pairs[0][begins].tolist(), np.split(pairs[1], begins[1:]), strict=True):
        numbers[event] = known.setdefault(tuple(each.tolist()), len(known))
    return numbers, list(known)


def _bits_of(bits: int) -> Iterable[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest

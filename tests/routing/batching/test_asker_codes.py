"""Each asker has a code of its own, which says what kind it is."""

from __future__ import annotations

import pytest

from tidegate.routing.askers import MonitorAsker, NamedAsker, NeighbourAsker
from tidegate.routing.batching.asker_codes import KIND_BITS, KIND_MASK, NEIGHBOUR, AskerCodes
from tidegate.routing.broker import Broker
from tidegate.routing.messages import Client, Key, Subscribe
from tidegate.routing.strategies import strategy

ANN, BOB = Client("ann"), Client("bob")


def test_askers_of_all_kinds_have_different_codes() -> None:
    broker = Broker("b", strategy("subscription"))
    for client in (ANN, BOB):
        broker.handle(Subscribe("x = 1", "s", version=1), client, 0)
    codes = AskerCodes(broker.named, broker.sessions)
    peers = [NeighbourAsker("p", Key(1, None)), NeighbourAsker("p", Key(2, "tree"))]
    askers = [ANN, BOB, NamedAsker(ANN, "s"), NamedAsker(BOB, "s"), MonitorAsker(0), *peers]
    assert len(set(codes.of(askers).tolist())) == len(askers)


def test_keys_of_one_neighbour_and_tree_have_one_code() -> None:
    broker = Broker("b", strategy("subscription"))
    codes = AskerCodes(broker.named, broker.sessions)
    one, other = (codes.code(NeighbourAsker("p", Key(number, "tree"))) for number in (1, 2))
    assert one == other
    assert one & KIND_MASK == NEIGHBOUR
    assert codes.hop_askers[one >> KIND_BITS].peer == "p"


def test_what_is_no_asker_has_none() -> None:
    broker = Broker("b", strategy("subscription"))
    with pytest.raises(TypeError, match="'ann' is no asker"):
        AskerCodes(broker.named, broker.sessions).code("ann")

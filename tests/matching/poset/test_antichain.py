"""Nodes by identity, without covering."""

from __future__ import annotations

import pytest

from tidegate.language.filters import Filter, parse
from tidegate.matching.poset.antichain import Antichain


@pytest.fixture
def antichain() -> Antichain[Filter]:
    return Antichain(identity=str)


def test_items_of_one_identity_share_a_node(antichain: Antichain[Filter]) -> None:
    narrow, wide = antichain.insert(parse("x < 3")), antichain.insert(parse("x < 5"))
    assert antichain.insert(parse("x < 3")) is narrow
    assert antichain.find(parse("x < 5")) is wide
    assert antichain.find(parse("x < 7")) is None
    assert list(antichain) == [narrow, wide]
    assert len(antichain) == 2


def test_no_node_is_above_another(antichain: Antichain[Filter]) -> None:
    nodes = [antichain.insert(parse(f"x < {bound}")) for bound in (1, 3, 2)]
    assert all(node.is_root and not node.children for node in nodes)


def test_a_node_gets_another_item(antichain: Antichain[Filter]) -> None:
    node = antichain.insert(parse("x < 3"))
    assert antichain.rebind(node, parse("x < 4")) is node
    assert antichain.find(parse("x < 3")) is None
    assert antichain.find(parse("x < 4")) is node
    assert antichain.rebind(node, parse("x < 4")) is node
    assert node in antichain


def test_a_node_gets_the_item_of_another(antichain: Antichain[Filter]) -> None:
    one, other = antichain.insert(parse("x < 3")), antichain.insert(parse("x < 4"))
    assert antichain.rebind(one, parse("x < 4")) is other
    assert one not in antichain
    assert list(antichain) == [other]


def test_a_removed_node_is_gone(antichain: Antichain[Filter]) -> None:
    node = antichain.insert(parse("x < 3"))
    antichain.remove(node)
    assert node not in antichain
    with pytest.raises(KeyError):
        antichain.remove(node)
    again = antichain.insert(parse("x < 3"))
    assert again is not node
    assert again.number > node.number

"""Spaces that a store has kept, and those with which its broker is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import SpaceError
from tidegate.language.spaces import Space
from tidegate.network.store.kept_spaces import joined_spaces, save_spaces
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction

BEGUN = ("begun", "", b"", b"1")
LINK = ("link", "b", b"", b"")


def kept(tmp_path: Path, *spaces: Space) -> list[tuple[str, str, bytes, bytes]]:
    """The state of a store that has kept spaces."""
    store = Store(tmp_path, "a")
    transaction = Transaction()
    save_spaces(spaces, transaction)
    store.commit(transaction).result()
    state = list(store.state())
    store.close()
    return state


def test_spaces_are_joined(tmp_path: Path) -> None:
    state = kept(
        tmp_path, Space("trades", {"price": float, "a\u00e9": str}), Space("old", {"x": int})
    )
    joined = joined_spaces([BEGUN, LINK, *state], [Space("trades", {"id": int}), Space("new", {})])
    assert {each.name: dict(each.attributes) for each in joined} == {
        "trades": {"price": float, "a\u00e9": str, "id": int},
        "old": {"x": int},
        "new": {},
    }


def test_an_attribute_keeps_its_type(tmp_path: Path) -> None:
    state = kept(tmp_path, Space("trades", {"price": float}))
    with pytest.raises(SpaceError, match="'price'"):
        joined_spaces(state, [Space("trades", {"price": str})])


def test_a_broker_that_was_used_without_spaces_gets_none() -> None:
    space = Space("trades", {"price": float})
    assert joined_spaces([BEGUN], [space]) == (space,)
    assert joined_spaces([BEGUN, LINK], []) == ()
    with pytest.raises(SpaceError, match=r"without spaces.*use a new folder"):
        joined_spaces([BEGUN, LINK], [space])


def test_two_spaces_of_one_name() -> None:
    with pytest.raises(SpaceError, match="two spaces have the name 'trades'"):
        joined_spaces([], [Space("trades", {"x": int}), Space("trades", {"y": int})])

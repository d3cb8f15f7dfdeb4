"""Handles are small, and are used again."""

from __future__ import annotations

import pytest

from tidegate.routing.askers import NamedAsker
from tidegate.routing.clients.named_handles import NamedHandles
from tidegate.routing.messages import Client


def asker(number: int) -> NamedAsker:
    return NamedAsker(Client("ann"), f"s{number}")


def test_columns_grow_and_keep_what_is_in_them() -> None:
    handles = NamedHandles()
    for number in range(100):
        handles.put(asker(number), number, number * 2, evolves=number % 2 == 1)
    for number in range(100):
        handle = handles.of(asker(number))
        assert handles.asker(handle) == asker(number)
        assert handles.clients[handle] == number
        assert handles.versions[handle] == number * 2
        assert handles.evolving[handle] == (number % 2 == 1)


def test_an_update_keeps_the_handle_and_a_free_one_is_used_again() -> None:
    handles = NamedHandles()
    handles.put(asker(1), 0, 1, evolves=False)
    handle = handles.of(asker(1))
    handles.put(asker(1), 0, 2, evolves=True)
    assert (handles.of(asker(1)), handles.versions.item(handle)) == (handle, 2)
    handles.release(asker(1))
    with pytest.raises(KeyError):
        handles.of(asker(1))
    handles.put(asker(2), 3, 9, evolves=False)
    assert handles.of(asker(2)) == handle
    assert handles.asker(handle) == asker(2)
    assert not handles.evolving.item(handle)
    assert len(handles) == 1

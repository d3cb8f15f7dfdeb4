"""The spaces that a store keeps, so that a restart knows no fewer than what has been accepted.

    kind     owner    key      value
    space    name     empty    the space in JSON, as `language/space_json.py` says

A durable subscription that was accepted must come back after a restart, and so must the space that
it names, with all attributes that were ever declared. Therefore the spaces of the store and those
with which the broker is started are joined.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from tidegate.errors import SpaceError
from tidegate.language.space_json import space_from_json, space_to_json
from tidegate.language.spaces import Space
from tidegate.network.store.transaction import Transaction

SPACE = "space"

StoredState = Iterable[tuple[str, str, bytes, bytes]]
"""Rows of the store: kind, owner, key and value."""
_EMPTY_KINDS = ("begun", SPACE)
"""Kinds of rows that say nothing about neighbours and clients."""


def joined_spaces(state: StoredState, given: Iterable[Space]) -> tuple[Space, ...]:
    """The spaces of a store, with those that are given, which may be new or have new attributes.

    Raises SpaceError if an attribute has another type now, or if the broker had neighbours or
    clients, but no spaces: their filters are not bound to any.
    """
    joined: dict[str, Space] = {}
    was_used = False
    for kind, _, _, value in state:
        was_used |= kind not in _EMPTY_KINDS
        if kind == SPACE:
            space = space_from_json(json.loads(value))
            joined[space.name] = space
    had_spaces = bool(joined)
    names: set[str] = set()
    for space in given:
        if space.name in names:
            raise SpaceError(f"two spaces have the name {space.name!r}; give them two names")
        names.add(space.name)
        if was_used and not had_spaces:
            raise SpaceError(
                f"the store has neighbours or clients of a broker without spaces, so it cannot "
                f"begin with space {space.name!r}; use a new folder"
            )
        if space.name in joined:
            joined[space.name].add(space.attributes)
        else:
            joined[space.name] = space
    return tuple(joined.values())


def save_spaces(spaces: Iterable[Space], transaction: Transaction) -> None:
    """Keep spaces."""
    for space in spaces:
        value = json.dumps(space_to_json(space)).encode()
        transaction.put_state(SPACE, space.name, b"", value)

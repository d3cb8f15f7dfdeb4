"""Digests: whether two ends of a link hold the same filters and advertisements.

A filter is digested by its structure and its cells, with their types, so that filters of one digest
match the same events and the same updates of cells fit them. `in_fixed_order` is an order that both
ends can compute from what they hold; after a restart keys are given out anew in this order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TypeVar

from tidegate.language.algebra.advertisements import Advertisement
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, underlying_filter
from tidegate.routing.messages import Key

T = TypeVar("T", bound=WantedFilter | Advertisement)


def text_of(item: WantedFilter | Advertisement) -> str:
    """A text that is equal for items which nothing could tell apart.

    >>> from tidegate.language.filters import parse
    >>> text_of(parse("a = 1 and b = 2")) == text_of(parse("b = 2 and a = 1"))
    True
    >>> text_of(parse("a = 1")) == text_of(parse("a = 1.0"))
    False
    """
    if isinstance(item, Advertisement):
        return str(item)
    shape, row = underlying_filter(item).shape_and_row
    text = f"{shape} {row!r}"
    if isinstance(item, EvolvingFilter):
        return f"{text} {item.origin_us} {item.evolve!r}"
    return text


def in_fixed_order(held: Mapping[Key, T]) -> dict[Key, T]:
    """Items with the keys that they get anew: numbered from 1, in an order by tree and text."""
    ordered = sorted(held.items(), key=lambda each: (each[0].tree or "", text_of(each[1])))
    return {Key(number, key.tree): item for number, (key, item) in enumerate(ordered, 1)}


def digest_of(*tables: Mapping[Key, WantedFilter] | Mapping[Key, Advertisement]) -> bytes:
    """The digest of what one end of a link holds from the other, whatever the keys are."""
    digest = hashlib.sha256()
    for table in tables:
        lines = sorted(f"{key.tree or ''}\n{text_of(item)}" for key, item in table.items())
        digest.update(f"{len(lines)}\n".encode())
        for line in lines:
            data = line.encode()
            digest.update(f"{len(data)}\n".encode() + data)
    return digest.digest()

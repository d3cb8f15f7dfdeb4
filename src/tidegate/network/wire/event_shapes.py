"""Shapes of events: the attribute names that many events share, sent once for each connection.

Rules. (1) The names of a shape ascend, so that events with the same attributes have one shape
whatever order they were written in. (2) On a connection the sender numbers its shapes from 0, in
the order of their definitions; number 0 once more begins a new table, which bounds the memory of
the receiver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count, pairwise
from weakref import WeakValueDictionary

import msgspec
from msgspec.msgpack import Decoder, Encoder

from tidegate.errors import EventError, ProtocolError
from tidegate.language.events import ATTRIBUTES_MAX
from tidegate.network.wire.values import MALFORMED, Number, SpaceName

SHAPES_MAX = 1_024
"""The shapes in the table of one connection and direction."""
SHAPE_TABLE_BYTES_MAX = 1 << 20
"""The size of their definitions together."""
NAMES_BYTES_MAX = 1 << 18
"""The length of the names of one shape together; so a table takes at least three shapes."""

_numbers = count()


class EventShape:
    """The attribute names of an event, ascending, and the name of its space.

    Equal shapes are one object in a process, and their ``number`` is never used again.
    """

    __slots__ = ("__weakref__", "names", "number", "space")

    names: tuple[str, ...]
    space: str | None
    number: int

    @classmethod
    def of(cls, names: Iterable[str], space: str | None = None) -> EventShape:
        """The shape of these names, which must ascend and be distinct.

        >>> EventShape.of(["price", "symbol"]) is EventShape.of(["price", "symbol"])
        True
        """
        key = (tuple(names), space)
        shape = _shapes.get(key)
        if shape is None:
            _check(key[0])
            shape = cls()
            shape.names, shape.space = key
            shape.number = next(_numbers)
            shape = _shapes.setdefault(key, shape)  # another thread may have been faster
        return shape

    def __repr__(self) -> str:
        space = "" if self.space is None else f", space={self.space!r}"
        return f"EventShape({', '.join(self.names)}{space})"


_shapes: WeakValueDictionary[tuple[tuple[str, ...], str | None], EventShape] = WeakValueDictionary()


def _check(names: tuple[str, ...]) -> None:
    if len(names) > ATTRIBUTES_MAX:
        raise EventError(
            f"an event has {len(names)} attributes; at most {ATTRIBUTES_MAX} are taken"
        )
    if sum(len(name.encode()) for name in names) > NAMES_BYTES_MAX:
        raise EventError(
            f"the attribute names of an event have at most {NAMES_BYTES_MAX} bytes together"
        )
    if names and not names[0]:
        raise EventError("the name of an attribute is a string, not empty")
    if any(one >= other for one, other in pairwise(names)):
        raise EventError("the attribute names of a shape must ascend, and each be there once")


class EventShapeDefinition(
    msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True
):
    """The body of a frame that defines a shape."""

    number: Number
    space: SpaceName | None
    names: tuple[str, ...]


_encoder = Encoder()
_decoder = Decoder(EventShapeDefinition)


class ReceivedEventShapes:
    """The shapes that the peer has defined on one connection."""

    def __init__(self) -> None:
        self._shapes: list[EventShape] = []
        self._bytes = 0

    def define(self, body: memoryview) -> None:
        """Take the body of a definition; raises ProtocolError if it is none or the table full."""
        try:
            definition = _decoder.decode(body)
            shape = EventShape.of(definition.names, definition.space)
        except MALFORMED as error:
            raise ProtocolError(f"the definition of an event shape is malformed: {error}") from None
        except EventError as error:
            raise ProtocolError(f"event shape: {error}") from None
        number = definition.number
        if number == 0:
            self._shapes, self._bytes = [], 0
        if number != len(self._shapes):
            raise ProtocolError(
                f"event shape {number} is defined where {len(self._shapes)} is the next"
            )
        self._bytes += len(body)
        if number >= SHAPES_MAX or self._bytes > SHAPE_TABLE_BYTES_MAX:
            raise ProtocolError(
                f"at most {SHAPES_MAX} event shapes of {SHAPE_TABLE_BYTES_MAX} bytes together are "
                "taken; number 0 begins a new table"
            )
        self._shapes.append(shape)

    def __getitem__(self, number: int) -> EventShape:
        if number >= len(self._shapes):
            raise ProtocolError(f"event shape {number} was not defined")
        return self._shapes[number]


class ListedEventShapes:
    """The shapes of one block that lists them itself."""

    def __init__(self, shapes: Sequence[EventShape]) -> None:
        self._shapes = shapes

    def __getitem__(self, number: int) -> EventShape:
        if number >= len(self._shapes):
            raise ProtocolError(f"event shape {number} is not listed")
        return self._shapes[number]


class SentEventShapes:
    """The shapes that were defined to the peer on one connection."""

    def __init__(self) -> None:
        self._numbers: dict[EventShape, int] = {}
        self._bytes = 0

    def numbers(self, shapes: Sequence[EventShape]) -> tuple[list[int], list[bytes]] | None:
        """The numbers of distinct shapes, and the definitions to be sent before.

        All of them are in one table, so that one frame can refer to all; None if one table cannot
        take them, which is never so for a single shape.
        """
        new = [each for each in shapes if each not in self._numbers]
        if new:
            added = _definitions(new, len(self._numbers))
            if not self._has_room_for(added):
                new, added = list(shapes), _definitions(shapes, 0)
                self._numbers, self._bytes = {}, 0
                if not self._has_room_for(added):
                    return None
            for shape in new:
                self._numbers[shape] = len(self._numbers)
            self._bytes += sum(map(len, added))
            return [self._numbers[each] for each in shapes], added
        return [self._numbers[each] for each in shapes], []

    def _has_room_for(self, definitions: list[bytes]) -> bool:
        size = self._bytes + sum(map(len, definitions))
        count = len(self._numbers) + len(definitions)
        return count <= SHAPES_MAX and size <= SHAPE_TABLE_BYTES_MAX


def _definitions(shapes: Sequence[EventShape], first: int) -> list[bytes]:
    return [
        _encoder.encode(EventShapeDefinition(number, shape.space, shape.names))
        for number, shape in enumerate(shapes, first)
    ]

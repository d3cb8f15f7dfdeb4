"""Values in MessagePack, and the bodies of events: arrays of values in the order of their shape.

A boolean, integer, float or string is the MessagePack type of that name. A timestamp is an
extension of type 1: 8 bytes, the microseconds since 1970 as a big-endian i64. A parameter in the
row of a subscription is an extension of type 2 with its name in UTF-8. Nil stands for "no value"
where a message allows it, never in an event.

Rule. What is decoded here is a `Value`: integers fit in 64 bits, strings are valid Unicode,
timestamps lie in the years 1 to 9999. NaN counts as absent, as everywhere, and is kept in rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from struct import Struct
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.msgpack import Decoder, Encoder, Ext

from tidegate.errors import ProtocolError
from tidegate.language.expressions import ParameterRef
from tidegate.language.shapes import Row
from tidegate.language.values import INT_MAX, INT_MIN, Value, from_us, to_us

TIME_EXT = 1
PARAMETER_EXT = 2

Number = Annotated[int, Meta(ge=0, le=INT_MAX)]
"""A count, number or size in a message."""
Int64 = Annotated[int, Meta(ge=INT_MIN, le=INT_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
"""The identity of a client, the name of a broker, space, parameter or subscription."""
SpaceName = Annotated[str, Meta(max_length=200)]
"""The name of a space, empty for the default one."""
WireValue = bool | Int64 | float | str | Ext
"""A value as msgspec decodes it: everything but timestamps and parameters is ready."""

_I64 = Struct(">q")
_encoder = Encoder()
_plain_row: Decoder[list[Value]] = Decoder(list[bool | Int64 | float | str])
_row = Decoder(list[WireValue])

MALFORMED = (msgspec.DecodeError, UnicodeDecodeError)
"""What msgspec raises for malformed bytes (a ValidationError is a DecodeError)."""


def wire_value(value: Value) -> bool | int | float | str | Ext:
    """A value as it is given to msgspec; its own form of a datetime is another one."""
    return Ext(TIME_EXT, _I64.pack(to_us(value))) if isinstance(value, datetime) else value


def value_of(raw: WireValue) -> Value:
    """The value that msgspec has decoded; raises ProtocolError for an extension that is none."""
    if not isinstance(raw, Ext):
        return raw
    data = bytes(raw.data)
    if raw.code != TIME_EXT or len(data) != _I64.size:
        raise ProtocolError(
            f"an extension of type {raw.code} with {len(data)} bytes is not a value; a timestamp "
            "has type 1 and 8 bytes"
        )
    time = from_us(_I64.unpack(data)[0])
    if time is None:
        raise ProtocolError("a timestamp must lie in the years 1 to 9999 in UTC")
    return time


def optional_value_of(raw: WireValue | None) -> Value | None:
    """As ``value_of``; None for nil."""
    return None if raw is None else value_of(raw)


def values_of(raw: Mapping[str, WireValue]) -> dict[str, Value]:
    """The values of parameters, by name."""
    return {name: value_of(each) for name, each in raw.items()}


def optional_values_of(raw: Mapping[str, WireValue | None]) -> dict[str, Value | None]:
    """As ``values_of``; nil unsets a parameter."""
    return {name: optional_value_of(each) for name, each in raw.items()}


# -- rows of subscriptions ------------------------------------------------------------------------


def wire_cells(row: Row) -> list[bool | int | float | str | Ext]:
    """The row of a subscription as it is given to msgspec."""
    return [
        Ext(PARAMETER_EXT, cell.name.encode())
        if isinstance(cell, ParameterRef)
        else wire_value(cell)
        for cell in row
    ]


def row_of(cells: Iterable[WireValue]) -> Row:
    """The row that msgspec has decoded; raises ProtocolError for a cell that is no value."""
    return tuple(map(_cell, cells))


def _cell(raw: WireValue) -> Value | ParameterRef:
    if not isinstance(raw, Ext) or raw.code != PARAMETER_EXT:
        return value_of(raw)
    try:
        name = bytes(raw.data).decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"the name of a parameter is not UTF-8: {error}") from None
    if not name.isidentifier():
        raise ProtocolError(f"{name!r} cannot be the name of a parameter")
    return ParameterRef(name)


# -- bodies of events -----------------------------------------------------------------------------


def encode_body(values: Iterable[Value]) -> bytes:
    """The body of an event: its values in the order of its shape.

    >>> encode_body(["IBM", 9.5]).hex()
    '92a349424dcb4023000000000000'
    """
    return _encoder.encode([wire_value(each) for each in values])


def decode_bodies(bodies: Sequence[memoryview | bytes]) -> list[list[Value]]:
    """The values of several events; raises ProtocolError unless each body is exactly one array.

    >>> decode_bodies([bytes.fromhex("92a349424dcb4023000000000000")])
    [['IBM', 9.5]]
    """
    # Timestamps are rare and looking for them takes as long as decoding, so the decoder that does
    # not allow them goes first.
    try:
        return [_plain_row.decode(body) for body in bodies]
    except MALFORMED:
        pass
    try:
        return [list(map(value_of, _row.decode(body))) for body in bodies]
    except MALFORMED as error:
        raise ProtocolError(f"the body of an event is malformed: {error}") from None

from __future__ import annotations

import math
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import Ext

from support.strategies import EDGE_NUMBERS, EDGE_STRINGS, EDGE_TIMES, values
from tidegate.errors import ProtocolError
from tidegate.language.expressions import ParameterRef
from tidegate.language.values import Value
from tidegate.network.wire.values import (
    decode_bodies,
    encode_body,
    optional_values_of,
    row_of,
    values_of,
    wire_cells,
    wire_value,
)


def typed(row: list[Value]) -> list[tuple[type, Value]]:
    return [(type(each), each) for each in row]


@given(st.lists(st.lists(values, max_size=5), max_size=4))
def test_bodies_round_trip(rows: list[list[Value]]) -> None:
    decoded = decode_bodies([encode_body(row) for row in rows])
    assert list(map(typed, decoded)) == list(map(typed, rows))


@pytest.mark.parametrize("value", [*EDGE_NUMBERS, *EDGE_STRINGS, *EDGE_TIMES, True, False])
def test_every_kind_of_value_keeps_its_type(value: Value) -> None:
    assert typed(decode_bodies([encode_body([value])])[0]) == typed([value])


def test_nan_is_kept_and_counts_as_absent() -> None:
    [[value]] = decode_bodies([encode_body([math.nan])])
    assert value != value


def test_one_timestamp_is_an_extension_of_eight_bytes() -> None:
    body = encode_body([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)])
    assert body.hex() == "91d70100000000000f4240"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x91",
        b"\x91\xc0",  # nil
        b"\x91\x90",  # an array
        b"\x91\x80",  # a map
        b"\x91\xc4\x01a",  # bytes
        b"\x91\xcf" + (2**63).to_bytes(8, "big"),
        b"\x91\xa2\xff\xfe",  # not UTF-8
        b"\x91\xa3\xed\xa0\x80",  # a lone surrogate
        b"\x91\x01\x02",  # one value too many
        b"\x92\x01",
        b"\x01",
        b"\xdd\xff\xff\xff\xff",
        b"\x91\xdb\xff\xff\xff\xff",
        b"\x91\xd6\xff\x00\x00\x00\x00",  # MessagePack's own timestamp
        b"\x91\xd6\x01\x00\x00\x00\x00",  # four bytes only
        b"\x91\xd7\x01\x7f\xff\xff\xff\xff\xff\xff\xff",  # beyond the year 9999
        b"\x91\xd7\x02\x00\x00\x00\x00\x00\x00\x00\x00",  # a parameter
        b"\x91\xc1",
    ],
)
def test_malformed_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_bodies([encode_body([1]), body])


@given(st.binary(max_size=30))
def test_any_bytes_are_decoded_or_refused(body: bytes) -> None:
    try:
        [row] = decode_bodies([body])
    except ProtocolError:
        return
    # what was taken is made of values, so it can be written again
    assert str(decode_bodies([encode_body(row)])) == str([row])


def test_rows_hold_parameters() -> None:
    row = (1, ParameterRef("limit"), "x", EDGE_TIMES[0])
    decoded = msgspec.msgpack.decode(
        msgspec.msgpack.encode(wire_cells(row)), type=list[bool | int | float | str | Ext]
    )
    assert row_of(decoded) == row


@pytest.mark.parametrize("name", [b"", b"9", b"a b", b"\xff", b"a.b"])
def test_a_parameter_has_a_name(name: bytes) -> None:
    with pytest.raises(ProtocolError, match="parameter"):
        row_of([Ext(2, name)])


def test_parameters_by_name() -> None:
    time = EDGE_TIMES[1]
    raw = {"a": 1, "b": wire_value(time)}
    assert values_of(raw) == {"a": 1, "b": time}
    assert optional_values_of({**raw, "c": None}) == {"a": 1, "b": time, "c": None}
    with pytest.raises(ProtocolError, match="extension of type 9"):
        values_of({"a": Ext(9, b"")})

"""The kernel that reads bodies against msgspec: it reads the same, or leaves it to msgspec."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.wire_messages import events
from tidegate.errors import ProtocolError
from tidegate.language.events import Event
from tidegate.language.values import Value, to_us
from tidegate.network.wire.body_columns import BodyColumns
from tidegate.network.wire.kernels.bodies import BOOL, FLOAT, INT, STRING, gather
from tidegate.network.wire.values import decode_bodies, encode_body


def kernel_rows(bodies: list[bytes], width: int) -> list[list[object]] | None:
    """What the kernel has read, value by value; times as microseconds."""
    starts = np.concatenate([[0], np.cumsum([len(each) for each in bodies], dtype=np.int64)])
    data = b"".join(bodies)
    read = BodyColumns.read(data, starts.astype(np.int64), np.arange(len(bodies)), width)
    if read is None:
        return None
    return [[value_at(data, read, row, column) for column in range(width)]
            for row in range(len(bodies))]  # fmt: skip


def value_at(data: bytes, read: BodyColumns, row: int, column: int) -> object:
    number = read.numbers[row, column]
    match read.kinds[row, column]:
        case kind if kind == BOOL:
            return bool(number)
        case kind if kind == INT:
            return int(number)
        case kind if kind == FLOAT:
            return number.view(np.float64).item()
        case kind if kind == STRING:
            begin = int(read.begins[row, column])
            return data[begin : begin + int(number)].decode()
    return ("time", int(number))


def plain(row: list[Value]) -> list[object]:
    return [("time", to_us(each)) if isinstance(each, datetime) else each for each in row]


def same(one: list[list[object]], other: list[list[object]]) -> bool:
    return repr(one) == repr(other)  # NaN is unequal to itself, and 1 equals True


@given(st.lists(events(), min_size=1, max_size=4))
def test_what_we_write_is_read(batch: list[Event]) -> None:
    for event in batch:
        body = encode_body(event.attributes.values())
        read = kernel_rows([body], len(event.attributes))
        assert read is not None
        assert same(read, [plain(row) for row in decode_bodies([body])])


@given(events(), st.data())
def test_what_is_mutated_is_read_alike_or_left(event: Event, data: st.DataObject) -> None:
    """One byte changed, or some cut off or added: nothing is read that msgspec refuses."""
    body = bytearray(encode_body(event.attributes.values()))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(1, len(body)))] + data.draw(st.binary(max_size=2))
    compare(bytes(body), len(event.attributes))


@given(st.binary(min_size=1, max_size=40), st.integers(0, 5))
@example(b"\x91\xd7\x01\x80\x00\x00\x00\x00\x00\x00\x00", 1)
@example(b"\x91\xa1\xed\xa0\x80", 1)
@example(b"\x91\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 1)
@example(b"\x91\xdb\xff\xff\xff\xffabc", 1)
def test_garbage_is_read_alike_or_left(body: bytes, width: int) -> None:
    compare(body, width)


def compare(body: bytes, width: int) -> None:
    read = kernel_rows([body], width)
    if read is None:
        return
    assert same(read, [plain(row) for row in decode_bodies([body])])


@pytest.mark.parametrize(
    "text",
    ["", "a", "ü", "€", "\U0001f600", "\ud7ff\ue000", "\U0010ffff", "x" * 31, "x" * 32, "y" * 300,
     "z" * 70_000],
)  # fmt: skip
def test_strings(text: str) -> None:
    assert kernel_rows([encode_body([text])], 1) == [[text]]


@pytest.mark.parametrize(
    "bytes_",
    [b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf0\x80\x80\x80",
     b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98"],
)  # fmt: skip
def test_what_is_not_utf8_is_left(bytes_: bytes) -> None:
    body = bytes([0x91, 0xA0 + len(bytes_)]) + bytes_
    assert kernel_rows([body], 1) is None
    with pytest.raises(ProtocolError):
        decode_bodies([body])


INTEGERS = [0, 127, 128, 255, 256, 65_535, 65_536, 2**32, 2**63 - 1, -1, -32, -33, -128, -129,
            -(2**15), -(2**15) - 1, -(2**31), -(2**31) - 1, -(2**63)]  # fmt: skip


def test_integers() -> None:
    assert kernel_rows([encode_body([each]) for each in INTEGERS], 1) == [[e] for e in INTEGERS]


def test_a_body_must_have_the_width() -> None:
    assert kernel_rows([encode_body([1, 2])], 3) is None
    assert kernel_rows([encode_body([1, 2]), encode_body([1])], 2) is None
    assert kernel_rows([encode_body([1] * 40)], 40) == [[1] * 40]


def test_starts_beyond_the_data_are_left() -> None:
    starts = np.array([0, 90], np.int64)
    assert BodyColumns.read(b"\x91\x01", starts, np.arange(1), 1) is None


def test_gather_copies_pieces() -> None:
    out = np.zeros(4, np.uint8)
    begins, sizes, offsets = (np.array(each, np.int64) for each in ([3, 0], [1, 2], [0, 1]))
    gather(np.frombuffer(b"abcd", np.uint8), begins, sizes, offsets, out)
    assert bytes(out) == b"dab\0"

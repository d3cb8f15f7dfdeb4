from __future__ import annotations

import numpy as np
import pytest
from msgspec.msgpack import Decoder

from tidegate.errors import ProtocolError
from tidegate.network.wire.columns import ColumnReader, encode_columns, encode_count, encode_head

LAYOUT = [("small", "<u4"), ("large", "<u8"), ("signed", "<i8"), ("bytes", "<u1")]
COLUMNS = [np.array(each, np.int64) for each in ([1, 2], [3, 2**63 - 1], [-5, 6], [7, 255])]
DATA = b"".join([encode_head(["a"]), encode_count(2), *encode_columns(LAYOUT, COLUMNS), b"rest"])


def test_columns_round_trip() -> None:
    reader = ColumnReader(memoryview(DATA), "a test")
    assert reader.head(Decoder(list[str])) == ["a"]
    columns = reader.columns(LAYOUT, reader.count(2))
    assert [each.tolist() for each in columns] == [each.tolist() for each in COLUMNS]
    assert bytes(reader.rest()) == b"rest"


def test_what_is_cut_off_is_refused() -> None:
    for end in range(len(DATA) - len(b"rest")):
        reader = ColumnReader(memoryview(DATA[:end]), "a test")
        with pytest.raises(ProtocolError, match="a test"):
            reader.columns(LAYOUT, (reader.head(Decoder(list[str])), reader.count(2))[1])


def test_large_numbers_and_counts_are_refused() -> None:
    reader = ColumnReader(memoryview(b"\xff" * 8), "a test")
    with pytest.raises(ProtocolError, match=r"in n is larger than 2\*\*63"):
        reader.columns([("n", "<u8")], 1)
    with pytest.raises(ProtocolError, match="3 rows, where at most 2 are taken"):
        ColumnReader(memoryview(encode_count(3)), "a test").count(2)


def test_a_head_of_another_type_is_refused() -> None:
    with pytest.raises(ProtocolError, match="the head is malformed"):
        ColumnReader(memoryview(DATA), "a test").head(Decoder(list[int]))

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.summary_tables import texts
from tidegate.errors import SummaryError
from tidegate.matching.arrays import I64
from tidegate.matching.summary.wire.columns import (
    NUMBER_MAX,
    Allowance,
    Reader,
    WireLimits,
    Writer,
    varint_sizes,
)

small = st.integers(0, 300)
numbers = st.one_of(
    st.lists(small), st.lists(st.integers(0, NUMBER_MAX)), st.lists(small | st.integers(2**40))
).map(lambda drawn: np.array([min(each, NUMBER_MAX) for each in drawn], np.int64))


def written(write: Callable[[Writer], None]) -> bytes:
    writer = Writer()
    write(writer)
    return bytes(writer.data)


def reader(data: bytes, **limits: int) -> Reader:
    return Reader(data, 0, Allowance(WireLimits(**limits), len(data)))


@given(numbers)
@example(np.array([NUMBER_MAX, 0]))
@example(np.array([NUMBER_MAX] * 3))
def test_numbers(drawn: I64) -> None:
    data = written(lambda writer: writer.numbers(drawn))
    source = reader(data)
    assert source.numbers().tolist() == drawn.tolist()
    source.end()


@given(st.lists(st.integers(-(2**53), 2**53)).map(sorted))
def test_ascending_numbers(drawn: list[int]) -> None:
    data = written(lambda writer: writer.ascending(np.array(drawn, np.int64)))
    source = reader(data)
    assert source.ascending().tolist() == drawn
    source.end()


@given(st.integers(0, NUMBER_MAX))
def test_one_number(number: int) -> None:
    data = written(lambda writer: writer.number(number))
    assert len(data) == varint_sizes(np.array([number]))[0]
    assert reader(data).number() == number


@given(st.lists(texts | st.text(st.characters(exclude_categories=["Cs"]))))
@example(["é", "ê", "èa", "è"])  # which share the first byte of a character
@example(["a" * 1000 + "b", "a" * 1000 + "c"])
def test_texts(drawn: list[str]) -> None:
    data = written(lambda writer: writer.texts(tuple(drawn)))
    source = reader(data)
    assert source.texts() == tuple(drawn)
    source.end()


@given(st.lists(st.floats(allow_nan=False)))
def test_floats(drawn: list[float]) -> None:
    data = written(lambda writer: writer.floats(np.array(drawn)))
    assert reader(data).floats().tolist() == drawn


@pytest.mark.parametrize(
    ("drawn", "data"),
    [
        ([], "00"),
        ([300], "01 ac02"),
        ([7, 7, 7, 7], "04 00 07"),
        ([1, 2, 3, 4, 5], "05 03 01 8846"),
        ([0, 1, 0, 1, 1, 1, 1, 1, 1], "09 01 00 fa 01"),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2**40], "0b 40 00000000000000000000 808080808020"),
    ],
)
def test_the_bytes_of_numbers(drawn: list[int], data: str) -> None:
    assert (
        written(lambda writer: writer.numbers(np.array(drawn, np.int64))).hex()
        == bytes.fromhex(data).hex()
    )


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("", "does not end"),
        ("80", "does not end"),
        ("8000", "longer than it needs"),
        ("ffffffffffffffffff01", "does not end"),
        ("02 41 00", "no column has the form 65"),
        ("02 40 80", "does not end"),
        ("02 40 8000 01", "longer than it needs"),
        ("02 40 01 01", "shorter form"),
        ("02 02 00 04", "shorter form"),  # one bit is enough
        ("02 01 00 03", "least number"),  # base 1 and no bits
        ("02 01 00 06", "bits after the last"),
        ("02 01 00", "too early"),
        ("02 01 ffffffffffffffff7f 02", "63 bits"),
    ],
)
def test_malformed_numbers_are_refused(data: str, complaint: str) -> None:
    with pytest.raises(SummaryError, match=complaint):
        reader(bytes.fromhex(data)).numbers()


def test_ascending_numbers_do_not_overflow() -> None:
    data = bytes.fromhex("03 02 00 ffffffffffffffff7f")
    with pytest.raises(SummaryError, match="63 bits"):
        reader(data).ascending()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("01 01 01 61", "shares more"),
        ("02 0002 0001 61", "does not end|shares more|too early|shorter"),
        ("01 00 01 ff", "UTF-8"),
        ("01 00 02 c3", "too early"),
        ("01 00 03 eda080", "UTF-8"),  # a surrogate
    ],
)
def test_malformed_texts_are_refused(data: str, complaint: str) -> None:
    with pytest.raises(SummaryError, match=complaint):
        reader(bytes.fromhex(data)).texts()


def test_nan_is_refused() -> None:
    with pytest.raises(SummaryError, match="NaN"):
        reader(b"\x01" + np.array([np.nan]).tobytes()).floats()


def test_what_follows_is_refused() -> None:
    with pytest.raises(SummaryError, match="follow"):
        reader(b"\0").end()


@pytest.mark.parametrize("indexes", [[-1], [3], [1, 1], [0, 1, 2, 3]])
def test_indexes_are_of_things_that_exist(indexes: list[int]) -> None:
    source = reader(b"")
    assert source.indexes(np.array([0, 2]), 3).tolist() == [0, 2]
    with pytest.raises(SummaryError, match="index"):
        source.indexes(np.array(indexes), 3)


@pytest.mark.parametrize("coding", ["numbers", "ascending", "floats", "texts"])
def test_a_count_is_only_a_claim(coding: str) -> None:
    for claim in (2**40, NUMBER_MAX):
        data = written(lambda writer, claim=claim: writer.number(claim)) + b"\0" * 12  # type: ignore[misc]
        with pytest.raises(SummaryError, match=r"memory|too early"):
            getattr(reader(data), coding)()


def test_shared_starts_count() -> None:
    long = "a" * 1_000
    data = written(lambda writer: writer.texts((long,) * 2_000))
    assert len(data) < 6_000
    with pytest.raises(SummaryError, match="memory"):
        reader(data, memory_free=2**20, memory_per_byte=0).texts()
    assert reader(data).texts() == (long,) * 2_000


def test_a_message_is_limited() -> None:
    with pytest.raises(SummaryError, match="3 bytes exceeds the limit of 2"):
        reader(b"abc", message_bytes_max=2)
    allowance = Allowance(WireLimits(memory_free=100, memory_per_byte=1), 50, held_bytes=10)
    allowance.take(20)
    with pytest.raises(SummaryError, match="needs 8 bytes more memory"):
        allowance.take(1)


def test_sizes_of_varints() -> None:
    bounds = [(1 << 7 * i) - 1 for i in range(1, 10)]
    assert varint_sizes(np.array(bounds)).tolist() == list(range(1, 10))
    assert varint_sizes(np.array(bounds[:-1]) + 1).tolist() == list(range(2, 10))

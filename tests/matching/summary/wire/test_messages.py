from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from zlib import crc32

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.summary_tables import paper_tables, range_table, summary_tables, varied_tables
from tidegate.errors import SummaryError
from tidegate.experiments.summary_sizes import DrawnSubscriptions
from tidegate.matching.summary.merging import merge, restrict, without
from tidegate.matching.summary.tables import (
    NO_ENTRIES,
    ChannelKind,
    SummaryTables,
    check_tables,
)
from tidegate.matching.summary.wire.columns import WireLimits, Writer
from tidegate.matching.summary.wire.layout import MAGIC, VERSION, Form, SummaryEdit
from tidegate.matching.summary.wire.messages import (
    apply_difference,
    decode,
    digest,
    encode,
    encode_difference,
)

LEFT, RIGHT = ["a", "c"], ["b", "d"]
BOTH = merge([varied_tables(), paper_tables()])


def sealed(body: bytes) -> bytes:
    """A message with the checksum that it needs."""
    return body + crc32(body).to_bytes(4, "little")


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def drawn(brokers: int, each: int, *, less: int = 0) -> SummaryTables:
    """Random subscriptions, without the last ``less`` of them."""
    chosen = np.arange(brokers * each) < brokers * each - less
    return DrawnSubscriptions("cuts", 0.0, brokers, each, seed=1).tables(chosen)


def one_price(price: float) -> SummaryTables:
    """One subscription of an owner that no other has, with an equality."""
    at = range_table("attribute-0", ChannelKind.NUMBER, (price, price, [0]))
    none, mask = np.zeros(1, np.int32), np.ones((1, 1), np.uint64)
    return SummaryTables(("z",), ("attribute-0",), none, np.zeros(1, np.int64), mask, (at,), ())


# ---- what is written is read -------------------------------------------------------------------


@given(summary_tables())
@example(NO_ENTRIES)
@example(paper_tables())
@example(varied_tables())
@example(drawn(3, 100))
def test_a_summary_survives_the_wire(tables: SummaryTables) -> None:
    data = encode(tables)
    assert decode(data) == tables
    assert encode(decode(data)) == data


@given(summary_tables(), summary_tables())
@example(NO_ENTRIES, varied_tables())
@example(varied_tables(), NO_ENTRIES)
@example(paper_tables(), varied_tables())
@example(paper_tables(), BOTH)
@example(BOTH, varied_tables())
def test_a_difference_makes_the_new_of_the_old(old: SummaryTables, new: SummaryTables) -> None:
    assert apply_difference(old, encode_difference(old, new)) == new


@given(summary_tables(LEFT), summary_tables(RIGHT), summary_tables(RIGHT))
def test_a_difference_between_summaries_that_share_much(
    constant: SummaryTables, before: SummaryTables, after: SummaryTables
) -> None:
    old, new = merge([constant, before]), merge([constant, after])
    for one, other in ((old, new), (old, constant), (constant, new), (old, old)):
        assert apply_difference(one, encode_difference(one, other)) == other


def test_minus_zero_is_zero() -> None:
    one, other = one_price(-0.0), one_price(0.0)
    assert encode(one) == encode(other)
    assert np.signbit(decode(encode(one)).ranges[0].lows).tolist() == [False]


# ---- a difference is as long as what changed ---------------------------------------------------


def test_no_difference_has_no_length() -> None:
    large = drawn(3, 500)
    assert len(encode_difference(large, large)) == len(encode_difference(NO_ENTRIES, NO_ENTRIES))


def test_a_new_subscription_costs_the_same_in_a_large_summary() -> None:
    # Its bounds are among the same 64, so that it cuts no more rows.
    one = [len(encode_difference(drawn(2, n, less=1), drawn(2, n))) for n in (100, 3_000)]
    assert max(one) < 200
    assert abs(one[1] - one[0]) < 20
    ten = len(encode_difference(drawn(2, 3_000, less=10), drawn(2, 3_000)))
    assert ten < 10 * 80


def test_a_cut_and_a_join_cost_no_members() -> None:
    wide = merge([drawn(1, 1_000), paper_tables()])
    cut = merge([wide, one_price(500.005)])
    joined = without(cut, ["z"])
    assert joined == wide
    assert len(encode_difference(wide, cut)) < 150
    assert len(encode_difference(cut, wide)) < 100
    assert apply_difference(cut, encode_difference(cut, wide)) == wide


def test_owners_that_leave_cost_a_number() -> None:
    large = drawn(3, 500)
    assert len(encode_difference(large, restrict(large, large.owners[1:]))) < len(encode(large)) / 3


def test_a_summary_does_not_grow_with_the_width_of_its_ranges() -> None:
    large = drawn(1, 2_000)
    members = sum(len(table.members) for table in large.ranges)
    assert members > 10 * 2_000
    assert len(encode(large)) < 60 * 2_000


# ---- what is malformed is refused whole --------------------------------------------------------

SAMPLES = [NO_ENTRIES, paper_tables(), varied_tables(), drawn(2, 3)]


@pytest.mark.parametrize("tables", SAMPLES)
def test_a_flipped_bit_is_refused(tables: SummaryTables) -> None:
    data = encode(tables)
    for bit in range(8 * len(data)):
        with pytest.raises(SummaryError):
            decode(flipped(data, bit))


@pytest.mark.parametrize("tables", SAMPLES)
def test_a_message_that_is_cut_short_or_too_long_is_refused(tables: SummaryTables) -> None:
    data = encode(tables)
    for end in range(len(data) - 4):
        with pytest.raises(SummaryError):
            decode(data[:end])
        with pytest.raises(SummaryError):
            decode(sealed(data[:end]))
    for more in (b"\0", b"\xff", data):
        with pytest.raises(SummaryError):
            decode(data + more)
        with pytest.raises(SummaryError, match="follow"):
            decode(sealed(data[:-4] + more))


def refused_or_valid(data: bytes) -> bool:
    """Whether a message is accepted, and then its tables are valid and have no other bytes."""
    try:
        tables = decode(data)
    except SummaryError:
        return False
    check_tables(tables)
    assert encode(tables) == data
    return True


@pytest.mark.slow
@pytest.mark.parametrize("tables", SAMPLES[:3])
def test_every_flipped_bit_with_a_right_checksum(tables: SummaryTables) -> None:
    body = encode(tables)[:-4]
    accepted = [refused_or_valid(sealed(flipped(body, bit))) for bit in range(8 * len(body))]
    assert not all(accepted)


@pytest.mark.slow
@pytest.mark.parametrize("tables", SAMPLES[:3])
def test_every_byte_replaced_with_a_right_checksum(tables: SummaryTables) -> None:
    body = encode(tables)[:-4]
    for start in range(len(MAGIC) + 2, len(body)):
        for other in (b"", b"\0", b"\x40", b"\0\0"):
            refused_or_valid(sealed(body[:start] + other + body[start + 1 :]))


@pytest.mark.slow
def test_every_byte_replaced_by_a_large_number_takes_little_memory() -> None:
    body = encode(paper_tables())[:-4]
    tracemalloc.start()
    try:
        for start in range(len(MAGIC) + 2, len(body)):
            for other in (b"\xff\xff\x3f\0\0", b"\xff\xff\xff\xff\x7f"):
                refused_or_valid(sealed(body[:start] + other + body[start + 1 :]))
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(noise: bytes) -> None:
    start = MAGIC + bytes((VERSION, Form.FULL))
    for data in (noise, sealed(noise), start + noise, sealed(start + noise)):
        refused_or_valid(data)


Changes = st.lists(
    st.tuples(
        st.integers(0, 2**16),
        st.integers(0, 3),
        st.binary(max_size=3) | st.sampled_from([b"\xff" * 8 + b"\x7f", b"\x80\x80\x80\x04"]),
    ),
    min_size=1,
    max_size=4,
)


def mutated(body: bytes, changes: Iterable[tuple[int, int, bytes]]) -> bytes:
    for place, length, other in changes:
        start = len(MAGIC) + 2 + place % (len(body) - len(MAGIC) - 1)
        body = body[:start] + other + body[start + length :]
    return sealed(body)


@given(summary_tables(), Changes)
def test_mutated_messages(tables: SummaryTables, changes: list[tuple[int, int, bytes]]) -> None:
    refused_or_valid(mutated(encode(tables)[:-4], changes))


@given(summary_tables(LEFT), summary_tables(RIGHT), Changes)
@example(varied_tables(), paper_tables(), [])
def test_mutated_differences(
    held: SummaryTables, other: SummaryTables, changes: list[tuple[int, int, bytes]]
) -> None:
    new = merge([held, other])
    data = mutated(encode_difference(held, new)[:-4], changes)
    try:
        applied = apply_difference(held, data)
    except SummaryError:
        return
    assert applied == new


@pytest.mark.slow
def test_every_flipped_bit_of_a_difference() -> None:
    old, new = one_price(5), merge([one_price(5), paper_tables()])
    data = encode_difference(old, new)
    for bit in range(8 * len(data)):
        with pytest.raises(SummaryError):
            apply_difference(old, flipped(data, bit))
        try:
            assert apply_difference(old, sealed(flipped(data, bit)[:-4])) == new
        except SummaryError:
            continue


# ---- each refusal says why ---------------------------------------------------------------------


def test_what_is_no_message() -> None:
    data = encode(paper_tables())
    with pytest.raises(SummaryError, match="not those of a summary"):
        decode(b"")
    with pytest.raises(SummaryError, match="not those of a summary"):
        decode(b"PK\x03\x04" + data)
    with pytest.raises(SummaryError, match="version 2 are unknown, not 1"):
        decode(sealed(data[:4] + b"\x02" + data[5:-4]))
    with pytest.raises(SummaryError, match="checksum"):
        decode(data[:-1] + bytes((data[-1] ^ 1,)))
    with pytest.raises(SummaryError, match="the form 0, not 1, DIFFERENCE"):
        apply_difference(paper_tables(), data)
    with pytest.raises(SummaryError, match="the form 1, not 0, FULL"):
        decode(encode_difference(paper_tables(), paper_tables()))


def test_a_difference_is_for_one_old_summary_and_one_new_one() -> None:
    data = encode_difference(paper_tables(), BOTH)
    with pytest.raises(SummaryError, match="another old summary"):
        apply_difference(varied_tables(), data)
    wrong = data[:14] + digest(varied_tables()) + data[22:-4]
    with pytest.raises(SummaryError, match="does not make the summary"):
        apply_difference(paper_tables(), sealed(wrong))


def test_a_full_message_that_is_written_otherwise_is_refused() -> None:
    # Names that are not sorted make the same tables.
    body = encode(varied_tables())[:-4]
    first, second = b"ann's", "größe".encode()
    assert first + second in body
    with pytest.raises(SummaryError):
        decode(sealed(body.replace(first + second, second + first)))


def test_tables_that_break_an_invariant_are_not_sent() -> None:
    broken = SummaryTables(
        ("b", "a"), (), NO_ENTRIES.entry_owners, NO_ENTRIES.entry_numbers,
        NO_ENTRIES.entry_masks, (), (),
    )  # fmt: skip
    with pytest.raises(SummaryError, match="ascending"):
        encode(broken)
    with pytest.raises(SummaryError, match="ascending"):
        encode_difference(NO_ENTRIES, broken)


# ---- a small message takes little memory -------------------------------------------------------


def peak_bytes(work: Callable[[], object]) -> int:
    """The memory that a call takes at most, while it is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(SummaryError, match=r"memory|limit|malformed"):
            work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


NONE = np.zeros(0, np.int64)


def claimed(**changes: object) -> bytes:
    """A full message with these names and entries and no tables."""
    fields: dict[str, object] = dict.fromkeys(SummaryEdit.__dataclass_fields__, NONE)
    fields |= {"owners_added": (), "attributes_added": ()} | changes
    writer = Writer()
    writer.data += MAGIC + bytes((VERSION, Form.FULL))
    writer.record(SummaryEdit(**fields))  # type: ignore[arg-type]
    return sealed(bytes(writer.data))


def alike(count: int) -> bytes:
    """A full message of entries that take no bytes."""
    return claimed(
        owners_added=("a",),
        adding_owners=np.zeros(1, np.int64),
        adding_counts=np.array([count]),
        first_numbers=np.zeros(1, np.int64),
        number_gaps=np.ones(count - 1, np.int64),
        mask_codes=np.array([0] + [1] * (count - 1)),
        mask_sizes=np.zeros(1, np.int64),
    )


def test_entries_alike_take_a_bit() -> None:
    assert len(decode(alike(10_000)).entry_owners) == 10_000
    assert len(alike(10_000)) < 1_400


def test_wide_runs_count() -> None:
    count, rows = 1_000, 1_000
    points = [(float(row), float(row), range(count)) for row in range(rows)]
    table = range_table("x", ChannelKind.NUMBER, *points)
    zeros, mask = np.zeros(count, np.int32), np.ones((count, 1), np.uint64)
    wide = SummaryTables(("a",), ("x",), zeros, np.arange(count), mask, (table,), ())
    data = encode(wide)
    assert len(data) < 250
    assert peak_bytes(lambda: decode(data)) < 20 * 2**20
    assert decode(data, WireLimits(memory_per_byte=2**20)) == wide


def test_a_message_has_a_largest_size() -> None:
    data = encode(varied_tables())
    with pytest.raises(SummaryError, match="exceeds the limit of 10"):
        decode(data, WireLimits(message_bytes_max=10))
    with pytest.raises(SummaryError, match="more memory than it may take"):
        decode(data, WireLimits(memory_bytes_max=1000))
    assert decode(data, WireLimits(message_bytes_max=len(data))) == varied_tables()


@pytest.mark.parametrize("place", range(6, 30))
def test_a_huge_count_takes_no_memory(place: int) -> None:
    body = encode(paper_tables())[:-4]
    for huge in (b"\xff" * 8 + b"\x7f", b"\xff\xff\xff\xff\x0f", b"\xff\xff\x7f\0\0"):
        data = sealed(body[:place] + huge + body[place + 1 :])
        assert peak_bytes(lambda data=data: decode(data)) < 20 * 2**20  # type: ignore[misc]

"""A part is the same packed and unpacked, and both are one memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.matching.columnar.kernels.layout import flat, lay_out
from tidegate.matching.columnar.kernels.part import (
    B_CHANNEL,
    BEGIN,
    BOUND_WORDS,
    END,
    PackedPart,
    Part,
    PartFields,
    entry_words,
    margin_at,
    pack,
    unpack,
)
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import DEAD, VERIFY

NO_PROGRAM = np.zeros(1, np.int32)


def entries(count: int) -> Entries:
    """Entries that require a value of channel 0 and bound channel 1."""
    numbers = np.arange(count, dtype=np.float64)
    return Entries(
        subscription=np.arange(100, 100 + count, dtype=np.int32),
        flags=(np.arange(count) % 4).astype(np.int32),
        first=offsets(np.full(count, 2)),
        channel=np.tile(np.array([0, 1], np.int32), count),
        low=np.stack([numbers % 3, numbers], 1).ravel(),
        high=np.stack([numbers % 3, numbers + 5], 1).ravel(),
        motion_first=np.zeros(count + 1, np.int32),
        motion=np.zeros(0),
    )


def as_bytes(part: Part) -> list[tuple[str, bytes]]:
    """The fields of a part, NaN included."""
    fields: tuple[Any, ...] = part
    return [(each.dtype.name, each.tobytes()) for each in fields]


def test_what_is_packed_comes_back() -> None:
    for part in (lay_out(entries(500), NO_PROGRAM), flat(entries(3), NO_PROGRAM)):
        assert as_bytes(unpack(pack(part))) == as_bytes(part)


def test_nothing_comes_back() -> None:
    part = flat(entries(0), NO_PROGRAM)
    assert part.entries == 0
    assert as_bytes(unpack(pack(part))) == as_bytes(part)


def test_each_type_has_its_array() -> None:
    packed = pack(lay_out(entries(500), NO_PROGRAM))
    wanted = ["int64", "int32", "int64", "float32", "float64", "uint64", "uint8"]
    assert [each.dtype.name for each in packed] == wanted
    assert sum(len(each) for each in packed[1:]) == int((packed.at[1::2] - packed.at[::2]).sum())
    assert len(packed) == len(PackedPart._fields)


def test_a_write_to_the_one_is_seen_in_the_other() -> None:
    packed = pack(flat(entries(3), NO_PROGRAM))
    part = unpack(packed)
    part.bound[0] = 99.5
    assert 99.5 in packed.f64
    packed.f64[:] = 7
    assert set(part.bound.tolist()) == {7.0}


def test_what_is_known_of_entries() -> None:
    part = flat(entries(5), NO_PROGRAM)
    assert part.entries == 5
    assert part.subscription.tolist() == [100, 101, 102, 103, 104]
    assert part.flags.tolist() == [0, DEAD, VERIFY, DEAD | VERIFY, 0]
    assert part.first.tolist() == [0, 2, 4, 6, 8, 10]
    assert part.motion_first.tolist() == [0] * 6


def test_the_last_entry_only_says_where_the_others_end() -> None:
    one = np.ones(1, np.int32)
    ends = np.array([0, 3], np.int32)
    assert entry_words(one * 7, one.astype(np.int32), ends, ends).tolist() == [
        7, 1, 0, 0, 0, 0, 3, 3,
    ]  # fmt: skip


def test_what_is_known_of_constraints() -> None:
    part = flat(entries(2), NO_PROGRAM)
    assert part.low.tolist() == [0.0, 0.0, 1.0, 1.0]
    assert part.high.tolist() == [0.0, 5.0, 1.0, 6.0]
    assert part.channel.tolist() == [0, 1, 0, 1]


def test_the_margin_of_a_constraint_is_beside_its_channel() -> None:
    part = flat(entries(2), NO_PROGRAM)
    part.bound.view(np.float32)[margin_at(BOUND_WORDS)] = 2.5
    assert part.channel.tolist() == [0, 1, 0, 1]
    third_words = part.bound.view(np.int64).reshape(-1, BOUND_WORDS)[:, B_CHANNEL]
    assert [int(each) >> 32 for each in third_words] == [0, 0x40200000, 0, 0]


def test_each_field_has_two_positions() -> None:
    assert sorted([*BEGIN, *END]) == list(range(2 * len(PartFields._fields)))
    packed = pack(flat(entries(3), NO_PROGRAM))
    begin, end = packed.at[BEGIN.probe], packed.at[END.probe]
    assert packed.f32[begin:end].tolist() == unpack(packed).probe.tolist()

"""A part that grows, its flags, and plans by place."""

from __future__ import annotations

import numpy as np

from tidegate.matching.columnar.index_part import SPARE_CONSTRAINTS, IndexPart
from tidegate.matching.rows.kernels.entry_lists import Entries, no_entries, offsets
from tidegate.matching.rows.kernels.flags import GONE, ORDINAL_SHIFT, SHARED

PROGRAM = np.zeros(1, np.int32)


def entries(count: int, constraints: int = 1, flags: int = 0, motion: int = 0) -> Entries:
    total = count * constraints
    return Entries(
        subscription=np.arange(count, dtype=np.int32),
        flags=np.full(count, flags, np.int32),
        first=offsets(np.full(count, constraints)),
        channel=np.tile(np.arange(constraints, dtype=np.int32), count),
        low=np.zeros(total),
        high=np.ones(total),
        motion_first=offsets(np.full(count, motion)),
        motion=np.zeros(count * motion),
    )


def test_a_part_grows_until_it_is_full() -> None:
    part = IndexPart.growing(no_entries(), PROGRAM, 8)
    for length in range(1, 9):
        assert part.has_room_for(entries(1), PROGRAM)
        part.append(entries(1))
        assert len(part) == part.part.entries == part.cluster_entries_max == length
    assert not part.has_room_for(entries(1), PROGRAM)


def test_there_is_room_for_some_constraints_only() -> None:
    part = IndexPart.growing(no_entries(), PROGRAM, 8)
    assert part.has_room_for(entries(1, SPARE_CONSTRAINTS * 8), PROGRAM)
    assert not part.has_room_for(entries(1, SPARE_CONSTRAINTS * 8 + 1), PROGRAM)


def test_motions_fit_the_program_of_their_part_only() -> None:
    part = IndexPart.growing(no_entries(), PROGRAM, 8)
    other = PROGRAM.copy()
    assert part.has_room_for(entries(1, motion=2), PROGRAM)
    assert not part.has_room_for(entries(1, motion=2), other)
    assert part.has_room_for(entries(1), other)
    assert not part.has_motion
    part.append(entries(1, motion=2))
    assert part.has_motion


def test_a_loaded_or_laid_out_part_does_not_grow() -> None:
    assert not IndexPart.empty().has_room_for(entries(1), PROGRAM)


def test_columns_grow_with_the_channels() -> None:
    part = IndexPart.growing(no_entries(), PROGRAM, 8)
    part.append(entries(1, constraints=3))
    part.append(entries(1))
    assert part.columns == 3


def test_flags() -> None:
    part = IndexPart.growing(entries(3, flags=SHARED), PROGRAM, 8)
    part.flag_gone([1])
    assert [part.flag(entry) for entry in range(3)] == [SHARED, SHARED | GONE, SHARED]
    assert part.part.flags.tolist() == [SHARED, SHARED | GONE, SHARED]
    assert part.removed == 1


def test_plans_by_place() -> None:
    part = IndexPart.growing(no_entries(), PROGRAM, 8)
    for ordinal in (2, 1, 3):
        part.append(entries(1, flags=SHARED | ordinal << ORDINAL_SHIFT))
    one, two = PROGRAM.copy(), PROGRAM.copy()
    found = part.by_place([0, 1, 2], {1: one, 3: two})
    assert found is not None
    assert list(found) == [1, 2]
    assert found[1] is one
    assert found[2] is two
    assert part.by_place([0, 1, 2], {4: one}) is None
    only = part.by_place([2], {1: one})
    assert only is not None  # whatever its ordinal is
    assert list(only) == [2]


def test_entries_without_ordinals_have_no_plans_but_alone() -> None:
    part = IndexPart.growing(entries(2, flags=SHARED), PROGRAM, 8)
    assert part.by_place([0, 1], {1: PROGRAM}) is None

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import NO_TIME
from tidegate.matching.rows.entries.blocks import Block, entries_of
from tidegate.matching.rows.kernels.flags import ANEW, DEAD, ORDINAL_SHIFT, SHARED, VERIFY
from tidegate.matching.rows.kernels.motion import EVERY


def block_of(length: int) -> Block:
    nothing = np.zeros(length, np.bool_)
    return Block(length, never=nothing, verify=nothing, anew=nothing)


def test_two_bounds_on_a_channel_become_one() -> None:
    block = block_of(3)
    block.constrain(0, np.array([0.0, 0.0, 5.0]), np.array([9.0, 9.0, 9.0]))
    block.constrain(1, np.zeros(3), np.zeros(3))
    block.constrain(0, np.array([2.0, -1.0, 0.0]), np.array([5.0, 12.0, 3.0]))
    assert block.channels == [0, 1]
    assert block.never.tolist() == [False, False, True]
    assert (block.low[0][:2].tolist(), block.high[0][:2].tolist()) == ([2.0, 0.0], [5.0, 9.0])
    assert block.low[0][2] <= block.high[0][2]  # not the outside of its bounds


def test_the_outside_of_bounds_stays_beside_others() -> None:
    block = block_of(1)
    block.constrain(0, np.array([0.0]), np.array([9.0]))
    block.constrain(0, np.array([5.0]), np.array([4.0]))
    assert block.channels == [0, 0]
    assert not block.never.any()


def test_entries_have_the_flags_of_their_rows() -> None:
    block = block_of(2)
    block.constrain(7, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    block.never = np.array([True, False])
    block.verify = np.array([False, True])
    block.anew = np.array([False, True])
    block.shared = True
    since, pin = np.full(4, NO_TIME), np.full(4, EVERY)
    repeated = block.repeated(2)
    found = entries_of(repeated, np.array([5, 9], np.int32), since, pin)
    assert found.subscription.tolist() == [5, 5, 9, 9]
    dead, verified = DEAD | SHARED, VERIFY | ANEW | SHARED
    flags = found.flags & ((1 << ORDINAL_SHIFT) - 1)
    assert flags.tolist() == [dead, dead, verified, verified]
    # the second entry of a row has the ordinal after that of the first
    assert np.diff(found.flags >> ORDINAL_SHIFT).tolist() == [1, -1, 1]
    assert (found.low.tolist(), found.high.tolist()) == ([1, 1, 2, 2], [3, 3, 4, 4])


def test_constraints_are_in_the_order_of_their_channels() -> None:
    block = block_of(1)
    for channel in (4, 2, 3):
        block.constrain(channel, np.array([float(channel)]), np.array([9.0]))
    found = entries_of(block, np.zeros(1, np.int32), np.full(1, NO_TIME), np.full(1, EVERY))
    assert (found.channel.tolist(), found.low.tolist()) == ([2, 3, 4], [2, 3, 4])

"""Blocks: entries of many rows of one shape while they are made, column by column.

All entries of a block have constraints on the same channels, and moving constraints with the same
programs; they differ in bounds and constants.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, Bools
from tidegate.matching.rows.kernels.entry_lists import Entries
from tidegate.matching.rows.kernels.flags import (
    ANEW,
    DEAD,
    MOVING,
    ORDINAL_SHIFT,
    SET,
    SHARED,
    VERIFY,
)
from tidegate.matching.rows.kernels.motion import MovingConstraint, write_motions


@dataclass(slots=True)
class Block:
    """Entries of many rows, with the same channels but different bounds; a column for each channel.

    ``never`` are the rows that match nothing, ``verify`` those that need to be verified, ``anew``
    those with comparisons on several channels (flags.py).
    """

    length: int
    channels: list[int] = field(default_factory=list)
    low: list[F64] = field(default_factory=list)
    high: list[F64] = field(default_factory=list)
    moving: list[MovingConstraint] = field(default_factory=list)
    moving_attributes: frozenset[str] = frozenset()
    lazy: bool = True
    never: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    verify: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    anew: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    shared: bool = False
    owner: I64 | None = None
    """The row that each entry is for, where a row has several; None if each has one."""
    times: int = 1
    """How many entries each row has."""
    ordinal: int = 0
    """The ordinal of the first of these, if the block is shared (flags.py)."""

    def copy(self) -> Block:
        """Another block with the same constraints, to which others can be added."""
        return replace(
            self,
            channels=self.channels[:],
            low=self.low[:],
            high=self.high[:],
            moving=self.moving[:],
        )

    def repeated(self, times: int) -> Block:
        """A block with so many entries for each row, with the same constraints."""
        owner = np.repeat(np.arange(self.length), times)
        return replace(
            self,
            length=len(owner),
            channels=self.channels[:],
            low=[each[owner] for each in self.low],
            high=[each[owner] for each in self.high],
            moving=[
                replace(each, constants=[column[owner] for column in each.constants])
                for each in self.moving
            ],
            never=self.never[owner],
            verify=self.verify[owner],
            anew=self.anew[owner],
            owner=owner,
            times=times,
        )

    def constrain(self, channel: int, low: F64, high: F64) -> None:
        """Add a constraint; two insides of bounds on one channel are intersected."""
        inside = not channel & SET and bool(np.all(low <= high))
        for index, other in enumerate(self.channels if inside else ()):
            if other == channel and bool(np.all(self.low[index] <= self.high[index])):
                self.low[index] = np.maximum(self.low[index], low)
                self.high[index] = np.minimum(self.high[index], high)
                empty = self.low[index] > self.high[index]
                self.never = self.never | empty
                # an empty intersection would be taken for the outside of its bounds
                self.high[index] = np.where(empty, self.low[index], self.high[index])
                return
        self.channels.append(channel)
        self.low.append(low)
        self.high.append(high)


def entries_of(block: Block, subscriptions: I32, origin: I64, pin: I64) -> Entries:
    """The entries of a block, with constraints in ascending order of their channels.

    The other arrays are by row: ``origin`` is from when on `t` counts, ``pin`` for which time it is
    evaluated (see programs.py).
    """
    if block.owner is not None:
        subscriptions, origin = subscriptions[block.owner], origin[block.owner]
        pin = pin[block.owner]
    order = sorted(range(len(block.channels)), key=lambda index: block.channels[index])
    width = len(order)
    flags = np.where(block.never, DEAD, 0).astype(np.int32)
    flags |= np.where(block.verify, VERIFY, 0).astype(np.int32)
    flags |= np.where(block.anew, ANEW, 0).astype(np.int32)
    if block.moving:
        flags |= MOVING
    if block.shared:
        ordinals = block.ordinal + np.arange(block.length, dtype=np.int32) % block.times
        flags |= SHARED | ordinals << ORDINAL_SHIFT
    motion = write_motions(block.moving, origin, pin)
    return Entries(
        subscription=subscriptions.astype(np.int32),
        flags=flags,
        first=(np.arange(block.length + 1) * width).astype(np.int32),
        channel=np.tile(np.array([block.channels[i] for i in order], np.int32), block.length),
        low=_interleaved([block.low[i] for i in order]),
        high=_interleaved([block.high[i] for i in order]),
        motion_first=(np.arange(block.length + 1) * motion.shape[1]).astype(np.int32),
        motion=motion.ravel(),
    )


def _interleaved(columns: list[F64]) -> F64:
    """Columns as one array, row by row."""
    return np.column_stack(columns).ravel() if columns else np.zeros(0)

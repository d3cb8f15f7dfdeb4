"""The `Deliver` frames of one turn for many clients, written by one kernel.

`Deliver.encode` makes the frame of one client from arrays of its own, which costs some dozens of
NumPy calls: with a thousand clients that is most of a turn. Here nothing is done for each client
but finding out where its frame begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.matching.arrays import I32, I64, Bools
from tidegate.network.wire.columns import encode_head
from tidegate.network.wire.frames import HEADER_BYTES, FrameType, frame_header
from tidegate.network.wire.kernels.writing import write_deliveries
from tidegate.network.wire.publications import PublicationBlock

_PER_FRAME_BYTES = 3 * 4
"""The counts of events (twice) and of matches."""
_PER_EVENT_BYTES = (4 + 8 + 4 + 1) + (8 + 4) + (4 + 8 + 4)
_PER_MATCH_BYTES = 4 + 8


@dataclass(frozen=True, slots=True)
class DeliveryRows:
    """Which clients get which events of a block: a row for each client and event, in columns.

    Client ``i`` has the rows from ``row_starts[i]`` to before ``row_starts[i + 1]``; the matches of
    a row are those from ``match_starts[row]`` on. Handles are as on the wire.
    """

    row_starts: I64
    events: I64
    match_starts: I64
    handles: I64
    versions: I64

    @classmethod
    def of(
        cls,
        row_starts: I64,
        events: I32,
        match_starts: I64,
        handles: I32,
        versions: I64,
        unnamed: Bools,
    ) -> DeliveryRows:
        """The rows of a broker, which has handles from 0 on, and none for what has no name."""
        numbers = handles.astype(np.int64) + 1
        if unnamed.any():
            ends = match_starts[1:][unnamed]
            numbers, versions = np.insert(numbers, ends, 0), np.insert(versions, ends, 0)
            match_starts = match_starts + np.concatenate([[0], np.cumsum(unnamed)])
        return cls(row_starts, events.astype(np.int64), match_starts, numbers, versions)


class DeliveryFrames:
    """Writes the frames for clients that are not durable.

    First `bytes_of` says how many bytes of bodies each client would get, then `frames` writes
    those of the clients that are chosen.
    """

    def __init__(self, block: PublicationBlock, rows: DeliveryRows) -> None:
        self._block = block
        self._rows = rows
        self._head = encode_head([block.origins, block.publishers, None])
        sizes = np.zeros(len(rows.events) + 1, np.int64)
        np.cumsum(block.events.sizes[rows.events], out=sizes[1:])
        self.counts = np.diff(rows.row_starts)
        """The number of events for each client."""
        self.bytes_of = np.diff(sizes[rows.row_starts])
        """The bytes of the bodies of these events."""
        matches = np.diff(rows.match_starts[rows.row_starts])
        self.frame_bytes = (
            HEADER_BYTES + len(self._head) + _PER_FRAME_BYTES
            + self.counts * _PER_EVENT_BYTES + matches * _PER_MATCH_BYTES + self.bytes_of
        )  # fmt: skip
        """The size of the frame of each client."""

    def frames(
        self, clients: Sequence[int], shape_numbers: Sequence[Sequence[int]]
    ) -> list[memoryview]:
        """The frames of some clients; ``shape_numbers`` are those of the shapes of the block on the
        connection of each of them."""
        block, rows = self._block, self._rows
        events = block.events
        chosen = np.array(clients, np.int64)
        ends = np.cumsum(self.frame_bytes[chosen])
        begins = ends - self.frame_bytes[chosen]
        out = np.zeros(int(ends[-1]), np.uint8)
        write_deliveries(
            out,
            begins + HEADER_BYTES + len(self._head),
            chosen,
            rows.row_starts,
            rows.events,
            rows.match_starts,
            np.stack([rows.handles, rows.versions]),
            np.stack(
                [
                    block.origin_of, block.numbers, block.publisher_of, block.flags,
                    events.shape_of, events.times_us,
                ]
            ),
            np.array(shape_numbers, np.int64),
            events.starts,
            np.frombuffer(events.bodies, np.uint8),
        )  # fmt: skip
        data = out.data
        frames = []
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            header = frame_header(FrameType.DELIVER, end - begin - HEADER_BYTES)
            data[begin : begin + HEADER_BYTES + len(self._head)] = header + self._head
            frames.append(data[begin:end])
        return frames

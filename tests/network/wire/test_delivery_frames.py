"""Frames for many clients at once: the same bytes as those of `Deliver`, one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.wire_messages import events
from tidegate.language.events import Event
from tidegate.network.wire.deliveries import Deliver
from tidegate.network.wire.delivery_frames import DeliveryFrames, DeliveryRows
from tidegate.network.wire.frames import FrameReader, FrameType
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing.messages import Publication, Stamp


@given(st.lists(events(), min_size=1, max_size=5), st.data())
def test_frames_are_those_of_single_messages(batch: list[Event], data: st.DataObject) -> None:
    block = PublicationBlock.of(
        [
            Publication(event, Stamp(data.draw(st.sampled_from("ab")), 7, number), "p")
            for number, event in enumerate(batch)
        ]
    )
    clients = data.draw(st.integers(1, 3))
    rows_of = [
        sorted(data.draw(st.sets(st.integers(0, len(batch) - 1), min_size=1)))
        for _ in range(clients)
    ]
    matches = [
        [data.draw(st.lists(st.integers(0, 2**31 - 2), min_size=0, max_size=3)) for _ in rows]
        for rows in rows_of
    ]
    unnamed = [[not found or data.draw(st.booleans()) for found in each] for each in matches]
    flat = [found for each in matches for found in each]
    handles = np.array([one for found in flat for one in found], np.int32)
    starts = np.concatenate([[0], np.cumsum([len(found) for found in flat])]).astype(np.int64)
    rows = DeliveryRows.of(
        np.concatenate([[0], np.cumsum([len(each) for each in rows_of])]).astype(np.int64),
        np.array([one for each in rows_of for one in each], np.int32),
        starts,
        handles,
        handles.astype(np.int64) * 3 - 5,
        np.array([one for each in unnamed for one in each], np.bool_),
    )
    chosen = sorted(data.draw(st.sets(st.integers(0, clients - 1), min_size=1)))
    shape_numbers = [
        data.draw(st.permutations(range(len(block.events.shapes)))) for _ in range(len(chosen))
    ]
    written = DeliveryFrames(block, rows)
    frames = written.frames(chosen, shape_numbers)
    for client, numbers, frame in zip(chosen, shape_numbers, frames, strict=True):
        assert len(frame) == written.frame_bytes[client]
        assert written.counts[client] == len(rows_of[client])
        single = Deliver(
            block.select(np.array(rows_of[client], np.int64)),
            np.zeros(len(rows_of[client]), np.int64),
            np.array(
                [len(found) + more for found, more in
                 zip(matches[client], unnamed[client], strict=True)], np.int64
            ),
            *_matches(matches[client], unnamed[client]),
        )  # fmt: skip
        shapes = block.events.shapes
        own = [numbers[shapes.index(each)] for each in single.shapes]
        (found,) = FrameReader(1 << 20).read(bytes(frame))
        assert found.type is FrameType.DELIVER
        assert bytes(found.body) == b"".join(single.encode(own))


def _matches(
    matches: list[list[int]], unnamed: list[bool]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    handles, versions = [], []
    for found, more in zip(matches, unnamed, strict=True):
        handles += [each + 1 for each in found] + [0] * more
        versions += [each * 3 - 5 for each in found] + [0] * more
    return np.array(handles, np.int64), np.array(versions, np.int64)

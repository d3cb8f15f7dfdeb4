from __future__ import annotations

import pytest

from tidegate.errors import ProtocolError
from tidegate.network.wire.frames import Frame, FrameReader, FrameType, frame_header

ACK = frame_header(FrameType.ACK, 2) + b"\x91\x05"


def read(reader: FrameReader, data: bytes) -> list[tuple[FrameType, bytes]]:
    return [(type, bytes(body)) for type, body in reader.read(data)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 100])
def test_frames_come_out_whatever_the_pieces(size: int) -> None:
    reader = FrameReader(100)
    data = ACK * 3 + frame_header(FrameType.HEARTBEAT, 0)
    frames = []
    for begin in range(0, len(data), size):
        frames += read(reader, data[begin : begin + size])
    assert frames == [(FrameType.ACK, b"\x91\x05")] * 3 + [(FrameType.HEARTBEAT, b"")]
    assert reader.waiting_bytes == 0


def test_the_length_is_checked_before_anything_is_kept() -> None:
    reader = FrameReader(100)
    with pytest.raises(ProtocolError, match="from 1 to 100 bytes, not 101"):
        read(reader, b"\x00\x00\x00\x65")


def test_a_length_that_comes_in_two_pieces_is_checked_too() -> None:
    reader = FrameReader(100)
    assert read(reader, b"\xff\xff") == []
    with pytest.raises(ProtocolError, match="not 4294901760"):
        read(reader, b"\x00\x00")


def test_a_frame_has_a_type() -> None:
    with pytest.raises(ProtocolError, match="from 1 to 100 bytes, not 0"):
        read(FrameReader(100), b"\0\0\0\0")


def test_a_frame_may_be_as_large_as_the_limit() -> None:
    data = frame_header(FrameType.ACK, 99) + b"x" * 99
    assert read(FrameReader(100), data) == [(FrameType.ACK, b"x" * 99)]


def test_unknown_types_are_refused_before_their_body_comes() -> None:
    with pytest.raises(ProtocolError, match="no frame of type 0xee"):
        read(FrameReader(100), b"\0\0\0\x09\xee")


def test_the_limit_may_be_raised_between_two_frames_of_one_piece() -> None:
    reader = FrameReader(10)
    large = frame_header(FrameType.ACK, 50) + b"x" * 50
    frames = []
    for frame in reader.read(ACK + large):
        frames.append(frame)
        reader.frame_bytes_max = 100
    assert [len(each.body) for each in frames] == [2, 50]


def test_a_body_that_came_in_one_piece_is_not_copied() -> None:
    data = ACK + ACK
    frames = list(FrameReader(100).read(data))
    assert all(isinstance(each, Frame) and each.body.obj is data for each in frames)

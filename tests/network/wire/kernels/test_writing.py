"""The kernel that writes frames is tested through `delivery_frames`; here are its edges."""

from __future__ import annotations

import numpy as np

from tidegate.network.wire.kernels.writing import write_deliveries


def test_a_receiver_without_rows_gets_counts_of_zero() -> None:
    out, none = np.full(12, 9, np.uint8), np.zeros(0, np.int64)
    zero = np.zeros(1, np.int64)
    write_deliveries(
        out, zero, zero, np.zeros(2, np.int64), none, zero, np.zeros((2, 0), np.int64),
        np.zeros((6, 0), np.int64), np.zeros((1, 1), np.int64), zero, np.zeros(0, np.uint8),
    )  # fmt: skip
    assert bytes(out) == bytes(12)


def test_numbers_are_little_endian_and_bodies_are_copied() -> None:
    one = np.array([0], np.int64)
    columns = np.array([[1], [2**40 + 2], [3], [1], [0], [-1]], np.int64)
    matches = np.array([[7], [-2]], np.int64)
    out = np.zeros(12 + 45 + 12 + 2, np.uint8)
    write_deliveries(
        out, one, one, np.array([0, 1]), one, np.array([0, 1]), matches, columns,
        np.array([[5]]), np.array([0, 2]), np.frombuffer(b"\x91\x01", np.uint8),
    )  # fmt: skip
    assert bytes(out) == bytes.fromhex(
        "01000000 01000000 0200000000010000 03000000 01 0000000000000000 01000000"
        "01000000 07000000 feffffffffffffff"
        "01000000 05000000 ffffffffffffffff 02000000 9101"
    )

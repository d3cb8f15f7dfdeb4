"""Types of NumPy arrays, and the sentinel for an unknown time in an array of times."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Int = Any
"""An integer of Python or NumPy: Numba treats both alike, mypy does not."""

# The least int64, 290,000 years before any real time; NumPy's NaT has the same bits.
NO_TIME = np.int64(-(2**63))
"""Sentinel in an array of times in microseconds: this event or subscription has no time."""

"""Memory that is no longer used, given back to the machine."""

from __future__ import annotations

import ctypes

import pyarrow as pa


def give_back_memory() -> None:
    """Have the allocators give back what they keep for later.

    Laying out many subscriptions needs several times what they take in the end; glibc would keep
    that for as long as the process lives.
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

"""Returning unused memory to the operating system."""

from __future__ import annotations

import ctypes

import pyarrow as pa


def release_memory() -> None:
    """Have the allocators of Arrow and of the C library return memory that is not in use.

    Laying out many subscriptions needs several times the memory that they take in the end; glibc
    would keep it for the life of the process. Other C libraries have no `malloc_trim`.
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

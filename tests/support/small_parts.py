"""Indexes whose limits are so small that a few subscriptions already have all there is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from tidegate.matching.columnar import index, matcher
from tidegate.matching.columnar.kernels import layout
from tidegate.matching.rete import beta, range_index


@contextmanager
def small_parts(past_max: int = 8) -> Iterator[None]:
    """Let a few subscriptions already fill the open part, make groups and have bitmaps or fans.

    Parts of the past are not made larger than ``past_max``.
    """
    with (
        mock.patch.object(range_index, "RUN_MAX", 4),
        mock.patch.object(beta, "FAN_MIN", 2),
        mock.patch.object(index, "OPEN_ENTRIES_MAX", 4),
        mock.patch.object(index, "PAST_ENTRIES_MAX", past_max),
        mock.patch.object(matcher, "PAST_ENTRIES_MAX", past_max),
        mock.patch.object(layout, "GROUP_ENTRIES_MIN", 2),
        mock.patch.object(layout, "BITMAP_ENTRIES_MIN", 2),
    ):
        yield

"""Sizes at which the columnar index changes its form."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.matching.columnar.kernels.layout import LayoutSizes

PAST_ENTRIES_MAX = 65_536
"""Default size, in entries, above which parts of past versions are not merged."""


class IndexSizes(NamedTuple):
    """When an index lays out its parts and merges them, and in what pieces.

    The defaults are measured. Tests take small ones, so that a few subscriptions already fill the
    open part and make groups and bitmaps.
    """

    open_entries_max: int = 512
    """The open part is scanned for every event; with more entries it is laid out."""
    past_entries_max: int = PAST_ENTRIES_MAX
    """Parts of past versions are not merged beyond this: a part is skipped if no event is of its
    time, so many small parts beat a large one that covers all times."""
    windows_per_layout: int = 64
    """After this many time windows a part with moving bounds is laid out again: by then the bounds
    are elsewhere than when the bins of its bitmaps were chosen."""
    at_once_entries_max: int = 256
    """With more entries a part is merged or laid out again beside the index (part_build.py): what
    is done at once holds up all matches and changes."""
    flat_entries_max: int = 2048
    """Parts that wait for being laid out are joined up to this: they are scanned meanwhile, which
    takes a few microseconds for 1,000 entries."""
    piece_entries: int = 1024
    """Entries that are enclosed, copied or brought up to date in one piece: under a millisecond."""
    layout: LayoutSizes = LayoutSizes()


DEFAULT_SIZES = IndexSizes()

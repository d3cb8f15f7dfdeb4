"""Constants of entries that their makers and all kernels share."""

from __future__ import annotations

DEAD, VERIFY, SHARED, MOVING, GONE, UNSURE, ANEW = 1, 2, 4, 8, 16, 32, 64
"""Flags of an entry.

DEAD: its present values match nothing. VERIFY: its bounds are wider than the filter, so a match is
to be checked by `semantics.py`. SHARED: one of several entries of its subscription. MOVING: it has
bounds that are functions of time. GONE: its subscription was removed or has a newer entry.
ANEW: a comparison is on several of its channels, so an update makes it anew.
UNSURE is set only for a pair that was found: its functions of time are still to be evaluated.
"""

ORDINAL_SHIFT = 8
"""The bits of the flags from this one on are the ordinal of an entry that is SHARED: which of the
entries of its subscription it is, from 1 on, as rows/entries/expansion.py numbers them. It is 0 in
snapshots that were written before there were ordinals."""

SET = 1 << 30
"""Flag of a channel whose values are sets of numbers; a constraint requires one of them, or not."""

EXACT_MAX = 2.0**53
"""Floats of this size or more may stand for several integers."""

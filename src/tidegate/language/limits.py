"""Limits on filters that come from outside."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a filter may be.

    ``cost_max`` bounds the predicates, values and operations over all disjuncts, which is what a
    filter costs to hold and to match.
    """

    length_chars_max: int = 65_536
    depth_max: int = 64
    disjuncts_max: int = 256
    cost_max: int = 10_000
    pattern_steps_max: int = 32


DEFAULT_LIMITS = Limits()

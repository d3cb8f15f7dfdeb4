"""Limits on filters that come from strangers: how large a text may be before it is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a filter may be.

    ``cost_max`` bounds the number of predicates, values and operations over all disjuncts, which
    is what a filter costs to store and to match.
    """

    length_chars_max: int = 65_536
    # The parser and everything that walks a tree recurse; 64 levels stay far from Python's limit.
    depth_max: int = 64
    # `(a or b) and (c or d) and ...` doubles with every term: a few hundred
    # characters of text would be a million conjunctions. The parser counts them before anything
    # multiplies them out.
    disjuncts_max: int = 256
    # Few disjuncts can still be long ones: 256 of them with a thousand predicates each.
    cost_max: int = 10_000
    pattern_steps_max: int = 32


DEFAULT_LIMITS = Limits()

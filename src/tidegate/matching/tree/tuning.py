"""Settings of a search tree: its optimizations (Gryphon, 2.1), each of which can be switched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeTuning:
    """How a search tree is built; the answers are the same with all settings."""

    order: tuple[str, ...] = ()
    """Attributes whose levels come first, in this order; the others follow by statistics."""
    factored: int = 0
    """How many of the first levels are factored: a subtree for each of their values or ranges."""
    eliminates_trivial_tests: bool = True
    """Whether levels are left out on which all subscriptions below don't care."""
    delays_branching: bool = True
    """Whether a *-branch is taken only if the event passes its guard."""
    leaf_paths_max: int = 8
    """A leaf with more paths is split. With 0 each path has a node for each level."""


DEFAULT_TUNING = TreeTuning()

PLAIN = TreeTuning(eliminates_trivial_tests=False, delays_branching=False, leaf_paths_max=0)
"""The tree of the paper's section 2, without optimizations."""

"""Settings of a search tree: its optimizations (Gryphon, 2.1), each of which can be switched."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import SubscriptionError

MOST = (1 << 31) - 1
"""The largest value of a setting that is a number."""


@dataclass(frozen=True, slots=True)
class TreeTuning:
    """How a search tree is built; the answers are the same with all settings.

    >>> from tidegate import Engine
    >>> engine = Engine(matcher=TreeTuning(order=("symbol",), factored=1))
    """

    order: tuple[str, ...] = ()
    """Attributes whose levels come first, in this order; the others follow by statistics."""
    factored: int = 0
    """How many of the first levels are factored: a subtree for each of their values or ranges.

    Subscriptions that do not care are copied into each of these: memory grows with the product.
    """
    eliminates_trivial_tests: bool = True
    """Whether levels are left out on which all subscriptions below don't care."""
    delays_branching: bool = True
    """Whether a *-branch is taken only if the event passes its guard."""
    leaf_paths_max: int = 8
    """A leaf with more paths is split. With 0 each path has a node for each level."""

    def __post_init__(self) -> None:
        if not isinstance(self.order, tuple) or not all(isinstance(n, str) for n in self.order):
            raise SubscriptionError(
                f"the order of a search tree is a tuple of names of attributes, not {self.order!r}"
            )
        for name in ("factored", "leaf_paths_max"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
                raise SubscriptionError(
                    f"{name} of a search tree is a number from 0 to {MOST:,}, not {value!r}"
                )
        for name in ("eliminates_trivial_tests", "delays_branching"):
            if not isinstance(getattr(self, name), bool):
                raise SubscriptionError(
                    f"{name} of a search tree is True or False, not {getattr(self, name)!r}"
                )


DEFAULT_TUNING = TreeTuning()

PLAIN = TreeTuning(eliminates_trivial_tests=False, delays_branching=False, leaf_paths_max=0)
"""The tree of the paper's section 2, without optimizations."""

"""Matchers with sizes so small that a few subscriptions already make all their structures."""

from __future__ import annotations

from tidegate.matching.columnar.kernels.layout import LayoutSizes
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.columnar.sizes import IndexSizes
from tidegate.matching.evolving.lazy import LazyMatcher
from tidegate.matching.evolving.periodic import PeriodicMatcher
from tidegate.matching.matcher import PinningMatcher
from tidegate.matching.registry import MATCHERS
from tidegate.matching.rete.matcher import ReteMatcher
from tidegate.matching.summary.budget import SummaryBudget
from tidegate.matching.summary.matcher import SummaryMatcher
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import TreeTuning


def small_sizes(past_max: int = 8, windows_per_layout: int = 64) -> IndexSizes:
    """A few entries fill the open part, and make groups and bitmaps."""
    return IndexSizes(
        open_entries_max=4,
        at_once_entries_max=2048,
        past_entries_max=past_max,
        windows_per_layout=windows_per_layout,
        layout=LayoutSizes(group_entries_min=2, bitmap_entries_min=2),
    )


def small_columnar(past_max: int = 8) -> ColumnarMatcher:
    """A columnar matcher with small parts."""
    return ColumnarMatcher(sizes=small_sizes(past_max))


def small_rete() -> ReteMatcher:
    """A Rete network with fans of a few followers and short runs of ranges."""
    return ReteMatcher(fan_min=2, run_max=4)


def small_tree(*, factored: int = 0) -> TreeMatcher:
    """A search tree that splits each leaf of several paths."""
    return TreeMatcher(TreeTuning(leaf_paths_max=1, factored=factored))


def small_summary(budget: SummaryBudget | None = None) -> PinningMatcher:
    """A summary that joins rows as soon as an attribute has four, or by another budget."""
    summary = SummaryMatcher(budget or SummaryBudget(rows_max=3))
    return PeriodicMatcher(LazyMatcher(summary))


def small_matcher(name: str) -> PinningMatcher:
    """The matcher of the registry with this name, but with small sizes if it has any."""
    if name == "columnar":
        return small_columnar()
    if name == "tree":
        return small_tree()
    if name == "rete":
        return PeriodicMatcher(LazyMatcher(small_rete(), only_cached=True))
    if name == "summary":
        return small_summary()
    return MATCHERS[name].make()

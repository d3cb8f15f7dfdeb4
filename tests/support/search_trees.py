"""Search trees of filters, and looks at their nodes, for tests of the kernels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.kernels import layout as la
from tidegate.matching.tree.kernels.layout import TreeArrays
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import TreeTuning


def tree_of(filters: Mapping[str, str], tuning: TreeTuning) -> TreeMatcher:
    """A matcher with subscriptions that have no parameters, by id."""
    matcher = TreeMatcher(tuning)
    matcher.add(Subscription(id, parse(text)) for id, text in filters.items())
    return matcher


def matching(matcher: TreeMatcher, **attributes: object) -> list[str]:
    """The ids that match an event without a time, sorted."""
    return sorted(matcher.match(Event.of(attributes), Moment()))


def arrays_of(matcher: TreeMatcher) -> TreeArrays:
    """The arrays of a matcher's tree."""
    return matcher._index.tree.storage.arrays


def kind_of(matcher: TreeMatcher, node: int = la.ROOT) -> int:
    """The kind of a node."""
    return int(arrays_of(matcher).node.view(np.int32)[la.node_i32(node, la.N_KIND)])


def word_of(matcher: TreeMatcher, word: int, node: int = la.ROOT) -> int:
    """A 32-bit word of a node."""
    return int(arrays_of(matcher).node.view(np.int32)[la.node_i32(node, word)])


def path_count(matcher: TreeMatcher, id: str) -> int:
    """The number of paths of a subscription with one entry."""
    arrays, count = arrays_of(matcher), 0
    number = matcher._table.number(id)
    (entry,) = matcher._index.tree.records.of(np.array([number], np.int32))
    path = int(arrays.entry[la.entry_at(entry, la.E_PATHS)])
    while path != la.NONE:
        count += 1
        path = int(arrays.path[la.path_at(path, la.P_SIBLING)])
    return count

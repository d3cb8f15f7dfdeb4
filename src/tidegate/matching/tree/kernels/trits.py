"""Annotations for link matching: a trit for each node and link (Gryphon, 3.1).

    trit     meaning at a node, for a link                                        sure  may
    Yes      a search that comes here matches a subscription behind the link      1     1
    Maybe    it may match one                                                     0     1
    No       it matches none                                                      0     0

Table 1 of the paper, in bits: *alternative combine* takes the AND of `sure` and the OR of `may`,
because exactly one of the alternatives is taken; *parallel combine* takes the OR of both, because
both are taken.

The annotation of a leaf has Yes for the links of its unconditional paths, which have no test left
and need no verification, and Maybe for those of the others. At a VALUES or CUT node the
branches of values and sides are alternatives, the *-branch among them, as it is all that is taken
for a value without a branch; a *-branch that does not exist counts as No. The result is combined in
parallel with the *-branch. At an EXCLUSIVE node there are alternatives only.

A guard does not change that. It can only keep a search from a *-branch; and a *-branch with a guard
has no Yes, because every path behind it has a test left.

Ranges. The paper annotates trees of equalities and mentions a "parallel search graph" for the rest.
Here a range test is a binary tree of CUT nodes. Its sides are alternatives, and the pieces of a
range that was cut lie in different sides, so a search meets exactly those that it must; the entries
whose range contains the whole span of a node are behind its *-branch, in parallel. So each node is
combined by the same two operators, and the argument of the paper holds for it as it stands.

A change touches one leaf for each path of an entry; only the nodes above are combined anew, as far
up as something changes. What an entry gains is added on the way. Where it has lost links, the other
paths of the leaf, and the other children of a node, are asked for these only, until they are found.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import U64, Int
from tidegate.matching.rows.kernels.flags import MOVING, VERIFY
from tidegate.matching.rows.kernels.jit import inlined, lean
from tidegate.matching.tree.kernels.layout import (
    E_END,
    E_FLAGS,
    E_PATHS,
    EXCLUSIVE,
    H_FACTORED,
    H_LINK_WORDS,
    KIND_MASK,
    LEAF,
    N_KIND,
    N_STAR,
    NONE,
    P_ENTRY,
    P_FROM,
    P_LEAF,
    P_NEXT,
    P_SIBLING,
    ROOT,
    T_CHILD,
    T_NEXT,
    T_PARENT,
    TreeArrays,
    entry_at,
    node_i32,
    path_at,
    tie_at,
)


@inlined
def alternative(sure: Int, may: Int, other_sure: Int, other_may: Int) -> tuple[Int, Int]:
    """Alternative combine of two annotations: exactly one of them applies."""
    return sure & other_sure, may | other_may


@inlined
def parallel(sure: Int, may: Int, other_sure: Int, other_may: Int) -> tuple[Int, Int]:
    """Parallel combine of two annotations: both apply."""
    return sure | other_sure, may | other_may


@inlined
def is_unconditional(tree: TreeArrays, path: Int) -> bool:
    """Whether every event that comes to the leaf of a path satisfies its entry."""
    entry = tree.path[path_at(path, P_ENTRY)]
    return bool(
        tree.path[path_at(path, P_FROM)] >= tree.entry[entry_at(entry, E_END)]
        and tree.entry[entry_at(entry, E_FLAGS)] & (VERIFY | MOVING) == 0
    )


@lean
def annotate_leaf(tree: TreeArrays, leaf: Int) -> None:
    """Combine the annotation of a leaf from its paths."""
    words = tree.head[H_LINK_WORDS]
    for word in range(words):
        tree.sure[words * leaf + word] = 0
        tree.may[words * leaf + word] = 0
    path = tree.node.view(np.int32)[node_i32(leaf, N_STAR)]
    while path != NONE:
        entry = np.int64(tree.path[path_at(path, P_ENTRY)])
        unconditional = is_unconditional(tree, path)
        for word in range(words):
            links = tree.links[words * entry + word]
            tree.may[words * leaf + word] |= links
            if unconditional:
                tree.sure[words * leaf + word] |= links
        path = tree.path[path_at(path, P_NEXT)]


@lean
def annotate_above(tree: TreeArrays, node: Int) -> None:
    """Combine the annotations of the nodes above one anew, as far up as they change."""
    for word in range(tree.head[H_LINK_WORDS]):
        _follow(tree, node, word, ~np.uint64(0))


@lean
def _follow(tree: TreeArrays, node: Int, word: Int, lost: Int) -> None:
    """Combine one word of the annotations above a node anew, as far up as it changes.

    The node has changed. If it has lost links, or another child of its parent has that was dropped,
    they are among ``lost``.
    """
    words = tree.head[H_LINK_WORDS]
    while node != ROOT:
        child = node
        node = np.int64(tree.tie[tie_at(node, T_PARENT)])
        before = tree.may[words * node + word]
        known = (before & ~lost) | tree.may[words * child + word]
        if not _combine(tree, node, word, known, known | before):
            return


@lean
def _combine(tree: TreeArrays, node: Int, word: Int, known: Int, most: Int) -> bool:
    """Combine one word of a node's annotation; returns whether it has changed.

    Some child has the links in ``known``, and none has others than those in ``most``. Once these
    are found, the other children, which may be many, are not looked at.
    """
    words = tree.head[H_LINK_WORDS]
    ints, tie = tree.node.view(np.int32), tree.tie
    at = words * node + word
    star = np.int64(ints[node_i32(node, N_STAR)])
    exclusive = ints[node_i32(node, N_KIND)] & EXCLUSIVE
    star_sure, star_may = np.uint64(0), np.uint64(0)
    if star != NONE:
        star_sure, star_may = tree.sure[words * star + word], tree.may[words * star + word]
    sure, may = star_sure, star_may | known
    child = np.int64(tie[tie_at(node, T_CHILD)])
    # What the other children can still change is `sure`, which counts at an EXCLUSIVE node only.
    while child != NONE and (may != most or (exclusive and sure != 0)):
        other = words * child + word
        sure, may = alternative(sure, may, tree.sure[other], tree.may[other])
        child = np.int64(tie[tie_at(child, T_NEXT)])
    if not exclusive:
        sure, may = parallel(sure, may, star_sure, star_may)
    changed = bool(tree.may[at] != may or tree.sure[at] != sure)
    tree.may[at], tree.sure[at] = may, sure
    return changed


@lean
def annotate_entry(tree: TreeArrays, entry: Int) -> None:
    """Add the links of an entry to all annotations that depend on it."""
    words = tree.head[H_LINK_WORDS]
    path = tree.entry[entry_at(entry, E_PATHS)]
    while path != NONE:
        leaf = np.int64(tree.path[path_at(path, P_LEAF)])
        if tree.head[H_FACTORED]:
            annotate_leaf(tree, leaf)  # it may have got copies of other entries too
            annotate_above(tree, leaf)
        else:
            unconditional = is_unconditional(tree, path)
            for word in range(words):
                links = tree.links[words * entry + word]
                tree.may[words * leaf + word] |= links
                if unconditional:
                    tree.sure[words * leaf + word] |= links
                _follow(tree, leaf, word, np.uint64(0))
        path = tree.path[path_at(path, P_SIBLING)]


@lean
def forget_links(tree: TreeArrays, leaf: Int, lost: U64) -> None:
    """Combine annotations anew after a path of a leaf, or one that it had, has lost some links."""
    words = tree.head[H_LINK_WORDS]
    for word in range(words):
        at = words * leaf + word
        # Only these can have changed; once another path is found to have them, the others, which
        # may be many, are not looked at.
        sure_before, may_before = tree.sure[at], tree.may[at]
        sure, may = sure_before & ~lost[word], may_before & ~lost[word]
        path = tree.node.view(np.int32)[node_i32(leaf, N_STAR)]
        while path != NONE and (may != may_before or sure != sure_before):
            entry = np.int64(tree.path[path_at(path, P_ENTRY)])
            links = tree.links[words * entry + word] & lost[word]
            may |= links
            if is_unconditional(tree, path):
                sure |= links
            path = tree.path[path_at(path, P_NEXT)]
        tree.sure[at], tree.may[at] = sure, may
        _follow(tree, leaf, word, lost[word])


@lean
def forget_child(tree: TreeArrays, node: Int, lost: U64) -> None:
    """Combine annotations anew after a child of a node, with some links, was dropped."""
    child = np.int64(tree.tie[tie_at(node, T_CHILD)])
    for word in range(tree.head[H_LINK_WORDS]):
        _follow(tree, child, word, lost[word])


@lean
def forget_links_of(tree: TreeArrays, entry: Int, lost: U64) -> None:
    """Combine annotations anew after an entry has lost some links."""
    path = tree.entry[entry_at(entry, E_PATHS)]
    while path != NONE:
        forget_links(tree, np.int64(tree.path[path_at(path, P_LEAF)]), lost)
        path = tree.path[path_at(path, P_SIBLING)]


@lean
def annotate_all(tree: TreeArrays) -> None:
    """Combine the annotations of all nodes anew, children before their parents."""
    words = tree.head[H_LINK_WORDS]
    ints, tie = tree.node.view(np.int32), tree.tie
    node = np.int64(ROOT)
    going_down = True
    while True:
        if ints[node_i32(node, N_KIND)] & KIND_MASK == LEAF:
            annotate_leaf(tree, node)
        elif going_down:
            node = np.int64(tie[tie_at(node, T_CHILD)])
            continue
        else:
            for word in range(words):
                _combine(tree, node, word, np.uint64(0), ~np.uint64(0))
        if node == ROOT:
            return
        after = np.int64(tie[tie_at(node, T_NEXT)])
        going_down = after != NONE
        node = after if going_down else np.int64(tie[tie_at(node, T_PARENT)])

"""The examples of the paper on link matching: figure 2, table 1, figure 4 and section 3.3.

The drawing of figure 2 is not in the text. Its event and its rightmost leaf are; the other
predicates are chosen so that, as in the paper, the event matches four of them.
"""

from __future__ import annotations

import numpy as np
import pytest

from support.tree_invariants import check_tree
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.kernels import layout as la
from tidegate.matching.tree.kernels.trits import alternative, parallel
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import PLAIN, TreeTuning

ATTRIBUTES = tuple(f"a{number}" for number in range(1, 6))
PREDICATES = {
    "rightmost": "a1 = 1 and a2 = 2 and a3 = 3 and a5 = 3",
    "p2": "a1 = 1 and a2 = 2 and a3 = 3 and a4 = 1",
    "p3": "a1 = 1 and a3 = 3",
    "p4": "a2 = 2 and a5 = 2",
    "p5": "a2 = 1 and a3 = 2",
    "p6": "a3 = 3 and a4 = 1 and a5 = 2",
    "p7": "a1 = 2",
}
EVENT = Event.of(dict(zip(ATTRIBUTES, (1, 2, 3, 1, 2), strict=True)))

YES, MAYBE, NO = (1, 1), (0, 1), (0, 0)
LETTERS = {"Y": YES, "M": MAYBE, "N": NO}


def tree(
    filters: dict[str, str], links: dict[str, int] | None = None, plain: bool = True
) -> TreeMatcher:
    settings = PLAIN if plain else TreeTuning()
    matcher = TreeMatcher(
        TreeTuning(
            order=ATTRIBUTES,
            eliminates_trivial_tests=settings.eliminates_trivial_tests,
            delays_branching=settings.delays_branching,
            leaf_paths_max=settings.leaf_paths_max,
        )
    )
    matcher.add(Subscription(id, parse(text)) for id, text in filters.items())
    for id, each in (links or {}).items():
        matcher.set_links(id, each)
    check_tree(matcher._index.tree)
    return matcher


def root_trits(matcher: TreeMatcher, count: int) -> str:
    arrays = matcher._index.tree.storage.arrays
    bits = [
        (int(arrays.sure[la.ROOT]) >> i & 1, int(arrays.may[la.ROOT]) >> i & 1)
        for i in range(count)
    ]
    return "".join({pair: letter for letter, pair in LETTERS.items()}[pair] for pair in bits)


def test_figure_2_the_nodes_on_all_satisfied_paths_are_visited() -> None:
    matcher = tree(PREDICATES)
    assert sorted(matcher.match(EVENT, Moment())) == ["p2", "p3", "p4", "p6"]
    # By level: the root; a1 = 1 and *; four nodes that test a3, four a4, five a5; four leaves.
    assert matcher.steps == 1 + 2 + 4 + 4 + 5 + 4


def test_figure_2_optimizations_take_fewer_steps_to_the_same_answer() -> None:
    matcher = tree(PREDICATES, plain=False)
    assert sorted(matcher.match(EVENT, Moment())) == ["p2", "p3", "p4", "p6"]
    assert matcher.steps < 20


@pytest.mark.parametrize(
    ("one", "other", "alternatively", "in_parallel"),
    [
        ("Y", "Y", "Y", "Y"), ("Y", "M", "M", "Y"), ("Y", "N", "M", "Y"),
        ("M", "Y", "M", "Y"), ("M", "M", "M", "M"), ("M", "N", "M", "M"),
        ("N", "Y", "M", "Y"), ("N", "M", "M", "M"), ("N", "N", "N", "N"),
    ],
)  # fmt: skip
def test_table_1(one: str, other: str, alternatively: str, in_parallel: str) -> None:
    bits = [np.uint64(bit) for bit in (*LETTERS[one], *LETTERS[other])]
    assert alternative(*bits) == LETTERS[alternatively]
    assert parallel(*bits) == LETTERS[in_parallel]


def test_figure_4() -> None:
    """MYY and NYN are alternatives, YYN is behind the *-branch: the parent is YYM."""
    filters = {
        "first maybe": "a1 = 1 and a2 = 1", "others": "a1 = 1",  # MYY
        "second": "a1 = 2",  # NYN
        "star": "true",  # YYN
    }  # fmt: skip
    links = {"first maybe": 0b001, "others": 0b110, "second": 0b010, "star": 0b011}
    assert root_trits(tree(filters, links), 3) == "YYM"


def test_a_missing_star_branch_counts_as_no() -> None:
    """All values with a branch lead to the link, but others do not."""
    assert root_trits(tree({"a": "a1 = 1", "b": "a1 = 2"}, {"a": 1, "b": 1}), 1) == "M"


def test_section_3_3_a_mask_without_maybe_ends_the_search() -> None:
    filters = {"every": "true", "one": "a1 = 1 and a2 = 2", "other": "a1 = 2"}
    matcher = tree(filters, {"every": 0b010, "one": 0b100, "other": 0b1000})
    # step 2 at the root: link 1 is Yes, link 4 is No everywhere
    found = matcher.match_links(EVENT, Moment(), 0b10010)
    assert (found.links, found.steps) == (0b010, 1)
    # step 3: link 2 is Maybe at the root and Yes at a leaf; link 3 becomes No after the children
    found = matcher.match_links(EVENT, Moment(), 0b1110)
    assert found.links == 0b110
    assert matcher.match_links(EVENT, Moment(), 0b1000).links == 0


def test_section_3_3_what_one_subsearch_finds_is_not_searched_again() -> None:
    """Two ways to one link: as soon as one of them says Yes, the other is not followed."""
    both = {"value": "a1 = 1 and a2 = 2 and a3 = 3", "star": "a2 = 2 and a3 = 3"}
    alone = tree({"star": both["star"]}, {"star": 0b10}).match_links(EVENT, Moment(), 0b10)
    together = tree(both, dict.fromkeys(both, 0b10)).match_links(EVENT, Moment(), 0b10)
    apart = tree(both, {"value": 0b10, "star": 0b100}).match_links(EVENT, Moment(), 0b110)
    assert alone.links == together.links == 0b10
    assert together.steps < apart.steps

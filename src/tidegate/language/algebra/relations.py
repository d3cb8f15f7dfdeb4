"""How filters relate: covers, overlaps, equals, merge and intersect (Siena, 3.4).

All of these work on normal forms of constants. Rules: `covers` says yes only if every event that
matches the narrower filter matches the wider one; `overlaps` says no only if no event matches both.
Both are exact for conjunctions of numbers, timestamps, booleans, order, equality, `in`, prefix and
suffix, and their complements. `overlaps` stays exact for disjunctions of those; `covers` does not,
because it looks for a single disjunct that covers. With `contains` and `like` neither is exact (see
strings.py).
"""

from __future__ import annotations

from functools import reduce

from tidegate.language.algebra.normal_form import Conjunction, NormalForm


def covers(wide: NormalForm, narrow: NormalForm) -> bool:
    """Whether every event that matches ``narrow`` surely matches ``wide``."""
    return all(
        any(each.covers(conjunction) for each in wide.conjunctions)
        for conjunction in narrow.conjunctions
    )


def overlaps(a: NormalForm, b: NormalForm) -> bool:
    """Whether some event could match both."""
    return any(x.meets(y) for x in a.conjunctions for y in b.conjunctions)


def intersect(a: NormalForm, b: NormalForm) -> NormalForm:
    """What both match."""
    return a.intersect(b)


def merge(a: NormalForm, b: NormalForm) -> tuple[NormalForm, bool]:
    """The smallest single conjunction that covers both, and whether it is exact.

    Exact means that it matches nothing that neither of them matches. Where the two together are
    one conjunction, that is the answer; else each attribute that all parts constrain keeps the
    union of their constraints. Said to be exact, it is; of disjunctions it may be without our
    seeing it.
    """
    both = NormalForm.joining([*a.conjunctions, *b.conjunctions])
    if len(both.conjunctions) <= 1:
        return both, True
    return NormalForm((reduce(Conjunction.hull, both.conjunctions),)), False

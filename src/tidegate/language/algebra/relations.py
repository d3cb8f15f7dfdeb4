"""How filters relate: covers, overlaps, equals, merge and intersect (Siena, 3.4).

All of these work on normal forms of constants.

Rules. `covers` says yes only if every event that matches the narrower filter matches the wider one;
`overlaps` says no only if no event matches both. Where a relation is not exact it errs on that
side: a broker that misses a covering sends a subscription too many, and loses no event.

Both are exact for conjunctions of numbers, timestamps, booleans, order, equality, `in`, prefix and
suffix, and their complements. `overlaps` stays exact for disjunctions of those. `covers` does not,
because it looks for a single disjunct that covers: whether several cover together is co-NP-hard.
With `contains` and `like` neither is exact (see string_sets.py).
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
    """The filter that matches what both match."""
    return a.intersect(b)


def merge(a: NormalForm, b: NormalForm) -> tuple[NormalForm, bool]:
    """The smallest single conjunction that covers both, and whether it is exact.

    Exact means that it matches nothing that neither of them matches. If the union of the two is one
    conjunction, that is the result; otherwise each attribute that all disjuncts constrain keeps the
    union of their value sets. A result that is called exact is; one of disjunctions may be exact
    without being called so.
    """
    both = NormalForm.joining([*a.conjunctions, *b.conjunctions])
    if len(both.conjunctions) <= 1:
        return both, True
    return NormalForm((reduce(Conjunction.hull, both.conjunctions),)), False

"""How filters relate: covers, overlaps, equals, merge and intersect (Siena, 3.4).

All of these work on normal forms of constants.

Rules. `covers` says yes only if every event that matches the narrower filter matches the wider one;
`overlaps` says no only if no event matches both. Where a relation is not exact it errs on that
side: a broker that misses a covering sends a subscription too many, and loses no event.

Both are exact for conjunctions of numbers, timestamps, booleans, order, equality, `in`, prefix and
suffix, and their complements. `overlaps` stays exact for disjunctions of those. `covers` does not,
because it looks for a single disjunct that covers: whether several cover together is co-NP-hard.
With `contains` and `like` neither is exact (see string_sets.py), and neither is for filters so
large that comparing them takes more than the budget of work (work.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.language.algebra.normal_form import Conjunction, NormalForm
from tidegate.language.algebra.work import Budget, OutOfWorkError, spend

_FEW = 4
"""So many conjunctions are compared one by one, without their keys."""


def covers(wide: NormalForm, narrow: NormalForm) -> bool:
    """Whether every event that matches ``narrow`` surely matches ``wide``."""
    try:
        with Budget():
            return all(_covers(wide, each) for each in narrow.conjunctions)
    except OutOfWorkError:
        return False


def overlaps(a: NormalForm, b: NormalForm) -> bool:
    """Whether some event could match both."""
    try:
        with Budget():
            return any(x.meets(y) for x in a.conjunctions for y in b.conjunctions)
    except OutOfWorkError:
        return True


def intersect(a: NormalForm, b: NormalForm) -> NormalForm:
    """The filter that matches what both match; raises OutOfWorkError."""
    with Budget():
        return NormalForm.joining(_products(a, b))


def merge(a: NormalForm, b: NormalForm) -> tuple[NormalForm, bool]:
    """The smallest single conjunction that covers both, and whether it is exact.

    Exact means that it matches nothing that neither of them matches. If the union of the two is one
    conjunction, that is the result; otherwise each attribute that all disjuncts constrain keeps the
    union of their value sets. A result that is called exact is; one of disjunctions may be exact
    without being called so.
    """
    with Budget():
        others = (each for each in b.conjunctions if each.key not in a.keys)
        both = NormalForm.joining(others, joined=a.conjunctions).conjunctions
        if len(both) <= 1:
            return NormalForm(both), True
        return NormalForm((both[0].hull(*both[1:]),)), False


def _covers(wide: NormalForm, narrow: Conjunction) -> bool:
    """Whether one conjunction of ``wide`` surely covers another conjunction."""
    if len(wide.conjunctions) > _FEW and narrow.key in wide.keys:
        return True
    return any(each.covers(narrow) for each in wide.conjunctions)


def _products(a: NormalForm, b: NormalForm) -> Iterator[Conjunction]:
    """Yields conjunctions whose union is what both match: the intersection of each pair.

    A conjunction that the other filter covers is yielded as it is, once; its intersections with the
    others lie within it.
    """
    covered_a = {id(x) for x in a.conjunctions if _covers(b, x)}
    covered_b = {id(y) for y in b.conjunctions if _covers(a, y)}
    yielded: set[int] = set()
    for x in a.conjunctions:
        for y in b.conjunctions if id(x) not in covered_a else ():
            if id(y) not in covered_b:
                spend(_product_steps(x, y))
                yield x.intersect(y)
            elif id(y) not in yielded:
                yielded.add(id(y))
                yield y
        if id(x) in covered_a:
            yield x


def _product_steps(a: Conjunction, b: Conjunction) -> int:
    """The steps of intersecting two conjunctions."""
    pairs = sum(
        len(values.strings) * len(b.sets[name].strings)
        for name, values in a.sets.items()
        if name in b.sets
    )
    return 1 + a.size + b.size + pairs

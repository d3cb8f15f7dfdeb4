"""Sets of strings: intervals in the order of code points, restricted by patterns.

Rule. A set is called empty, or within another, only if it surely is.

Theory of operation. Equality, order and prefix are intervals (`starts with 'ab'` is everything from
'ab' up to 'ac'). Suffix, substring and `like` are patterns that a string must match or must not
match. So a set is a list of spans with *required* and *excluded* patterns; a pattern that is a
literal or a prefix becomes a span, and a set of finitely many strings has no patterns at all. A set
is within another if it overlaps no part of the other's complement.

The answers are exact for equality, order, prefix and suffix, and their complements: a span is
either a few strings, which are tested one by one, or it contains some string with any continuation,
so that only suffixes can exclude each other. They are not exact
- for substring and `like`: patterns are compared by ``Glob.covers`` and ``Glob.disjoint``, which do
  not see that lengths differ or that two fragments must overlap;
- for very many patterns in very many spans (``_COMPARISONS_MAX``), which are not compared, and
  where the budget of work is used up (work.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.language.algebra.fragments import ANY_RUN
from tidegate.language.algebra.intervals import Intervals, Span, members, next_prefix, next_value
from tidegate.language.algebra.like import Glob
from tidegate.language.algebra.work import OutOfWorkError, spend
from tidegate.language.syntax import Operator
from tidegate.language.values import Kind

_ALL = Intervals.full(Kind.STRING)
_COMPARISONS_MAX = 4096
"""Comparisons of two patterns that one operation may take; beyond, patterns are just collected."""

Globs = frozenset[Glob]


@dataclass(frozen=True, slots=True)
class StringSet:
    """The strings inside ``spans`` that match all of ``required`` and none of ``excluded``.

    >>> stock = StringSet.of(Operator.STARTS_WITH, "N").intersect(
    ...     StringSet.of(Operator.ENDS_WITH, "SE"))
    >>> stock.contains("NYSE"), stock.contains("LSE")
    (True, False)
    """

    spans: Intervals = _ALL
    required: Globs = frozenset()
    excluded: Globs = frozenset()

    @classmethod
    def of(cls, operator: Operator, text: str) -> StringSet:
        """The strings that satisfy an operator; raises GlobError for a bad `like` pattern."""
        if operator is Operator.EQUAL:  # most predicates; `match` tries the cases in turn
            return cls(Intervals.of(operator, text))
        match operator:
            case Operator.STARTS_WITH:
                return cls(Intervals.starting_with(text))
            case Operator.NOT_STARTS_WITH:
                return cls(Intervals.starting_with(text).complement())
            case Operator.ENDS_WITH:
                return cls._reading(Glob.around(after=text))
            case Operator.NOT_ENDS_WITH:
                return cls._not_reading(Glob.around(after=text))
            case Operator.CONTAINS:
                return cls._reading(Glob.around(middle=text))
            case Operator.NOT_CONTAINS:
                return cls._not_reading(Glob.around(middle=text))
            case Operator.LIKE:
                return cls._reading(Glob.parse(text))
            case Operator.NOT_LIKE:
                return cls._not_reading(Glob.parse(text))
            case _:
                return cls(Intervals.of(operator, text))

    @classmethod
    def _reading(cls, glob: Glob) -> StringSet:
        exact = _as_spans(glob)
        if exact is not None:
            return cls(exact)
        # The span of the prefix follows from the pattern; it lets intervals decide most cases.
        return cls(Intervals.starting_with(glob.prefix), frozenset([glob]))

    @classmethod
    def _not_reading(cls, glob: Glob) -> StringSet:
        exact = _as_spans(glob)
        if exact is not None:
            return cls(exact.complement())
        return cls(_ALL, frozenset(), frozenset([glob]))

    @property
    def is_empty(self) -> bool:
        """Whether surely no string is in the set."""
        return not self.spans.spans

    @property
    def is_plain(self) -> bool:
        """Whether the set is intervals alone."""
        return not self.required and not self.excluded

    @property
    def size(self) -> int:
        """The number of its spans and patterns."""
        return len(self.spans.spans) + len(self.required) + len(self.excluded)

    def sort_key(self) -> tuple[str, ...]:
        """A key that orders string sets in a fixed way, so that equal unions compare equal."""
        patterns = [sorted(map(str, globs)) for globs in (self.required, self.excluded)]
        return (repr(self.spans.spans), *map(repr, patterns))

    def contains(self, text: str) -> bool:
        """Whether a string is in the set."""
        return self.spans.contains(text) and _matches(text, self.required, self.excluded)

    def intersect(self, *others: StringSet) -> StringSet:
        """The strings in all of the sets."""
        return StringSet(
            self.spans.intersect(*(each.spans for each in others)),
            self.required.union(*(each.required for each in others)),
            self.excluded.union(*(each.excluded for each in others)),
        )._tidied()

    def union(self, other: StringSet) -> StringSet | None:
        """The strings in either set; None if that is not known to be a single `StringSet`."""
        if self.within(other):
            return other
        if other.within(self):
            return self
        if (self.required, self.excluded) == (other.required, other.excluded):
            return StringSet(self.spans.union(other.spans), self.required, self.excluded)
        return None

    def meets(self, other: StringSet) -> bool:
        """Whether some string may be in both sets."""
        spend(6 + (self.size + other.size) // 8)
        spans = self.spans.intersect(other.spans)
        if not spans.spans:
            return False
        required, excluded = self.required | other.required, self.excluded | other.excluded
        return bool(_nonempty_spans(spans, required, excluded).spans)

    def within(self, other: StringSet) -> bool:
        """Whether every string of this set is surely in the other."""
        if self.is_plain and other.is_plain:
            return self.spans.within(other.spans)
        if self == other:
            return True
        return not any(self.meets(part) for part in other._complement())

    def _complement(self) -> Iterator[StringSet]:
        """Sets whose union is all strings that are not in this set, by De Morgan."""
        if not self.spans.is_full:
            yield StringSet(self.spans.complement())
        for glob in self.required:
            yield StringSet._not_reading(glob)
        for glob in self.excluded:
            yield StringSet._reading(glob)

    def _tidied(self) -> StringSet:
        """The same set without empty spans, and without patterns that follow from the others.

        A finite set keeps no patterns: each of its strings was tested. Without work left, the set
        stays as it is.
        """
        try:
            return self._without_needless()
        except OutOfWorkError:
            return self

    def _without_needless(self) -> StringSet:
        kept = _nonempty_spans(self.spans, self.required, self.excluded)
        if all(members(span) is not None for span in kept.spans):
            return StringSet(kept)
        if _is_too_much(kept, self.required, self.excluded):
            return StringSet(kept, self.required, self.excluded)
        required, excluded = self.required, self.excluded
        for glob in sorted(required, key=str):
            if _all_match(glob, kept, required - {glob}):
                required -= {glob}
        for glob in sorted(excluded, key=str):
            others = excluded - {glob}
            if any(each.covers(glob) for each in others) or _none_matches(glob, kept, required):
                excluded = others
        return StringSet(kept, required, excluded)


def _is_too_much(spans: Intervals, required: Globs, excluded: Globs) -> bool:
    """Whether comparing all patterns with each other, in each span, would take too long.

    The comparisons grow with the square of the patterns, of which a hostile filter can have
    thousands. Not comparing is sound: the set is then larger than it could be.
    """
    return len(spans.spans) * (len(required) + len(excluded)) ** 2 > _COMPARISONS_MAX


def _nonempty_spans(spans: Intervals, required: Globs, excluded: Globs) -> Intervals:
    """The spans without those in which surely no string matches as it must."""
    if not (required or excluded) or _is_too_much(spans, required, excluded):
        return spans
    kept = [each for span in spans.spans for each in _nonempty_part(span, required, excluded)]
    return Intervals(Kind.STRING, tuple(kept)).union()  # which joins the points that touch


def _nonempty_part(span: Span, required: Globs, excluded: Globs) -> list[Span]:
    """The span, or nothing if it is surely empty; of a few strings, those that match."""
    few = members(span)
    spend(6)
    if few is not None:
        spend(len(few) * (len(required) + len(excluded)))
        return [(each, next_value(each)) for each in few if _matches(str(each), required, excluded)]
    implied = list(_implied_globs(span, required))
    if any(a.disjoint(b) for a in implied for b in required):
        return []
    return [] if any(glob.covers(each) for glob in excluded for each in implied) else [span]


def _matches(text: str, required: Globs, excluded: Globs) -> bool:
    """Whether a text matches all of the required and none of the excluded patterns."""
    return all(glob.matches(text) for glob in required) and not any(
        glob.matches(text) for glob in excluded
    )


def _all_match(glob: Glob, spans: Intervals, required: Globs) -> bool:
    """Whether all strings of the spans that match the required patterns surely match ``glob``."""
    return all(
        any(glob.covers(each) for each in _implied_globs(span, required)) for span in spans.spans
    )


def _none_matches(glob: Glob, spans: Intervals, required: Globs) -> bool:
    """Whether no string of the spans that matches the required patterns matches ``glob``."""
    return all(
        any(each.disjoint(glob) for each in _implied_globs(span, required)) for span in spans.spans
    )


def _implied_globs(span: Span, required: Globs) -> Iterator[Glob]:
    """Patterns that all strings of a span match if they match the required ones.

    Besides those: the prefix that the strings of the span share, and that prefix with a required
    suffix. Prefix and suffix make one pattern only if they cannot overlap: 'aba' starts with 'ab'
    and ends with 'ba', but does not match 'ab%ba'.
    """
    yield from required
    prefix = _common_prefix(span)
    if prefix:
        yield Glob.around(before=prefix)
        for glob in required:
            if glob.tokens.startswith(ANY_RUN) and not _can_overlap(prefix, glob.suffix):
                yield Glob.around(before=prefix, after=glob.suffix)


def _as_spans(glob: Glob) -> Intervals | None:
    """The spans of a pattern that is a literal or a prefix; None for any other."""
    if glob.is_literal:
        return Intervals.of(Operator.EQUAL, glob.prefix)
    if glob.tokens == glob.prefix + ANY_RUN:
        return Intervals.starting_with(glob.prefix)
    return None


def _common_prefix(span: Span) -> str:
    """The longest prefix that all strings of a span share."""
    # Strings from `low` share its prefix as long as `high` does not pass the last string with it.
    # The longer the prefix, the earlier that last string.
    low, high = span
    shared = bisect_left(
        range(1, len(low) + 1), True, key=lambda length: not high <= next_prefix(low[:length])
    )
    return str(low[:shared])


def _can_overlap(prefix: str, suffix: str) -> bool:
    """Whether a string shorter than both together can start with one and end with the other.

    The suffix may lie within the prefix, or begin with the end of it. The latter is found in linear
    time (Knuth, Morris and Pratt, "Fast pattern matching in strings", SIAM J. Comput. 6(2), 1977).
    """
    if suffix in prefix:
        return True
    spend((len(prefix) + len(suffix)) // 8)
    # borders[n - 1]: how long a start of the suffix also ends its first n characters
    borders = [0]
    for char in suffix[1:]:
        borders.append(_grown(borders, suffix, borders[-1], char))
    length = 0
    for char in prefix:
        length = _grown(borders, suffix, length, char)
    return length > 0


def _grown(borders: list[int], suffix: str, length: int, char: str) -> int:
    """How long a start of the suffix ends a text, given that of the text without its last char."""
    while length and (length == len(suffix) or suffix[length] != char):
        length = borders[length - 1]
    return length + (suffix[length] == char)

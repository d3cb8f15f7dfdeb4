"""Sets of strings: intervals of the alphabet, cut down by patterns.

Equality, order and prefix are intervals (`starts with 'ab'` is everything from 'ab' up to 'ac'),
and those are exact. Suffix, substring and `like` are patterns that a string must or must not read
like; of those we know some things for sure (this suffix ends with that one) and for the rest give
the careful answer: a set is called empty, or part of another, only where it surely is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidegate.language.intervals import Intervals, Span, is_point, next_prefix
from tidegate.language.like import Glob
from tidegate.language.syntax import Operator
from tidegate.language.values import Kind

_ALL = Intervals.full(Kind.STRING)
_Implied = Callable[[Glob, Glob], bool]


@dataclass(frozen=True, slots=True)
class StringSet:
    """The strings inside ``spans`` that read like all of ``required`` and none of ``excluded``.

    >>> stock = StringSet.of(Operator.STARTS_WITH, "N").intersect(
    ...     StringSet.of(Operator.ENDS_WITH, "SE"))
    >>> stock.contains("NYSE"), stock.contains("LSE")
    (True, False)
    """

    spans: Intervals = _ALL
    required: frozenset[Glob] = frozenset()
    excluded: frozenset[Glob] = frozenset()

    @classmethod
    def of(cls, operator: Operator, text: str) -> StringSet:
        """The strings that satisfy an operator; raises GlobError for a bad `like` pattern."""
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

    def sort_key(self) -> tuple[str, ...]:
        """A key that puts equal sets of sets in one order."""
        patterns = [sorted(map(str, globs)) for globs in (self.required, self.excluded)]
        return (repr(self.spans.spans), *map(repr, patterns))

    def contains(self, text: str) -> bool:
        """Whether a string is in the set."""
        return self.spans.contains(text) and self._reads_right(text)

    def _reads_right(self, text: str) -> bool:
        return all(glob.matches(text) for glob in self.required) and not any(
            glob.matches(text) for glob in self.excluded
        )

    def intersect(self, other: StringSet) -> StringSet:
        """The strings in both sets."""
        return StringSet(
            self.spans.intersect(other.spans),
            self.required | other.required,
            self.excluded | other.excluded,
        )._tidied()

    def union(self, other: StringSet) -> StringSet | None:
        """The strings in either set; None where no single set says it."""
        if self.within(other):
            return other
        if other.within(self):
            return self
        if (self.required, self.excluded) == (other.required, other.excluded):
            return StringSet(self.spans.union(other.spans), self.required, self.excluded)
        return None

    def within(self, other: StringSet) -> bool:
        """Whether every string of this set is surely in the other."""
        return all(self._span_within(span, other) for span in self.spans.spans)

    def _span_within(self, span: Span, other: StringSet) -> bool:
        if is_point(span):
            return other.contains(span[0]) or not self._reads_right(span[0])
        if not Intervals(Kind.STRING, (span,)).within(other.spans):
            return False
        known = list(self._known_of(span))
        return all(any(glob.covers(each) for each in known) for glob in other.required) and all(
            any(mine.covers(glob) for mine in self.excluded)
            or any(each.disjoint(glob) for each in known)
            for glob in other.excluded
        )

    def _known_of(self, span: Span) -> Iterator[Glob]:
        """Patterns that every string of the set inside a span reads like."""
        prefix = _common_prefix(span)
        yield Glob.around(before=prefix)
        for glob in self.required:
            yield glob
            if glob.tokens[0] == "%" and not _overlap(prefix, glob.suffix):
                yield Glob.around(before=prefix, after=glob.suffix)

    def _tidied(self) -> StringSet:
        """The same set without patterns that say nothing new; exact where it is finite."""
        spans = tuple(
            span
            for span in self.spans.spans
            if (self._reads_right(span[0]) if is_point(span) else not self._surely_none(span))
        )
        kept = Intervals(Kind.STRING, spans)
        if kept.points() is not None:
            return StringSet(kept)
        required = _without_weaker(self.required, lambda glob, each: glob.covers(each))
        excluded = _without_weaker(self.excluded, lambda glob, each: each.covers(glob))
        return StringSet(kept, required, excluded)

    def _surely_none(self, span: Span) -> bool:
        known = list(self._known_of(span))
        return any(a.disjoint(b) for a in known for b in self.required) or any(
            glob.covers(each) for glob in self.excluded for each in known
        )


def _without_weaker(globs: frozenset[Glob], implied: _Implied) -> frozenset[Glob]:
    kept: list[Glob] = []
    for glob in sorted(globs, key=str):
        if not any(implied(glob, each) for each in kept):
            kept = [each for each in kept if not implied(each, glob)] + [glob]
    return frozenset(kept)


def _as_spans(glob: Glob) -> Intervals | None:
    """The strings of a pattern that is no more than one string or a prefix."""
    if glob.is_literal:
        return Intervals.of(Operator.EQUAL, glob.prefix)
    if glob == Glob.around(before=glob.prefix):
        return Intervals.starting_with(glob.prefix)
    return None


def _common_prefix(span: Span) -> str:
    """What all strings of a span start with."""
    low, high = span
    for length in range(len(low), 0, -1):
        if high <= next_prefix(low[:length]):
            return str(low[:length])
    return ""


def _overlap(prefix: str, suffix: str) -> bool:
    """Whether some end of ``prefix`` is a start of ``suffix``, or one lies inside the other."""
    return any(
        suffix.startswith(prefix[start:]) or prefix[start:].startswith(suffix)
        for start in range(len(prefix))
    )

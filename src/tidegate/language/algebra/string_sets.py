"""Sets of strings: intervals of the alphabet, cut down by patterns.

Equality, order and prefix are intervals (`starts with 'ab'` is everything from 'ab' up to 'ac').
Suffix, substring and `like` are patterns that a string must or must not read like. A set is called
empty, or part of another, only where it surely is.

That answer is exact for equality, order, prefix and suffix, and their complements: an interval is
either a few strings, which are looked at one by one, or it holds some string with anything behind
it, so that only suffixes can exclude each other. It is not exact
- for substring and `like`: of two patterns, what one demands is compared with what the other allows
  character by character, which does not see that lengths differ or that two pieces must overlap;
- for very many patterns in very many intervals (``_COMPARISONS_MAX``), which are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.language.algebra.intervals import Intervals, Span, members, next_prefix, next_value
from tidegate.language.algebra.like import Glob
from tidegate.language.syntax import Operator
from tidegate.language.values import Kind

_ALL = Intervals.full(Kind.STRING)
_COMPARISONS_MAX = 4096

Globs = frozenset[Glob]


@dataclass(frozen=True, slots=True)
class StringSet:
    """The strings inside ``spans`` that read like all of ``required`` and none of ``excluded``.

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
        if operator is Operator.EQUAL:  # first, because most are
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
        return self.spans.contains(text) and _reads(text, self.required, self.excluded)

    def intersect(self, *others: StringSet) -> StringSet:
        """The strings in all of the sets."""
        return StringSet(
            self.spans.intersect(*(each.spans for each in others)),
            self.required.union(*(each.required for each in others)),
            self.excluded.union(*(each.excluded for each in others)),
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

    def meets(self, other: StringSet) -> bool:
        """Whether some string may be in both sets."""
        spans = self.spans.intersect(other.spans)
        required, excluded = self.required | other.required, self.excluded | other.excluded
        return bool(_left(spans, required, excluded).spans)

    def within(self, other: StringSet) -> bool:
        """Whether every string of this set is surely in the other."""
        if self.is_plain and other.is_plain:
            return self.spans.within(other.spans)
        return not any(self.meets(part) for part in other._complement())

    def _complement(self) -> Iterator[StringSet]:
        """Sets that together are all strings that are not in this one."""
        if not self.spans.is_full:
            yield StringSet(self.spans.complement())
        for glob in self.required:
            yield StringSet._not_reading(glob)
        for glob in self.excluded:
            yield StringSet._reading(glob)

    def _tidied(self) -> StringSet:
        """The same set without patterns that follow from the rest; a finite set has none."""
        kept = _left(self.spans, self.required, self.excluded)
        if all(members(span) is not None for span in kept.spans):
            return StringSet(kept)
        if _is_too_much(kept, self.required, self.excluded):
            return StringSet(kept, self.required, self.excluded)
        required, excluded = self.required, self.excluded
        for glob in sorted(required, key=str):
            if _all_read_like(glob, kept, required - {glob}):
                required -= {glob}
        for glob in sorted(excluded, key=str):
            others = excluded - {glob}
            if any(each.covers(glob) for each in others) or _none_reads_like(glob, kept, required):
                excluded = others
        return StringSet(kept, required, excluded)


def _is_too_much(spans: Intervals, required: Globs, excluded: Globs) -> bool:
    """Whether comparing all patterns with each other, in each span, would take too long."""
    return len(spans.spans) * (len(required) + len(excluded)) ** 2 > _COMPARISONS_MAX


def _left(spans: Intervals, required: Globs, excluded: Globs) -> Intervals:
    """The spans without those in which surely nothing reads as it must."""
    if not (required or excluded) or _is_too_much(spans, required, excluded):
        return spans
    left = [each for span in spans.spans for each in _left_of(span, required, excluded)]
    return Intervals(Kind.STRING, tuple(left)).union()


def _left_of(span: Span, required: Globs, excluded: Globs) -> list[Span]:
    few = members(span)
    if few is not None:
        return [(each, next_value(each)) for each in few if _reads(str(each), required, excluded)]
    known = list(_known_of(span, required))
    if any(a.disjoint(b) for a in known for b in required):
        return []
    return [] if any(glob.covers(each) for glob in excluded for each in known) else [span]


def _reads(text: str, required: Globs, excluded: Globs) -> bool:
    """Whether a text reads like all of one and none of the other."""
    return all(glob.matches(text) for glob in required) and not any(
        glob.matches(text) for glob in excluded
    )


def _all_read_like(glob: Glob, spans: Intervals, required: Globs) -> bool:
    """Whether what reads as required surely reads like a pattern too."""
    return all(any(glob.covers(each) for each in _known_of(span, required)) for span in spans.spans)


def _none_reads_like(glob: Glob, spans: Intervals, required: Globs) -> bool:
    """Whether what reads as required surely does not read like a pattern."""
    return all(
        any(each.disjoint(glob) for each in _known_of(span, required)) for span in spans.spans
    )


def _known_of(span: Span, required: Globs) -> Iterator[Glob]:
    """Patterns that every string inside a span reads like that reads like the required ones."""
    yield from required
    prefix = _common_prefix(span)
    if prefix:
        yield Glob.around(before=prefix)
        for glob in required:
            if glob.tokens[0] == "%" and not _overlap(prefix, glob.suffix):
                yield Glob.around(before=prefix, after=glob.suffix)


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

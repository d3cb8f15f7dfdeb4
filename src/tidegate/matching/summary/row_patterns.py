r"""Operations on the general constraints of string rows.

Theory of operation. Every row pattern is a list of *pieces* with any text between them, the first
at the start and the last at the end: 'a' is `= 'a'`, ('a', '') a prefix, ('', 'a', '') a substring,
('', '') any text. So there is one operation for all kinds. One pattern covers another if it fits
the other's *outline*, which is the other with a character in the place of each gap that no text
has: what matches the outline can match that character only with a gap of its own.
"""

from __future__ import annotations

from tidegate.language.algebra.fragments import ANY_CHAR, ANY_RUN
from tidegate.language.algebra.intervals import members, next_prefix
from tidegate.language.algebra.like import Glob
from tidegate.language.algebra.string_sets import StringSet
from tidegate.matching.summary.tables import RowKind, RowPattern

ANY_TEXT = RowPattern(RowKind.ANY, ())

GAP = "\ud800"
"""Stands for a gap in an outline. A lone surrogate is not valid Unicode, so no text has it."""

SIBLINGS_MAX = 16
"""A range of strings becomes at most so many prefixes, else the one that all of them share."""


def pattern_of(pieces: tuple[str, ...]) -> RowPattern:
    """The row pattern with these pieces.

    >>> pattern_of(("a", "")), pattern_of(("", "x", "", ""))
    (RowPattern(kind=<RowKind.PREFIX: 2>, parts=('a',)), \
RowPattern(kind=<RowKind.CONTAINS: 4>, parts=('x',)))
    """
    if len(pieces) == 1:
        return RowPattern(RowKind.EQUAL, pieces)
    first, last = pieces[0], pieces[-1]
    middle = tuple(piece for piece in pieces[1:-1] if piece)
    if not middle and not (first and last):
        if first:
            return RowPattern(RowKind.PREFIX, (first,))
        return RowPattern(RowKind.SUFFIX, (last,)) if last else ANY_TEXT
    if len(middle) == 1 and not (first or last):
        return RowPattern(RowKind.CONTAINS, middle)
    return RowPattern(RowKind.LIKE, (first, *middle, last))


def pieces_of(pattern: RowPattern) -> tuple[str, ...]:
    """The pieces of a pattern."""
    match pattern.kind:
        case RowKind.ANY:
            return ("", "")
        case RowKind.PREFIX:
            return (*pattern.parts, "")
        case RowKind.SUFFIX:
            return ("", *pattern.parts)
        case RowKind.CONTAINS:
            return ("", *pattern.parts, "")
        case _:
            return pattern.parts


def outline_of(pattern: RowPattern) -> str:
    """The outline of a pattern: those that fit it cover the pattern."""
    return GAP.join(pieces_of(pattern))


def covers(wide: RowPattern, narrow: RowPattern) -> bool:
    """Whether every text that satisfies ``narrow`` satisfies ``wide``.

    >>> covers(pattern_of(("m", "t")), pattern_of(("micronet",)))
    True
    """
    return wide.fits(outline_of(narrow))


def literal_chars(pattern: RowPattern) -> int:
    """How many characters a pattern requires, with one for the end of a whole text."""
    return sum(map(len, pattern.parts)) + (pattern.kind is RowKind.EQUAL)


def joined(one: RowPattern, other: RowPattern) -> RowPattern:
    """A narrow pattern that covers both.

    The wider one if one covers the other; else what their ends share, or, if that is less, the
    start of their longest pieces.

    >>> joined(pattern_of(("abc",)), pattern_of(("abd", "")))
    RowPattern(kind=<RowKind.PREFIX: 2>, parts=('ab',))
    """
    if covers(one, other):
        return one
    if covers(other, one):
        return other
    a, b = pieces_of(one), pieces_of(other)
    prefix = _common_start(a[0], b[0])
    suffix = _common_start(a[-1][::-1], b[-1][::-1])[::-1]
    # In a whole text the two could overlap: 'aba' has the prefix 'ab' and the suffix 'ba'.
    room = min((len(pieces[0]) for pieces in (a, b) if len(pieces) == 1), default=None)
    if room is not None and len(prefix) + len(suffix) > room:
        suffix = suffix[len(prefix) + len(suffix) - room :]
    within = _common_start(max(a, key=len), max(b, key=len))
    if len(within) > len(prefix) + len(suffix):
        return pattern_of(("", within, ""))
    return pattern_of((prefix, suffix))


def _common_start(one: str, other: str) -> str:
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return one[:place]
    return min(one, other, key=len)


def patterns_of(strings: StringSet) -> list[tuple[RowPattern, bool]]:
    """Patterns one of which each string of a set satisfies, and whether only such strings do.

    The order of strings has no pattern but the prefix that all strings of a span share; of several
    patterns that a string must match, the one with the most characters is taken.
    """
    globs = [_of_glob(glob) for glob in sorted(strings.required, key=str)]
    best = max(globs, key=lambda each: literal_chars(each[0]), default=None)
    restricted = len(globs) > 1 or bool(strings.excluded)
    found: dict[RowPattern, bool] = {}
    for span in strings.spans.spans:
        for pattern, exact in _of_span(*span):
            if pattern.kind is RowKind.EQUAL:
                exact = strings.contains(pattern.parts[0])
            elif best is not None:
                pattern, exact = _both(pattern, *best, exact=exact and not restricted)
            else:
                exact = exact and not restricted
            found[pattern] = found.get(pattern, True) and exact
    return list(found.items())


def _both(
    span: RowPattern, glob: RowPattern, glob_exact: bool, *, exact: bool
) -> tuple[RowPattern, bool]:
    """A pattern of the strings of a span that match a glob.

    Prefix and suffix make one pattern unless they can overlap: 'aba' starts with 'ab' and ends
    with 'ba', but has not both.
    """
    if covers(span, glob):
        return glob, exact and glob_exact
    if (span.kind, glob.kind) == (RowKind.PREFIX, RowKind.SUFFIX):
        (prefix,), (suffix,) = span.parts, glob.parts
        if not any(prefix.endswith(suffix[:length]) for length in range(1, len(suffix) + 1)):
            return pattern_of((prefix, suffix)), exact and glob_exact
    return max(span, glob, key=literal_chars), False


def _of_glob(glob: Glob) -> tuple[RowPattern, bool]:
    """The pattern of a glob, and whether it is the same; a `_` is widened to `%`."""
    pieces = [""]
    for token in glob.tokens:
        if token in (ANY_CHAR, ANY_RUN):
            pieces.append("")
        else:
            pieces[-1] += token
    return pattern_of(tuple(pieces)), ANY_CHAR not in glob.tokens


def _of_span(low: str, high: object) -> list[tuple[RowPattern, bool]]:
    """Patterns of the strings from ``low`` to before ``high``, each with whether it is exact."""
    few = members((low, high))
    if few is not None:
        return [(pattern_of((str(each),)), True) for each in few]
    # `starts with 'a' or starts with 'b'` is the span from 'a' to 'c': siblings with one prefix.
    siblings: list[tuple[RowPattern, bool]] = []
    following: object = low
    while low and following != high and len(siblings) < SIBLINGS_MAX:
        prefix = str(following)
        following = next_prefix(prefix)
        if len(prefix) != len(low) or not isinstance(following, str):
            break
        siblings.append((pattern_of((prefix, "")), True))
        if following == high:
            return siblings
    if low and next_prefix(low) == high:
        return [(pattern_of((low, "")), True)]
    for length in range(len(low), 0, -1):
        bound = next_prefix(low[:length])
        if isinstance(bound, str) and isinstance(high, str) and high <= bound:
            return [(pattern_of((low[:length], "")), False)]
        if not isinstance(bound, str):
            return [(pattern_of((low[:length], "")), False)]
    return [(ANY_TEXT, low == "" and not isinstance(high, str))]

"""Which of many string patterns a text satisfies.

Every pattern has an anchor: a literal that stands at the start, at the end or anywhere in each text
that satisfies the pattern, or that is the whole text. For most patterns the converse holds too, and
finding the anchor is all there is to do. Another one (`like 'a%b'`) is anchored by the longest of
its literals, and where that is found the rest of the pattern is checked: first that its literals
follow one another, then, if it has a `_`, the meaning of the language. A pattern without literals
is anchored by the empty one, which stands at the start of every text.

Anchors at the start and at the end are looked up by each length that some anchor has; those
anywhere are found all at once by automata (Aho and Corasick, "Efficient string matching", CACM
18(6), 1975). An automaton cannot be added to without being linked anew, so there are several, each
much larger than the next, and a few recent literals in none of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

import ahocorasick
import numpy as np

from tidegate.language.algebra.like import ANY_CHAR, ANY_RUN, Glob, GlobToken
from tidegate.language.semantics import compares
from tidegate.language.syntax import Operator
from tidegate.matching.arrays import I32

ANCHOR_CHARS_MAX = 256
"""A longer literal is anchored by a part of it. The automaton frees its states recursively: one
literal of a million characters would overflow the stack of the process."""

RECENT_MAX = 64
MERGE_RATIO = 4

LAST = -1
"""Stands behind the last pattern of an anchor."""


class AnchorPlace(Enum):
    """Where in a text an anchor stands."""

    START = auto()
    END = auto()
    ANYWHERE = auto()
    WHOLE = auto()


@dataclass(frozen=True, slots=True)
class Anchor:
    """A literal that stands in its place in every text that satisfies a pattern.

    If it is ``exact``, every text in which it does satisfies the pattern.
    """

    place: AnchorPlace
    literal: str
    exact: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """The literals of a pattern, from the start of a text to its end; some may be empty.

    If there is only one, it is the whole text. If the outline is ``complete``, every text that it
    fits satisfies the pattern.
    """

    literals: tuple[str, ...]
    complete: bool = True

    @staticmethod
    def of(operator: Operator, text: str) -> Outline:
        """The outline of a pattern; raises GlobError."""
        match operator:
            case Operator.STARTS_WITH:
                return Outline((text, ""))
            case Operator.ENDS_WITH:
                return Outline(("", text))
            case Operator.CONTAINS:
                return Outline(("", text, ""))
            case Operator.LIKE:
                tokens = Glob.parse(text).tokens
                return Outline(_runs(tokens), complete=ANY_CHAR not in tokens)
        raise ValueError(f"{operator.value!r} is no pattern, or the complement of one")

    def fits(self, text: str) -> bool:
        """Whether the literals, two or more, stand in a text one after the other."""
        first, last = self.literals[0], self.literals[-1]
        if not (text.startswith(first) and text.endswith(last)):
            return False
        position, end = len(first), len(text) - len(last)
        for literal in self.literals[1:-1]:
            found = text.find(literal, position, end)
            if found < 0:
                return False
            position = found + len(literal)
        return position <= end

    def anchor(self) -> Anchor:
        """The longest literal, or as much of it as an anchor may have.

        >>> Outline.of(Operator.LIKE, "a%long%b").anchor()
        Anchor(place=<Place.ANYWHERE: 3>, literal='long', exact=False)
        """
        if len(self.literals) == 1:
            return Anchor(AnchorPlace.WHOLE, self.literals[0], exact=True)
        options = [
            (AnchorPlace.START, self.literals[0][:ANCHOR_CHARS_MAX]),
            (AnchorPlace.END, self.literals[-1][-ANCHOR_CHARS_MAX:]),
        ]
        options += [(AnchorPlace.ANYWHERE, each[:ANCHOR_CHARS_MAX]) for each in self.literals[1:-1]]
        # the first of the longest: a literal with a fixed place is preferred
        place, literal = max(options, key=lambda option: len(option[1]))
        is_all = sum(map(len, self.literals)) == len(literal)
        return Anchor(place, literal, exact=self.complete and is_all)


def _runs(tokens: tuple[GlobToken, ...]) -> tuple[str, ...]:
    """The literals before, between and behind the wildcards of a glob."""
    runs: list[list[str]] = [[]]
    for token in tokens:
        if token in (ANY_CHAR, ANY_RUN):
            runs.append([])
        else:
            runs[-1].append(token[1])
    return tuple(map("".join, runs))


class StringPatterns:
    """The string patterns that the filters on one attribute use, and which of them hold for a text.

    Any number of threads may ask at once while none adds patterns.

    >>> patterns = TextPatterns()
    >>> patterns.number(Operator.STARTS_WITH, "tide"), patterns.number(Operator.LIKE, "%g_te%")
    (0, 1)
    >>> patterns.satisfied("tidegate").tolist(), patterns.satisfied("gate").tolist()
    ([0, 1], [1])
    """

    def __init__(self) -> None:
        self._substrings = Substrings()
        self._literals: dict[AnchorPlace, _Literals] = {
            AnchorPlace.START: _Affixes(at_end=False),
            AnchorPlace.END: _Affixes(at_end=True),
            AnchorPlace.ANYWHERE: self._substrings,
            AnchorPlace.WHOLE: _Wholes(),
        }
        self._numbers: dict[tuple[Operator, str], int] = {}
        self._patterns: list[tuple[Operator, str]] = []
        self._outlines: dict[int, Outline] = {}  # of patterns whose anchor is not exact
        self._next: list[int] = []  # the patterns of an anchor are a chain, from its first one on

    def __len__(self) -> int:
        return len(self._patterns)

    def number(self, operator: Operator, text: str) -> int:
        """The number of `like`, `starts with`, `ends with` or `contains` a text, taken in if new.

        Raises GlobError for a bad `like` pattern, which neither `like` nor `not like` can satisfy.
        """
        pattern = (operator, text)
        number = self._numbers.get(pattern)
        if number is None:
            outline = Outline.of(operator, text)
            anchor = outline.anchor()
            number = self._numbers[pattern] = len(self._patterns)
            self._patterns.append(pattern)
            self._chain(anchor, number)
            if not anchor.exact:
                self._outlines[number] = outline
        return number

    def _chain(self, anchor: Anchor, number: int) -> None:
        """Put a pattern behind the first one of its anchor, or make it the first one."""
        literals = self._literals[anchor.place]
        first = literals.get(anchor.literal)
        if first is None:
            literals.add(anchor.literal, number)
            self._next.append(LAST)
        else:
            self._next.append(self._next[first])
            self._next[first] = number

    def settle(self) -> None:
        """Make searches fast again after patterns were added; without it they are right but slow.

        Cheap enough to be called after each pattern, and best called once after many.
        """
        self._substrings.settle()

    def satisfied(self, text: str) -> I32:
        """The numbers of the patterns that a text satisfies, in ascending order."""
        found: list[int] = []
        for literals in self._literals.values():
            for first in literals.within(text):
                number = first
                while number != LAST:
                    outline = self._outlines.get(number)
                    if outline is None or (outline.fits(text) and self._holds(number, text)):
                        found.append(number)
                    number = self._next[number]
        found.sort()
        return np.array(found, np.int32)

    def _holds(self, number: int, text: str) -> bool:
        """Whether a text that the outline of a pattern fits satisfies it."""
        return self._outlines[number].complete or compares(text, *self._patterns[number])

    def patterns(self) -> list[tuple[Operator, str]]:
        """All patterns, in the order of their numbers; numbered again in it, they keep them."""
        return list(self._patterns)


class _Literals(Protocol):
    """Literals for one place, each with the number of the first pattern that it anchors."""

    def get(self, literal: str) -> int | None: ...

    def add(self, literal: str, number: int) -> None: ...

    def within(self, text: str) -> Iterable[int]:
        """The numbers of the literals that stand in their place in a text, each once."""
        ...


class _Wholes:
    """Literals that are the whole text."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def get(self, literal: str) -> int | None:
        return self._numbers.get(literal)

    def add(self, literal: str, number: int) -> None:
        self._numbers[literal] = number

    def within(self, text: str) -> Iterable[int]:
        number = self._numbers.get(text)
        return () if number is None else (number,)


class _Affixes:
    """Literals at one end of a text, looked up by each length that some of them have."""

    def __init__(self, *, at_end: bool) -> None:
        self._at_end = at_end
        self._numbers: dict[str, int] = {}
        self._lengths: list[int] = []  # ascending

    def get(self, literal: str) -> int | None:
        return self._numbers.get(literal)

    def add(self, literal: str, number: int) -> None:
        self._numbers[literal] = number
        place = bisect_left(self._lengths, len(literal))
        if self._lengths[place : place + 1] != [len(literal)]:
            self._lengths.insert(place, len(literal))

    def within(self, text: str) -> Iterator[int]:
        for length in self._lengths:
            if length > len(text):
                break
            affix = text[len(text) - length :] if self._at_end else text[:length]
            number = self._numbers.get(affix)
            if number is not None:
                yield number


@dataclass(frozen=True, slots=True)
class SubstringPart:
    """Literals that are found by one automaton."""

    literals: list[str]
    automaton: Any


class Substrings:
    """Literals anywhere in a text.

    A literal goes into a new automaton only as often as the number of literals grows by some
    factor, as the entries of the index do; see index.py.
    """

    def __init__(self) -> None:
        self.parts: list[SubstringPart] = []  # the largest first
        self._recent: list[str] = []
        self._numbers: dict[str, int] = {}

    def get(self, literal: str) -> int | None:
        return self._numbers.get(literal)

    def add(self, literal: str, number: int) -> None:
        """Take in a literal that is not empty; an automaton would ignore an empty one."""
        self._numbers[literal] = number
        self._recent.append(literal)

    def settle(self) -> None:
        """Put the recent literals into an automaton if they are many."""
        if len(self._recent) <= RECENT_MAX:
            return
        literals, self._recent = self._recent, []
        while self.parts and len(literals) * MERGE_RATIO >= len(self.parts[-1].literals):
            literals += self.parts.pop().literals
        automaton = ahocorasick.Automaton(ahocorasick.STORE_INTS)
        for literal in literals:
            automaton.add_word(literal, self._numbers[literal])
        automaton.make_automaton()
        self.parts.append(SubstringPart(literals, automaton))

    def within(self, text: str) -> set[int]:
        # the state of a search is in its iterator, so that threads can share an automaton
        found = {self._numbers[literal] for literal in self._recent if literal in text}
        for part in self.parts:
            found.update([number for _, number in part.automaton.iter(text)])
        return found

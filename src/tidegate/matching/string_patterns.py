"""Which of many string patterns a text satisfies.

Theory of operation. Every pattern has an anchor: a literal at the start, at the end or anywhere in
each text that satisfies the pattern, or the whole text. For most patterns the converse holds too,
and finding the anchor is all there is to do. Another one (`like 'a%b'`) is anchored by the longest
of its literals, and where that is found the rest of the pattern is checked: first that its literals
follow one another, then, if it has a `_`, by the meaning of the language. A pattern without
literals is anchored by the empty one, at the start of every text.

Anchors at the start and at the end are looked up by each length that some anchor has; those
anywhere are found all at once by automata (Aho and Corasick, "Efficient string matching", CACM
18(6), 1975). An automaton cannot be extended without being built again, so there are several of
roughly geometric sizes, as the parts of the columnar index are, and a few recent literals in none
of them that are searched one by one. A removed literal stays in its automaton, where it leads to
nothing, until most literals of that automaton are removed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

import ahocorasick
import numpy as np

from tidegate.language.algebra.fragments import ANY_CHAR, ANY_RUN
from tidegate.language.algebra.like import Glob
from tidegate.language.semantics import compares
from tidegate.language.syntax import Operator
from tidegate.matching.arrays import I32

ANCHOR_CHARS_MAX = 256
"""Default length of an anchor; a longer literal is cut. The automaton frees its states recursively:
one literal of a million characters would overflow the stack of the process."""

RECENT_MAX = 64
"""Default number of literals that are in no automaton."""

MERGE_RATIO = 4
"""New literals are merged with the last automaton unless that has more than this many times as
many literals."""

LAST = -1
"""In place of the next pattern of an anchor, or of the one before: there is none."""


class AnchorPlace(Enum):
    """Where in a text an anchor is."""

    START = auto()
    END = auto()
    ANYWHERE = auto()
    WHOLE = auto()


@dataclass(frozen=True, slots=True)
class Anchor:
    """A literal that every text which satisfies a pattern has in a certain place.

    If it is ``exact``, the converse holds: every text with the literal there satisfies the pattern.
    """

    place: AnchorPlace
    literal: str
    exact: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """The literals of a pattern: the first at the start, the last at the end of a text.

    Some may be empty. If there is only one, it is the whole text. If the outline is ``complete``,
    every text that it fits satisfies the pattern; one with a `_` is not.
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
        """Whether a text has the literals, two or more, one after the other.

        Taking the first occurrence of each is enough: a later one leaves less for the rest.
        """
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

    def anchor(self, chars_max: int = ANCHOR_CHARS_MAX) -> Anchor:
        """The longest literal, cut to ``chars_max``.

        >>> Outline.of(Operator.LIKE, "a%long%b").anchor()
        Anchor(place=<AnchorPlace.ANYWHERE: 3>, literal='long', exact=False)
        """
        if len(self.literals) == 1:
            return Anchor(AnchorPlace.WHOLE, self.literals[0], exact=True)
        # Of equally long ones the first, because a literal with a fixed place is cheaper to find.
        place, literal = AnchorPlace.START, self.literals[0][:chars_max]
        chars = len(self.literals[0])
        if min(len(self.literals[-1]), chars_max) > len(literal):
            place, literal = AnchorPlace.END, self.literals[-1][-chars_max:]
        chars += len(self.literals[-1])
        for each in self.literals[1:-1]:
            if min(len(each), chars_max) > len(literal):
                place, literal = AnchorPlace.ANYWHERE, each[:chars_max]
            chars += len(each)
        return Anchor(place, literal, exact=self.complete and chars == len(literal))


def _runs(tokens: str) -> tuple[str, ...]:
    """The literals before, between and after the wildcards of a glob."""
    return tuple(tokens.replace(ANY_CHAR, ANY_RUN).split(ANY_RUN))


Pattern = tuple[Operator, str]
"""A pattern: `like`, `starts with`, `ends with` or `contains`, and its text."""


class StringPatterns:
    """The string patterns of the filters on one attribute, by number.

    The number of a removed pattern is given to another one. ``patterns`` are added with the numbers
    of their places; where there is None, the number is free.

    Any number of threads may call ``satisfied`` at once while none adds or removes patterns or
    flushes.

    >>> patterns = StringPatterns()
    >>> patterns.number(Operator.STARTS_WITH, "tide"), patterns.number(Operator.LIKE, "%g_te%")
    (0, 1)
    >>> patterns.satisfied("tidegate").tolist(), patterns.satisfied("gate").tolist()
    ([0, 1], [1])
    """

    def __init__(
        self,
        patterns: Sequence[Pattern | None] = (),
        *,
        anchor_chars_max: int = ANCHOR_CHARS_MAX,
        recent_max: int = RECENT_MAX,
        merge_ratio: int = MERGE_RATIO,
    ) -> None:
        self._anchor_chars_max = anchor_chars_max
        self._substrings = Substrings(recent_max=recent_max, merge_ratio=merge_ratio)
        self._literals: dict[AnchorPlace, _Literals] = {
            AnchorPlace.START: _Affixes(at_end=False),
            AnchorPlace.END: _Affixes(at_end=True),
            AnchorPlace.ANYWHERE: self._substrings,
            AnchorPlace.WHOLE: _Wholes(),
        }
        self._numbers: dict[Pattern, int] = {}
        self._patterns: list[Pattern | None] = []
        self._free: list[int] = []
        self._outlines: dict[int, Outline] = {}  # of patterns whose anchor is not exact
        # The patterns of an anchor are a list, linked both ways: its literal has the number of the
        # first, and these lists have for each pattern the next one and the one before.
        self._next: list[int] = []
        self._previous: list[int] = []
        for number, pattern in enumerate(patterns):
            self._extend()
            if pattern is None:
                self._free.append(number)
            else:
                self._add(pattern, number)

    def __len__(self) -> int:
        """How many patterns there are."""
        return len(self._numbers)

    def number(self, operator: Operator, text: str) -> int:
        """The number of a pattern (`like`, `starts with` and so on), which is added if it is new.

        Raises GlobError for a malformed `like` pattern, which no string satisfies, nor its
        complement.
        """
        pattern = (operator, text)
        number = self._numbers.get(pattern)
        if number is None:
            outline = Outline.of(operator, text)  # raises before anything is changed
            if not self._free:
                self._free.append(self._extend())
            number = self._free.pop()
            self._add(pattern, number, outline)
        return number

    def _extend(self) -> int:
        """Make room for another number, which is returned."""
        self._patterns.append(None)
        self._next.append(LAST)
        self._previous.append(LAST)
        return len(self._patterns) - 1

    def _add(self, pattern: Pattern, number: int, outline: Outline | None = None) -> None:
        """Give a number to a new pattern."""
        if outline is None:
            outline = Outline.of(*pattern)
        self._numbers[pattern] = number
        self._patterns[number] = pattern
        anchor = outline.anchor(self._anchor_chars_max)
        if not anchor.exact:
            self._outlines[number] = outline
        # It becomes the second one of its anchor, or the first if there is none.
        literals = self._literals[anchor.place]
        first = literals.get(anchor.literal)
        self._previous[number] = LAST if first is None else first
        self._next[number] = LAST if first is None else self._next[first]
        if first is None:
            literals.add(anchor.literal, number)
            return
        if self._next[first] != LAST:
            self._previous[self._next[first]] = number
        self._next[first] = number

    def remove(self, operator: Operator, text: str) -> None:
        """Remove a pattern; raises KeyError if there is none. Its number is free."""
        pattern = (operator, text)
        number = self._numbers.pop(pattern)
        self._patterns[number] = None
        self._outlines.pop(number, None)
        self._free.append(number)
        before, after = self._previous[number], self._next[number]
        if after != LAST:
            self._previous[after] = before
        if before != LAST:
            self._next[before] = after
            return
        anchor = Outline.of(operator, text).anchor(self._anchor_chars_max)
        literals = self._literals[anchor.place]
        if after == LAST:
            literals.remove(anchor.literal)
        else:
            literals.replace(anchor.literal, after)

    def flush(self) -> None:
        """Make searches fast again after patterns were added; without it they are right but slow.

        Cheap enough to be called after each pattern, and best called once after many.
        """
        self._substrings.flush()

    def satisfied(self, text: str) -> I32:
        """The numbers of the patterns that a text satisfies, in ascending order."""
        numbers: list[int] = []
        for literals in self._literals.values():
            for first in literals.within(text):
                number = first
                while number != LAST:
                    outline = self._outlines.get(number)
                    if outline is None or (outline.fits(text) and self._holds(number, text)):
                        numbers.append(number)
                    number = self._next[number]
        numbers.sort()
        return np.array(numbers, np.int32)

    def _holds(self, number: int, text: str) -> bool:
        """Whether a text that the outline of a pattern fits satisfies it."""
        pattern = self._patterns[number]
        assert pattern is not None
        return self._outlines[number].complete or compares(text, *pattern)

    def patterns(self) -> list[Pattern | None]:
        """All patterns, in the order of their numbers; None for a number that is free."""
        return list(self._patterns)


class _Literals(Protocol):
    """Anchors of one place, each with the number of the first pattern that it anchors."""

    def get(self, literal: str) -> int | None: ...

    def add(self, literal: str, number: int) -> None:
        """Add a literal that is new."""
        ...

    def replace(self, literal: str, number: int) -> None:
        """Give a literal another number."""
        ...

    def remove(self, literal: str) -> None: ...

    def within(self, text: str) -> Iterable[int]:
        """The numbers of the literals that a text has in this place, each once."""
        ...


class _Wholes:
    """Literals that are the whole text."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def get(self, literal: str) -> int | None:
        return self._numbers.get(literal)

    def add(self, literal: str, number: int) -> None:
        self._numbers[literal] = number

    replace = add

    def remove(self, literal: str) -> None:
        del self._numbers[literal]

    def within(self, text: str) -> Iterable[int]:
        number = self._numbers.get(text)
        return () if number is None else (number,)


class _Affixes:
    """Literals at the start or at the end of a text, looked up by each length that some have."""

    def __init__(self, *, at_end: bool) -> None:
        self._at_end = at_end
        self._numbers: dict[str, int] = {}
        self._lengths: list[int] = []  # ascending
        self._length_counts: dict[int, int] = {}

    def get(self, literal: str) -> int | None:
        return self._numbers.get(literal)

    def add(self, literal: str, number: int) -> None:
        self._numbers[literal] = number
        length = len(literal)
        count = self._length_counts.get(length, 0)
        self._length_counts[length] = count + 1
        if not count:
            insort(self._lengths, length)

    def replace(self, literal: str, number: int) -> None:
        self._numbers[literal] = number

    def remove(self, literal: str) -> None:
        del self._numbers[literal]
        length = len(literal)
        self._length_counts[length] -= 1
        if not self._length_counts[length]:
            del self._length_counts[length]
            self._lengths.remove(length)

    def within(self, text: str) -> Iterator[int]:
        for length in self._lengths:
            if length > len(text):
                break
            affix = text[len(text) - length :] if self._at_end else text[:length]
            number = self._numbers.get(affix)
            if number is not None:
                yield number


@dataclass(slots=True)
class SubstringPart:
    """An automaton, the literals that it finds by their places, and how many of them are gone."""

    literals: list[str]
    automaton: Any
    removed: int = 0


class Substrings:
    """Literals anywhere in a text, in automata that are merged as they grow.

    A literal is put into another automaton only when the number of literals has grown by a factor,
    or when most literals of its automaton were removed.
    """

    def __init__(self, *, recent_max: int = RECENT_MAX, merge_ratio: int = MERGE_RATIO) -> None:
        self._recent_max = recent_max
        self._merge_ratio = merge_ratio
        self.parts: list[SubstringPart] = []  # the largest first
        self._recent: dict[str, None] = {}
        self._numbers: dict[str, int] = {}

    def get(self, literal: str) -> int | None:
        return self._numbers.get(literal)

    def add(self, literal: str, number: int) -> None:
        """Add a literal that is not empty; an automaton would ignore an empty one."""
        self._numbers[literal] = number
        part = self._part_of(literal)
        if part is None:
            self._recent[literal] = None
        else:
            part.removed -= 1  # it is back where it was

    def replace(self, literal: str, number: int) -> None:
        self._numbers[literal] = number

    def remove(self, literal: str) -> None:
        del self._numbers[literal]
        if literal in self._recent:
            del self._recent[literal]
            return
        part = self._part_of(literal)
        assert part is not None
        part.removed += 1

    def _part_of(self, literal: str) -> SubstringPart | None:
        """The part whose automaton has a literal, perhaps a removed one."""
        return next((part for part in self.parts if literal in part.automaton), None)

    def flush(self) -> None:
        """Build an automaton of the recent literals if they are many."""
        for part in [part for part in self.parts if 2 * part.removed > len(part.literals)]:
            self.parts.remove(part)
            self._recent.update(dict.fromkeys(self._present(part)))
        if len(self._recent) <= self._recent_max:
            return
        literals, self._recent = list(self._recent), {}
        while self.parts and len(literals) * self._merge_ratio >= len(self.parts[-1].literals):
            literals += self._present(self.parts.pop())
        automaton = ahocorasick.Automaton(ahocorasick.STORE_INTS)
        for place, literal in enumerate(literals):
            automaton.add_word(literal, place)
        automaton.make_automaton()
        self.parts.append(SubstringPart(literals, automaton))

    def _present(self, part: SubstringPart) -> list[str]:
        """The literals of a part that were not removed."""
        return [literal for literal in part.literals if literal in self._numbers]

    def within(self, text: str) -> list[int]:
        # The state of a search is in its iterator, so threads can share an automaton.
        found = {literal for literal in self._recent if literal in text}
        for part in self.parts:
            found.update([part.literals[place] for _, place in part.automaton.iter(text)])
        numbers = self._numbers
        return [numbers[literal] for literal in found if literal in numbers]

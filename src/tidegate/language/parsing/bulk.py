"""Parsing many filters: texts, and parts of texts, that differ only in literals are parsed once.

Rule. The result is the one of the full parser, errors included: whatever is unusual is left to it.

Theory of operation. One regular expression cuts a text at its literals. The rest, the *frame*,
decides how the text parses (see templates.py). So the first text of a frame is parsed in full and
makes a template; for every later one, its literals are converted and put into their slots.

Where nearly every text combines attributes in its own way, frames do not repeat. So a text with an
unknown frame is also cut at each `and`. Parts that are known as single predicates are put together;
an unknown part is first parsed by itself. The result is that of parsing the whole text: the grammar
lets an `and` or the end follow a predicate, and the parser is in the same state before each part.
The `and` of a `between` is not a cut. A text with an `or`, which binds less tightly, or with a
parenthesis that a cut would split, is parsed in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from tidegate.errors import FilterError
from tidegate.language.expressions import Constant, ParameterRef
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.parsing.parser import Parser
from tidegate.language.parsing.templates import Template, Term, UnusualLiteralError, conjunction
from tidegate.language.parsing.value_parser import Literal
from tidegate.language.shapes import Row, Shape, row_of, split
from tidegate.language.syntax import Predicate

KEPT_CHARS_MAX = 1_000_000
"""The characters of frames and parts that a parser keeps; beyond that it forgets all of them.

All at once, which needs no bookkeeping for each use; a workload whose frames fit never gets there.
"""

SEEN_MAX = 8192
"""The number of recent frames of which a parser keeps a hash."""

# The first character is one class, because then the search skips all other characters quickly; the
# lookbehinds find out which of the three it was. The quantifiers are possessive, as in tokens.py. A
# digit after a letter, a dot, a colon or an @ belongs to a name.
_LITERAL = re.compile(
    r"""(['"0-9](?:
          (?<=')[^']*+(?:''[^']*+)*+'
        | (?<=")[^"]*+(?:""[^"]*+)*+"
        | (?<=[0-9])(?<![\w.:@].)[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?
    ))""",
    re.VERBOSE,
)
_HOLE = "?"  # replaces a literal; a valid text has no ? outside of strings and backticks
_AND = re.compile(r"\sand\s", re.IGNORECASE)
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\b", re.IGNORECASE)


class BulkParser:
    """Parses filter texts to shapes and rows; the more their frames repeat, the faster.

    >>> parser = BulkParser()
    >>> shape, row = parser.read("price < 10 and symbol = 'IBM'")
    >>> print(shape, row)
    price < ? and symbol = ? (10, 'IBM')
    >>> parser.read("price < 12.5 and symbol = 'SUN'") == (shape, (12.5, 'SUN'))
    True
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._templates: dict[tuple[str, ...], Template] = {}
        """By frame."""
        self._parts: dict[str, tuple[Term, ...]] = {}
        """By part of a frame, with holes; no terms where the part has to be parsed in full."""
        self._kept_chars = 0
        self._seen = [0] * SEEN_MAX
        """Hashes of recent frames: a direct-mapped cache."""

    def read(self, text: str) -> tuple[Shape, Row]:
        """The shape and row of one text; raises FilterError."""
        if isinstance(text, str) and len(text) <= self._limits.length_chars_max:
            # The pattern has one group, so split() returns frame and literals in turns.
            fragments = _LITERAL.split(text)
            frame, literals = tuple(fragments[::2]), fragments[1::2]
            template = self._templates.get(frame) or self._assemble(frame, literals)
            if template is not None:
                try:
                    return template.shape, template.row(literals)
                except UnusualLiteralError:
                    pass
        return self._parse_in_full(text)

    def read_many(self, texts: Iterable[str]) -> Iterator[tuple[Shape, Row]]:
        """The shapes and rows of many texts, in their order."""
        return map(self.read, texts)

    def _parse_in_full(self, text: str) -> tuple[Shape, Row]:
        parser = Parser(text, self._limits)
        shape, filled = split(parser.filter())
        if _is_plain(text, filled, parser.literals):
            frame = tuple(_LITERAL.split(text)[::2])
            self._make_room(len(text))
            self._templates[frame] = Template.of(shape, filled, parser.literals)
        return shape, row_of(filled)

    def _assemble(self, frame: tuple[str, ...], literals: Sequence[str]) -> Template | None:
        """The template of a frame from its parts; None if the text has to be parsed in full."""
        text = _HOLE.join(frame)
        # Predicates, values and operations have a character each: a text of no more characters than
        # cost_max cannot exceed that limit, and only the full parser checks it.
        if len(text) > self._limits.cost_max or not _can_be_cut(text, len(literals)):
            return None
        terms: list[tuple[Term, int]] = []
        before = 0
        for part in _parts(text):
            count = part.count(_HOLE)
            known = self._parts.get(part)
            if known is None:
                known = self._learn_part(part, literals[before : before + count])
            if not known:
                return None
            terms += [(term, before) for term in known]
            before += count
        template = conjunction(terms)
        if self._was_seen_recently(frame):
            self._make_room(len(text))
            self._templates[frame] = template
        return template

    def _was_seen_recently(self, frame: tuple[str, ...]) -> bool:
        """Whether a frame came not long ago; one that does not repeat is not worth keeping.

        Two frames with one hash are mistaken for each other; then one is kept too early.
        """
        mark = hash(frame)
        index = mark % SEEN_MAX
        before, self._seen[index] = self._seen[index], mark
        return before == mark

    def _learn_part(self, part: str, literals: Sequence[str]) -> tuple[Term, ...]:
        """The term of a part that is a predicate, or the two of a `between`; else no terms."""
        if _OR.search(part) or part.count("(") != part.count(")"):
            return ()
        pairs = zip_longest(part.split(_HOLE), literals, fillvalue="")
        text = "".join(fragment for pair in pairs for fragment in pair)
        try:
            parser = Parser(text, self._limits)
            node = parser.filter()
        except FilterError:
            return ()
        shape, filled = split(node)
        terms: tuple[Term, ...] = ()
        if (
            isinstance(node, Predicate)
            and len(shape.disjuncts) == 1
            and _is_plain(text, filled, parser.literals)
        ):
            terms = Template.of(shape, filled, parser.literals).terms()
        self._make_room(len(part))
        self._parts[part] = terms
        return terms

    def _make_room(self, chars: int) -> None:
        """Count characters about to be kept; forget everything kept before if they are too many."""
        self._kept_chars += chars
        if self._kept_chars > KEPT_CHARS_MAX:
            self._templates.clear()
            self._parts.clear()
            self._kept_chars = chars


def _is_plain(text: str, filled: list[Constant | ParameterRef], literals: list[Literal]) -> bool:
    """Whether the regular expression found the parser's literals, and each of them has a slot.

    One without a slot, as in `true or x < 1`, would go unchecked in later texts.
    """
    cuts = [cut.span() for cut in _LITERAL.finditer(text)]
    used = {id(leaf) for leaf in filled}
    return cuts == [(each.token.start, each.token.end) for each in literals] and all(
        id(each.constant) in used for each in literals
    )


def _can_be_cut(text: str, literals: int) -> bool:
    """Whether each `and` in a text with holes is the keyword, and each hole a literal.

    A quote or backtick that is left could have an `and` or a `?` inside.
    """
    return text.count(_HOLE) == literals and not any(mark in text for mark in "'\"`")


def _parts(text: str) -> list[str]:
    """The parts between the `and`s of a text, with both bounds of a `between` in one part."""
    parts = _AND.split(text)
    if "between" not in text.lower():
        return parts
    rest = iter(parts)
    return [f"{each} and {next(rest, '')}" if _BETWEEN.search(each) else each for each in rest]

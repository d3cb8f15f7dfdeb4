"""Reading many filters: what differs only in its literals, texts or parts of texts, is parsed once.

Theory of operation. One regular expression cuts a text at its literals. What is left decides how
the text parses (see templates.py). So the first text of its kind is parsed in full, and for every
later one the literals are converted and put in their slots.

Where nearly every text combines attributes in a way of its own, a text that was not seen before is
also cut at each `and`. Parts that are known as single predicates are put together; one that is not
known is parsed by itself first. That gives what parsing the whole text would: the grammar lets an
`and` or the end follow a predicate, and the parser is at the same place in it before each part. The
`and` of a `between` is no cut. A text with an `or`, which binds less tightly, or with a parenthesis
that would be cut in two, is parsed in full, as is everything else that is unusual; so errors are
the parser's own.
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
"""How much text of templates and of parts a parser keeps before it starts anew."""

SEEN_MAX = 8192
"""Of how many texts a parser remembers that it has seen them."""

# One character class first, because that lets the search skip all other characters quickly. A digit
# behind a letter, a dot, a colon or an @ belongs to a name.
_LITERAL = re.compile(
    r"""(['"0-9](?:
          (?<=')[^']*+(?:''[^']*+)*+'
        | (?<=")[^"]*+(?:""[^"]*+)*+"
        | (?<=[0-9])(?<![\w.:@].)[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?
    ))""",
    re.VERBOSE,
)
_HOLE = "?"  # stands for a literal; a text has none outside of strings and backticks
_AND = re.compile(r"\sand\s", re.IGNORECASE)
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\b", re.IGNORECASE)


class BulkParser:
    """Splits filter texts into shapes and rows; the more they repeat, the faster.

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
        self._parts: dict[str, tuple[Term, ...]] = {}
        self._kept_chars = 0
        self._seen = [0] * SEEN_MAX

    def read(self, text: str) -> tuple[Shape, Row]:
        """The shape and row of one text; raises FilterError."""
        if isinstance(text, str) and len(text) <= self._limits.length_chars_max:
            pieces = _LITERAL.split(text)
            rest, literals = tuple(pieces[::2]), pieces[1::2]
            template = self._templates.get(rest) or self._assembled(rest, literals)
            if template is not None:
                try:
                    return template.shape, template.row(literals)
                except UnusualLiteralError:
                    pass
        return self._read_in_full(text)

    def read_many(self, texts: Iterable[str]) -> Iterator[tuple[Shape, Row]]:
        """The shapes and rows of many texts, in their order."""
        return map(self.read, texts)

    def _read_in_full(self, text: str) -> tuple[Shape, Row]:
        parser = Parser(text, self._limits)
        shape, filled = split(parser.filter())
        if _is_plain(text, filled, parser.literals):
            rest = tuple(_LITERAL.split(text)[::2])
            self._make_room(len(text))
            self._templates[rest] = Template.of(shape, filled, parser.literals)
        return shape, row_of(filled)

    def _assembled(self, rest: tuple[str, ...], literals: Sequence[str]) -> Template | None:
        """The template of a text from those of its parts; None if it has to be parsed in full."""
        text = _HOLE.join(rest)
        if len(text) > self._limits.cost_max or not _can_be_cut(text, len(literals)):
            return None
        terms: list[tuple[Term, int]] = []
        before = 0
        for part in _parts(text):
            count = part.count(_HOLE)
            known = self._parts.get(part)
            if known is None:
                known = self._learned(part, literals[before : before + count])
            if not known:
                return None
            terms += [(term, before) for term in known]
            before += count
        template = conjunction(terms)
        if self._is_seen_again(rest):
            self._make_room(len(text))
            self._templates[rest] = template
        return template

    def _is_seen_again(self, rest: tuple[str, ...]) -> bool:
        """Whether such a text came not long ago; what does not come again is not worth keeping."""
        mark = hash(rest)
        place = mark % SEEN_MAX
        before, self._seen[place] = self._seen[place], mark
        return before == mark

    def _learned(self, part: str, literals: Sequence[str]) -> tuple[Term, ...]:
        """The predicate that a part is, or the two of a `between`; none if it is anything else."""
        if _OR.search(part) or part.count("(") != part.count(")"):
            return ()
        pieces = zip_longest(part.split(_HOLE), literals, fillvalue="")
        text = "".join(piece for pair in pieces for piece in pair)
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
        """Before something of so many characters is kept."""
        self._kept_chars += chars
        if self._kept_chars > KEPT_CHARS_MAX:
            self._templates.clear()
            self._parts.clear()
            self._kept_chars = chars


def _is_plain(text: str, filled: list[Constant | ParameterRef], literals: list[Literal]) -> bool:
    """Whether the cut found the literals that the parser found, and each of them has a slot.

    One without a slot, as in `true or x < 1`, would go unchecked in later texts.
    """
    found = [cut.span() for cut in _LITERAL.finditer(text)]
    used = {id(leaf) for leaf in filled}
    return found == [(each.token.start, each.token.end) for each in literals] and all(
        id(each.constant) in used for each in literals
    )


def _can_be_cut(text: str, literals: int) -> bool:
    """Whether each `and` in a text with holes is the word, and each hole a literal."""
    return text.count(_HOLE) == literals and not any(mark in text for mark in "'\"`")


def _parts(text: str) -> list[str]:
    """What stands between the words `and`, with both bounds of a `between` in one part."""
    parts = _AND.split(text)
    if "between" not in text.lower():
        return parts
    rest = iter(parts)
    return [f"{each} and {next(rest, '')}" if _BETWEEN.search(each) else each for each in rest]

"""The grammar of docs/filters.md: the parser reads whatever the grammar writes."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator

import tidegate
from support import pages
from support.pages import said
from tidegate.language.expressions import CHOICES, FUNCTIONS
from tidegate.language.syntax import RESERVED

TERMINALS = {
    "NUMBER": ["0", "10", "2.5", ".5", "1e3"],
    "STRING": ["'IBM'", '"it\'s"', "'100%'", "''"],
    "NAME": ["x", "quote.price", "t", "Price"],
    "QUOTED_NAME": ["`content-type`", "`in`"],
    "WORD": ["limit", "load_2"],
    "TIME": ["'2026-01-02'", "'2026-01-02T03:04:05.5+01:00'"],
}
TOKEN = re.compile(r'"[^"]+"|\w+|[=|;()\[\]{}]')
CLOSING = {"(": ")", "[": "]", "{": "}"}
TEXTS = 500


class Grammar:
    """The grammar of the page, read so that it can write texts of its own."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, list[str]] = {}
        for rule in text.split(" ;\n"):
            name, _, body = rule.strip().partition("=")
            if name:
                self.rules[name.strip()] = TOKEN.findall(body)

    def write(self, rule: str, rng: random.Random, depth: int = 0) -> str:
        words = list(self._choose(self.rules[rule], rng, depth))
        return " ".join(words).replace(": ", ":").replace("@ ", "@")

    def _choose(self, tokens: list[str], rng: random.Random, depth: int) -> Iterator[str]:
        choices = list(_split(tokens))
        # Deep inside, the shortest choice: it leads out.
        chosen = min(choices, key=len) if depth > 12 else rng.choice(choices)
        index = 0
        while index < len(chosen):
            token = chosen[index]
            if token in CLOSING:
                end = _closing(chosen, index)
                for _ in range(_repeats(token, rng, depth)):
                    yield from self._choose(chosen[index + 1 : end], rng, depth + 1)
                index = end
            elif token.startswith('"'):
                yield token[1:-1]
            elif token in TERMINALS:
                yield rng.choice(TERMINALS[token])
            else:
                yield self.write(token, rng, depth + 1)
            index += 1


def _repeats(opening: str, rng: random.Random, depth: int) -> int:
    if opening == "(":
        return 1
    return rng.choice([0, 0, 1] if opening == "[" else [0, 0, 1, 2]) if depth <= 12 else 0


def _closing(tokens: list[str], index: int) -> int:
    depth = 0
    for position in range(index, len(tokens)):
        depth += (tokens[position] in CLOSING) - (tokens[position] in CLOSING.values())
        if depth == 0:
            return position
    raise AssertionError("a bracket of the grammar is not closed")


def _split(tokens: list[str]) -> Iterator[list[str]]:
    """The alternatives of a rule, or of a part of one."""
    depth, start = 0, 0
    for position, token in enumerate(tokens):
        depth += (token in CLOSING) - (token in CLOSING.values())
        if token == "|" and depth == 0:
            yield tokens[start:position]
            start = position + 1
    yield tokens[start:]


def test_what_the_grammar_writes_can_be_read() -> None:
    sections = pages.read("docs/filters.md")
    (text,) = [block.text for each in sections for block in each.blocks if block.language == "ebnf"]
    (extra,) = [each for each in sections if each.title == "What the grammar does not show"]
    exceptions = [row.cells["error"] for row in extra.rows]
    assert set(re.findall(r'"(\w+)"', text)) >= RESERVED | {*FUNCTIONS, *CHOICES}
    grammar = Grammar(text)
    reasons = [refusal(grammar.write("pattern", random.Random(seed))) for seed in range(TEXTS)]
    unexpected = [
        reason
        for reason in reasons
        if reason is not None and not any(said(each, reason) for each in exceptions)
    ]
    assert unexpected == []
    assert reasons.count(None) > TEXTS // 3


def refusal(text: str) -> str | None:
    """Why the parser refuses a text; None if it takes it, or if it is only too large."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tidegate.NeverMatchesWarning)
            tidegate.parse_pattern(text)
    except tidegate.FilterLimitError:
        return None
    except tidegate.FilterError as error:
        return str(error)
    return None

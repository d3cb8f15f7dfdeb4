"""Random filters, patterns, advertisements and events over a few attributes, much of it covered."""

from __future__ import annotations

from random import Random

from tidegate.language.advertisements import Advertisement, parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.patterns import Pattern

NUMBERS = ("x", "y", "z")
TEXTS = ("kind", "place")
WORDS = ("a", "ab", "abc", "b", "ba")
VALUE_MAX = 9


def random_filter(random: Random) -> Filter:
    """A filter."""
    ways = 2 if random.random() < 0.1 else 1
    return parse(" or ".join(_conjunction(random) for _ in range(ways)))


def _conjunction(random: Random) -> str:
    count = random.choice((1, 1, 1, 2, 2, 3))
    names = random.sample((*NUMBERS, *TEXTS), count)
    return " and ".join(_constraint(random, name) for name in names)


def _constraint(random: Random, name: str) -> str:
    if random.random() < 0.1:
        return f"{name} is not null"
    if name in TEXTS:
        operator = random.choice(("=", "!=", "starts with", "ends with", "contains", ">="))
        return f"{name} {operator} '{random.choice(WORDS)}'"
    low = random.randint(0, VALUE_MAX)
    shape = random.randrange(4)
    if shape == 0:
        return f"{name} between {low} and {random.randint(low, VALUE_MAX)}"
    if shape == 1:
        return f"{name} in ({low}, {random.randint(0, VALUE_MAX)})"
    return f"{name} {random.choice(('<', '<=', '>', '>=', '=', '!='))} {low}"


def random_advertisement(random: Random) -> Advertisement:
    """An advertisement, mostly of all attributes."""
    names = (*NUMBERS, *TEXTS)
    chosen = names if random.random() < 0.8 else random.sample(names, random.randint(1, len(names)))
    strictness = random.choice((0.0, 0.2, 0.5))
    parts = (
        f"{name} is not null" if random.random() >= strictness else _constraint(random, name)
        for name in chosen
    )
    return parse_advertisement(" and ".join(parts))


def random_pattern(random: Random) -> Pattern:
    """A pattern of two to four steps."""
    names = [random.choice((*NUMBERS, *TEXTS)) for _ in range(random.randint(2, 4))]
    steps = tuple(parse(_constraint(random, name)) for name in names)
    return Pattern(steps, random.choice((None, None, 0.25, 0.5, 5.0)))


def random_event(random: Random) -> Event:
    """An event, from which some attributes may be absent."""
    numbers = {name: random.randint(0, VALUE_MAX) for name in NUMBERS if random.random() < 0.8}
    texts = {name: random.choice(WORDS) for name in TEXTS if random.random() < 0.8}
    return Event.of({**numbers, **texts})

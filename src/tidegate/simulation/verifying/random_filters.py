"""Random filters, with and without parameters, patterns, advertisements and events.

All use a few attributes with few values, so that filters often cover each other and events often
match. Otherwise random runs would rarely reach the interesting cases.
"""

from __future__ import annotations

from random import Random

from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic
from tidegate.language.filters import Filter, parse
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.values import Value

NUMBERS = ("x", "y", "z")
STRINGS = ("kind", "place")
WORDS = ("a", "ab", "abc", "b", "ba")
VALUE_MAX = 9


def random_filter(random: Random) -> Filter:
    """Draw a filter without parameters."""
    disjuncts = 2 if random.random() < 0.1 else 1
    return parse(" or ".join(_conjunction(random) for _ in range(disjuncts)))


def _conjunction(random: Random) -> str:
    count = random.choice((1, 1, 1, 2, 2, 3))
    names = random.sample((*NUMBERS, *STRINGS), count)
    return " and ".join(_constraint(random, name) for name in names)


def _constraint(random: Random, name: str) -> str:
    if random.random() < 0.1:
        return f"{name} is not null"
    if name in STRINGS:
        operator = random.choice(("=", "!=", "starts with", "ends with", "contains", ">="))
        return f"{name} {operator} '{random.choice(WORDS)}'"
    low = random.randint(0, VALUE_MAX)
    shape = random.randrange(4)
    if shape == 0:
        return f"{name} between {low} and {random.randint(low, VALUE_MAX)}"
    if shape == 1:
        return f"{name} in ({low}, {random.randint(0, VALUE_MAX)})"
    return f"{name} {random.choice(('<', '<=', '>', '>=', '=', '!='))} {low}"


PARAMETRIC_FILTERS = (
    "x < :n",
    "x >= :n and kind = :word",
    "x between :n - 2 and :n + :m",
    "y in (:n, :m) or z > :n",
    "kind starts with :word and y <= :n",
    "x < :n + t",
    "x between t % 10 - 2 and t % 10 + 2",
    "x between :n - t and :n + t and kind = :word",
    "y < 5 + :m * sin(t)",
    "y >= abs(:n - t / 2) or x = :n",
    "z > min(:n, t) and z <= max(:m, 9 - t)",
    "z < @v",
    "x <= :n and y >= @v - t",
)


def random_parametric_filter(random: Random) -> Filter:
    """Draw a filter with some of the parameters :n, :m and :word; some evolve."""
    return parse(random.choice(PARAMETRIC_FILTERS))


def random_parameters(random: Random, filter: Filter) -> dict[str, Value]:
    """Draw values for the parameters of such a filter; some are left without one."""
    values: dict[str, Value] = {
        "n": random.randint(0, VALUE_MAX),
        "m": random.choice((0, 1, 2.5, VALUE_MAX)),
        "word": random.choice(WORDS),
    }
    return {name: values[name] for name in filter.parameters if random.random() < 0.9}


def random_evolve_mode(random: Random) -> Evolve | None:
    """Draw an evolve mode, or none."""
    return random.choice((None, Lazy(), Periodic(0.3), Cached(0.5)))


def random_advertisement(random: Random) -> Advertisement:
    """Draw an advertisement, mostly of all attributes."""
    names = (*NUMBERS, *STRINGS)
    chosen = names if random.random() < 0.8 else random.sample(names, random.randint(1, len(names)))
    strictness = random.choice((0.0, 0.2, 0.5))
    parts = (
        f"{name} is not null" if random.random() >= strictness else _constraint(random, name)
        for name in chosen
    )
    return parse_advertisement(" and ".join(parts))


def random_pattern(random: Random) -> Pattern:
    """Draw a pattern of two to four steps."""
    names = [random.choice((*NUMBERS, *STRINGS)) for _ in range(random.randint(2, 4))]
    steps = tuple(parse(_constraint(random, name)) for name in names)
    return Pattern(steps, random.choice((None, None, 0.25, 0.5, 5.0)))


def random_event(random: Random) -> Event:
    """Draw an event, in which some attributes may be absent."""
    numbers = {name: random.randint(0, VALUE_MAX) for name in NUMBERS if random.random() < 0.8}
    strings = {name: random.choice(WORDS) for name in STRINGS if random.random() < 0.8}
    return Event.of({**numbers, **strings})

"""What the worst filters within the limits cost: filters that are made to be slow.

Each kind is a text close to one of the limits of the language, the worst of its construct that a
search found. Every operation of the language and of the matchers that a stranger can make run is
measured with it, in milliseconds and in steps of the budget of work.
"""

from __future__ import annotations

import gc
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tidegate.errors import FilterError, FilterLimitError, TidegateWarning
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.algebra.work import Budget
from tidegate.language.expressions import Constant
from tidegate.language.filters import Filter, parse, shape_of
from tidegate.language.limits import DEFAULT_LIMITS
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.spaces import Space
from tidegate.language.syntax import Operator, Predicate, all_of, expression_leaves
from tidegate.language.values import Value
from tidegate.matching.engine import Engine
from tidegate.matching.registry import MATCHERS

_METER = 1 << 60
_BESIDE = "beside"
"""An attribute that no text names."""
_CHARS_MAX = DEFAULT_LIMITS.length_chars_max - 600
_COST_MAX = DEFAULT_LIMITS.cost_max - 10


@dataclass(frozen=True, slots=True)
class HostileCost:
    """The cost of an operation on a kind of filter: the median of some rounds.

    ``outcome`` is the answer of a relation; "limit" if a limit was exceeded, and "refused" if the
    filter does not fit a space.
    """

    operation: str
    kind: str
    median_ms: float
    slowest_ms: float
    steps: int
    outcome: str


def _joined(
    part: Callable[[int], str],
    by: str,
    cost: int = 2,
    count_max: int = 100_000,
    chars_max: int = _CHARS_MAX,
    cost_max: int = _COST_MAX,
) -> str:
    """As many parts as the limits allow, each of some cost, joined by a word."""
    parts: list[str] = []
    length = 0
    while len(parts) < min(count_max, cost_max // cost):
        parts.append(part(len(parts)))
        length += len(parts[-1]) + len(by)
        if length > chars_max:
            del parts[-1]
            break
    return by.join(parts)


def _all(part: Callable[[int], str], cost: int = 2, count_max: int = 100_000) -> str:
    return _joined(part, " and ", cost, count_max)


def _any(part: Callable[[int], str], cost: int = 2) -> str:
    return _joined(part, " or ", cost, DEFAULT_LIMITS.disjuncts_max)


def _values(value: Callable[[int], str], count: int = _COST_MAX, chars: int = _CHARS_MAX) -> str:
    return _joined(value, ", ", 1, count, chars)


def _tree(operator: str, leaf: Callable[[int], str], depth: int, number: int = 0) -> str:
    """A balanced expression of 2**depth leaves."""
    if depth == 0:
        return leaf(number)
    left, right = (_tree(operator, leaf, depth - 1, 2 * number + side) for side in (0, 1))
    return f"({left} {operator} {right})"


def _nested(inner: str, levels: int) -> str:
    """An expression within itself: ``inner`` has a {} for the next level."""
    expression = "t"
    for _ in range(levels):
        expression = inner.format(expression)
    return expression


def hostile_texts() -> dict[str, str]:
    """The texts by the name of their kind."""
    return {
        "8 pairs of alternatives": _all(lambda i: f"(a{i} = 1 or b{i} = 1)", 2, 8),
        "8 pairs of ranges": _all(lambda i: f"(a{i} < {i} or b{i} > 1)", 2, 8),
        "8 pairs of patterns": _all(lambda i: f"(s like '%a{i}%b' or s like '%c{i}%d')", 2, 8),
        "8 pairs of affixes": _all(lambda i: f"(s starts with 'a{i}' or s ends with 'd{i}')", 2, 8),
        "8 not between": _all(lambda i: f"x{i} not between 1 and 2", 3, 8),
        "256 of 4 predicates": _any(lambda i: f"a = {i} and b < {i} and c > {-i} and d != {i}", 8),
        "256 of 19 ranges": _any(lambda i: " and ".join(f"a{j} < {i * j}" for j in range(19)), 38),
        "256 of affixes and not contains": _any(
            lambda i: f"s starts with 'a{i}' and s ends with 'b{i}' and s not contains 'c{i}'", 6
        ),
        "256 like": _any(lambda i: "s like '" + "%a" * 60 + f"%b{i}%'"),
        "256 contains on 10 attributes": _any(
            lambda i: " and ".join(f"a{j} contains '{i * j}'" for j in range(10)), 20
        ),
        "256 orders of strings": _any(lambda i: f"s > '{i}' and s < '{i}z' and u > '{i}'", 6),
        "256 long strings": _any(
            lambda i: f"s between '{'a' * 180}' and 'b' and s contains 'x{i}'", 5
        ),
        "like of 32,000 runs": "s like '" + "%a" * 32_000 + "'",
        "like of 30,000 _": "s like '%" + "a_" * 30_000 + "b%'",
        "like of 20,000 _ and runs": "s like '" + "_%a" * 21_000 + "'",
        "2 like of 16,000 runs": f"s like '{'%a' * 16_000}' and s like '{'%b' * 15_000}'",
        "300 like of 100 runs": _all(lambda i: "s like '" + "%a" * 100 + f"{i}%'"),
        "contains 64,000 characters": f"s contains '{'a' * 64_000}'",
        "affixes of 32,000 characters": (
            f"s starts with '{'ab' * 16_000}' and s ends with '{'ba' * 16_000}'"
        ),
        "between of 32,000 characters": (
            f"s between '{'a' * 32_000}' and '{'b' * 30_000}' and s contains 'x'"
        ),
        "contains": _all(lambda i: f"s contains 'c{i}'"),
        "not contains": _all(lambda i: f"s not contains 'c{i}'"),
        "not like": _all(lambda i: f"s not like '%b{i}%c'"),
        "not starts with, not contains": _all(
            lambda i: f"s not starts with 'c{i}' and s not contains 'd{i}'", 4
        ),
        "1,000 strings and 300 not like": (
            f"s in ({_values(lambda i: repr(f'a{i}'), 1000)}) and "
            + _all(lambda i: f"s not like '%b{i}%c'", 2, 300)
        ),
        "8,000 not in and 20 contains": (
            f"s not in ({_values(lambda i: repr(f'a{i}'), 8000, 60_000)}) and "
            + _all(lambda i: f"s contains 'b{i}'", 2, 20)
        ),
        "in of numbers": f"x in ({_values(lambda i: str(2 * i))})",
        "in of strings": f"s in ({_values(lambda i: repr(str(i)))})",
        "not in of numbers": f"x not in ({_values(lambda i: str(2 * i))})",
        "3 lists of 3,000": " and ".join(
            f"{name} in ({_values(str, 3000, 21_000)})" for name in "abc"
        ),
        "256 of 2 lists of 19": _any(
            lambda i: (
                f"a in ({_values(lambda j: str(j + i), 18)}) "
                f"and b in ({_values(lambda j: str(j * i), 18)})"
            ),
            38,
        ),
        "in of 3,300 functions": f"x in ({_values(lambda i: f't + {i}', 3300)})",
        "2 lists of 1,600 functions": " and ".join(
            f"{name} in ({_values(lambda i: f't + {i}', 1600)})" for name in "xy"
        ),
        "in of parameters": f"x in ({_values(lambda i: f':p{i}')})",
        "5,000 attributes": _all(lambda i: f"a{i} = 1"),
        "5,000 bounds": _all(lambda i: f"a < {i}"),
        "5,000 unequal": _all(lambda i: f"a != {i}"),
        "5,000 parameters": _all(lambda i: f"a < :p{i}"),
        "9,900 presences": _all(lambda i: f"a{i % 4000} is not null", 1),
        "2,500 lines": _all(lambda i: f"x < t + {i}", 4),
        "256 of 9 lines": _any(lambda i: " and ".join(f"a{j} < t + {i * j}" for j in range(9)), 36),
        "sum of 2,048": "x < " + _tree("+", lambda _: "t", 11),
        "product of 2,048": "x < " + _tree("*", lambda _: "t", 11),
        "sum of 1,024 sines": "x < " + _tree("+", lambda i: f"sin({i} * t)", 10),
        "30 nested sines": "x < " + _nested("sin({} * t)", 30),
        "60 nested sines": "x < " + _nested("sin({})", 60),
        "1,000 sines": _all(lambda i: f"x{i % 10} < sin({i} * t)", 6),
        "min of 2,000 sines": f"x < min({_values(lambda i: f'sin(t * {i})', 2000)})",
        "1,000 min": _all(lambda i: f"x < min(t, {i}, sin(t))", 8),
        "sum of 1,024 remainders": "x < " + _tree("+", lambda _: "t % 3", 10),
        "2,000 now()": _all(lambda i: f"at > now() - {i}", 4),
        "480 times 60 parentheses": " and ".join(["(" * 60 + "x = 1" + ")" * 60] * 480),
    }


class _Prepared:
    """Filters of one kind and what the operations need, made before the clock runs."""

    def __init__(self, text: str) -> None:
        node = parse_filter(text)
        self.text = text
        # narrower in each alternative, so that no two of them are equal
        narrower = all_of([parse_filter(text), Predicate(_BESIDE, Operator.PRESENT)])
        self.filter, self.other = Filter(node), Filter(narrower)
        self.parameters: dict[str, Value] = dict.fromkeys(self.filter.parameters, 1)
        self.bound, self.other_bound = (
            each.bind(**self.parameters) for each in (self.filter, self.other)
        )
        self.is_ground = all(isinstance(leaf, Constant) for leaf in expression_leaves(node))
        self.advertisement = parse_advertisement(text) if self.is_ground else None
        self.event = {"x": 1, "a": 1, "s": "a" * 2000, "u": "x"} | {f"a{i}": 1 for i in range(100)}
        types: dict[str, type] = dict.fromkeys(self.filter.attributes, float)
        self.space = Space("hostile", {**types, "s": str, "u": str})

    def fresh(self) -> Filter:
        """The filter, with nothing that was computed of it."""
        return Filter(self.filter.node)


_Operation = Callable[[_Prepared], object]

_PLAIN: dict[str, _Operation] = {
    "parse": lambda p: parse(p.text),
    "parse in bulk": lambda p: list(BulkParser().read_many([p.text])),
    "normal form": lambda p: p.fresh().normal_form,
    "shape_of": lambda p: shape_of(p.fresh()),
    "bind": lambda p: p.filter.bind(**p.parameters),
    "relaxed": lambda p: p.filter.relaxed(),
    "check in a space": lambda p: p.space.check_filter(p.fresh(), p.parameters),
    "at": lambda p: p.filter.at(p.parameters, t=3.0),
    "matches": lambda p: p.filter.matches(p.event, p.parameters, t=1.0),
    "over_estimate": lambda p: p.bound.over_estimate(0, 10),
    "under_estimate": lambda p: p.bound.under_estimate(0, 10),
    "covers_during": lambda p: p.bound.covers_during(p.other_bound, 0, 10),
    "covers_during, lead": lambda p: p.bound.covers_during(p.other_bound, 0, 10, lead=1.0),
}
_GROUND: dict[str, _Operation] = {
    "covers": lambda p: p.filter.covers(p.other),
    "equals": lambda p: p.filter.equals(p.other),
    "overlaps": lambda p: p.filter.overlaps(p.other),
    "intersect": lambda p: p.filter.intersect(p.other),
    "merge": lambda p: p.filter.merge(p.other).exact,
    "advertise": lambda p: parse_advertisement(p.text),
    "advertisement covers": lambda p: _advertised(p).covers(_advertised(p)),
    "advertisement overlaps": lambda p: _advertised(p).overlaps(p.filter),
    "advertisement allows": lambda p: _advertised(p).allows(p.event),
}
OPERATIONS = (*_PLAIN, *_GROUND, *(f"subscribe, {matcher}" for matcher in MATCHERS), "explain")
"""The names of the operations that are measured."""


def _advertised(prepared: _Prepared) -> Advertisement:
    assert prepared.advertisement is not None
    return prepared.advertisement


def measure(
    kinds: dict[str, str] | None = None,
    rounds: int = 3,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[HostileCost]:
    """Measure every operation with every kind of filter, or with some."""
    engines = {matcher: _warm_engine(matcher) for matcher in MATCHERS}
    for kind, text in (hostile_texts() if kinds is None else kinds).items():
        progress(kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TidegateWarning)
            costs = [*_costs(kind, text, engines, rounds)]
        yield from costs


def _costs(kind: str, text: str, engines: dict[str, Engine], rounds: int) -> Iterator[HostileCost]:
    prepared = _Prepared(text)
    operations = _PLAIN
    if prepared.is_ground:
        operations = _PLAIN | _GROUND
        # normal forms are kept, and have a row of their own
        _ = prepared.filter.normal_form, prepared.other.normal_form
    for name, operation in operations.items():
        yield _cost(name, kind, partial(operation, prepared), rounds)
    yield from _engine_costs(kind, prepared, engines, rounds)


def _engine_costs(
    kind: str, prepared: _Prepared, engines: dict[str, Engine], rounds: int
) -> Iterator[HostileCost]:
    for matcher, engine in engines.items():

        def subscribe(engine: Engine = engine) -> None:
            engine.subscribe(prepared.fresh(), id="hostile", parameters=prepared.parameters)

        def cancel(engine: Engine = engine) -> None:
            engine.cancel("hostile")

        yield _cost(f"subscribe, {matcher}", kind, subscribe, rounds, after=cancel)
    naive = engines["naive"]
    naive.subscribe(prepared.filter, id="hostile", parameters=prepared.parameters)
    yield _cost("explain", kind, lambda: str(naive.explain("hostile", prepared.event)), rounds)
    naive.cancel("hostile")


def _warm_engine(matcher: str) -> Engine:
    """An engine whose kernels are compiled."""
    engine = Engine(matcher=matcher, clock=lambda: None)
    engine.subscribe("x = 1 and s like '%a' or x = 2 and y < t and s in ('a', 'b')")
    engine.match({"x": 1, "s": "a", "y": 2})
    return engine


def _cost(
    operation: str,
    kind: str,
    run: Callable[[], object],
    rounds: int,
    after: Callable[[], None] = lambda: None,
) -> HostileCost:
    """The processor time of an operation, without that of the garbage of what ran before."""
    times_ms: list[float] = []
    for _ in range(rounds):
        gc.collect()
        gc.freeze()
        start = time.process_time()
        with Budget(_METER) as meter:
            try:
                answer = run()
                outcome = str(answer) if isinstance(answer, bool) else ""
            except FilterLimitError:
                outcome = "limit"
            except FilterError:
                outcome = "refused"
        times_ms.append((time.process_time() - start) * 1e3)
        after()
    gc.unfreeze()
    median_ms = statistics.median(times_ms)
    return HostileCost(operation, kind, median_ms, max(times_ms), meter.steps, outcome)

"""Filters made to be slow stay within their budget of work, and get careful answers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from tidegate import Engine, Filter, FilterLimitError, TidegateWarning, parse
from tidegate.experiments.hostile_filters import OPERATIONS, hostile_texts, measure
from tidegate.language.algebra.evolution import COVERING_STEPS_MAX, ESTIMATING_STEPS_MAX
from tidegate.language.algebra.work import STEPS_MAX, Budget
from tidegate.matching.registry import MATCHERS
from tidegate.matching.rows.entries.constraints import COMPARISONS_MAX
from tidegate.matching.rows.entries.expansion import CONSTRAINTS_MAX

TEXTS = hostile_texts()
METER = 1 << 40
"""The steps of a budget that only counts those of the budgets inside of it."""


@pytest.fixture(autouse=True)
def no_warnings_of_filters() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TidegateWarning)
        yield


def pair(kind: str) -> tuple[Filter, Filter]:
    return parse(TEXTS[kind]), parse(TEXTS[kind])


def test_alternatives_intersected_with_themselves() -> None:
    a, b = pair("8 pairs of alternatives")
    with Budget(METER) as budget:
        both = a.intersect(b)
    assert budget.steps <= 3 * STEPS_MAX  # and two normal forms
    assert both.equals(a)


def test_alternatives_intersected_with_others() -> None:
    a, b = parse(TEXTS["8 pairs of alternatives"]), parse(TEXTS["8 pairs of ranges"])
    other = parse(" and ".join(f"(c{i} = 1 or d{i} = 1)" for i in range(8)))
    with Budget(METER) as budget, pytest.raises(FilterLimitError, match="more than 256 disjuncts"):
        a.intersect(b)
    assert budget.steps <= 3 * STEPS_MAX
    with Budget(METER) as budget:
        assert a.overlaps(other)
        assert not a.covers(b)
    assert budget.steps <= 5 * STEPS_MAX


def test_an_intersection_that_takes_too_much_work_is_written_as_it_is() -> None:
    a, b = parse("x < 5 or y < 5"), parse("x > 1 or y > 1")
    wanted = a.intersect(b)
    with Budget(0):
        both = parse(str(a)).intersect(b)
    assert str(both) == f"({a}) and ({b})"
    assert both.equals(wanted)


def test_a_pattern_of_many_runs_covers_itself() -> None:
    for kind in ("like of 32,000 runs", "like of 30,000 _", "like of 20,000 _ and runs"):
        wide, narrow = pair(kind)
        with Budget(METER) as budget:
            assert wide.covers(narrow)
        assert budget.steps < 100


def test_a_pattern_of_many_runs_and_another() -> None:
    wide = parse("s like '" + "%a" * 5000 + "'")
    narrow = parse("s like '" + "%a" * 5000 + "a'")
    with Budget(METER) as budget:
        assert wide.covers(narrow)
    assert budget.steps < STEPS_MAX
    slow = parse("s like '%" + "a_" * 15_000 + "b%'")
    with Budget(METER) as budget:
        assert not slow.covers(parse(f"s = '{'a' * 30_000}'"))
    assert budget.steps <= 3 * STEPS_MAX


def test_many_affixes_with_patterns() -> None:
    wide, narrow = pair("256 of affixes and not contains")
    with Budget(METER) as budget:
        assert wide.covers(narrow)
        merged = wide.merge(narrow)
    assert budget.steps <= 4 * STEPS_MAX
    text = "a17bcb17"
    assert wide.matches({"s": text})
    assert merged.filter.matches({"s": text})


def test_many_patterns_during_a_time() -> None:
    wide, narrow = pair("contains")
    with Budget(METER) as budget:
        assert wide.covers_during(narrow, 0, 10)
    assert budget.steps <= COVERING_STEPS_MAX
    fewer = parse(" and ".join(f"s contains 'c{i}'" for i in range(5, 2000)))
    with Budget(METER) as budget:
        assert fewer.covers_during(wide, 0, 10)
        fewer.covers_during(parse("s contains 'd'"), 0, 10)
        wide.covers_during(fewer, 0, 10)
    assert budget.steps <= 3 * COVERING_STEPS_MAX


def test_long_sums_of_functions() -> None:
    for kind in ("sum of 1,024 sines", "product of 2,048", "1,000 min"):
        filter = parse(TEXTS[kind])
        with Budget(METER) as budget:
            over, under = filter.over_estimate(0, 10), filter.under_estimate(0, 10)
        assert budget.steps <= 2 * ESTIMATING_STEPS_MAX
        for t in (0.0, 3.0, 10.0):
            event = {"x": -2000.0} | {f"x{i}": -1.0 for i in range(10)}
            assert over.matches(event) or not filter.matches(event, t=t)
            assert filter.matches(event, t=t) or not under.matches(event)


@pytest.mark.parametrize(
    "text",
    [
        TEXTS["1,000 strings and 300 not like"],
        "a in (1, 2, 3) and " + " and ".join(f"s != 'x{i}'" for i in range(COMPARISONS_MAX + 50)),
        f"x not in ({', '.join(map(str, range(2, 2 * COMPARISONS_MAX)))})",
        " or ".join(f"a in ({', '.join(map(str, range(i, i + 30)))})" for i in range(100)),
    ],
)
@pytest.mark.parametrize("matcher", ["columnar", "tree"])
def test_entries_are_bounded_and_right(matcher: str, text: str) -> None:
    engine = Engine(matcher=matcher)
    filter = parse(text)
    engine.subscribe(filter, id="hostile")
    events = [
        {"a": 1, "s": "a7", "x": 1},
        {"a": 3, "s": "x7", "x": 7},
        {"a": 9, "s": f"x{COMPARISONS_MAX + 20}", "x": 2 * COMPARISONS_MAX - 1},
        {"a": 128, "s": "a7 b7c", "x": -1},
    ]
    for event in events:
        assert (engine.match(event) == ["hostile"]) == filter.matches(event)


@pytest.mark.soak
@pytest.mark.parametrize("kind", TEXTS)
def test_every_operation_stays_within_its_budget(kind: str) -> None:
    costs = list(measure({kind: TEXTS[kind]}, rounds=1))
    # the operation itself, and the normal forms of two filters and of a third in a matcher
    too_much = ESTIMATING_STEPS_MAX + 3 * STEPS_MAX
    assert [each for each in costs if each.steps > too_much] == []
    assert {each.operation for each in costs} <= set(OPERATIONS)
    assert sum(each.operation.startswith("subscribe") for each in costs) == len(MATCHERS)


def test_the_room_of_entries_is_what_usual_filters_need_many_times() -> None:
    assert CONSTRAINTS_MAX >= 1000 * 32  # a list of a thousand values among 31 other predicates

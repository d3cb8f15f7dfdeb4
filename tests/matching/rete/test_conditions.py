from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidegate.language.algebra.normal_form import disjuncts
from tidegate.language.filters import parse
from tidegate.language.syntax import Operator
from tidegate.language.values import Kind, Value
from tidegate.matching.rete.conditions import (
    AttributeRanks,
    ChainStep,
    Condition,
    NeverCondition,
    OtherPredicate,
    PatternCondition,
    Points,
    StepClass,
    ValueRange,
    steps_of,
    value_key,
)

pytestmark = pytest.mark.filterwarnings("ignore::tidegate.errors.NeverMatchesWarning")

FIRST_TIME = datetime.min.replace(tzinfo=UTC)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def steps(text: str) -> list[ChainStep]:
    (conjunction,) = disjuncts(parse(text).node)
    return steps_of(conjunction)


def condition(
    text: str, parameters: dict[str, Value] | None = None, origin_us: int | None = None
) -> Condition:
    (step,) = steps(text)
    return step.condition(parameters or {}, origin_us)


def number_range(low: float, high: float | None) -> ValueRange:
    return ValueRange("x", Kind.NUMBER, low, high)


LOWEST = -float("inf")
ABOVE_ONE = 1.0000000000000002


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", Points("x", frozenset({1}))),
        ("x = true", Points("x", frozenset({value_key(True)}))),
        ("x in (1, 'a', 1.0)", Points("x", frozenset({1, "a"}))),
        ("x < 1", number_range(LOWEST, 1)),
        ("x <= 1", number_range(LOWEST, ABOVE_ONE)),
        ("x > 1", number_range(ABOVE_ONE, None)),
        ("x >= 1", number_range(1, None)),
        ("x > 9007199254740992", number_range(9007199254740993, None)),
        ("x >= 1 and x < 5 and x >= 2", number_range(2, 5)),
        ("x between 1 and 2", number_range(1, 2.0000000000000004)),
        ("x >= 1 + 1", number_range(2.0, None)),
        ("x >= 5 and x < 5", NeverCondition("x")),
        ("x >= 1 and x < 'a'", NeverCondition("x")),
        ("x < -infinity", NeverCondition("x")),
        ("x > infinity", NeverCondition("x")),
        ("x > true", NeverCondition("x")),
        ("x >= true", ValueRange("x", Kind.BOOLEAN, True, None)),
        ("x < ''", NeverCondition("x")),
        ("x starts with 'ab'", ValueRange("x", Kind.STRING, "ab", "ac")),
        ("x starts with ''", ValueRange("x", Kind.STRING, "", None)),
        ("x starts with 'b' and x < 'ba'", ValueRange("x", Kind.STRING, "b", "ba")),
        ("x < timestamp '2026-01-02T12:00:00Z'", ValueRange("x", Kind.TIME, FIRST_TIME, NOON)),
        ("x contains 'a'", PatternCondition("x", Operator.CONTAINS, "a")),
        ("x like 'a%'", PatternCondition("x", Operator.LIKE, "a%")),
    ],
)
def test_conditions_of_constants(text: str, expected: Condition) -> None:
    assert condition(text) == expected


@pytest.mark.parametrize("text", ["x != 1", "x not in (1, 2)", "x is not null", "x not like 'a%'"])
def test_conditions_that_most_events_meet_are_evaluated(text: str) -> None:
    assert condition(text) == OtherPredicate(parse(text).node)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("x = :p", {}),
        ("x in (:p, :q)", {}),
        ("x < :p", {}),
        ("x < :p and x > 1", {}),
        ("x != :p", {}),
        ("x not in (1, :p)", {}),
        ("x contains :p", {"p": 1}),
        ("x starts with :p", {"p": True}),
        ("x not ends with :p", {"p": NOON}),
        ("x like :p", {"p": "\\"}),
        ("x > :p / 0", {"p": 1}),
        ("x > :p + t", {}),
        ("x not in (t, :p)", {}),
    ],
)
def test_a_condition_without_a_value_is_never_met(text: str, parameters: dict[str, Value]) -> None:
    assert condition(text, parameters) == NeverCondition("x")


def test_values_that_are_known_are_enough_for_a_list() -> None:
    assert condition("x in (:p, 2)") == Points("x", frozenset({2}))
    assert isinstance(condition("x in (:p, t)"), OtherPredicate)


def test_evolving_conditions_have_the_values_of_their_parameters_and_an_origin() -> None:
    assert condition("x > :p + t", {"p": 3}, 7) == condition("x > 3 + t", {}, 7)
    assert condition("x > :p + t", {"p": 3}, 7) != condition("x > 3 + t", {}, 8)
    assert condition("x > :p + @load", {"p": 3}, 7) == condition("x > 3 + @load", {}, 8)
    assert condition("x < now()", {}, 7) == condition("x < now()", {}, 8)


def test_one_and_true_are_different_points() -> None:
    assert condition("x = 1") == condition("x = 1.0")
    assert condition("x = 1") != condition("x = true")
    assert condition("x < 1") != condition("x < true")
    assert condition("x != 1") != condition("x != true")


def test_all_bounds_on_an_attribute_are_one_step() -> None:
    (step,) = steps("x > :low and x < 9 and x <= :high")
    assert (step.step_class, sorted(step.parameters)) == (StepClass.RANGE, ["high", "low"])
    below, above = steps("x > 1 and y < 2")
    assert (below.step_class, above.step_class) == (StepClass.BOUND, StepClass.BOUND)
    static, evolving = steps("x > 1 and x < t")
    assert (static.step_class, evolving.step_class) == (StepClass.BOUND, StepClass.EVOLVING)


def test_steps_on_one_attribute_have_a_fixed_order_and_no_repetition() -> None:
    texts = ["s contains 'a' and s contains 'b'", "s contains 'b' and s contains 'a'"]
    assert steps(texts[0]) == steps(texts[1]) == steps(" and ".join(texts))


def in_order(ranks: AttributeRanks, text: str) -> str:
    ordered = ranks.in_order(steps(text))
    return "; ".join(str(each) for step in ordered for each in step.predicates)


def test_selective_conditions_come_first_and_constants_before_parameters() -> None:
    ranks = AttributeRanks()
    text = (
        "f > t and e != 1 and d > 2 and c like 'x%' and b > 1 and b < 9 and a = :p and z in (1, 2)"
    )
    ranks.add([parse(text).attributes])
    assert in_order(ranks, text) == (
        "z in (1, 2); a = :p; c like 'x%'; b > 1; b < 9; d > 2; e != 1; f > t"
    )


def test_attributes_that_many_filters_name_come_first() -> None:
    ranks = AttributeRanks()
    ranks.add([("a", "b"), ("b",)])
    assert in_order(ranks, "a = 1 and b = 2") == "b = 2; a = 1"
    ranks.add([("a", "c")] * 5)  # those that were ranked before keep their rank
    assert in_order(ranks, "c = 3 and a = 1 and b = 2") == "b = 2; a = 1; c = 3"


def test_a_rank_lasts_as_long_as_a_filter_names_the_attribute() -> None:
    ranks = AttributeRanks()
    ranks.add([("b", "a"), ("a",)])
    assert in_order(ranks, "b = 2 and a = 1") == "a = 1; b = 2"
    ranks.remove(("b", "a"))
    ranks.add([("b",)])  # whose last filter was removed; `a` still has its rank
    assert in_order(ranks, "b = 2 and a = 1") == "a = 1; b = 2"
    ranks.remove(("a",))
    ranks.add([("a",)])
    assert in_order(ranks, "b = 2 and a = 1") == "b = 2; a = 1"

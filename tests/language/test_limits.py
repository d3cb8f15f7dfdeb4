"""A filter at each limit is taken, one step over it is refused, and none brings the parser down."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidegate.errors import FilterError, FilterLimitError
from tidegate.language.filters import Filter
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.parsing.parser import Parser, parse_filter

DEPTH = DEFAULT_LIMITS.depth_max
NESTED: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "a = 1" + ")" * n,
    "not": lambda n: "not " * n + "a = 1",
    "not with parentheses": lambda n: "not (" * (n // 2) + "a = 1" + ")" * (n // 2),
    "and in or": lambda n: "(a = 1 and (b = 2 or " * (n // 2) + "a = 1" + "))" * (n // 2),
    "value in parentheses": lambda n: "a = " + "(" * n + "1" + ")" * n,
    "minus": lambda n: "a = " + "-" * n + "t",
    "minus before a number": lambda n: "a = " + "-" * n + "5",
    "minus with parentheses": lambda n: "a = " + "-(" * (n // 2) + "t" + ")" * (n // 2),
    "sum": lambda n: "a = t" + " + t" * n,
    "product": lambda n: "a = t" + " * t" * n,
    "sum to the right": lambda n: "a = " + "t - (" * (n // 2) + "t" + ")" * (n // 2),
    "functions": lambda n: "a = " + "abs(" * n + "t" + ")" * n,
    "functions of two": lambda n: "a = " + "min(t, " * n + "t" + ")" * n,
    "in": lambda n: "a in (" + "floor(" * n + "t" + ")" * n + ")",
}


def message(text: str, limits: Limits = DEFAULT_LIMITS) -> str:
    with pytest.raises(FilterLimitError) as caught:
        parse_filter(text, limits)
    return str(caught.value)


def refused(text: str) -> bool:
    try:
        parse_filter(text)
    except FilterLimitError:
        return True
    return False


@pytest.mark.parametrize("way", NESTED)
def test_depth(way: str) -> None:
    text = NESTED[way]
    deepest = max(n for n in range(1, DEPTH + 3) if not refused(text(n)))
    assert DEPTH - 2 <= deepest <= DEPTH + 1
    assert refused(text(deepest + 2))
    # what was taken can be printed, read back, split and matched, also where it is deepest
    filter = Filter(parse_filter(text(deepest)))
    assert parse_filter(str(filter)) == filter.node
    shape, row = filter.shape_and_row
    assert shape.fill(row) == parse_filter(str(shape.fill(row)))
    filter.matches({"a": 1, "b": 2}, t=1.0)
    assert refused(text(10_000))


@pytest.mark.parametrize("way", NESTED)
def test_the_deepest_filter_can_be_read_from_deep_inside_a_program(way: str) -> None:
    def parse_below(frames: int) -> None:
        if frames:
            parse_below(frames - 1)
        else:
            parse_filter(NESTED[way](DEPTH - 2))

    parse_below(400)


def test_the_message_for_depth() -> None:
    assert message("not ((a = 1))", Limits(depth_max=2)) == (
        "the filter is nested more than 2 deep\n"
        "  not ((a = 1))\n"
        "       ^"
    )  # fmt: skip


def test_length() -> None:
    limits = Limits(length_chars_max=9)
    parse_filter("price < 5", limits)
    assert message("price < 50", limits) == (
        "the text has 10 characters; at most 9 are taken\n"
        "  price < 50\n"
        "           ^"
    )  # fmt: skip
    parse_filter("a = '" + "x" * 65_530 + "'")
    assert message("a = '" + "x" * 65_531 + "'").startswith(
        "the text has 65537 characters; at most 65536 are taken\n"
    )


def test_disjuncts() -> None:
    limits = Limits(disjuncts_max=4)
    parse_filter("(a = 1 or a = 2) and (b = 1 or b = 2)", limits)
    parse_filter("a not between 1 and 2 and b not between 1 and 2", limits)
    parse_filter("not (a = 1 and b = 2 and c = 3 and d = 4)", limits)
    parse_filter("a in (1, 2, 3, 4, 5, 6)", limits)
    assert message("a = 1 and (b = 1 or b = 2 or b = 3 or b = 4 or b = 5)", limits) == (
        "as a disjunction of conjunctions the filter has more than 4 disjuncts\n"
        "  a = 1 and (b = 1 or b = 2 or b = 3 or b = 4 or b = 5)\n"
        "  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    )
    for text in (
        "(a = 1 or a = 2) and (b = 1 or b = 2) and (c = 1 or c = 2)",
        "a not between 1 and 2 and b not between 1 and 2 and c not between 1 and 2",
        "not (a = 1 and b = 2 and c = 3 and d = 4 and e = 5)",
    ):
        message(text, limits)
    parse_filter(" or ".join(["a = 1"] * 256))
    message(" or ".join(["a = 1"] * 257))


def test_more_disjuncts_than_there_are_atoms() -> None:
    reason = message(" and ".join(["(a = 1 or b = 2)"] * 3000)).split("\n")[0]
    assert reason == "as a disjunction of conjunctions the filter has more than 256 disjuncts"


def test_cost() -> None:
    limits = Limits(cost_max=6)
    parse_filter("a = 1 and b = 2 and c = 3", limits)
    parse_filter("a in (1, 2, 3, 4, 5)", limits)
    parse_filter("a = -(t + abs(t))", limits)
    assert message("a between 1 and 2 and b in (3, 4)", Limits(cost_max=5)) == (
        "the filter costs 6 predicates, values and operations; at most 5 are taken\n"
        "  a between 1 and 2 and b in (3, 4)\n"
        "  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    )
    message("a in (1, 2, 3, 4, 5, 6)", limits)
    message("a = -(t + abs(t) + 1)", limits)
    # what stands in several disjuncts costs in each
    parse_filter("(a = 1 or b = 2) and c = 3", Limits(cost_max=8))
    message("(a = 1 or b = 2) and c = 3", Limits(cost_max=7))
    parse_filter("a in (" + ", ".join(["1"] * 9999) + ")")
    message("a in (" + ", ".join(["1"] * 10_000) + ")")


def test_steps_of_a_pattern() -> None:
    limits = Limits(pattern_steps_max=2)
    Parser("a = 1 then b = 2", limits).pattern()
    with pytest.raises(FilterLimitError) as caught:
        Parser("a = 1 then b = 2 then c = 3 then d = 4", limits).pattern()
    assert str(caught.value) == (
        "a pattern has at most 2 steps\n"
        "  a = 1 then b = 2 then c = 3 then d = 4\n"
        "                              ^^^^"
    )
    Parser(" then ".join(["a = 1"] * 32)).pattern()
    with pytest.raises(FilterLimitError):
        Parser(" then ".join(["a = 1"] * 33)).pattern()


def test_the_steps_of_a_pattern_count_together() -> None:
    text = "a = 1 or b = 1 then true then c = 2 or d = 2"
    Parser(text, Limits(disjuncts_max=5, cost_max=9)).pattern()
    with pytest.raises(FilterLimitError, match="more than 4 disjuncts"):
        Parser(text, Limits(disjuncts_max=4)).pattern()
    with pytest.raises(FilterLimitError, match="costs 9 predicates"):
        Parser(text, Limits(cost_max=8)).pattern()


@pytest.mark.parametrize(
    "text",
    [
        "(" * 60_000,
        "not " * 15_000,
        "-" * 60_000,
        "a = " + "-" * 60_000,
        "a = " + "abs(" * 15_000,
        "a = " + "1+" * 30_000,
        "a = '" + "'" * 60_000,
        "`" * 60_001,
        "a = " + "9" * 60_000,
        "a = 1." + "9" * 60_000 + "e",
        "a = " + " " * 60_000,
        "a" * 60_000,
        "a." * 30_000,
        "a like '" + "\\" * 60_001 + "'",
        "a = " + "b" * 60_000,
        "a < timestamp '" + "9" * 60_000 + "'",
        " and ".join(["not (a = 1"] * 5_000),
    ],
)
def test_huge_texts_are_refused_and_nothing_worse(text: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert len(str(caught.value)) < 1000


def test_huge_texts_that_are_right() -> None:
    assert str(parse_filter("a = " + "0" * 60_000 + "1")) == "a = 1"
    assert str(parse_filter("a = 1." + "0" * 60_000)) == "a = 1.0"
    parse_filter("not (" * 30 + " and ".join(["a = 1"] * 200) + ")" * 30)
    parse_filter("a like '" + "%_" * 30_000 + "'")

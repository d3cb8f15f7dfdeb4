from __future__ import annotations

import math
import warnings
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import events_aimed_at, expressions, nodes, predicates, values
from tidegate import (
    BadValueError,
    Filter,
    FilterError,
    NeverMatchesWarning,
    UnresolvedError,
    parse,
    shape_of,
)
from tidegate.language.filters import environment_of
from tidegate.language.syntax import Node

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


# -- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "price < 1 and price > 2",
        "x = 1 and x = 'a'",
        "x < 1 / 0",
        "x between 2 and 1",
        "x in (true) and x = false",
        "s starts with 'a' and s starts with 'b'",
        "s ends with 'a' and s not ends with 'a'",
        "x < 1 and x > 2 and y < :p",
        "x < 1 and x > 2 or y < 1 and y > 2",
    ],
)
def test_a_filter_that_can_never_match_is_taken_with_a_warning(text: str) -> None:
    with pytest.warns(NeverMatchesWarning, match="no event can match") as caught:
        filter = parse(text)
    assert text in str(caught[0].message)
    assert caught[0].filename == __file__
    assert filter.never_matches
    assert not filter.matches({"x": 1, "y": 1, "s": "a", "price": 1})


@pytest.mark.parametrize("text", ["x < :p and x > :q", "x < t and x > t", "false", "true", "x < 1"])
def test_no_warning_for_what_may_match_or_says_so_itself(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse(text).never_matches == (text == "false")


def test_a_bad_filter_is_an_error() -> None:
    with pytest.raises(FilterError, match="the right side"):
        parse("price < volume")


# -- what is in it ------------------------------------------------------------------------------


def test_what_a_filter_speaks_of() -> None:
    filter = parse("b < :q + @load and a = :p and b > :p or c.d < t and a = @mode")
    assert filter.attributes == ("b", "a", "c.d")
    assert filter.parameters == ("q", "p")
    assert filter.variables == ("load", "mode")
    assert str(filter) == "b < :q + @load and a = :p and b > :p or c.d < t and a = @mode"


@pytest.mark.parametrize(
    ("text", "evolves"),
    [("x < 1", False), ("x < :p", False), ("x < t", True), ("x < now()", True), ("x < @v", True)],
)
def test_a_filter_evolves_with_time_and_variables(text: str, evolves: bool) -> None:
    assert parse(text).evolves == evolves


def test_filters_are_equal_if_they_are_written_alike() -> None:
    assert parse("x<1 AND y = 'a'") == parse('x < 1 and y = "a"')
    assert hash(parse("x<1")) == hash(parse("x < 1"))
    assert parse("x < 1") != parse("x < 1.0")
    assert parse("x < 1").equals(parse("x < 1.0"))


def test_shape_and_row() -> None:
    shape, row = shape_of(parse("symbol = 'IBM' and price < :limit"))
    assert str(shape) == "price < ? and symbol = ?"
    assert shape.fill(row) == parse("price < :limit and symbol = 'IBM'").node


# -- values for what is open --------------------------------------------------------------------


@given(nodes(predicates()), nodes(predicates()))
def test_filters_are_equal_if_their_trees_are(one: Node, other: Node) -> None:
    for a, b in ((one, other), (one, one)):
        left, right = Filter(a), Filter(b)
        for filter in (left, right):
            assert filter.shape_and_row  # known, and looked at first
        assert (left == right) is (a == b)
        assert left != "a filter"


@given(nodes(predicates()), st.data())
def test_with_other_cells_only_values_differ(node: Node, data: st.DataObject) -> None:
    before = Filter(node)
    shape, row = before.shape_and_row
    cells = data.draw(st.dictionaries(st.integers(0, max(0, len(row) - 1)), values))
    cells = {index: value for index, value in cells.items() if index < len(row)}
    if data.draw(st.booleans()):  # known, and so taken over
        assert before.parameters == before.variables == ()
        assert before.size.cost > 0
        assert not before.evolves
    after = before.with_cells(cells)
    assert after.shape_and_row == (shape, tuple(cells.get(i, each) for i, each in enumerate(row)))
    rebuilt = Filter(after.node)
    assert after == rebuilt
    assert (after.attributes, after.parameters, after.evolves) == (rebuilt.attributes, (), False)
    assert after.size == rebuilt.size


@given(nodes(predicates()), st.integers(-30, 30))
def test_whether_a_text_is_longer(node: Node, more: int) -> None:
    shape, row = Filter(node).shape_and_row
    length = len(str(Filter.of_shape(shape, row)))
    assert Filter.of_shape(shape, row).is_longer(length + more) is (more < 0)
    assert Filter(node).is_longer(len(str(Filter(node))) + more) is (more < 0)


def test_bind_sets_parameters() -> None:
    filter = parse("price < :limit and volume > :least")
    assert str(filter.bind(limit=10)) == "price < 10 and volume > :least"
    assert str(filter.bind(limit=10, least=5.0)) == "price < 10 and volume > 5.0"
    assert filter.bind() == filter
    assert filter.bind(limit=10).parameters == ("least",)


def test_bind_keeps_integers_exact() -> None:
    assert parse("x = :p").bind(p=2**53 + 1).matches({"x": 2**53 + 1})
    assert not parse("x = :p").bind(p=2**53 + 1).matches({"x": 2**53})


def test_bind_takes_any_name_of_a_parameter() -> None:
    assert str(parse("x < :self + :cls").bind(self=1, cls=2)) == "x < 1 + 2"


def test_bind_refuses_what_it_does_not_have() -> None:
    with pytest.raises(UnresolvedError, match=r"no parameter :lmit; it has :limit, :least"):
        parse("price < :limit and volume > :least").bind(lmit=10)
    with pytest.raises(UnresolvedError, match=r"no parameter :p; it has none"):
        parse("price < 10").bind(p=10)
    with pytest.raises(BadValueError, match=r"parameter :limit: a list is not a value"):
        parse("price < :limit").bind(limit=[1])


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("x < :p", "x < 2"),
        ("x < :p + t", "x < 5.0"),
        ("x between :p and t", "x between 2 and 3.0"),
        ("x < @load", "x < 0.5"),
        ("at > now() - 3600", "at > timestamp '2026-01-02T11:00:00Z'"),
        ("x in (:p, :missing, 7)", "x in (2, 7)"),
        ("x < 1 + 1", "x < 2.0"),
        ("x is not null", "x is not null"),
        ("s like :word", "s like 'a%'"),
        # undefined values satisfy nothing
        ("x < :missing", "false"),
        ("x != :missing", "false"),
        ("x in (:missing)", "false"),
        ("x not in (:p, :missing)", "false"),
        ("x between :missing and 1", "false"),
        ("x not between :missing and 1", "x > 1"),
        ("x not between :missing and @missing", "false"),
        ("x < 1 / 0 or y = 1", "y = 1"),
        # nor do values of the wrong kind, and bad patterns
        ("s like :p", "false"),
        ("s not starts with :p", "false"),
        ("s like :bad", "false"),
    ],
)
def test_at_gives_the_filter_as_it_stands(text: str, fixed: str) -> None:
    parameters = {"p": 2, "word": "a%", "bad": "a\\b"}
    found = parse(text).at(parameters, variables={"load": 0.5}, t=3.0, now=NOON)
    assert str(found) == fixed
    assert parse(str(found)) == found


operands = st.one_of(expressions(), expressions(open=False))


@given(nodes(predicates(operands)), st.data())
def test_at_means_the_same_at_that_moment(node: Node, data: st.DataObject) -> None:
    parameters = data.draw(st.dictionaries(st.sampled_from(["p", "q"]), st.integers(-3, 3)))
    variables = data.draw(st.dictionaries(st.sampled_from(["load", "mode"]), st.integers(-3, 3)))
    t = data.draw(st.sampled_from([0.0, 1.5, -2.0]))
    now = data.draw(st.sampled_from([None, NOON]))
    filter = Filter(node)
    fixed = filter.at(parameters, variables=variables, t=t, now=now)
    bound = filter.bind(
        **{name: parameters[name] for name in filter.parameters if name in parameters}
    )
    for event in data.draw(st.lists(events_aimed_at(fixed.node), max_size=4)):
        matches = filter.matches(event, parameters, variables=variables, t=t, now=now)
        assert fixed.matches(event) == matches
        assert bound.matches(event, variables=variables, t=t, now=now) == matches


# -- matching -----------------------------------------------------------------------------------


def test_matching_takes_values_for_everything_open() -> None:
    filter = parse("price < :limit + @load * t and at <= now()")
    event = {"price": 12, "at": NOON}
    assert filter.matches(event, {"limit": 10}, variables={"load": 1.5}, t=2.0, now=NOON)
    assert not filter.matches(event, {"limit": 10}, variables={"load": 1.5}, t=1.0, now=NOON)
    assert not filter.matches(event, {"limit": 10}, variables={"load": 1.5}, t=2.0)
    assert not filter.matches(event, {"limit": 10}, t=2.0, now=NOON)
    assert not filter.matches(event, variables={"load": 1.5}, t=2.0, now=NOON)


def test_a_missing_or_absent_parameter_satisfies_nothing() -> None:
    for absent in (None, math.nan):
        assert not parse("price != :limit").matches({"price": 5}, {"limit": absent})
    assert not parse("price != :limit").matches({"price": 5})


@pytest.mark.parametrize("t", [math.nan, math.inf, "soon", None])
def test_the_time_since_subscription_is_a_finite_number(t: float) -> None:
    with pytest.raises(BadValueError, match="t must be a finite number of seconds"):
        parse("x != t").matches({"x": 1}, t=t)


def test_what_is_given_for_parameters_variables_and_time_is_checked() -> None:
    with pytest.raises(BadValueError, match=r"parameter :p: a list is not a value"):
        environment_of({"p": [1]})
    with pytest.raises(BadValueError, match=r"variable @v: object is not a value"):
        environment_of(variables={"v": object()})
    with pytest.raises(BadValueError, match="now must be a datetime, not float"):
        environment_of(now=1.5)  # type: ignore[arg-type]
    assert environment_of({"p": 1, "q": None}).parameters == {"p": 1}


# -- relations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "leaf"),
    [("x < :p", ":p"), ("x < 1 + t", "t"), ("x < @v", "@v"), ("x < now()", r"now\(\)")],
)
def test_a_relation_of_an_open_filter_says_what_it_waits_for(text: str, leaf: str) -> None:
    with pytest.raises(UnresolvedError, match=f"depends on {leaf}: take it at one moment"):
        parse(text).covers(parse("x < 1"))
    with pytest.raises(UnresolvedError, match=f"depends on {leaf}: take it at one moment"):
        parse("x < 1").overlaps(parse(text))


def test_relations_hold_for_the_current_values() -> None:
    filter = parse("price < :limit and x < t")
    now, later = (filter.at({"limit": limit}, t=t) for limit, t in ((10, 1.0), (30, 2.0)))
    assert later.covers(now)
    assert not now.covers(later)


def test_merged_says_which_of_the_two_it_is() -> None:
    merged = parse("x = 1 and y = 1").merge(parse("x = 2 and y = 2"))
    assert (str(merged.filter), merged.exact) == ("x in (1, 2) and y in (1, 2)", False)
    assert str(merged) == "x in (1, 2) and y in (1, 2) (wider)"

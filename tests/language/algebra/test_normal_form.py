from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import events_aimed_at, expressions, nodes, numbers, predicates
from tidegate.language.algebra import relations
from tidegate.language.algebra.normal_form import (
    Conjunction,
    NormalForm,
    disjuncts,
    ground_values,
    is_ground,
)
from tidegate.language.algebra.value_sets import ANYTHING
from tidegate.language.expressions import Constant, Environment
from tidegate.language.filters import Filter
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.semantics import holds
from tidegate.language.syntax import Node, Operator, Predicate, all_of, any_of

_NOTHING = Environment()


def normal(text: str) -> str:
    return str(NormalForm.of(parse_filter(text)).to_node())


# -- what it looks like -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "tidy"),
    [
        # the tightest interval, set or string constraint for each attribute
        ("x > 1 and x < 9 and x >= 3 and x <= 9", "x >= 3 and x < 9"),
        ("x between 1 and 5 and x between 3 and 9", "x >= 3 and x <= 5"),
        ("x >= 5 and x <= 5", "x = 5"),
        ("x in (1, 2, 3) and x > 1", "x in (2, 3)"),
        ("x in (1, 2) and x != 1", "x = 2"),
        ("x != 1 and x != 2", "x not in (1, 2)"),
        ("x > 0 and x not in (1, 2, 3)", "x > 0 and x not in (1, 2, 3)"),
        ("x not in (1, 2, 3) and x between 2 and 4", "x > 2 and x <= 4 and x != 3"),
        ("x not between 1 and 2", "x < 1 or x > 2"),
        ("x = 1 and x = 1.0", "x = 1"),
        ("x < 9007199254740993 and x > 9007199254740991", "x = 9007199254740992.0"),
        ("x <= infinity", "x >= -infinity"),
        ("x < infinity", "x < infinity"),
        ("b != true", "b = false"),
        ("b in (true, false)", "b >= false"),
        ("b is not null and b < 5", "b < 5"),
        ("s >= 'a' and s < 'b'", "s starts with 'a'"),
        ("s like 'abc'", "s = 'abc'"),
        ("s like 'ab%'", "s starts with 'ab'"),
        ("s like '%ab'", "s ends with 'ab'"),
        ("s like '%ab%'", "s contains 'ab'"),
        ("s starts with 'a' and s != 'ab'", "s starts with 'a' and s != 'ab'"),
        ("s starts with 'a' and s starts with 'ab'", "s starts with 'ab'"),
        ("s ends with 'b' and s ends with 'ab'", "s ends with 'ab'"),
        ("s like 'N%SE' and s starts with 'N'", "s like 'N%SE'"),
        ("s not like 'N%SE' and s not contains 'x'", "s not contains 'x' and s not like 'N%SE'"),
        ("s in ('NYSE', 'LSE', 'N') and s like 'N%'", "s in ('N', 'NYSE')"),
        ("s > ''", "s > ''"),
        (
            "at > timestamp '2026-01-02T03:04:05Z' and at > timestamp '2025-01-02T03:04:05Z'",
            "at > timestamp '2026-01-02T03:04:05Z'",
        ),
        # several kinds on one attribute
        ("x = 'a' or x = 1 or x = true", "x = true or x = 1 or x = 'a'"),
        ("x in (1, 'a', 2)", "x in (1, 2) or x = 'a'"),
        # attributes in one order
        ("b = 1 and a = 2", "a = 2 and b = 1"),
        # what is covered is absorbed, what can be one is one
        ("x < 5 or x < 3", "x < 5"),
        ("x < 5 or x < 3 and y = 1", "x < 5"),
        ("x < 5 and y = 1 or x >= 5 and y = 1", "x >= -infinity and y = 1"),
        ("x = 1 or x = 2 or x = 3", "x in (1, 2, 3)"),
        ("x < 3 or x = 3", "x <= 3"),
        ("s like '%b' or s like '%ab'", "s ends with 'b'"),
        ("x = 1 and y = 1 or x = 2 and y = 2", "x = 1 and y = 1 or x = 2 and y = 2"),
        # nothing and everything
        ("x < 1 and x > 2", "false"),
        ("x = 1 and x = 'a'", "false"),
        ("x < 1 / 0", "false"),
        ("x < 1 and x > 2 or y = 1", "y = 1"),
        ("true or x = 1", "true"),
        ("x is not null", "x is not null"),
        # what has no value yet stays as it is
        ("x < :p and x < 5 and x < 3", "x < 3 and x < :p"),
        ("x between t and 5", "x <= 5 and x >= t"),
        ("x < :p or x < :p and y = 1", "x < :p"),
        ("x = :p and x = :p", "x = :p"),
        ("x < 1 + 2", "x < 3"),
    ],
)
def test_the_normal_form_is_tight(written: str, tidy: str) -> None:
    assert normal(written) == tidy
    assert normal(tidy) == tidy


def test_it_is_reachable_from_a_filter() -> None:
    form = Filter(parse_filter("x < 5 and x < 3 or y = 1")).normal_form
    assert [list(each.sets) for each in form.conjunctions] == [["x"], ["y"]]


# -- what it means ------------------------------------------------------------------------------


@given(nodes(), st.data())
def test_it_means_the_same_as_the_filter(node: Node, data: st.DataObject) -> None:
    form = NormalForm.of(node)
    written = Filter(form.to_node())
    for event in data.draw(st.lists(events_aimed_at(node), max_size=5)):
        matches = Filter(node).matches(event)
        assert written.matches(event) == matches
        assert matches == any(
            all(name in event and values.contains(event[name]) for name, values in sets.items())
            for sets in (each.sets for each in form.conjunctions)
        )


@given(nodes(predicates(st.one_of(expressions(), expressions(open=False)))), st.data())
def test_it_means_the_same_with_open_predicates(node: Node, data: st.DataObject) -> None:
    filter, tidy = Filter(node), Filter(NormalForm.of(node).to_node())
    assert filter.never_matches == (not filter.normal_form.conjunctions)
    parameters, variables = {"p": 1, "q": -0.5}, {"load": 2.0}
    at = filter.at(parameters, variables=variables, t=3.0)
    for event in data.draw(st.lists(events_aimed_at(at.node), max_size=5)):
        assert tidy.matches(event, parameters, variables=variables, t=3.0) == filter.matches(
            event, parameters, variables=variables, t=3.0
        )


@given(nodes())
def test_written_and_read_again_it_is_the_same(node: Node) -> None:
    form = NormalForm.of(node)
    again = NormalForm.of(parse_filter(str(form.to_node())))
    assert relations.covers(form, again)
    assert relations.covers(again, form)


@given(nodes(predicates(patterns=False)))
def test_written_and_read_again_it_has_the_same_form(node: Node) -> None:
    form = NormalForm.of(node)
    again = NormalForm.of(parse_filter(str(form.to_node())))
    assert len(again.conjunctions) == len(form.conjunctions)
    assert all(each in form.conjunctions for each in again.conjunctions)


@given(nodes())
def test_no_conjunction_is_empty_or_covered_by_another(node: Node) -> None:
    conjunctions = NormalForm.of(node).conjunctions
    for each in conjunctions:
        assert not each.is_empty
        assert not any(other.covers(each) for other in conjunctions if other is not each)


@given(nodes(), nodes())
def test_intersect_means_both(a: Node, b: Node) -> None:
    both = NormalForm.of(a).intersect(NormalForm.of(b))
    assert relations.covers(NormalForm.of(all_of([a, b])), both)
    assert relations.covers(both, NormalForm.of(all_of([a, b])))


# -- its parts ----------------------------------------------------------------------------------


@given(nodes(), st.data())
def test_disjuncts_mean_the_same_as_the_filter(node: Node, data: st.DataObject) -> None:
    parts = disjuncts(node)
    flat = any_of(all_of(part) for part in parts)
    event = data.draw(events_aimed_at(node))
    assert Filter(flat).matches(event) == Filter(node).matches(event)


def test_disjuncts_are_said_in_the_simplest_predicates() -> None:
    node = parse_filter(
        "x between 1 and :p and y in (5) and z not in (t) and w not between 1 and 2"
    )
    assert [" and ".join(map(str, each)) for each in disjuncts(node)] == [
        "x >= 1 and x <= :p and y = 5 and z != t and w < 1",
        "x >= 1 and x <= :p and y = 5 and z != t and w > 2",
    ]


def test_hull_joins_attribute_by_attribute() -> None:
    a, b = (
        NormalForm.of(parse_filter(text)).conjunctions[0]
        for text in ("x = 1 and y = 1 and z = 1", "x = 2 and y = 2 and w = 1")
    )
    assert str(a.hull(b).to_node()) == "x in (1, 2) and y in (1, 2)"


def test_conjunctions_join_where_they_differ_in_one_attribute() -> None:
    def one(text: str) -> Conjunction:
        return NormalForm.of(parse_filter(text)).conjunctions[0]

    joined = one("x = 1 and y = 1").join(one("x = 1 and y = 2"))
    assert joined is not None
    assert str(joined.to_node()) == "x = 1 and y in (1, 2)"
    assert one("x = 1 and y = 1").join(one("x = 2 and y = 2")) is None
    assert one("x = 1 and y < :p").join(one("x = 2 and y < :q")) is None
    assert one("x = 1 and y < :p").join(one("x = 2 and y < :p")) is not None
    # said differently, the same strings
    starts = "x = 1 and s starts with 'N' and s ends with 'SE'"
    assert one(starts).join(one("x = 2 and s like 'N%SE'")) is not None


def test_ground_predicates_are_those_of_constants() -> None:
    assert is_ground(Constant(1))
    assert not is_ground(parse_filter("x < 1 + t").operands[0])  # type: ignore[union-attr]
    assert Conjunction.of([Predicate("x", Operator.PRESENT)]).sets == {"x": ANYTHING}


# -- how large it becomes -----------------------------------------------------------------------


def test_constraints_on_one_attribute_do_not_multiply() -> None:
    spans = "(x{0} < 1 or x{0} between 3 and 4 or x{0} > 9 or x{0} = 'a')"
    node = all_of(parse_filter(spans.format(number)) for number in range(20))
    form = NormalForm.of(node)  # 4 ** 20 disjuncts, were they written out
    assert len(form.conjunctions) == 1
    assert NormalForm.of(form.to_node()) == form


def test_what_is_missing_from_a_range_is_written_in_one_disjunct() -> None:
    node = all_of(
        parse_filter(f"x{number} > 0 and x{number} not in (1, 2, 3)") for number in range(20)
    )
    assert len(disjuncts(NormalForm.of(node).to_node())) == 1


def test_a_grid_of_disjuncts_becomes_one_conjunction() -> None:
    cells = [
        f"x between {a} and {a + 1} and y between {b} and {b + 1}"
        for a in range(8)
        for b in range(8)
    ]
    assert normal(" or ".join(cells)) == "x >= 0 and x <= 8 and y >= 0 and y <= 8"


def test_many_patterns_are_read_in_reasonable_time() -> None:
    many = [f"s not like '%a{number}%b'" for number in range(100, 200)]
    assert holds(NormalForm.of(parse_filter(" or ".join(many))).to_node(), {"s": "a1b"}, _NOTHING)
    listed = NormalForm.of(parse_filter(" and ".join(many))).to_node()
    assert not holds(listed, {"s": "a123b"}, _NOTHING)
    assert holds(listed, {"s": "a99b"}, _NOTHING)


@given(st.lists(predicates(numbers.map(Constant)), min_size=1, max_size=4))
def test_bounds_on_numbers_are_what_intersecting_gives(drawn: list[Predicate]) -> None:
    constraints = [Predicate("a", each.operator, each.operands) for each in drawn]
    values = [ground_values(each) for each in constraints]
    expected = values[0].intersect(*values[1:])
    assert Conjunction.of(constraints).sets == {"a": expected}

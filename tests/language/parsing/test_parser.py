from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support import strategies
from support.golden import messages
from tidegate.errors import FilterError
from tidegate.language.expressions import Constant
from tidegate.language.parsing.parser import Parser, parse_filter
from tidegate.language.syntax import And, Node, Operator, Or, Predicate, Truth

A1 = Predicate("a", Operator.EQUAL, (Constant(1),))
B2 = Predicate("b", Operator.EQUAL, (Constant(2),))
C3 = Predicate("c", Operator.EQUAL, (Constant(3),))
NOT_A1 = Predicate("a", Operator.NOT_EQUAL, (Constant(1),))
NOT_B2 = Predicate("b", Operator.NOT_EQUAL, (Constant(2),))


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a = 1 and b = 2 or c = 3", Or((And((A1, B2)), C3))),
        ("a = 1 or b = 2 and c = 3", Or((A1, And((B2, C3))))),
        ("(a = 1 or b = 2) and c = 3", And((Or((A1, B2)), C3))),
        ("a = 1 and b = 2 and c = 3", And((A1, B2, C3))),
        ("(a = 1 and b = 2) and c = 3", And((A1, B2, C3))),
        ("a = 1 or (b = 2 or c = 3)", Or((A1, B2, C3))),
        ("not a = 1 and b = 2", And((NOT_A1, B2))),
        ("not (a = 1 and b = 2)", Or((NOT_A1, NOT_B2))),
        ("not (a = 1 or b = 2)", And((NOT_A1, NOT_B2))),
        ("not not a = 1", A1),
        ("not (not a = 1 or b = 2)", And((A1, NOT_B2))),
        ("not (a = 1 and (b = 2 or not c = 3))", Or((NOT_A1, And((NOT_B2, C3))))),
        ("true", Truth(True)),
        ("not TRUE", Truth(False)),
        ("true and a = 1", A1),
        ("false or a = 1", A1),
        ("not (false or a = 1)", NOT_A1),
        ("false and a = 1", Truth(False)),
        ("not a is not null", Truth(False)),
        ("not not a is not null", Predicate("a", Operator.PRESENT)),
        ("a = 1 and not (b is not null)", Truth(False)),
    ],
)
def test_trees(text: str, node: Node) -> None:
    assert parse_filter(text) == node


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a=1", "a = 1"),
        ("a <> 1", "a != 1"),
        ("a!=1", "a != 1"),
        ("A = 1", "A = 1"),
        ("a = 1 AND b = 2 Or NOT c = 3", "a = 1 and b = 2 or c != 3"),
        ("a BETWEEN 1 AND 2 AND b = 2", "a between 1 and 2 and b = 2"),
        ("not a between 1 and 2", "a not between 1 and 2"),
        ("a not between 1 and 2", "a not between 1 and 2"),
        ("not a not between 1 and 2", "a between 1 and 2"),
        ("a between -1 + t and (1 + t) * 2", "a between -1 + t and (1 + t) * 2"),
        ("a In (1,'x',:p)", "a in (1, 'x', :p)"),
        ("a Not In (1)", "a not in (1)"),
        ("a LIKE 'x%'", "a like 'x%'"),
        ('a not like "x%"', "a not like 'x%'"),
        ("a Starts With 'x'", "a starts with 'x'"),
        ("not a starts with 'x'", "a not starts with 'x'"),
        ("a ENDS WITH @suffix", "a ends with @suffix"),
        ("a not ends with :s", "a not ends with :s"),
        ("a contains 'x'", "a contains 'x'"),
        ("a not contains 'x'", "a not contains 'x'"),
        ("a Is Not Null", "a is not null"),
        ("not a < 1", "a >= 1"),
        ("not a >= 1", "a < 1"),
        ("not a > 1", "a <= 1"),
        ("not a <= 1", "a > 1"),
        ("not a != 1", "a = 1"),
        ("quote.price < 5", "quote.price < 5"),
        ("größe < 5", "größe < 5"),
        ("`content-type` = 'a'", "`content-type` = 'a'"),
        ("`price` = 1", "price = 1"),
        ("`and` = 1", "`and` = 1"),
        ("`a``b` = 1", "`a``b` = 1"),
        ("`'` = 1", "`'` = 1"),
        ("t = t", "t = t"),
        ("now = now()", "now = now()"),
        ("timestamp < timestamp '2026-01-02'", "timestamp < timestamp '2026-01-02T00:00:00Z'"),
        ("infinity < infinity", "infinity < infinity"),
        ("s = 1 and ms = 2", "s = 1 and ms = 2"),
        ("\n a\t=\r\n1 ", "a = 1"),
    ],
)
def test_printed(text: str, printed: str) -> None:
    node = parse_filter(text)
    assert str(node) == printed
    assert parse_filter(printed) == node


@pytest.mark.parametrize(("text", "message"), messages("filters"))
def test_messages(text: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_an_empty_text(text: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert str(caught.value) == "the filter is empty; write `true` to match every event"


def test_a_text_of_several_lines() -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter("a = 1\nand b <\nand c = 3\n")
    assert str(caught.value) == "a value must follow '<', not 'and'\n  and c = 3\n  ^^^"
    with pytest.raises(FilterError) as caught:
        parse_filter("a = 1\nand b <\n\n")
    assert str(caught.value) == "a value must follow '<', but the text ends\n  and b <\n         ^"


def test_a_name_with_lone_surrogates_is_refused() -> None:
    with pytest.raises(FilterError, match="without lone surrogates"):
        parse_filter("`\ud800` = 1")


open_nodes = strategies.nodes(
    strategies.predicates(strategies.expressions() | strategies.constants())
)


@given(strategies.nodes() | open_nodes)
def test_what_is_printed_reads_back_the_same(node: Node) -> None:
    assert parse_filter(str(node)) == node


ALPHABET = """
    a b c.d t x price `content-type` `` ` and or not AND between in like starts ends with contains
    is null true false then within s ms timestamp infinity now min max abs sqrt ln foo
    1 2.5 .5 1e5 1e999 9223372036854775808 0 'x' '' ' "y" 'N%SE' '\\' '2026-01-02' \ud800
    :p :q : @load @ = != <> < <= > >= == && || ! + - * / % ( ) , ; $ . é
"""
PIECES = ALPHABET.split()
fuzzed = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join) | st.text(
    st.sampled_from("abt019.eE'\"`:@=<>!+-*/%(),& \\\n"), max_size=25
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """The text of a filter with a few pieces lost, doubled or in other places."""
    words = str(draw(open_nodes)).split(" ")
    for _ in range(draw(st.integers(0, 3))):
        index = draw(st.integers(0, len(words) - 1))
        other = draw(st.sampled_from([*PIECES, *words, ""]))
        words[index : index + draw(st.integers(0, 1))] = [other]
    return " ".join(words)


@given(fuzzed | damaged())
@example("x < " + "9" * 5000)
@example("x = 1 within 1e308 d")
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    with contextlib.suppress(FilterError):
        steps, within_s = Parser(text).pattern()
        printed = " then ".join(map(str, steps)) + (f" within {within_s} s" if within_s else "")
        assert Parser(printed).pattern() == (steps, within_s or None)
    try:
        node = parse_filter(text)
    except FilterError as error:
        problem = error
    else:
        assert parse_filter(str(node)) == node
        return
    assert problem.text == text
    assert 0 <= problem.start <= len(text)
    assert str(problem).startswith(problem.reason)


def test_predicates_have_the_places_of_their_parts() -> None:
    text = "not (`a b` not between -1 and (2) or x in (:p, 3 + t)) then y is not null"
    parser = Parser(text)
    parser.pattern()
    found = [
        (text[slice(*each.attribute)], [text[slice(*span)] for span in each.operands])
        for each in parser.placed
    ]
    assert found == [("`a b`", ["-1", "(2)"]), ("x", [":p", "3 + t"]), ("y", [])]
    assert [str(each.predicate) for each in parser.placed] == [
        "`a b` not between -1 and 2",
        "x in (:p, 3 + t)",
        "y is not null",
    ]

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import strategies
from tidegate.errors import FilterError, FilterLimitError
from tidegate.experiments.parsing import market_filters
from tidegate.language import bulk
from tidegate.language.bulk import BulkParser
from tidegate.language.expressions import Parameter
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.parser import parse_filter
from tidegate.language.shapes import Row, Shape, row_of, split
from tidegate.language.syntax import Node

Outcome = tuple[Shape, list[tuple[type, object]]] | str


def in_full(text: str, limits: Limits = DEFAULT_LIMITS) -> Outcome:
    """What the parser makes of a text: shape and row, or the message of its error."""
    try:
        shape, filled = split(parse_filter(text, limits))
    except FilterError as error:
        return str(error)
    return shape, typed(row_of(filled))


def in_bulk(parser: BulkParser, text: str) -> Outcome:
    try:
        shape, row = parser.read(text)
    except FilterError as error:
        return str(error)
    return shape, typed(row)


def typed(row: Row) -> list[tuple[type, object]]:
    return [(type(value), repr(value)) for value in row]


FRAMES = """
x < {}
x<{}
x=-{}
x = - {}
x < {}-{}
x1 = {} + t * {}
e5 < {}
a.b2 = {}
x < :p1 + {}
x < @v2 - {}
x between {} and -{}
x not between {} and {}
x in ({}, {},{})
x not in ({})
s like {}
s not like {}
s starts with {}
s like {} or s like {}
at > timestamp {}
at > timestamp {} - {}
not (x = {} or y < {})
(x = {} or y = {}) and z = {}
true or x < {}
x < {} and false
true and x < {}
x < abs({})
x = {}and y = {}
x = {}then
`n 5` = {}
`it's` = {}
`say "5"` = {}
`` = {}
größe = {}
x < {} {}
x < {}.
x = '{}'
x = {} and y = "it's" and z = 'a''b'
""".strip("\n").split("\n")
LITERALS = [
    *["0", "1", "12.5", ".5", "5.", "007", "1e5", "1E-3", "2.5e+3", "1e999", "1e", "5x", "٣"],
    *["999999999999999999", "9223372036854775807", "9223372036854775808", "1" * 30, "1" * 5000],
    *["'a'", '"b"', "''", "'it''s'", '"say ""hi"""', "'é'", "'5'", "'\"'", '"\'"', "'`'"],
    *["'a%'", "'a\\'", "'\\%'", "'2026-01-02'", "'2026-01-02T03:04:05+01:00'", "'\ud800'"],
    *["true", ":p", "t", "infinity", "name", "-1", "(2)", "'", '"', "`", ""],
]
likely = st.sampled_from(["1", "12.5", "'a'", "'a%'", "'2026-01-02'"])
frames = st.lists(st.sampled_from(FRAMES), min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from([" and ".join(parts), " or ".join(parts)])
)


@given(st.data(), frames)
def test_texts_of_one_frame_are_read_as_one_by_one(data: st.DataObject, frame: str) -> None:
    parser = BulkParser()
    for literal in (likely, likely, likely | st.sampled_from(LITERALS)):
        text = frame.format(*(data.draw(literal) for _ in range(frame.count("{}"))))
        assert in_bulk(parser, text) == in_full(text)
        assert in_bulk(parser, text) == in_full(text)


@pytest.mark.parametrize("frame", FRAMES)
def test_each_literal_after_each_other_kind(frame: str) -> None:
    holes = frame.count("{}")
    for first in ("1", "'a'", "'2026-01-02'"):
        for literal in LITERALS:
            parser = BulkParser()
            in_bulk(parser, frame.format(*[first] * holes))
            for changed in range(holes):
                literals = [first] * holes
                literals[changed] = literal
                text = frame.format(*literals)
                assert in_bulk(parser, text) == in_full(text)


@given(strategies.nodes(strategies.predicates(strategies.expressions() | strategies.constants())))
def test_any_filter_is_read_as_one_by_one(node: Node) -> None:
    parser = BulkParser()
    assert in_bulk(parser, str(node)) == in_full(str(node))
    assert in_bulk(parser, str(node)) == in_full(str(node))


@given(st.lists(st.text(st.sampled_from("a`'\"= 1.e"), max_size=12), min_size=2, max_size=4))
@example(["`'` = '` = '", "`'zz'` = '"])
@example(["`'` = '` = '", "`5` = '"])
@example(["`a'` = 1", "`a'` = 'x'"])
def test_quotes_in_backticks_do_not_deceive(texts: list[str]) -> None:
    parser = BulkParser()
    for text in texts:
        assert in_bulk(parser, text) == in_full(text)


def test_a_literal_that_is_not_used_is_checked_all_the_same() -> None:
    parser = BulkParser()
    parser.read("true or x < 1")
    with pytest.raises(FilterError, match="an integer must fit in 64 bits"):
        parser.read("true or x < 99999999999999999999")
    with pytest.raises(FilterError, match="arithmetic needs numbers"):
        parser.read("x < 1 and false or y < -'a'")


def test_the_texts_of_the_benchmark() -> None:
    parser = BulkParser()
    texts = list(market_filters(500))
    found = list(parser.read_many(texts))
    assert [(shape, typed(row)) for shape, row in found] == [in_full(text) for text in texts]
    shapes = {shape for shape, _ in found}
    assert len({id(shape) for shape, _ in found}) == len(shapes)


def test_parameters_and_constants_that_are_no_literals_stay() -> None:
    parser = BulkParser()
    parser.read("a = :p and b = true and c < infinity and d > 1")
    shape, row = parser.read("a = :p and b = true and c < infinity and d > 2.5")
    assert str(shape) == "a = ? and b = ? and c < ? and d > ?"
    assert row == (Parameter("p"), True, float("inf"), 2.5)


def test_errors_are_those_of_the_parser() -> None:
    parser = BulkParser()
    parser.read("price < 5")
    with pytest.raises(FilterError) as caught:
        parser.read("price < volume")
    assert str(caught.value) == in_full("price < volume")
    with pytest.raises(FilterError, match="a filter is a string, not int"):
        parser.read(5)  # type: ignore[arg-type]


def test_limits_hold_for_texts_of_a_known_frame() -> None:
    limits = Limits(length_chars_max=12)
    parser = BulkParser(limits)
    parser.read("name = 'abc'")
    with pytest.raises(FilterLimitError):
        parser.read("name = 'abcd'")
    with pytest.raises(FilterLimitError, match="disjuncts"):
        BulkParser(Limits(disjuncts_max=1)).read("a = 1 or b = 2")


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "TEMPLATE_CHARS_MAX", 100)
    parser = BulkParser()
    for index in range(300):
        name = f"name_{index}"
        shape, row = parser.read(f"{name} < {index}")
        assert (str(shape), row) == (f"{name} < ?", (index,))
        held = [*vars(parser).values()]
        assert all(len(each) <= 10 for each in held if isinstance(each, dict))


def test_an_unclosed_string_is_found_in_no_time() -> None:
    parser = BulkParser()
    for text in ("'" * 60_001, '"' * 60_001, "'\"" * 30_000, "1" * 60_000, "1." * 30_000):
        with pytest.raises(FilterError):
            parser.read("x = " + text + "`")

from __future__ import annotations

from typing import Never

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support import strategies
from tidegate.errors import FilterError, FilterLimitError
from tidegate.experiments.parsing import market_filters
from tidegate.experiments.workloads import WORKLOADS
from tidegate.language.expressions import ParameterRef
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.parsing import bulk
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.shapes import Row, Shape, row_of, split
from tidegate.language.syntax import Node, Predicate

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


# -- conjunctions that are put together from their parts --------------------------------------

PARTS = """
x = {}
X = {}
x <> {}
x<{}
a.b2 >= -{}
x <= {} + t * {}
x > @load - {}
x = :p
x < :p + {}
x between {} and {}
x BETWEEN {} AND -{}
x  between  {}  and  :p
x between({})and {}
x between {} + abs(t) and min({}, :p)
x not between {} and {}
not x = {}
not x between {} and {}
x is not null
x IS NOT NULL
x = true
x < infinity
x in ({})
x in ({}, {})
x not in ({}, :p, {})
s like {}
s not like {}
s starts with {}
s contains {}
at > timestamp {}
at > timestamp {} - {}
(x = {})
größe = {}
""".strip("\n").split("\n")
UNUSUAL_PARTS = """
x = {} or y = {}
(x = {} or y = {})
false or x = {}
true OR x = {}
(false or x = {})
x.or = {}
(x = {} and y = {})
(x = {}
y = {})
not (x = {} and y between {} and {})
true
false
not x is not null
`x` = {}
`x and y` = {}
`?` = {}
x = ?
x.between = {}
x.and = {}
between = {}
x between {}
x between {} and
x not {}
x = {} {}
x = y
x = {} then y = {}
x = 'it
and

""".strip("\n").split("\n")
PART_LITERALS = [
    *["0", "12.5", "007", "1e5", "1e999", "9223372036854775808", "'a and b'", '"x = ? and"'],
    *["'it''s'", "'a%'", "'a\\'", "'?'", "'2026-01-02'", "'2026-01-02T03:04:05+01:00'", "'é'"],
]
joins = st.sampled_from(
    [" and ", " and ", " AND ", "\nand\t", "  And  ", " and\u00a0", "and", " or "]
)
usual_parts = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4)
all_parts = st.lists(
    st.sampled_from(PARTS) | st.sampled_from(PARTS + UNUSUAL_PARTS), min_size=1, max_size=4
)


def draw_text(data: st.DataObject, parts: list[str], literal: st.SearchStrategy[str]) -> str:
    text = parts[0]
    for part in parts[1:]:
        text += data.draw(joins) + part
    return text.format(*(data.draw(literal) for _ in range(text.count("{}"))))


@given(st.data())
def test_any_combination_of_parts_is_read_as_one_by_one(data: st.DataObject) -> None:
    parser = BulkParser()
    for _ in range(6):
        literal = data.draw(st.sampled_from([likely, likely, st.sampled_from(PART_LITERALS)]))
        text = draw_text(data, data.draw(all_parts), literal)
        assert in_bulk(parser, text) == in_full(text)


@given(st.data(), usual_parts, st.sampled_from(UNUSUAL_PARTS), st.integers(0, 4))
def test_an_unusual_part_among_known_ones(
    data: st.DataObject, parts: list[str], unusual: str, place: int
) -> None:
    parser = BulkParser()
    for part in parts:
        in_bulk(parser, draw_text(data, [part], likely))
    parts.insert(place, unusual)
    text = draw_text(data, parts, likely)
    assert in_bulk(parser, text) == in_full(text)


@given(
    st.data(),
    usual_parts,
    st.builds(
        Limits,
        length_chars_max=st.integers(0, 60),
        depth_max=st.integers(0, 2),
        disjuncts_max=st.integers(0, 2),
        cost_max=st.integers(0, 20),
    ),
)
def test_limits_hold_for_combinations_of_parts(
    data: st.DataObject, parts: list[str], limits: Limits
) -> None:
    parser = BulkParser(limits)
    for part in parts:
        in_bulk(parser, draw_text(data, [part], likely))
    text = draw_text(data, parts, likely)
    assert in_bulk(parser, text) == in_full(text, limits)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("first", ["1", "'a'", "'2026-01-02'"])
def test_each_literal_in_each_part_after_each_other_kind(part: str, first: str) -> None:
    holes = part.count("{}")
    for literal in (*LITERALS, *PART_LITERALS):
        parser = BulkParser()
        in_bulk(parser, "a = 1 and " + part.format(*[first] * holes))
        for changed in range(holes):
            literals = [first] * holes
            literals[changed] = literal
            text = part.format(*literals) + " and b = 2"
            assert in_bulk(parser, text) == in_full(text)


@given(st.lists(strategies.predicates(strategies.expressions()), min_size=1, max_size=5))
def test_any_conjunction_is_read_as_one_by_one(parts: list[Predicate]) -> None:
    parser = BulkParser()
    for part in parts:
        in_bulk(parser, str(part))
    text = " and ".join(map(str, parts))
    assert in_bulk(parser, text) == in_full(text)


def no_parser(*_: object) -> Never:
    raise AssertionError("this need not be parsed")


def test_known_parts_are_put_together_without_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = BulkParser()
    parser.read(
        "price between 1 and 2 and symbol = 'IBM' and not x = -3 and at > timestamp '2026-01-02'"
    )
    parser.read("f >= :low + t and seen is not null")
    monkeypatch.setattr(bulk, "Parser", no_parser)
    shape, row = parser.read("f >= :low + t AND symbol = 'a and b' and price between 5 and 7.5")
    assert str(shape) == "f >= ? + t and price <= ? and price >= ? and symbol = ?"
    assert row == (ParameterRef("low"), 7.5, 5, "a and b")
    shape, row = parser.read("symbol = 'b' and not x = -4 and seen is not null and symbol = 'a'")
    assert str(shape) == "seen is not null and symbol = ? and symbol = ? and x != ?"
    assert row == ("b", "a", -4)
    with pytest.raises(AssertionError):
        parser.read("symbol = 'b' and volume > 1")


def test_a_part_that_was_wrong_once_can_be_learned_later(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = BulkParser()
    with pytest.raises(FilterError, match="64 bits"):
        parser.read("price < 99999999999999999999 and x = 1")
    parser.read("price < 5 and x = 1")
    monkeypatch.setattr(bulk, "Parser", no_parser)
    assert parser.read("x = 2 and price < 6")[1] == (6, 2)


def test_an_error_in_a_later_part_points_at_it() -> None:
    parser = BulkParser()
    parser.read("a = 1 and b = 2")
    for wrong in ("c = = 3", "c > 1e999", "c like 5", "c = timestamp 'soon'", "c", "d = e"):
        text = f"a = 5 and b = 6 and {wrong}"
        with pytest.raises(FilterError) as caught:
            parser.read(text)
        assert str(caught.value) == in_full(text)


def test_the_texts_of_a_workload_with_many_shapes() -> None:
    parser = BulkParser()
    texts = WORKLOADS["wide"].subscriptions(400)["filter"].to_pylist()
    for text in texts:
        assert text is not None
        assert in_bulk(parser, text) == in_full(text)


def test_only_texts_that_come_again_are_kept() -> None:
    parser = BulkParser()
    for first in range(40):
        for second in range(first):
            parser.read(f"n{first} = 1 and n{second} > 2")
    assert len(parser._parts) == 39 + 39
    assert not parser._templates
    for value in (5, 6):
        parser.read(f"n3 = {value} and n2 > 7")
    assert len(parser._templates) == 1


# -- what is remembered, and what is checked anyway -------------------------------------------


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


def test_parameters_and_constants_that_are_no_literals_stay() -> None:
    parser = BulkParser()
    parser.read("a = :p and b = true and c < infinity and d > 1")
    shape, row = parser.read("a = :p and b = true and c < infinity and d > 2.5")
    assert str(shape) == "a = ? and b = ? and c < ? and d > ?"
    assert row == (ParameterRef("p"), True, float("inf"), 2.5)


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
    monkeypatch.setattr(bulk, "KEPT_CHARS_MAX", 100)
    parser = BulkParser()
    for index in range(300):
        name = f"name_{index // 2}"
        shape, row = parser.read(f"{name} < {index}")
        assert (str(shape), row) == (f"{name} < ?", (index,))
        shape, row = parser.read(f"{name} < {index} or x = 1")
        assert (str(shape), row) == (f"{name} < ? or x = ?", (index, 1))
        held = [*vars(parser).values()]
        assert all(len(each) <= 10 for each in held if isinstance(each, dict))


def test_an_unclosed_string_is_found_in_no_time() -> None:
    parser = BulkParser()
    for text in ("'" * 60_001, '"' * 60_001, "'\"" * 30_000, "1" * 60_000, "1." * 30_000):
        with pytest.raises(FilterError):
            parser.read("x = " + text + "`")

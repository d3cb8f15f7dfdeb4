from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from support.strategies import filters
from tidegate.errors import ProtocolError
from tidegate.language.evolve import Periodic
from tidegate.language.filters import Filter, parse
from tidegate.network.wire import filter_shapes
from tidegate.network.wire.filter_shapes import (
    ReceivedFilterShapes,
    SentFilterShapes,
    shape_of_text,
    shape_text,
    subscribe_messages,
)
from tidegate.network.wire.requests import SubscribeRows
from tidegate.network.wire.values import wire_cells


@given(filters)
def test_shapes_are_the_texts_of_filters(filter: Filter) -> None:
    shape, row = filter.shape_and_row
    assert shape_of_text(shape_text(shape)) == shape
    assert Filter.of_shape(shape_of_text(shape_text(shape)), row) == Filter.of_shape(shape, row)


@pytest.mark.parametrize(
    "text",
    ["", "a <", "a < 5", "a < :limit", "a < :c1", "b < :c0 and a < :c1", "a < :c0 and b < :c0"],
)
def test_other_texts_are_no_shapes(text: str) -> None:
    with pytest.raises(ProtocolError):
        shape_of_text(text)


def test_what_is_sent_is_received() -> None:
    sent, received = SentFilterShapes(), ReceivedFilterShapes()
    for text, number in [("a < 1", 0), ("b = 'x'", 1), ("a < 2", 0)]:
        shape = parse(text).shape_and_row[0]
        definitions: list[bytes] = []
        assert sent.number(shape, definitions) == number
        for each in definitions:
            received.define(memoryview(each))
        assert received[number] == shape
    assert definitions == []


def test_a_table_is_bounded_and_begins_anew_between_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filter_shapes, "FILTER_SHAPES_MAX", 20)
    sent, received = SentFilterShapes(), ReceivedFilterShapes()
    definitions: list[bytes] = []
    for number in range(20):
        sent.number(parse(f"a{number} < 1").shape_and_row[0], definitions)
    shape = parse("b < 1").shape_and_row[0]
    assert sent.number(shape, definitions) is None
    sent.begin_message()
    assert sent.number(shape, definitions) == 0
    for each in definitions:
        received.define(memoryview(each))
    assert received[0] == shape
    with pytest.raises(ProtocolError, match="filter shape 1 was not defined"):
        received[1]


def test_a_shape_with_a_very_long_text_has_no_number() -> None:
    filter = parse(" or ".join(f"{'x' * 1000}{n} < 1" for n in range(60)))
    longer = Filter.of_shape(*filter.shape_and_row)
    assert SentFilterShapes().number(longer.shape_and_row[0], []) is not None
    wide = parse(f"`{'x' * 65_000}` in ({', '.join('1' * 150)})")
    assert SentFilterShapes().number(wide.shape_and_row[0], []) is None


@pytest.mark.parametrize(
    "definition", [[0], [1, "a < :c0"], [0, 5], [0, "a < 5"], [0, "a < :c0", 1]]
)
def test_malformed_definitions_are_refused(definition: object) -> None:
    with pytest.raises(ProtocolError):
        ReceivedFilterShapes().define(memoryview(msgspec.msgpack.encode(definition)))


def received_shape(text: str) -> ReceivedFilterShapes:
    received = ReceivedFilterShapes()
    received.define(memoryview(msgspec.msgpack.encode([0, text])))
    return received


def test_rows_are_subscriptions() -> None:
    filters = [parse("price < 5 and symbol = :s"), parse("price < 6 and symbol = 'IBM'")]
    request = SubscribeRows(
        1,
        0,
        ["one", "two"],
        [wire_cells(each.shape_and_row[1]) for each in filters],
        [{"s": "HP"}, {}],
        evolve="periodic 1 s",
        first_version=7,
        confirm=True,
        space="market",
    )
    received = received_shape("price < :c0 and symbol = :c1")
    one, two = subscribe_messages(request, received)
    assert (one.wanted, one.name, one.parameters, one.version) == (
        filters[0], "one", {"s": "HP"}, 7,
    )  # fmt: skip
    assert (two.wanted, two.name, two.parameters, two.version) == (filters[1], "two", {}, 8)
    assert (two.evolve, two.confirm, two.space) == (Periodic(1), True, "market")


@pytest.mark.parametrize(
    ("names", "rows", "parameters"),
    [
        (["one"], [[1], [2]], []),
        (["one"], [[1, 2]], []),
        (["one"], [[]], []),
        (["one"], [[1]], [{}, {}]),
    ],
)
def test_rows_must_fit_their_shape_and_names(
    names: list[str], rows: list[list[bool | int]], parameters: list[dict[str, bool | int]]
) -> None:
    request = SubscribeRows(1, 0, names, rows, parameters)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError):
        list(subscribe_messages(request, received_shape("price < :c0")))

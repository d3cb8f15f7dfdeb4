"""Shapes of filters: what many subscriptions share crosses a connection once, then only rows.

A shape is written as the text of a filter in which the parameters `:c0`, `:c1`, ... stand in place
of the values, in the order of the row: `price < :c0 and symbol = :c1`. Any parser of filters reads
it. Numbers and tables are as those of event shapes: from 0 on, and 0 once more begins a new table.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.msgpack import Decoder, Encoder

from tidegate.errors import ProtocolError, TidegateError
from tidegate.language.evolve import parse_evolve
from tidegate.language.expressions import Expression, ParameterRef, Slot
from tidegate.language.filters import Filter
from tidegate.language.limits import Limits
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.shapes import Row, Shape, split
from tidegate.language.syntax import map_leaves
from tidegate.network.wire.problems import TEXT_CHARS_MAX
from tidegate.network.wire.requests import SubscribeRows, Text
from tidegate.network.wire.values import MALFORMED, Number, row_of, values_of
from tidegate.routing import messages as m

FILTER_SHAPES_MAX = 16_384
"""The shapes in the table of one connection and direction."""
TABLE_BYTES_MAX = 1 << 24
"""The size of their definitions together."""

_LIMITS = Limits(length_chars_max=TEXT_CHARS_MAX)


def shape_text(shape: Shape) -> str:
    """A shape as the text of a filter.

    >>> from tidegate.language.filters import parse
    >>> print(shape_text(parse("price < 9 and symbol = 'IBM'").shape_and_row[0]))
    price < :c0 and symbol = :c1
    """

    def named(leaf: Expression) -> Expression:
        return ParameterRef(f"c{leaf.index}") if isinstance(leaf, Slot) else leaf

    return str(map_leaves(shape.to_node(), named))


def shape_of_text(text: str) -> Shape:
    """The shape that a text stands for; raises ProtocolError for a text that is none."""
    try:
        shape, filled = split(parse_filter(text, _LIMITS))
    except TidegateError as error:
        raise ProtocolError(f"the text of a filter shape is malformed: {error}") from None
    if filled != [ParameterRef(f"c{index}") for index in range(len(filled))]:
        raise ProtocolError(
            f"`{text}` is no filter shape: its values are not :c0, :c1, ... in order"
        )
    return shape


class FilterShapeDefinition(
    msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True
):
    """The body of a frame that defines a shape."""

    number: Number
    text: Text


_encoder = Encoder()
_decoder = Decoder(FilterShapeDefinition)


class ReceivedFilterShapes:
    """The filter shapes that the peer has defined on one connection."""

    def __init__(self) -> None:
        self._shapes: list[Shape] = []
        self._bytes = 0

    def define(self, body: memoryview) -> None:
        """Take the body of a definition; raises ProtocolError if it is none or the table full."""
        try:
            definition = _decoder.decode(body)
        except MALFORMED as error:
            raise ProtocolError(f"the definition of a filter shape is malformed: {error}") from None
        number = definition.number
        if number == 0:
            self._shapes, self._bytes = [], 0
        if number != len(self._shapes):
            raise ProtocolError(
                f"filter shape {number} is defined where {len(self._shapes)} is the next"
            )
        self._bytes += len(body)
        if number >= FILTER_SHAPES_MAX or self._bytes > TABLE_BYTES_MAX:
            raise ProtocolError(
                f"at most {FILTER_SHAPES_MAX} filter shapes of {TABLE_BYTES_MAX} bytes together "
                "are taken; number 0 begins a new table"
            )
        self._shapes.append(shape_of_text(definition.text))

    def __getitem__(self, number: int) -> Shape:
        if number >= len(self._shapes):
            raise ProtocolError(f"filter shape {number} was not defined")
        return self._shapes[number]

    def filter(self, number: int, row: Row) -> Filter:
        """The filter of a shape and a row."""
        shape = self[number]
        if shape.width != len(row):
            raise ProtocolError(f"a row of `{shape}` has {shape.width} values, not {len(row)}")
        return Filter.of_shape(shape, row)


class SentFilterShapes:
    """The filter shapes that were defined to the peer on one connection.

    Rule. The numbers in one message are of one table, so a table is never begun within a message.
    """

    def __init__(self) -> None:
        self._numbers: dict[Shape, int] = {}
        self._bytes = 0

    def begin_message(self) -> None:
        """Begin a message; a table that is half full makes room for those to come."""
        if len(self._numbers) > FILTER_SHAPES_MAX // 2 or self._bytes > TABLE_BYTES_MAX // 2:
            self._numbers, self._bytes = {}, 0

    def number(self, shape: Shape, definitions: list[bytes]) -> int | None:
        """The number of a shape; None if the text of a filter must be sent in place of it.

        A definition that must be sent before the message is appended to ``definitions``.
        """
        known = self._numbers.get(shape)
        if known is not None:
            return known
        text, number = shape_text(shape), len(self._numbers)
        if len(text) > TEXT_CHARS_MAX:
            return None
        definition = _encoder.encode(FilterShapeDefinition(number, text))
        if number >= FILTER_SHAPES_MAX or self._bytes + len(definition) > TABLE_BYTES_MAX:
            return None
        self._numbers[shape] = number
        self._bytes += len(definition)
        definitions.append(definition)
        return number


def subscribe_messages(
    request: SubscribeRows, received: ReceivedFilterShapes
) -> Iterable[m.Subscribe]:
    """The messages for the broker, one for each row."""
    evolve = None if request.evolve is None else parse_evolve(request.evolve)
    parameters = request.parameters or [{}] * len(request.rows)
    if not len(request.names) == len(request.rows) == len(parameters):
        raise ProtocolError(
            f"{len(request.rows)} rows, but {len(request.names)} names and {len(parameters)} "
            "sets of parameters"
        )
    rows = zip(request.names, request.rows, parameters, strict=True)
    for index, (name, cells, values) in enumerate(rows):
        yield m.Subscribe(
            received.filter(request.shape, row_of(cells)),
            name,
            values_of(values),
            evolve,
            request.first_version + index,
            request.origin_us,
            request.confirm,
            request.space,
        )

from __future__ import annotations

import msgspec
import pytest

from tidegate.network.wire import flow


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (flow.Heartbeat(), []),
        (flow.Credit(10, 2**40), [10, 2**40]),
        (flow.Ack(7), [7]),
        (flow.LinkAck(8), [8]),
        (flow.Confirmed(9), [9]),
    ],
)
def test_the_body_is_an_array_of_the_fields(message: msgspec.Struct, fields: list[int]) -> None:
    data = msgspec.msgpack.encode(message)
    assert msgspec.msgpack.decode(data) == fields
    assert msgspec.msgpack.decode(data, type=type(message)) == message


@pytest.mark.parametrize("number", [-1, 2**63, 1.5, None])
def test_numbers_are_counts(number: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode([number]), type=flow.Ack)

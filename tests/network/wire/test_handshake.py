from __future__ import annotations

import msgspec
import pytest

from tidegate.network.wire.handshake import Goodbye, Hello, Welcome
from tidegate.network.wire.problems import Problem

HELLO = [
    "desk-7", 5, "client", None, "tidegate", [1, 1], False, 0, 0, 0, "drop-oldest", None, 0,
    1 << 24, 0, 0, 10_000, "",
]  # fmt: skip


def decoded(fields: list[object]) -> Hello:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(fields), type=Hello)


def test_the_fields_are_in_the_order_of_the_documentation() -> None:
    assert decoded(HELLO) == Hello("desk-7", 5)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Hello("desk-7", 5))) == HELLO


def test_fields_at_the_end_may_be_left_out() -> None:
    assert decoded(HELLO[:2]) == Hello("desk-7", 5)


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (0, ""),
        (0, "x" * 201),
        (1, -1),
        (2, "admin"),
        (4, "mqtt"),
        (5, [1]),
        (10, "drop-all"),
        (13, 100),
        (16, 1),
        (16, 10**9),
    ],
)
def test_other_values_are_refused(index: int, value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        decoded([*HELLO[:index], value, *HELLO[index + 1 :]])


def test_more_fields_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decoded([*HELLO, 1])


def test_the_answers() -> None:
    for message in (Welcome("a", 9, handled=3), Goodbye(Problem("access", "no"), 5)):
        data = msgspec.msgpack.encode(message)
        assert msgspec.msgpack.decode(data, type=type(message)) == message

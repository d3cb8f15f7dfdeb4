from __future__ import annotations

import msgspec
import pytest

from tidegate.network.wire import peer_messages as w


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (
            w.FilterDelta(
                [((1, None), w.WireFilter(0, [5, "x"])), ((2, "a"), w.WireFilter("x < t", [], 7))],
                [(3, "a")],
                [((4, None), [(0, 1.5)])],
            ),
            [1, [[[1, None], [0, [5, "x"], None, 0]], [[2, "a"], ["x < t", [], 7, 0]]],
             [[3, "a"]], [[[4, None], [[0, 1.5]]]]],
        ),
        (w.AdvertisementDelta([((1, None), "x > 0")], []), [2, [[[1, None], "x > 0"]], []]),
        (
            w.Notify("a", ["b"], w.WireExamination("c", b"\x05", bytes(8))),
            [3, "a", ["b"], ["c", b"\x05", bytes(8)]],
        ),
        (w.Connect("", 10, True, [w.WireAnnouncement("a", 1, [("b", 5)])], False),
         [7, "", 10, True, [["a", 1, [["b", 5]]]], False]),
        (w.Disconnect(), [9]),
        (w.Probe("a", 5, None), [11, "a", 5, None]),
        (w.Seek("a", 1, "desk-7", "b", None, 2), [13, "a", 1, "desk-7", "b", None, 2]),
        (w.Refused(w.Echo("a", 1), "no"), [22, [12, "a", 1], "no"]),
    ],
)  # fmt: skip
def test_a_message_is_an_array_that_begins_with_its_kind(
    message: w.WireMessage, fields: list[object]
) -> None:
    data = msgspec.msgpack.encode(message)
    assert msgspec.msgpack.decode(data) == fields
    assert msgspec.msgpack.decode(data, type=w.WireMessage) == message


def test_every_kind_has_its_own_number() -> None:
    kinds = [each.__struct_config__.tag for each in w.WireMessage.__args__]
    assert sorted(kinds) == list(range(1, 26))

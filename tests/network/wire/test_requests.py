from __future__ import annotations

import pytest

from support.strategies import EDGE_TIMES
from tidegate.errors import BadValueError
from tidegate.language.evolve import Lazy
from tidegate.network.wire import requests
from tidegate.network.wire.values import wire_value
from tidegate.routing import messages as m


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            requests.Subscribe(
                1, "x < :a", "n", {"a": wire_value(EDGE_TIMES[0])}, "lazy", 3, 5, True, "s"
            ),
            m.Subscribe("x < :a", "n", {"a": EDGE_TIMES[0]}, Lazy(), 3, 5, True, "s"),
        ),
        (requests.Subscribe(1, "x < 1"), m.Subscribe("x < 1")),
        (requests.Unsubscribe(1, "x < 1", "s"), m.Unsubscribe("x < 1", "s")),
        (requests.Advertise(1, "x < 1", "s"), m.Advertise("x < 1", "s")),
        (requests.Unadvertise(1, "x < 1"), m.Unadvertise("x < 1")),
        (requests.Suspend(1), m.Suspend()),
        (requests.Resume(1, "b", 2), m.Resume("b", 2)),
        (requests.Depart(1), m.Depart()),
    ],
)
def test_requests_are_messages_for_the_broker(
    request_: requests.Subscribe, message: m.Subscribe
) -> None:
    assert request_.to_message() == message


def test_an_update_gets_the_name_of_its_handle() -> None:
    update = requests.Update(1, 4, 7, {"a": 1, "b": None}, "x < :a", True)
    assert update.to_message("n") == m.Update("n", 7, {"a": 1, "b": None}, "x < :a", True)


def test_an_evolve_mode_that_is_none_is_an_error() -> None:
    with pytest.raises(BadValueError, match="not an evolve mode"):
        requests.Subscribe(1, "x < t", "n", evolve="often").to_message()

from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest

from tidegate.errors import BadValueError, SubscriptionError
from tidegate.language.values import Value
from tidegate.subscribers.parameter_values import ParameterValues
from tidegate.subscribers.parameters import Parameter


class RecordingListener:
    """Records the changes that are reported to it."""

    def __init__(self) -> None:
        self.values: list[Mapping[str, Value | None]] = []

    def check(self, values: Mapping[str, Value]) -> None:
        if "bad" in values.values():
            raise BadValueError("too bad")

    def changed(self, values: Mapping[str, Value | None]) -> None:
        self.values.append(values)


@pytest.fixture
def values() -> ParameterValues:
    return ParameterValues(
        "Monitor", {"low": Parameter(1), "high": Parameter(2), "name": Parameter()}
    )


def test_values_are_replaced_as_a_whole(values: ParameterValues) -> None:
    before = values.values
    assert before == {"low": 1, "high": 2}
    values.assign({"low": 3, "name": "x"})
    assert values.values == {"low": 3, "high": 2, "name": "x"}
    values.assign({"low": None})
    assert values.values == {"high": 2, "name": "x"}
    assert before == {"low": 1, "high": 2}


def test_the_listener_is_called_once_for_each_change(values: ParameterValues) -> None:
    values.assign({"low": 0})
    values.listener = listener = RecordingListener()
    values.assign({"low": 3, "high": 4})
    values.assign({"high": float("nan")})
    assert listener.values == [{"low": 3, "high": 4}, {"high": None}]


def test_all_or_nothing_changes(values: ParameterValues) -> None:
    values.listener = listener = RecordingListener()
    with pytest.raises(BadValueError, match="a list is not a value"):
        values.assign({"low": 3, "high": [4]})
    with pytest.raises(SubscriptionError, match="Monitor has no parameter 'hihg'; it has low, hi"):
        values.assign({"low": 3, "hihg": 4})
    with pytest.raises(BadValueError, match="too bad"):
        values.assign({"low": 3, "high": "bad"})
    assert values.values == {"low": 1, "high": 2}
    assert listener.values == []


def test_changes_are_reported_in_the_order_in_which_they_happen(values: ParameterValues) -> None:
    """Several threads assign; the values reported last are the final ones."""
    values.listener = listener = RecordingListener()
    start = threading.Barrier(4)

    def assign(number: int) -> None:
        start.wait()
        for step in range(500):
            values.assign({"low": number * 1000 + step, "high": number * 1000 + step})

    threads = [threading.Thread(target=assign, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reported = [each["low"] for each in listener.values]
    assert reported == [each["high"] for each in listener.values]
    assert reported[-1] == values.values["low"] == values.values["high"]
    for number in range(4):
        own = range(number * 1000, number * 1000 + 500)
        assert [each for each in reported if each in own] == list(own)

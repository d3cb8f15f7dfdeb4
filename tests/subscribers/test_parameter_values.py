from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest

from tidegate.errors import BadValueError, SubscriptionError
from tidegate.language.values import Value
from tidegate.subscribers.fields import Fields
from tidegate.subscribers.parameters import Parameter


class Heard:
    """Writes down what it is told of."""

    def __init__(self) -> None:
        self.values: list[Mapping[str, Value | None]] = []

    def changed(self, values: Mapping[str, Value | None]) -> None:
        self.values.append(values)


@pytest.fixture
def fields() -> Fields:
    return Fields("Monitor", {"low": Parameter(1), "high": Parameter(2), "name": Parameter()})


def test_values_are_replaced_as_a_whole(fields: Fields) -> None:
    before = fields.values
    assert before == {"low": 1, "high": 2}
    fields.assign({"low": 3, "name": "x"})
    assert fields.values == {"low": 3, "high": 2, "name": "x"}
    fields.assign({"low": None})
    assert fields.values == {"high": 2, "name": "x"}
    assert before == {"low": 1, "high": 2}


def test_whoever_listens_is_told_of_each_change_once(fields: Fields) -> None:
    fields.assign({"low": 0})
    fields.listener = heard = Heard()
    fields.assign({"low": 3, "high": 4})
    fields.assign({"high": float("nan")})
    assert heard.values == [{"low": 3, "high": 4}, {"high": None}]


def test_all_or_nothing_changes(fields: Fields) -> None:
    fields.listener = heard = Heard()
    with pytest.raises(BadValueError, match="a list is not a value"):
        fields.assign({"low": 3, "high": [4]})
    with pytest.raises(SubscriptionError, match="Monitor has no parameter 'hihg'; it has low, hi"):
        fields.assign({"low": 3, "hihg": 4})
    assert fields.values == {"low": 1, "high": 2}
    assert heard.values == []


def test_changes_are_told_in_the_order_in_which_they_happen(fields: Fields) -> None:
    """Threads assign at once; what was told last is what the fields are at the end."""
    fields.listener = heard = Heard()
    start = threading.Barrier(4)

    def assign(number: int) -> None:
        start.wait()
        for step in range(500):
            fields.assign({"low": number * 1000 + step, "high": number * 1000 + step})

    threads = [threading.Thread(target=assign, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [each["low"] for each in heard.values]
    assert told == [each["high"] for each in heard.values]
    assert told[-1] == fields.values["low"] == fields.values["high"]
    for number in range(4):
        own = range(number * 1000, number * 1000 + 500)
        assert [each for each in told if each in own] == list(own)

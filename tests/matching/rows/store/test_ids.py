from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import SubscriptionError
from tidegate.matching.rows.store.ids import IdIndex, Numbers, check_ids


def numbers(*some: int) -> Numbers:
    return np.array(some, np.int32)


def filled(*ids: str) -> IdIndex:
    index = IdIndex()
    index.reserve(len(ids))
    index.write(np.arange(len(ids), dtype=np.int32), ids)
    return index


def test_ids_are_found_once_they_are_entered() -> None:
    index = filled("a", "", "é" * 20, "\0")
    assert not index.numbers
    index.enter(numbers(2, 0, 3, 1))
    assert index.numbers == {"a": 0, "": 1, "é" * 20: 2, "\0": 3}
    assert index.ids_of(numbers(3, 0)) == ["\0", "a"]
    assert index.ids_of(numbers()) == []
    assert index.ids_of(numbers(2)) == ["é" * 20]
    assert (index.id(1), index.between(0, 2)) == ("", ["a", ""])


def test_an_id_that_was_removed_can_be_given_again() -> None:
    index = filled("a", "b", "a")
    index.enter(numbers(0, 1))
    index.remove(0)
    assert index.numbers == {"b": 1}
    index.enter(numbers(2))
    assert index.numbers == {"b": 1, "a": 2}


@pytest.mark.parametrize("ids", [("a", "b", "c", "a"), ("a", "b", "c", "b")])
def test_if_one_id_is_taken_none_is_entered(ids: tuple[str, ...]) -> None:
    index = filled(*ids)
    index.enter(numbers(0))
    with pytest.raises(SubscriptionError, match=f"there already is a subscription '{ids[3]}'"):
        index.enter(numbers(1, 2, 3))
    assert index.numbers == {"a": 0}
    index.enter(numbers(1, 2))
    assert index.numbers == {"a": 0, "b": 1, "c": 2}


@pytest.mark.parametrize(
    ("id", "message"),
    [
        (5, "an id is a string, not int"),
        (None, "an id is a string, not NoneType"),
        (b"a", "an id is a string, not bytes"),
        ("\ud800", "a string must be valid Unicode"),
    ],
)
def test_what_is_no_id(id: object, message: str) -> None:
    with pytest.raises(SubscriptionError, match=message):
        check_ids(["a", id])

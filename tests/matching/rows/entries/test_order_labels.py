from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.rows.entries.order_labels import LABEL_MAX, OrderLabels

TEXTS = [
    "",
    "a",
    "aa",
    "a\x00",
    "b",
    "shared prefix 1",
    "shared prefix 2",
    "é",
    "\uffff",
    "\U0001f600",
]
LONG = [
    2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63 - 1, -(2**63), 2.0**53, 2.0**63, 1e300, -1e300,
]  # fmt: skip
EVENTS = [*LONG, 0, 1.5, -1, math.inf, -math.inf, 2**62, 2**53 - 1, 9.3e18]


def check_order(labels: OrderLabels[str], values: list[str]) -> None:
    """What values and bounds say about each other is what their numbers say."""
    for bound in labels:
        label = labels.label(bound)
        for value in [*values, bound]:
            place = labels.place(value)
            assert label is None or (place < label, place == label) == (
                value < bound,
                value == bound,
            )


@given(st.lists(st.lists(st.sampled_from(TEXTS) | st.text(max_size=3), max_size=4), max_size=6))
def test_labels_have_the_order_of_strings(batches: list[list[str]]) -> None:
    labels = OrderLabels[str]()
    for batch in batches:
        labels.add(batch)
        check_order(labels, TEXTS)
    assert {*labels} == {text for batch in batches for text in batch}


@given(st.lists(st.sampled_from(LONG)), st.sampled_from(EVENTS))
def test_labels_have_the_order_of_numbers(bounds: list[int | float], value: int | float) -> None:
    """Integers and floats compare by their exact values, also those that are the same float."""
    labels = OrderLabels[int | float](bounds)
    for bound in bounds:
        label = labels.label(bound)
        assert label is not None
        place = labels.place(value)
        assert (place < label, place == label) == (value < bound, value == bound)


@given(st.randoms(use_true_random=False))
def test_bounds_come_and_go(chance: random.Random) -> None:
    labels, there = OrderLabels[str](), set[str]()
    for _ in range(30):
        some = {chance.choice(TEXTS) for _ in range(chance.randint(0, 3))}
        if chance.random() < 0.5:
            labels.add(some)
            there |= some
        else:
            labels.remove(some)
            there -= some
        assert ({*labels}, len(labels)) == (there, len(there))
        check_order(labels, TEXTS)


def test_a_label_stays_while_others_come_and_go() -> None:
    labels = OrderLabels(["m"])
    label = labels.label("m")
    labels.add([f"{number:03}" for number in range(200)])
    labels.add(["z", "n"])
    labels.remove([f"{number:03}" for number in range(200)])
    assert labels.label("m") == label


@pytest.mark.parametrize("texts", ["rising", "falling", "inwards"])
def test_a_full_gap_is_crowded_and_nothing_else_is(texts: str) -> None:
    """Neighbours that come closer and closer use a gap up; whoever has no label is known for it."""
    labels = OrderLabels(["a", "z"])
    count = 20_000
    for number in range(count):
        if texts == "rising":
            text = f"b{number:06}"
        elif texts == "falling":
            text = f"b{count - number:06}"
        else:  # below all of before and above all of before in turn
            text = f"b{number:06}" if number % 2 else f"y{count - number:06}"
        labels.add([text])
    assert labels.crowded == sum(labels.label(text) is None for text in labels)
    numbers = [label for text in sorted(labels) if (label := labels.label(text)) is not None]
    assert all(before < after for before, after in pairwise(numbers))
    assert all(label % 2 == 0 and abs(label) < LABEL_MAX for label in numbers)
    assert len(numbers) > 2_000


def test_there_is_room_for_millions_beyond_the_last_bound() -> None:
    labels = OrderLabels(["a"])
    for number in range(5_000):
        labels.add([f"b{number:06}"])
    label = labels.label("b004999")
    assert labels.crowded == 0
    assert label is not None
    assert label < 2**40


def test_many_at_once_have_the_same_labels_as_sorted() -> None:
    labels = OrderLabels([f"{number * 37 % 1000:04}" for number in range(1_000)])
    numbers = [labels.label(f"{number:04}") for number in range(1_000)]
    assert numbers == sorted(numbers, key=lambda each: each or 0)
    labels.remove([f"{number:04}" for number in range(100, 1_000)])
    check_order(labels, ["0050", "00505", "0999", ""])
    assert len(labels) == 100


def test_labels_are_kept_by_who_stores_them() -> None:
    labels = OrderLabels(["b", "a", "c"])
    again = OrderLabels(*zip(*labels.items(), strict=True))
    assert [again.label(text) for text in "abc"] == [labels.label(text) for text in "abc"]
    assert again.place("bb") == labels.place("bb")

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.matching.rows.entries import orders as module
from tidegate.matching.rows.entries.channels import NUMBER
from tidegate.matching.rows.entries.orders import Orders
from tidegate.matching.rows.kernels.cell_kinds import STRING, TIME
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter


def test_labels_of_strings_and_of_long_numbers() -> None:
    orders = Orders()
    low, high = orders.label("x", STRING, ["a", "b"])
    assert low is not None
    assert high is not None
    assert low < orders.strings("x").place("ab") < high
    (number,) = orders.label("x", NUMBER, [2**53 + 1])
    (time,) = orders.label("x", TIME, [2**53 + 1])
    assert orders.long("x", NUMBER).place(2**53 + 1) == number
    assert orders.long("x", TIME).place(2**53 + 1) == time
    assert (len(orders), orders.long_numbers) == (4, 2)


def test_a_string_that_is_forgotten_leaves_all_attributes() -> None:
    orders = Orders()
    for attribute in ("x", "y"):
        orders.label(attribute, STRING, ["a", "b"])
    orders.forget_texts(["b", "never seen"])
    assert (list(orders.strings("x")), list(orders.strings("y"))) == (["a"], ["a"])


def test_an_attribute_that_is_dropped_takes_its_labels_along() -> None:
    orders = Orders()
    orders.label("x", STRING, ["a", "b"])
    orders.label("y", STRING, ["a"])
    orders.label("x", NUMBER, [2**60])
    orders.drop_attribute("x")
    orders.drop_attribute("unknown")
    assert len(orders) == 1
    orders.forget_texts(["a", "b"])
    assert len(orders) == 0


def test_long_numbers_are_dropped_when_there_are_twice_as_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LONG_MAX", 4)
    orders = Orders()
    orders.label("x", NUMBER, [2**60, 2**60 + 1, 2**60 + 2])
    before = orders.has_many_long
    orders.label("x", TIME, [2**55, 2**55 + 1])
    many = orders.has_many_long
    orders.keep_long({2**60 + 1, 2**55})
    assert (before, many, orders.has_many_long) == (False, True, False)
    assert (list(orders.long("x", NUMBER)), list(orders.long("x", TIME))) == ([2**60 + 1], [2**55])


def test_attributes_with_many_crowded_bounds_are_named_once() -> None:
    orders = Orders()
    orders.label("y", STRING, ["a", "z"])
    orders.label("x", STRING, ["a", "z"])
    assert orders.crowded() == []
    text = "m"
    while not orders.strings("x").crowded:
        orders.label("x", STRING, [text])
        text += "a" if len(text) % 2 else "z"  # between the last two
    while 16 * orders.strings("x").crowded < len(orders.strings("x")):
        orders.label("x", STRING, [text])
        text += "a" if len(text) % 2 else "z"
    assert orders.crowded() == ["x"]
    assert orders.crowded() == []


def test_a_snapshot_has_the_labels(tmp_path: Path) -> None:
    orders = Orders()
    texts, numbers = ["", "a", "\U0001f600"], [2**63 - 1, 1e300, -(2**53) - 1]
    labels = orders.label("x", STRING, [*texts]), orders.label("x", NUMBER, [*numbers])
    orders.label("empty", STRING, [])
    into = SectionWriter()
    orders.save(into)
    into.write(tmp_path / "snapshot")
    loaded = Orders.load(SectionReader(tmp_path / "snapshot"))
    assert (
        loaded.label("x", STRING, [*texts]),
        loaded.label("x", NUMBER, [*numbers]),
    ) == labels
    loaded.forget_texts(["a"])
    assert len(loaded) == 5

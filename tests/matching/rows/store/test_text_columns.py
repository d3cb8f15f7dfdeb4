from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.rows.store.text_columns import BLOCK_TEXTS, TextColumn

Texts = list[str | None]


class Source:
    """Texts by number, and which of them were read."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.asked: list[tuple[int, int]] = []

    def between(self, begin: int, end: int) -> Texts:
        self.asked.append((begin, end))
        return self.texts[begin:end]

    def column(self, known: object = None, block_texts: int = BLOCK_TEXTS) -> TextColumn:
        return TextColumn(self.between, known, block_texts=block_texts)


def test_an_empty_column() -> None:
    array = Source([]).column().array(0)
    assert (array.to_pylist(), array.type) == ([], pa.string())


def test_texts_and_those_that_are_missing() -> None:
    column = Source(["a", None, "", "é"]).column()
    array = column.array(4)
    assert (array.to_pylist(), array.type) == (["a", None, "", "é"], pa.string())
    assert column.array(4) is array


def test_an_array_that_was_given_out_stays_as_it_was() -> None:
    source = Source(["a", "b"])
    column = source.column()
    before = column.array(2)
    source.texts[0] = "c"
    column.has_changed(np.array([0]))
    assert column.array(2).to_pylist() == ["c", "b"]
    assert before.to_pylist() == ["a", "b"]


def test_texts_that_were_known_before_are_not_read() -> None:
    source = Source(["x", "y"])
    column = source.column(pa.array(["a", "b"]))
    assert column.array(2).to_pylist() == ["a", "b"]
    assert source.asked == []
    column.has_changed(np.array([1], np.int32))
    assert column.array(2).to_pylist() == ["x", "y"]


def test_only_blocks_that_changed_are_rebuilt() -> None:
    count = 3 * BLOCK_TEXTS + 5
    source = Source([str(number) for number in range(count)])
    column = source.column()
    column.array(count)
    source.asked.clear()
    source.texts[BLOCK_TEXTS] = source.texts[2 * BLOCK_TEXTS - 1] = "new"
    column.has_changed(np.array([2 * BLOCK_TEXTS - 1, BLOCK_TEXTS]))
    assert column.array(count).to_pylist() == source.texts
    assert source.asked == [(BLOCK_TEXTS, 2 * BLOCK_TEXTS), (3 * BLOCK_TEXTS, count)]


@pytest.mark.parametrize("size", [BLOCK_TEXTS - 1, BLOCK_TEXTS, BLOCK_TEXTS + 1])
def test_a_column_grows_at_the_border_of_a_block(size: int) -> None:
    source = Source([str(number) for number in range(size + 1)])
    column = source.column()
    assert column.array(size).to_pylist() == source.texts[:size]
    assert column.array(size + 1).to_pylist() == source.texts


steps = st.lists(
    st.tuples(st.lists(st.integers(0, 40), max_size=4), st.integers(0, 9), st.booleans())
)


@given(st.lists(st.text(max_size=2) | st.none(), max_size=12), steps)
def test_any_changes_are_followed(texts: Texts, steps: list[tuple[list[int], int, bool]]) -> None:
    """Texts are changed and added, and not always looked at in between."""
    source = Source(list(texts))
    column = source.column(pa.array(texts, pa.string()), block_texts=4)
    for step, (numbers, added, looked_at) in enumerate(steps):
        source.texts += [f"added in {step}"] * added
        changed = [number for number in numbers if number < len(source.texts)]
        for number in changed:
            source.texts[number] = f"changed in {step}"
        column.has_changed(np.array(changed, np.int32))
        if looked_at:
            assert column.array(len(source.texts)).to_pylist() == source.texts
    assert column.array(len(source.texts)).to_pylist() == source.texts

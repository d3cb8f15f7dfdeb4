"""Which entries the rows of a shape have, and their ordinals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.language.filters import parse
from tidegate.language.values import Value
from tidegate.matching.rows.entries.blocks import entries_of
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.constraints import Compiler
from tidegate.matching.rows.entries.expansion import entry_predicates
from tidegate.matching.rows.kernels.entry_lists import concatenate
from tidegate.matching.rows.kernels.flags import ORDINAL_SHIFT, SHARED
from tidegate.matching.rows.store.cells import StringPool, encode


def predicates(text: str) -> list[list[str]]:
    """The predicates of each entry of a filter, filled with its values."""
    shape, row = parse(text).shape_and_row
    kinds = tuple(encode(value, StringPool())[0] for value in row)  # type: ignore[arg-type]
    found: list[list[str]] = []
    for _, entry in entry_predicates(shape, kinds):
        texts = [str(each) for each in entry]
        for slot in reversed(range(len(row))):
            texts = [each.replace(f"?{slot}", repr(row[slot])) for each in texts]
        found.append(sorted(texts))
    return found


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("x < 1", 1),
        ("x < 1 or y > 2", 2),
        ("x in (1, 2, 3) and y = 1", 3),
        ("x in (1, 2) and y in ('a', 'b', 'c')", 6),
        ("x in (1, 'a', 2.5) or y > 2", 4),
        # a list that would make too many entries is only verified
        (f"x in ({', '.join(map(str, range(40)))}) and y in (1, 2) and z not in (1, 2)", 80),
    ],
)
def test_an_entry_for_each_disjunct_and_choice(text: str, entries: int) -> None:
    assert len(predicates(text)) == entries


values: st.SearchStrategy[Value] = st.integers(0, 3) | st.sampled_from(["a", "b", 2.5, True])
lists = st.lists(values, min_size=2, max_size=4, unique_by=repr)


@given(
    st.lists(st.tuples(st.sampled_from(["x", "y < t and x", "z"]), lists), min_size=1, max_size=3)
)
def test_ordinals_number_the_entries_that_are_made(parts: list[tuple[str, list[Value]]]) -> None:
    """The entries of a compiler have the ordinals under which their predicates are listed."""
    text = " or ".join(
        f"{name} in ({', '.join(_literal(each) for each in chosen)}) and k = {number}"
        for number, (name, chosen) in enumerate(parts)
    )
    shape, row = parse(text).shape_and_row
    pool, channels = StringPool(), Channels()
    encoded = [encode(value, pool) for value in row]  # type: ignore[arg-type]
    kinds = tuple(kind for kind, _ in encoded)
    cells = np.array([[cell for _, cell in encoded]] * 2, np.int64)
    numbers, times = np.arange(2, dtype=np.int32), np.zeros(2, np.int64)
    blocks = Compiler(channels, pool).blocks(shape, kinds, cells)
    entries = concatenate([entries_of(block, numbers, times, times) for block in blocks])
    listed = [entry for _, entry in entry_predicates(shape, kinds)]
    for number in (0, 1):
        mine = np.flatnonzero(entries.subscription == number)
        ordinals = (entries.flags[mine] >> ORDINAL_SHIFT).tolist()
        assert sorted(ordinals) == list(range(1, len(listed) + 1))
        for entry, ordinal in zip(mine.tolist(), ordinals, strict=True):
            assert entries.flags[entry] & SHARED
            # each has the equality with its own value of the list, on the channel of its kind
            bounds = slice(entries.first[entry], entries.first[entry + 1])
            points = entries.low[bounds][entries.low[bounds] == entries.high[bounds]]
            equal = [p for p in listed[ordinal - 1] if p.operator.value == "="]
            wanted = [_as_float(encoded[p.operands[0].index]) for p in equal]
            assert sorted(points.tolist()) == sorted(wanted)


def _literal(value: Value) -> str:
    return repr(value).lower() if isinstance(value, bool) else repr(value)


def _as_float(encoded: tuple[int, int]) -> float:
    kind, cell = encoded
    floats = np.array([cell], np.int64).view(np.float64)
    return float(floats[0]) if kind == encode(2.5, StringPool())[0] else float(cell)

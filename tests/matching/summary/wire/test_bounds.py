from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.summary_tables import summary_tables
from tidegate.errors import SummaryError
from tidegate.matching.summary.tables import SummaryTables
from tidegate.matching.summary.wire.bounds import added_bounds, range_rows
from tidegate.matching.summary.wire.columns import Allowance, Reader, WireLimits
from tidegate.matching.summary.wire.layout import RangeRows, RowForm, ValueForm

READER = Reader(b"", 0, Allowance(WireLimits(), 0))
NONE = np.zeros(0, np.int64)
INF = math.inf


def rows(*bounds: tuple[float, float]) -> RangeRows:
    low, high = (np.array([each[i] for each in bounds], np.float64) for i in (0, 1))
    return range_rows(NONE, low, high)


def bounds_of(record: RangeRows) -> list[tuple[float, float]]:
    lows, highs = added_bounds(record, READER)
    return list(zip(lows.tolist(), highs.tolist(), strict=True))


@given(summary_tables())
def test_bounds_come_back(tables: SummaryTables) -> None:
    for table in tables.ranges:
        record = range_rows(NONE, table.lows, table.highs)
        lows, highs = added_bounds(record, READER)
        assert np.array_equal(lows, table.lows)
        assert np.array_equal(highs, table.highs)


@given(st.lists(st.floats(allow_nan=False), unique=True, min_size=1).map(sorted))
@example([-INF, INF])
@example([math.nextafter(INF, 0), INF])
@example([-5e-324, 0.0, 5e-324])
@example([1e-9, 1e300, 1.7976931348623157e308])
def test_points_come_back(values: list[float]) -> None:
    assert bounds_of(rows(*((each, each) for each in values))) == [(v, v) for v in values]


def test_no_rows() -> None:
    record = rows()
    assert (record.scale, bounds_of(record)) == (0, [])


def test_prices_are_integers_of_one_scale() -> None:
    record = rows((8.2, 8.2), (8.3, 8.7), (10, 12.25))
    assert (record.scale, record.decimals.tolist()) == (2, [820, 830, 870, 1000, 1225])
    assert record.row_forms.tolist() == [RowForm.POINT, 0, 0]
    assert record.value_forms.tolist() == [ValueForm.DECIMAL] * 5
    assert len(record.floats) == 0


def test_open_bounds_are_next_to_decimals() -> None:
    low, high = math.nextafter(8.3, 9), math.nextafter(8.7, 8)
    record = rows((low, high))
    assert (record.scale, record.decimals.tolist()) == (1, [83, 87])
    assert record.value_forms.tolist() == [ValueForm.AFTER, ValueForm.BEFORE]
    assert bounds_of(record) == [(low, high)]


def test_a_row_that_adjoins_has_no_low() -> None:
    after, before = math.nextafter(2, 3), math.nextafter(2, 1)
    cut = [(1.0, before), (2.0, 2.0), (after, 3.0)]
    record = rows(*cut)
    assert record.row_forms.tolist() == [0, RowForm.ADJOINS | RowForm.POINT, RowForm.ADJOINS]
    assert record.value_forms.tolist() == [0, ValueForm.BEFORE, 0]
    assert record.decimals.tolist() == [1, 2, 3]
    assert bounds_of(record) == cut


def test_other_bounds_are_floats() -> None:
    record = rows((-INF, 1 / 3), (5, INF))
    assert record.floats.tolist() == [-INF, 1 / 3, INF]
    assert record.decimals.tolist() == [5]


def test_the_scale_is_the_least_with_the_fewest_floats() -> None:
    assert rows((1 / 3, 1 / 3), (0.5, 0.5)).scale == 1
    assert rows((2**60, 2**60)).scale == 0
    assert rows((1e-9, 1e-9), (1, 1)).scale == 9
    assert rows((1e-10, 1e-10), (1, 1)).scale == 0


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"row_forms": np.array([4, 0])}, "no such form"),
        ({"row_forms": np.array([1, 1])}, "no form"),
        ({"row_forms": np.array([2, 0])}, "adjoins none"),
        ({"value_forms": np.array([0, 0, 4])}, "no such form"),
        ({"value_forms": np.array([0, 3, 0])}, "bound is missing"),
        ({"decimals": np.array([1])}, "bound is missing"),
        ({"floats": np.array([1.0])}, "bound is missing"),
        ({"scale": 10}, "too many digits"),
        ({"decimals": np.array([1, 2, 2**53])}, "too many digits"),
    ],
)
def test_malformed_rows_are_refused(changes: dict[str, object], complaint: str) -> None:
    record = rows((1, 2), (3, 3))
    with pytest.raises(SummaryError, match=complaint):
        added_bounds(replace(record, **changes), READER)  # type: ignore[arg-type]

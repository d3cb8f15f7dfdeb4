"""The baseline finds the matches of the filters that were drawn with its bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidegate.experiments.numpy_baseline import BaselineEvent, NumpyBaseline
from tidegate.experiments.workloads import WORKLOADS, AttributeRange, Motion
from tidegate.language.filters import parse


def condition(
    attribute: str, rows: list[int], low: list[float], high: list[float]
) -> AttributeRange:
    return AttributeRange(attribute, np.array(rows), np.array(low), np.array(high), list)


def test_bounds_are_included_and_the_others_take_anything() -> None:
    baseline = NumpyBaseline(
        3, [condition("x", [0, 2], [1, 2], [3, 2]), condition("y", [2], [0], [9])]
    )
    found = [baseline.match(BaselineEvent({"x": x, "y": 9.0})).tolist() for x in (0, 1, 2, 3, 4)]
    assert found == [[1], [0, 1], [0, 1, 2], [0, 1], [1]]
    assert baseline.match(BaselineEvent({"x": 2.0, "y": 9.5})).tolist() == [0, 1]


def test_sparse_conditions_are_compared_for_their_rows() -> None:
    """The same answer with full and with sparse columns."""
    rows = list(range(100))
    common = condition("x", rows, [0.0] * 100, [float(row) for row in rows])
    rare = condition("y", [7, 90], [5.0, 5.0], [6.0, 6.0])
    for conditions in ([common, rare], [rare]):
        baseline = NumpyBaseline(100, conditions)
        out = baseline.match(BaselineEvent({"x": 0.0, "y": 1.0})).tolist()
        assert out == [row for row in rows if row not in (7, 90)]
        assert baseline.match(BaselineEvent({"x": 0.0, "y": 5.5})).tolist() == rows


def test_without_conditions_all_match() -> None:
    assert NumpyBaseline(3, []).match(BaselineEvent({})).tolist() == [0, 1, 2]
    assert NumpyBaseline(0, []).match(BaselineEvent({})).tolist() == []


def test_bounds_move() -> None:
    motion = Motion(np.array([1.0, 0.0]), np.array([0.0, 0.0]), np.array([1.0, 1.0]))
    moving = replace(condition("x", [0, 1], [0, 0], [1, 1]), motion=motion)
    baseline = NumpyBaseline(2, [moving])
    found = [baseline.match(BaselineEvent({"x": 5.0}, t)).tolist() for t in (0.0, 4.0, 5.0, 5.5)]
    assert found == [[], [0], [0], []]


def test_an_update_is_one_less_than_the_low_bound() -> None:
    held = replace(condition("x", [0, 1], [1, 1], [np.inf, np.inf]), parameter="least")
    baseline = NumpyBaseline(2, [held])
    baseline.update(np.array([1]), np.array([5]))
    assert [baseline.match(BaselineEvent({"x": x})).tolist() for x in (5.0, 6.0)] == [[0], [0, 1]]


@pytest.mark.parametrize("name", ["market", "equalities", "ranges"])
def test_it_finds_what_the_filters_mean(name: str) -> None:
    workload = WORKLOADS[name]
    filters = [parse(str(text)) for text in workload.subscriptions(60).column("filter").to_pylist()]
    events = workload.events(25)
    baseline = NumpyBaseline(60, workload.conditions(60))
    for row, point in zip(events.to_pylist(), baseline.baseline_events(events), strict=True):
        wanted = [number for number, each in enumerate(filters) if each.matches(row)]
        assert baseline.match(point).tolist() == wanted

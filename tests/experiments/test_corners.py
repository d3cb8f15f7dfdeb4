"""The benchmark of slow corners: its filters are what their names say."""

from __future__ import annotations

import random

import pytest

from tidegate.experiments.corners import corners, measure
from tidegate.language.filters import parse


@pytest.mark.parametrize("name", corners())
def test_an_update_changes_parameters_of_the_filter(name: str) -> None:
    chance = random.Random(1)
    corner = corners()[name]
    filter = parse(corner.text(chance))
    values = corner.parameters(chance)
    assert set(filter.parameters) == set(values)
    assert corner.update(chance).keys() <= values.keys()


@pytest.mark.parametrize("name", ["2 keys", "like of 4 letters"])
def test_a_measurement(name: str) -> None:
    kinds = {name: corners()[name]}
    (cost,) = measure(kinds, 20, processor_time=True)
    assert (cost.kind, cost.subscriptions) == (name, 20)
    assert 0 < cost.match_p50_us <= cost.match_p99_us
    assert 0 < cost.update_p50_us <= cost.update_p99_us

"""Settings of a search tree."""

from __future__ import annotations

import pytest

import tidegate
from tidegate.errors import SubscriptionError


def test_an_engine_takes_the_settings_of_its_search_tree() -> None:
    tuning = tidegate.TreeTuning(order=("symbol", "volume"), factored=1, delays_branching=False)
    engine = tidegate.Engine(matcher=tuning)
    for number in range(40):
        engine.subscribe(f"symbol = 'S{number % 3}' and volume = {number % 5}", id=str(number))
    found = engine.match({"symbol": "S1", "volume": 2})
    assert sorted(found, key=int) == ["7", "22", "37"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"order": "symbol"}, "a tuple of names of attributes, not 'symbol'"),
        ({"order": (1,)}, "a tuple of names of attributes"),
        ({"factored": -1}, "factored of a search tree is a number from 0 to .*, not -1"),
        (
            {"factored": True},
            "factored of a search tree is a number from 0 to .*, not True",
        ),
        ({"factored": 1 << 63}, "factored of a search tree is a number from 0 to 2,147,483,647"),
        ({"leaf_paths_max": 2.5}, "leaf_paths_max of a search tree is a number from 0 to "),
        (
            {"delays_branching": "no"},
            "delays_branching .* is True or False, not 'no'",
        ),
    ],
)
def test_settings_that_are_none_are_refused(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(SubscriptionError, match=problem):
        tidegate.TreeTuning(**settings)  # type: ignore[arg-type]

from __future__ import annotations

import pytest

from tidegate.simulation.counting import counted


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (12_000, "12,000 runs")]
)
def test_the_plural_is_for_all_numbers_but_one(count: int, text: str) -> None:
    assert counted(count, "run") == text


def test_a_plural_of_its_own() -> None:
    assert counted(1, "delivery", "deliveries") == "1 delivery"
    assert counted(3, "delivery", "deliveries") == "3 deliveries"

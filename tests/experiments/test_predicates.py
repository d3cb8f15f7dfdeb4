from __future__ import annotations

import pytest

from tidegate.experiments.predicates import KINDS, measure
from tidegate.matching.rows import event_matching


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_measured_and_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also: none of what is measured is left to the meaning of the language."""

    def asked(*_: object) -> bool:
        raise AssertionError("verified")

    monkeypatch.setattr(event_matching, "is_match", asked)
    (speed,) = measure({name: KINDS[name]}, subscriptions=200, rounds=1, events=10)
    assert (speed.kind, speed.subscriptions, speed.wrong_events) == (name, 200, 0)
    assert 0 < speed.matches_per_event < 10
    assert 0 < speed.batch_fastest_us <= speed.batch_us <= speed.batch_slowest_us
    assert speed.single_us > 0

"""The comparison of matchers, on small sizes."""

from __future__ import annotations

import pytest

from tidegate.errors import SubscriptionError
from tidegate.experiments import matchers


def test_engines_give_the_same_answers_before_and_after_updates() -> None:
    rows = list(matchers.measure("moving", 300, ("columnar", "tree", "naive"), 1, events=30))
    assert [row.engine for row in rows] == ["columnar", "tree", "naive"]
    assert all(row.is_same for row in rows)
    assert {row.matches for row in rows} == {rows[0].matches}
    assert rows[0].matches > 0
    assert all(row.update_us is not None for row in rows)


def test_a_workload_without_parameters_has_no_updates() -> None:
    (row,) = matchers.measure("equalities", 100, ["columnar"], 1, events=20)
    assert row.update_us is None


def test_wrong_answers_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = matchers._Trial.answers
    lost = iter([False, True])
    monkeypatch.setattr(
        matchers._Trial,
        "answers",
        lambda trial, engine: set() if next(lost) else answers(trial, engine),
    )
    rows = list(matchers.measure("market", 2_000, ("columnar", "tree"), 1, events=200))
    assert [row.is_same for row in rows] == [True, False]


def test_an_engine_that_is_named_twice_is_refused() -> None:
    with pytest.raises(SubscriptionError, match="named twice: tree, tree"):
        list(matchers.measure("market", 100, ("tree", "tree"), 1))

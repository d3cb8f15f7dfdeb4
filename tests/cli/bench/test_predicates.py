"""The output of `tidegate bench predicates`; its measurements are tested in experiments/."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from tidegate.cli import cli
from tidegate.experiments import predicates
from tidegate.experiments.predicates import PredicateSpeed


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", "predicates", *arguments])


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Replaces the measurement; the number in the list is that of wrong events."""
    events = [0]

    def measure(kinds: dict[str, object], subscriptions: int, *_: object) -> list[PredicateSpeed]:
        return [
            PredicateSpeed(kind, subscriptions, "columnar", 4.5, 2.25, 2.0, 3.0, 20.0, events[0])
            for kind in kinds
        ]

    monkeypatch.setattr(predicates, "measure", measure)
    return events


def test_each_kind_has_a_line(wrong: list[int]) -> None:
    result = run("--subscriptions", "20000")
    assert (result.exit_code, wrong) == (0, [0])
    assert len(result.output.splitlines()) == len(predicates.KINDS)
    assert "2.2 us an event (2.0, 3.0), one by one 20.0, 4.5 matches" in result.output


def test_one_kind_as_json(wrong: list[int]) -> None:
    result = run("--kind", "long", "--json")
    assert (json.loads(result.output)["kind"], wrong) == ("long integers", [0])


def test_an_unknown_kind_and_a_wrong_answer_are_errors(wrong: list[int]) -> None:
    assert "no kind of predicate has 'nothing' in its name" in run("--kind", "nothing").output
    wrong[0] = 2
    result = run("--kind", "strings")
    assert result.exit_code == 1
    assert "2 events were answered otherwise than by the oracle" in result.output

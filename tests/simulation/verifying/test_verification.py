from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.routing.strategies import STRATEGIES
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.overlays.json_file import to_json
from tidegate.simulation.verifying.random_run import RandomRun
from tidegate.simulation.verifying.verification import VerificationCase, cases, outcomes


def test_every_routing_on_every_topology() -> None:
    made = list(cases([3, 14]))
    assert len(made) == len({each.command for each in made}) == 2 * 6 * len(STRATEGIES)
    assert {each.brokers for each in made} == {None, 4, 5}


def test_commands() -> None:
    case = VerificationCase("subscription", 7, "random-graph", 5)
    assert case.command == (
        "tidegate simulate --verify --topology random-graph --brokers 5 "
        "--routing subscription --seed 7"
    )
    assert (
        "--overlay mine.json --routing"
        in VerificationCase("flooding", 7, overlay="mine.json").command
    )


def test_a_file_can_be_verified(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(to_json(generate("hierarchy", 4)), encoding="utf-8")
    assert VerificationCase("hierarchy", 1, overlay=str(file)).problems() == []


def test_problems_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RandomRun, "problems", lambda run: ["bad"] if run.world.seed == 2 else [])
    found = list(outcomes(cases(range(4), ["random-tree"], ["flooding"])))
    assert [(case.seed, problems) for case, problems in found if problems] == [(2, ["bad"])]
    assert len(found) == 4


def test_several_processes_return_cases_in_order() -> None:
    found = list(outcomes(cases(range(3), ["centralized"], ["flooding"]), jobs=2, chunk=1))
    assert [(case.seed, problems) for case, problems in found] == [(0, []), (1, []), (2, [])]

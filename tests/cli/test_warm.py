"""`tidegate warm` leaves no kernel to be compiled by whoever comes next."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import Folder
from tidegate.cli import warm
from tidegate.experiments import warming

USING = """
from tidegate.experiments.warming import counted_compilations
from tidegate.experiments.workloads import WORKLOADS
import tidegate

with counted_compilations() as warmed:
    engine = tidegate.Engine()
    sub = engine.subscribe("s like 'a%' and price < :limit or x > 3 + t", limit=10.0)
    engine.match({"s": "ab", "price": 9.5})
    sub.update(limit=30.0)
    moving = tidegate.Engine()
    moving.subscribe_batch(WORKLOADS["moving"].subscriptions(4000))
    moving.match_batch(WORKLOADS["moving"].events(100))
print(warmed.compiled)
"""


@pytest.mark.soak
def test_nothing_is_left_to_compile(tmp_path: Path) -> None:
    """In a cache of its own, as on a new machine."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def run(*arguments: str) -> str:
        ran = subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return ran.stdout

    command = ("-c", "from tidegate.cli import main; main()", "warm", "--json")
    assert json.loads(run(*command))["compiled"] > 50
    assert json.loads(run(*command))["compiled"] == 0
    assert run("-c", USING) == "0\n"


@pytest.mark.slow
@pytest.mark.parametrize("matcher", warm.MATCHERS)
def test_all_steps_run(matcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "SUBSCRIPTIONS", 50)
    steps = list(warming.warm(matcher))
    assert f"{matcher}: moving" in steps


def test_it_says_that_nothing_was_compiled(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "warm", lambda matcher: iter([f"{matcher}: nothing"]))
    ran = folder.run("warm", "--matcher", "tree")
    assert (ran.code, ran.out) == (0, "all kernels were compiled already\n")
    assert folder.run("warm", "--matcher", "naive").code == 2

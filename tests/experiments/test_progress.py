"""Progress callbacks of benchmarks."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable

import pytest

from tidegate.experiments import (
    evolving,
    matching,
    parametric,
    poset,
    spark_matching,
    spark_streaming,
)
from tidegate.experiments.progress import silent


def test_silent_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    silent("building")
    assert capsys.readouterr() == ("", "")


def test_silent_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(silent)) is silent


@pytest.mark.parametrize(
    "measure",
    [
        evolving.measure,
        matching.measure,
        matching.sweep,
        parametric.measure,
        poset.measure,
        spark_matching.measure,
        spark_streaming.measure,
    ],
)
def test_benchmarks_are_silent_by_default(measure: Callable[..., object]) -> None:
    assert inspect.signature(measure).parameters["progress"].default is silent

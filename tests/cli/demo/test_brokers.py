"""The processes of the demo end with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.processes import processes_of
from tidegate.cli.demo.brokers import broker_line
from tidegate.errors import TidegateError


@pytest.mark.slow
def test_an_error_leaves_no_process(tmp_path: Path) -> None:
    def fail_inside() -> None:
        with broker_line(tmp_path) as urls:
            assert list(urls) == ["a", "b", "c"]
            assert len(processes_of(tmp_path)) == 3
            raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        fail_inside()
    assert processes_of(tmp_path) == []


@pytest.mark.slow
def test_a_broker_that_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("no folder for a store")
    with (
        pytest.raises(TidegateError, match="a broker of the demo does not start"),
        broker_line(tmp_path),
    ):
        pass
    assert processes_of(tmp_path) == []

from __future__ import annotations

import os
import tempfile
import threading

import pytest

from tidegate.cli.demo import still as still_module
from tidegate.cli.demo.still import still


def test_it_says_that_it_goes_on_until_it_is_done(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(still_module, "SAID_EVERY_S", 0.001)
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as elsewhere, still("compiling") as done:
        os.dup2(elsewhere.fileno(), 2)  # as while Spark starts
        lines: list[str] = []
        while len(lines) < 3:
            lines += capfd.readouterr().err.splitlines()
        done.set()
        os.dup2(terminal, 2)
        elsewhere.seek(0)
        assert elsewhere.read() == b""
    os.close(terminal)
    assert lines[:3] == ["compiling ...", "  ... still, after 0 s", "  ... still, after 0 s"]


def test_an_error_ends_it() -> None:
    before = threading.active_count()
    with pytest.raises(ValueError, match="no"), still("compiling"):
        raise ValueError("no")
    assert threading.active_count() == before

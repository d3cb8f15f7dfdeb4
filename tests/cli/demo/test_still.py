from __future__ import annotations

import threading

import pytest

from tidegate.cli.demo import still as still_module
from tidegate.cli.demo.still import still


def test_it_says_that_it_goes_on_until_it_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said_twice = threading.Event()
    lines: list[str] = []

    def note(text: str) -> None:
        lines.append(text)
        if len(lines) == 3:
            said_twice.set()

    monkeypatch.setattr(still_module, "SAID_EVERY_S", 0.001)
    monkeypatch.setattr(still_module, "print_status", note)
    with still("compiling") as done:
        assert said_twice.wait(60)
        done.set()
    assert lines[0] == "compiling ..."
    assert lines[1].startswith("  ... still, after 0 s")
    assert not capsys.readouterr().out


def test_an_error_ends_it() -> None:
    before = threading.active_count()
    with pytest.raises(ValueError, match="no"), still("compiling"):
        raise ValueError("no")
    assert threading.active_count() == before

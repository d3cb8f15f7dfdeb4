"""That kernels are compiled is said once, where a person may read it."""

from __future__ import annotations

import io
import logging
import subprocess
import sys

import pytest
from numba import njit
from numba.core import event

from tidegate.matching.rows.kernels.compile_notice import NOTICE, CompileNotice


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def compiled_with(notice: CompileNotice, functions: int = 1) -> None:
    """Compile some functions while a listener is registered."""
    event.register("numba:compile", notice)  # type: ignore[no-untyped-call]
    try:
        for number in range(functions):
            # each is another function, so each is compiled
            assert njit(lambda x, number=number: x + number)(1) == 1 + number
    finally:
        event.unregister("numba:compile", notice)  # type: ignore[no-untyped-call]


def test_it_is_logged_and_printed_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    caplog.set_level(logging.INFO, "tidegate")
    compiled_with(CompileNotice(package=__name__), functions=2)
    assert terminal.getvalue() == f"tidegate: {NOTICE}\n"
    assert caplog.messages == [NOTICE]


def test_a_stream_that_is_no_terminal_stays_clean(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    caplog.set_level(logging.INFO, "tidegate")
    compiled_with(CompileNotice(package=__name__))
    assert stream.getvalue() == ""
    assert caplog.messages == [NOTICE]


def test_a_process_without_stderr(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    caplog.set_level(logging.INFO, "tidegate")
    compiled_with(CompileNotice(package=__name__))
    assert caplog.messages == [NOTICE]


def test_what_others_compile_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    compiled_with(CompileNotice(package="tidegate."))
    assert caplog.messages == []


def test_every_process_that_matches_has_a_listener() -> None:
    program = (
        "import tidegate; from numba.core import event; tidegate.Engine();"
        "from tidegate.matching.rows.kernels.compile_notice import CompileNotice;"
        "listeners = event._registered['numba:compile'];"
        "print([type(each).__name__ for each in listeners])"
    )
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "['CompileNotice']\n"

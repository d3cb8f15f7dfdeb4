"""Status lines of commands."""

from __future__ import annotations

import pickle

import pytest

from tidegate.cli.status import print_status


def test_a_line_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_status("starting Spark")
    assert capsys.readouterr() == ("", "starting Spark\n")


def test_it_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(print_status)) is print_status

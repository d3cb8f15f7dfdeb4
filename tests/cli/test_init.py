"""The command line as a whole: its commands, what they import, and how errors end."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

import tidegate
from support.command_line import Folder
from tidegate.cli import cli
from tidegate.cli.command_group import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "-h"], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: cli {name} ")


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version(option: str) -> None:
    assert CliRunner().invoke(cli, [option]).stdout == f"tidegate {tidegate.__version__}\n"


def test_an_error_of_the_user_has_no_traceback(folder: Folder) -> None:
    said = folder.refused("check", "price <")
    assert said.startswith("error: a value must follow '<'")
    assert "Traceback" not in said


def test_commands_import_spark_only_when_they_run() -> None:
    code = (
        "import sys; from tidegate.cli import cli; "
        "[cli.get_command(None, name) for name in ('pipeline', 'match', 'backtest')]; "
        "sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

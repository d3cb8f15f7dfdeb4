from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tidegate.cli.network.client_options import connection_options, new_client
from tidegate.errors import TidegateError


@click.command()
@connection_options
def show(**connection: object) -> None:
    click.echo(sorted((name, str(value)) for name, value in connection.items()))


def test_options_come_from_the_environment_too() -> None:
    environment = {"TIDEGATE_BROKER": "tidegate://b:1", "TIDEGATE_TOKEN": "secret"}
    ran = CliRunner().invoke(show, ["--timeout", "3"], env=environment)
    assert "('broker', 'tidegate://b:1')" in ran.output
    assert "('token', 'secret')" in ran.output
    assert "('timeout', '3.0')" in ran.output


def test_a_client_with_the_options() -> None:
    client = new_client("tidegate://b:1", "desk", None, None, None, 3.0)
    assert client.identity == "desk"


def test_a_file_that_is_no_certificate(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    with pytest.raises(TidegateError, match="--ca or --cert cannot be used"):
        new_client("tidegates://b:1", None, None, file, None, 3.0)

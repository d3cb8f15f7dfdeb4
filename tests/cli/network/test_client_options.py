from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from support.certificates import Authority
from tidegate.cli.network.client_options import connection_options, new_client, token_of
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
    with pytest.raises(TidegateError, match="--ca, --cert or --key cannot be used"):
        new_client("tidegates://b:1", None, None, file, None, 3.0)


def test_a_token_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    file.chmod(0o600)
    assert token_of(file) == "secret"
    assert capsys.readouterr().err == ""
    file.chmod(0o644)
    new_client("tidegate://b:1", "desk", None, None, None, 3.0, token_file=file)
    assert f"warning: others may read {file}" in capsys.readouterr().err
    with pytest.raises(click.UsageError, match="give one of"):
        new_client("tidegate://b:1", "desk", "x", None, None, 3.0, token_file=file)
    file.write_text("")
    with pytest.raises(TidegateError, match="must have one line"):
        new_client("tidegate://b:1", "desk", None, None, None, 3.0, token_file=file)


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own = authority.sign("desk")
    with pytest.raises(click.UsageError, match="use tidegates://"):
        new_client("tidegate://b:1", None, None, authority.file, None, 3.0)
    with pytest.raises(click.UsageError, match="--key needs --cert"):
        new_client("tidegates://b:1", None, None, authority.file, None, 3.0, key=own)
    new_client("tidegates://b:1", None, None, authority.file, own, 3.0, key=own)

"""`tidegate broker` as a process."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from support.wire_client import WireClient
from tidegate.cli import cli
from tidegate.network.server.access.tokens import HashedToken
from tidegate.network.server.configuration.broker_file import read_broker_file
from tidegate.network.store.store import Store
from tidegate.network.wire.flow import Confirmed

COMMAND = [
    sys.executable, "-c", "from tidegate.cli import main; main()", "broker",
    "--name", "a", "--listen", "127.0.0.1:0",
]  # fmt: skip


def test_process_listens_and_drains(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--data", str(tmp_path / "a"), "--log-format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        port = int(first.rpartition(":")[2])

        async def main() -> None:
            ann = await WireClient.connect(port, "ann")
            ann.publish({"x": 1}, confirm=True)
            await ann.next(Confirmed)
            process.send_signal(signal.SIGTERM)
            await ann.closed()

        asyncio.run(main())
        assert process.wait(20) == 0
        assert process.stderr is not None
        log = [json.loads(line) for line in process.stderr]
    assert first == f"broker a listens at 127.0.0.1:{port}\n"
    assert {each["broker"] for each in log} == {"a"}
    # A matcher that compiles its kernels for the first time says so too.
    assert [(each["event"], each.get("client")) for each in log if "event" in each] == [
        ("listening", None),
        ("client_connected", "ann"),
        ("draining", None),
        ("client_disconnected", "ann"),
        ("stopped", None),
    ]
    store = Store(tmp_path / "a", "a")
    assert store.positions("publisher") == {"ann": (0, 1)}
    store.close()


def test_process_checks_spaces_and_reads_their_files_again(tmp_path: Path) -> None:
    file = tmp_path / "trades.json"
    file.write_text('{"name": "trades", "attributes": {"price": "float"}}')
    with subprocess.Popen(
        [*COMMAND, "--space", str(file), "--log-format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        url = f"tidegate://127.0.0.1:{port}"

        def logged(part: str) -> str:
            assert process.stderr is not None
            for line in process.stderr:
                if part in line:
                    return str(json.loads(line)["message"])
            raise AssertionError(f"nothing was logged with {part!r}")

        def publish(event: str) -> int:
            return CliRunner().invoke(
                cli, ["pub", event, "--space", "trades", "--broker", url, "--timeout", "60"]
            ).exit_code  # fmt: skip

        try:
            subscribed = CliRunner().invoke(
                cli, ["sub", "prize < 3", "--space", "trades", "--broker", url, "--timeout", "60"]
            )
            assert "did you mean 'price'?" in str(subscribed.exception)
            # what is wrong in a file leaves the spaces as they were
            file.write_text(
                '{"name": "trades", "attributes": {"price": "string", "id": "integer"}}'
            )
            process.send_signal(signal.SIGHUP)
            assert "'price'" in logged("stay as they were")
            file.write_text('{"name": "trades", "attributes": {"price": "float", "id": "integer"}}')
            process.send_signal(signal.SIGHUP)
            assert logged("has 2 attributes") == "space trades has 2 attributes"
            assert publish('{"id": 3}') == 0
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_space_files_that_are_wrong(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text('{"name": "s", "attributes": {"x": "decimal"}}')
    run = CliRunner().invoke
    result = run(cli, ["broker", "--name", "a", "--space", str(file)])
    assert "decimal" in str(result.exception)
    result = run(cli, ["broker", "--name", "a", "--space", str(tmp_path / "no.json")])
    assert "does not exist" in result.output


def test_addresses() -> None:
    run = CliRunner().invoke
    for address in ("7070", "host:", "host:99999", ":1"):
        result = run(cli, ["broker", "--name", "a", "--listen", address])
        assert result.exit_code == 2
        assert "HOST:PORT" in result.output
    result = run(cli, ["broker"])
    assert result.exit_code == 2
    assert "--name" in result.output
    assert "--config" in result.output
    for peer in ("127.0.0.1:7070", "http://127.0.0.1:7070", "tidegate://nowhere"):
        result = run(cli, ["broker", "--name", "a", "--peer", peer])
        assert result.exit_code == 2
        assert "--peer: a neighbour is tidegate://HOST:PORT" in result.output
    for host in ("0.0.0.0", "192.168.1.7", "example.org", "[::]"):
        result = run(cli, ["broker", "--name", "a", "--listen", f"{host}:7070"])
        assert "--without-authentication" in str(result.exception)


def test_a_file_is_written_checked_and_run(tmp_path: Path) -> None:
    run, file = CliRunner().invoke, tmp_path / "broker.toml"
    result = run(cli, ["broker", "init", str(file)])
    assert result.exit_code == 0
    assert f"wrote {file}" in result.output
    result = run(cli, ["broker", "check", str(file)])
    assert result.exit_code == 0
    assert "listens  127.0.0.1:7070\n" in result.output
    assert f"store    {tmp_path / 'data'}\n" in result.output
    with subprocess.Popen(
        [*COMMAND[:4], "--config", str(file), "--listen", "127.0.0.1:0", "--name", "b"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("broker b listens at 127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    store = Store(tmp_path / "data", "b")
    store.close()


def test_a_file_that_is_wrong_ends_with_2(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text('[broker]\nnam = "a"\nlisten = 1\n', encoding="utf-8")
    done = subprocess.run(
        [*COMMAND[:4], "check", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"error: {file}: [broker] has no key nam; it has name, listen, data, routing, "
        "architecture, substrate, peers, domain, link_cost, spaces, variables, "
        "without_authentication; did you mean name?",
        f"{file}: [broker] listen must be a string, not 1",
    ]
    result = CliRunner().invoke(cli, ["broker", "--name", "a", "check", str(file)])
    assert result.exit_code == 2
    assert "are not for `check`" in result.output


def test_a_token_fits_the_lines_for_the_file(tmp_path: Path) -> None:
    for name, more in (("desk 7", []), ("b", ["--peer"])):
        result = CliRunner().invoke(cli, ["broker", "token", name, *more])
        assert result.exit_code == 0
        token, _, *lines = result.output.splitlines()
        file = tmp_path / "broker.toml"
        file.write_text("\n".join(['[broker]\nname = "a"', *lines]))
        settings = read_broker_file(file)
        assert settings.auth is not None
        (entry,) = settings.auth.identities
        assert (entry.name, entry.role) == (name, "peer" if more else "client")
        assert HashedToken.parse(entry.token or "").fits(token)
    result = CliRunner().invoke(cli, ["broker", "token", "a/b"])
    assert result.exit_code == 2
    assert "is no name of an identity" in result.output


def test_repair_reports_what_was_saved(tmp_path: Path) -> None:
    Store(tmp_path, "a").close()
    result = CliRunner().invoke(cli, ["broker", "repair", "--data", str(tmp_path)])
    assert result.exit_code == 0
    assert "0 deliveries lost" in result.output

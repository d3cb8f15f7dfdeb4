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
from tidegate.network.store.store import Store
from tidegate.network.wire.flow import Confirmed

COMMAND = [
    sys.executable, "-c", "from tidegate.cli import main; main()", "broker",
    "--name", "a", "--listen", "127.0.0.1:0",
]  # fmt: skip


def test_process_listens_and_drains(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--data", str(tmp_path / "a"), "--json"],
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
    assert [each["message"] for each in log] == [
        f"the broker a listens at 127.0.0.1:{port}",
        "the broker a drains",
        "the broker a has stopped",
    ]
    store = Store(tmp_path / "a", "a")
    assert store.positions("publisher") == {"ann": (0, 1)}
    store.close()


def test_addresses() -> None:
    run = CliRunner().invoke
    for address in ("7070", "host:", "host:99999", ":1"):
        result = run(cli, ["broker", "--name", "a", "--listen", address])
        assert result.exit_code == 2
        assert "HOST:PORT" in result.output
    result = run(cli, ["broker"])
    assert result.exit_code == 2
    assert "--name" in result.output
    for peer in ("127.0.0.1:7070", "http://127.0.0.1:7070", "tidegate://nowhere"):
        result = run(cli, ["broker", "--name", "a", "--peer", peer])
        assert result.exit_code == 2
        assert "--peer takes" in result.output
    for host in ("0.0.0.0", "192.168.1.7", "example.org", "[::]"):
        result = run(cli, ["broker", "--name", "a", "--listen", f"{host}:7070"])
        assert "--without-authentication" in str(result.exception)


def test_repair_reports_what_was_saved(tmp_path: Path) -> None:
    Store(tmp_path, "a").close()
    result = CliRunner().invoke(cli, ["broker", "repair", "--data", str(tmp_path)])
    assert result.exit_code == 0
    assert "0 deliveries lost" in result.output

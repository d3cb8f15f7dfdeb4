"""`tidegate top`, `trace`, `topology` and `broker forget` at a broker that is a process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.broker_process import TIDEGATE
from support.command_line import Folder


class AdminProcess:
    """A broker with an admin port, and commands at it."""

    def __init__(self, url: str, token_file: Path) -> None:
        self.at = ("--broker", url, "--token-file", str(token_file))

    def run(self, *arguments: str) -> tuple[int, str, str]:
        command = [*TIDEGATE, *arguments, *self.at]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminProcess]:
    data = tmp_path_factory.mktemp("broker") / "a"
    process = subprocess.Popen(
        [*TIDEGATE, "broker", "--name", "a", "--listen", "127.0.0.1:0", "--data", str(data),
         "--admin", "127.0.0.1:0", "--websocket", "127.0.0.1:0", "--log-level", "error"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[1].startswith("WebSockets at ws://127.0.0.1:")
        yield AdminProcess(lines[2].split()[-1], data / "admin-token")
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_top_prints_one_page(broker: AdminProcess) -> None:
    code, out, err = broker.run("top", "--once", "--interval", "0.1")
    assert (code, err) == (0, "")
    assert out.startswith("broker a, up 0:0")
    code, out, _ = broker.run("top", "--once", "--interval", "0.1", "--json")
    assert (code, json.loads(out)["state"]["broker"]) == (0, "a")


def test_trace_says_that_nobody_gets_an_event(broker: AdminProcess) -> None:
    assert broker.run("trace", '{"x": 1}') == (1, "a\n\n0 deliveries; 1 broker had the event\n", "")
    code, out, _ = broker.run("trace", '{"x": 1}', "--publish", "--json")
    assert (code, json.loads(out)["confirmed"]) == (1, True)
    code, _, err = broker.run("trace", "5")
    assert (code, "must be a JSON object" in err) == (2, True)


def test_topology_of_a_broker_that_runs(broker: AdminProcess, folder: Folder) -> None:
    code, out, err = broker.run("topology")
    assert (code, err) == (0, "")
    assert "the network of a" in out
    picture = folder.path / "network.svg"
    code, _, err = broker.run("topology", "--output", str(picture))
    assert code == 0
    assert picture.stat().st_size > 1_000


def test_neighbour_that_is_none_is_not_forgotten(broker: AdminProcess) -> None:
    code, _, err = broker.run("broker", "forget", "b")
    assert code == 2
    assert "'b' is no neighbour of this broker; it has none" in err

from __future__ import annotations

import json
import signal

import pytest

from support.broker_process import BrokerProcess
from support.command_line import Folder


def test_a_pattern_prints_sequences_and_ctrl_c_ends(broker_at: BrokerProcess) -> None:
    process = broker_at.start("sub", "s = 1 then s = 2", "--json")
    assert process.stderr is not None
    assert process.stdout is not None
    assert process.stderr.readline() == "subscribed at a; Ctrl-C ends\n"
    broker_at.run("pub", '{"s": 1}')
    broker_at.run("pub", '{"s": 2}')
    assert [each["event"] for each in json.loads(process.stdout.readline())] == [
        {"s": 1}, {"s": 2},
    ]  # fmt: skip
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x <"], "a value must follow"),
        (["x < 1", "--param", "limit"], "NAME=VALUE"),
        (["x < 1", "--evolve", "often"], "--evolve: 'often' is not an evolve mode"),
        (["x < 1", "--durable"], "--durable needs --identity and --name"),
        (["x = 1 then x = 2", "--name", "n"], "a pattern takes no"),
        (["x < 1", "--param", "limit=1"], "no parameter :limit"),
    ],
)
def test_what_is_wrong_is_said(
    folder: Folder, broker_at: BrokerProcess, arguments: list[str], message: str
) -> None:
    ran = folder.run("sub", "--broker", broker_at.url, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err

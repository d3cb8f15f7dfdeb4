"""`tidegate pub` and `tidegate sub` at a broker, each a process."""

from __future__ import annotations

import json

import pytest

from support.broker_process import BrokerProcess
from support.command_line import Folder


def test_events_of_arguments_and_of_stdin_are_printed(broker_at: BrokerProcess) -> None:
    one = broker_at.start("sub", "x < :a and z = 'p'", "--param", "a=10", "--count", "3", "--json")
    two = broker_at.start("sub", "x > 2 and z = 'p'", "--count", "1")
    for process in (one, two):
        assert process.stderr is not None
        assert process.stderr.readline() == "subscribed at a; Ctrl-C ends\n"
    ran = broker_at.run("pub", '{"x": 1, "z": "p"}', '{"x": 11, "z": "q"}')
    assert ran == (0, "", "published 2 events\n")
    lines = '{"x": 2, "z": "p", "t": "2026-01-02T03:04:05Z"}\n\n{"x": 3, "z": "p"}\n'
    ran = broker_at.run("pub", "-", "--confirm", "--timestamps", "t", stdin=lines)
    assert ran == (0, "", "published 2 events\n")
    out, _ = one.communicate(timeout=60)
    printed = [json.loads(line) for line in out.splitlines()]
    assert [each["event"] for each in printed] == [
        {"x": 1, "z": "p"},
        {"x": 2, "z": "p", "t": "2026-01-02T03:04:05Z"},
        {"x": 3, "z": "p"},
    ]
    assert all(set(each) == {"event", "time", "version", "publisher", "id"} for each in printed)
    out, _ = two.communicate(timeout=60)
    assert out.endswith("  x = 3, z = 'p'\n")
    assert (one.returncode, two.returncode) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["{}", "-"], "", "- for stdin stands alone"),
        (["[1]"], "", "event 1: "),
        (['{"x": [1]}'], "", "event 1: attribute 'x': a list is not a value"),
        (["-"], '{"x": 1}\n{"x"}\n', "line 2 of stdin: "),
        (["{}", "--broker", "http://a"], "", "is not the URL of a broker"),
        (["{}", "--broker", "tidegate://127.0.0.1:9", "--timeout", "0.2"], "", "refused"),
    ],
)
def test_what_is_wrong_is_said(
    folder: Folder, broker_at: BrokerProcess, arguments: list[str], stdin: str, message: str
) -> None:
    ran = folder.run("pub", "--broker", broker_at.url, *arguments, stdin=stdin.encode())
    assert ran.code == 2
    assert message in ran.err

"""What `tidegate trace` prints, from answers of the admin port."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from tidegate.cli import cli
from tidegate.cli.network.admin_client import AdminClient

EMPTY: dict[str, Any] = {
    "from": None, "refused": None, "relayed": False, "delivered": [], "deliveries": 0,
    "undelivered": [], "others": 0, "patterns": 0, "passed_on": [], "stopped": [],
}  # fmt: skip
MISS = {"client": "bob", "subscription": None, "filter": "x > 9",
        "because": ["x > 9: 1 against 9, off by 8"]}  # fmt: skip
DELIVERED = {"client": "ann", "subscription": "n", "version": 2, "filter": "x < :a",
             "parameters": {"a": 5}}  # fmt: skip
AT_A = {
    **EMPTY, "broker": "a", "undelivered": [MISS], "others": 4, "patterns": 1,
    "passed_on": [{"to": "b", "because": "b has asked for `x < 5`", "connected": False}],
    "stopped": [{"to": "c", "because": "it does not match the only filter of c",
                 "nearest": [{"filter": "x = 2", "because": ["x = 2: 1 against 2, off by 1"]}]}],
}  # fmt: skip
AT_B = {**EMPTY, "broker": "b", "from": "a", "relayed": True}
AT_D = {**EMPTY, "broker": "d\x1b[2J", "from": "b", "delivered": [DELIVERED], "deliveries": 3}


def printed(monkeypatch: pytest.MonkeyPatch, *arguments: str, **answer: Any) -> tuple[int, str]:
    whole = {"unheard": [], "published": False, "confirmed": False, **answer}
    whole.setdefault("deliveries", sum(each["deliveries"] for each in whole["brokers"]))
    monkeypatch.setattr(AdminClient, "post", lambda *_: whole)
    ran = CliRunner().invoke(cli, ["trace", '{"x": 1}', "--token", "t", *arguments])
    return ran.exit_code, ran.output


def test_way_over_several_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = printed(
        monkeypatch, brokers=[AT_A, AT_B, AT_D], unheard=["e"], published=True, confirmed=True
    )
    assert code == 0
    assert out.splitlines() == [
        "a",
        "  keeps it for 1 pattern(s)",
        "  not to bob: x > 9",
        "    no   x > 9: 1 against 9, off by 8",
        "  nor to 3 other filters",
        "  passes it on to b (it is not connected: the event waits): b has asked for `x < 5`",
        "  not to c: it does not match the only filter of c",
        "    nearest: x = 2",
        "      no   x = 2: 1 against 2, off by 1",
        "b  from a",
        "  relays it without matching",
        "d\N{REPLACEMENT CHARACTER}[2J  from b",
        "  delivers it to ann (n, version 2): x < :a",
        "    with a = 5",
        "  delivers it to 2 more",
        "",
        "3 deliveries; 3 brokers had the event",
        "no report came from e in time",
        "the event was published, and confirmed",
    ]


def test_event_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    report = {**EMPTY, "broker": "a", "refused": "it was not advertised"}
    code, out = printed(monkeypatch, brokers=[report])
    assert (code, "refuses it: it was not advertised" in out) == (1, True)


def test_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = printed(monkeypatch, "--publish", "--identity", "bob", brokers=[])
    assert (code, "--identity is for an event that is not published" in out) == (2, True)

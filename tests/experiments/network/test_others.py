from __future__ import annotations

import shutil

import pytest

from tidegate.experiments.network.others import MOSQUITTO, NATS, SYSTEMS, System, _symbols
from tidegate.experiments.network.scenarios import NetworkCase


def test_a_connection_subscribes_to_all_if_it_must() -> None:
    assert _symbols(["symbol = 'S2' and a < 1", "symbol = 'S1'", "symbol = 'S2'"]) == ["S1", "S2"]
    assert _symbols(["symbol = 'S2' and a < 1", "price < 1"]) == [""]


def test_packets() -> None:
    assert NATS.publication("S1", b"{}") == b"PUB SYM.S1 2\r\n{}\r\n"
    assert NATS.delivery_bytes("S1", b"{}", 7) == len(b"MSG SYM.S1 7 2\r\n{}\r\n")
    assert MOSQUITTO.publication("S1", b"x" * 200)[:5] == b"\x30\xd0\x01\x00\x06"
    assert MOSQUITTO.hello("a", ["S1"]).endswith(b"\x82\x0b\x00\x01\x00\x06SYM/S1\x00\xc0\x00")


def test_what_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert [each.measure(NetworkCase(), 1) for each in SYSTEMS] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda each: each.name)
def test_all_bytes_come(system: System) -> None:
    if shutil.which(system.program) is None:
        pytest.skip(f"{system.program} is not installed")
    row = system.measure(NetworkCase(50, events=300, rounds=2), 3)
    assert row is not None
    assert row.wrong == 0
    assert row.median_per_s > 0

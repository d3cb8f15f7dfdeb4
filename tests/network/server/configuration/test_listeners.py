from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import SettingsError
from tidegate.network.server.configuration.broker_file import read_broker_file
from tidegate.network.server.configuration.listeners import (
    AdminTable,
    WebSocketTable,
    check_admin_address,
    check_origins,
)


def test_tables_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(
        '[broker]\nname = "a"\n[admin]\ntoken_file = "secret"\n'
        '[websocket]\nlisten = "[::1]:1"\norigins = ["https://a.example:8443", "*"]\n'
    )
    found = read_broker_file(file)
    assert found.admin == AdminTable(token_file=tmp_path / "secret")
    assert found.websocket == WebSocketTable("[::1]:1", ("https://a.example:8443", "*"))
    file.write_text('[broker]\nname = "a"\n[admin]\nlisten = "10.0.0.1:1"\nport = 1\n')
    with pytest.raises(SettingsError, match="the admin port has no TLS"):
        read_broker_file(file)


@pytest.mark.parametrize(
    "origin", ["", "a.example", "https://", "https://a.example/page", "ws://a"]
)
def test_what_is_no_origin(origin: str) -> None:
    with pytest.raises(SettingsError, match="an origin is scheme://host"):
        check_origins((origin,))


def test_admin_port_stays_on_the_machine() -> None:
    assert check_admin_address("[::1]:7080") == "[::1]:7080"
    with pytest.raises(SettingsError, match="put a proxy in front of it"):
        check_admin_address("0.0.0.0:7080")

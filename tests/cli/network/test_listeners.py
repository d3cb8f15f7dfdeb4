from __future__ import annotations

import asyncio
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from support.wire_client import running
from tidegate.cli.network.listeners import (
    TOKEN_FILE,
    listeners_of,
    listening,
    split_options,
    with_options,
)
from tidegate.errors import AccessError, TidegateError
from tidegate.network.admin.settings import AdminSettings
from tidegate.network.server.configuration.listeners import AdminTable, WebSocketTable
from tidegate.network.server.settings import BrokerSettings


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_ADMIN_TOKEN", raising=False)


def admin_of(options: dict[str, Any], data: Path | None = None) -> AdminSettings:
    admin, _ = listeners_of(with_options(BrokerSettings("a", data=data), options))
    assert admin is not None
    return admin


def test_token_is_made_once_for_nobody_else_to_read(tmp_path: Path) -> None:
    data = tmp_path / "a"
    first = admin_of({"admin": "127.0.0.1:0"}, data)
    file = data / TOKEN_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert admin_of({"admin": "127.0.0.1:0"}, data) == first
    assert first.admits(file.read_text().strip())


def test_token_of_a_file_and_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("a long enough token\n")
    admin = admin_of({"admin": "127.0.0.1:0", "admin_token_file": file})
    assert admin.admits("a long enough token")
    monkeypatch.setenv("TIDEGATE_ADMIN_TOKEN", "another token that is long")
    assert admin_of({"admin": "127.0.0.1:0"}, tmp_path).admits("another token that is long")
    assert not (tmp_path / TOKEN_FILE).exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"admin": "7080"}, "--admin: '7080' is no HOST:PORT"),
        ({"admin": "0.0.0.0:0"}, "can be reached from other machines"),
        ({"websocket": "x"}, "--websocket: 'x' is no HOST:PORT"),
        ({"origins": ("*",)}, "--origin goes with --websocket"),
        ({"admin_token_file": Path("x")}, "--admin-token-file goes with --admin"),
        ({"websocket": "127.0.0.1:0", "origins": ("desk.example",)}, "an origin is"),
    ],
)
def test_wrong_options(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(click.UsageError, match=reason):
        with_options(BrokerSettings("a"), options)


def test_what_a_broker_is_not_started_with(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_text("short")
    with pytest.raises(AccessError, match="at least 16"):
        admin_of({"admin": "127.0.0.1:0", "admin_token_file": short})
    with pytest.raises(AccessError, match="give --admin-token-file"):
        admin_of({"admin": "127.0.0.1:0"})
    settings = with_options(BrokerSettings("a"), {"websocket": "0.0.0.0:0"})
    with pytest.raises(TidegateError, match="--without-authentication"):
        listeners_of(settings)
    assert listeners_of(replace(settings, without_authentication=True))[1] is not None


def test_options_and_tables_of_the_file() -> None:
    given = {"admin": "127.0.0.1:1", "name": "a", "websocket": "127.0.0.1:2"}
    ours, others = split_options(given)
    assert others == {"name": "a"}
    settings = BrokerSettings("a", admin=AdminTable(identity="feed"))
    changed = with_options(settings, ours)
    assert changed.admin == AdminTable("127.0.0.1:1", identity="feed")
    assert changed.websocket == WebSocketTable("127.0.0.1:2")


def test_both_listeners_run_and_end(tmp_path: Path) -> None:
    async def main() -> None:
        options = {"admin": "127.0.0.1:0", "websocket": "127.0.0.1:0",
                   "origins": ("https://a.example",)}  # fmt: skip
        settings = listeners_of(with_options(BrokerSettings("a", data=tmp_path), options))
        async with running(BrokerSettings("a", port=0)) as server:
            async with listening(server, *settings) as lines:
                ports = [int(line.rpartition(":")[2]) for line in lines]
                for port in ports:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
            for port in ports:
                with pytest.raises(ConnectionRefusedError):
                    await asyncio.open_connection("127.0.0.1", port)

    asyncio.run(main())

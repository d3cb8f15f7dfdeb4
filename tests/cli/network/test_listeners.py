from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import click
import pytest

from support.wire_client import running
from tidegate.cli.network.listeners import TOKEN_FILE, listener_settings, listening
from tidegate.errors import AccessError, TidegateError
from tidegate.network.server.settings import BrokerSettings


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_ADMIN_TOKEN", raising=False)


def test_token_is_made_once_for_nobody_else_to_read(tmp_path: Path) -> None:
    data = tmp_path / "a"
    first, _ = listener_settings(data, "127.0.0.1:0", None, None, ())
    file = data / TOKEN_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second, _ = listener_settings(data, "127.0.0.1:0", None, None, ())
    assert first is not None
    assert first == second
    assert first.admits(file.read_text().strip())


def test_token_of_a_file_and_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("a long enough token\n")
    admin, _ = listener_settings(None, "127.0.0.1:0", file, None, ())
    assert admin is not None
    assert admin.admits("a long enough token")
    monkeypatch.setenv("TIDEGATE_ADMIN_TOKEN", "another token that is long")
    admin, _ = listener_settings(tmp_path, "127.0.0.1:0", None, None, ())
    assert admin is not None
    assert admin.admits("another token that is long")
    assert not (tmp_path / TOKEN_FILE).exists()


def test_what_is_refused(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_text("short")
    with pytest.raises(AccessError, match="at least 16"):
        listener_settings(None, "127.0.0.1:0", short, None, ())
    with pytest.raises(AccessError, match="give --admin-token-file"):
        listener_settings(None, "127.0.0.1:0", None, None, ())
    with pytest.raises(TidegateError, match="can be reached from other machines"):
        listener_settings(tmp_path, "0.0.0.0:0", None, None, ())
    with pytest.raises(TidegateError, match="--without-authentication"):
        listener_settings(None, None, None, "0.0.0.0:0", ())
    with pytest.raises(click.UsageError, match="--origin goes with --websocket"):
        listener_settings(None, None, None, None, ("*",))
    with pytest.raises(click.UsageError, match="--admin-token-file goes with --admin"):
        listener_settings(None, None, short, None, ())
    for origin in ("desk.example", "https://desk.example/page", "ftp://x"):
        with pytest.raises(click.UsageError, match="an origin is"):
            listener_settings(None, None, None, "127.0.0.1:0", (origin,))


def test_both_listeners_run_and_end(tmp_path: Path) -> None:
    async def main() -> None:
        settings = listener_settings(
            tmp_path, "127.0.0.1:0", None, "127.0.0.1:0", ("https://a.example",)
        )
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

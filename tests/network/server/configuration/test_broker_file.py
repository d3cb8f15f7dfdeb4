"""The TOML file of a broker: defaults, all keys, and everything that is wrong at once."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.network.broker import EXAMPLE
from tidegate.errors import SettingsError
from tidegate.language.limits import Limits
from tidegate.network.server.configuration.broker_file import (
    TABLES,
    BrokerTable,
    read_broker_file,
    settings_from,
)
from tidegate.network.server.settings import BrokerSettings, ClientLimits, PeerAddress
from tidegate.network.store.retention import Retention
from tidegate.routing.broker import BrokerLimits
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.settings_file import keys_of


def read(folder: Path, text: str) -> BrokerSettings:
    (folder / "broker.toml").write_text(text, encoding="utf-8")
    return read_broker_file(folder / "broker.toml")


def test_what_need_not_be_said(tmp_path: Path) -> None:
    assert read(tmp_path, '[broker]\nname = "a"') == BrokerSettings("a")
    assert settings_from({"name": "a"}) == BrokerSettings("a")


def test_all_that_can_be_said(tmp_path: Path) -> None:
    (tmp_path / "trades.json").write_text('{"name": "trades", "attributes": {"price": "float"}}')
    found = read(
        tmp_path,
        """
        [broker]
        name = "b"
        listen = "[::1]:0"
        data = "store"
        routing = "summaries"
        architecture = "general"
        substrate = "tree"
        peers = ["tidegate://127.0.0.1:7070", "tidegate://[::1]:7"]
        domain = "east"
        link_cost = "2 ms"
        spaces = ["trades.json"]
        variables = {load = 0.5}
        [limits]
        handshake = "1.5 s"
        heartbeat = "500 ms"
        per_client_max = 7
        [limits.filters]
        depth_max = 8
        [store]
        keep = "1 d"
        bytes_max = 1_000_000
        [summaries]
        period = "0 s"
        budget = {rows_max = 9}
        """,
    )
    assert (found.name, found.host, found.port, found.data) == ("b", "::1", 0, tmp_path / "store")
    assert (found.routing, found.architecture, found.substrate) == ("summaries", "general", "tree")
    assert found.peers == (PeerAddress("127.0.0.1", 7070), PeerAddress("::1", 7))
    assert (found.domain, found.link_cost_us) == ("east", 2_000)
    assert [space.name for space in found.spaces] == ["trades"]
    assert found.variables == {"load": 0.5}
    assert found.limits == ClientLimits(handshake_s=1.5, heartbeat_ms=500)
    assert found.broker_limits == BrokerLimits(Limits(depth_max=8), per_client_max=7)
    assert found.store == Retention(timedelta(days=1), 1_000_000)
    assert found.summaries is not None
    assert (found.summaries.period_us, found.summaries.budget.rows_max) == (0, 9)


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        read(
            tmp_path,
            """
            [broker]
            lsten = "127.0.0.1:1"
            listen = "7070"
            routing = "floodin"
            substrate = "three"
            architecture = "generall"
            peers = ["http://b:1"]
            spaces = ["none.json"]
            [limits]
            requests_max = 0
            grace = 30
            [limit]
            [store]
            keep = "1 week"
            bytes_max = "8 GB"
            """,
        )
    file = tmp_path / "broker.toml"
    found = str(refused.value).split("\n")
    wanted = [
        "there is no table [limit]; there are broker, limits, ",
        "[broker] has no key lsten; it has name, listen, ",
        "[broker] listen: '7070' is no HOST:PORT, such as 127.0.0.1:7070",
        "[broker] routing: there is no routing 'floodin'; there are flooding, ",
        "[broker] substrate: there is no 'three'; there are poset, ",
        "[broker] architecture: there is no 'generall'; there are acyclic, general, hierarchical; "
        "did you mean general?",
        "[broker] peers: a neighbour is tidegate://HOST:PORT, or tidegates:// for TLS, not 'http://b:1'",
        "[limits] requests_max: 0 is not 1 or more",
        "[limits] grace must be a duration in a string such as '10 s', not 30",
        "[store] keep: '1 week' is not a duration; ",
        "[store] bytes_max must be an integer, not '8 GB'",
    ]
    assert len(found) == len(wanted)
    for line, begin in zip(found, wanted, strict=True):
        assert line.startswith(f"{file}: {begin}")
    assert found[0].endswith("; did you mean limits?")
    assert found[1].endswith("; did you mean listen?")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "[broker] name is missing"),
        ('[broker]\nname = ""', "[broker] name is empty"),
        ("broker = 1", "broker must be a table: write [broker]"),
        ('[broker]\nname = "a"\nlisten = "0.0.0.0:1"', "[broker] listen: 0.0.0.0 can be reached"),
        ('[broker]\nname = "a"\nspaces = ["no.json"]', "[broker] spaces: "),
        ('[broker]\nname = "a"\n[summaries]\nbatch_max = 0', "[summaries] a batch of summaries"),
        ("[broker", "is not valid TOML"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path}/broker.toml: {reason}")


def test_a_space_is_there_once(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"name": "s", "attributes": {"price": "float"}}')
    with pytest.raises(SettingsError, match="'s' is there twice"):
        read(tmp_path, '[broker]\nname = "a"\nspaces = ["s.json", "s.json"]')


def test_options_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text('[broker]\nname = "a"\nlisten = "127.0.0.1:1"\ndata = "a"\nrouting="flooding"')
    found = read_broker_file(file, {"name": "b", "listen": "127.0.0.1:2", "data": Path("b")})
    assert (found.name, found.port, found.data, found.routing) == ("b", 2, Path("b"), "flooding")


def test_the_example_has_every_key_with_its_default(tmp_path: Path) -> None:
    """What it says is the default is one: it can be uncommented without a change."""
    text = EXAMPLE.read_text(encoding="utf-8")
    kinds: dict[str, type[Any]] = {"broker": BrokerTable, **TABLES}
    of_limits: list[tuple[str, type[Any]]] = [
        ("limits", ClientLimits), ("limits", BrokerLimits), ("limits.filters", Limits),
    ]  # fmt: skip
    for name, kind in [*kinds.items(), *of_limits]:
        assert f"[{name}]" in text
        for key in keys_of(kind):
            assert re.search(rf"^(# )?{key} = |\[{name}\.{key}\]", text, re.MULTILINE), key
    text = text[: text.index("# [tls]")]  # what follows names files and secrets
    uncommented = re.sub(r"(?m)^# (?=\[|\w+ = )", "", text)
    examples = "peers|spaces|variables|degree_max|event_rate|request_rate|bytes_max = 1_0"
    example = re.compile(rf"(?m)^({examples}).*\n")
    found = read(tmp_path, example.sub("", uncommented))
    assert found == BrokerSettings("a", data=tmp_path / "data", summaries=SummarySettings())

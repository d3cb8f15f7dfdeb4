"""The TOML file of a broker: `tidegate broker --config FILE`.

The table [broker] has what the command line has; [limits] is read into the dataclasses of limits.
Every other table is a field of `BrokerSettings` with the same name, whose type says what its keys
are: who adds such a field adds its table to ``TABLES``, and a commented example to `broker.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from tidegate.errors import RoutingError, SettingsError, SpaceError
from tidegate.language.spaces import Space
from tidegate.matching.space_file import read_space
from tidegate.network.server.access.settings import AuthSettings, TlsSettings
from tidegate.network.server.configuration.addresses import check_reach, listen_address
from tidegate.network.server.configuration.listeners import AdminTable, WebSocketTable
from tidegate.network.server.settings import BrokerSettings, ClientLimits, PeerAddress
from tidegate.network.store.retention import Retention
from tidegate.routing.broker import BrokerLimits
from tidegate.routing.strategies import strategy
from tidegate.routing.substrates import SUBSTRATES
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.settings_file import TableReader, Within, all_problems, read_tables

TABLES: Mapping[str, type[Any]] = {
    "store": Retention,
    "summaries": SummarySettings,
    "tls": TlsSettings,
    "auth": AuthSettings,
    "admin": AdminTable,
    "websocket": WebSocketTable,
}
"""Tables that are fields of `BrokerSettings`, which the file need not have."""


def _routing(name: str) -> str:
    strategy(name)
    return name


def _substrate(name: str) -> str:
    if name not in SUBSTRATES:
        raise RoutingError(f"there is no {name!r}; there are {', '.join(SUBSTRATES)}")
    return name


def _listen(text: str) -> str:
    listen_address(text)
    return text


def _peers(urls: tuple[str, ...]) -> tuple[str, ...]:
    for url in urls:
        PeerAddress.parse(url)
    return urls


@dataclass(frozen=True, slots=True)
class BrokerTable:
    """The table `[broker]`."""

    name: str | None = None
    listen: Annotated[str, _listen] = "127.0.0.1:7070"
    data: Path | None = None
    routing: Annotated[str, _routing] = "subscription"
    architecture: Literal["acyclic", "general", "hierarchical"] = "acyclic"
    substrate: Annotated[str, _substrate] = "columnar"
    peers: Annotated[tuple[str, ...], _peers] = ()
    domain: str = "main"
    link_cost_us: Annotated[int, Within(1)] = 1_000
    spaces: tuple[Path, ...] = ()
    """Files of spaces."""
    variables: dict[str, Any] = field(default_factory=dict)
    """Values of `@name` in filters."""
    without_authentication: bool = False


def read_broker_file(
    path: str | Path, overriding: Mapping[str, Any] | None = None
) -> BrokerSettings:
    """Read and check the file of a broker; a SettingsError says everything that is wrong in it.

    ``overriding`` are keys of [broker] that the command line gives.
    """
    file = Path(path)
    raw = read_tables(file, SettingsError)
    reader = TableReader(file.parent.absolute())
    settings = _settings(raw, reader, overriding or {})
    if settings is None:
        raise all_problems(file, reader.problems, SettingsError)
    return settings


def settings_from(options: Mapping[str, Any]) -> BrokerSettings:
    """The settings of a broker without a file, from keys of [broker]; raises SettingsError."""
    reader = TableReader(Path())
    settings = _settings({}, reader, options)
    if settings is None:
        raise SettingsError("\n".join(reader.problems))
    return settings


def _settings(
    raw: Mapping[str, Any], reader: TableReader, overriding: Mapping[str, Any]
) -> BrokerSettings | None:
    reader.check_names(raw, ("broker", "limits", *TABLES))
    tables = {name: table for name, table in raw.items() if isinstance(table, dict)}
    broker = reader.read(BrokerTable, tables.get("broker", {}), "broker")
    limits = reader.read_several((ClientLimits, BrokerLimits), tables.get("limits", {}), "limits")
    more: dict[str, Any] = {
        name: reader.read(kind, tables[name], name)
        for name, kind in TABLES.items()
        if name in tables
    }
    broker = None if broker is None else replace(broker, **overriding)
    spaces = () if broker is None else _spaces(broker.spaces, reader)
    if broker is not None and broker.name is None:
        reader.problems.append("[broker] name is missing: the name of the broker in its network")
    if broker is not None:
        host, port = listen_address(broker.listen)
        try:
            check_reach(host, broker.without_authentication or "auth" in tables)
        except SettingsError as error:
            reader.problems.append(f"[broker] listen: {error}")
    if reader.problems or broker is None or broker.name is None or limits is None:
        return None
    return BrokerSettings(
        broker.name,
        host,
        port,
        broker.data,
        broker.routing,
        broker.architecture,
        broker.domain,
        tuple(PeerAddress.parse(url) for url in broker.peers),
        broker.link_cost_us,
        limits[0],
        limits[1],
        substrate=broker.substrate,
        spaces=spaces,
        variables=broker.variables,
        without_authentication=broker.without_authentication,
        **more,
    )


def _spaces(files: tuple[Path, ...], reader: TableReader) -> tuple[Space, ...]:
    spaces: list[Space] = []
    for file in files:
        try:
            space = read_space(file)
        except SpaceError as error:
            reader.problems.append(f"[broker] spaces: {error}")
            continue
        if space.name in [each.name for each in spaces]:
            reader.problems.append(f"[broker] spaces: {space.name!r} is there twice")
        spaces.append(space)
    return tuple(spaces)

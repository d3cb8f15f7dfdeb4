"""The TOML file of a pipeline: what it reads, matches and writes, checked before anything runs.

Each table of the file is a dataclass, whose fields are its keys. Paths are relative to the folder
of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tidegate.errors import ConnectorError
from tidegate.settings_file import TableReader, all_problems, read_tables
from tidegate.spark.storage.locations import is_uri


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The table `[source]`: where events come from."""

    format: str
    schema: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    broker: str | None = None
    identity: str | None = None
    filter: str = "true"
    """The events of the broker to read."""
    event_time: str | None = None
    ahead: timedelta | None = None
    """By how much the time of an event may be ahead of the clock."""
    key: str | None = None
    headers: list[str] = field(default_factory=list)
    starting: str = "earliest"
    drift: str = "bad"
    space: str | None = None
    """The file of the space that the schema and all filters must fit."""
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubscriptionSettings:
    """The table `[subscriptions]`: where subscriptions or their changes come from."""

    table: str | None = None
    changes: str | None = None
    initial: str | None = None
    """The file of the subscriptions that a stream of changes begins with."""
    servers: str | None = None
    topic: str | None = None
    starting: str = "earliest"
    lateness: timedelta = timedelta(seconds=10)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """The table `[sink]`: where deliveries are written."""

    format: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    broker: str | None = None
    identity: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    columns: list[str] | None = None
    key: list[str] = field(default_factory=list)
    mode: str = "append"
    """Which records of a Kafka topic replace others; see `KafkaSink`."""
    keep_batches: int | None = None
    """How many batches of Parquet files are kept; by default all."""
    compact_every: int | None = None
    """After how many batches a Delta table is compacted; by default never."""
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """The table `[checkpoint]`: where the progress and the state of the pipeline are kept."""

    path: str
    rejected: str | None = None
    """The folder for rejected rows, in place of the one in the checkpoint."""
    keep_rejected: int | None = None
    """How many batches their rejected rows are kept for; by default for ever."""


@dataclass(frozen=True, slots=True)
class TriggerSettings:
    """The table `[trigger]`: when micro-batches run. By default as soon as the last one is done."""

    every: timedelta | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """The table `[metrics]`: where Prometheus reads the metrics."""

    port: int
    address: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """The settings of a pipeline: all tables of its file."""

    source: SourceSettings
    subscriptions: SubscriptionSettings
    sink: SinkSettings
    checkpoint: CheckpointSettings
    trigger: TriggerSettings = field(default_factory=TriggerSettings)
    metrics: MetricsSettings | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    spark: dict[str, Any] = field(default_factory=dict)

    @property
    def needs_kafka(self) -> bool:
        """Whether the session needs the Kafka connector."""
        formats = (self.source.format, self.sink.format)
        return "kafka" in formats or self.subscriptions.topic is not None

    @property
    def needs_s3(self) -> bool:
        """Whether the session needs the S3 connector."""
        read = (self.source.path, self.subscriptions.changes, self.checkpoint.path)
        return any(each is not None and each.startswith(("s3:", "s3a:")) for each in read)


_TABLES: dict[str, type[Any]] = {
    "source": SourceSettings,
    "subscriptions": SubscriptionSettings,
    "sink": SinkSettings,
    "checkpoint": CheckpointSettings,
    "trigger": TriggerSettings,
    "metrics": MetricsSettings,
}
_FREE_TABLES = ("variables", "spark")
"""Tables that may have any keys."""
_LOCATIONS = ("path", "rejected", "table", "changes", "initial", "space")
"""Keys of files and folders, which may be URIs."""
_RENAMED_KEYS = {("checkpoint", "aside"): "rejected"}
"""Present names of keys, by table and former name."""
_REQUIRED_KEYS = {
    "source": {
        "json": ("path",),
        "parquet": ("path",),
        "kafka": ("servers", "topic"),
        "tidegate": ("path",),
        "broker": ("broker", "identity"),
    },
    "sink": {
        "parquet": ("path",),
        "delta": ("path",),
        "kafka": ("servers", "topic", "key"),
        "tidegate": ("path",),
        "broker": ("broker",),
        "console": (),
    },
}
"""The formats of sources and sinks, and the keys that each requires."""


def read_settings(path: str | Path) -> PipelineSettings:
    """Read and check the file of a pipeline; errors name the tables and the keys."""
    file = Path(path)
    raw = read_tables(file, ConnectorError)
    reader = TableReader(file.parent, _RENAMED_KEYS)
    settings = _settings(raw, reader)
    if settings is None:
        raise all_problems(file, reader.problems, ConnectorError)
    try:
        _check_formats(settings)
        _check_subscriptions(settings)
    except ConnectorError as error:
        raise ConnectorError(f"{path}: {error}") from None
    return settings


def _settings(raw: Mapping[str, Any], reader: TableReader) -> PipelineSettings | None:
    reader.check_names(raw, (*_TABLES, *_FREE_TABLES))
    reader.problems += [
        f"the table [{name}] is missing"
        for name in ("source", "subscriptions", "sink", "checkpoint")
        if name not in raw
    ]
    tables: dict[str, Any] = {name: raw[name] for name in _FREE_TABLES if name in raw}
    for name, kind in _TABLES.items():
        if isinstance(raw.get(name), dict):
            table = reader.read(kind, raw[name], name)
            tables[name] = _with_whole_paths(table, reader.folder)
    return None if reader.problems else PipelineSettings(**tables)


def _with_whole_paths(table: Any, folder: Path) -> Any:
    """A table whose locations do not depend on the folder of this process."""
    if table is None:
        return None
    given = {key: getattr(table, key, None) for key in _LOCATIONS}
    whole = {
        key: str((folder / location).absolute())
        for key, location in given.items()
        if location is not None and not is_uri(location)
    }
    return replace(table, **whole)


def _check_formats(settings: PipelineSettings) -> None:
    for name, formats in _REQUIRED_KEYS.items():
        table = getattr(settings, name)
        if table.format not in formats:
            raise ConnectorError(
                f"[{name}] format: there is no {table.format!r}; there are {', '.join(formats)}"
            )
        for key in formats[table.format]:
            if not getattr(table, key):
                raise ConnectorError(
                    f"[{name}] {key} is missing; the format {table.format} needs it"
                )
    if settings.sink.format in ("tidegate", "broker") and settings.sink.grouped:
        raise ConnectorError("[sink] grouped makes lists, which an event cannot have")
    if settings.sink.options and settings.sink.format != "broker":
        raise ConnectorError("[sink] options are for a broker")
    if settings.sink.mode not in ("append", "fold", "upsert"):
        raise ConnectorError(
            f"[sink] mode: there is no {settings.sink.mode!r}; there are append, fold, upsert"
        )
    for key, format in (("keep_batches", "parquet"), ("compact_every", "delta")):
        if getattr(settings.sink, key) is not None and settings.sink.format != format:
            raise ConnectorError(f"[sink] {key} is for {format}")
    if settings.sink.mode != "append" and settings.sink.format != "kafka":
        raise ConnectorError("[sink] mode is for kafka")
    if settings.source.drift not in ("bad", "error"):
        raise ConnectorError(
            f"[source] drift: there is no {settings.source.drift!r}; there are bad, error"
        )


def _check_subscriptions(settings: PipelineSettings) -> None:
    subscriptions = settings.subscriptions
    given = [name for name in ("table", "changes", "topic") if getattr(subscriptions, name)]
    if len(given) != 1:
        raise ConnectorError(
            "[subscriptions] needs one of table (a file), changes (a folder) and topic (in Kafka)"
            + (f", not {' and '.join(given)}" if given else "")
        )
    if subscriptions.initial and subscriptions.table:
        raise ConnectorError("[subscriptions] initial goes with changes or a topic, not with table")
    if subscriptions.topic and not subscriptions.servers:
        raise ConnectorError("[subscriptions] servers is missing; a topic needs it")
    if not subscriptions.table and settings.source.event_time is None:
        raise ConnectorError(
            "[source] event_time is missing; with changes, events are judged as of their time"
        )
    if settings.trigger.every is not None and settings.trigger.once:
        raise ConnectorError("[trigger] has both every and once; give one of them")

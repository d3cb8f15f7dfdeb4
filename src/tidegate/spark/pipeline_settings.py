"""Pipelines as TOML files: what is read, matched and written, checked before anything runs.

Paths are relative to the folder of the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from tidegate.errors import BadValueError, ConnectorError
from tidegate.language.durations import parse_duration


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Where events come from: the table `[source]`."""

    format: str
    schema: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    event_time: str | None = None
    key: str | None = None
    headers: list[str] = field(default_factory=list)
    starting: str = "earliest"
    drift: str = "bad"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubscriptionSettings:
    """Where subscriptions come from: the table `[subscriptions]`."""

    table: str | None = None
    changes: str | None = None
    servers: str | None = None
    topic: str | None = None
    starting: str = "earliest"
    lateness: timedelta = timedelta(seconds=10)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """Where deliveries go: the table `[sink]`."""

    format: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    columns: list[str] | None = None
    key: list[str] = field(default_factory=list)
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """Where the pipeline keeps how far it has come: the table `[checkpoint]`."""

    path: str
    aside: str | None = None


@dataclass(frozen=True, slots=True)
class TriggerSettings:
    """When micro-batches run: the table `[trigger]`. Without it, as soon as the last is done."""

    every: timedelta | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where Prometheus reads how it goes: the table `[metrics]`."""

    port: int
    address: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """A pipeline, as its file says it."""

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


_SECTIONS: dict[str, type[Any]] = {
    "source": SourceSettings,
    "subscriptions": SubscriptionSettings,
    "sink": SinkSettings,
    "checkpoint": CheckpointSettings,
    "trigger": TriggerSettings,
    "metrics": MetricsSettings,
}
_FREE_SECTIONS = ("variables", "spark")
_NEEDED = {
    "source": {
        "json": ("path",),
        "parquet": ("path",),
        "kafka": ("servers", "topic"),
        "tidegate": ("path",),
    },
    "sink": {
        "parquet": ("path",),
        "delta": ("path",),
        "kafka": ("servers", "topic", "key"),
        "tidegate": ("path",),
        "console": (),
    },
}
"""The formats there are, and what each needs."""


def read_settings(path: str | Path) -> PipelineSettings:
    """Read and check a pipeline's file; the error names the table and the key."""
    file = Path(path)
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConnectorError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConnectorError(f"{path}: is no TOML: {error}") from None
    try:
        return _settings(raw, file.parent)
    except ConnectorError as error:
        raise ConnectorError(f"{path}: {error}") from None


def _settings(raw: Mapping[str, Any], folder: Path) -> PipelineSettings:
    known = [*_SECTIONS, *_FREE_SECTIONS]
    for name, table in raw.items():
        if name not in known:
            raise ConnectorError(f"there is no table [{name}]; there are {', '.join(known)}")
        if not isinstance(table, dict):
            raise ConnectorError(f"{name} must be a table: write [{name}]")
    missing = [
        name for name in ("source", "subscriptions", "sink", "checkpoint") if name not in raw
    ]
    if missing:
        raise ConnectorError(f"the table [{missing[0]}] is missing")
    made: dict[str, Any] = {name: raw[name] for name in _FREE_SECTIONS if name in raw}
    for name, kind in _SECTIONS.items():
        if name in raw:
            made[name] = _section(kind, raw[name], name, folder)
    settings = PipelineSettings(**made)
    _check_formats(settings)
    _check_subscriptions(settings)
    return settings


Section = TypeVar("Section")


def _section(kind: type[Section], table: Mapping[str, Any], name: str, folder: Path) -> Section:
    """One table of the file."""
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in hints:
            raise ConnectorError(f"[{name}] has no {key}; it has {', '.join(hints)}")
        values[key] = _value(hints[key], value, f"[{name}] {key}")
        if key in ("path", "aside", "table", "changes") and "://" not in values[key]:
            values[key] = str((folder / values[key]).absolute())
    for each in fields(kind):  # type: ignore[arg-type]
        if each.name not in values and each.default is MISSING and each.default_factory is MISSING:
            raise ConnectorError(f"[{name}] {each.name} is missing")
    return kind(**values)


def _value(hint: Any, value: Any, where: str) -> Any:
    """A value of the type that is wanted."""
    wanted = str(hint)
    if "timedelta" in wanted:
        return _duration(value, where)
    for kind, what in ((bool, "true or false"), (int, "an integer"), (str, "a string")):
        if hint is kind or wanted == f"{kind.__name__} | None":
            if value == "" and kind is str:
                raise ConnectorError(f"{where} is empty")
            if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
                return value
            raise ConnectorError(f"{where} must be {what}, not {value!r}")
    if "list" in wanted:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
        raise ConnectorError(f"{where} must be a list of strings, not {value!r}")
    if not isinstance(value, dict):
        raise ConnectorError(f"{where} must be a table, not {value!r}")
    return value


def _duration(value: Any, where: str) -> timedelta:
    if not isinstance(value, str):
        raise ConnectorError(f"{where} must be a duration in a string, as '10 s', not {value!r}")
    try:
        return parse_duration(value)
    except BadValueError as error:
        raise ConnectorError(f"{where}: {error}") from None


def _check_formats(settings: PipelineSettings) -> None:
    for name, formats in _NEEDED.items():
        section = getattr(settings, name)
        if section.format not in formats:
            raise ConnectorError(
                f"[{name}] format: there is no {section.format!r}; there are {', '.join(formats)}"
            )
        for key in formats[section.format]:
            if not getattr(section, key):
                raise ConnectorError(
                    f"[{name}] {key} is missing; the format {section.format} needs it"
                )
    if settings.sink.format == "tidegate" and settings.sink.grouped:
        raise ConnectorError("[sink] grouped gives lists, which an event log does not take")
    if settings.source.drift not in ("bad", "error"):
        raise ConnectorError(
            f"[source] drift: there is no {settings.source.drift!r}; there are bad, error"
        )


def _check_subscriptions(settings: PipelineSettings) -> None:
    chosen = settings.subscriptions
    given = [name for name in ("table", "changes", "topic") if getattr(chosen, name)]
    if len(given) != 1:
        raise ConnectorError(
            "[subscriptions] needs one of table (a file), changes (a folder) and topic (in Kafka)"
            + (f", not {' and '.join(given)}" if given else "")
        )
    if chosen.topic and not chosen.servers:
        raise ConnectorError("[subscriptions] servers is missing; a topic needs it")
    if not chosen.table and settings.source.event_time is None:
        raise ConnectorError(
            "[source] event_time is missing; with changes, events are judged as of their time"
        )
    if settings.trigger.every is not None and settings.trigger.once:
        raise ConnectorError("[trigger] has every and once; give one of them")

"""Files of settings in TOML: each table is a dataclass, whose fields are its keys.

Rules.

(1) Everything that is wrong in a file is found in one reading, so that nobody mends it error by
    error. Each problem names its table and key, as in `[sink] path must be a string, not 3`.
(2) The type of a field says what its key takes. A field that is a dataclass is a table within the
    table, `tuple[X, ...]` is a list, and a `Literal` is one of its words.
(3) Durations are strings such as "10 s", also where a field is a number of seconds, milliseconds or
    microseconds: the key of `grace_s` is `grace`.
(4) A `Path` is relative to the folder of the file.
(5) `Annotated[X, check]` calls ``check`` with the value; a TidegateError of it is a problem.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from tidegate.errors import BadValueError, TidegateError
from tidegate.language.durations import parse_duration
from tidegate.language.nearest_names import nearest_name

_UNITS = {"_us": timedelta(microseconds=1), "_ms": timedelta(milliseconds=1),
          "_s": timedelta(seconds=1)}  # fmt: skip
_NOUNS = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}

TableT = TypeVar("TableT")


def read_tables(file: Path, error: type[TidegateError]) -> dict[str, Any]:
    """The tables of a TOML file; raises ``error``, which names the file and what is wrong."""
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as failed:
        raise error(f"{file}: {failed.strerror or failed}") from None
    except ValueError as failed:
        # TOML or UTF-8 that is malformed, or a path with a NUL
        raise error(f"{file}: is not valid TOML: {failed}") from None


def all_problems(file: Path, problems: list[str], error: type[TidegateError]) -> TidegateError:
    """One error with a line for each problem of a file."""
    return error("\n".join(f"{file}: {each}" for each in problems))


def keys_of(kind: type[Any]) -> tuple[str, ...]:
    """The keys of the table that is read into a dataclass."""
    return tuple(_key(field.name, hint) for field, hint in _typed_fields(kind))


class TableReader:
    """Reads tables into dataclasses, and notes what is wrong with them."""

    def __init__(self, folder: Path, renamed: Mapping[tuple[str, str], str] | None = None) -> None:
        """Paths are relative to ``folder``; ``renamed`` has the present names of former keys."""
        self.folder = folder
        self._renamed = renamed or {}
        self.problems: list[str] = []

    def check_names(self, tables: Mapping[str, Any], known: tuple[str, ...]) -> None:
        """Note tables that do not exist, and keys outside of a table."""
        for name, table in tables.items():
            if name not in known:
                self.problems.append(
                    f"there is no table [{name}]; there are {', '.join(known)}{_meant(name, known)}"
                )
            elif not isinstance(table, dict):
                self.problems.append(f"{name} must be a table: write [{name}]")

    def read(self, kind: type[TableT], table: Mapping[str, Any], name: str) -> TableT | None:
        """The table with this name as a dataclass; None, and notes, if something is wrong."""
        found = self.read_several([kind], table, name)
        return None if found is None else cast(TableT, found[0])

    def read_several(
        self, kinds: Sequence[type[Any]], table: Mapping[str, Any], name: str
    ) -> list[Any] | None:
        """One table as several dataclasses, which share its keys."""
        already = len(self.problems)
        values: list[dict[str, Any]] = [{} for _ in kinds]
        keys = {
            _key(field.name, hint): (field, hint, found)
            for kind, found in zip(kinds, values, strict=True)
            for field, hint in _typed_fields(kind)
        }
        for key, raw in table.items():
            if (name, key) in self._renamed:
                self.problems.append(f"[{name}] {key} is now called {self._renamed[name, key]}")
            elif key not in keys:
                self.problems.append(
                    f"[{name}] has no key {key}; it has {', '.join(keys)}{_meant(key, tuple(keys))}"
                )
            else:
                field, hint, found = keys[key]
                try:
                    found[field.name] = self._value(hint, raw, name, key, field.name)
                except BadValueError as error:
                    self.problems.append(str(error))
        self.problems += [
            f"[{name}] {key} is missing"
            for key, (field, _, _) in keys.items()
            if key not in table and field.default is MISSING and field.default_factory is MISSING
        ]
        if len(self.problems) > already:
            return None
        try:
            return [kind(**found) for kind, found in zip(kinds, values, strict=True)]
        except TidegateError as error:  # the dataclasses check what goes together
            self.problems.append(f"[{name}] {error}")
            return None

    def _value(self, hint: Any, raw: Any, name: str, key: str, field: str) -> Any:
        """The value of a key; raises BadValueError, which names the key."""
        where = f"[{name}] {key}"
        hint, checks = _without_extras(hint)
        value = self._unchecked(hint, raw, name, key, field)
        for check in checks:
            try:
                value = check(value)
            except TidegateError as error:
                raise BadValueError(f"{where}: {error}") from None
        return value

    def _unchecked(self, hint: Any, raw: Any, name: str, key: str, field: str) -> Any:
        where = f"[{name}] {key}"
        origin = get_origin(hint)
        if hint is timedelta:
            return _duration(raw, where)
        if (unit := _unit(field, hint)) is not None:
            return _in_unit(_duration(raw, where), unit, hint)
        if origin is Literal:
            return _one_of(raw, get_args(hint), where)
        if hint is Path:
            return self.folder / _plain(str, raw, where)
        if origin in (list, tuple):
            return self._list(get_args(hint)[0], raw, name, key, origin)
        if is_dataclass(hint) and isinstance(hint, type):
            return self.read(hint, _table(raw, where), f"{name}.{key}")
        if hint in _NOUNS:
            return _plain(hint, raw, where)
        return _table(raw, where)

    def _list(self, of: Any, raw: Any, name: str, key: str, kind: type[Any]) -> Any:
        where = f"[{name}] {key}"
        if of is str or of is Path:
            if not isinstance(raw, list) or not all(isinstance(each, str) for each in raw):
                raise BadValueError(f"{where} must be a list of strings, not {raw!r}")
            return kind(raw if of is str else [self.folder / each for each in raw])
        if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
            raise BadValueError(f"{where} must be tables: write [[{name}.{key}]] before each")
        return kind(
            self.read(of, each, f"{name}.{key}, number {number}")
            for number, each in enumerate(raw, start=1)
        )


@dataclass(frozen=True, slots=True)
class Within:
    """Checks that a number is within bounds.

    >>> Within(1)(5)
    5
    """

    least: float
    most: float = math.inf

    def __call__(self, value: Any) -> Any:
        if self.least <= value <= self.most:
            return value
        if self.most == math.inf:
            bounds = f"{self.least:,} or more"
        else:
            bounds = f"from {self.least:,} to {self.most:,}"
        raise BadValueError(f"{value!r} is not {bounds}")


def _typed_fields(kind: type[Any]) -> list[tuple[Field[Any], Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return [(field, hints[field.name]) for field in fields(kind)]


def _without_extras(hint: Any) -> tuple[Any, tuple[Callable[[Any], Any], ...]]:
    """A type without `| None`, and the checks of its values."""
    checks: tuple[Any, ...] = ()
    if get_origin(hint) in (Union, UnionType):
        hint = next(each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        checks = tuple(extras)
    return hint, checks


def _key(field: str, hint: Any) -> str:
    """The key of a field: without its unit, if it is a duration."""
    return field if _unit(field, hint) is None else field.rpartition("_")[0]


def _unit(field: str, hint: Any) -> timedelta | None:
    if _without_extras(hint)[0] not in (int, float):
        return None
    return next((unit for suffix, unit in _UNITS.items() if field.endswith(suffix)), None)


def _in_unit(duration: timedelta, unit: timedelta, kind: type[int] | type[float]) -> int | float:
    return duration // unit if kind is int else duration / unit


def _plain(kind: type[Any], raw: Any, where: str) -> Any:
    if kind is str and raw == "":
        raise BadValueError(f"{where} is empty")
    if kind is float and isinstance(raw, int):
        kind = int
    # To Python, True is an integer.
    if isinstance(raw, kind) and not (kind is int and isinstance(raw, bool)):
        if kind is float and not math.isfinite(raw):
            raise BadValueError(f"{where} must be a finite number, not {raw!r}")
        return raw
    raise BadValueError(f"{where} must be {_NOUNS[kind]}, not {raw!r}")


def _table(raw: Any, where: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise BadValueError(f"{where} must be a table, not {raw!r}")
    return raw


def _one_of(raw: Any, words: tuple[str, ...], where: str) -> str:
    if raw in words and isinstance(raw, str):
        return raw
    meant = _meant(raw, words) if isinstance(raw, str) else ""
    raise BadValueError(f"{where}: there is no {raw!r}; there are {', '.join(words)}{meant}")


def _duration(raw: Any, where: str) -> timedelta:
    if not isinstance(raw, str):
        raise BadValueError(f"{where} must be a duration in a string such as '10 s', not {raw!r}")
    try:
        return parse_duration(raw)
    except BadValueError as error:
        raise BadValueError(f"{where}: {error}") from None


def _meant(name: str, known: tuple[str, ...]) -> str:
    nearest = nearest_name(name, known)
    return "" if nearest is None else f"; did you mean {nearest}?"

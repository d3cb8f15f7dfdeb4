"""Values of parameters on the command line: `limit=10`, `symbol=IBM`."""

from __future__ import annotations

import json
from collections.abc import Iterable

import click

from tidegate.errors import BadValueError
from tidegate.language.values import Value, parse_timestamp, to_value


def parse_values(texts: Iterable[str]) -> dict[str, Value | None]:
    """The values of texts `name=value`; `null` unsets a parameter.

    A value is JSON, `timestamp '...'` as in a filter, or else a string as it stands.

    >>> parse_values(["limit=10", "symbol=IBM", "open=true", "note=null"])
    {'limit': 10, 'symbol': 'IBM', 'open': True, 'note': None}
    """
    values: dict[str, Value | None] = {}
    for text in texts:
        name, equals, raw = text.partition("=")
        if not equals or not name.isidentifier():
            raise click.UsageError(f"a parameter is given as NAME=VALUE, not {text!r}")
        if name in values:
            raise click.UsageError(f"the parameter {name!r} is given twice")
        values[name] = _value(name, raw)
    return values


def _value(name: str, raw: str) -> Value | None:
    if raw.startswith("timestamp '") and raw.endswith("'"):
        return parse_timestamp(raw[len("timestamp '") : -1])
    try:
        decoded = json.loads(raw)
    except json.JSONDecodeError:
        decoded = raw
    try:
        return to_value(decoded)
    except BadValueError as error:
        raise BadValueError(f"{name}: {error}") from None

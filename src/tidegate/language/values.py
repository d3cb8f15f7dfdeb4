"""Values: what an attribute of an event may hold, and how two values compare.

A value is a boolean, an integer of 64 bits, a float, a string, or a timestamp (UTC, microseconds).
Integers and floats are one kind, number, and compare exactly; values of two different kinds are
never equal and never ordered. Null and NaN are not values: they count as absent.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from enum import Enum
from reprlib import repr as shortened

import numpy as np

from tidegate.errors import BadValueError

Value = bool | int | float | str | datetime

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

_YEARS_MESSAGE = "a timestamp must lie in the years 1 to 9999 in UTC"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Kind(Enum):
    """The kinds of values; only values of the same kind can be compared."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    STRING = "string"
    TIME = "timestamp"


_KIND_OF_TYPE: dict[type, Kind] = {
    bool: Kind.BOOLEAN,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    datetime: Kind.TIME,
}


def kind_of(value: Value) -> Kind:
    """The kind of a value.

    >>> kind_of(True), kind_of(1.5)
    (<Kind.BOOLEAN: 'boolean'>, <Kind.NUMBER: 'number'>)
    """
    return _KIND_OF_TYPE[type(value)]


def kind_of_type(given: type) -> Kind:
    """The kind of the values of a Python type."""
    return _KIND_OF_TYPE[given]


def to_value(raw: object) -> Value | None:
    """Convert an object of Python, NumPy or pandas to a value; None if it counts as absent.

    Raises BadValueError for anything that is not a value.

    >>> to_value(float("nan")) is None
    True
    >>> to_value(datetime(2026, 1, 2))
    datetime.datetime(2026, 1, 2, 0, 0, tzinfo=datetime.timezone.utc)
    """
    # The exact types first: nearly every value is one, and isinstance costs more than all the rest.
    kind = type(raw)
    if kind is str:
        return _string(raw)  # type: ignore[arg-type]
    if kind is float:
        return None if raw != raw else raw  # type: ignore[return-value]
    if kind is int:
        return _integer(raw)  # type: ignore[arg-type]
    if kind is bool or raw is None:
        return raw  # type: ignore[return-value]
    return _from_foreign(raw)


def to_time(raw: object, what: str) -> datetime:
    """Convert an object to a timestamp; ``what`` names the argument in the error."""
    time = to_value(raw)
    if not isinstance(time, datetime):
        raise BadValueError(f"{what} is a datetime, not {type(raw).__name__}")
    return time


def _from_foreign(raw: object) -> Value | None:
    """As ``to_value``, for subclasses of the value types and scalars of NumPy and pandas."""
    if isinstance(raw, datetime):
        return None if raw != raw else _timestamp(raw)  # pandas.NaT is unequal to itself
    if isinstance(raw, str):
        return _string(str.__str__(raw))  # str(raw) would be the name of a (str, Enum) member
    if isinstance(raw, (float, np.floating)):
        return to_value(float(raw))
    if isinstance(raw, np.bool_):
        return bool(raw)
    if isinstance(raw, np.timedelta64):  # NumPy makes it a subclass of np.integer
        raise _refusal(raw)
    if isinstance(raw, (int, np.integer)):
        return _integer(int(raw))
    if isinstance(raw, np.datetime64):
        return _from_datetime64(raw)
    if isinstance(raw, np.ndarray) and raw.ndim == 0:
        return to_value(raw[()])
    if type(raw).__name__ == "NAType":  # pandas.NA, without importing pandas
        return None
    raise _refusal(raw)


def _refusal(raw: object) -> BadValueError:
    if isinstance(raw, (list, tuple, set, frozenset, np.ndarray)):
        return BadValueError("a list is not a value; send one event for each of its items")
    return BadValueError(
        f"{type(raw).__name__} is not a value; "
        "a value is a boolean, a 64-bit integer, a float, a string or a datetime"
    )


def _integer(raw: int) -> int:
    if INT_MIN <= raw <= INT_MAX:
        return raw
    raise BadValueError("an integer must fit in 64 bits; a larger number can be sent as a float")


def _string(raw: str) -> str:
    if not raw.isascii():
        try:
            raw.encode()
        except UnicodeEncodeError:
            raise BadValueError("a string must be valid Unicode, without lone surrogates") from None
    return raw


def _timestamp(raw: datetime) -> datetime:
    # A new datetime from the fields: a subclass such as pandas.Timestamp has nanoseconds and an
    # arithmetic of its own, and a naive time counts as UTC.
    try:
        plain = datetime(
            raw.year,
            raw.month,
            raw.day,
            raw.hour,
            raw.minute,
            raw.second,
            raw.microsecond,
            UTC if raw.utcoffset() is None else raw.tzinfo,
            fold=raw.fold,
        )
        return plain.astimezone(UTC)
    except (OverflowError, ValueError):  # pandas has later years, and an offset can leave them
        raise BadValueError(_YEARS_MESSAGE) from None


def _from_datetime64(raw: np.datetime64) -> datetime | None:
    time = raw.astype("datetime64[us]").item()
    if isinstance(time, int):  # NumPy returns an int where datetime has no such year
        raise BadValueError(_YEARS_MESSAGE)
    return None if time is None else _timestamp(time)


def parse_timestamp(text: str) -> datetime:
    """Read an ISO 8601 timestamp; without an offset it is UTC.

    >>> parse_timestamp("2026-01-02T03:04:05+01:00").isoformat()
    '2026-01-02T02:04:05+00:00'
    """
    try:
        return _timestamp(datetime.fromisoformat(text))
    except ValueError:
        raise BadValueError(
            f"{shortened(text)} is not a timestamp; write it as 2026-01-02T03:04:05Z"
        ) from None


def to_us(time: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (time - _EPOCH) // _MICROSECOND


def from_us(time_us: int) -> datetime | None:
    """The timestamp of ``time_us`` microseconds since 1970; None outside the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return None


def format_value(value: Value) -> str:
    """A value as it is written in a filter.

    >>> print(format_value("it's"), format_value(1.0), format_value(True))
    'it''s' 1.0 true
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat().removesuffix('+00:00')}Z'"
    if isinstance(value, float) and math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return repr(value)

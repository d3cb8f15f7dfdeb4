"""Values in JSON files that Tidegate writes for itself: traces, and the state of a stream.

Rule. A value comes back as it was: the same type, and equal. The JSON is strict, so that other
programs can read it.

A boolean, an integer, a finite float and a string are written as JSON has them; a number without a
point and an exponent is an integer. JSON has no timestamps and no infinities. Those are objects
with one field, and an object is never a value:

    timestamp '2026-01-02T03:04:05Z'    {"us": 1767323045000000}    microseconds since 1970
    infinity, -infinity                 {"float": "infinity"}, {"float": "-infinity"}

Null is an absent value. Integers are written in full; Python reads all 64 bits, but a program that
reads JSON numbers as floats loses digits beyond 2**53.

Files that users write and read are another matter: there a string may be a timestamp where a schema
says so (`matching/records.py`), and an explanation prints one in ISO 8601 (`matching/explain.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime

from tidegate.errors import BadValueError
from tidegate.language.values import Value, format_value, from_us, to_us, to_value

JsonValue = bool | int | float | str | dict[str, int | str] | None

_INFINITIES = {format_value(value): value for value in (math.inf, -math.inf)}


def value_to_json(raw: object) -> JsonValue:
    """A value, or an object that ``to_value`` accepts, in a form that ``json.dumps`` writes.

    >>> value_to_json(9.5), value_to_json(datetime(1970, 1, 2)), value_to_json(math.inf)
    (9.5, {'us': 86400000000}, {'float': 'infinity'})
    """
    value = to_value(raw)
    if isinstance(value, datetime):
        return {"us": to_us(value)}
    if isinstance(value, float) and math.isinf(value):
        return {"float": format_value(value)}
    return value


def value_from_json(decoded: object) -> Value | None:
    """The value of an object that ``json.loads`` read; raises BadValueError.

    >>> value_from_json({"us": 86400000000}).isoformat(), value_from_json("IBM")
    ('1970-01-02T00:00:00+00:00', 'IBM')
    """
    if not isinstance(decoded, dict):
        return to_value(decoded)
    match decoded:
        case {"us": int(time_us)} if len(decoded) == 1 and not isinstance(time_us, bool):
            time = from_us(time_us)
            if time is None:
                raise BadValueError(f"{time_us} microseconds are outside the years 1 to 9999")
            return time
        case {"float": str(text)} if len(decoded) == 1 and text in _INFINITIES:
            return _INFINITIES[text]
    raise BadValueError('a JSON object must be {"us": microseconds} or {"float": "infinity"}')


def values_to_json(values: Mapping[str, object]) -> dict[str, JsonValue]:
    """Values by name, such as the attributes of an event, as a JSON object."""
    return {name: value_to_json(value) for name, value in values.items()}


def values_from_json(decoded: object) -> dict[str, Value | None]:
    """The values of a JSON object by name; raises BadValueError that has the name."""
    if not isinstance(decoded, dict):
        raise BadValueError(f"values by name must be a JSON object, not {type(decoded).__name__}")
    values: dict[str, Value | None] = {}
    for name, each in decoded.items():
        try:
            values[name] = value_from_json(each)
        except BadValueError as error:
            raise BadValueError(f"{name}: {error}") from None
    return values

"""Durations as text: a number and its unit, as `500 ms`, `10 s` or `1.5 hours`.

Patterns write them as tokens of the language, `within 5 min`, with the names of UNITS. Everywhere
else, in settings and options, a duration is a text of its own.
"""

from __future__ import annotations

import re
from datetime import timedelta

from tidegate.errors import BadValueError

UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_WORDS = {"ms": "millisecond", "s": "second", "min": "minute", "h": "hour", "d": "day"}
_SPELLED = {
    **UNITS,
    "m": UNITS["min"],
    **{word + plural: UNITS[name] for name, word in _WORDS.items() for plural in ("", "s")},
}
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")


def parse_duration(text: str) -> timedelta:
    """Read a duration: a number and its unit; raises BadValueError.

    >>> parse_duration("5 min") == parse_duration("5m") == parse_duration("5 minutes")
    True
    """
    found = _DURATION.fullmatch(text)
    if found is None or found[2] not in _SPELLED:
        raise BadValueError(
            f"{text!r} is no duration; write a number and one of {', '.join(UNITS)}, as '10 s'"
        )
    try:
        return float(found[1]) * _SPELLED[found[2]]
    except OverflowError:
        raise BadValueError(f"{text!r} is longer than timestamps reach") from None


def format_duration(duration: timedelta) -> str:
    """A duration in the largest unit of which it is a whole number.

    >>> format_duration(timedelta(seconds=300))
    '5 min'
    """
    for name, unit in reversed(UNITS.items()):
        count, rest = divmod(duration, unit)
        if count and not rest:
            return f"{count} {name}"
    return f"{duration / UNITS['ms']:.16g} ms"

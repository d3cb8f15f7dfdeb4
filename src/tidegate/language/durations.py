"""Durations as text: a number and its unit, as `500 ms`, `10 s` or `1.5 hours`.

In a pattern, `within 5 min`, a duration is two tokens that the parser reads, with the units of
``UNITS`` only. In settings and options it is a text for ``parse_duration``, which also accepts the
spelled-out units that Spark users know.
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
    """Parse a duration: a number and its unit; raises BadValueError.

    >>> parse_duration("5 min") == parse_duration("5m") == parse_duration("5 minutes")
    True
    """
    parts = _DURATION.fullmatch(text)
    if parts is None or parts[2] not in _SPELLED:
        raise BadValueError(
            f"{text!r} is not a duration; write a number and one of {', '.join(UNITS)}, as '10 s'"
        )
    try:
        return float(parts[1]) * _SPELLED[parts[2]]
    except OverflowError:
        raise BadValueError(f"{text!r} is longer than the range of timestamps") from None


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

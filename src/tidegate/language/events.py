"""Events: named, typed attributes with a publication time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidegate.errors import BadValueError, EventError
from tidegate.language.values import Value, to_time, to_value

# Events come from strangers too: these bound the memory of one event, and the recursion that
# flattens it.
ATTRIBUTES_MAX = 4096
NESTING_MAX = 32

# isinstance(raw, Mapping) takes longer than the rest of the conversion, and nearly every value has
# one of these types, which are not mappings.
_PLAIN_TYPES = frozenset([float, int, str, bool])


@dataclass(frozen=True, slots=True)
class Event:
    """An event: attribute values by name; an absent attribute has no entry.

    >>> Event.of({"symbol": "IBM", "quote": {"price": 9.5, "note": None}}).attributes
    {'symbol': 'IBM', 'quote.price': 9.5}
    >>> Event.of({"price": 9.5})["price"]
    9.5
    """

    attributes: Mapping[str, Value]
    time: datetime | None = None

    @classmethod
    def of(cls, source: Event | Mapping[str, object], time: datetime | None = None) -> Event:
        """Convert a mapping to an event: nested objects flatten to dotted names.

        ``time`` is the publication time. An `Event` is returned as it is, with ``time`` in place
        of its own if one is given.
        """
        if isinstance(source, Event):
            return source if time is None else cls(source.attributes, _publication_time(time))
        if not isinstance(source, Mapping):
            raise EventError(f"an event is a mapping of attributes, not {type(source).__name__}")
        attributes: dict[str, Value] = {}
        _flatten(source, "", 1, attributes)
        if len(attributes) > ATTRIBUTES_MAX:
            raise EventError(
                f"the event has {len(attributes)} attributes; at most {ATTRIBUTES_MAX} are taken"
            )
        return cls(attributes, None if time is None else _publication_time(time))

    def __getitem__(self, name: str) -> Any:
        """The value of an attribute; KeyError if it is absent."""
        return self.attributes[name]

    def __contains__(self, name: object) -> bool:
        return name in self.attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self.attributes)

    def get(self, name: str, default: object = None) -> Any:
        """The value of an attribute, or the default if it is absent."""
        return self.attributes.get(name, default)


def _publication_time(time: datetime) -> datetime:
    try:
        return to_time(time, "the time of an event")
    except BadValueError as error:
        raise EventError(str(error)) from None


def _check_unicode(name: str) -> None:
    try:
        to_value(name)
    except BadValueError as error:
        raise EventError(f"the name {name!r}: {error}") from None


def _flatten(
    source: Mapping[str, object], prefix: str, depth: int, attributes: dict[str, Value]
) -> None:
    """Add the values of a mapping and of the mappings nested in it to ``attributes``."""
    if depth > NESTING_MAX:
        raise EventError(f"attribute {prefix[:-1]!r} nests more than {NESTING_MAX} objects")
    for key, raw in source.items():
        if not isinstance(key, str) or not key:
            raise EventError(f"{prefix}{key!r}: the name of an attribute is a string, not empty")
        name = prefix + key if prefix else key
        if not name.isascii():
            _check_unicode(name)
        if type(raw) not in _PLAIN_TYPES and isinstance(raw, Mapping):
            _flatten(raw, name + ".", depth + 1, attributes)
            continue
        try:
            value = to_value(raw)
        except BadValueError as error:
            raise EventError(f"attribute {name!r}: {error}") from None
        if value is None:
            continue
        if name in attributes:
            raise EventError(f"attribute {name!r} is in the event twice")
        attributes[name] = value

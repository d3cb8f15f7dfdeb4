"""Tidegate: content-based publish/subscribe whose subscriptions move."""

from tidegate.errors import (
    BadValueError,
    EventError,
    FilterError,
    FilterLimitError,
    LateEventsError,
    NeverMatchesWarning,
    TidegateError,
    TidegateWarning,
    UnresolvedError,
)
from tidegate.language.advertisements import Advertisement, parse_advertisement
from tidegate.language.bulk import BulkParser
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse, shape_of
from tidegate.language.limits import Limits
from tidegate.language.patterns import Pattern, parse_pattern
from tidegate.language.sequences import SequenceMatcher
from tidegate.language.shapes import Shape

__version__ = "0.1.0"

__all__ = [
    "Advertisement",
    "BadValueError",
    "BulkParser",
    "Event",
    "EventError",
    "Filter",
    "FilterError",
    "FilterLimitError",
    "LateEventsError",
    "Limits",
    "NeverMatchesWarning",
    "Pattern",
    "SequenceMatcher",
    "Shape",
    "TidegateError",
    "TidegateWarning",
    "UnresolvedError",
    "parse",
    "parse_advertisement",
    "parse_pattern",
    "shape_of",
]

"""Tidegate: content-based publish/subscribe whose subscriptions move.

What stands in ``__all__`` is for users. The engine is loaded when it is first asked for, because
its compiler takes a while to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tidegate.adapting.handlers import on
from tidegate.adapting.parameters import Parameter, Reckoned
from tidegate.adapting.policies import Cached, Lazy, Periodic
from tidegate.adapting.subscriber import Subscriber
from tidegate.errors import (
    BadValueError,
    ConnectorError,
    EventError,
    FilterError,
    FilterLimitError,
    LateEventsError,
    LogError,
    NeverMatchesWarning,
    QueueFullError,
    SnapshotError,
    StateError,
    SubscriptionError,
    TidegateError,
    TidegateWarning,
    UnresolvedError,
    UnsetParameterWarning,
    VariableError,
)
from tidegate.language.advertisements import Advertisement, parse_advertisement
from tidegate.language.bulk import BulkParser
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse, shape_of
from tidegate.language.limits import Limits
from tidegate.language.patterns import Pattern, parse_pattern
from tidegate.language.sequences import SequenceMatcher
from tidegate.language.shapes import Shape

if TYPE_CHECKING:
    from tidegate.adapting.hub import Hub
    from tidegate.matching.engine import Engine
    from tidegate.matching.explain import Explanation

__version__ = "0.1.0"

__all__ = [
    "Advertisement",
    "BadValueError",
    "BulkParser",
    "Cached",
    "ConnectorError",
    "Engine",
    "Event",
    "EventError",
    "Explanation",
    "Filter",
    "FilterError",
    "FilterLimitError",
    "Hub",
    "LateEventsError",
    "Lazy",
    "Limits",
    "LogError",
    "NeverMatchesWarning",
    "Parameter",
    "Pattern",
    "Periodic",
    "QueueFullError",
    "Reckoned",
    "SequenceMatcher",
    "Shape",
    "SnapshotError",
    "StateError",
    "Subscriber",
    "SubscriptionError",
    "TidegateError",
    "TidegateWarning",
    "UnresolvedError",
    "UnsetParameterWarning",
    "VariableError",
    "on",
    "parse",
    "parse_advertisement",
    "parse_pattern",
    "shape_of",
]

_LOADED_LATER = {
    "Engine": "tidegate.matching.engine",
    "Explanation": "tidegate.matching.explain",
    "Hub": "tidegate.adapting.hub",
}


def __getattr__(name: str) -> object:
    if name not in _LOADED_LATER:
        raise AttributeError(f"module 'tidegate' has no attribute {name!r}")
    return getattr(import_module(_LOADED_LATER[name]), name)

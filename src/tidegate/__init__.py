"""Tidegate: content-based publish/subscribe whose subscriptions move.

This module is the public face: the names in ``__all__`` are for users, everything else may change.
The engine is imported at its first use, because Numba takes a while to import and a program that
only parses filters does not need it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tidegate.errors import (
    AccessError,
    BadValueError,
    ConnectionLostError,
    ConnectorError,
    EventError,
    FilterError,
    FilterLimitError,
    LateEventsError,
    LogError,
    NetworkError,
    NeverMatchesWarning,
    OverloadedError,
    ProtocolError,
    QueueFullError,
    SnapshotError,
    SpaceError,
    StateError,
    SubscriptionError,
    TidegateError,
    TidegateWarning,
    UnresolvedError,
    UnsetParameterWarning,
    VariableError,
)
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Lazy, Periodic
from tidegate.language.filters import Filter, parse, shape_of
from tidegate.language.limits import Limits
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.patterns.sequence_matcher import SequenceMatcher
from tidegate.language.shapes import Shape
from tidegate.language.spaces import Space
from tidegate.subscribers.handlers import on
from tidegate.subscribers.parameters import Parameter, Reckoned
from tidegate.subscribers.subscriber import Subscriber

if TYPE_CHECKING:
    from tidegate.matching.engine import Engine
    from tidegate.matching.explain import Explanation
    from tidegate.matching.tree.tuning import TreeTuning
    from tidegate.network.client.client import Client
    from tidegate.network.client.connect import connect
    from tidegate.network.client.sync import SyncClient, connect_sync
    from tidegate.subscribers.hub import Hub

__version__ = "0.1.0"

__all__ = [
    "AccessError",
    "Advertisement",
    "BadValueError",
    "BulkParser",
    "Cached",
    "Client",
    "ConnectionLostError",
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
    "NetworkError",
    "NeverMatchesWarning",
    "OverloadedError",
    "Parameter",
    "Pattern",
    "Periodic",
    "ProtocolError",
    "QueueFullError",
    "Reckoned",
    "SequenceMatcher",
    "Shape",
    "SnapshotError",
    "Space",
    "SpaceError",
    "StateError",
    "Subscriber",
    "SubscriptionError",
    "SyncClient",
    "TidegateError",
    "TidegateWarning",
    "TreeTuning",
    "UnresolvedError",
    "UnsetParameterWarning",
    "VariableError",
    "connect",
    "connect_sync",
    "on",
    "parse",
    "parse_advertisement",
    "parse_pattern",
    "shape_of",
]

# Names that `__getattr__` below imports at their first use (PEP 562), by their module.
_LAZY_MODULES = {
    "Engine": "tidegate.matching.engine",
    "Explanation": "tidegate.matching.explain",
    "Hub": "tidegate.subscribers.hub",
    "TreeTuning": "tidegate.matching.tree.tuning",
    "Client": "tidegate.network.client.client",
    "SyncClient": "tidegate.network.client.sync",
    "connect": "tidegate.network.client.connect",
    "connect_sync": "tidegate.network.client.sync",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module 'tidegate' has no attribute {name!r}")
    try:
        module = import_module(_LAZY_MODULES[name])
    except ModuleNotFoundError as error:
        if error.name != "msgspec":
            raise
        raise NetworkError(
            f"tidegate.{name} needs the extra `network`: pip install 'tidegate[network]'"
        ) from None
    return getattr(module, name)

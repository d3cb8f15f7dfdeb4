"""Errors as they cross a connection: a code, a text, and for filters the wrong place in them.

The code decides which `TidegateError` the other side raises; one that it does not know becomes a
`NetworkError` with the same text.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tidegate.errors import (
    AccessError,
    BadValueError,
    EventError,
    FilterError,
    FilterLimitError,
    LimitError,
    NetworkError,
    OverloadedError,
    ProtocolError,
    RoutingError,
    SpaceError,
    SubscriptionError,
    TidegateError,
    UnresolvedError,
    VariableError,
)
from tidegate.network.wire.values import Number

_CODES: dict[str, type[TidegateError]] = {
    "access": AccessError,
    "event": EventError,
    "filter": FilterError,
    "filter-limit": FilterLimitError,
    "limit": LimitError,
    "network": NetworkError,
    "overloaded": OverloadedError,
    "protocol": ProtocolError,
    "routing": RoutingError,
    "space": SpaceError,
    "subscription": SubscriptionError,
    "unresolved": UnresolvedError,
    "value": BadValueError,
    "variable": VariableError,
}
_CODE_OF = {each: code for code, each in _CODES.items()}

TEXT_CHARS_MAX = 65_536
_REASON_CHARS_MAX = 2_000
Reason = Annotated[str, Meta(max_length=_REASON_CHARS_MAX)]


class Problem(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """An error of a request."""

    code: Annotated[str, Meta(max_length=40)]
    reason: Reason
    text: Annotated[str, Meta(max_length=TEXT_CHARS_MAX)] = ""
    """The filter that is wrong, with the offsets of the wrong place; of a limit its name, and in
    ``end`` its value; empty for other errors."""
    start: Number = 0
    end: Number = 0

    @classmethod
    def of(cls, error: TidegateError) -> Problem:
        """The form of an error on the wire.

        >>> Problem.of(RoutingError("no such subscription")).code
        'routing'
        """
        code = next((_CODE_OF[each] for each in type(error).__mro__ if each in _CODE_OF), "network")
        if isinstance(error, FilterError) and len(error.text) <= TEXT_CHARS_MAX:
            return cls(code, _cut(error.reason), error.text, error.start, error.end)
        if isinstance(error, LimitError):
            return cls(code, _cut(error.reason), error.limit, 0, error.most)
        return cls(code, _cut(str(error)))

    def to_error(self) -> TidegateError:
        """The error to raise."""
        kind = _CODES.get(self.code, NetworkError)
        if issubclass(kind, FilterError):
            return kind(self.reason, self.text, min(self.start, len(self.text)), self.end)
        if issubclass(kind, LimitError):
            return kind(self.reason, self.text, self.end)
        return kind(self.reason)


def _cut(reason: str) -> str:
    return reason if len(reason) <= _REASON_CHARS_MAX else reason[: _REASON_CHARS_MAX - 3] + "..."

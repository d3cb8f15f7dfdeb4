"""Every error that a user can cause, and every warning.

TidegateError
├── FilterError             the text of a filter, advertisement or pattern is malformed
│   └── FilterLimitError    ... or exceeds a limit
├── BadValueError           an object is not a Tidegate value
│   └── EventError          ... and is part of an event; the message names the attribute
├── SpaceError              a space, or a change of one, is malformed
├── UnresolvedError         a relation needs values for parameters, `t` or variables
├── SubscriptionError       a subscription does not exist, or exists already
├── QueueFullError          the queue of a subscriber is full, and the publisher cannot wait
├── VariableError           the provider of a variable `@name` failed
├── SnapshotError           a file is not a snapshot of an engine, or cannot be read
├── SummaryError            tables of a summary, or their bytes, are malformed or do not fit
├── ConnectorError          a source or sink of a pipeline is incomplete or misconfigured
├── LogError                an event log is missing or damaged, or does not support the request
├── StateError              the state of a stream is unreadable, or belongs to another stream
├── StoreError              the store of a broker cannot be used
│   ├── StoreLockedError    ... because another broker uses it
│   ├── StoreFullError      ... because the disk, or the room it may take, is full
│   └── StoreDamagedError   ... because its files are damaged
├── TopologyError           an overlay breaks a rule, or lacks the named broker or link
├── RoutingError            a broker cannot accept a request or a message
│   ├── LimitError          ... because a limit is reached, which it names; also an OverloadedError
│   ├── LinkProtocolError   ... because the other end of a link breaks the rules of its session
│   └── SessionLostError    ... because two ends of a link cannot go on where they were
├── NetworkError            a broker cannot be reached, or does not do what was asked
│   ├── ProtocolError       the bytes of a peer break the wire protocol
│   ├── ConnectionLostError there is no connection to the broker, or it broke
│   ├── AccessError         the broker does not admit this identity, or forbids the request
│   ├── OverloadedError     a limit of the broker or of this client is reached
│   └── HttpRequestError    a request to the admin port of a broker cannot be done
├── SettingsError           the settings of a broker are wrong
├── SimulationError         a simulation, or a trace of one, cannot be run
└── LateEventsError         a sequence matcher has more pending events than its limit

TidegateWarning
├── NeverMatchesWarning     a filter is valid, but no event can match it
├── MisfitWarning           a filter asks for what no event of a table has
└── UnsetParameterWarning   a parameter has no value yet, so the filter matches nothing
"""

from __future__ import annotations

from collections.abc import Sequence

# A message may quote hostile input of any length; these keep it readable in a log and a terminal.
_REASON_CHARS_MAX = 500
_EXCERPT_CHARS_MAX = 100


class TidegateError(Exception):
    """The root of all errors that Tidegate raises on purpose."""


class FilterError(TidegateError):
    """A malformed text; the message shows the wrong place and says what would be right.

    ``start`` and ``end`` are the offsets of that place in ``text``, in characters.
    """

    def __init__(self, reason: str, text: str, start: int, end: int | None = None) -> None:
        cut = len(reason) > _REASON_CHARS_MAX
        self.reason = reason[:_REASON_CHARS_MAX] + "..." if cut else reason
        self.text = text
        self.start = start
        self.end = max(start + 1, start + 1 if end is None else end)
        # The arguments of __init__, unchanged: pickle calls the class with them when it brings the
        # error from a Spark worker to the driver.
        super().__init__(reason, text, start, end)

    def __str__(self) -> str:
        if not self.text.strip():
            return self.reason
        return f"{self.reason}\n{_underlined(self.text, self.start, self.end)}"


class FilterLimitError(FilterError):
    """A well-formed text that exceeds one of the `Limits`."""


class BadValueError(TidegateError):
    """An object that is not a boolean, 64-bit integer, float, string or timestamp."""


class EventError(BadValueError):
    """An event with an attribute that is not a value; the message names the attribute."""


class SpaceError(TidegateError):
    """A space that is malformed, or an attribute that would get another type.

    An event that does not fit its space is an EventError, and a filter a FilterError.
    """


class UnresolvedError(TidegateError):
    """A relation between filters whose parameters, `t` or variables have no values yet."""


class SubscriptionError(TidegateError):
    """A subscription that does not exist, exists already, or does not allow the change."""


class QueueFullError(TidegateError):
    """An event was refused: the subscriber's queue is full, and the publisher cannot wait."""


class VariableError(TidegateError):
    """The provider of a variable failed, or returned an object that is not a value."""


class SnapshotError(TidegateError):
    """A file that is not a snapshot of an engine, is damaged, or cannot be read."""


class SummaryError(TidegateError):
    """Tables of a summary, or the bytes of one, that are malformed or do not fit together."""


class ConnectorError(TidegateError):
    """A source or sink of a pipeline that is incomplete or misconfigured."""


class LogError(TidegateError):
    """An event log that is missing or damaged, or that does not support the request."""


class StateError(TidegateError):
    """State files of a stream that are missing, damaged, or belong to another stream."""


class StoreError(TidegateError):
    """The store of a broker that cannot be opened, read or written."""


class StoreLockedError(StoreError):
    """A store that another process uses."""


class StoreFullError(StoreError):
    """A transaction that was refused, all of it: there is no room for it."""


class StoreDamagedError(StoreError):
    """A store whose files are damaged, or have lost transactions."""


class TopologyError(TidegateError):
    """An overlay that breaks a rule, or that lacks the named broker, link or domain."""


class RoutingError(TidegateError):
    """A request of a client, or a message of a neighbour, that a broker cannot accept."""


class LinkProtocolError(RoutingError):
    """The other end of a link counts messages that were not sent, or leaves some out."""


class SessionLostError(RoutingError):
    """One end of a link has forgotten what it had acknowledged, or keeps too much.

    The link has to be given up and set up again, with nothing known on both sides.
    """


class NetworkError(TidegateError):
    """A broker cannot be reached, or does not do what it was asked to do."""


class ProtocolError(NetworkError):
    """The bytes of a peer break the wire protocol; the connection is closed."""


class ConnectionLostError(NetworkError):
    """There is no connection to the broker, or it broke before the answer came."""


class AccessError(NetworkError):
    """The broker does not admit this identity, or does not allow it what it asked for."""


class OverloadedError(NetworkError):
    """A limit of the broker, or of this client, is reached."""


class HttpRequestError(NetworkError):
    """A request to the admin port that cannot be done, and the HTTP status that says so.

    ``errors`` are of single events of the request: the index of each, and what is wrong with it.
    """

    def __init__(self, status: int, detail: str, errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(status, detail, errors)
        self.status = status
        self.detail = detail
        self.errors = errors

    def __str__(self) -> str:
        return self.detail


class LimitError(RoutingError, OverloadedError):
    """A limit of a broker is reached: ``limit`` is its name in the settings, ``most`` its value."""

    def __init__(self, reason: str, limit: str = "", most: int = 0) -> None:
        self.reason = reason
        self.limit = limit
        self.most = most
        super().__init__(reason, limit, most)

    def __str__(self) -> str:
        return f"{self.reason} ({self.limit} is {self.most:,})" if self.limit else self.reason


class SettingsError(TidegateError):
    """Settings of a broker that are wrong; the message has a line for each problem."""


class SimulationError(TidegateError):
    """A workload, fault or trace that a simulation cannot run."""


class LateEventsError(TidegateError):
    """A sequence matcher has more pending events than its limit allows."""


class TidegateWarning(UserWarning):
    """The root of all warnings that Tidegate issues."""


class NeverMatchesWarning(TidegateWarning):
    """The filter is valid, but no event can match it."""


class MisfitWarning(TidegateWarning):
    """A filter asks for an attribute, or a kind of value, that no event of a table has."""


class UnsetParameterWarning(TidegateWarning):
    """A parameter has no value yet; until it is set, its filter matches nothing."""


def _underlined(text: str, start: int, end: int) -> str:
    """The line of ``text`` that has ``start`` in it, with carets below; a long line is cut."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    fits = line_end - line_start <= _EXCERPT_CHARS_MAX
    excerpt_start = line_start if fits else max(line_start, start - _EXCERPT_CHARS_MAX // 2)
    excerpt_end = min(line_end, excerpt_start + _EXCERPT_CHARS_MAX)
    before = "..." if excerpt_start > line_start else ""
    after = "..." if excerpt_end < line_end else ""
    excerpt = "".join(map(_visible, text[excerpt_start:excerpt_end]))
    carets = "^" * max(1, min(end, excerpt_end) - start)
    pad = " " * (len(before) + start - excerpt_start)
    return f"  {before}{excerpt}{after}\n  {pad}{carets}"


def _visible(char: str) -> str:
    """A character made safe to print: one column wide, so that carets stay below their text.

    Control characters are replaced, because the text may come from a stranger and a terminal
    would obey its escape sequences.
    """
    if char.isprintable():
        return char
    return " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"

"""Every error that a user can cause, and the warnings.

TidegateError
├── FilterError             a filter, advertisement or pattern text cannot be used
│   └── FilterLimitError    ... because it is over a limit
├── BadValueError           something is not a Tidegate value
│   └── EventError          ... and it stands in an event; the message names the attribute
├── UnresolvedError         a question that needs values for parameters, `t` or variables
├── SubscriptionError       a subscription that is not there, or is there already
├── QueueFullError          too many events wait for a subscriber, and who publishes cannot wait
├── VariableError           the provider of a variable `@name` failed
├── SnapshotError           a file is no snapshot of an engine, or cannot be read
├── ConnectorError          a source or sink of a pipeline lacks a part or is set up wrongly
├── LogError                a log of events is not there, is damaged, or cannot be used so
├── StateError              the state of a stream cannot be read, or belongs to another one
├── TopologyError           an overlay breaks a rule, or there is no such broker or link in it
├── RoutingError            a request or a message that a broker cannot accept
├── SimulationError         a simulation, or the trace of one, that cannot be run
└── LateEventsError         more events are pending than a sequence matcher may hold

TidegateWarning
├── NeverMatchesWarning     a filter is valid, but no event can match it
└── UnsetParameterWarning   a parameter has no value yet, so the filter matches nothing
"""

from __future__ import annotations

_REASON_CHARS_MAX = 500
_EXCERPT_CHARS_MAX = 100


class TidegateError(Exception):
    """The root of all errors that Tidegate raises on purpose."""


class FilterError(TidegateError):
    """A text that cannot be used, with the place that is wrong and what would be right."""

    def __init__(self, reason: str, text: str, start: int, end: int | None = None) -> None:
        cut = len(reason) > _REASON_CHARS_MAX
        self.reason = reason[:_REASON_CHARS_MAX] + "..." if cut else reason
        self.text = text
        self.start = start
        self.end = max(start + 1, start + 1 if end is None else end)
        super().__init__(reason, text, start, end)

    def __str__(self) -> str:
        if not self.text.strip():
            return self.reason
        return f"{self.reason}\n{_underlined(self.text, self.start, self.end)}"


class FilterLimitError(FilterError):
    """A text that is well formed but larger than what is accepted."""


class BadValueError(TidegateError):
    """Something that is not a boolean, 64-bit integer, float, string or timestamp."""


class EventError(BadValueError):
    """An event that cannot be taken; the message names the attribute."""


class UnresolvedError(TidegateError):
    """A relation was asked of filters whose parameters or functions have no values yet."""


class SubscriptionError(TidegateError):
    """A subscription that does not exist, exists already, or cannot be changed like this."""


class QueueFullError(TidegateError):
    """An event was refused: its subscriber is behind, and who publishes it cannot wait."""


class VariableError(TidegateError):
    """The provider of a variable failed, or gave something that is no value."""


class SnapshotError(TidegateError):
    """A file that is no snapshot of an engine, is damaged, or cannot be read."""


class ConnectorError(TidegateError):
    """A source or sink of a pipeline that lacks a part or is set up wrongly."""


class LogError(TidegateError):
    """A log of events that is not there, is damaged, or cannot be used as it was asked to be."""


class StateError(TidegateError):
    """Files that hold the state of a stream are missing, damaged, or belong to another one."""


class TopologyError(TidegateError):
    """An overlay that cannot be, or a broker, link or domain that is not in it."""


class RoutingError(TidegateError):
    """A request of a client, or a message of another broker, that cannot be accepted."""


class SimulationError(TidegateError):
    """A workload, fault or trace that a simulation cannot run."""


class LateEventsError(TidegateError):
    """A sequence matcher holds back more events than its limit allows."""


class TidegateWarning(UserWarning):
    """The root of all warnings that Tidegate gives."""


class NeverMatchesWarning(TidegateWarning):
    """The filter is valid, but no event can match it."""


class UnsetParameterWarning(TidegateWarning):
    """A parameter has no value yet; until it has one, its filter matches nothing."""


def _underlined(text: str, start: int, end: int) -> str:
    """The line of ``text`` that holds ``start``, shortened if need be, with carets below it."""
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
    """A character as it can stand in a message: one place wide, and nothing a terminal obeys."""
    if char.isprintable():
        return char
    return " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"

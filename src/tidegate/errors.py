"""Every error that a user can cause, and the warnings.

TidegateError
├── FilterError             a filter, advertisement or pattern text cannot be used
│   └── FilterLimitError    ... because it is over a limit
├── BadValueError            something is not a Tidegate value
│   └── EventError          ... and it stands in an event; the message names the attribute
├── UnresolvedError         a question that needs values for parameters, `t` or variables
└── LateEventsError         more events are pending than a sequence matcher may hold

TidegateWarning
└── NeverMatchesWarning     a filter is valid, but no event can match it
"""

from __future__ import annotations


class TidegateError(Exception):
    """The root of all errors that Tidegate raises on purpose."""


class FilterError(TidegateError):
    """A text that cannot be used, with the place that is wrong and what would be right."""

    def __init__(self, reason: str, text: str, start: int, end: int | None = None) -> None:
        self.reason = reason
        self.text = text
        self.start = start
        self.end = max(start + 1, start + 1 if end is None else end)
        super().__init__(reason, text, start, end)

    def __str__(self) -> str:
        return f"{self.reason}\n{_underlined(self.text, self.start, self.end)}"


class FilterLimitError(FilterError):
    """A text that is well formed but larger than what is accepted."""


class BadValueError(TidegateError):
    """Something that is not a boolean, 64-bit integer, float, string or timestamp."""


class EventError(BadValueError):
    """An event that cannot be taken; the message names the attribute."""


class UnresolvedError(TidegateError):
    """A relation was asked of filters whose parameters or functions have no values yet."""


class LateEventsError(TidegateError):
    """A sequence matcher holds back more events than its limit allows."""


class TidegateWarning(UserWarning):
    """The root of all warnings that Tidegate gives."""


class NeverMatchesWarning(TidegateWarning):
    """The filter is valid, but no event can match it."""


_EXCERPT_CHARS_MAX = 100


def _underlined(text: str, start: int, end: int) -> str:
    """The line of ``text`` that holds ``start``, shortened if need be, with carets below it."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    excerpt_start = max(line_start, start - _EXCERPT_CHARS_MAX // 2)
    excerpt_end = min(line_end, excerpt_start + _EXCERPT_CHARS_MAX)
    before = "..." if excerpt_start > line_start else ""
    after = "..." if excerpt_end < line_end else ""
    excerpt = text[excerpt_start:excerpt_end].replace("\t", " ")
    carets = "^" * max(1, min(end, excerpt_end) - start)
    pad = " " * (len(before) + start - excerpt_start)
    return f"  {before}{excerpt}{after}\n  {pad}{carets}"

"""Patterns: sequences of filters, matched by events in the order of their times (Siena, 3.3).

`alarm = 'failed login' then file = '/etc/passwd' within 30 s`
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from tidegate.errors import NeverMatchesWarning
from tidegate.language.algebra.work import Budget
from tidegate.language.filters import Filter
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.parsing.parser import Parser
from tidegate.language.syntax import Truth


@dataclass(frozen=True, slots=True)
class Pattern:
    """One or more filters in sequence, and how long a match may take at most.

    >>> pattern = parse_pattern("price > 5 then price > 9 within 2 min")
    >>> print(pattern, len(pattern.steps))
    price > 5 then price > 9 within 120 s 2
    """

    steps: tuple[Filter, ...]
    within_s: float | None = None

    def __str__(self) -> str:
        text = " then ".join(str(step) for step in self.steps)
        if self.within_s is None:
            return text
        seconds = float(self.within_s)
        return f"{text} within {int(seconds) if seconds.is_integer() else seconds} s"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters of all steps, in the order of the text."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.parameters))

    @property
    def within_us(self) -> int | None:
        """The longest duration of a match, in microseconds, the unit of timestamps."""
        return None if self.within_s is None else round(self.within_s * 1e6)

    def covers(self, other: Pattern) -> bool:
        """Whether each step covers that of ``other``, and `within` is not shorter.

        This decides which subscriptions an unsubscription cancels, as in Siena. It does not follow
        that every match of ``other`` is one of this pattern: rule 2 may pick earlier events.
        """
        if len(self.steps) != len(other.steps):
            return False
        own, others = (math.inf if w is None else w for w in (self.within_s, other.within_s))
        if others > own:
            return False
        with Budget():
            return all(a.covers(b) for a, b in zip(self.steps, other.steps, strict=True))


def parse_pattern(text: str, limits: Limits = DEFAULT_LIMITS) -> Pattern:
    """Parse a pattern; a plain filter is a pattern of one step.

    Raises FilterError, warns if no event can ever match one of the steps.
    """
    nodes, within_s = Parser(text, limits).pattern()
    pattern = Pattern(tuple(Filter(node) for node in nodes), within_s)
    for step in pattern.steps:
        if step.never_matches and step.node != Truth(False):
            warnings.warn(f"no event can match `{step}`", NeverMatchesWarning, stacklevel=2)
    return pattern

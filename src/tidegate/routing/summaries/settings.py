"""Settings of a broker that routes by summaries."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import RoutingError
from tidegate.matching.summary.budget import EXACT_ENOUGH, SummaryBudget

LONGEST_US = 366 * 86_400_000_000
"""The longest period or window, a year: with much longer ones the clock leaves the timestamps."""


@dataclass(frozen=True, slots=True)
class SummarySettings:
    """When a broker sends its summary, and what goes in; the same at all brokers of a network."""

    period_us: int = 1_000_000
    """How long changes wait, so that they travel together."""
    batch_max: int = 1_000
    """With so many changes waiting, a broker sends before the period is over."""
    degree_max: int | None = None
    """The degree of a broker counts at most so much (`plan`, rule 3); None for no limit."""
    to_hubs: bool = False
    """Whether summaries go to the neighbour of the highest degree, and with them all that has come
    before (`plan`, rule 4). Fewer brokers examine an event then, those with many links. Where many
    brokers of equal degree follow each other, a change takes as many periods."""
    subsumption: bool = True
    """Whether subscriptions that another one of the same broker covers are left out."""
    window_us: int = 10_000_000
    """For how long the over-estimate of an evolving filter in a summary holds; longer than a
    change takes up the chain of parents, or it ends before it is of use."""
    budget: SummaryBudget = EXACT_ENOUGH
    """How precise summaries are: with fewer rows they are smaller, and more events come in vain."""

    def __post_init__(self) -> None:
        if not 0 <= self.period_us <= LONGEST_US:
            raise RoutingError(
                f"the period of summaries is 0 us or more, and a year at most, not {self.period_us}"
            )
        if self.batch_max < 1:
            raise RoutingError(f"a batch of summaries has 1 or more changes, not {self.batch_max}")
        if self.degree_max is not None and self.degree_max < 1:
            raise RoutingError(f"a virtual degree is 1 or more, not {self.degree_max}")
        if not 1 <= self.window_us <= LONGEST_US:
            raise RoutingError(
                f"the window of a summary is 1 us or more, and a year at most, not {self.window_us}"
            )

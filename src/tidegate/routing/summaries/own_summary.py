"""The own summary of a broker: the subscriptions of its clients, as other brokers see them.

Rules.

(1) Whatever a filter of this broker's table matches, its entry in the summary matches.
(2) An evolving filter enters by its over-estimate during the *window* of the summary. For an event
    that was published outside of the window the summary says nothing, and whoever examines it takes
    it for one that matches (see `examination`). So no clock and no delay can make it wrong.
(3) A filter for which the ids have no room enters as one that matches everything.
(4) Time alone sends no message. The window is moved when an event from outside has come, or, if it
    is over, when something else is sent.

Theory of operation. The summary is a destination of the table like a neighbour (see
`routing_tables`), so filters are added, updated and removed here by the rules of `forwarding`: with
the poset, a filter that another one covers is not in the summary, and comes to light in the change
that takes the wider one away (summaries combined with subsumption, the paper's future work). The
number of the key under which it is "sent" is the local number of the subscription (c2).

A gateway stands, in each of its domains, for all brokers of the others. It has an own summary that
matches everything, so that each event comes to it and enters the other domains with a new list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidegate.errors import SummaryError
from tidegate.language.filters import Filter, parse
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter
from tidegate.matching.summary.budget import EXACT_ENOUGH, SummaryBudget
from tidegate.matching.summary.summary import Summary
from tidegate.matching.summary.tables import SummaryTables
from tidegate.routing.messages import Key, Peer, Validity
from tidegate.routing.outbox import NeighbourDelta

EVERYTHING = parse("true")
LATE_SHARE = 10
"""A window begins one part in so many of its length early, for events that are on their way."""


class Window(NamedTuple):
    """The publication times for which a summary speaks, both ends included."""

    begin_us: int
    end_us: int


class OwnSummary:
    """The summary of the clients of one broker."""

    def __init__(self, owner: Peer, window_us: int, budget: SummaryBudget = EXACT_ENOUGH) -> None:
        self._owner = owner
        self._window_us = window_us
        self._summary = Summary(budget)
        self.numbers: set[int] = set()
        """The local numbers of the filters in the summary."""
        self._evolving: dict[int, EvolvingFilter] = {}
        self._window: Window | None = None
        """The window of the estimates in the summary; of no account if nothing evolves."""
        self._needed_us: int | None = None
        """The time of an event from after the window that has come since it was last moved."""

    def change(self, delta: NeighbourDelta[WantedFilter], now_us: int) -> int:
        """Apply changes of the table; returns their number."""
        for number in (each.number for each in delta.removed):
            self.numbers.discard(number)
            self._evolving.pop(number, None)
            self._summary.remove(self._owner, number)
        for key, item in delta.added:  # one of another structure may take over a key
            self._put(key, item, now_us)
        for key, _, item in delta.updated:
            self._put(key, item, now_us)
        return len(delta.removed) + len(delta.added) + len(delta.updated)

    def _put(self, key: Key, item: WantedFilter, now_us: int) -> None:
        number = key.number
        if isinstance(item, EvolvingFilter):
            if not self._evolving:
                self._window = self._window_at(now_us, now_us)
            self._evolving[number] = item
        else:
            self._evolving.pop(number, None)
        self._enter(number, self._estimate(item))

    def _enter(self, number: int, filter: Filter) -> None:
        """Add a filter to the summary, or replace the one of this number."""
        enter = self._summary.replace if number in self.numbers else self._summary.add
        try:
            enter(self._owner, number, filter)
        except SummaryError:
            enter(self._owner, number, EVERYTHING)
        self.numbers.add(number)

    def _estimate(self, item: WantedFilter) -> Filter:
        if not isinstance(item, EvolvingFilter):
            return item
        assert self._window is not None
        return item.over_estimate_during(*self._window)

    def _window_at(self, time_us: int, now_us: int) -> Window:
        """A window for events from a time on.

        It is counted from now if the time was a little before: the event that showed the need came
        a period ago. Where publishers and this broker have clocks far apart, what counts is theirs.
        """
        length_us = self._window_us
        last_us = now_us if 0 <= now_us - time_us <= length_us else time_us
        return Window(time_us - length_us // LATE_SHARE, last_us + length_us)

    @property
    def present(self) -> SummaryTables:
        """The summary as it is."""
        return self._summary.tables()

    # -- time ---------------------------------------------------------------------------------

    def event_came(self, time_us: int) -> bool:
        """Note the publication time of an event; returns whether the window has to be moved."""
        if not self._evolving or self._window is None or time_us <= self._window.end_us:
            return False
        is_first = self._needed_us is None
        self._needed_us = max(time_us, self._needed_us or time_us)
        return is_first

    def tables(self, now_us: int) -> SummaryTables:
        """The summary as it is to be sent now, after the window was moved if that is due."""
        if self._evolving and self._window is not None:
            if self._needed_us is not None:
                self._move(self._window_at(self._needed_us, now_us))
            elif self._window.end_us < now_us:
                self._move(self._window_at(now_us, now_us))
        self._needed_us = None
        return self._summary.tables()

    def _move(self, window: Window) -> None:
        self._window = window
        for number, item in self._evolving.items():
            self._enter(number, self._estimate(item))

    def validity(self) -> Iterable[Validity]:
        """The window, if something evolves."""
        if self._evolving and self._window is not None:
            yield Validity(self._owner, *self._window)


class GatewaySummary:
    """The own summary of a gateway, which matches every event at any time."""

    def __init__(self, owner: Peer) -> None:
        everything = Summary()
        everything.add(owner, 1, EVERYTHING)
        self._tables = everything.tables()

    @property
    def present(self) -> SummaryTables:
        """The summary."""
        return self._tables

    def tables(self, _now_us: int) -> SummaryTables:
        """The summary."""
        return self._tables

    def validity(self) -> Iterable[Validity]:
        """Nothing evolves."""
        return ()

"""Chains: ways in which events satisfy the steps of a pattern one after the other (Siena, 4.2.4).

A broker that looks for a part of a pattern cannot know where the match of the whole begins, which
depends on what others find. So it gives all chains: for each event that satisfies the first step,
the first event behind it that satisfies the second, and so on. Whoever has the whole takes those
that begin behind the last match (`Greedy`), which gives the matches of `language/sequences.py`.

Theory of operation. What comes in are links: events, or chains for some contiguous steps, in the
order of their ends. A chain that waits for a step takes the first link for it that begins behind
its own end. Of two chains for the same steps the one that begins later ends no earlier, so the
first link that fits is the one that begins first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidegate.routing.messages import Publication, Stamp

OPEN_MAX = 100_000
"""So many chains of a pattern may wait for more; after that the oldest go."""


class Position(NamedTuple):
    """Where an event stands among all: events of one time are in the order of their stamps."""

    time_us: int
    stamp: Stamp


class Chain(NamedTuple):
    """Events that satisfy some contiguous steps, in order."""

    first_step: int
    next_step: int
    """The one behind the last that is satisfied."""
    begin: Position
    end: Position
    publications: tuple[Publication, ...]

    def joined(self, link: Chain) -> Chain:
        """This chain and one for the steps behind it."""
        publications = self.publications + link.publications
        return Chain(self.first_step, link.next_step, self.begin, link.end, publications)


class Chains:
    """Makes chains for all steps of a pattern out of links."""

    def __init__(self, steps: int, within_us: int | None) -> None:
        self._steps = steps
        self._within_us = within_us
        self._waiting: list[list[Chain]] = [[] for _ in range(steps)]
        """The chains that wait for each step, in the order of their begins."""
        self.dropped = 0

    def take(self, links: Iterable[Chain]) -> list[Chain]:
        """Take what ends at one position; gives the chains that are complete, in order."""
        complete: list[Chain] = []
        for link in sorted(links, key=lambda each: -each.first_step):
            if link.first_step == 0:
                grown = [link]
            else:
                waiting = self._in_time(link.first_step, link.end)
                grown = [each.joined(link) for each in waiting if each.end < link.begin]
                self._waiting[link.first_step] = [
                    each for each in waiting if each.end >= link.begin
                ]
            grown = [each for each in grown if self._is_in_time(each, each.end)]
            if link.next_step == self._steps:
                complete += grown
            else:
                self._wait(link.next_step, grown)
        return sorted(complete, key=lambda each: each.begin)

    def _wait(self, step: int, chains: list[Chain]) -> None:
        waiting = self._waiting[step]
        waiting += chains
        if len(waiting) > OPEN_MAX:
            self.dropped += len(waiting) - OPEN_MAX
            del waiting[: len(waiting) - OPEN_MAX]

    def _in_time(self, step: int, now: Position) -> list[Chain]:
        return [each for each in self._waiting[step] if self._is_in_time(each, now)]

    def _is_in_time(self, chain: Chain, now: Position) -> bool:
        return self._within_us is None or now.time_us - chain.begin.time_us <= self._within_us


class Greedy:
    """Takes chains in the order of their ends; gives those that are matches: each begins behind
    the end of the one before."""

    def __init__(self, since: Position) -> None:
        self._last = since

    def take(self, chain: Chain) -> bool:
        """Whether a chain is the next match."""
        if chain.begin <= self._last:
            return False
        self._last = chain.end
        return True

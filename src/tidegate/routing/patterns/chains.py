"""Chains: events that satisfy contiguous steps of a pattern, one after the other (Siena, 4.2.4).

Rules.

(1) For each event that satisfies the first step there is one chain: the first later event that
    satisfies the second step, then the first later one for the third, and so on.
(2) The matches of a pattern are the chains that begin behind the end of the last match
    (`GreedySelection`). These are the matches of `language.patterns.sequence_matcher`.

A broker that finds a part of a pattern cannot know where the match of the whole begins, because
that depends on what others find. So it reports all chains of its part, and the monitor of the whole
pattern selects. Siena reports matches of the part only, and thereby loses matches of the whole: of
`a b a c a b c` for `a then b then c`, the second match of `a then b` begins before the first `c`.

Theory of operation. What comes in are fragments: single events, or chains of contiguous steps that
others have found, in the order of their ends. A chain that waits for a step takes the first
fragment for this step that begins behind its own end. Of two chains for the same steps, the one
that begins later does not end earlier, so the first fragment that fits is also the one that begins
first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidegate.routing.messages import Publication, Stamp

OPEN_MAX = 100_000
"""Chains that may wait for the same step of a pattern; with more, the oldest are dropped."""


class Position(NamedTuple):
    """The place of an event in the order of all events: by time, and then by stamp."""

    time_us: int
    stamp: Stamp


class Chain(NamedTuple):
    """Events that satisfy some contiguous steps, in order."""

    first_step: int
    next_step: int
    """The step behind the last one that is satisfied."""
    begin: Position
    end: Position
    publications: tuple[Publication, ...]

    def joined(self, fragment: Chain) -> Chain:
        """This chain, continued by a fragment for the steps behind it."""
        publications = self.publications + fragment.publications
        return Chain(self.first_step, fragment.next_step, self.begin, fragment.end, publications)


class Chains:
    """Joins fragments to chains for all steps of a pattern."""

    def __init__(self, steps: int, within_us: int | None) -> None:
        self._steps = steps
        self._within_us = within_us
        self._waiting: list[list[Chain]] = [[] for _ in range(steps)]
        """The chains that wait for each step, in the order of their begins."""

    def take(self, fragments: Iterable[Chain]) -> list[Chain]:
        """Take all fragments that end at one position; returns the complete chains, by begin.

        Fragments for later steps come first, so that an event satisfies only one step of a chain.
        """
        complete: list[Chain] = []
        for fragment in sorted(fragments, key=lambda each: -each.first_step):
            if fragment.first_step == 0:
                grown = [fragment]
            else:
                waiting = self._in_time(fragment.first_step, fragment.end)
                grown = [each.joined(fragment) for each in waiting if each.end < fragment.begin]
                self._waiting[fragment.first_step] = [
                    each for each in waiting if each.end >= fragment.begin
                ]
            grown = [each for each in grown if self._is_in_time(each, each.end)]
            if fragment.next_step == self._steps:
                complete += grown
            else:
                self._wait(fragment.next_step, grown)
        return sorted(complete, key=lambda each: each.begin)

    def _wait(self, step: int, chains: list[Chain]) -> None:
        waiting = self._waiting[step]
        waiting += chains
        if len(waiting) > OPEN_MAX:
            del waiting[: len(waiting) - OPEN_MAX]

    def _in_time(self, step: int, now: Position) -> list[Chain]:
        return [each for each in self._waiting[step] if self._is_in_time(each, now)]

    def _is_in_time(self, chain: Chain, now: Position) -> bool:
        return self._within_us is None or now.time_us - chain.begin.time_us <= self._within_us


class GreedySelection:
    """Selects the chains that are matches: each begins behind the end of the match before.

    Chains must come in the order of their ends.
    """

    def __init__(self, since: Position) -> None:
        self._last_end = since

    def take(self, chain: Chain) -> bool:
        """Whether a chain is the next match."""
        if chain.begin <= self._last_end:
            return False
        self._last_end = chain.end
        return True

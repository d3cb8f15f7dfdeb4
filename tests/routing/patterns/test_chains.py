"""Matches selected from chains equal those of `SequenceMatcher`, however the pattern is split."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.language.events import Event
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.patterns.sequence_matcher import SequenceMatcher
from tidegate.language.values import to_us
from tidegate.routing.messages import Publication, Stamp
from tidegate.routing.patterns import chains as module
from tidegate.routing.patterns.chains import Chain, Chains, GreedySelection, Position

START = datetime(2026, 1, 1, tzinfo=UTC)
BEFORE_ALL = Position(0, Stamp("", 0, 0))
STEPS = ["x = 0", "x = 1", "x >= 1", "x in (0, 2)", "x != 1", "true"]


def publications(stream: Sequence[tuple[int, int]]) -> list[Publication]:
    """Events in order; each is a value and how many seconds it comes after the one before."""
    found: list[Publication] = []
    second = 0
    for number, (x, later) in enumerate(stream):
        second += later
        event = Event.of({"x": x}, START + timedelta(seconds=second))
        found.append(Publication(event, Stamp("b", 0, number), "pub"))
    return found


def position(publication: Publication) -> Position:
    assert publication.event.time is not None
    return Position(to_us(publication.event.time), publication.stamp)


class Finder:
    """Finds all chains of a pattern; parts of it, split at ``cuts``, by finders of their own."""

    def __init__(self, pattern: Pattern, cuts: Sequence[int], deeper: bool) -> None:
        self.chains = Chains(len(pattern.steps), pattern.within_us)
        self.pattern = pattern
        ends = sorted({cut for cut in cuts if 0 < cut < len(pattern.steps)})
        bounds = list(zip([0, *ends], [*ends, len(pattern.steps)], strict=True))
        self.parts: list[tuple[int, int, Finder | None]] = []
        for first, behind in bounds:
            inner = None
            if behind - first > 1 and (ends or deeper):
                part = Pattern(pattern.steps[first:behind], pattern.within_s)
                inner = Finder(part, [1] if deeper else [], deeper=False)
            self.parts.append((first, behind, inner))

    def take(self, publication: Publication) -> list[Chain]:
        """All chains that an event completes."""
        links: list[Chain] = []
        at = position(publication)
        for first, behind, inner in self.parts:
            if inner is not None:
                links += [
                    Chain(first, behind, each.begin, each.end, each.publications)
                    for each in inner.take(publication)
                ]
                continue
            links += [
                Chain(step, step + 1, at, at, (publication,))
                for step in range(first, behind)
                if self.pattern.steps[step].matches(publication.event)
            ]
        return self.chains.take(links)


patterns = st.builds(
    lambda steps, within: parse_pattern(" then ".join(steps) + within),
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=5),
    st.sampled_from(["", " within 0 s", " within 1 s", " within 3 s", " within 10 s"]),
)
streams = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=25)


@given(patterns, st.lists(st.integers(1, 4), max_size=4), st.booleans(), streams)
@example(parse_pattern("x = 0 then x = 1 then x = 0 then x = 1"), [2], False, [(0, 1), (1, 1)] * 4)
@example(parse_pattern("x >= 1 then true within 1 s"), [], True, [(1, 1), (2, 1), (0, 0)])
def test_the_matches_are_those_of_the_matcher(
    pattern: Pattern, cuts: list[int], deeper: bool, stream: list[tuple[int, int]]
) -> None:
    matcher = SequenceMatcher(pattern)
    finder, selection = Finder(pattern, cuts, deeper), GreedySelection(BEFORE_ALL)
    found: list[tuple[Event, ...]] = []
    expected: list[tuple[Event, ...]] = []
    for publication in publications(stream):
        expected += matcher.feed(publication.event)
        chosen = [chain.publications for chain in finder.take(publication) if selection.take(chain)]
        found += [tuple(each.event for each in match) for match in chosen]
    assert found == expected + matcher.flush()


@given(patterns, streams)
def test_there_is_one_chain_for_each_begin_and_it_ends_as_early_as_can_be(
    pattern: Pattern, stream: list[tuple[int, int]]
) -> None:
    events = publications(stream)
    finder = Finder(pattern, [], deeper=False)
    found = [chain.publications for event in events for chain in finder.take(event)]
    expected: list[tuple[Publication, ...]] = []
    for begin in range(len(events)):
        left = events[begin:]
        chosen: list[Publication] = []
        if not pattern.steps[0].matches(left[0].event):
            continue
        for step in pattern.steps:
            while left and not step.matches(left[0].event):
                left = left[1:]
            chosen += left[:1]
            left = left[1:]
        within_us = pattern.within_us
        took_us = position(chosen[-1]).time_us - position(chosen[0]).time_us
        if len(chosen) == len(pattern.steps) and (within_us is None or took_us <= within_us):
            expected.append(tuple(chosen))
    assert sorted(found, key=_numbers) == sorted(expected, key=_numbers)


def _numbers(chain: tuple[Publication, ...]) -> list[int]:
    return [each.stamp.number for each in chain]


def test_an_event_satisfies_one_step_of_a_chain_only() -> None:
    finder = Finder(parse_pattern("x >= 1 then x >= 1"), [], deeper=False)
    first, second = publications([(1, 0), (2, 1)])
    assert finder.take(first) == []
    assert [_numbers(each.publications) for each in finder.take(second)] == [[0, 1]]


def test_chains_that_end_together_come_in_the_order_of_their_begins() -> None:
    finder = Finder(parse_pattern("x = 0 then x = 1"), [], deeper=False)
    found = [finder.take(each) for each in publications([(0, 1), (0, 1), (1, 1)])]
    assert [_numbers(each.publications) for each in found[2]] == [[0, 2], [1, 2]]


def test_the_next_match_begins_behind_the_last_one() -> None:
    at = [position(each) for each in publications([(0, 1)] * 4)]
    selection = GreedySelection(at[0])
    chains = [Chain(0, 2, at[begin], at[end], ()) for begin, end in ((0, 1), (1, 2), (2, 3))]
    assert [selection.take(each) for each in chains] == [False, True, False]


def test_the_oldest_open_chains_go_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "OPEN_MAX", 3)
    finder = Finder(parse_pattern("x = 0 then x = 1"), [], deeper=False)
    found = [finder.take(each) for each in publications([(0, 1)] * 5 + [(1, 1)])]
    assert [_numbers(each.publications)[0] for each in found[-1]] == [2, 3, 4]

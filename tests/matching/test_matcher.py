"""The functions and optional protocols beside `Matcher`; its rules are in test_conformance.py."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import UnresolvedError
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.batches import EventBatch
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.matcher import (
    BulkUpdatingMatcher,
    SnapshotMatcher,
    StepCountingMatcher,
    match_each,
    update_each,
)
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.matcher import TreeMatcher

SECOND_US = 1_000_000


def naive(**limits: float) -> NaiveMatcher:
    matcher = NaiveMatcher()
    filter = parse("x < :p + t")
    matcher.add(Subscription(id, filter, {"p": p}, since=0) for id, p in limits.items())
    return matcher


def test_each_event_is_matched_at_its_own_moment() -> None:
    batch = EventBatch.of_events([Event.of({"x": 2})] * 3 + [Event.of({})])
    times_us = np.array([0, SECOND_US, 2 * SECOND_US, 9 * SECOND_US])
    found = match_each(naive(a=1.5, b=0.5).match, batch.judged_at(times_us))
    assert found.events.tolist() == [1, 2, 2]
    assert found.subscriptions.to_pylist() == ["a", "a", "b"]


def test_the_matches_of_no_events_have_the_types_of_others() -> None:
    found = match_each(naive(a=1).match, EventBatch.of_events([]))
    assert (len(found.events), len(found.subscriptions)) == (0, 0)
    some = match_each(naive(a=1).match, EventBatch.of_events([Event.of({"x": 0})]))
    assert (found.events.dtype, found.subscriptions.type) == (
        some.events.dtype,
        some.subscriptions.type,
    )


def test_many_updates_are_made_one_by_one() -> None:
    matcher = naive(a=1, b=1, c=1)
    update_each(matcher, {"a": {"p": 9}, "b": {"p": None}})
    assert [matcher.get(id).parameters for id in "abc"] == [{"p": 9}, {}, {"p": 1}]
    assert matcher.match(Event.of({"x": 0}), Moment(0)) == ["a", "c"]


def test_a_bad_update_keeps_all_others_from_being_made() -> None:
    matcher = naive(a=1, b=1)
    with pytest.raises(KeyError, match="c"):
        update_each(matcher, {"a": {"p": 9}, "c": {"p": 9}})
    with pytest.raises(UnresolvedError, match="subscription 'b' has no parameter :q; it has :p"):
        update_each(matcher, {"a": {"p": 9}, "b": {"q": 9}})
    assert [matcher.get(id).parameters for id in "ab"] == [{"p": 1}, {"p": 1}]


def test_optional_protocols_are_recognized_by_their_methods() -> None:
    assert isinstance(ColumnarMatcher(), BulkUpdatingMatcher)
    assert isinstance(ColumnarMatcher(), SnapshotMatcher)
    assert not isinstance(NaiveMatcher(), BulkUpdatingMatcher)
    assert not isinstance(NaiveMatcher(), SnapshotMatcher)
    assert isinstance(TreeMatcher(), StepCountingMatcher)
    assert not isinstance(ColumnarMatcher(), StepCountingMatcher)

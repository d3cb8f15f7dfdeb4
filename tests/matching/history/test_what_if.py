"""Hypothetical changes of versions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.what_if_oracle import live_at, tried_at
from tidegate import SubscriptionError
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.timelines import versions_of
from tidegate.matching.history.versions import Version
from tidegate.matching.history.what_if import ALWAYS, differing, with_changes

START = datetime(2026, 1, 2, tzinfo=UTC)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def update(id: str, time: datetime = ALWAYS, **fields: Any) -> Change:
    return Change(time, Op.UPDATE, id, **fields)


FILTERS = st.sampled_from(["x < :p", "x > :p", "x < :p + t"])
PARAMS = st.fixed_dictionaries({"p": st.sampled_from([1, 2, 3, None])})
TIMES = st.integers(0, 8).map(at)


@st.composite
def live_versions(draw: st.DrawFn) -> list[Version]:
    """The versions of two subscriptions, each with updates and perhaps an end or several."""
    log: list[Change] = []
    for id in "ab":
        is_live = False
        for time in sorted(draw(st.lists(TIMES, min_size=1, max_size=5))):
            log.append(_fitting(draw, id, time, is_live=is_live))
            is_live = log[-1].op is not Op.UNSUBSCRIBE
    versions, refused = versions_of(log)
    assert not refused
    return versions


def _fitting(draw: st.DrawFn, id: str, time: datetime, *, is_live: bool) -> Change:
    """A change that can be made to a subscription that is live at its time, or is not."""
    if not is_live:
        return Change(time, Op.SUBSCRIBE, id, draw(FILTERS), draw(PARAMS))
    if draw(st.sampled_from([Op.UPDATE, Op.UPDATE, Op.UNSUBSCRIBE])) is Op.UNSUBSCRIBE:
        return Change(time, Op.UNSUBSCRIBE, id)
    return Change(time, Op.UPDATE, id, draw(st.none() | FILTERS), draw(PARAMS))


@st.composite
def hypothetical(draw: st.DrawFn, live: list[Version]) -> list[Change]:
    """Changes that can be made to versions, those of one time in order, the times in any order."""
    decided: dict[str, bool] = {}
    """Whether a subscription is live from the last of its hypothetical changes on, for good."""
    by_time: dict[datetime, list[Change]] = {}
    for time in sorted(draw(st.lists(st.just(ALWAYS) | TIMES, min_size=1, max_size=4))):
        id = draw(st.sampled_from("ab"))
        lasts = any(each.id == id and (each.until is None or each.until > time) for each in live)
        change = _fitting(draw, id, time, is_live=decided.get(id, lasts))
        if change.op is not Op.UPDATE:
            decided[id] = change.op is Op.SUBSCRIBE
        by_time.setdefault(time, []).append(change)
    return [each for some in draw(st.permutations(list(by_time.values()))) for each in some]


@given(st.data())
def test_at_each_moment_it_is_as_the_changes_say(data: st.DataObject) -> None:
    live = data.draw(live_versions())
    changes = data.draw(hypothetical(live))
    made = with_changes(live, changes, beginning=at(0))
    for half in range(20):
        time = at(half / 2)
        for id in "ab":
            found, wanted = live_at(made, id, time), tried_at(live, changes, id, time, at(0))
            assert _essence(found) == _essence(wanted)


def _essence(version: Version | None) -> object:
    return version and (version.filter, version.params, version.subscriber, version.origin)


def test_a_change_stays_whatever_was_changed_later() -> None:
    log = [
        Change(at(0), Op.SUBSCRIBE, "s", "x < :p", {"p": 1}),
        Change(at(5), Op.UPDATE, "s", params={"p": 2}),
    ]
    live, _ = versions_of(log)
    made = with_changes(live, [update("s", at(3), params={"p": 9})])
    assert [(each.params["p"], each.since, each.until) for each in made] == [
        (1, at(0), at(3)),
        (9, at(3), at(5)),
        (9, at(5), None),
    ]
    assert {each.origin for each in made} == {at(0)}


def test_a_new_filter_finds_parameters_that_were_set_before() -> None:
    log = [
        Change(at(0), Op.SUBSCRIBE, "s", "x < :p", {"p": 1}),
        Change(at(5), Op.UPDATE, "s", "x = 0"),
    ]
    live, _ = versions_of(log)
    made = with_changes(live, [update("s", filter="y < :p")])
    assert [(each.filter, each.params) for each in made] == [("y < :p", {"p": 1})] * 2


def test_a_parameter_is_set_where_the_filter_has_it() -> None:
    log = [
        Change(at(0), Op.SUBSCRIBE, "s", "x < :p", {"p": 1}),
        Change(at(5), Op.UPDATE, "s", "x = 0"),
    ]
    live, _ = versions_of(log)
    made = with_changes(live, [update("s", params={"p": 2})])
    assert [each.params for each in made] == [{"p": 2}, {}]
    with pytest.raises(SubscriptionError, match="'s': the filter has no parameter :q; it has :p"):
        with_changes(live, [update("s", params={"q": 2})])


def test_changes_of_one_time_are_made_in_their_order() -> None:
    new = Change(ALWAYS, Op.SUBSCRIBE, "n", "x < :p")
    (made,) = with_changes([], [new, update("n", params={"p": 5})], beginning=at(1))
    assert (made.params, made.since, made.origin) == ({"p": 5}, at(1), at(1))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (update("z", params={}), "there is no subscription 'z'"),
        (update("old", at(6), params={}), "there is no subscription 'old' from .*:06.* on"),
        (Change(ALWAYS, Op.UNSUBSCRIBE, "z"), "there is no subscription 'z'"),
        (Change(ALWAYS, Op.SUBSCRIBE, "s", "x = 1"), "there already is a subscription 's'"),
        (Change(at(6), Op.SUBSCRIBE, "old", "x = :q", {"p": 1}), "no parameter :p; it has :q"),
        (update("s", filter="x <"), r"subscription 's': .*\n  x <\n     \^"),
    ],
)
def test_what_cannot_be_tried(change: Change, reason: str) -> None:
    live = [Version("s", "x > 1"), Version("old", "x > 1", since=at(0), until=at(5))]
    with pytest.raises(SubscriptionError, match=reason):
        with_changes(live, [change])


def test_where_t_has_no_beginning_a_version_is_not_cut() -> None:
    live = [Version("s", "x > :p + t", {"p": 1}), Version("static", "x > :p", {"p": 1})]
    with pytest.raises(SubscriptionError, match="function of `t` and has no `since`"):
        with_changes(live, [update("s", at(1), params={"p": 2})])
    made = with_changes(live, [update("static", at(1), params={"p": 2})])
    assert [each.until for each in made if each.id == "static"] == [at(1), None]
    assert with_changes(live, [update("s", params={"p": 2})])[0].params == {"p": 2}


def test_differing() -> None:
    same = Version("same", "x > 1", since=at(0))
    live = [same, Version("a", "x > :p", {"p": 1}), Version("gone", "x = 1")]
    changed = [Version("a", "x > :p", {"p": True}), Version("new", "x = 1")]
    changed.append(replace(same, origin=at(0)))  # says what `same` says without it
    before, after = differing(live, changed)
    assert [each.id for each in before] == ["a", "gone"]
    assert [each.id for each in after] == ["a", "new"]

"""Changes that are tried out on versions."""

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
from tidegate.matching.history.versions import Version, versions_of
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
def logged(draw: st.DrawFn) -> Change:
    op = draw(st.sampled_from([Op.SUBSCRIBE, Op.UPDATE, Op.UPDATE, Op.UNSUBSCRIBE]))
    filter = draw(FILTERS) if op is Op.SUBSCRIBE else None
    params = None if op is Op.UNSUBSCRIBE else draw(PARAMS)
    return Change(draw(TIMES), op, draw(st.sampled_from("ab")), filter, params)


@st.composite
def tried(draw: st.DrawFn) -> Change:
    time, id = draw(st.just(ALWAYS) | TIMES), draw(st.sampled_from("ab"))
    op = draw(st.sampled_from([Op.SUBSCRIBE, Op.UPDATE, Op.UPDATE, Op.UNSUBSCRIBE]))
    if op is Op.UNSUBSCRIBE:
        return Change(time, op, id)
    filter = draw(FILTERS) if op is Op.SUBSCRIBE else draw(st.none() | FILTERS)
    return Change(time, op, id, filter, draw(PARAMS))


@given(st.lists(logged(), max_size=8), st.lists(tried(), max_size=3))
def test_at_each_moment_it_is_as_the_changes_say(log: list[Change], changes: list[Change]) -> None:
    live, _ = versions_of(log)
    try:
        made = with_changes(live, changes, beginning=at(0))
    except SubscriptionError:
        return
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
    live = [Version("s", "x > :p + t", {"p": 1}), Version("still", "x > :p", {"p": 1})]
    with pytest.raises(SubscriptionError, match="function of `t` and has no `since`"):
        with_changes(live, [update("s", at(1), params={"p": 2})])
    made = with_changes(live, [update("still", at(1), params={"p": 2})])
    assert [each.until for each in made if each.id == "still"] == [at(1), None]
    assert with_changes(live, [update("s", params={"p": 2})])[0].params == {"p": 2}


def test_differing() -> None:
    same = Version("same", "x > 1", since=at(0))
    live = [same, Version("a", "x > :p", {"p": 1}), Version("gone", "x = 1")]
    changed = [Version("a", "x > :p", {"p": True}), Version("new", "x = 1")]
    changed.append(replace(same, origin=at(0)))  # says what `same` says without it
    before, after = differing(live, changed)
    assert [each.id for each in before] == ["a", "gone"]
    assert [each.id for each in after] == ["a", "new"]

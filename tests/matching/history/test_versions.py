"""Differences between versions, and the successions and deltas that follow from them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.change_logs import NOON, logs
from tidegate.language.evolve import Periodic
from tidegate.language.values import to_us
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.timelines import Timelines, versions_of
from tidegate.matching.history.versions import (
    Succession,
    Version,
    VersionDelta,
    VersionDifference,
    difference_between,
    key_of,
)

ONE, TWO, THREE = (NOON + timedelta(seconds=number) for number in (1, 2, 3))
OPEN = Version("s", "x = :k", {"k": 1}, since=NOON, origin=NOON)


def subscribe(time: datetime, filter: str = "x = :k", **params: object) -> Change:
    return Change(time, Op.SUBSCRIBE, "s", filter, params)


def update(time: datetime, filter: str | None = None, **params: object) -> Change:
    return Change(time, Op.UPDATE, "s", filter, params)


def unsubscribe(time: datetime) -> Change:
    return Change(time, Op.UNSUBSCRIBE, "s")


def test_a_key_is_the_id_and_the_start_of_a_version() -> None:
    assert key_of(OPEN) == ("s", to_us(NOON))
    assert key_of(replace(OPEN, until=ONE)) == key_of(OPEN)
    assert key_of(Version("s", "true", until=ONE)) == ("s", int(NO_TIME))


# -- differences ------------------------------------------------------------------------------


def test_versions_that_both_lists_begin_with_are_left_out() -> None:
    first, last = replace(OPEN, until=ONE), replace(OPEN, since=TWO)
    middle, other = replace(OPEN, since=ONE, until=TWO), replace(OPEN, since=ONE, until=THREE)
    assert difference_between([first, middle, last], [first, other]) == VersionDifference(
        (middle, last), (other,)
    )
    assert difference_between([first, last], [first, last]) == VersionDifference((), ())
    assert difference_between([], [first]) == VersionDifference((), (first,))


def test_values_of_another_type_differ_although_python_takes_them_for_equal() -> None:
    other = replace(OPEN, params={"k": True})
    assert difference_between([OPEN], [other]) == VersionDifference((OPEN,), (other,))


@pytest.mark.parametrize(
    ("before", "after", "since"),
    [
        ((), (OPEN,), NOON),
        ((OPEN,), (), NOON),
        ((OPEN,), (replace(OPEN, params={"k": 2}),), NOON),
        ((OPEN,), (replace(OPEN, until=TWO),), TWO),
        ((replace(OPEN, until=THREE),), (replace(OPEN, until=TWO),), TWO),
        ((replace(OPEN, since=ONE),), (OPEN,), NOON),
        ((replace(OPEN, until=TWO),), (replace(OPEN, until=TWO, params={"k": True}),), NOON),
    ],
)
def test_the_time_from_which_a_subscription_differs(
    before: tuple[Version, ...], after: tuple[Version, ...], since: datetime
) -> None:
    assert VersionDifference(before, after).since == since


# -- successions ------------------------------------------------------------------------------


def test_parameters_that_change_from_now_on_are_successions() -> None:
    timelines = Timelines()
    timelines.take([subscribe(NOON, "x between :k and :l", k=1, l=2)])
    [found] = timelines.take([update(TWO, l=2.0, k=1), update(ONE, k=None), update(TWO, k=True)])
    assert found.successions() == [
        Succession("s", ONE, {"k": None}),
        Succession("s", TWO, {"k": True, "l": 2.0}),
    ]
    [second] = found.successions()[1:]  # type: ignore[index]
    assert {name: type(value) for name, value in second.params.items()} == {"k": bool, "l": float}


@pytest.mark.parametrize(
    "changes",
    [
        [update(TWO, "x < :k")],
        [unsubscribe(TWO)],
        [unsubscribe(TWO), subscribe(THREE, k=1)],
        [update(NOON, k=2)],
        [update(TWO, k=2), unsubscribe(THREE)],
        [unsubscribe(NOON), subscribe(NOON, "x < :k", k=1), update(ONE, k=2)],
    ],
)
def test_other_changes_are_none(changes: list[Change]) -> None:
    timelines = Timelines()
    [begun] = timelines.take([subscribe(NOON, k=1)])
    assert begun.successions() is None
    [found] = timelines.take(changes)
    assert found.successions() is None


def test_late_changes_are_none() -> None:
    timelines = Timelines()
    timelines.take([subscribe(NOON, k=1), update(TWO, k=2)])
    [found] = timelines.take([update(ONE, k=3)])
    assert found.successions() is None


@pytest.mark.parametrize(
    "begun_again",
    [replace(OPEN, evolve=Periodic(1.0)), replace(OPEN, subscriber="me")],
    ids=["evolve", "subscriber"],
)
def test_another_mode_or_subscriber_is_none(begun_again: Version) -> None:
    """A subscription may end and begin again at one time, with the same filter and parameters."""
    after = (
        replace(begun_again, until=ONE),
        replace(begun_again, since=ONE, params={"k": 2}),
    )
    assert VersionDifference((OPEN,), after).successions() is None


# -- deltas -----------------------------------------------------------------------------------


def test_a_delta_has_each_difference_in_its_cheapest_form() -> None:
    in_time = VersionDifference(
        (OPEN,), (replace(OPEN, until=ONE), replace(OPEN, since=ONE, params={"k": 2}))
    )
    ended = VersionDifference((replace(OPEN, id="u"),), (replace(OPEN, id="u", until=ONE),))
    forgotten = replace(OPEN, id="v", until=NOON)
    assert VersionDelta.of([in_time, ended], [forgotten]) == VersionDelta(
        [key_of(forgotten)], [Succession("s", ONE, {"k": 2})], [ended]
    )


def test_the_number_of_versions_that_a_delta_concerns() -> None:
    timelines = Timelines()
    batches = [
        [subscribe(NOON, k=1), Change(NOON, Op.SUBSCRIBE, "u", "x = 1")],
        [update(ONE, k=2), update(THREE, k=3), Change(TWO, Op.UNSUBSCRIBE, "u")],
        [update(TWO, k=4)],  # late: of four versions then, the first one is as it was
    ]
    counts = [VersionDelta.of(timelines.take(batch)).version_count for batch in batches]
    assert counts == [2, 3 * 2 + 2, 2 + 3]


@settings(max_examples=settings().max_examples // 2)
@given(logs(), st.data())
def test_successions_say_what_their_differences_say(log: list[Change], data: st.DataObject) -> None:
    """Replayed on the open version, successions make the versions of the difference."""
    cut = data.draw(st.integers(0, len(log)))
    timelines = Timelines()
    timelines.take(log[:cut])
    for change in log[cut:]:
        for difference in timelines.take([change]):
            successions = difference.successions()
            if successions is not None:
                assert repr(_replayed(difference, successions)) == repr(difference.after)
    assert list(timelines.versions()) == versions_of(log)[0]


def test_a_value_taken_from_a_parameter_that_had_none_changes_no_parameter() -> None:
    timelines = Timelines()
    timelines.take([Change(NOON, Op.SUBSCRIBE, "s", "x < :k")])
    (difference,) = timelines.take([Change(ONE, Op.UPDATE, "s", params={"k": None})])
    assert difference.successions() == [Succession("s", ONE, {})]
    assert repr(_replayed(difference, [Succession("s", ONE, {})])) == repr(difference.after)


def _replayed(difference: VersionDifference, successions: list[Succession]) -> tuple[Version, ...]:
    (current,) = difference.before
    versions: list[Version] = []
    for each in successions:
        versions.append(replace(current, until=each.since))
        params = {**current.params, **each.params}
        # a parameter without a value may be listed with None or not at all
        known = difference.after[len(versions)].params
        kept = {name: params.get(name) for name in known}
        assert all(params[name] is None for name in params.keys() - known.keys())
        current = replace(current, since=each.since, params=kept)
    return (*versions, current)

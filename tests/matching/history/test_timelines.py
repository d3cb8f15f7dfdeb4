"""Timelines of subscriptions, against the plain fold of their changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.change_logs import (
    BEGINNING,
    END,
    MICROSECOND,
    NOON,
    Delivery,
    Judged,
    event_lists,
    expected,
    folded,
    in_order,
    logs,
    times,
    variable_values,
)
from tidegate.language.semantics import holds
from tidegate.language.spaces import Space
from tidegate.language.values import Value, to_us
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.timelines import Refusal, Timelines, versions_of
from tidegate.matching.history.versions import Version, VersionDifference
from tidegate.matching.records import subscription_of
from tidegate.matching.subscription import Moment

SECOND = timedelta(seconds=1)
ONE, TWO, THREE = (NOON + number * SECOND for number in (1, 2, 3))


def subscribe(time: datetime, filter: str = "x = :k", **params: object) -> Change:
    return Change(time, Op.SUBSCRIBE, "s", filter, params)


def update(time: datetime, filter: str | None = None, **params: object) -> Change:
    return Change(time, Op.UPDATE, "s", filter, params)


def unsubscribe(time: datetime) -> Change:
    return Change(time, Op.UNSUBSCRIBE, "s")


def in_short(versions: Iterable[Version]) -> list[tuple[str, dict[str, object], int, int | None]]:
    """Versions in short: the filter, the parameters, and the seconds after noon."""
    return [
        (
            each.filter,
            dict(each.params),
            (each.since - NOON) // SECOND,
            None if each.until is None else (each.until - NOON) // SECOND,
        )
        for each in versions
        if each.since is not None
    ]


# -- the fold ---------------------------------------------------------------------------------


def naively(
    versions: Sequence[Version], events: Sequence[Judged], variables: Mapping[str, Value]
) -> list[Delivery]:
    """What is delivered by the versions that live at the time of each event."""
    found: list[Delivery] = []
    for version in versions:
        subscription = subscription_of(version, None)
        for index, event in enumerate(events):
            moment = Moment(to_us(event.time), variables)
            environment = subscription.environment(moment)
            if subscription.lives(moment) and holds(
                subscription.filter.node, event.attributes, environment
            ):
                assert version.since is not None
                found.append(Delivery(index, version.id, version.subscriber, version.since))
    return sorted(found, key=in_order)


@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_the_versions_of_a_log_agree_with_the_fold(data: st.DataObject) -> None:
    log = data.draw(logs())
    events = data.draw(event_lists(log))
    variables = data.draw(variable_values)
    versions, refused = versions_of(log)
    assert naively(versions, events, variables) == expected(log, events, variables)
    assert as_listed(each.change for each in refused) == as_listed(folded(log).refused)


def as_listed(changes: Iterable[Change]) -> Counter[str]:
    return Counter(map(repr, changes))


@settings(max_examples=settings().max_examples // 2)
@given(logs())
def test_versions_follow_each_other(log: list[Change]) -> None:
    ends: dict[str, datetime | None] = {}
    for each in versions_of(log)[0]:
        assert each.since is not None
        assert each.origin is not None
        assert each.origin <= each.since
        before = ends.get(each.id, BEGINNING)
        assert before is not None, "an open version is the last"
        assert before <= each.since
        assert each.until is None or each.since < each.until
        ends[each.id] = each.until
    assert {id for id, end in ends.items() if end is None} == folded(log).subscriptions.keys()


class Follower:
    """Versions by what differences say."""

    def __init__(self) -> None:
        self.versions: Counter[str] = Counter()

    def apply(self, differences: Iterable[VersionDifference]) -> None:
        for each in differences:
            self._forget(each.before)
            self.versions.update(map(repr, each.after))

    def _forget(self, versions: Iterable[Version]) -> None:
        for each in map(repr, versions):
            assert self.versions[each] == 1
            del self.versions[each]

    def make_final(self, ended: Iterable[Version]) -> None:
        self._forget(ended)


@settings(max_examples=settings().max_examples // 2)
@given(logs(), st.data())
def test_differences_add_up(log: list[Change], data: st.DataObject) -> None:
    """Whatever comes together and whatever is final meanwhile."""
    timelines, follower = Timelines(), Follower()
    border, taken, refused = BEGINNING, list[Change](), list[Refusal]()
    for change in log:
        if change.time >= border:
            taken.append(change)
            follower.apply(timelines.take([change]))
        if data.draw(st.integers(0, 3)) == 0:
            border = max(border, data.draw(times))
            ended, more = timelines.make_final(border)
            follower.make_final(ended)
            refused += more
        assert follower.versions == Counter(map(repr, timelines.versions()))
    known = [each for each in versions_of(taken)[0] if each.until is None or each.until > border]
    kept = [each for each in timelines.versions() if each.until is None or each.until > border]
    assert Counter(map(repr, kept)) == Counter(map(repr, known))
    refused += timelines.refusals()
    assert as_listed(each.change for each in refused) == as_listed(folded(taken).refused)


@settings(max_examples=settings().max_examples // 2)
@given(logs(), st.data())
def test_how_changes_are_put_together_makes_no_difference(
    log: list[Change], data: st.DataObject
) -> None:
    one_by_one, cut = Timelines(), data.draw(st.integers(0, len(log)))
    for change in log:
        one_by_one.take([change])
    in_two = Timelines()
    in_two.take(log[:cut])
    in_two.take(log[cut:])
    assert list(map(repr, one_by_one.versions())) == list(map(repr, in_two.versions()))
    assert one_by_one.refusals() == in_two.refusals()


# -- single rules -----------------------------------------------------------------------------


def test_each_change_ends_a_version_and_begins_another() -> None:
    log = [subscribe(NOON, k=0), update(ONE, k=1), update(TWO, "y = :k"), unsubscribe(THREE)]
    versions, refused = versions_of(log)
    assert in_short(versions) == [
        ("x = :k", {"k": 0}, 0, 1),
        ("x = :k", {"k": 1}, 1, 2),
        ("y = :k", {"k": 1}, 2, 3),
    ]
    assert {each.origin for each in versions} == {NOON}
    assert refused == []


def test_changes_of_one_time_are_made_in_the_order_in_which_they_came() -> None:
    log = [update(ONE, k=2), update(ONE, k=3), subscribe(NOON, k=0), update(NOON, k=1)]
    assert in_short(versions_of(log)[0]) == [
        ("x = :k", {"k": 1}, 0, 1),
        ("x = :k", {"k": 3}, 1, None),
    ]


def test_a_new_subscription_of_an_id_starts_from_scratch() -> None:
    log = [subscribe(NOON, k=0), unsubscribe(ONE), subscribe(ONE), unsubscribe(TWO)]
    log.append(subscribe(THREE, "x = 1"))
    versions, _ = versions_of(log)
    assert in_short(versions) == [
        ("x = :k", {"k": 0}, 0, 1),
        ("x = :k", {}, 1, 2),
        ("x = 1", {}, 3, None),
    ]
    assert [each.origin for each in versions] == [NOON, ONE, THREE]


def test_parameters_are_remembered_while_no_filter_names_them() -> None:
    log = [
        subscribe(NOON, "x = :k and y = :l", k=1, l=2),
        update(ONE, "y = :l", l=3),
        update(TWO, "x = :k and y = :l"),
        unsubscribe(THREE),
        subscribe(THREE, "y = 1"),
        update(THREE + SECOND, "x = :k"),
    ]
    assert [params for _, params, _, _ in in_short(versions_of(log)[0])] == [
        *({"k": 1, "l": 2}, {"l": 3}, {"k": 1, "l": 3}, {}, {}),
    ]


def test_a_parameter_that_is_taken_away_stays_away() -> None:
    log = [subscribe(NOON, k=1), update(ONE, k=None), update(TWO, "x = :k and true")]
    assert [params for _, params, _, _ in in_short(versions_of(log)[0])] == [
        *({"k": 1}, {"k": None}, {"k": None}),
    ]


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ([update(NOON, k=1)], "there is no subscription 's' at 2026-01-02T12:00:00+00:00"),
        ([unsubscribe(NOON)], "there is no subscription 's' at 2026-01-02T12:00:00+00:00"),
        ([subscribe(NOON), subscribe(NOON)], "there already is a subscription 's'"),
        ([subscribe(NOON, "x = :k", j=1)], "the filter has no parameter :j; it has :k"),
        ([subscribe(NOON), update(ONE, j=1)], "the filter has no parameter :j; it has :k"),
        ([subscribe(NOON), update(ONE, "x = 1", k=1)], "has no parameter :k; it has none"),
        ([subscribe(NOON), update(ONE, "x <")], "subscription 's': a value must follow '<'"),
        ([subscribe(NOON, "x <")], "subscription 's': a value must follow '<'"),
        ([subscribe(NOON), update(ONE, k=[1])], "parameter :k: a list is not a value"),
    ],
)
def test_a_change_that_cannot_be_made_is_passed_over(log: list[Change], reason: str) -> None:
    versions, (refusal,) = versions_of(log)
    assert refusal.change == log[-1]
    assert reason in refusal.reason
    assert in_short(versions) == in_short(versions_of(log[:-1])[0])


def test_a_change_may_fit_once_another_has_come() -> None:
    timelines = Timelines()
    assert timelines.take([update(ONE, k=1), subscribe(TWO, k=2)])
    assert len(timelines.refusals()) == 1
    (difference,) = timelines.take([subscribe(NOON, k=0)])
    assert in_short(difference.before) == [("x = :k", {"k": 2}, 2, None)]
    assert in_short(difference.after) == [("x = :k", {"k": 0}, 0, 1), ("x = :k", {"k": 1}, 1, None)]
    assert [each.change for each in timelines.refusals()] == [subscribe(TWO, k=2)]


def test_what_stays_the_same_is_no_difference() -> None:
    timelines = Timelines()
    timelines.take([subscribe(NOON, k=0), update(ONE, k=1)])
    assert timelines.take([update(ONE, k=1)]) == []
    assert timelines.take([subscribe(TWO)]) == []
    assert timelines.take([]) == []
    (difference,) = timelines.take([update(TWO, k=2)])
    assert in_short(difference.before) == [("x = :k", {"k": 1}, 1, None)]


def test_a_value_of_another_type_is_a_difference() -> None:
    """To Python `1` and `True` are equal."""
    timelines = Timelines()
    timelines.take([subscribe(NOON, k=1)])
    (difference,) = timelines.take([update(NOON, k=True)])
    assert [dict(each.params)["k"] for each in difference.after] == [True]
    assert difference.since == NOON


# -- what is final ----------------------------------------------------------------------------


def test_how_many_there_are() -> None:
    timelines = Timelines()
    timelines.take([update(TWO, k=1)])  # which cannot be made yet
    assert (len(timelines), timelines.current) == (1, 0)
    timelines.take([subscribe(NOON, k=1)])
    assert (len(timelines), timelines.current) == (1, 1)
    again = Timelines.restore(timelines.dump(), None)
    for each in (timelines, again):
        each.take([unsubscribe(THREE)])
        assert (len(each), each.current) == (1, 0)
        each.make_final(THREE + SECOND)
        assert (len(each), each.current) == (0, 0)


def test_versions_that_ended_are_given_once_and_forgotten() -> None:
    timelines = Timelines()
    timelines.take([subscribe(NOON, k=0), update(ONE, k=1), update(TWO, k=2)])
    assert in_short(timelines.make_final(ONE)[0]) == [("x = :k", {"k": 0}, 0, 1)]
    assert timelines.make_final(ONE) == ([], [])
    assert in_short(timelines.make_final(TWO)[0]) == [("x = :k", {"k": 1}, 1, 2)]
    assert timelines.make_final(END) == ([], [])
    assert in_short(timelines.versions()) == [("x = :k", {"k": 2}, 2, None)]


def test_changes_at_the_border_may_arrive() -> None:
    timelines = Timelines()
    timelines.take([subscribe(NOON, k=0)])
    timelines.make_final(ONE)
    (difference,) = timelines.take([update(ONE, k=1)])
    assert in_short(difference.before) == [("x = :k", {"k": 0}, 0, None)]
    # the end of the one before is told, or it would seem never to have been
    assert in_short(difference.after) == [("x = :k", {"k": 0}, 0, 1), ("x = :k", {"k": 1}, 1, None)]
    assert difference.since == ONE
    timelines.take([update(ONE + MICROSECOND, k=2)])
    assert [each.params["k"] for each in timelines.versions()] == [0, 1, 2]


def test_what_was_final_is_remembered() -> None:
    """The parameters that no filter names now, and the time from which `t` counts."""
    timelines = Timelines()
    timelines.take([subscribe(NOON, "x = :k and y = :l", k=1, l=2), update(ONE, "y = :l")])
    timelines.make_final(TWO)
    timelines.take([update(THREE, "x = :k")])
    *_, last = timelines.versions()
    assert (last.params, last.origin) == ({"k": 1}, NOON)


def test_a_change_is_refused_once_its_time_is_final() -> None:
    timelines = Timelines()
    timelines.take([update(NOON, k=1), update(TWO, k=2)])
    assert timelines.make_final(NOON)[1] == []
    assert [each.change for each in timelines.make_final(ONE)[1]] == [update(NOON, k=1)]
    assert timelines.make_final(TWO)[1] == []
    assert [each.change for each in timelines.refusals()] == [update(TWO, k=2)]
    timelines.take([subscribe(ONE, k=1)])
    assert timelines.refusals() == []


def test_an_id_is_free_again_after_all_of_it_was_forgotten() -> None:
    timelines = Timelines()
    timelines.take([subscribe(NOON, k=0), unsubscribe(ONE)])
    timelines.make_final(TWO)
    assert list(timelines.versions()) == []
    timelines.take([subscribe(TWO, "y = 1")])
    assert in_short(timelines.versions()) == [("y = 1", {}, 2, None)]


@pytest.mark.parametrize("time", [BEGINNING, END])
def test_changes_at_the_ends_of_the_calendar(time: datetime) -> None:
    versions, _ = versions_of([subscribe(time, k=0), update(time, k=1)])
    assert [(dict(each.params), each.since, each.until) for each in versions] == [
        ({"k": 1}, time, None)
    ]
    assert subscription_of(versions[0], None).since == to_us(time)


def test_a_change_that_does_not_fit_the_space_is_refused() -> None:
    space = Space("s", {"x": int})
    changes = [
        subscribe(NOON, "x = :k", k=1),
        update(ONE, k="a"),
        update(TWO, "y = :k"),
        update(THREE, k=2),
    ]
    versions, refused = versions_of(changes, space)
    assert in_short(versions) == [("x = :k", {"k": 1}, 0, 3), ("x = :k", {"k": 2}, 3, None)]
    assert [each.change for each in refused] == changes[1:3]
    assert refused[0].reason.startswith("subscription 's': x is an integer in space 's'")


def test_strings_of_changes_are_timestamps_where_the_space_has_one() -> None:
    space = Space("s", {"x": datetime, "y": str})
    changes = [
        subscribe(NOON, "x = :k", k="2026-01-02"),
        update(ONE, k="soon"),
        update(TWO, "y = :k"),
        update(THREE, "x > :k", k="2026-01-03"),
    ]
    versions, refused = versions_of(changes, space)
    assert in_short(versions) == [
        ("x = :k", {"k": datetime(2026, 1, 2, tzinfo=UTC)}, 0, 2),
        ("y = :k", {"k": "2026-01-02"}, 2, 3),
        ("x > :k", {"k": datetime(2026, 1, 3, tzinfo=UTC)}, 3, None),
    ]
    (refusal,) = refused
    assert refusal.reason == (
        "subscription 's': parameter :k: 'soon' is not a timestamp; write it as "
        "2026-01-02T03:04:05Z (x is a timestamp in space 's')"
    )


# -- changes that come too late -----------------------------------------------------------------


def test_a_change_that_comes_too_late_holds_from_the_border_on() -> None:
    timelines = Timelines()
    timelines.make_final(TWO)
    [difference] = timelines.take([update(ONE, k=2), subscribe(NOON, k=1)])
    assert difference.since == TWO
    [version] = timelines.versions()
    assert (version.since, version.until, version.origin) == (TWO, None, NOON)  # `t` counts on
    assert dict(version.params) == {"k": 2}


def test_the_end_of_a_subscription_that_comes_too_late_changes_nothing_before_the_border() -> None:
    timelines = Timelines()
    timelines.take([subscribe(NOON, k=1)])
    timelines.make_final(THREE)
    [difference] = timelines.take([unsubscribe(ONE)])
    assert difference.since == THREE
    ended, refused = timelines.make_final(THREE + SECOND)
    assert ([each.until for each in ended], refused) == ([THREE], [])
    assert not len(timelines)


@pytest.mark.parametrize(
    ("late", "is_outdated"),
    [
        (update(ONE, k=7), True),
        (subscribe(ONE), True),
        (update(TWO, k=7), False),
        (unsubscribe(ONE), False),
        (unsubscribe(NOON - SECOND), True),  # of an earlier life
    ],
)
def test_what_is_older_than_a_final_change(late: Change, is_outdated: bool) -> None:
    timelines = Timelines()
    timelines.take([subscribe(NOON, k=1), update(TWO, k=2)])
    timelines.make_final(THREE)
    again = Timelines.restore(timelines.dump(), THREE)
    assert (timelines.is_outdated(late), again.is_outdated(late)) == (is_outdated, is_outdated)


@given(logs(), st.data())
def test_late_changes_come_to_the_same_end(log: list[Change], data: st.DataObject) -> None:
    """In whatever order changes come, a subscription ends as if they had come in time, unless a
    change was outdated or refused."""
    timelines, border = Timelines(), BEGINNING
    untold: set[str] = set()
    for change in data.draw(st.permutations(log)):
        border = max(border, data.draw(times))
        untold |= {each.change.id for each in timelines.make_final(border)[1]}
        if change.time < border and timelines.is_outdated(change):
            untold.add(change.id)
        else:
            timelines.take([change])
    untold |= {each.change.id for each in timelines.refusals()}
    wanted, refused = versions_of(log)
    untold |= {each.change.id for each in refused}
    assert ends(timelines.versions(), untold) == ends(wanted, untold)


def ends(versions: Iterable[Version], untold: set[str]) -> dict[str, object]:
    """What holds after all changes, by id."""
    return {
        each.id: (each.filter, dict(each.params), each.subscriber, each.origin)
        for each in versions
        if each.until is None and each.id not in untold
    }


def test_the_order_of_changes_of_one_time() -> None:
    first, second = Change(ONE, Op.UPDATE, "s", None, {"k": 1}, seq=1), update(ONE, k=2)
    for log in ([first, second], [second, first]):
        [version, *_] = versions_of([subscribe(NOON, k=0), *log])[0][-1:]
        assert dict(version.params) == {"k": 1}

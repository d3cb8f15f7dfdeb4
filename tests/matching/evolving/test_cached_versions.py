"""The times of versions: triggers, cohorts, expiry, filters without a version."""

from __future__ import annotations

from tidegate.matching.evolving.cached_versions import (
    NEVER,
    STALE_MIN,
    CachedVersions,
    CacheGroup,
)

X, Y = frozenset([frozenset("x")]), frozenset([frozenset("y")])
XY = frozenset([frozenset("xy")])


def only(versions: CachedVersions) -> CacheGroup:
    (group,) = versions.groups
    return group


def test_the_first_event_makes_a_version_and_the_next_after_its_expiry_another() -> None:
    versions = CachedVersions()
    versions.add("s", X, 10, None)
    assert versions.renew({"x": 1}, 5) == ["s"]
    assert [versions.renew({"x": 1}, time) for time in (5, 4, 15, 16, 17)] == [
        [], [], [], ["s"], [],
    ]  # fmt: skip


def test_an_event_needs_all_attributes_of_one_disjunct() -> None:
    versions = CachedVersions()
    versions.add("s", XY, 10, None)
    versions.add("t", X | Y, 10, None)
    assert versions.renew({"z": 1}, 5) == []
    assert versions.renew({"y": 1}, 5) == ["t"]
    assert versions.renew({"x": 1, "y": 2}, 6) == ["s"]


def test_filters_that_got_their_versions_together_expire_together() -> None:
    versions = CachedVersions()
    for id, since in (("a", None), ("b", 0), ("c", 7)):
        versions.add(id, X, 10, since)
    assert versions.renew("x", 5) == ["a", "b"]
    assert only(versions).due_from_us == 7  # when the third begins
    assert versions.renew("x", 8) == ["c"]
    assert only(versions).due_from_us == 16
    assert sorted(versions.renew("x", 16)) == ["a", "b"]
    assert sorted(versions.renew("x", 30)) == ["a", "b", "c"]
    assert only(versions).due_from_us == 41
    assert sorted(versions.renew("x", 41)) == ["a", "b", "c"]  # one cohort now


def test_a_version_that_just_does_not_expire_stays_when_others_get_theirs() -> None:
    versions = CachedVersions()
    versions.add("old", X, 10, None)
    versions.renew("x", 5)
    versions.add("new", X, 10, None)
    assert versions.renew("x", 15) == ["new"]


def test_nothing_is_made_before_a_subscription_begins() -> None:
    versions = CachedVersions()
    versions.add("s", X, 10, 7)
    assert [versions.renew("x", time) for time in (6, 7)] == [[], ["s"]]


def test_a_dropped_version_is_replaced_by_the_next_event() -> None:
    versions = CachedVersions()
    versions.add("s", X, 10, 3)
    versions.renew("x", 5)
    versions.drop("s")
    versions.drop("s")
    assert versions.renew("x", 2) == []
    assert versions.renew("x", 4) == ["s"]  # an earlier time than the version that is gone


def test_a_removed_filter_leaves_nothing_behind() -> None:
    versions = CachedVersions()
    versions.add("a", X, 10, None)
    versions.add("b", X, 10, None)
    versions.renew("x", 5)
    versions.drop("b")
    versions.remove("b")
    versions.remove("a")
    assert (len(versions), list(versions.groups), "a" in versions) == (0, [], False)
    versions.add("a", X, 10, 8)
    assert versions.renew("x", 7) == []
    assert versions.renew("x", 9) == ["a"]


def test_an_id_that_comes_again_does_not_inherit_when_it_waited() -> None:
    versions = CachedVersions()
    versions.add("other", X, 10, 100)
    versions.add("s", X, 10, 3)
    versions.remove("s")
    versions.add("s", X, 10, 50)
    assert only(versions).due_from_us == 50
    assert versions.renew("x", 40) == []


def test_empty_cohorts_are_forgotten() -> None:
    versions = CachedVersions()
    for id in "ab":
        versions.add(id, X, 10, None)
    versions.renew("x", 5)
    versions.remove("a")
    versions.drop("b")
    versions.renew("x", 8)
    assert only(versions).due_from_us == 19
    versions.remove("b")
    versions.add("c", X, 10, NEVER)
    assert only(versions).due_from_us == NEVER


def test_versions_are_resumed() -> None:
    versions = CachedVersions()
    for id in "abc":
        versions.add(id, X, 10, None)
    versions.resume(["a", "b"], 20)
    assert versions.renew("x", 25) == ["c"]
    assert sorted(versions.renew("x", 31)) == ["a", "b"]


def test_filters_that_are_gone_leave_no_heap_behind() -> None:
    versions = CachedVersions()
    versions.add("first", X, 10, 5)  # waits for an event that does not come
    for number in range(1_000):
        versions.add(f"{number}", X, 10, 6 + number)
        versions.remove(f"{number}")
    group = only(versions)
    assert len(group._waiting_heap) <= STALE_MIN + 3
    assert versions.renew("x", 4) == []
    assert versions.renew("x", 5) == ["first"]


def test_versions_that_are_dropped_leave_no_cohorts_behind() -> None:
    versions = CachedVersions()
    versions.add("long", X, 10_000, 0)
    versions.add("often", X, 10_000, 0)
    versions.renew("x", 0)
    for time in range(1, 1_000):
        versions.drop("often")
        assert versions.renew("x", time) == ["often"]
    assert len(only(versions)._cohorts) <= STALE_MIN + 5
    assert versions.renew("x", 10_000) == []
    assert versions.renew("x", 10_001) == ["long"]

"""When a subscription is in force, and as of which time its filter is evaluated."""

from __future__ import annotations

import pytest

from tidegate.errors import UnresolvedError
from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.matching.subscription import Moment, Subscription

SECOND = 1_000_000


def subscription(since: int | None, until: int | None, origin: int | None = None) -> Subscription:
    return Subscription("s", parse("x < :k"), {"k": 1}, since, None, until, origin)


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, [True, True, True, True]),
        (0, None, [False, True, True, True]),
        (None, 5, [True, True, True, False]),
        (0, 5, [False, True, True, False]),
        (0, 0, [False, False, False, False]),
        (5, 0, [False, False, False, False]),
    ],
)
def test_it_lives_from_since_until_before_until(
    since: int | None, until: int | None, expected: list[bool]
) -> None:
    made = subscription(since, until)
    assert [made.lives(Moment(time_us)) for time_us in (-1, 0, 4, 5)] == expected
    assert made.lives(Moment())


@pytest.mark.parametrize(
    ("since", "origin", "time_us", "t"),
    [
        (0, None, 3 * SECOND, 3.0),
        (2 * SECOND, 0, 3 * SECOND, 3.0),
        (2 * SECOND, SECOND, 500_000, -0.5),
        (None, SECOND, 3 * SECOND, 2.0),
        (None, None, 3 * SECOND, 0.0),
        (2 * SECOND, 0, None, 0.0),
    ],
)
def test_t_counts_from_the_origin_or_else_from_since(
    since: int | None, origin: int | None, time_us: int | None, t: float
) -> None:
    environment = subscription(since, None, origin).environment(Moment(time_us, {"load": 2}))
    assert environment.t == t
    assert environment.now == (None if time_us is None else from_us(time_us))
    assert (environment.parameters, environment.variables) == ({"k": 1}, {"load": 2})


@pytest.mark.parametrize("evolve", [None, Lazy(), Cached(1.0)])
def test_without_a_pin_a_filter_is_evaluated_at_the_time_of_the_event(
    evolve: Evolve | None,
) -> None:
    made = Subscription("s", parse("x < t"), since=0, evolve=evolve)
    assert [made.judged_at(time_us) for time_us in (0, 3, 7 * SECOND)] == [0, 3, 7 * SECOND]


@pytest.mark.parametrize(
    ("since", "origin", "expected"),
    [
        (0, None, [-10, 0, 0, 10]),
        (3, None, [-7, -7, 3, 3]),
        (5, 3, [-7, -7, 3, 3]),
        (None, None, [-10, 0, 0, 10]),
    ],
)
def test_a_periodic_filter_is_evaluated_at_the_start_of_its_interval(
    since: int | None, origin: int | None, expected: list[int]
) -> None:
    """Rounded down, before the beginning too; without a beginning from 1970 on."""
    made = Subscription("s", parse("x < t"), since=since, origin=origin, evolve=Periodic(1e-5))
    assert [made.judged_at(time_us) for time_us in (-1, 0, 9, 10)] == expected


def test_a_pinned_filter_is_evaluated_at_its_pin_until_that_expires() -> None:
    made = Subscription("s", parse("x < t"), since=0, evolve=Cached(1e-5), pinned_at_us=20)
    times = (19, 20, 29, 30, 31)
    assert [made.judged_at(time_us) for time_us in times] == [19, 20, 20, 20, 31]


@pytest.mark.parametrize("evolve", [None, Lazy(), Periodic(1.0)])
def test_a_pin_means_nothing_in_other_modes(evolve: Evolve | None) -> None:
    made = Subscription("s", parse("x < t"), since=0, evolve=evolve, pinned_at_us=20)
    assert made.judged_at(3 * SECOND) == 3 * SECOND


def test_the_mode_decides_what_t_and_now_are() -> None:
    made = Subscription("s", parse("x < t"), {}, since=0, evolve=Periodic(2.0))
    moment = Moment(3 * SECOND, {"load": 1})
    environment, exact = made.environment(moment), made.exact_environment(moment)
    assert (environment.t, environment.now) == (2.0, from_us(2 * SECOND))
    assert (exact.t, exact.now) == (3.0, from_us(3 * SECOND))
    assert environment.variables == exact.variables == {"load": 1}
    assert made.environment(Moment()).t == 0.0


def test_an_update_leaves_the_times_alone() -> None:
    made = subscription(5, 9, 2).updated({"k": None})
    assert made == Subscription("s", made.filter, {}, 5, None, 9, 2)
    with pytest.raises(UnresolvedError, match="no parameter :l; it has :k"):
        made.updated({"l": 1})

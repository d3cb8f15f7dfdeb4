from __future__ import annotations

import pytest

from tidegate.errors import UnresolvedError
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


def test_an_update_leaves_the_times_alone() -> None:
    made = subscription(5, 9, 2).updated({"k": None})
    assert made == Subscription("s", made.filter, {}, 5, None, 9, 2)
    with pytest.raises(UnresolvedError, match="no parameter :l; it has :k"):
        made.updated({"l": 1})

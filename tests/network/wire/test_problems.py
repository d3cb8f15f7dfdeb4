from __future__ import annotations

import pytest

from tidegate.errors import (
    AccessError,
    BadValueError,
    EventError,
    FilterError,
    FilterLimitError,
    LogError,
    NetworkError,
    OverloadedError,
    ProtocolError,
    RoutingError,
    SpaceError,
    SubscriptionError,
    TidegateError,
    UnresolvedError,
)
from tidegate.language.filters import parse
from tidegate.network.wire.problems import Problem


@pytest.mark.parametrize(
    "kind",
    [
        AccessError,
        BadValueError,
        EventError,
        NetworkError,
        OverloadedError,
        ProtocolError,
        RoutingError,
        SpaceError,
        SubscriptionError,
        UnresolvedError,
    ],
)
def test_errors_keep_their_type_and_text(kind: type[TidegateError]) -> None:
    error = Problem.of(kind("what was wrong")).to_error()
    assert type(error) is kind
    assert str(error) == "what was wrong"


def test_the_wrong_place_of_a_filter_is_kept() -> None:
    with pytest.raises(FilterError) as caught:
        parse("price << 10")
    error = Problem.of(caught.value).to_error()
    assert type(error) is type(caught.value)
    assert str(error) == str(caught.value)
    assert "^" in str(error)


def test_a_filter_that_is_too_long_is_not_sent_back() -> None:
    problem = Problem.of(FilterLimitError("too long", "x" * 70_000, 0))
    assert problem.text == ""
    assert isinstance(problem.to_error(), FilterLimitError)


def test_other_errors_become_network_errors() -> None:
    assert type(Problem.of(LogError("a file is missing")).to_error()) is NetworkError
    assert type(Problem("of-a-later-version", "no").to_error()) is NetworkError


def test_long_reasons_are_cut() -> None:
    problem = Problem.of(RoutingError("x" * 5_000))
    assert len(problem.reason) == 2_000
    assert problem.reason.endswith("...")


def test_a_wrong_place_outside_of_the_text_is_moved_into_it() -> None:
    error = Problem("filter", "no", "abc", 99, 2).to_error()
    assert isinstance(error, FilterError)
    assert str(error)

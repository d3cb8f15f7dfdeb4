from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tidegate.errors import FilterError, NeverMatchesWarning, SubscriptionError
from tidegate.language.evolve import Periodic
from tidegate.language.filters import parse
from tidegate.subscribers.handlers import mark_of, on


def test_a_decorated_method_can_still_be_called() -> None:
    @on("price < :limit", evolve=Periodic(1.0))
    def quote(_: object, event: int) -> int:
        return event + 1

    assert quote(None, 2) == 3
    mark = mark_of(quote)
    assert mark is not None
    assert mark.filter == parse("price < :limit")
    assert mark.evolve == Periodic(1.0)
    assert mark_of(test_a_decorated_method_can_still_be_called) is None
    assert mark_of("quote") is None


def test_a_filter_may_be_parsed_already() -> None:
    @on(parse("price<10"))
    def quote(_: object, __: object) -> None: ...

    mark = mark_of(quote)
    assert mark is not None
    assert mark.text == "price < 10"


def test_a_wrong_filter_is_refused_at_once() -> None:
    with pytest.raises(FilterError) as caught:
        on("price < volume")
    assert "price < volume\n          ^^^^^^" in str(caught.value)
    with pytest.warns(NeverMatchesWarning, match="no event can match"):
        on("price < 1 and price > 2")


def generates(_: object, event: object) -> Iterator[object]:
    yield event


async def generates_async(_: object, event: object) -> AsyncIterator[object]:
    yield event


def takes_none(_: object) -> None: ...


def takes_three(_: object, a: object, b: object) -> None: ...


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (generates, "generates is a generator; a handler must not use `yield`"),
        (generates_async, "generates_async is a generator; a handler must not use `yield`"),
        (takes_none, "takes_none must take two arguments: self and the event"),
        (takes_three, "takes_three must take two arguments: self and the event"),
        (staticmethod(takes_none), "`on` decorates a method, not a staticmethod"),
        (5, "`on` decorates a method, not a int"),
        (on("a = 1")(lambda _, __: None), "has a filter already; join the two with `or`"),
    ],
)
def test_a_method_that_cannot_be_a_handler_is_refused(method: Any, reason: str) -> None:
    with pytest.raises(SubscriptionError) as caught:
        on("a = 1")(method)
    assert reason in str(caught.value)


def test_arguments_may_have_defaults() -> None:
    @on("a = 1")
    def quote(_: object, event: object, more: int = 0, *rest: object, **names: object) -> None: ...

    assert mark_of(quote) is not None

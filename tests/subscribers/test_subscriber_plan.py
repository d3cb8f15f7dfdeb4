from __future__ import annotations

import pytest

from tidegate.errors import FilterError, FilterLimitError, SubscriptionError
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Lazy, Periodic
from tidegate.language.filters import parse
from tidegate.subscribers.handlers import on
from tidegate.subscribers.parameters import Parameter, Reckoned
from tidegate.subscribers.subscriber import Subscriber
from tidegate.subscribers.subscriber_plan import SubscriberPlan


def plan_of(owner: type) -> SubscriberPlan:
    return SubscriberPlan.of(owner, reserved=Subscriber)


def filters(owner: type) -> dict[str, str]:
    return {each.name: str(each.filter) for each in plan_of(owner).handlers}


class Quotes:
    limit = Parameter(10)
    unused = Parameter("x")

    @on("price < :limit")
    def cheap(self, event: Event) -> None: ...

    @on("price > 2 * :limit")
    async def dear(self, event: Event) -> None: ...


def test_a_class_has_its_parameters_and_handlers_in_order() -> None:
    plan = plan_of(Quotes)
    assert plan.owner == "Quotes"
    assert list(plan.parameters) == ["limit", "unused"]
    assert filters(Quotes) == {"cheap": "price < :limit", "dear": "price > 2 * :limit"}
    assert [each.is_async for each in plan.handlers] == [False, True]
    assert plan.is_async


def test_a_class_has_what_its_bases_have() -> None:
    class More(Quotes):
        symbol = Parameter("IBM")

        @on("symbol = :symbol and price < :limit")
        def own(self, event: Event) -> None: ...

    class Less(Quotes):
        limit = Parameter(5)
        dear = None  # type: ignore[assignment]

    class Both(More, Less): ...

    assert filters(More) == filters(Quotes) | {"own": "symbol = :symbol and price < :limit"}
    assert filters(Less) == {"cheap": "price < :limit"}
    assert plan_of(Less).parameters["limit"].initial == 5
    assert list(filters(Both)) == ["cheap", "own"]
    assert plan_of(Both).parameters["limit"].initial == 5


def test_a_method_that_overrides_a_handler_takes_over_its_filter() -> None:
    class Same(Quotes):
        async def cheap(self, event: Event) -> None: ...  # type: ignore[override]

    class Other(Quotes):
        @on("price < :limit / 2")
        def cheap(self, event: Event) -> None: ...

    assert filters(Same) == filters(Quotes)
    assert plan_of(Same).handlers[0].is_async
    assert filters(Other)["cheap"] == "price < :limit / 2"


def test_an_unknown_parameter_is_refused_with_a_hint() -> None:
    with pytest.raises(FilterError) as caught:

        class Monitor(Subscriber):
            last_buy = Parameter(100.0)
            high = Parameter()

            @on("firm = 'IBM' and price < :lastbuy")
            def quote(self, event: Event) -> None: ...

    assert str(caught.value) == (
        "Monitor.quote: there is no Parameter 'lastbuy' in Monitor; it has last_buy, high "
        "(did you mean 'last_buy'?)\n"
        "  firm = 'IBM' and price < :lastbuy\n"
        "                           ^^^^^^^^"
    )


def test_a_plain_attribute_is_no_parameter() -> None:
    with pytest.raises(FilterError, match=r"Plain.cheap: the attribute limit is no tidegate.P"):

        class Plain(Quotes, Subscriber):
            limit = 20

    with pytest.raises(FilterError, match="no Parameter 'limit' in Bare; it has none"):

        class Bare(Subscriber):
            @on("price < :limit")
            def cheap(self, event: Event) -> None: ...


def test_reserved_and_shared_names_are_refused() -> None:
    with pytest.raises(SubscriptionError, match="Monitor: a parameter cannot be named 'set'"):

        class Monitor(Subscriber):
            set = Parameter(1)

    with pytest.raises(SubscriptionError, match="low and high are one Parameter; make two"):

        class Twice(Subscriber):
            low = high = Parameter(1)


def test_bands_are_sent_under_other_names() -> None:
    class Car(Subscriber):
        place = Reckoned(0.0, tolerance=3)
        place_low = Parameter(7)
        speed = Parameter(1.0, damping=0.5)

        @on("x between :place - 1 and :place + 1 and y < :place_low")
        def near(self, event: Event) -> None: ...

        @on("speed > :speed", evolve=Periodic(1.0))
        def fast(self, event: Event) -> None: ...

        @on("x = :place_low")
        def other(self, event: Event) -> None: ...

    near, fast, other = plan_of(Car).handlers
    assert str(near.sent_filter) == (
        "x between :place_low_ + :place_rate * t - 1 and :place_high + :place_rate * t + 1"
        " and y < :place_low"
    )
    assert str(fast.sent_filter) == "speed > :speed_low"
    assert other.sent_filter is other.filter
    assert str(near.filter) == "x between :place - 1 and :place + 1 and y < :place_low"


def test_a_filter_that_cannot_be_widened_is_refused() -> None:
    with pytest.raises(FilterError) as caught:

        class Car(Subscriber):
            place = Reckoned(0.0, tolerance=3)

            @on("lane = 1 and x < sin(:place)")
            def near(self, event: Event) -> None: ...

    assert str(caught.value).startswith(
        "Car.near: in `x < sin(:place)`, the range of `sin(:place)` over a band of values is "
        "not known. Use it"
    )
    assert str(caught.value).endswith("                       ^^^^^^")


def test_the_limits_of_filters_hold_for_widened_ones_too() -> None:
    text = " or ".join(f"x > {' + '.join([':p'] * 8)} - {n}" for n in range(256))
    assert parse(text).parameters == ("p",)
    with pytest.raises(FilterLimitError, match=r"Car.near: with bands for its parameters, the fil"):

        class Car(Subscriber):
            p = Reckoned(0.0, tolerance=3)

            @on(text)
            def near(self, event: Event) -> None: ...


@pytest.mark.parametrize("evolve", [Periodic(1.0), Cached(1.0)])
def test_a_filter_on_a_predicted_value_must_be_evaluated_for_each_event(
    evolve: Periodic | Cached,
) -> None:
    with pytest.raises(FilterError, match=f"which {evolve} does not do; leave `evolve` out"):

        class Car(Subscriber):
            place = Reckoned(0.0, tolerance=3)

            @on("x < :place", evolve=evolve)
            def near(self, event: Event) -> None: ...

    class Lazily(Subscriber):
        place = Reckoned(0.0, tolerance=3)

        @on("x < :place", evolve=Lazy())
        def near(self, event: Event) -> None: ...

    assert plan_of(Lazily).handlers[0].evolve == Lazy()

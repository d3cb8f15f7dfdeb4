from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from tidegate.errors import BadValueError, SubscriptionError
from tidegate.subscribers.parameters import Parameter, Reckoned, values_of
from tidegate.subscribers.subscriber import Subscriber


class Car(Subscriber):
    name = Parameter("red")
    seen = Parameter()
    speed = Parameter(10, damping=2)
    place = Reckoned(0.0, tolerance=3)


def test_a_parameter_has_the_value_that_was_assigned() -> None:
    car, other = Car(), Car()
    assert (car.name, car.seen, car.speed, car.place) == ("red", None, 10, 0.0)
    car.name, car.place = "blue", 5
    car.seen = datetime(2026, 1, 2)  # noqa: DTZ001 - it is taken as UTC
    assert (car.name, car.place) == ("blue", 5)
    assert car.seen == datetime(2026, 1, 2, tzinfo=UTC)
    assert (other.name, other.place) == ("red", 0.0)
    car.name = None
    assert car.name is None
    car.name = 7  # a parameter may have a value of any kind
    assert car.name == 7


def test_a_class_attribute_is_the_parameter_itself() -> None:
    assert isinstance(Car.name, Parameter)
    assert Car.place.is_predicted
    assert Car.speed.tolerance == 2.0
    assert Car.name.tolerance is None


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("name", ["x"], "Car.name: a list is not a value"),
        ("name", object(), "Car.name: object is not a value"),
        ("speed", "fast", "Car.speed: damping is for finite numbers, not 'fast'"),
        ("speed", True, "Car.speed: damping is for finite numbers, not True"),
        ("place", math.inf, "Car.place: dead reckoning is for finite numbers, not inf"),
        ("place", datetime(2026, 1, 1, tzinfo=UTC), "Car.place: dead reckoning is for finite num"),
    ],
)
def test_a_bad_value_is_refused_with_the_name_of_the_parameter(
    name: str, value: Any, reason: str
) -> None:
    car = Car()
    before = getattr(car, name)
    with pytest.raises(BadValueError) as caught:
        setattr(car, name, value)
    assert reason in str(caught.value)
    assert getattr(car, name) == before


@pytest.mark.parametrize("size", [0, -1, math.inf, math.nan, "1", None, True])
def test_a_tolerance_is_a_positive_number(size: Any) -> None:
    with pytest.raises(BadValueError, match="tolerance must be a number greater than 0, not"):
        Reckoned(0, tolerance=size)
    if size is not None:
        with pytest.raises(BadValueError, match="damping must be a number greater than 0, not"):
            Parameter(0, damping=size)


def test_a_bad_initial_value_is_refused() -> None:
    with pytest.raises(BadValueError, match="the initial value of a parameter: a list"):
        Parameter([1])
    with pytest.raises(BadValueError, match="initial value of a parameter: dead reckoning is for"):
        Reckoned("here", tolerance=1)


def test_a_parameter_needs_a_subscriber() -> None:
    class Thing:
        limit = Parameter(1)

    with pytest.raises(SubscriptionError, match=r"Thing is no tidegate.Subscriber"):
        Thing().limit = 2
    with pytest.raises(SubscriptionError, match=r"Thing is no tidegate.Subscriber"):
        values_of(Thing())

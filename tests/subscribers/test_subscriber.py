from __future__ import annotations

import pytest

from support.recorded_connection import RecordedConnection
from tidegate.errors import BadValueError, SubscriptionError
from tidegate.language.events import Event
from tidegate.subscribers.attachment import Attachment, log_failure
from tidegate.subscribers.handlers import on
from tidegate.subscribers.parameters import Parameter
from tidegate.subscribers.subscriber import Subscriber


class Window(Subscriber):
    low = Parameter(0)
    high = Parameter(10)

    @on("x between :low and :high")
    def inside(self, event: Event) -> None: ...


class Named(Window):
    def __init__(self, name: str, *, high: int) -> None:
        self.name = name  # without super().__init__()
        self.high = high


def test_parameters_can_be_assigned_before_init() -> None:
    named = Named("a", high=5)
    assert (named.name, named.low, named.high) == ("a", 0, 5)
    with pytest.raises(TypeError):
        Window("a")


def test_several_parameters_change_as_one() -> None:
    window, connection = Window(), RecordedConnection()
    Attachment(window, connection, 10, log_failure)
    window.set(low=20, high=30)
    assert (window.low, window.high) == (20, 30)
    assert connection.updates == [{"low": 20, "high": 30}]
    with pytest.raises(BadValueError, match=r"Window.high: a list is not a value"):
        window.set(low=0, high=[1])
    with pytest.raises(SubscriptionError, match="Window has no parameter 'top'; it has low, high"):
        window.set(low=0, top=1)
    assert (window.low, window.high) == (20, 30)
    assert len(connection.updates) == 1


def test_a_subscriber_without_handlers_cannot_be_attached() -> None:
    with pytest.raises(SubscriptionError, match="Subscriber has no handlers; decorate a method"):
        Attachment(Subscriber(), RecordedConnection(), 10, log_failure)


def test_class_arguments_are_passed_to_other_bases() -> None:
    class Registered:
        names: list[str] = []  # noqa: RUF012 - shared on purpose

        def __init_subclass__(cls, *, name: str = "") -> None:
            cls.names.append(name)

    class Monitor(Window, Registered, name="m"): ...

    assert Registered.names[-1] == "m"
    assert Monitor().low == 0

from __future__ import annotations

from typing import Any, cast

from tidegate.network.client.inbox import Inbox
from tidegate.network.client.registry import Registry, subscribe_request, update_request
from tidegate.network.wire.requests import Subscribe, Update


class Owner:
    """What a registry needs of a client to make inboxes."""

    is_durable = False

    @property
    def receiving(self) -> Owner:
        return self

    def new_inbox(self) -> Inbox:
        return Inbox(acks_on_next=False, taken=lambda _: None, acknowledge=lambda _: None)


def registry() -> Registry:
    return Registry(cast(Any, Owner()))


def test_names_that_are_taken_are_left_out() -> None:
    made = registry()
    made.state.subscribe("s1", "x > 0", now_us=0)
    made.add("s1", None)
    assert made.free_name() == "s2"
    assert made.free_name() == "s3"


def test_handles_may_change() -> None:
    made = registry()
    made.state.subscribe("n", "x > 0", now_us=0)
    subscription = made.add("n", None)
    made.bind(subscription, 1)
    made.bind(subscription, 2)
    assert made.by_handle == {2: subscription}
    made.drop(subscription)
    made.drop(subscription)
    assert not made.is_current(subscription)
    assert "n" not in made.state


def test_what_a_filter_covers() -> None:
    made = registry()
    for name, text in [("narrow", "x < 5"), ("wide", "x < 50"), ("other", "y < 5")]:
        made.state.subscribe(name, text, now_us=0)
        made.add(name, None)
    assert [each.name for each in made.covered("x < 10", None)] == ["narrow"]
    assert made.covered("x < 10", "market") == []


def test_the_requests_have_what_the_present_version_has() -> None:
    made = registry()
    made.state.subscribe("n", "x < :a and y > :b", {"a": 1, "b": "é"}, now_us=7, space="m")
    subscription = made.add("n", None)
    made.bind(subscription, 4)
    assert subscribe_request(1, subscription.named, "as written") == Subscribe(
        1, "as written", "n", {"a": 1, "b": "é"}, None, 1, 7, True, "m"
    )
    update = made.state.update("n", {"a": None})
    subscription.named = made.state["n"]
    request = update_request(2, subscription, update, wait=False)
    assert request == Update(2, 4, 2, {"a": None}, None, False)
    whole = update_request(3, subscription, update, wait=True, whole=True)
    assert (whole.parameters["a"], set(whole.parameters)) == (None, {"a", "b"})
    assert (whole.filter, whole.confirm) == (str(subscription.filter), True)

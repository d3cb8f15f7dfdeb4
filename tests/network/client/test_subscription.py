from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tidegate.errors import NetworkError
from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.network.client.subscription import Subscription
from tidegate.routing.clients.client_state import ClientState


class Owner:
    """A client that still has the subscription, or not."""

    has_it = True

    def has(self, _: object) -> bool:
        return self.has_it


def made() -> tuple[Owner, ClientState, Subscription]:
    owner, state = Owner(), ClientState()
    state.subscribe("n", "x < :a", {"a": 5}, now_us=0)
    return owner, state, Subscription(cast(Any, owner), state["n"], cast(Any, None))


def event(x: int) -> Event:
    return Event({"x": x}, from_us(1))


def test_an_event_of_an_earlier_version_is_judged_by_the_present_one() -> None:
    owner, state, subscription = made()
    assert (subscription.name, str(subscription.filter), subscription.version) == ("n", "x < :a", 1)
    state.update("n", {"a": 3})
    subscription.named = state["n"]
    assert subscription.accepts(1, event(2))
    assert not subscription.accepts(1, event(4))
    assert subscription.accepts(2, event(4))  # the broker has matched it by this version
    owner.has_it = False
    assert not subscription.accepts(2, event(2))


def test_waiting_for_a_version() -> None:
    async def main() -> None:
        _, _, subscription = made()
        one = asyncio.create_task(subscription.wait_in_force(1))
        three = asyncio.create_task(subscription.wait_in_force(3))
        await asyncio.sleep(0)
        assert subscription.waits
        subscription.came_into_force(2)
        await one
        await subscription.wait_in_force(2)
        assert not three.done()
        subscription.fail(NetworkError("gone"))
        for waiting in (three, asyncio.create_task(subscription.wait_in_force(9))):
            with pytest.raises(NetworkError, match="gone"):
                await waiting

    asyncio.run(main())

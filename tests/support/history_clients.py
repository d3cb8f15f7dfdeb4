"""Clients that log what they do and see, and that may be killed at any moment.

They follow the recipes of docs/client.md: a publisher goes on after the last number that its
broker has; a subscriber skips the positions that it has stored together with their effect, which
is the log.
"""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path
from typing import Any

from support import history as h
from tidegate.language.events import Event
from tidegate.language.evolve import parse_evolve
from tidegate.language.values import from_us, to_us
from tidegate.network.client.client import Client
from tidegate.network.client.connect import connect
from tidegate.network.client.inbox import Inbox
from tidegate.network.client.subscription import Subscription

TIMEOUT_S = 60.0
VALUE_MAX = 9
END = "end"
"""The attribute of a publisher's last event."""

WANTED: dict[str, tuple[str, str | None]] = {
    "all": ("x >= 0", None),
    "low": ("x < :limit", None),
    "near": ("y between :limit - :width and :limit + :width and kind = 'a'", None),
    "evolving": ("x between 3 * sin(t + :limit) - 2 and 3 * sin(t + :limit) + 2", "lazy"),
}
"""Filters and evolve modes of subscriptions, by name."""


async def publish(
    url: str, identity: str, log: str, seed: int, count: int, batch: int, pause_s: float
) -> None:
    """Publish so many events, each confirmed, the last of which says that it is the last."""
    history = h.Log(Path(log), identity)
    asked = {each.number: each for each in history.before if isinstance(each, h.Publish)}
    chance = random.Random(f"{seed} {identity} {len(asked)}")
    history.write(h.Began)
    async with connect(url, identity=identity, epoch=1, timeout=TIMEOUT_S) as client:
        if client.last_published:
            history.write(h.Confirmed, number=client.last_published)
        while (done := client.last_published) < count:
            numbers = range(done + 1, min(count, done + chance.randint(1, batch)) + 1)
            events = [_event(history, asked, number, count, chance) for number in numbers]
            await client.publish_many(events, confirm=True)
            history.write(h.Confirmed, number=numbers[-1])
            await asyncio.sleep(pause_s)


def _event(
    history: h.Log, asked: dict[int, h.Publish], number: int, count: int, chance: random.Random
) -> Event:
    """An event, the same as before if it was asked for before."""
    before = asked.get(number)
    if before is None:
        attributes: dict[str, Any] = {
            "by": history.client, "n": number, "x": chance.randint(-3, VALUE_MAX),
            "y": chance.choice((1, 2.5, 4, 6.0)), "kind": chance.choice("ab"),
        }  # fmt: skip
        if number == count:
            attributes[END] = True
        time_us = time.time_ns() // 1_000
    else:
        attributes, time_us = before.attributes, before.time_us
    history.write(h.Publish, number=number, attributes=attributes, time_us=time_us)
    return Event(attributes, from_us(time_us))


async def subscribe(
    url: str, identity: str, log: str, seed: int, names: list[str], publishers: int
) -> None:
    """Subscribe durably, update now and then, and receive until all publishers are at their end."""
    reader = _Reader(h.Log(Path(log), identity), seed, publishers)
    await reader.run(url, names)


class _Reader:
    def __init__(self, history: h.Log, seed: int, publishers: int) -> None:
        self._history, self._publishers = history, publishers
        before = [each for each in history.before if isinstance(each, h.Deliver)]
        self._last = max((each.position for each in before), default=0)
        self._ended = {each.attributes["by"] for each in before if END in each.attributes}
        self._chance = random.Random(f"{seed} {history.client} {len(history.before)}")
        self._values = {
            each.name: each.parameters for each in history.before if isinstance(each, h.Change)
        }
        self._subscriptions: dict[str, Subscription] = {}

    async def run(self, url: str, names: list[str]) -> None:
        self._history.write(h.Began)
        identity = self._history.client
        async with connect(url, identity=identity, durable=True, timeout=TIMEOUT_S) as client:
            inbox = client.inbox()
            for name in [*names, END]:
                await self._subscribe(client, inbox, name)
            changing = asyncio.create_task(self._change_again_and_again())
            while len(self._ended) < self._publishers:
                event = await inbox.next()
                assert event is not None
                assert event.time is not None
                self._take(event)
                if changing.done():
                    changing.result()
            changing.cancel()
            self._history.write(h.Drained)

    def _take(self, event: Any) -> None:
        """Log a delivery; one that is in the log already is logged once more, for the checker."""
        attributes = dict(event.attributes)
        self._history.write(
            h.Deliver,
            attributes=attributes,
            time_us=to_us(event.time),
            matches=[(each.name, version) for each, version in event.matches],
            position=event.position,
        )
        if event.position > self._last:
            self._last = event.position
            if END in attributes:
                self._ended.add(attributes["by"])

    async def _subscribe(self, client: Client, inbox: Inbox, name: str) -> None:
        filter, evolve = WANTED.get(name, (f"{END} = true", None))
        values = self._values.get(name) or self._drawn(filter)
        self._history.write(h.Change, name=name, filter=filter, parameters=values, evolve=evolve)
        self._subscriptions[name] = subscription = await client.subscribe(
            filter,
            name=name,
            evolve=None if evolve is None else parse_evolve(evolve),
            inbox=inbox,
            parameters=values,
        )
        self._came_into_force(subscription)

    def _came_into_force(self, subscription: Subscription) -> None:
        self._history.write(
            h.InForce,
            name=subscription.name,
            version=subscription.version,
            origin_us=subscription.named.subscription.origin,
        )

    def _drawn(self, filter: str) -> dict[str, Any]:
        values = {"limit": self._chance.randint(0, VALUE_MAX), "width": self._chance.choice((1, 2))}
        return {name: value for name, value in values.items() if f":{name}" in filter}

    async def _change_again_and_again(self) -> None:
        """Update the parameters of one subscription after the other, each until it is in force."""
        names = [name for name in self._subscriptions if ":" in WANTED.get(name, ("",))[0]]
        while names:
            await asyncio.sleep(self._chance.random() / 20)
            name = self._chance.choice(names)
            filter, evolve = WANTED[name]
            values = self._drawn(filter)
            self._history.write(
                h.Change, name=name, filter=filter, parameters=values, evolve=evolve
            )
            await self._subscriptions[name].update(**values)
            self._came_into_force(self._subscriptions[name])

"""The market in a network of brokers: what its subscribers receive, and how fast.

A minute of the market ends with an event that all subscribers wait for. Brokers keep the order of a
publisher, so all of the minute has come before it; then the parameters change, and once that is in
force everywhere the next minute begins. So every event is matched by the values of its time, which
makes the deliveries comparable with those of a pipeline that is told the times.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli.demo.brokers import NAMES, broker_line
from tidegate.cli.demo.market import EVOLVING, MINUTES, PARAMETRIC, STATIC, Market
from tidegate.cli.demo.still import still
from tidegate.cli.status import print_status
from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.network.client.connect import connect

if TYPE_CHECKING:
    from tidegate.network.client.client import Client
    from tidegate.network.client.inbox import Inbox
    from tidegate.network.client.subscription import Subscription

HOMES = {STATIC: "b", PARAMETRIC: "c", EVOLVING: "c"}
"""The brokers of the subscribers; quotes are published at the first one."""
PIPELINE = "pipeline"
"""The identity of the pipeline, for which the broker in the middle keeps all quotes."""
PIPELINE_HOME = "b"
PIPELINE_FILTER = "n >= 0"
PUBLISHED_AT_ONCE = 500
_END = "minute_end"

Delivery = tuple[int, str]
"""The number of an event and the id of a subscription."""


@dataclass(slots=True)
class NetworkRun:
    """What has happened in the network."""

    market: Market
    urls: Mapping[str, str]
    changes: list[dict[str, object]] = field(default_factory=list)
    """The subscriptions and their changes, as a change log."""
    deliveries: Counter[Delivery] = field(default_factory=Counter)
    publishing_s: float = 0.0
    """From the first quote of each minute until all subscribers had the last."""
    updates: int = 0
    updating_s: float = 0.0
    dropped: int = 0


@contextmanager
def run_network(market: Market, folder: Path) -> Iterator[NetworkRun]:
    """Run the market through three brokers, which go on until the context ends."""
    print_status("")
    with still("starting three brokers") as started, broker_line(folder) as urls:
        started.set()
        run = NetworkRun(market, urls)
        asyncio.run(_run(run))
        yield run


async def _run(run: NetworkRun) -> None:
    async with AsyncExitStack() as stack:
        subscribers = []
        for name, wanted in run.market.groups().items():
            client = await stack.enter_async_context(connect(run.urls[HOMES[name]], identity=name))
            subscribers.append(_Subscriber(name, client, run))
            print_status(f"subscribing {len(wanted):,} {name} filters at broker {HOMES[name]}")
            await subscribers[-1].subscribe(wanted)
        await _keep_for_pipeline(run)
        publisher = await stack.enter_async_context(connect(run.urls[NAMES[0]], identity="market"))
        start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
        with still("publishing first quotes; brokers compile kernels if it is the first time"):
            first = (Event({**each.attributes, "n": -1}) for each in run.market.minute(0, start))
            await _publish(publisher, subscribers, -1, islice(first, 10))
        for minute in range(MINUTES):
            if minute:
                await _update(run, subscribers, minute, start)
            print_status(f"publishing minute {minute + 1} of {MINUTES}")
            began = time.perf_counter()
            await _publish(publisher, subscribers, minute, run.market.minute(minute, start))
            run.publishing_s += time.perf_counter() - began
        run.dropped = sum(each.client.missed for each in subscribers)


async def _publish(
    publisher: Client, subscribers: list[_Subscriber], minute: int, quotes: Iterator[Event]
) -> None:
    """Publish the quotes of a minute; returns when all subscribers have what matches."""
    readers = [asyncio.create_task(each.read_minute(minute)) for each in subscribers]
    while events := list(islice(quotes, PUBLISHED_AT_ONCE)):
        await publisher.publish_many(events, confirm=True)
    await publisher.publish({_END: minute}, confirm=True)
    await asyncio.gather(*readers)


async def _keep_for_pipeline(run: NetworkRun) -> None:
    """Subscribe for the pipeline, which reads later: the client is durable."""
    from tidegate.spark.brokers.subscription_name import SUBSCRIPTION

    async with connect(run.urls[PIPELINE_HOME], identity=PIPELINE, durable=True) as client:
        await client.subscribe(PIPELINE_FILTER, name=SUBSCRIPTION)


async def _update(
    run: NetworkRun, subscribers: list[_Subscriber], minute: int, start: datetime
) -> None:
    """Change all parameters; returns when that is in force in the whole network."""
    [parametric] = [each for each in subscribers if each.name == PARAMETRIC]
    ids = list(parametric.subscriptions.items())
    limits = [run.market.limit(number, minute) for number in range(len(ids))]
    print_status(f"updating {len(ids):,} parameters")
    began = time.perf_counter()
    await asyncio.gather(
        *(each.update(limit=limit) for (_, each), limit in zip(ids, limits, strict=True))
    )
    run.updating_s += time.perf_counter() - began
    run.updates += len(ids)
    at = (start + timedelta(minutes=minute)).isoformat()
    run.changes += [
        {"time": at, "op": "update", "id": id, "params": {"limit": limit}}
        for (id, _), limit in zip(ids, limits, strict=True)
    ]


class _Subscriber:
    """The client of one group of subscriptions, which share an inbox."""

    def __init__(self, name: str, client: Client, run: NetworkRun) -> None:
        self.name = name
        self.client = client
        self.subscriptions: dict[str, Subscription] = {}
        """By id."""
        self._ids: dict[str, str] = {}
        """The ids by the names that the client has given."""
        self._inbox: Inbox = client.inbox()
        self._run = run

    async def subscribe(self, wanted: list[tuple[str, Mapping[str, object]]]) -> None:
        """Subscribe, and note it in the change log with the time from which `t` counts."""
        made = await self.client.subscribe_many(wanted, inbox=self._inbox)
        await self.client.subscribe(f"{_END} >= -1", name=_END, inbox=self._inbox)
        for number, (subscription, (text, values)) in enumerate(zip(made, wanted, strict=True)):
            id = f"{self.name}-{number}"
            self.subscriptions[id], self._ids[subscription.name] = subscription, id
            origin_us = subscription.named.subscription.origin
            origin = None if origin_us is None else from_us(origin_us)
            assert origin is not None  # the client has given it one
            self._run.changes.append(
                {
                    "time": origin.isoformat(), "op": "subscribe", "id": id,
                    "filter": text, "subscriber": self.name, "params": dict(values),
                }
            )  # fmt: skip

    async def read_minute(self, minute: int) -> None:
        """Note what comes, until the minute has ended."""
        while True:
            for event in await self._inbox.next_many(1_000):
                if event.get(_END) == minute:
                    return
                if event["n"] < 0:
                    continue
                for subscription, _ in event.matches:
                    self._run.deliveries[event["n"], self._ids[subscription.name]] += 1


def show(run: NetworkRun) -> None:
    """Print how fast it was."""
    events, updates = run.market.events, run.updates
    click.echo(
        f"\nnetwork   {events:,} quotes, each confirmed, through three brokers in "
        f"{run.publishing_s:.1f} s: {events / run.publishing_s:,.0f}/s, "
        f"{run.deliveries.total():,} deliveries\n"
        f"          {updates:,} updates of parameters in {run.updating_s:.2f} s: "
        f"{updates / run.updating_s:,.0f}/s, each in force in the whole network"
    )

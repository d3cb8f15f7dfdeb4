"""Brokers that are killed lose and double nothing that was confirmed."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from support.killed_brokers import (
    KilledBroker,
    Publisher,
    Subscriber,
    free_ports,
    until_linked,
)

EVENTS = 600


async def run(folder: Path, names: str, kills: int, seed: int) -> Subscriber:
    """Publish at the first broker, receive at the last, and kill any of them meanwhile."""
    chance, ports = random.Random(seed), free_ports(len(names))
    brokers = [
        KilledBroker(name, ports[at], folder, ports[at - 1 : at] if at else [])
        for at, name in enumerate(names)
    ]
    subscriber, publisher = Subscriber(ports[-1], "ann", "n > 0"), Publisher(ports[0], "bob")
    try:
        for broker in brokers:
            broker.start()
        await subscriber.subscribe()
        await until_linked(ports[0], ports[-1])
        publishing = asyncio.create_task(publisher.publish(EVENTS, batch=7))
        receiving = asyncio.create_task(subscriber.receive(EVENTS))
        for kill in range(1, kills + 1):
            while publisher.confirmed < EVENTS * kill // (kills + 1):
                await asyncio.sleep(0.01)
            broker = chance.choice(brokers)
            broker.kill()
            broker.start()
        async with asyncio.timeout(120):
            await asyncio.gather(publishing, receiving)
    finally:
        for broker in brokers:
            broker.kill()
    return subscriber


@pytest.mark.slow
@pytest.mark.parametrize(("names", "kills"), [("a", 2), ("abc", 3)])
def test_confirmed_events_come_once_and_in_order(tmp_path: Path, names: str, kills: int) -> None:
    subscriber = asyncio.run(run(tmp_path, names, kills, seed=5))
    assert [each["n"] for each in subscriber.received] == list(range(1, EVENTS + 1))

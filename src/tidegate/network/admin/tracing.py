"""Traces for the admin port: begins one, and waits for the reports of all brokers on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from tidegate.language.events import Event
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.turns import Turn
from tidegate.routing.messages import Client

WAIT_S = 5.0
"""How long the reports of a trace may take."""


class Reports:
    """The reports of one trace; all have come when each that was announced has."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self._expected: Counter[str] = Counter()
        self._complete = asyncio.Event()

    def take(self, report: dict[str, Any]) -> None:
        """Take the next report, which says to whom the trace was passed on."""
        self.reports.append(report)
        self._expected.subtract([report["broker"]] if report["from"] is not None else [])
        self._expected.update(each["to"] for each in report["passed_on"])
        if not self.unheard():
            self._complete.set()

    def unheard(self) -> list[str]:
        """The brokers of which a report is still to come."""
        return sorted(name for name, count in self._expected.items() if count > 0)

    async def wait(self, seconds: float) -> None:
        """Wait until all have come, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._complete.wait()
        except TimeoutError:
            pass  # `unheard` says who is missing


async def trace(
    server: BrokerServer, event: Event, identity: str, space: str | None, wait_s: float = WAIT_S
) -> Reports:
    """Trace an event as if a client published it here."""
    reports = Reports()

    def begin(turn: Turn) -> int:
        number, sent = server.broker.traces.begin(
            event, Client(identity), space, server.now_us(), reports.take
        )
        server.dispatch(sent, turn)
        return number

    number = await server.turns.ask(begin)
    try:
        await reports.wait(wait_s)
    finally:
        server.broker.traces.end(number)
    for each in reports.reports[0]["passed_on"]:
        link = server.links.by_peer.get(each["to"])
        each["connected"] = link is not None and link.connection is not None
    return reports

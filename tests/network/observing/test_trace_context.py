from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.wire_client import WireClient, running
from tidegate.network.observing.trace_context import LOGGED_MAX, parse_traceparent
from tidegate.network.server.settings import BrokerSettings, PeerAddress
from tidegate.network.wire import requests as wire

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    "text",
    ["", 5, None, f"00-{TRACE}-{SPAN}", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01",
     f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE.upper()}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01-x",
     f"00-{TRACE}-{SPAN}-01\n"],
)  # fmt: skip
def test_what_is_no_trace_context(text: object) -> None:
    assert parse_traceparent(text) is None


def test_later_versions_may_have_more() -> None:
    context = parse_traceparent(f"01-{TRACE}-{SPAN}-00-more")
    assert context == (TRACE, SPAN, False)


def test_each_broker_logs_sampled_events(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0)) as a:
            peers = (PeerAddress("127.0.0.1", a.port),)
            async with running(BrokerSettings("b", port=0, peers=peers)) as b:
                while "a" not in b.broker.domains.domain_of:
                    await asyncio.sleep(0.01)
                ann = await WireClient.connect(b.port, "ann")
                await ann.request(wire.Subscribe, "x > 0", name="n", version=1, confirm=True)
                await ann.next(wire.InForce)
                bob = await WireClient.connect(a.port, "bob")
                bob.publish(
                    {"x": 1},
                    {"x": 2, "traceparent": SAMPLED},
                    {"x": 3, "traceparent": SAMPLED[:-1] + "0"},
                    {"x": 4, "traceparent": "junk"},
                    *[{"x": 0, "traceparent": SAMPLED}] * LOGGED_MAX,
                )
                await ann.deliveries(4)
                await ann.close()
                await bob.close()

    with caplog.at_level("INFO", "tidegate"):
        asyncio.run(main())
    routed: list[Any] = [each for each in caplog.records if vars(each).get("trace_id") == TRACE]
    at_a, *others = routed
    assert (at_a.clients, at_a.neighbours, at_a.span_id, at_a.event) == (
        [], ["b"], SPAN, "event_routed",
    )  # fmt: skip
    at_b = next(each for each in others if each.clients)
    assert (at_b.clients, at_b.neighbours) == (["ann"], [])
    assert at_b.getMessage() == "event a/2 of bob: 1 deliveries, passed on to nobody"
    assert len(routed) == LOGGED_MAX + 1

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from support.wire_client import WireClient, bodies, running
from tidegate.network.admin.state import broker_state
from tidegate.network.server.settings import BrokerSettings, PeerAddress
from tidegate.network.wire import requests as wire


def test_state_of_a_broker_with_clients_and_a_neighbour(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0, data=tmp_path)) as a:
            peers = (PeerAddress("127.0.0.1", a.port),)
            async with running(BrokerSettings("b", port=0, peers=peers)) as b:
                while len(broker_state(b)["domains"][0]["links"]) < 1:
                    await asyncio.sleep(0.01)
                ann = await WireClient.connect(a.port, "ann")
                await ann.request(wire.Subscribe, "x > 0", name="n")
                await ann.request(wire.Subscribe, "x > 5")
                cal = await WireClient.connect(a.port, "cal", credit_events=0)
                await cal.request(wire.Subscribe, "x > 0")
                bob = await WireClient.connect(a.port, "bob")
                bob.publish({"x": 1}, {"x": 2}, {"x": 0})
                assert bodies(await ann.deliveries(2)) == [{"x": 1}, {"x": 2}]
                state = json.loads(json.dumps(broker_state(a), allow_nan=False))
                assert len(broker_state(a, clients_max=1)["clients"]["listed"]) == 1
                for each in (ann, bob, cal):
                    await each.close()
        assert (state["broker"], state["connections"]) == ("a", 4)
        assert state["clients"]["total"] == state["clients"]["connected"] == 3
        first, *others = state["clients"]["listed"]
        assert (first["identity"], first["queue"]["waiting"]) == ("cal", 2)
        ann_state = next(each for each in others if each["identity"] == "ann")
        assert ann_state["delivered"] == 2
        assert ann_state["subscriptions"] == {"named": 1, "unnamed": 1, "patterns": 0}
        [neighbour] = state["neighbours"]
        assert (neighbour["name"], neighbour["connected"]) == ("b", True)
        assert neighbour["connects"] == "the neighbour"
        assert state["domains"][0]["brokers"] == ["a", "b"]
        assert state["domains"][0]["links"] == [{"a": "a", "b": "b", "cost_us": 1000}]
        assert state["counters"]["published"] == 3
        assert state["counters"]["delivered"] == 4
        assert state["counters"]["requests"] == {"Subscribe": 3}
        assert state["store"]["is_full"] is False

    asyncio.run(main())

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from support.broker_network import Network
from tidegate.language.events import Event
from tidegate.language.spaces import Space
from tidegate.routing.messages import Client, Publish, Subscribe


def reports(network: Network, broker: str, event: dict[str, Any], space: str | None = None) -> Any:
    found: list[dict[str, Any]] = []
    network.now_us += 1
    _, sent = network.brokers[broker].traces.begin(
        Event.of(event), Client("feed"), space, network.now_us, found.append
    )
    network.take(broker, sent)
    network.run()
    return {each["broker"]: each for each in found}


def test_words_of_a_subscription_network() -> None:
    network = Network([("a", "b"), ("b", "c"), ("b", "d")])
    wanted = Subscribe("price < :limit and symbol = 'IBM'", "cheap", {"limit": 10}, version=3)
    network.ask("c", "ann", wanted)
    network.subscribe("a", "cal", "price > 20 or symbol = 'SUN'")
    network.run()
    found = reports(network, "a", {"price": 9.5, "symbol": "IBM"})
    assert found["a"]["undelivered"] == [
        {
            "client": "cal",
            "subscription": None,
            "filter": "price > 20 or symbol = 'SUN'",
            "because": ["price > 20: 9.5 against 20, off by 10.5"],
        }
    ]
    because = "b has asked for `price < 10 and symbol = 'IBM'`"
    assert found["a"]["passed_on"] == [{"to": "b", "because": because}]
    assert found["b"]["stopped"] == [
        {"to": "d", "nearest": [], "because": "d has asked for nothing"}
    ]
    [delivered] = found["c"]["delivered"]
    assert delivered == {
        "client": "ann",
        "subscription": "cheap",
        "version": 3,
        "filter": "price < :limit and symbol = 'IBM'",
        "parameters": {"limit": 10},
    }
    [stopped] = reports(network, "a", {"price": 12})["a"]["stopped"]
    assert stopped["because"] == "it does not match the only filter of b"
    assert stopped["nearest"][0]["because"] == [
        "price < 10: 12 against 10, off by 2",
        "symbol = 'IBM': the event has no such attribute",
    ]


@pytest.mark.parametrize(
    ("routing", "passed", "stopped"),
    [
        ("flooding", "events go to every neighbour", None),
        ("match-first", "it is for c", "none of its targets is there"),
        ("summaries", "it is for c", "the summaries have no subscription there that may match"),
        ("link-matching", "c has asked for `x > 0`", "d has asked for nothing"),
    ],
)
def test_words_of_other_routings(routing: str, passed: str, stopped: str | None) -> None:
    network = Network([("b", "c"), ("b", "d")], routing)
    network.subscribe("c", "ann", "x > 0")
    network.wait()
    report = reports(network, "b", {"x": 1})["b"]
    assert report["passed_on"][0] == {"to": "c", "because": passed}
    assert [each["because"] for each in report["stopped"]] == ([stopped] if stopped else [])


def test_evolving_filters_are_judged_at_the_time_of_the_event() -> None:
    network = Network([("a", "b")])
    network.ask("b", "ann", Subscribe("x < 10 * t", "n", version=1))
    network.run()
    report = reports(network, "b", {"x": 5})["b"]
    assert report["deliveries"] == 0
    network.now_us += 1_000_000
    assert reports(network, "b", {"x": 5})["b"]["deliveries"] == 1


def test_spaces_and_times() -> None:
    space = Space("trades", {"price": float, "at": datetime})
    network = Network([("a", "b")], spaces=[space])
    network.ask("b", "ann", Subscribe("price < 10", space="trades"))
    network.ask(
        "b", "bob",
        Subscribe("at > :at", "late", {"at": datetime(2026, 1, 2, tzinfo=UTC)}, version=1,
                  space="trades"),
    )  # fmt: skip
    network.run()
    event = {"price": 9.5, "at": datetime(2026, 1, 3, tzinfo=UTC)}
    found = reports(network, "a", event, "trades")
    named = {each["client"]: each for each in found["b"]["delivered"]}
    assert named["ann"]["filter"] == "price < 10"
    assert named["bob"]["parameters"] == {"at": "timestamp '2026-01-02T00:00:00Z'"}
    assert "tidegate.space" not in found["a"]["passed_on"][0]["because"]
    assert reports(network, "a", event, "nothing")["a"]["refused"].startswith("there is no space")
    network.ask("a", "feed", Publish(Event.of({"price": 9.5}), "trades"))

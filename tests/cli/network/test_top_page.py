from __future__ import annotations

from typing import Any

from tidegate.cli.network.top_page import Rates, page, summary


def histogram(*counts: int) -> dict[str, Any]:
    bounds = ["0.001", "0.01", "+Inf"]
    cumulative = [sum(counts[: index + 1]) for index in range(3)]
    return {"count": sum(counts), "sum": 0.0, "buckets": dict(zip(bounds, cumulative, strict=True))}


def client(identity: str, delivered: int, missed: int = 0, **more: Any) -> dict[str, Any]:
    queue = {"waiting": more.pop("waiting", 0), "waiting_max": 100, "stored": 0, "credit": 1,
             "policy": "drop-oldest", "missed": missed}  # fmt: skip
    return {"identity": identity, "connected": True, "durable": False, "queue": queue,
            "delivered": delivered, **more}  # fmt: skip


def state(
    seconds: float, events: int, clients: list[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    counters = {
        "published": events, "notified": 0, "passed_on": {"b": events}, "delivered": events,
        "missed": {"drop-oldest": events}, "confirmed": 0, "refused": 0,
        "requests": {"Update": events}, "turns": histogram(events, 0, 0),
        "commits": histogram(0, events, 0), "stood_still_s": 0.0,
    }  # fmt: skip
    neighbour = {"name": "b", "connected": False, "address": None, "filters": 3,
                 "unacknowledged": 4, "stored": 5_000}  # fmt: skip
    return {
        "broker": "a", "started": "2026-01-01", "time": "2026-01-02T03:04:05.000Z",
        "uptime_s": seconds, "is_draining": False, "connections": 1, "store": None,
        "clients": {"total": len(clients), "connected": 1, "durable": 0, "listed": clients},
        "subscriptions": {"filters": 7}, "neighbours": [neighbour], "counters": counters, **more,
    }  # fmt: skip


def test_rates_are_differences() -> None:
    before, after = state(10, 100, []), state(12, 300, [])
    rates = Rates.between(before, after)
    assert (rates.published, rates.passed_on, rates.missed, rates.updates) == (100,) * 4
    assert (rates.turn_p50_s, rates.commit_p99_s) == (0.001, 0.01)
    assert rates.refused == 0
    again = {**state(1, 5, []), "started": "2026-01-03"}
    assert Rates.between(before, again).published == 0


def test_page_fits_a_terminal() -> None:
    names = [f"client-{number}" for number in range(100)]
    before = state(10, 100, [client(each, 0) for each in names])
    slow = client("slow\x1b[2J", 5, missed=3, waiting=100)
    after = state(12, 300, [client(each, 20) for each in names] + [slow])
    before["clients"]["listed"].append(client("slow\x1b[2J", 5))
    lines = page(before, after, 80, 24)
    assert len(lines) == 24
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert "\x1b" not in text
    first = lines[next(n for n, line in enumerate(lines) if line.startswith("CLIENT")) + 1]
    assert first.split()[1] == "SLOW"
    assert "DOWN" in text
    assert lines[1].endswith("refused")
    assert lines[2].endswith("missed")
    assert len(page(before, after, 80)) > 100


def test_states_of_a_store() -> None:
    store = {"bytes": 3 << 20, "bytes_max": 8 << 30, "is_full": True, "failure": None}
    text = "\n".join(page(state(1, 0, []), state(2, 0, [], store=store, is_draining=True), 80))
    assert "3.0 MiB of 8.0 GiB, FULL" in text
    assert "draining" in text


def test_summary_for_programs() -> None:
    found = summary(state(10, 100, []), state(11, 200, []))
    assert found["rates"]["published"] == 100
    assert found["state"]["broker"] == "a"

"""The page of `tidegate top`: rates from two states of a broker, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.cli.network.admin_client import printable

State = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rates:
    """What a broker did between two of its states, per second."""

    seconds: float
    published: float
    notified: float
    passed_on: float
    delivered: float
    missed: float
    confirmed: float
    refused: float
    updates: float
    turns: float
    turn_p50_s: float | None
    turn_p99_s: float | None
    commit_p99_s: float | None

    @classmethod
    def between(cls, before: State, after: State) -> Rates:
        """The rates between two states of one start of a broker; zero if it has started anew."""
        old, new = before["counters"], after["counters"]
        seconds: float = max(1e-3, after["uptime_s"] - before["uptime_s"])
        if before["started"] != after["started"]:
            old = new

        def rate(name: str) -> float:
            return (_total(new[name]) - _total(old[name])) / seconds

        updates = new["requests"].get("Update", 0) - old["requests"].get("Update", 0)
        return cls(
            seconds,
            published=rate("published"),
            notified=rate("notified"),
            passed_on=rate("passed_on"),
            delivered=rate("delivered"),
            missed=rate("missed"),
            confirmed=rate("confirmed"),
            refused=rate("refused"),
            updates=updates / seconds,
            turns=(new["turns"]["count"] - old["turns"]["count"]) / seconds,
            turn_p50_s=_quantile(old["turns"], new["turns"], 0.5),
            turn_p99_s=_quantile(old["turns"], new["turns"], 0.99),
            commit_p99_s=_quantile(old["commits"], new["commits"], 0.99),
        )


def _total(counted: int | Mapping[str, int]) -> int:
    return sum(counted.values()) if isinstance(counted, Mapping) else counted


def _quantile(old: State, new: State, share: float) -> float | None:
    """The bound that a share of what was counted between two histograms does not exceed."""
    counts = [(bound, count - old["buckets"][bound]) for bound, count in new["buckets"].items()]
    total = counts[-1][1] if counts else 0
    return next((float(bound) for bound, count in counts if total and count >= share * total), None)


def page(before: State, after: State, width: int = 80, height: int | None = None) -> list[str]:
    """The lines of the page; with a height, no more than fit."""
    rates = Rates.between(before, after)
    lines = [*_head(after, rates, width), ""]
    lines += _neighbours(before, after, rates, width)
    clients = _clients(before, after, rates, width)
    if height is not None:
        clients = clients[: max(2, height - len(lines))]
    return (lines + clients)[:height]


def _head(state: State, rates: Rates, width: int) -> list[str]:
    clients, counted = state["clients"], state["counters"]
    title = f"broker {printable(state['broker'], 30)}, up {_time(state['uptime_s'])}"
    if state["is_draining"]:
        title += ", draining"
    right = state["time"][11:19] + "Z"
    store = state["store"]
    stored = "none"
    if store is not None:
        stored = f"{_bytes(store['bytes'])} of {_bytes(store['bytes_max'])}"
        stored += ", FULL" if store["is_full"] else ", FAILED" if store["failure"] else ""
        stored += f", commit p99 {_at_most(rates.commit_p99_s)}"
    filters = state["subscriptions"]["filters"]
    lines = [
        title + right.rjust(width - len(title)),
        f"events in   {_rate(rates.published)} clients  {_rate(rates.notified)} brokers  "
        f"{_rate(rates.refused)} refused",
        f"events out  {_rate(rates.delivered)} clients  {_rate(rates.passed_on)} brokers  "
        f"{_rate(rates.missed)} missed",
        f"confirmed   {_rate(rates.confirmed)}   updates {_rate(rates.updates)}",
        f"turns       {_rate(rates.turns)}  p50 {_at_most(rates.turn_p50_s)}  "
        f"p99 {_at_most(rates.turn_p99_s)}  loop late {counted['stood_still_s'] * 1e3:.1f} ms",
        f"clients     {clients['total']:,}: {clients['connected']:,} connected, "
        f"{clients['durable']:,} durable; {filters:,} filters",
        f"store       {stored}",
    ]
    return [line[:width].rstrip() for line in lines]


def _neighbours(before: State, after: State, rates: Rates, width: int) -> list[str]:
    if not after["neighbours"]:
        return []
    columns = f"{'LINK':>5} {'FILTERS':>9} {'OUT/S':>9} {'UNACKED':>9} {'STORED':>10}"
    name_width = max(9, width - len(columns) - 1)
    old, new = before["counters"]["passed_on"], after["counters"]["passed_on"]
    if before["started"] != after["started"]:
        old = new
    lines = [f"{'NEIGHBOUR':<{name_width}} {columns}"]
    for each in after["neighbours"]:
        name = each["name"] or each["address"] or "?"
        out = (new.get(name, 0) - old.get(name, 0)) / rates.seconds
        lines.append(
            f"{printable(name, name_width):<{name_width}} "
            f"{'up' if each['connected'] else 'DOWN':>5} "
            f"{each['filters']:>9,} {out:>9,.0f} {each['unacknowledged']:>9,} "
            f"{each['stored']:>10,}"
        )
    return [*lines, ""]


def _clients(before: State, after: State, rates: Rates, width: int) -> list[str]:
    columns = f"{'STATE':>5} {'DELIV/S':>8} {'WAITING':>9} {'OF':>9} {'MISSED':>9} {'POLICY':>11}"
    name_width = max(10, width - len(columns) - 1)
    earlier = {each["identity"]: each for each in before["clients"]["listed"]}
    lines = [f"{'CLIENT':<{name_width}} {columns}"]
    rows = []
    for each in after["clients"]["listed"]:
        old, queue = earlier.get(each["identity"], each), each["queue"]
        delivered = max(0, each["delivered"] - old["delivered"]) / rates.seconds
        missing = queue["missed"] > old["queue"]["missed"]
        waiting = max(queue["waiting"], queue["stored"])
        state = "away" if not each["connected"] else "SLOW" if missing else "up"
        policy = "disk" if each["durable"] else queue["policy"]
        limit = "" if each["durable"] else f"{queue['waiting_max']:,}"
        line = (
            f"{printable(each['identity'], name_width):<{name_width}} {state:>5} "
            f"{delivered:>8,.0f} {waiting:>9,} {limit:>9} {queue['missed']:>9,} {policy:>11}"
        )
        rows.append((state != "SLOW", -waiting, -delivered, line))
    return lines + [line for *_, line in sorted(rows)]


def summary(before: State, after: State) -> dict[str, Any]:
    """The rates and the state as plain objects, for --json."""
    rates = Rates.between(before, after)
    return {
        "rates": {name: getattr(rates, name) for name in Rates.__dataclass_fields__},
        "state": after,
    }


def _rate(value: float) -> str:
    return f"{value:>9,.0f}/s"


def _at_most(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return "> 5 s" if seconds == float("inf") else f"<= {seconds * 1e3:g} ms"


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (
        f"{days} d {hours:02}:{minutes:02}:{rest:02}" if days else f"{hours}:{minutes:02}:{rest:02}"
    )

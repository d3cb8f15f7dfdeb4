"""The report of a simulation, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from tidegate.simulation.clients import Tally
from tidegate.simulation.counting import counted
from tidegate.simulation.script import ScriptOutput
from tidegate.simulation.world import World

SHOWN = 5
"""The number of links and brokers that are named as the busiest."""


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """The messages on a link, in both directions."""

    a: str
    b: str
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The work of a broker."""

    name: str
    handled: int
    queue_max: int
    busy_share: float
    """The share of the simulated time in which its processor was busy."""


@dataclass(frozen=True, slots=True)
class Delays:
    """The times from publication to delivery."""

    median_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class SummaryFigures:
    """What the routing by summaries has sent. Brokers that crashed have lost their counts."""

    updates: int
    """Summaries sent, in full or as differences."""
    withdrawals: int
    bytes: int
    """The bytes of all summaries sent, without headers."""
    event_hops: int
    """Events sent to examiners and owners, one hop each as the paper counts."""
    link_hops: int
    """Copies of events on links: real hops."""
    in_vain: int
    """Events at owners that none of their subscriptions matched."""


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one run; those that `Tally` has too are explained there."""

    topology: str
    brokers: int
    routing: str
    workload: str
    seed: int
    published: int
    wanted: int
    delivered: int
    spurious: int
    refused: int
    unheard: int
    delays: Delays | None
    backlog_max: int
    messages: int
    """Messages that arrived at brokers and clients."""
    kinds: Mapping[str, int]
    """The same, by type."""
    link_messages: int
    link_bytes: int
    in_vain: int
    """Events that a broker received from a neighbour and neither delivered nor forwarded."""
    links: Sequence[LinkLoad]
    """Most messages first."""
    loads: Sequence[BrokerLoad]
    """Most messages first."""
    simulated_s: float
    wall_s: float
    messages_per_s: float
    """Simulated messages per second of real time."""
    is_scripted: bool = False
    """Whether clients followed a script; expected deliveries are not counted then."""
    script_outputs: Sequence[ScriptOutput] = ()
    """The messages that clients of a script received."""
    summaries: SummaryFigures | None = None

    def lines(self) -> Iterator[str]:
        """The messages to clients of a script, then the figures, as lines of text."""
        for each in self.script_outputs:
            yield each.line()
        for name, text in self._rows():
            yield f"{name:<14}{text}"

    def to_json(self) -> str:
        """The whole report as one line of JSON."""
        record = asdict(self)
        record["happenings"] = record.pop("script_outputs")  # the name that programs know
        return json.dumps(record, default=str)

    def loads_json(self) -> str:
        """The messages of links and brokers, as `tidegate topology --loads` reads them."""
        links = {f"{each.a}-{each.b}": each.messages for each in self.links if each.messages}
        brokers = {each.name: each.handled for each in self.loads if each.handled}
        return json.dumps({"links": links, "brokers": brokers}, indent=1) + "\n"

    def _delivered(self) -> str:
        if self.is_scripted:
            return f"{self.delivered:,}"
        return f"{self.delivered:,} of {self.wanted:,} wanted, {self.spurious:,} spurious"

    def _rows(self) -> Iterator[tuple[str, str]]:
        size = f"{counted(self.brokers, 'broker')}, {counted(len(self.links), 'link')}"
        yield "overlay", f"{self.topology}, {size}"
        clients = "scripted clients" if self.is_scripted else f"{self.workload} workload"
        yield "run", f"{self.routing} routing, {clients}, seed {self.seed}"
        yield "published", counted(self.published, "event")
        yield "delivered", self._delivered()
        if self.delays is not None:
            delays = self.delays
            yield (
                "delay",
                f"median {delays.median_ms:,.1f} ms, p99 {delays.p99_ms:,.1f} ms, "
                f"max {delays.max_ms:,.1f} ms",
            )
        if self.backlog_max:
            backlog = counted(self.backlog_max, "delivery", "deliveries")
            yield "backlog", f"up to {backlog} before one slow subscriber"
        if self.refused or self.unheard:
            yield (
                "requests",
                f"{self.refused:,} refused, {self.unheard:,} to brokers that were down",
            )
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.kinds.items())
        yield "messages", f"{self.messages:,}: {kinds}"
        traffic = f"{counted(self.link_messages, 'message')}, {counted(self.link_bytes, 'byte')}"
        yield "on links", traffic
        if self.summaries is not None:
            yield "summaries", _summaries_text(self.summaries)
        yield "in vain", f"{counted(self.in_vain, 'event')} that a broker had no use for"
        busy = (f"{each.a}-{each.b} {each.messages:,}" for each in self.links[:SHOWN])
        yield "busiest links", ", ".join(busy) or "none"
        yield "and brokers", ", ".join(_broker_text(each) for each in self.loads[:SHOWN])
        yield (
            "simulated",
            f"{self.simulated_s:,.1f} s in {self.wall_s:,.1f} s, "
            f"{self.messages_per_s:,.0f} messages/s",
        )


def _broker_text(load: BrokerLoad) -> str:
    text = f"{load.name} {load.handled:,}"
    if load.busy_share:
        text += f" (queue {load.queue_max:,}, busy {load.busy_share:.0%})"
    return text


def _summaries_text(figures: SummaryFigures) -> str:
    return (
        f"{counted(figures.updates, 'update')} of {counted(figures.bytes, 'byte')}, "
        f"{counted(figures.withdrawals, 'withdrawal')}; events took "
        f"{counted(figures.event_hops, 'hop')} over {counted(figures.link_hops, 'link')}, "
        f"{figures.in_vain:,} in vain"
    )


def summary_figures(world: World) -> SummaryFigures | None:
    """The figures of the routing by summaries; None for another routing."""
    brokers = [site.broker.summaries for site in world.sites.values()]
    summaries = [each for each in brokers if each is not None]
    if not summaries:
        return None
    sent = [exchange.counts for each in summaries for exchange in each.exchanges.values()]
    events = [each.counts for each in summaries]
    return SummaryFigures(
        updates=sum(each.full + each.differences for each in sent),
        withdrawals=sum(each.withdrawals for each in sent),
        bytes=sum(each.bytes for each in sent),
        event_hops=sum(each.to_examiners + each.to_owners for each in events),
        link_hops=sum(each.copies for each in events),
        in_vain=sum(each.in_vain for each in events),
    )


def delays_of(tally: Tally) -> Delays | None:
    """The delays of all deliveries; None if there were none."""
    ordered = sorted(tally.delays_us)
    if not ordered:
        return None
    # The nearest rank, without interpolation: every figure is a delay that occurred.
    last = len(ordered) - 1
    median, p99 = ordered[last // 2], ordered[round(0.99 * last)]
    return Delays(median / 1000, p99 / 1000, ordered[-1] / 1000)


def link_loads(world: World) -> list[LinkLoad]:
    """The links of a world, most messages first."""
    loads = []
    for link in world.topology.links:
        one, other = world.directions[link.a, link.b], world.directions[link.b, link.a]
        loads.append(
            LinkLoad(link.a, link.b, one.messages + other.messages, one.bytes + other.bytes)
        )
    return sorted(loads, key=lambda each: -each.messages)


def broker_loads(world: World) -> list[BrokerLoad]:
    """The brokers of a world, most messages first."""
    elapsed_us = max(1, world.now_us)
    loads = [
        BrokerLoad(name, site.handled, site.waiting_max, site.busy_us / elapsed_us)
        for name, site in world.sites.items()
    ]
    return sorted(loads, key=lambda each: -each.handled)

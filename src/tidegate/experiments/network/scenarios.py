"""The scenarios of `tidegate bench network`; each gives rows, with deliveries compared.

Every scenario starts brokers of its own, and ends them. Before anything is timed, all events are
published once: the pairs of an event and a subscription that come are compared with those of the
embedded engine, one by one. In the timed rounds the numbers of deliveries and matches are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from tidegate.experiments.network.broker_process import BrokerProcess
from tidegate.experiments.network.load import Load, sorted_pairs, spread
from tidegate.experiments.network.publisher import Publisher, confirmed_one_by_one
from tidegate.experiments.network.raw_client import RawClient
from tidegate.experiments.network.receivers import Count, Expect, Receivers, Update
from tidegate.experiments.progress import Progress, silent
from tidegate.matching.arrays import I64

FRAME_EVENTS = 512
"""Events in a frame of a publisher that sends as fast as it can."""
STEP_S = 0.001
"""How often a publisher with a steady rate sends."""
ROUND_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class NetworkCase:
    """How much is measured."""

    subscriptions: int = 10_000
    events: int = 50_000
    """Events of a round of throughput."""
    rounds: int = 5
    seconds: float = 4.0
    """Duration of what has a rate: latency, updates, events one by one."""
    latency_per_s: int = 20_000
    updates_per_s: int = 20_000
    publishers: int = 100
    idle: int = 10_000


@dataclass(slots=True)
class Row:
    """What was measured; rates are events a second."""

    system: str
    scenario: str
    connections: int
    median_per_s: float = 0.0
    slowest_per_s: float = 0.0
    fastest_per_s: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    updates_per_s: float = 0.0
    deliveries: int = 0
    """Deliveries of a round."""
    broker_us: float = 0.0
    """Processor time of all brokers for an event, in microseconds."""
    wrong: int = 0
    """Deliveries or matches that are missing, or too many, and pairs that differ."""
    subscribed_per_s: float = 0.0
    megabytes: float = 0.0
    """Memory of the broker, or of what was added to it."""
    note: str = ""

    def set_rates(self, rates: list[float]) -> None:
        """Take the rates of all rounds."""
        self.median_per_s = median(rates)
        self.slowest_per_s, self.fastest_per_s = min(rates), max(rates)


class _Run:
    """Brokers with the load on them, verified."""

    def __init__(self, case: NetworkCase, load: Load, brokers: list[BrokerProcess]) -> None:
        self.case, self.load, self.brokers = case, load, brokers
        self.publisher = Publisher(brokers[0].port)
        self.receivers = Receivers(brokers[-1].port, load.by_connection)
        self.pairs = load.expected_pairs()
        self.counts = load.counts(self.pairs)
        self.subscribed_s = self.receivers.wait_until_subscribed()

    @property
    def processor_s(self) -> float:
        """Processor time of all brokers so far."""
        return sum(each.processor_s for each in self.brokers)

    def close(self) -> None:
        self.receivers.close()
        self.publisher.close()

    def wrong_pairs(self, expected: I64) -> int:
        """Publish all events once; the number of pairs that differ from those expected."""
        first = self._next_number()
        deliveries, _ = self.load.counts(expected)
        self.receivers.tell(Expect(deliveries, ROUND_TIMEOUT_S, with_pairs=True))
        self.publisher.publish(self.load.events, FRAME_EVENTS)
        count = self.receivers.count()
        found = sorted_pairs(count.numbers - first, count.rows)
        if np.array_equal(found, expected):
            return count.missed
        one, other = (set(map(tuple, each.tolist())) for each in (found, expected))
        return len(one ^ other) + count.missed

    def _next_number(self) -> int:
        """The broker numbers what it is given from 1 on, and here nobody else publishes to it."""
        return self.publisher.published + 1

    def round(self) -> tuple[float, Count]:
        """Publish all events once; the rate until the last delivery has come."""
        self.receivers.tell(Expect(self.counts[0], ROUND_TIMEOUT_S))
        began = self.publisher.publish(self.load.events, FRAME_EVENTS)
        count = self.receivers.count()
        return len(self.load.events) / (count.ended - began), count

    def wrong(self, count: Count) -> int:
        """How many deliveries and matches of a round are missing or too many."""
        deliveries, matches = self.counts
        return abs(count.deliveries - deliveries) + abs(count.matches - matches) + count.missed


@contextmanager
def _running(case: NetworkCase, connections: int, brokers: int = 1) -> Iterator[_Run]:
    with ExitStack() as stack:
        line: list[BrokerProcess] = []
        for name in "abcdefgh"[:brokers]:
            line.append(stack.enter_context(BrokerProcess(name, peers=line[-1:])))
            if len(line) > 1:
                line[-1].wait_for("linked with")
        run = _Run(case, Load(case.subscriptions, connections, events=case.events), line)
        stack.callback(run.close)
        yield run


def throughput(case: NetworkCase, connections: int, progress: Progress = silent) -> Row:
    """Events a second, as many as one broker takes; deliveries on so many connections."""
    return _throughput(case, connections, 1, progress)


def line_of_three(case: NetworkCase, connections: int, progress: Progress = silent) -> Row:
    """Events a second from the first to the last of three brokers."""
    return _throughput(case, connections, 3, progress)


def _throughput(case: NetworkCase, connections: int, brokers: int, progress: Progress) -> Row:
    name = "throughput" if brokers == 1 else f"{brokers} brokers in a line"
    progress(f"{name}, {connections} connections")
    row = Row("tidegate", name, connections)
    with _running(case, connections, brokers) as run:
        row.subscribed_per_s = case.subscriptions / run.subscribed_s
        row.wrong = run.wrong_pairs(run.pairs)
        row.deliveries = run.counts[0]
        run.round()
        rates, before = [], run.processor_s
        for _ in range(case.rounds):
            rate, count = run.round()
            rates.append(rate)
            row.wrong += run.wrong(count)
        row.set_rates(rates)
        row.broker_us = (run.processor_s - before) / (case.rounds * case.events) * 1e6
        row.megabytes = run.brokers[-1].resident_bytes / 1e6
    return row


def latency(case: NetworkCase, connections: int, progress: Progress = silent) -> Row:
    """Time from the publisher to the subscriber at a steady rate."""
    progress(f"latency at {case.latency_per_s:,} events/s, {connections} connections")
    row = Row("tidegate", f"latency at {case.latency_per_s:,}/s", connections)
    with _running(case, connections) as run:
        row.wrong = run.wrong_pairs(run.pairs)
        run.receivers.tell(Expect(1 << 60, 2.0))
        run.publisher.publish_at(run.load.events, case.latency_per_s, 1.0, STEP_S)
        run.receivers.count()
        run.receivers.tell(Expect(1 << 60, case.seconds + 1.0, with_times=True))
        began = time.monotonic()
        sent = run.publisher.publish_at(run.load.events, case.latency_per_s, case.seconds, STEP_S)
        row.median_per_s = sent / (time.monotonic() - began)
        count = run.receivers.count()
        row.deliveries = count.deliveries
        row.wrong += abs(count.deliveries - _deliveries_of(run, sent)) + count.missed
        row.p50_ms, row.p99_ms = (spread(count.latencies_us, share) for share in (50, 99))
    return row


def _deliveries_of(run: _Run, sent: int) -> int:
    """Deliveries of the first events of the load, which begins again when it is used up."""
    whole, rest = divmod(sent, len(run.load.events))
    return whole * run.counts[0] + run.load.counts(run.pairs[run.pairs[:, 0] < rest])[0]


def with_updates(case: NetworkCase, connections: int, progress: Progress = silent) -> Row:
    """Throughput while parameters are updated; afterwards the answers are compared again."""
    progress(f"{case.updates_per_s:,} updates/s beside, {connections} connections")
    row = Row("tidegate", f"with {case.updates_per_s:,} updates/s", connections)
    with _running(case, connections) as run:
        row.wrong = run.wrong_pairs(run.pairs)
        run.round()
        alone = median(run.round()[0] for _ in range(case.rounds))
        run.receivers.tell(Update(case.updates_per_s))
        began, sent = time.monotonic(), 0
        while time.monotonic() < began + case.seconds:
            run.publisher.publish(run.load.events, FRAME_EVENTS)
            run.publisher.wait_until_taken()
            sent += len(run.load.events)
        row.median_per_s = sent / (time.monotonic() - began)
        run.receivers.tell(Expect(1 << 60, 1.0))
        updated = run.receivers.updated()
        row.deliveries = run.receivers.count().deliveries
        row.updates_per_s = updated.updates / updated.seconds
        row.note = f"{alone:,.0f} events/s without updates"
        row.wrong += run.wrong_pairs(run.load.expected_pairs(updated.least))
    return row


def confirmed(case: NetworkCase, connections: int, progress: Progress = silent) -> list[Row]:
    """Confirmed publishing: in batches from one publisher, and one by one from many."""
    progress("confirmed publishing")
    in_batches = Row("tidegate", "confirmed, in batches", connections)
    singly = Row("tidegate", f"confirmed, one by one, {case.publishers} publishers", connections)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tidegate-bench-")))
        broker = stack.enter_context(BrokerProcess(data=folder / "store"))
        run = _Run(case, Load(case.subscriptions, connections, events=case.events), [broker])
        stack.callback(run.close)
        in_batches.wrong = run.wrong_pairs(run.pairs)
        rates = []
        for _ in range(case.rounds):
            run.receivers.tell(Expect(run.counts[0], ROUND_TIMEOUT_S))
            began = run.publisher.publish(run.load.events, FRAME_EVENTS, confirm=True)
            rates.append(len(run.load.events) / (run.publisher.wait_until_confirmed() - began))
            in_batches.wrong += run.wrong(run.receivers.count())
        in_batches.set_rates(rates)
        in_batches.deliveries = run.counts[0]
        singly.set_rates(
            [
                confirmed_one_by_one(broker.port, run.load.events, case.publishers, case.seconds)
                for _ in range(case.rounds)
            ]
        )
    return [in_batches, singly]


def idle(case: NetworkCase, progress: Progress = silent) -> Row:
    """Memory of a broker with connections that do nothing; it serves others meanwhile."""
    progress(f"{case.idle:,} idle connections")
    row = Row("tidegate", "idle connections", case.idle)
    with BrokerProcess() as broker:
        clients = [RawClient(broker.port, "one")]
        before = broker.resident_bytes
        began = time.monotonic()
        clients += [RawClient(broker.port, f"idle-{at}") for at in range(case.idle - 1)]
        row.median_per_s = len(clients) / (time.monotonic() - began)
        row.megabytes = (broker.resident_bytes - before) / 1e6
        row.note = f"{1e3 * row.megabytes / len(clients):.1f} KB each; rate: connections/s"
        for each in clients:
            each.socket.close()
    return row


Scenario = Callable[[NetworkCase, int, Progress], Row]

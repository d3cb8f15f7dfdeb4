"""The counters of a broker as Prometheus metrics.

They are read when somebody asks for them. Names follow Prometheus: counters end in `_total`, units
are part of the name. docs/operations.md lists them; a test compares that list with what is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from tidegate.network.observing.counters import Histogram
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.links import LINK_QUEUE


class BrokerMetrics(Collector):
    """Reads the counters of a broker."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def page(self, accept: str) -> tuple[bytes, str]:
        """The metrics in the form that a scraper accepts, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def describe(self) -> Iterable[Metric]:
        """Nothing: else the registry would collect once when it begins."""
        return []

    def collect(self) -> Iterable[Metric]:
        """All metrics of the broker."""
        server = self._server
        info = {"broker": server.settings.name, "software": server.software}
        yield InfoMetricFamily("tidegate_broker", "The broker and its software.", info)
        yield from self._events()
        yield from self._clients()
        yield from self._links()
        yield from self._turns()
        if server.store is not None:
            yield from self._store()

    def _events(self) -> Iterable[Metric]:
        counted = self._server.counters
        yield _by("tidegate_events_received", "Events that have come.", "sender",
                  {"client": counted.published, "broker": counted.notified})  # fmt: skip
        yield _count("tidegate_events_confirmed", "Events of clients that were confirmed.",
                     counted.confirmed)  # fmt: skip
        yield _count("tidegate_events_refused", "Events of clients that were refused.",
                     counted.refused)  # fmt: skip
        yield _by("tidegate_events_passed_on", "Events passed on to neighbours.", "neighbour",
                  counted.passed_on)  # fmt: skip
        yield _count("tidegate_events_dropped",
                     "Unconfirmed events for neighbours that were not connected.",
                     counted.dropped)  # fmt: skip
        yield _count("tidegate_deliveries", "Events given to clients.", counted.delivered)
        yield _by("tidegate_deliveries_missed", "Deliveries dropped, by slow policy.", "policy",
                  counted.missed)  # fmt: skip

    def _clients(self) -> Iterable[Metric]:
        server, counted = self._server, self._server.counters
        yield _count("tidegate_connections_accepted", "Connections since the start.",
                     counted.connections)  # fmt: skip
        yield _count("tidegate_connections_refused", "Handshakes that were refused.",
                     counted.refused_connections)  # fmt: skip
        yield _gauge("tidegate_connections", "Connections now.", len(server.connections))
        clients = GaugeMetricFamily("tidegate_clients", "Clients now.", labels=["state"])
        sessions = list(server.sessions.values())
        connected = sum(each.connection is not None for each in sessions)
        clients.add_metric(["connected"], connected)
        clients.add_metric(["away"], len(sessions) - connected)
        yield clients
        yield _gauge("tidegate_subscription_filters", "Distinct filters in the routing table.",
                     len(server.broker.subscriptions.poset))  # fmt: skip
        yield _gauge("tidegate_delivery_queue_events", "Deliveries that wait in memory.",
                     sum(len(each.deliveries) for each in sessions))  # fmt: skip
        yield _gauge("tidegate_delivery_queue_events_max",
                     "Deliveries that wait in memory for one client, the most.",
                     max((len(each.deliveries) for each in sessions), default=0))  # fmt: skip
        yield _count("tidegate_publishers_held_back", "Times that a subscriber held back others.",
                     counted.held_back)  # fmt: skip
        yield _by("tidegate_requests", "Requests of clients.", "type", counted.requests)
        yield _count("tidegate_requests_refused", "Requests of clients that were refused.",
                     counted.refused_requests)  # fmt: skip

    def _links(self) -> Iterable[Metric]:
        up = GaugeMetricFamily("tidegate_link_up", "Whether a neighbour is connected.",
                               labels=["neighbour"])  # fmt: skip
        waiting = GaugeMetricFamily("tidegate_link_unacknowledged_messages",
                                    "Messages that a neighbour has not acknowledged.",
                                    labels=["neighbour"])  # fmt: skip
        stored = GaugeMetricFamily("tidegate_link_stored_events",
                                   "Events on disk that a neighbour has not acknowledged.",
                                   labels=["neighbour"])  # fmt: skip
        store = self._server.store
        for peer, link in self._server.links.by_peer.items():
            up.add_metric([peer], link.connection is not None)
            waiting.add_metric([peer], len(link.session))
            if store is not None:
                stored.add_metric([peer], store.length(store.queue(LINK_QUEUE, peer)))
        yield up
        yield waiting
        yield stored

    def _turns(self) -> Iterable[Metric]:
        counted = self._server.counters
        yield _count("tidegate_received_bytes", "Bytes of all connections.",
                     counted.received_bytes)  # fmt: skip
        yield _count("tidegate_sent_bytes", "Bytes to all connections.", counted.sent_bytes)
        yield _histogram("tidegate_turn_duration_seconds",
                         "How long turns took, the store included.", counted.turns)  # fmt: skip
        yield _histogram("tidegate_turn_events", "Events of turns that had some.",
                         counted.turn_events)  # fmt: skip
        yield _gauge("tidegate_loop_delay_seconds", "How late the last housekeeping was.",
                     counted.stood_still_s)  # fmt: skip

    def _store(self) -> Iterable[Metric]:
        store = self._server.store
        assert store is not None
        yield _histogram("tidegate_store_commit_duration_seconds",
                         "How long turns waited for the disk.",
                         self._server.counters.commits)  # fmt: skip
        yield _count("tidegate_store_commits", "Commits in the life of the store.", store.commits)
        yield _gauge("tidegate_store_bytes", "Room that the store takes.", store.used_bytes())
        yield _gauge("tidegate_store_limit_bytes", "Room that the store may take.",
                     store.retention.bytes_max)  # fmt: skip
        yield _gauge("tidegate_store_full", "Whether the store refuses events.", store.is_full)
        yield _count("tidegate_store_damaged_rows", "Rows set aside since the start.",
                     store.damaged)  # fmt: skip


def _count(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value)


def _by(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _histogram(name: str, text: str, histogram: Histogram) -> Metric:
    return HistogramMetricFamily(name, text, histogram.cumulative(), histogram.sum)

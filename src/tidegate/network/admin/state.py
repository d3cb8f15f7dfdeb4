"""The state of a broker as plain objects for JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from datetime import UTC, datetime
from heapq import nlargest
from typing import Any

from tidegate.network.observing.counters import Counters, Histogram
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.links import LINK_QUEUE, Link
from tidegate.network.server.sessions import ClientSession
from tidegate.routing.overlay.domains import Domain

CLIENTS_MAX = 1_000
"""Clients that are listed one by one: those with the most deliveries waiting."""


def broker_state(server: BrokerServer, clients_max: int = CLIENTS_MAX) -> dict[str, Any]:
    """What a broker knows of itself now."""
    sessions = list(server.sessions.values())
    listed = nlargest(clients_max, sessions, key=lambda each: _waiting(server, each))
    settings, broker = server.settings, server.broker
    return {
        "broker": settings.name,
        "software": server.software,
        "started": _time(server.started_us),
        "time": _time(server.now_us()),
        "uptime_s": round((server.now_us() - server.started_us) / 1e6, 3),
        "routing": settings.routing,
        "is_draining": server.is_draining,
        "connections": len(server.connections),
        "clients": {
            "total": len(sessions),
            "connected": sum(each.connection is not None for each in sessions),
            "durable": sum(each.is_durable for each in sessions),
            "listed": [_client(server, each) for each in listed],
        },
        "subscriptions": {
            "filters": len(broker.subscriptions.poset),
            "named": sum(broker.named.count(each.client) for each in sessions),
            "advertisements": len(broker.advertisements.poset),
        },
        "neighbours": [_neighbour(server, link) for link in server.links.by_peer.values()],
        "domains": [_domain(each) for each in broker.domains.by_name.values()],
        "store": _store(server),
        "counters": _counters(server),
    }


def _time(time_us: int) -> str:
    time = datetime.fromtimestamp(time_us / 1e6, UTC)
    return time.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _waiting(server: BrokerServer, session: ClientSession) -> int:
    stored = 0
    if server.store is not None and session.queue is not None:
        stored = server.store.length(session.queue)
    return max(len(session.deliveries), stored)


def _client(server: BrokerServer, session: ClientSession) -> dict[str, Any]:
    queue, broker, connection = session.deliveries, server.broker, session.connection
    return {
        "identity": session.client.identity,
        "connected": connection is not None,
        "address": None if connection is None else connection.address,
        "durable": session.is_durable,
        "subscriptions": {
            "named": broker.named.count(session.client),
            "unnamed": len(broker.subscriptions.items_of(session.client)),
            "patterns": len(session.patterns),
        },
        "queue": {
            "waiting": len(queue),
            "waiting_max": queue.events_max,
            "stored": 0 if session.queue is None else _waiting(server, session),
            "credit": queue.credit_events,
            "policy": queue.policy,
            "missed": queue.missed_total,
        },
        "delivered": session.delivered,
    }


def _neighbour(server: BrokerServer, link: Link) -> dict[str, Any]:
    stored, peer = 0, link.peer or ""
    if server.store is not None and link.peer is not None:
        stored = server.store.length(server.store.queue(LINK_QUEUE, peer))
    connection = link.connection
    domain = server.broker.domains.domain_of.get(peer)
    return {
        "name": link.peer,
        "connected": connection is not None,
        "address": link.address or (None if connection is None else connection.address),
        "connects": "this broker" if link.is_ours else "the neighbour",
        "is_neighbour": domain is not None,
        "unacknowledged": len(link.session),
        "stored": stored,
        "filters": len(server.broker.subscriptions.nodes_of_peer(peer)),
    }


def _domain(domain: Domain) -> dict[str, Any]:
    announced = domain.announcements()
    return {
        "name": domain.name,
        "architecture": domain.architecture.value,
        "master": domain.master,
        "brokers": sorted({domain.me, *(each.broker for each in announced)}),
        "links": [
            {"a": each.broker, "b": neighbour, "cost_us": cost_us}
            for each in sorted(announced, key=lambda each: each.broker)
            for neighbour, cost_us in each.costs_us
            if each.broker < neighbour and neighbour in domain.graph.neighbours(each.broker)
        ],
    }


def _store(server: BrokerServer) -> dict[str, Any] | None:
    store = server.store
    if store is None:
        return None
    return {
        "folder": str(store.folder),
        "bytes": store.used_bytes(),
        "bytes_max": store.retention.bytes_max,
        "keep_s": store.retention.keep.total_seconds(),
        "commits": store.commits,
        "damaged_rows": store.damaged,
        "is_full": store.is_full,
        "failure": None if store.failure is None else str(store.failure),
    }


def _counters(server: BrokerServer) -> dict[str, Any]:
    counted = {each.name: getattr(server.counters, each.name) for each in fields(Counters)}
    histograms = {name: each for name, each in counted.items() if isinstance(each, Histogram)}
    return {
        **{name: each for name, each in counted.items() if name not in histograms},
        **{name: _summary(each) for name, each in histograms.items()},
    }


def _summary(histogram: Histogram) -> dict[str, Any]:
    quantiles: Iterable[tuple[str, float | None]] = (
        (f"p{round(100 * share)}", histogram.quantile(share)) for share in (0.5, 0.99)
    )
    return {
        "count": histogram.count,
        "sum": round(histogram.sum, 6),
        "buckets": dict(histogram.cumulative()),
        # JSON has no infinity: a number above the last bound is left out.
        **{name: each for name, each in quantiles if each not in (None, float("inf"))},
    }

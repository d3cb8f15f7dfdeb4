"""Whether a broker lives, and whether it is ready for clients."""

from __future__ import annotations

from tidegate.network.server.broker_server import BrokerServer


def unready(server: BrokerServer) -> list[str]:
    """Why a broker should get no clients now; nothing if it should.

    A neighbour that this broker has to connect to may be away, if it was there before: its events
    wait for it. One that was never reached makes the broker a network of its own.
    """
    reasons = []
    if server.is_draining:
        reasons.append("the broker drains")
    if not server.is_alive:
        reasons.append("the broker has failed")
    if server.store is not None:
        if server.store.failure is not None:
            reasons.append(f"the store has failed: {server.store.failure}")
        elif server.store.is_full:
            reasons.append("the store is full; it takes no confirmed events")
    for address in server.settings.peers:
        at = f"{address.host}:{address.port}"
        peer = server.durable_links.peer_at(at)
        if peer is None or peer not in server.broker.domains.domain_of:
            reasons.append(f"the neighbour at {at} was never reached")
    return reasons

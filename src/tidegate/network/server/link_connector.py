"""Makes the connections of links that this broker is to make, again and again."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from functools import partial
from typing import TYPE_CHECKING

from tidegate.network.server.served_connection import ServedConnection
from tidegate.network.server.settings import PeerAddress
from tidegate.network.wire.connection import Connection

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.links import Link

_log = logging.getLogger(__name__)

FIRST_S = 0.05
LONGEST_S = 10.0


async def keep_connected(server: BrokerServer, address: PeerAddress) -> None:
    """Connect to a neighbour, and again whenever the connection is lost, with longer and longer
    pauses while that fails."""
    at = f"{address.host}:{address.port}"
    known = server.durable_links.peer_at(at)
    link = server.links.by_peer.get(known or "") or server.links.new_link()
    link.is_ours, link.address = True, at
    auth, tls = server.settings.auth, server.settings.tls
    token = None if auth is None else auth.own_token()
    context = None
    if address.tls:
        context = ssl.create_default_context() if tls is None else tls.peer_context()
    pause_s = FIRST_S
    while _is_wanted(link):
        hello = link.hello(
            server.settings.name,
            server.software,
            server.settings.limits.heartbeat_ms,
            address.token or token,
        )
        connection = ServedConnection(server, Connection.connecting(hello))
        connection.link = link
        try:
            async with asyncio.timeout(LONGEST_S):
                await server.loop.create_connection(
                    partial(_same, connection), address.host, address.port, ssl=context
                )
        except ssl.SSLCertVerificationError as error:
            _log.warning("%s is not trusted: %s", at, error.verify_message)
        except (OSError, TimeoutError) as error:
            _log.info("%s:%d cannot be reached: %s", address.host, address.port, error)
        else:
            if not _is_wanted(link):  # any more
                connection.abort()
                break
            connection.write_out()
            await connection.lost.wait()
            if connection.heartbeat_s:
                pause_s = FIRST_S
        # At random, so that brokers that have lost each other do not meet again and again.
        await asyncio.sleep(pause_s * (1 - random.random() / 2))
        pause_s = min(LONGEST_S, 2 * pause_s)
    # The neighbour is gone for good. A task of the broker that ends is an error, so this one waits.
    await asyncio.Event().wait()


def _is_wanted(link: Link) -> bool:
    return not link.is_forgotten


def _same(connection: ServedConnection) -> ServedConnection:
    return connection

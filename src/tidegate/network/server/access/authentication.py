"""Authentication: whether whoever says hello is who it claims to be.

Rules.

(1) An identity is proved by everything that its entry names: a token, a certificate, or both.
(2) An identity may go on after a slash: `desk-7/monitor` is proved as `desk-7`, and has its grants.
    So one token serves several processes of a client. Brokers have no slash in their names.
(3) All failures sound alike, and take alike long; only the log of the broker says more.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

from tidegate.errors import AccessError, OverloadedError
from tidegate.network.server.access.settings import AuthSettings, IdentitySettings
from tidegate.network.server.access.tokens import HashedToken, TokenChecker
from tidegate.network.wire.handshake import Hello

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.served_connection import ServedConnection

_ROLES = {"client": "client", "broker": "peer"}


class Authentication:
    """Proves identities, as the settings of a broker ask for."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        settings = server.settings.auth
        tls = server.settings.tls
        self._needs_certificate = tls is not None and tls.require_certificates
        self._entries = {} if settings is None else entries_of(settings)
        self._is_on = settings is not None
        self._checker = TokenChecker()
        self._verdicts: dict[ServedConnection, bool | OverloadedError] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def proves(self, connection: ServedConnection, hello: Hello) -> bool:
        """Whether a hello is proved; raises AccessError or OverloadedError if it is not.

        False if its token is still being checked; then the hello will arrive once more.
        """
        if connection.is_local:
            return True
        if self._needs_certificate and not connection.certificate_names:
            raise AccessError("a certificate is needed that the broker's authority has signed")
        if not self._is_on:
            return True
        entry = self._entries.get(principal(hello.identity))
        hashed = None if entry is None or entry.token is None else HashedToken.parse(entry.token)
        verdict = self._verdicts.pop(connection, None)
        if isinstance(verdict, OverloadedError):
            raise verdict
        if verdict is None and hello.token is not None:
            if hashed is None or not self._checker.is_known(hello.token, hashed):
                self._check(connection, hello, hashed)
                return False
            verdict = True
        if entry is None or not self._is_proved(entry, connection, hello, verdict is True):
            raise AccessError(
                f"{hello.identity!r} is not admitted: the token or certificate is missing or wrong"
            )
        return True

    def _is_proved(
        self, entry: IdentitySettings, connection: ServedConnection, hello: Hello, token: bool
    ) -> bool:
        return (
            (entry.token is None or token)
            and (entry.certificate is None or entry.certificate in connection.certificate_names)
            and entry.role == _ROLES[hello.role]
            and (entry.role == "client" or hello.identity == entry.name)
        )

    def _check(
        self, connection: ServedConnection, hello: Hello, hashed: HashedToken | None
    ) -> None:
        task = self._server.loop.create_task(self._checked(connection, hello, hashed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _checked(
        self, connection: ServedConnection, hello: Hello, hashed: HashedToken | None
    ) -> None:
        verdict: bool | OverloadedError
        try:
            verdict = await self._checker.is_right(hello.token or "", hashed)
        except OverloadedError as error:
            verdict = error
        if not connection.is_lost and not connection.wire.is_closed:
            self._verdicts[connection] = verdict
            connection.arrived.appendleft(hello)
            self._server.turns.wake(connection)

    @property
    def is_busy(self) -> bool:
        """Whether tokens are being checked."""
        return bool(self._tasks)

    def ended(self, connection: ServedConnection) -> None:
        """Forget a connection."""
        self._verdicts.pop(connection, None)

    def close(self) -> None:
        """Check no more tokens."""
        for task in self._tasks:
            task.cancel()
        self._checker.close()


def entries_of(settings: AuthSettings) -> dict[str, IdentitySettings]:
    """The entries of identities by name."""
    return {each.name: each for each in settings.identities}


def principal(identity: str) -> str:
    """The name under which an identity is proved, and has its grants.

    >>> principal("desk-7/monitor")
    'desk-7'
    """
    return identity.partition("/")[0]


def certificate_names(certificate: Any) -> frozenset[str]:
    """The names in a verified certificate, as `ssl` gives it: of its subject and alternatives."""
    if not certificate:
        return frozenset()
    common = [
        value
        for part in certificate.get("subject", ())
        for name, value in part
        if name == "commonName"
    ]
    kinds = ("DNS", "email", "URI", "IP Address")
    alternative = [v for kind, v in certificate.get("subjectAltName", ()) if kind in kinds]
    return frozenset([*common, *alternative])


def names_of_transport(transport: asyncio.BaseTransport) -> frozenset[str]:
    """The names in the certificate of whoever has connected; none without one."""
    session: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    return certificate_names(None if session is None else session.getpeercert())

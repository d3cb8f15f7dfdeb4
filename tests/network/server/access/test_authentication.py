"""Who is admitted to a broker, over real sockets and real TLS."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

import tidegate
from support.certificates import Authority
from support.wire_client import WireClient, running
from tidegate.errors import AccessError, ConnectionLostError, NetworkError, ProtocolError
from tidegate.network.server.access.authentication import certificate_names, principal
from tidegate.network.server.access.settings import AuthSettings, IdentitySettings, TlsSettings
from tidegate.network.server.access.tokens import HashedToken
from tidegate.network.server.settings import BrokerSettings, ClientLimits, PeerAddress
from tidegate.network.wire.handshake import Goodbye, Welcome

ANN, BOB, BROKER = "token of ann", "token of bob", "token of b"


def identity(name: str, token: str | None = None, **more: Any) -> IdentitySettings:
    hashed = None if token is None else str(HashedToken.of(token))
    return IdentitySettings(name, token=hashed, **more)


AUTH = AuthSettings(
    identities=(
        identity("ann", ANN),
        identity("bob", BOB),
        identity("b", BROKER, role="peer"),
        identity("cert", certificate="cert.name"),
        identity("both", "token of both", certificate="both.name"),
    )
)


def test_names_in_a_certificate() -> None:
    certificate = {
        "subject": ((("organizationName", "o"),), (("commonName", "ann"),)),
        "subjectAltName": (("DNS", "a.org"), ("URI", "spiffe://a"), ("othername", "x")),
    }
    assert certificate_names(certificate) == {"ann", "a.org", "spiffe://a"}
    assert certificate_names(None) == certificate_names({}) == frozenset()
    assert [principal(each) for each in ("a", "a/b/c", "/a")] == ["a", "a", ""]


def test_tokens_admit_those_whose_they_are(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def refusal(port: int, name: str, token: str | None, **fields: Any) -> str:
        client = await WireClient.connect(port, name, token=token, wait=False, **fields)
        goodbye = await client.next(Goodbye)
        await client.closed()
        assert (goodbye.problem.code, goodbye.retry_ms) == ("access", None)
        return goodbye.problem.reason.removeprefix(repr(name))

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, auth=AUTH)) as server:
            for _ in range(2):  # the second time the token is known already
                for name in ("ann", "ann/monitor", "ann/ /"):
                    client = await WireClient.connect(server.port, name, token=ANN)
                    await client.close()
            refusals = [
                await refusal(server.port, "ann", BOB),
                await refusal(server.port, "ann", ANN + " "),
                await refusal(server.port, "ann", ""),
                await refusal(server.port, "ann", None),
                await refusal(server.port, "annie", ANN),
                await refusal(server.port, "Ann", ANN),
                await refusal(server.port, "ann\0", ANN),
                await refusal(server.port, "/ann", ANN),
                await refusal(server.port, "ann", BROKER, role="broker"),
                await refusal(server.port, "ann", ANN, role="broker"),
                await refusal(server.port, "b", BROKER),
                await refusal(server.port, "b/x", BROKER, role="broker"),
                await refusal(server.port, "cert", ANN),
                await refusal(server.port, "both", "token of both"),
            ]
            # all alike, so that nobody learns which identities there are
            assert set(refusals) == {
                " is not admitted: the token or certificate is missing or wrong"
            }
            assert server.counters.refused_connections == len(refusals)

    asyncio.run(main())
    assert ANN not in caplog.text
    assert BOB not in caplog.text


def test_a_client_that_is_refused_is_told_at_once_and_keeps_its_token_to_itself() -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0, auth=AUTH)) as server:
            url = f"tidegate://127.0.0.1:{server.port}"
            with pytest.raises(AccessError, match="'ann' is not admitted") as refused:
                async with tidegate.connect(url, identity="ann", token="s3cret"):
                    pass
            assert "s3cret" not in str(refused.value)
            async with tidegate.connect(url, identity="ann", token=ANN) as client:
                await client.publish({"price": 1})
                assert ANN not in repr(client)

    asyncio.run(main())


def test_nothing_is_done_for_a_client_before_its_token_is_checked() -> None:
    """Requests that follow a hello at once break the protocol, whatever the token is."""

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, auth=AUTH)) as server:
            client = await WireClient.connect(server.port, "ann", token=ANN, wait=False)
            client.write(bytes.fromhex("00000001 04"))
            goodbye = await client.next(Goodbye)
            assert goodbye.problem.code == "protocol"
            await client.closed()
            assert server.sessions == {}

    asyncio.run(main())


def test_many_tokens_at_once_are_refused_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.network.server.access.tokens.WAITING_MAX", 2)

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, auth=AUTH)) as server:
            clients = [
                await WireClient.connect(server.port, f"x{n}", token="no", wait=False)
                for n in range(40)
            ]
            goodbyes = [await each.next(Goodbye) for each in clients]
            codes = {each.problem.code for each in goodbyes}
            assert codes <= {"access", "overloaded"}
            assert all((e.retry_ms is None) == (e.problem.code == "access") for e in goodbyes)

    asyncio.run(main())


def test_a_client_that_leaves_while_its_token_is_checked_leaves_nothing() -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0, auth=AUTH)) as server:
            for _ in range(10):
                client = await WireClient.connect(server.port, "ann", token="no", wait=False)
                client.abort()
            async with asyncio.timeout(60):
                while server.connections or server.authentication.is_busy:
                    await asyncio.sleep(0.01)
            assert len(server.entrance) == 0

    asyncio.run(main())


def test_certificates_prove_identities(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    tls = TlsSettings(authority.sign("broker"), ca=authority.file)
    own, other = authority.sign("cert.name"), authority.sign("other.name")
    both, expired = authority.sign("both.name"), authority.sign("cert.name", is_expired=True)
    foreign = stranger.sign("cert.name")

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, auth=AUTH, tls=tls)) as server:
            url = f"tidegates://localhost:{server.port}"

            async def attempt(
                name: str, file: Path | None, token: str | None = None, *, timeout: float = 60
            ) -> None:
                context = authority.client(file)
                client = tidegate.connect(
                    url, identity=name, tls=context, token=token, timeout=timeout
                )
                async with client:
                    await client.publish({"price": 1})

            await attempt("cert", own)
            await attempt("cert/2", own)
            await attempt("both", both, "token of both")
            await attempt("ann", other, ANN)  # a certificate more does no harm
            for name, file, token in (
                ("cert", other, None), ("cert", None, None), ("both", both, None),
                ("both", own, "token of both"), ("both", None, "token of both"),
                ("ann", own, None), ("cert.name", own, None),
            ):  # fmt: skip
                with pytest.raises(AccessError, match="is not admitted"):
                    await attempt(name, file, token)
            for file in (expired, foreign):
                # TLS itself breaks off; the log of the broker says why
                with pytest.raises(ConnectionLostError, match=r"against a certificate|did not"):
                    await attempt("cert", file, timeout=0.5)

    asyncio.run(main())


def test_the_log_says_why_a_certificate_was_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    tls = TlsSettings(authority.sign("broker"), ca=authority.file)
    expired = authority.sign("cert.name", is_expired=True)

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, auth=AUTH, tls=tls)) as server:
            context = authority.client(expired)
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                reader, writer = await asyncio.open_connection(
                    "localhost", server.port, ssl=context
                )
                assert await reader.read() == b""
                writer.transport.abort()
            async with asyncio.timeout(60):
                while not server.counters.refused_connections:
                    await asyncio.sleep(0.01)
            assert len(server.entrance) == 0

    asyncio.run(main())
    assert "its certificate is not trusted: certificate has expired" in caplog.text


def test_a_certificate_can_be_required_of_all(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = TlsSettings(authority.sign("broker"), ca=authority.file, require_certificates=True)

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, tls=tls)) as server:
            url = f"tidegates://127.0.0.1:{server.port}"
            with pytest.raises(AccessError, match="a certificate is needed"):
                async with tidegate.connect(url, tls=authority.client()):
                    pass
            async with tidegate.connect(url, tls=authority.client(authority.sign("any"))) as ann:
                await ann.publish({"price": 1})

    asyncio.run(main())


def test_an_untrusted_or_expired_broker_is_an_error_at_once(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def main(certificate: Path, context: ssl.SSLContext, reason: str) -> None:
        tls = TlsSettings(certificate)
        async with running(BrokerSettings("a", port=0, tls=tls)) as server:
            url = f"tidegates://localhost:{server.port}"
            with pytest.raises(NetworkError, match=reason) as refused:
                async with tidegate.connect(url, tls=context):
                    pass
            assert not isinstance(refused.value, ConnectionLostError)

    stranger = Authority(tmp_path, "stranger")
    asyncio.run(main(authority.sign("b"), stranger.client(), "is not trusted: unable to get local"))
    expired = authority.sign("c", is_expired=True)
    asyncio.run(main(expired, authority.client(), "is not trusted: certificate has expired"))


def test_a_client_without_tls_hears_that_the_address_speaks_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = TlsSettings(Authority(tmp_path).sign("broker"))

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, tls=tls)) as server:
            url = f"tidegate://127.0.0.1:{server.port}"
            with pytest.raises(ProtocolError, match="this address speaks TLS: use tidegates://"):
                async with tidegate.connect(url):
                    pass
            assert len(server.entrance) == 0

    asyncio.run(main())
    assert "was refused: speaks no TLS" in caplog.text


def test_a_client_with_tls_hears_that_the_address_does_not_speak_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)

    async def main() -> None:
        async with running(BrokerSettings("a", port=0)) as server:
            url = f"tidegates://127.0.0.1:{server.port}"
            with pytest.raises(NetworkError, match="speaks no TLS; if it need not, use tidegate:/"):
                async with tidegate.connect(url, tls=authority.client()):
                    pass

    asyncio.run(main())
    assert "is the peer speaking TLS, and this side does not?" in caplog.text


def test_who_never_finishes_the_handshake_is_closed(tmp_path: Path) -> None:
    """Silent, or in the middle of TLS: after the time-out nothing is left."""
    tls = TlsSettings(Authority(tmp_path).sign("broker"))
    limits = ClientLimits(handshake_s=0.3)

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, tls=tls, limits=limits)) as server:
            silent, silent_writer = await asyncio.open_connection("127.0.0.1", server.port)
            half, half_writer = await asyncio.open_connection("127.0.0.1", server.port)
            half_writer.write(b"\x16\x03\x01\x02\x00\x01")
            async with asyncio.timeout(60):
                for reader in (silent, half):
                    with contextlib.suppress(ConnectionError):
                        assert await reader.read() == b""
                while len(server.entrance):
                    await asyncio.sleep(0.01)
            assert server.counters.refused_connections == 2
            silent_writer.close()
            half_writer.close()

    asyncio.run(main())


@pytest.mark.parametrize("with_tls", [False, True])
def test_brokers_prove_who_they_are_to_each_other(tmp_path: Path, with_tls: bool) -> None:
    authority = Authority(tmp_path)
    (tmp_path / "token").write_text(BROKER)
    tls_a = TlsSettings(authority.sign("a"), ca=authority.file) if with_tls else None
    tls_b = TlsSettings(authority.sign("b"), ca=authority.file) if with_tls else None
    own = AuthSettings(token_file=tmp_path / "token")

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, auth=AUTH, tls=tls_a)) as a:
            peers = (PeerAddress("localhost", a.port, tls=with_tls),)
            async with running(BrokerSettings("b", port=0, auth=own, tls=tls_b, peers=peers)) as b:
                async with asyncio.timeout(60):
                    while "b" not in a.links.by_peer or "a" not in b.links.by_peer:
                        await asyncio.sleep(0.01)
            # another name with the same token, and a token that is that of a client
            for name, token in (("c", BROKER), ("b", ANN)):
                (tmp_path / "token").write_text(token)
                wrong = BrokerSettings(name, port=0, auth=own, tls=tls_b, peers=peers)
                before = a.counters.refused_connections
                async with running(wrong), asyncio.timeout(60):
                    while a.counters.refused_connections == before:
                        await asyncio.sleep(0.01)
            assert "c" not in a.links.by_peer

    asyncio.run(main())


def test_a_session_is_not_taken_over_without_the_token() -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0, auth=AUTH)) as server:
            ann = await WireClient.connect(server.port, "ann", token=ANN, session=7)
            thief = await WireClient.connect(server.port, "ann", token=BOB, session=7, wait=False)
            assert (await thief.next(Goodbye)).problem.code == "access"
            ann.publish({"price": 1})
            again = await WireClient.connect(server.port, "ann", token=ANN, session=7, wait=False)
            assert (await again.next(Welcome)).is_resumed

    asyncio.run(main())

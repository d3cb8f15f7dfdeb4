from __future__ import annotations

from pathlib import Path

from support.certificates import Authority
from tidegate.network.server.access.exposure import exposures
from tidegate.network.server.access.settings import AuthSettings, TlsSettings
from tidegate.network.server.settings import BrokerSettings, PeerAddress


def test_what_others_may_see(tmp_path: Path) -> None:
    key, token = Authority(tmp_path).sign("a"), tmp_path / "token"
    token.write_text("secret")
    for file in (key, token):
        file.chmod(0o640)
    peers = (PeerAddress("192.0.2.1", 1), PeerAddress("192.0.2.1", 2, tls=True),
             PeerAddress("127.0.0.1", 3))  # fmt: skip
    auth = AuthSettings(token_file=token)
    found = exposures(BrokerSettings("a", auth=auth, tls=TlsSettings(key), peers=peers))
    assert found == [
        f"others may read {key}: chmod 600 {key}",
        f"others may read {token}: chmod 600 {token}",
        "the token for 192.0.2.1:1 crosses the network in the clear; use tidegates://",
    ]
    token.chmod(0o600)
    assert exposures(BrokerSettings("a", "0.0.0.0", auth=auth)) == [
        "tokens cross the network in the clear; give the file a table [tls]"
    ]
    assert exposures(BrokerSettings("a", auth=auth)) == []
    assert exposures(BrokerSettings("a", "0.0.0.0", without_authentication=True)) == []

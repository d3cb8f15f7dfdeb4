from __future__ import annotations

from pathlib import Path

import pytest

from support.certificates import Authority
from tidegate.errors import SettingsError
from tidegate.network.server.access.settings import (
    AuthSettings,
    IdentitySettings,
    TlsSettings,
    check_name,
    read_token,
    readable_by_others,
)
from tidegate.network.server.access.tokens import HashedToken
from tidegate.network.server.configuration.broker_file import read_broker_file


def test_the_tables_of_a_file(tmp_path: Path) -> None:
    Authority(tmp_path).sign("broker")
    hashed = HashedToken.of("x")
    (tmp_path / "broker.toml").write_text(
        f"""
        [broker]
        name = "a"
        listen = "0.0.0.0:0"
        [tls]
        certificate = "authority-broker.pem"
        ca = "authority.pem"
        [auth]
        wide = "narrow"
        token_file = "token"
        [[auth.identities]]
        name = "ann"
        token = "{hashed}"
        subscribe = "price > 0"
        publish = "price > 0"
        [[auth.identities]]
        name = "b"
        role = "peer"
        certificate = "b.example.org"
        """
    )
    found = read_broker_file(tmp_path / "broker.toml")
    assert found.tls == TlsSettings(
        tmp_path / "authority-broker.pem", ca=tmp_path / "authority.pem"
    )
    assert found.auth == AuthSettings(
        "narrow",
        tmp_path / "token",
        (
            IdentitySettings("ann", "client", str(hashed), None, "price > 0", "price > 0"),
            IdentitySettings("b", "peer", None, "b.example.org"),
        ),
    )


def test_everything_that_is_wrong_is_said(tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_text(
        """
        [broker]
        name = "a"
        [tls]
        certificate = "none.pem"
        [auth]
        wide = "widen"
        [[auth.identities]]
        name = "a/b"
        token = "my secret"
        subscribe = "price < :limit"
        publish = "price <"
        [[auth.identities]]
        name = "c"
        """
    )
    with pytest.raises(SettingsError) as refused:
        read_broker_file(tmp_path / "broker.toml")
    text = str(refused.value)
    assert "[tls] " in text
    for part in (
        "none.pem cannot be used: No such file or directory",
        "[auth] wide: there is no 'widen'; there are refuse, narrow",
        "[auth.identities, number 1] name: 'a/b' is no name of an identity",
        "[auth.identities, number 1] token: is no hash of a token",
        "[auth.identities, number 1] subscribe: a grant is made of constants",
        "[auth.identities, number 1] publish: ",
        "[auth.identities, number 2] 'c' needs a token or a certificate",
    ):
        assert part in text
    assert "my secret" not in text


def test_identities_are_there_once() -> None:
    ann = IdentitySettings("ann", certificate="ann")
    with pytest.raises(SettingsError, match="'ann' is there twice"):
        AuthSettings(identities=(ann, ann))
    with pytest.raises(SettingsError, match="'b' is a peer"):
        IdentitySettings("b", "peer", certificate="b", subscribe="price > 0")


@pytest.mark.parametrize("name", ["", "a/b", "x" * 201, "a\nb", "a\x1b[31m"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(SettingsError, match="is no name of an identity"):
        check_name(name)
    assert check_name("Zoë's desk, 7") == "Zoë's desk, 7"


def test_files_of_tls_that_do_not_fit(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate = authority.sign("b")
    (tmp_path / "text").write_text("no certificate")
    with pytest.raises(SettingsError, match="text cannot be used"):
        TlsSettings(tmp_path / "text")
    with pytest.raises(SettingsError, match=r"ca: .*text cannot be used"):
        TlsSettings(certificate, ca=tmp_path / "text")
    other = authority.sign("c")
    with pytest.raises(SettingsError, match="cannot be used: KEY_VALUES_MISMATCH"):
        TlsSettings(certificate, other)
    with pytest.raises(SettingsError, match="require_certificates needs ca"):
        TlsSettings(certificate, require_certificates=True)


def test_token_files(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(" secret \n")
    file.chmod(0o644)
    assert read_token(file) == "secret"
    assert readable_by_others((file, None, tmp_path / "none")) == [file]
    file.chmod(0o600)
    assert readable_by_others((file,)) == []
    for text in ("", "a\nb", "x" * 5_000):
        file.write_text(text)
        with pytest.raises(SettingsError, match="must have one line with a token"):
            read_token(file)
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read_token(tmp_path / "none")

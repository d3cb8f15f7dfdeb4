"""The tables [tls] and [auth] of a broker's file."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tidegate.errors import SettingsError
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.filters import parse
from tidegate.network.server.access.tokens import HashedToken

Wide = Literal["refuse", "narrow"]
"""What becomes of a subscription that asks for more than its identity is granted."""
NAME_CHARS_MAX = 200


def check_name(name: str) -> str:
    """The name of an identity; raises SettingsError."""
    if not 0 < len(name) <= NAME_CHARS_MAX or "/" in name or not name.isprintable():
        raise SettingsError(
            f"{name!r} is no name of an identity: up to {NAME_CHARS_MAX} characters that can be "
            "printed, without '/'"
        )
    return name


def _hash(text: str) -> str:
    HashedToken.parse(text)
    return text


def _subscribe(text: str) -> str:
    grant = parse(text)
    if grant.parameters or grant.evolves:
        raise SettingsError(f"a grant is made of constants; `{text}` is not")
    return text


def _publish(text: str) -> str:
    parse_advertisement(text)
    return text


@dataclass(frozen=True, slots=True)
class IdentitySettings:
    """A table `[[auth.identities]]`: who it is, how that is proved, and what is granted."""

    name: Annotated[str, check_name]
    """Also of identities that go on after a slash: `desk-7/monitor` is `desk-7`."""
    role: Literal["client", "peer"] = "client"
    token: Annotated[str, _hash] | None = None
    certificate: str | None = None
    """A name in the certificate. Who has both a token and a certificate must show both."""
    subscribe: Annotated[str, _subscribe] | None = None
    """The events that it may get, as a filter; all if there is none."""
    publish: Annotated[str, _publish] | None = None
    """The events that it may publish, as an advertisement; all if there is none."""
    wide: Wide | None = None

    def __post_init__(self) -> None:
        if self.token is None and self.certificate is None:
            raise SettingsError(f"{self.name!r} needs a token or a certificate")
        if self.role == "peer" and (self.subscribe or self.publish or self.wide):
            raise SettingsError(
                f"{self.name!r} is a peer: a broker passes on what others may have, so its grants "
                "are those of their clients"
            )


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """The table `[auth]`. A broker that has one admits nobody else."""

    wide: Wide = "refuse"
    token_file: Path | None = None
    """The file with the token that this broker shows to its neighbours."""
    identities: tuple[IdentitySettings, ...] = ()

    def __post_init__(self) -> None:
        names = [each.name for each in self.identities if each is not None]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SettingsError(f"identities: {twice[0]!r} is there twice")

    def own_token(self) -> str | None:
        """The token for neighbours; raises SettingsError if it cannot be read."""
        return None if self.token_file is None else read_token(self.token_file)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The table `[tls]`: the certificate of this broker, and whose certificates it believes."""

    certificate: Path
    key: Path | None = None
    """None if it is in the file of the certificate."""
    ca: Path | None = None
    """The authority that signs certificates of clients and neighbours; without one, those of
    clients are not looked at, and neighbours are believed by the authorities of the system."""
    require_certificates: bool = False

    def __post_init__(self) -> None:
        if self.require_certificates and self.ca is None:
            raise SettingsError("require_certificates needs ca, which signs those of clients")
        self.server_context()
        self.peer_context()

    def server_context(self) -> ssl.SSLContext:
        """What a listener speaks TLS with; raises SettingsError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        # Without tickets each connection shows its certificate anew, which may have expired.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        self._load(context)
        if self.ca is not None:
            # Optional here, although it may be required: the handshake of TLS can only break off,
            # and a goodbye can say why.
            context.verify_mode = ssl.CERT_OPTIONAL
            _trust(context, self.ca)
        return context

    def peer_context(self) -> ssl.SSLContext:
        """What this broker connects to neighbours with; raises SettingsError."""
        context = ssl.create_default_context()
        if self.ca is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            _trust(context, self.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            # An empty password, so that an encrypted key is an error and not a prompt.
            context.load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ValueError) as error:
            files = " and ".join(str(each) for each in (self.certificate, self.key) if each)
            raise SettingsError(f"{files} cannot be used: {_reason(error)}") from None


def _trust(context: ssl.SSLContext, ca: Path) -> None:
    try:
        context.load_verify_locations(ca)
    except (OSError, ValueError) as error:
        raise SettingsError(f"ca: {ca} cannot be used: {_reason(error)}") from None


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "it is no certificate or key in PEM"
    return getattr(error, "strerror", None) or str(error)


def read_token(file: Path) -> str:
    """The token in a file; raises SettingsError, which does not repeat it."""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {_reason(error)}") from None
    if not token or len(token) > 4_096 or "\n" in token:
        raise SettingsError(f"{file} must have one line with a token")
    return token


def readable_by_others(files: tuple[Path | None, ...]) -> list[Path]:
    """The secret files that other users of this machine may read."""
    found = []
    for file in files:
        try:
            if file is not None and file.stat().st_mode & 0o044:
                found.append(file)
        except OSError:
            continue  # whoever needs the file says so
    return found

"""The TLS context of a client, from the files that its user names."""

from __future__ import annotations

import ssl
from pathlib import Path

from tidegate.errors import NetworkError


def tls_context(
    ca: str | Path | None = None, cert: str | Path | None = None
) -> ssl.SSLContext | None:
    """The context for a certificate authority of the broker, and a certificate of the client.

    ``cert`` is a file with the certificate and its key, for mutual TLS. None without either: then
    the authorities of the machine count.
    """
    if ca is None and cert is None:
        return None
    try:
        context = ssl.create_default_context(cafile=ca)
        if cert is not None:
            context.load_cert_chain(cert)
    except (OSError, ssl.SSLError) as error:
        names = " and ".join(str(each) for each in (ca, cert) if each is not None)
        raise NetworkError(f"{names} cannot be used for TLS: {error}") from None
    return context

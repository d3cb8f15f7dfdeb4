"""The TLS context of a client, from the files that its user names."""

from __future__ import annotations

import ssl
from pathlib import Path

from tidegate.errors import NetworkError

_File = str | Path | None


def tls_context(ca: _File = None, cert: _File = None, key: _File = None) -> ssl.SSLContext:
    """The context for a certificate authority of the broker, and a certificate of the client.

    Without ``ca`` the authorities of the machine count. ``cert`` is for mutual TLS; its key is in
    the file ``key``, or in the same one.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
        if cert is not None:
            # An empty password, so that an encrypted key is an error and not a prompt.
            context.load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        names = ", ".join(str(each) for each in (ca, cert, key) if each is not None)
        raise NetworkError(f"{names}: {error}") from None
    return context

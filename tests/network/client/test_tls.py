"""Files for TLS; `test_transport.py` connects with them."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tidegate.errors import NetworkError
from tidegate.network.client.tls import tls_context


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("no certificate")
    for ca, cert in ((tmp_path / "ca", None), (tmp_path / "none", None), (None, tmp_path / "ca")):
        with pytest.raises(NetworkError, match=r"/(ca|none): "):
            tls_context(ca, cert)


def test_a_server_is_checked() -> None:
    default = ssl.get_default_verify_paths().cafile
    if default is not None and Path(default).exists():
        context = tls_context(ca=default)
        assert context is not None
        assert context.verify_mode is ssl.CERT_REQUIRED

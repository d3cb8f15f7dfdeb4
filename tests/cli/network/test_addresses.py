from __future__ import annotations

import click
import pytest

from tidegate.cli.network.addresses import check_reach, is_loopback, parse_address
from tidegate.errors import TidegateError


@pytest.mark.parametrize("address", ["7070", "host:", "host:99999", ":1", "host:x"])
def test_malformed_addresses(address: str) -> None:
    with pytest.raises(click.UsageError, match="--admin takes HOST:PORT"):
        parse_address(address, "--admin")


def test_reach() -> None:
    assert [is_loopback(each) for each in ("127.0.0.9", "::1", "10.0.0.1", "name")] == [
        True, True, False, False,
    ]  # fmt: skip
    check_reach("0.0.0.0", without_authentication=True)
    with pytest.raises(TidegateError, match="--without-authentication"):
        check_reach("0.0.0.0", without_authentication=False)

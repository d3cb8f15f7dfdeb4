"""What the settings of a broker leave open that their author may not have meant."""

from __future__ import annotations

import logging

from tidegate.network.server.access.settings import readable_by_others
from tidegate.network.server.configuration.addresses import is_loopback
from tidegate.network.server.settings import BrokerSettings

_log = logging.getLogger(__name__)


def exposures(settings: BrokerSettings) -> list[str]:
    """What others of this machine or of the network may see, a sentence each."""
    tls, auth = settings.tls, settings.auth
    key = None if tls is None else tls.key or tls.certificate
    secrets = (key, None if auth is None else auth.token_file)
    found = [f"others may read {file}: chmod 600 {file}" for file in readable_by_others(secrets)]
    if auth is not None and tls is None and not is_loopback(settings.host):
        found.append("tokens cross the network in the clear; give the file a table [tls]")
    peers = [each for each in settings.peers if not each.tls and not is_loopback(each.host)]
    if auth is not None and auth.token_file is not None:
        found += [
            f"the token for {each.host}:{each.port} crosses the network in the clear; use "
            "tidegates://"
            for each in peers
        ]
    return found


def warn_of_exposure(settings: BrokerSettings) -> None:
    """Log what others may see."""
    for each in exposures(settings):
        _log.warning("%s", each)

"""The grants of a broker's settings, in the form in which its core asks for them."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.filters import parse
from tidegate.network.server.access.authentication import principal
from tidegate.network.server.access.settings import AuthSettings, IdentitySettings
from tidegate.routing.grants import EVERYTHING, NOTHING, Grant

ADMIN_PORT = "http"
"""The identity under which the admin port publishes."""


def grants_of(settings: AuthSettings | None) -> Callable[[str], Grant] | None:
    """What each identity may do; None if nobody is asked who it is.

    An identity that is not in the settings may do nothing: a durable client may have been one. The
    admin port may publish everything, unless the settings have its identity: it has asked for a
    token, and from outside nobody is admitted under a name that is not in the settings.
    """
    if settings is None:
        return None
    grants = {each.name: _grant(each, settings) for each in settings.identities}
    grants.setdefault(ADMIN_PORT, EVERYTHING)
    return lambda identity: grants.get(principal(identity), NOTHING)


def _grant(entry: IdentitySettings, settings: AuthSettings) -> Grant:
    return Grant(
        None if entry.subscribe is None else parse(entry.subscribe),
        None if entry.publish is None else parse_advertisement(entry.publish),
        narrows=(entry.wide or settings.wide) == "narrow",
    )

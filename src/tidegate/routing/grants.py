"""Grants: what each client of a broker may get and publish.

Rules.

(1) The grant to get events is a filter of constants, the grant to publish an advertisement.
    Nothing that is outside of its grant is delivered to a client, whatever it asks for and however
    that changes; nothing outside of its grant is published by it.
(2) The table of filters holds of a client only what its grant surely covers at all times, as of an
    evolving filter its over-estimate; so routing and matching need not know of grants. A filter
    that asks for more, or perhaps for more, is refused, or narrowed: the table then holds the
    conjunction of both, which is exact, also while the filter evolves.
(3) The broker of a client keeps a named subscription as the client wrote it. So it grows and
    shrinks by its parameters within the grant, and a grant that has changed while the broker was
    down counts for what comes from the store.
(4) Only the broker of a client knows its grant. A broker to which a client moves has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tidegate.errors import AccessError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.expressions import Environment
from tidegate.language.filters import Filter
from tidegate.language.limits import Limits
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.semantics import holds
from tidegate.language.syntax import Truth, all_of
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.routing.messages import Client
from tidegate.routing.spaces import mapped
from tidegate.routing.validation import check_pattern, check_wanted_filter

Item = TypeVar("Item", bound=Filter | EvolvingFilter | Pattern)

_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Grant:
    """What one client may do; None for everything."""

    subscribe: Filter | None = None
    publish: Advertisement | None = None
    narrows: bool = False
    """Whether a subscription that asks for more is narrowed, not refused."""


EVERYTHING = Grant()
NOTHING = Grant(Filter(Truth(False)), Advertisement.of(Truth(False)))


class BrokerGrants:
    """The grants of a broker's clients; false if it has none, and everybody may do everything."""

    def __init__(self, grant_of: Callable[[str], Grant] | None, limits: Limits) -> None:
        """``grant_of`` has the grant of an identity."""
        self._grant_of = grant_of
        self._limits = limits

    def __bool__(self) -> bool:
        return self._grant_of is not None

    def of(self, client: Client) -> Grant:
        """The grant of a client."""
        return EVERYTHING if self._grant_of is None else self._grant_of(client.identity)

    def wanted(self, item: Item, client: Client) -> Item:
        """What the tables may hold of a filter or pattern; raises AccessError if it asks for more
        than its client may have."""
        grant = self.of(client)
        granted = grant.subscribe
        if granted is None or _covers(granted, item):
            return item
        if not grant.narrows:
            raise AccessError(
                f"{client.identity!r} may get `{_cut(granted)}`, and `{_cut(item)}` asks for more, "
                "or may do so as it changes; add these constraints"
            )
        narrowed = mapped(item, lambda node: all_of([granted.node, node]))
        if isinstance(narrowed, Pattern):
            check_pattern(narrowed, self._limits)
        else:
            check_wanted_filter(narrowed, self._limits)
        return narrowed

    def may_get(self, client: Client, event: Event) -> bool:
        """Whether a client may get an event."""
        granted = self.of(client).subscribe
        return granted is None or holds(granted.node, event.attributes, Environment())

    def check_advertisement(self, advertisement: Advertisement, client: Client) -> None:
        """Raise AccessError unless a client may publish what it advertises."""
        granted = self.of(client).publish
        if granted is not None and not granted.covers(advertisement):
            raise AccessError(
                f"{client.identity!r} may publish `{_cut(granted)}`, and cannot advertise "
                f"`{_cut(advertisement)}`"
            )

    def check_event(self, event: Event, client: Client) -> None:
        """Raise AccessError unless a client may publish an event."""
        granted = self.of(client).publish
        if granted is not None and not granted.allows(event):
            raise AccessError(
                f"{client.identity!r} may publish `{_cut(granted)}`, which this event is not"
            )

    def limits_publishing(self, client: Client) -> bool:
        """Whether there are events that a client may not publish."""
        return self.of(client).publish is not None


def _covers(granted: Filter, item: Filter | EvolvingFilter | Pattern) -> bool:
    """Whether a grant surely covers all that an item matches at any time."""
    match item:
        case Pattern():
            return all(granted.covers(step) for step in item.steps)
        case EvolvingFilter():
            return granted.covers(item.over_estimate_ever)
        case _:
            return granted.covers(item)


def _cut(item: object) -> str:
    text = str(item)
    return text if len(text) <= _CHARS_MAX else text[: _CHARS_MAX - 3] + "..."

"""Neighbours: how two brokers connect and disconnect, and announce the links of their domain.

    one broker                     other broker
    join  ---- Connect ---->       on_connect: validates, becomes a neighbour
          <--- Accept  -----
    on_accept: becomes a neighbour
          <--- deltas, Announce ---> both

Each end then sends the other what it should hold, because all nodes of its tables are marked. Both
announce their new link to all other brokers of the domain (see `domains`). If both ask each other
at the same time, both accept, and the answers find them neighbours already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidegate.errors import RoutingError
from tidegate.routing.messages import Accept, Announce, Connect, Outgoing, Peer, Refused
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.overlay.graph import Announcement

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker


class Neighbours:
    """The neighbours of a broker, and the brokers that it has asked to become neighbours."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._me = broker.name
        self._domains = broker.domains
        self._pending: dict[Peer, Connect] = {}
        """Requests that were not answered yet."""

    def knows(self, peer: Peer) -> bool:
        """Whether a broker is a neighbour, or was asked to be one and has not answered yet."""
        return peer in self._domains.domain_of or peer in self._pending

    def join(self, peer: Peer, domain: str, cost_us: int, *, as_client: bool) -> Outgoing:
        """Ask another broker to become a neighbour, or the master of this broker."""
        joined = self._domain_named(domain)
        if self.knows(peer):
            raise RoutingError(f"{peer!r} is a neighbour of {self._me!r} already, or was asked")
        if as_client:
            self._check_no_master(joined)
        has_spaces = bool(self._broker.spaces)
        request = Connect(domain, cost_us, as_client, joined.announcements(), has_spaces)
        self._pending[peer] = request
        return [(peer, request)]

    def _check_no_master(self, domain: Domain) -> None:
        asked = (
            peer
            for peer, request in self._pending.items()
            if request.master and request.domain == domain.name
        )
        master = domain.master or next(asked, None)
        if master is not None:
            raise RoutingError(
                f"{self._me!r} has a master already, or has asked one, {master!r}; leave it first"
            )

    def on_connect(self, request: Connect, peer: Peer) -> Outgoing:
        """Accept a broker as a neighbour; raises if the domain does not allow it."""
        domain = self._domain_named(request.domain)
        if peer == self._me:
            raise RoutingError(f"{peer!r} cannot be a neighbour of itself")
        if peer in self._domains.domain_of:
            raise RoutingError(f"{peer!r} is a neighbour of {self._me!r} already")
        if request.cost_us < 0:
            raise RoutingError(f"the cost of a link is 0 us or more, not {request.cost_us}")
        if request.master != (domain.architecture is Architecture.HIERARCHICAL):
            raise RoutingError(
                f"the domain {domain.name!r} is {domain.architecture.value}, so a broker connects "
                f"{'to a neighbour, not to a' if request.master else 'to a'} master"
            )
        if request.has_spaces != bool(self._broker.spaces):
            raise RoutingError(
                f"{peer if request.has_spaces else self._me!r} has spaces and "
                f"{self._me if request.has_spaces else peer!r} has none; either all brokers of a "
                "network have spaces, or none has"
            )
        if domain.closes_cycle(peer, request.announcements):
            raise RoutingError(
                f"there is a path from {self._me!r} to {peer!r} in the domain {domain.name!r} "
                f"already; it is {domain.architecture.value}, so another would close a cycle"
            )
        answer = Accept(domain.name, request.cost_us, domain.announcements())
        sent: Outgoing = [(peer, answer)]
        return sent + self._add_neighbour(domain, peer, request.cost_us, request.announcements)

    def on_accept(self, answer: Accept, peer: Peer) -> Outgoing:
        """Take a broker that has accepted as a neighbour."""
        request = self._pending.get(peer)
        if request is None or request.domain != answer.domain:
            raise RoutingError(f"{peer!r} was not asked to be a neighbour in {answer.domain!r}")
        del self._pending[peer]
        domain = self._domain_named(answer.domain)
        if request.master:
            domain.master = peer
        sent = self._add_neighbour(domain, peer, request.cost_us, answer.announcements)
        # The request has told the other broker what was known when it was made; since then this
        # broker may have learned more, which nobody else would pass on to it.
        return [*sent, (peer, Announce(domain.announcements()))]

    def on_refused(self, message: Refused, peer: Peer) -> None:
        """Give up a request to connect that was refused."""
        if self._pending.get(peer) == message.request:
            del self._pending[peer]

    def on_link_lost(self, peer: Peer, now_us: int) -> Outgoing:
        """Remove a neighbour whose link is down, and announce that to the others."""
        domain = self._domains.domain_of.pop(peer, None)
        self._pending.pop(peer, None)
        if domain is None:
            return []
        domain.unlink(peer)
        return _announce(domain, [domain.announce(now_us)], None)

    def on_announce(self, announcements: Iterable[Announcement], peer: Peer) -> Outgoing:
        """Learn of links, and pass on what is new."""
        domain = self._domains.domain_of[peer]
        new = domain.learn(announcements)
        if not new:
            return []
        if domain.tree_per_source:  # else a link far away changes nothing here
            self._broker.tables.mark_all()
        return _announce(domain, new, peer)

    def _add_neighbour(
        self,
        domain: Domain,
        peer: Peer,
        cost_us: int,
        announcements: Iterable[Announcement],
    ) -> Outgoing:
        """Add a neighbour, announce the link, and mark all nodes so that it gets its filters.

        News go to all neighbours, old and new. When links were announced to the new neighbour only,
        brokers that restarted at the same time were left without each other's links.
        """
        domain.link(peer, cost_us)
        self._domains.domain_of[peer] = domain
        new = domain.learn(announcements)
        new.append(domain.announce(self._broker.now_us))
        self._broker.tables.mark_all()
        return _announce(domain, new, None)

    def _domain_named(self, name: str) -> Domain:
        domain = self._domains.by_name.get(name)
        if domain is None:
            known = ", ".join(self._domains.by_name) or "none"
            raise RoutingError(f"{self._me!r} is not in the domain {name!r}, but in: {known}")
        return domain


def _announce(domain: Domain, new: Iterable[Announcement], sender: Peer | None) -> Outgoing:
    message = Announce(tuple(new))
    return [(peer, message) for peer in domain.neighbours if peer != sender]

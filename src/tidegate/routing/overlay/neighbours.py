"""The neighbours of a broker: how they come to be so, and what brokers tell each other of links.

A broker asks another (`Connect`), which accepts or refuses; from then on both are neighbours in a
domain, and each sends the other what it should have. Every broker announces its links to all others
of the domain (see `domains`).
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
    """The neighbours that a broker has, and those it has asked."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._me = broker.name
        self._around = broker.around
        self._asked: dict[Peer, Connect] = {}
        """The neighbours-to-be that have not answered yet."""

    def knows(self, peer: Peer) -> bool:
        """Whether a broker is a neighbour, or was asked to be one."""
        return peer in self._around.domain_of or peer in self._asked

    def join(self, peer: Peer, domain: str, cost_us: int, *, as_client: bool) -> Outgoing:
        """Ask another broker to be a neighbour."""
        here = self._domain(domain)
        if self.knows(peer):
            raise RoutingError(f"{peer!r} is a neighbour of {self._me!r} already, or was asked")
        if as_client:
            self._check_no_master(here)
        request = Connect(domain, cost_us, as_client, here.known())
        self._asked[peer] = request
        return [(peer, request)]

    def _check_no_master(self, domain: Domain) -> None:
        asked = (
            peer
            for peer, request in self._asked.items()
            if request.master and request.domain == domain.name
        )
        master = domain.master or next(asked, None)
        if master is not None:
            raise RoutingError(f"{self._me!r} has a master already, or has asked one, {master!r}")

    def connect(self, request: Connect, peer: Peer) -> Outgoing:
        """Answer a broker that asks, or refuse."""
        domain = self._domain(request.domain)
        if peer == self._me:
            raise RoutingError(f"{peer!r} cannot be a neighbour of itself")
        if peer in self._around.domain_of:
            raise RoutingError(f"{peer!r} is a neighbour of {self._me!r} already")
        if request.cost_us < 0:
            raise RoutingError(f"the cost of a link is not negative, as {request.cost_us} is")
        if request.master != (domain.architecture is Architecture.HIERARCHICAL):
            raise RoutingError(
                f"the domain {domain.name!r} is {domain.architecture.value}, "
                f"so a broker that asks has {'no' if request.master else 'a'} master"
            )
        if domain.closes_cycle(peer, request.announcements):
            raise RoutingError(
                f"there is a way from {self._me!r} to {peer!r} in the domain {domain.name!r} "
                f"already; it is {domain.architecture.value}, so another would close a cycle"
            )
        answer = Accept(domain.name, request.cost_us, domain.known())
        sent: Outgoing = [(peer, answer)]
        return sent + self._linked(domain, peer, request.cost_us, request.announcements)

    def accepted(self, answer: Accept, peer: Peer) -> Outgoing:
        """Take it that a broker that was asked has said yes."""
        request = self._asked.get(peer)
        if request is None or request.domain != answer.domain:
            raise RoutingError(f"{peer!r} was not asked to be a neighbour in {answer.domain!r}")
        del self._asked[peer]
        domain = self._domain(answer.domain)
        if request.master:
            domain.master = peer
        sent = self._linked(domain, peer, request.cost_us, answer.announcements)
        # what was learned since the request
        return [*sent, (peer, Announce(domain.known()))]

    def refused(self, message: Refused, peer: Peer) -> None:
        """Take it that a broker that was asked has said no."""
        if self._asked.get(peer) == message.request:
            del self._asked[peer]

    def lost(self, peer: Peer, now_us: int) -> Outgoing:
        """Take note that a link is down, and tell the others."""
        domain = self._around.domain_of.pop(peer, None)
        self._asked.pop(peer, None)
        if domain is None:
            return []
        domain.unlink(peer)
        return _announce(domain, [domain.announcement(now_us)], None)

    def announced(self, said: Iterable[Announcement], peer: Peer) -> Outgoing:
        """Learn of links, and pass on what is new."""
        domain = self._around.domain_of[peer]
        news = domain.learn(said)
        if not news:
            return []
        if domain.tree_per_source:
            self._broker.mark_everything()
        return _announce(domain, news, peer)

    def _linked(
        self,
        domain: Domain,
        peer: Peer,
        cost_us: int,
        announcements: Iterable[Announcement],
    ) -> Outgoing:
        """Have a new neighbour: all know of it, and it gets what it should have."""
        domain.link(peer, cost_us)
        self._around.domain_of[peer] = domain
        news = domain.learn(announcements)
        news.append(domain.announcement(self._broker.now_us))
        self._broker.mark_everything()
        return _announce(domain, news, None)

    def _domain(self, name: str) -> Domain:
        domain = self._around.domains.get(name)
        if domain is None:
            known = ", ".join(self._around.domains) or "none"
            raise RoutingError(f"{self._me!r} is not in the domain {name!r}, but in: {known}")
        return domain


def _announce(domain: Domain, news: Iterable[Announcement], sender: Peer | None) -> Outgoing:
    message = Announce(tuple(news))
    return [(peer, message) for peer in domain.neighbours if peer != sender]

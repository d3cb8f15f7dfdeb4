"""Draining: how a broker learns that all events from before have come to it.

With summaries an event goes from examiner to examiner; a wave on a spanning tree does not follow
it. Rules.

(1) `Drain` spreads down the tree of the broker that asks, its *origin*. Each broker answers with
    `Drained`, which takes the way of its events to the origin (`Plan.stops`): every event that it
    has let into the domain before is ahead of the answer.
(2) A gateway lets in the events of its other domains. It drains these first, each as the origin,
    and then answers.
(3) When links of the domain change, the origin begins anew: events and answers may be lost then,
    or on other ways.
(4) Drains are numbered on from when the broker was started, so that an answer which was on its way
    while the broker was restarted is not taken for one to a drain of now.

A drain costs a request and an answer for each broker, of which answers cross some links; nothing
but the move of a client asks for it. Like with waves, actions are returned and not called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tidegate.errors import RoutingError
from tidegate.routing.messages import Drain, Drained, Outgoing, Peer
from tidegate.routing.summaries.exchange import Action, SummaryExchange


@dataclass(slots=True)
class _Draining:
    """A domain that is drained towards this broker."""

    exchange: SummaryExchange
    number: int
    revision: int
    """The revision of the domain when it began."""
    pending: set[Peer]
    """Brokers whose answer is missing."""
    done: Action


class Drains:
    """The drains that started at a broker or pass it."""

    def __init__(
        self, me: Peer, exchanges: Callable[[], Iterable[SummaryExchange]], begun_us: int
    ) -> None:
        self._me = me
        self._exchanges = exchanges
        self._last_number = begun_us
        self._drains: list[_Draining] = []
        self.ready: list[Action] = []
        """Actions of completed drains; the caller runs them."""

    def __len__(self) -> int:
        return len(self._drains)

    def start(self, done: Action, apart_from: SummaryExchange | None = None) -> Outgoing:
        """Drain all domains, or all but one; ``done`` is put in `ready` when no events are left."""
        others = [each for each in self._exchanges() if each is not apart_from]
        left = len(others)
        if not left:
            self.ready.append(done)
            return []

        def one_done() -> Outgoing:
            nonlocal left
            left -= 1
            return [] if left else done()

        return [sent for each in others for sent in self._begin(each, one_done)]

    def _begin(self, exchange: SummaryExchange, done: Action) -> Outgoing:
        self._last_number += 1
        domain, plan = exchange.domain, exchange.plan
        pending = set(plan.brokers) - {self._me}
        if not pending:
            self.ready.append(done)
            return []
        self._drains.append(_Draining(exchange, self._last_number, domain.revision, pending, done))
        message = Drain(self._me, self._last_number, domain.own_tree)
        return [(peer, message) for peer in domain.downstream(domain.own_tree, None)]

    def begin_anew(self) -> Outgoing:
        """Start the drains of domains whose links have changed once more."""
        outdated = [each for each in self._drains if each.exchange.domain.revision != each.revision]
        self._drains = [each for each in self._drains if each not in outdated]
        return [sent for each in outdated for sent in self._begin(each.exchange, each.done)]

    def on_drain(self, message: Drain, peer: Peer, exchange: SummaryExchange) -> Outgoing:
        """Pass the request on, and answer it once the other domains are drained."""
        if message.origin == self._me:
            raise RoutingError(
                f"{peer!r} sends a request to drain back to {self._me!r}, its origin"
            )
        domain = exchange.domain
        below = domain.downstream(message.tree, peer)
        sent: Outgoing = [(each, message) for each in below]
        return sent + self.start(lambda: self._answer(message, exchange), exchange)

    def _answer(self, message: Drain, exchange: SummaryExchange) -> Outgoing:
        if message.origin not in exchange.plan:
            return []  # it cannot be reached any more, and begins anew
        stops = tuple(exchange.plan.stops(self._me, message.origin))
        return _onward(Drained(message.number, self._me, stops), exchange)

    def on_drained(self, message: Drained, exchange: SummaryExchange) -> Outgoing:
        """Pass an answer on, or take it if it is for this broker."""
        if not message.stops:
            raise RoutingError("an answer of a broker that was drained names no broker to go to")
        if len(set(message.stops)) < len(message.stops):
            raise RoutingError("an answer of a broker that was drained goes to a broker twice")
        stops = message.stops[1:] if message.stops[0] == self._me else message.stops
        if stops:
            return _onward(Drained(message.number, message.broker, stops), exchange)
        for each in self._drains:
            if each.number == message.number:
                each.pending.discard(message.broker)
                if not each.pending:
                    self._drains.remove(each)
                    self.ready.append(each.done)
                break
        return []


def _onward(message: Drained, exchange: SummaryExchange) -> Outgoing:
    hop = exchange.domain.next_hop(message.stops[0])
    return [] if hop is None or hop not in exchange.domain.neighbours else [(hop, message)]

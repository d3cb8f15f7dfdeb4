"""Routing by summaries at one broker: the parts, and how they are joined.

    own_summary     what the clients of this broker want, as others see it
    plan            who sends summaries to whom: algorithm 2 as a function of the graph
    exchange        the summaries of the neighbours in one domain, and what is sent on
    examination     algorithm 3: who gets an event, and who examines it next
    draining        how a client that moves leaves no event behind

Rules, beyond those of the parts.

(1) A subscription is matched at its own broker from the first moment. At any other broker it counts
    as soon as that one has no summary without it. It is in force everywhere when the chain of
    parents has acknowledged it (`exchange`, rule 5) and all brokers know of the links by which that
    chain was chosen: after links have changed, a wave is awaited too, because announcements are
    ahead of it on every link. `InForce` is sent then.
(2) A client that moves is at its new broker when its subscriptions are in force there; they are
    sent at once, not with the next batch. Its old broker lets it go when it is drained.
(3) A gateway, a broker of several domains, is never spared an event: in each domain its own summary
    matches everything. An event enters its other domains there, with a new list.

What is promised. Whatever is in force is found. Until then an event may miss a new subscription or
meet an old one, as with every routing; at most a period for each broker of the chain, and the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate.matching.poset.wanted_filter import WantedFilter, event_us
from tidegate.routing import messages as m
from tidegate.routing.messages import Notify, Outgoing, Peer
from tidegate.routing.outbox import NeighbourDelta
from tidegate.routing.spaces import routed_event
from tidegate.routing.strategies import Hops, IncomingEvent
from tidegate.routing.substrates import FilterNode, Substrate
from tidegate.routing.summaries.draining import Drains
from tidegate.routing.summaries.examination import EventCounts, Examiner
from tidegate.routing.summaries.exchange import Action, SummaryExchange
from tidegate.routing.summaries.own_summary import GatewaySummary, OwnSummary
from tidegate.routing.summaries.settings import SummarySettings

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker

SummaryMessage = m.SummaryUpdate | m.SummaryWithdrawal | m.SummaryReceived | m.Drain | m.Drained


class Summaries:
    """The summaries of a broker; finds the recipients of events."""

    def __init__(self, broker: Broker, substrate: Substrate, settings: SummarySettings) -> None:
        self.counts = EventCounts()
        self.own = OwnSummary(broker.name, settings.window_us, settings.budget)
        self.drains = Drains(broker.name, lambda: self.exchanges.values(), broker.now_us)
        self.exchanges: dict[str, SummaryExchange] = {}
        """By the name of the domain."""
        self._examiners: dict[str, Examiner] = {}
        self._broker = broker
        self._substrate = substrate
        self._settings = settings

    def domain_added(self) -> None:
        """Note that the broker has joined a domain; with the second it becomes a gateway."""
        domains = self._broker.domains.by_name
        is_gateway = len(domains) > 1
        own = GatewaySummary(self._broker.name) if is_gateway else self.own
        for name, domain in domains.items():
            if name not in self.exchanges:
                exchange = self.exchanges[name] = SummaryExchange(
                    domain, own, self._settings, begun_us=self._broker.now_us
                )
                self._examiners[name] = Examiner(exchange, self.counts)
            elif self.exchanges[name].own is not own:
                self.exchanges[name].own = own
                self.exchanges[name].note_changes(1)

    @property
    def steps(self) -> int:
        """Matching steps of all events at home, for those who count them."""
        return self._substrate.steps

    # -- summaries ----------------------------------------------------------------------------

    def own_changed(self, delta: NeighbourDelta[WantedFilter]) -> None:
        """Apply changes of the table of subscriptions; `settle` has to follow."""
        changes = self.own.change(delta, self._broker.now_us)
        for exchange in self._with_own():
            exchange.note_changes(changes)

    def _with_own(self) -> Iterator[SummaryExchange]:
        """The exchange in which the clients of this broker matter; none at a gateway."""
        return (each for each in self.exchanges.values() if each.own is self.own)

    def on_message(self, message: SummaryMessage, peer: Peer) -> Outgoing:
        """Handle a message of a neighbour."""
        now_us = self._broker.now_us
        exchange = self.exchanges[self._broker.domains.domain_of[peer].name]
        match message:
            case m.SummaryUpdate():
                sent = exchange.on_update(message, peer, now_us)
            case m.SummaryWithdrawal():
                sent = exchange.on_withdrawal(message, peer, now_us)
            case m.SummaryReceived():
                sent = exchange.on_received(message, peer)
            case m.Drain():
                self._broker.domains.check_tree(message.tree, peer)
                sent = self.drains.on_drain(message, peer, exchange)
            case m.Drained():
                sent = self.drains.on_drained(message, exchange)
        return sent + self._run_ready()

    def on_refused(self, request: m.Message, peer: Peer) -> Outgoing:
        """Take back a summary that a neighbour has refused."""
        domain = self._broker.domains.domain_of.get(peer)
        if domain is None or not isinstance(request, m.SummaryUpdate):
            return []
        return self.exchanges[domain.name].on_refused(request, peer, self._broker.now_us)

    def forget(self, peer: Peer) -> Outgoing:
        """Forget a neighbour whose link is down."""
        return [sent for each in self.exchanges.values() for sent in each.forget(peer)]

    def on_restart(self, peer: Peer) -> Outgoing:
        """Begin anew with a neighbour that has restarted and has no summaries any more."""
        # What waits for events that were on their way through the neighbour has to begin anew, too.
        self._broker.domains.domain_of[peer].revision += 1
        return self.forget(peer)

    def settle(self) -> Outgoing:
        """Follow the links of the domains, and send what is to be sent by now."""
        sent: Outgoing = []
        for exchange in self.exchanges.values():
            sent += exchange.advance(self._broker.now_us)
        return sent + self.drains.begin_anew() + self._run_ready()

    @property
    def due_us(self) -> int | None:
        """When `settle` must be called next; None if it need not be."""
        due = [each.due_us for each in self.exchanges.values()]
        return min((each for each in due if each is not None), default=None)

    # -- what waits for summaries ---------------------------------------------------------------

    def when_in_force(self, done: Action) -> Outgoing:
        """Carry out an action when what clients have asked for so far is in force (rule 1)."""
        sent: Outgoing = []
        exchange = next(self._with_own(), None)
        if exchange is None:
            return sent + done()
        then = exchange
        sent += exchange.when_acknowledged(
            lambda: self._when_links_are_known(then, done), self._broker.now_us, is_urgent=False
        )
        return sent + self._run_ready()

    def _when_links_are_known(self, exchange: SummaryExchange, done: Action) -> Outgoing:
        revision = exchange.domain.revision
        if revision == exchange.settled_revision:
            return done()

        def wave_is_back() -> Outgoing:
            exchange.settled_revision = max(revision, exchange.settled_revision)
            return done()

        return self._broker.start_plain_wave(wave_is_back)

    def when_nothing_is_on_its_way(self, done: Action) -> Outgoing:
        """Carry out an action when what clients have asked for is in force, and all events that
        were published before have come (rule 2)."""
        sent: Outgoing = []

        def drain() -> Outgoing:
            return self.drains.start(done)

        exchange = next(self._with_own(), None)
        if exchange is None:
            sent += drain()
        else:
            sent += exchange.when_acknowledged(drain, self._broker.now_us, is_urgent=True)
        return sent + self._run_ready()

    def _run_ready(self) -> Outgoing:
        """Carry out the actions that nothing has to be waited for any more."""
        sent: Outgoing = []
        queues = [self.drains.ready, *(each.ready for each in self.exchanges.values())]
        while any(queues):
            for queue in queues:
                while queue:
                    sent += queue.pop(0)()
        return sent

    # -- events -------------------------------------------------------------------------------

    def is_for(self, message: Notify, peer: Peer) -> bool:
        """Whether this broker has to examine or deliver an event, and not only to relay it."""
        is_target = self._broker.name in (message.targets or ())
        return is_target or self._examiner_at(peer).examines(message.examination)

    def relayed(self, message: Notify, peer: Peer) -> Hops:
        """The copies of an event that concern other brokers only."""
        examiner = self._examiner_at(peer)
        targets = (message.targets or frozenset()) - {self._broker.name}
        onward = None if examiner.examines(message.examination) else message.examination
        return examiner.copies(message.publication, targets, onward)

    def _examiner_at(self, peer: Peer) -> Examiner:
        return self._examiners[self._broker.domains.domain_of[peer].name]

    def route(self, incoming: IncomingEvent) -> tuple[list[FilterNode], Hops]:
        """The nodes of this broker's own askers that an event matches, and the next hops."""
        publication, me = incoming.publication, self._broker.name
        event = routed_event(publication)
        matched = self._substrate.matching(event)
        if not matched and me in (incoming.targets or ()):
            self.counts.in_vain += 1
        if self.own.event_came(event_us(publication.event), self._broker.now_us):
            for exchange in self._with_own():
                exchange.note_changes(1)
        inside = self._broker.domains.domain_of.get(incoming.sender or "")
        hops: Hops = []
        for name, examiner in self._examiners.items():
            targets: set[Peer] = set()
            onward, examines = None, True  # as where the event enters the domain here
            if inside is not None and name == inside.name:
                targets.update(incoming.targets or ())
                onward, examines = incoming.examination, examiner.examines(incoming.examination)
            if examines:
                owners, onward = examiner.examine(publication, event, onward)
                targets |= owners
            hops += examiner.copies(publication, targets - {me}, onward)
        return matched, hops

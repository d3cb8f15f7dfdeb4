"""A broker: a state machine that takes messages and returns what to send to whom.

Rules.

(1) Nothing here does I/O, sleeps, or reads a clock: messages and the time come in as arguments, and
    what is to be sent comes out.
(2) Links keep the order of messages and lose none as long as they are up. When a link goes down,
    both ends are told (`link_lost`) before anything comes over it again, and both forget what they
    had from each other. It starts again when one end asks to connect.
(3) A message that cannot be accepted is answered with `Refused` and changes nothing.

Theory of operation. A request changes a routing table; then the tables settle, and the deltas for
the neighbours are appended to what the request itself sends. All of it comes out of one call of
`handle`, in the order in which it must be sent: a wave that is started after a change (`Probe`)
follows the change on every link. Where to look:

    a subscription is forwarded      forwarding.py, with the destinations of strategies.py
    an update is applied             clients/named_subscriptions.py at the client's own broker,
                                     routing_tables.py (`apply_filters`) at all others
    an event is routed               event_routing.py, with the next hops of strategies.py
    an event's links are found       links/link_matching.py
    a client connects, moves         clients/sessions.py, clients/moves.py
    a link is set up or lost         overlay/neighbours.py
    a broker comes back              durability/restoring.py
    a pattern is factored            patterns/delegation.py
    summaries are sent and examined  summaries/summaries.py
    an event is traced               tracing.py
    input is validated               validation.py, spaces.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tidegate.errors import LimitError, RoutingError, TidegateError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.filters import Filter
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.spaces import Space
from tidegate.language.variables import Variables
from tidegate.matching.poset.poset import Poset
from tidegate.routing import messages as m
from tidegate.routing.askers import NamedAsker
from tidegate.routing.batching.event_batches import EventBatches
from tidegate.routing.batching.incoming import IncomingEvents
from tidegate.routing.batching.requests import HandledRequests
from tidegate.routing.batching.routed import RoutedEvents
from tidegate.routing.clients.moves import Moves
from tidegate.routing.clients.named_subscriptions import NamedSubscriptions
from tidegate.routing.clients.sessions import Sessions
from tidegate.routing.durability.restoring import on_sync
from tidegate.routing.event_routing import EventRouter
from tidegate.routing.grants import BrokerGrants, Grant
from tidegate.routing.links.link_matching import LinkMatching
from tidegate.routing.messages import Address, Client, Message, Outgoing, Peer
from tidegate.routing.overlay.broker_domains import BrokerDomains
from tidegate.routing.overlay.domains import Domain
from tidegate.routing.overlay.neighbours import Neighbours
from tidegate.routing.patterns.delegation import PatternMonitors
from tidegate.routing.routing_tables import RoutingTables
from tidegate.routing.spaces import BrokerSpaces
from tidegate.routing.strategies import FilterMatching, RecipientMatching, Strategy
from tidegate.routing.substrates import (
    SubstrateChoice,
    antichain_substrate,
    link_matcher,
    matches_by_poset,
)
from tidegate.routing.substrates import substrate as substrate_factory
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.routing.summaries.summaries import Summaries
from tidegate.routing.tracing import Traces
from tidegate.routing.validation import (
    check_pattern,
    check_publication_times,
    checked_named_subscription,
)
from tidegate.routing.waves import AfterWave, WaveResult, Waves


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """How much a broker accepts from clients and neighbours."""

    filters: Limits = DEFAULT_LIMITS
    per_client_max: int = 10_000
    """Subscriptions of one client, and likewise advertisements."""
    subscriptions_max: int = 10_000_000
    """Named subscriptions of all clients of the broker."""
    delta_items_max: int = 1_000_000
    """Filters or advertisements that a neighbour may add in one message."""


class Broker:
    """One broker of an overlay.

    >>> from tidegate.language.events import Event
    >>> from tidegate.routing.strategies import strategy
    >>> broker = Broker("b", strategy("subscription"))
    >>> ann, bob = Client("ann"), Client("bob")
    >>> broker.handle(m.Subscribe("price < 10"), ann, now_us=0)
    []
    >>> sent = broker.handle(m.Publish(Event.of({"price": 9.5})), bob, now_us=1)
    >>> [(who.identity, dict(what.publication.event.attributes)) for who, what in sent]
    [('ann', {'price': 9.5})]
    """

    def __init__(
        self,
        name: Peer,
        strategy: Strategy,
        *,
        begun_us: int = 0,
        only_advertised: bool | None = None,
        merging: bool = False,
        substrate: SubstrateChoice | None = None,
        limits: BrokerLimits | None = None,
        spaces: Iterable[Space] = (),
        summaries: SummarySettings | None = None,
        grant_of: Callable[[str], Grant] | None = None,
    ) -> None:
        """``begun_us`` is when the broker was started, and must be later after each restart.

        ``substrate`` finds the filters that an event matches; None for the default of the
        strategy. Either all brokers of a network have ``spaces``, or none has. ``summaries`` are
        the settings of the routing by summaries, the same at all brokers. ``grant_of`` has the
        grant of each identity; without it clients may do everything.
        """
        self.name = name
        self.strategy = strategy
        self.now_us = begun_us
        """The time of the last message."""
        self.domains = BrokerDomains()
        self.only_advertised = (
            strategy.needs_advertisements if only_advertised is None else only_advertised
        )
        """Whether an event is delivered only if its publisher has advertised it (Siena, 3.4)."""
        self.limits = limits or BrokerLimits()
        self.parser = BulkParser(self.limits.filters)
        """Reads the filters of named subscriptions."""
        self.spaces = BrokerSpaces(spaces, self.limits.filters)
        self.grants = BrokerGrants(grant_of, self.limits.filters)
        self.summary_settings = summaries or SummarySettings()
        self.tables = RoutingTables(
            self,
            merging=merging,
            deferred=strategy.next_hops is not None and not matches_by_poset(substrate),
        )
        self.subscriptions = self.tables.subscriptions
        self.advertisements = self.tables.advertisements
        self.matching = self._recipient_matching(substrate)
        self.summaries = self.matching if isinstance(self.matching, Summaries) else None
        """The summaries of this and other brokers, if events are routed by them."""
        self.events = EventRouter(self, begun_us)
        self.named = NamedSubscriptions(self)
        self.variables = Variables()
        """The variables that subscriptions of this broker's own clients see as `@name`."""
        self.variables.set(mode="standard")
        self.sessions = Sessions()
        self.neighbours = Neighbours(self)
        self.waves = Waves(name, self.domains, begun_us)
        self.moves = Moves(self, begun_us)
        self.patterns = PatternMonitors(self)
        self.traces = Traces(self, begun_us)
        self._event_batches = EventBatches(self)

    def _recipient_matching(self, substrate: SubstrateChoice | None) -> RecipientMatching:
        """What finds who gets an event; the table tells it of all changes of its nodes."""
        table, next_hops = self.subscriptions, self.strategy.next_hops
        if self.strategy.sends_summaries:
            if isinstance(table.poset, Poset):
                at_home = substrate_factory(substrate, table.poset)
            else:
                at_home = antichain_substrate(substrate)
            table.listen(at_home)
            return Summaries(self, at_home, self.summary_settings)
        if next_hops is None:
            links = LinkMatching(self.domains, link_matcher(substrate))
            table.listen(links)
            return links
        found = substrate_factory(substrate, table.poset)
        table.listen(found)
        return FilterMatching(self.name, self.domains, next_hops, found)

    def add_domain(self, domain: Domain) -> None:
        """Join a domain, with the links that it has already."""
        self.domains.by_name[domain.name] = domain
        for peer in domain.neighbours:
            self.domains.domain_of[peer] = domain
        if self.summaries is not None:
            self.summaries.domain_added()

    # -- messages -----------------------------------------------------------------------------

    def handle(self, message: Message, sender: Address, now_us: int) -> Outgoing:
        """Handle a message of a client or neighbour; returns what to send to whom, in order."""
        try:
            self.now_us = now_us
            sent = self._dispatch(message, sender)
        except TidegateError as error:
            return [(sender, m.Refused(message, str(error)))]
        return sent + self.tables.settle()

    def handle_events(self, incoming: IncomingEvents, now_us: int) -> RoutedEvents:
        """Handle many events of clients and neighbours; returns who gets which of them, as arrays.

        They lead to what `handle` would have led to one by one, but are matched in one step.

        >>> from tidegate.language.events import Event
        >>> from tidegate.matching.batches import EventBatch
        >>> from tidegate.routing.batching.incoming import PublishedFrame
        >>> from tidegate.routing.strategies import strategy
        >>> broker = Broker("b", strategy("subscription"), substrate="columnar")
        >>> ann, bob = Client("ann"), Client("bob")
        >>> request = m.Subscribe("price < :limit", "cheap", {"limit": 10}, version=1)
        >>> broker.handle(request, ann, now_us=0)
        []
        >>> events = EventBatch.of_events([Event({"price": 9.5}), Event({"price": 30.0})])
        >>> frames = [PublishedFrame(bob, length=2)]
        >>> found = broker.handle_events(IncomingEvents(events, frames), now_us=1).deliveries
        >>> found.clients, found.events.tolist(), found.versions.tolist()
        ([Client(identity='ann')], [0], [1])
        """
        self.now_us = now_us
        routed = self._event_batches.route(incoming)
        return replace(routed, sent=self.tables.settle())

    def handle_requests(
        self, requests: Sequence[tuple[Client, m.Message]], now_us: int
    ) -> HandledRequests:
        """Handle many requests of clients in their order, and settle once after all of them.

        Matching changes with each request; the neighbours learn of all of them in one message, in
        which changes of one subscription are joined. Confirmations follow that message.
        """
        self.now_us = now_us
        errors: dict[int, TidegateError] = {}
        sent: Outgoing = []
        self.named.hold_confirmations()
        for number, (client, request) in enumerate(requests):
            try:
                sent += self._from_client(request, client)
            except TidegateError as error:
                errors[number] = error
        sent += self.tables.settle()
        return HandledRequests(errors, sent + self.named.release_confirmations())

    def _dispatch(self, message: Message, sender: Address) -> Outgoing:
        if isinstance(sender, Client):
            return self._from_client(message, sender)
        match message:
            case m.Connect():
                return self.neighbours.on_connect(message, sender)
            case m.Accept():
                return self.neighbours.on_accept(message, sender)
            case m.Refused():
                if isinstance(message.request, m.Sync) and sender in self.domains.domain_of:
                    return self.leave(sender, self.now_us)
                self.neighbours.on_refused(message, sender)
                sent = self.moves.on_refused(message.request, sender)
                return sent + self._summary_refused(message.request, sender)
            case m.Disconnect():
                return self.link_lost(sender, self.now_us)
        if sender not in self.domains.domain_of:
            raise RoutingError(f"{sender!r} is not a neighbour of {self.name!r}; connect first")
        return self._from_neighbour(message, sender)

    def _summary_refused(self, request: Message, peer: Peer) -> Outgoing:
        return [] if self.summaries is None else self.summaries.on_refused(request, peer)

    def _from_client(self, message: Message, client: Client) -> Outgoing:
        if self.sessions.must_wait(client, message):
            self.sessions.postpone(client, message)
            return []
        spaces = self.spaces
        match message:
            case m.Publish(event, space):
                return self.events.publish(event, client, space)
            case m.Subscribe(wanted, name=None, space=space):
                return self.subscribe(
                    spaces.bound(spaces.subscription(wanted, space), space), client
                )
            case m.Subscribe(wanted):
                named = checked_named_subscription(
                    message, self.now_us, self.limits.filters, self.parser
                )
                spaces.check_named(named, wanted if isinstance(wanted, str) else None)
                self.subscribe_named(named, client)
                asker = NamedAsker(client, named.subscription.id)
                return self._confirm(asker, named.version) if message.confirm else []
            case m.Update(name, version, confirm=confirm):
                self.named.update(client, message)
                return self._confirm(NamedAsker(client, name), version) if confirm else []
            case m.Cancel(name):
                self.named.cancel(client, name)
            case m.Unsubscribe(wanted, space):
                return self._unsubscribe(spaces.subscription(wanted, space), space, client)
            case m.Advertise(offered, space):
                offered = spaces.advertisement(offered, space)
                return self.advertise(spaces.bound(offered, space), client)
            case m.Unadvertise(offered, space):
                return self._unadvertise(spaces.advertisement(offered, space), space, client)
            case m.Suspend():
                self.sessions.suspend(client)
            case m.Resume(home, moves):
                if home is None or home == self.name:
                    return self.sessions.resume(client)
                return self.moves.begin(client, home, moves)
            case m.Depart():
                return self.remove_client(client)
            case _:
                raise RoutingError(f"a client cannot send {type(message).__name__}")
        return []

    def _from_neighbour(self, message: Message, peer: Peer) -> Outgoing:
        match message:
            case m.Notify():
                return self.events.on_notify(message, peer)
            case m.FilterDelta():
                self.tables.apply_filters(message, peer)
            case m.AdvertisementDelta():
                return self.tables.apply_advertisements(message, peer)
            case m.Sync():
                return on_sync(self, message, peer)
            case m.NotifyChain():
                check_publication_times(message.publications)
                self.patterns.on_chain(message, peer)
            case m.Delegate():
                check_pattern(message.pattern, self.limits.filters)
                return self.patterns.on_delegate(message, peer)
            case m.Undelegate():
                return self.patterns.on_undelegate(message, peer)
            case m.Trace():
                return self.traces.on_trace(message, peer)
            case m.Traced():
                return self.traces.on_traced(message, peer)
            case m.Announce(announcements):
                return self.neighbours.on_announce(announcements, peer)
            case m.Probe():
                self.domains.check_tree(message.tree, peer)
                return self._after_waves(self.waves.on_probe(message, peer))
            case m.Echo():
                return self._after_waves(self.waves.on_echo(message, peer))
            case m.Seek():
                self.domains.check_tree(message.tree, peer)
                return self.moves.on_seek(message, peer)
            case m.SeekReply():
                return self.moves.on_seek_reply(message, peer)
            case m.Release():
                return self.moves.on_release(message, peer)
            case m.HandOver():
                return self.moves.on_hand_over(message)
            case (
                m.SummaryUpdate()
                | m.SummaryWithdrawal()
                | m.SummaryReceived()
                | m.Drain()
                | m.Drained()
            ) if self.summaries is not None:
                return self.summaries.on_message(message, peer)
            case _:
                raise RoutingError(f"a broker cannot send {type(message).__name__}")
        return []

    # -- clients ------------------------------------------------------------------------------

    def subscribe(self, wanted: Filter | Pattern, client: Client) -> Outgoing:
        """Add a subscription of a client that has no name."""
        self._check_count(self._subscription_count(client), "subscriptions", client)
        wanted = self.grants.wanted(wanted, client)
        self.sessions.begin(client)
        if isinstance(wanted, Pattern):
            sent = self.patterns.subscribe(client, wanted, self.now_us)
            self.sessions.changed(client)
            return sent
        self.subscriptions.ask(client, wanted)
        return []

    def subscribe_named(self, named: m.NamedSubscription, client: Client) -> None:
        """Add a named subscription of a client."""
        self._check_count(self._subscription_count(client), "subscriptions", client)
        if len(self.named.handles) >= self.limits.subscriptions_max:
            raise LimitError(
                "the broker takes no more subscriptions",
                "subscriptions_max",
                self.limits.subscriptions_max,
            )
        self.sessions.begin(client)
        self.named.subscribe(client, named)

    def _subscription_count(self, client: Client) -> int:
        filters, patterns = self.subscriptions.nodes_of(client), self.patterns.patterns_of(client)
        return len(filters) + len(patterns) + self.named.count(client)

    def _confirm(self, asker: NamedAsker, version: int) -> Outgoing:
        if not (self.strategy.sends_subscriptions or self.strategy.sends_summaries):
            # no other broker has to know of it
            return [(asker.client, m.InForce(asker.name, version))]
        return self.named.confirm(asker, version)

    def confirm(self, client: Client, name: str) -> Outgoing:
        """Send a client `InForce` once all brokers have the present version of a subscription.

        For a client whose confirmation was under way when its broker restarted.
        """
        version = self.named.version(client, name)
        return self._confirm(NamedAsker(client, name), version)

    def _unsubscribe(self, wanted: Filter | Pattern, space: str | None, client: Client) -> Outgoing:
        if isinstance(wanted, Pattern):
            count, sent = self.patterns.unsubscribe(client, self.spaces.bound(wanted, space))
            self.sessions.changed(client)
        else:
            count, sent = self.subscriptions.cancel(client, self.spaces.bound(wanted, space)), []
            count += self.named.cancel_covered(client, wanted, space)
        if not count:
            raise RoutingError(
                f"{client.identity!r} has no subscription that `{wanted}` covers; only equal or "
                "narrower ones are cancelled"
            )
        return sent

    def advertise(self, advertisement: Advertisement, client: Client) -> Outgoing:
        """Add an advertisement of a client."""
        self._check_count(len(self.advertisements.nodes_of(client)), "advertisements", client)
        if self.grants:
            self.grants.check_advertisement(self.spaces.unbound(advertisement)[0], client)
        self.sessions.begin(client)
        if not self.advertisements.ask(client, advertisement):
            return []
        return self.tables.advertisements_changed([advertisement])

    def _unadvertise(
        self, advertisement: Advertisement, space: str | None, client: Client
    ) -> Outgoing:
        bound = self.spaces.bound(advertisement, space)
        if not self.advertisements.cancel(client, bound):
            raise RoutingError(
                f"{client.identity!r} has no advertisement that `{advertisement}` covers; only "
                "equal or narrower ones are cancelled"
            )
        return self.tables.advertisements_changed([bound])

    def remove_client(self, client: Client) -> Outgoing:
        """Remove a client with all its subscriptions and advertisements."""
        for wanted in self.subscriptions.items_of(client):
            self.subscriptions.cancel(client, wanted)
        advertised = self.advertisements.items_of(client)
        for advertisement in advertised:
            self.advertisements.cancel(client, advertisement)
        self.named.remove_client(client)
        self.sessions.end(client)
        sent = self.patterns.remove_client(client)
        return sent + self.tables.advertisements_changed(advertised)

    def _check_count(self, count: int, what: str, client: Client) -> None:
        """Raise unless a client may have one more subscription or advertisement."""
        if count >= self.limits.per_client_max:
            raise LimitError(
                f"{client.identity!r} has {count} {what}, which is the most that a client may have",
                "per_client_max",
                self.limits.per_client_max,
            )

    # -- neighbours ---------------------------------------------------------------------------

    def join(self, peer: Peer, domain: str, cost_us: int, *, as_client: bool = False) -> Outgoing:
        """Ask another broker to be a neighbour; with ``as_client``, to be this broker's master."""
        return self.neighbours.join(peer, domain, cost_us, as_client=as_client)

    def knows(self, peer: Peer) -> bool:
        """Whether a broker is a neighbour, or was asked to be one and has not answered yet."""
        return self.neighbours.knows(peer)

    def leave(self, peer: Peer, now_us: int) -> Outgoing:
        """Give up the link to a neighbour."""
        if peer not in self.domains.domain_of:
            raise RoutingError(f"{peer!r} is not a neighbour of {self.name!r}")
        return [(peer, m.Disconnect()), *self.link_lost(peer, now_us)]

    def link_lost(self, peer: Peer, now_us: int) -> Outgoing:
        """Note that the link to a neighbour is down; returns what to send to the others.

        What the neighbour has sent, and what it was sent, is void: if it connects again, both ends
        begin with nothing.
        """
        self.now_us = now_us
        was_neighbour = peer in self.domains.domain_of
        sent = self.neighbours.on_link_lost(peer, now_us)
        if not was_neighbour:
            return sent
        advertised = self.tables.forget(peer)
        sent += self.patterns.on_link_lost(peer)  # before the patterns are factored again
        sent += self.tables.advertisements_changed(advertised)
        # Moves come before the waves that they wait for: what follows a wave looks for its move,
        # which must be gone by then if it went over this link.
        sent += self.moves.on_link_lost(peer)
        sent += self._after_waves(self.waves.on_link_lost(peer))
        if self.summaries is not None:
            sent += self.summaries.forget(peer)
        return sent + self.tables.settle()

    # -- time ---------------------------------------------------------------------------------

    @property
    def due_us(self) -> int | None:
        """When `wake` must be called next; None if it need not be."""
        due = [self.patterns.due_us, None if self.summaries is None else self.summaries.due_us]
        return min((each for each in due if each is not None), default=None)

    def wake(self, now_us: int) -> Outgoing:
        """Run the pattern monitors and send the summaries that are due by now."""
        self.now_us = now_us
        sent = self.patterns.wake(now_us)
        return sent if self.summaries is None else sent + self.summaries.settle()

    # -- waves --------------------------------------------------------------------------------

    def start_wave(self, done: AfterWave) -> Outgoing:
        """Call ``done`` once all brokers have handled everything that was sent so far.

        The tables settle first: changes that were made before must be ahead of the probes. Events
        that were on their way when a broker handled this have come, too.
        """
        if self.summaries is not None:
            return self.tables.settle() + self.summaries.when_nothing_is_on_its_way(done)
        return self.start_plain_wave(done)

    def when_in_force(self, done: AfterWave) -> Outgoing:
        """Call ``done`` once all brokers match events with what clients have asked for so far."""
        if self.summaries is not None:
            return self.tables.settle() + self.summaries.when_in_force(done)
        return self.start_plain_wave(done)

    def start_plain_wave(self, done: AfterWave) -> Outgoing:
        """Call ``done`` once all brokers have handled what was sent down the spanning trees."""
        return self.tables.settle() + self._after_waves(self.waves.start(done))

    def _after_waves(self, result: WaveResult) -> Outgoing:
        """The messages of a step of waves, then those of the actions of completed waves."""
        sent, done = result
        for action in done:
            sent = sent + action()
        return sent

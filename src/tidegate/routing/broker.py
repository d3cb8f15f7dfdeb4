"""A broker: takes messages one by one and says what to send to whom.

Rules. (1) Nothing here does I/O, sleeps, or asks for the time: messages and the time come in, and
what is to be sent comes out. (2) Links keep the order of messages and lose none as long as they are
up. A link that was down begins anew: both ends are told (`lost`) before anything comes over it
again, and one of them asks to connect. (3) A message that cannot be accepted
changes nothing.

Theory of operation. Two tables, `subscriptions` and `offers`, hold who asked for what and where it
was sent on (see `forwarding`). A request changes a table; then the table settles, and says what to
tell the neighbours. An event is matched once, and goes to the clients among the askers of what it
matches, and to neighbours as the strategy says. Events of one broker are numbered; what is not
newer than the last one seen from there is a second copy, which can only come while links change,
and is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tidegate.errors import RoutingError, TidegateError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.values import from_us
from tidegate.language.variables import Variables
from tidegate.matching.poset.coverage import ADVERTISEMENTS, FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter, widest
from tidegate.routing import messages as m
from tidegate.routing.cell_updates import altered, differing_cells, structure
from tidegate.routing.checks import (
    check_pattern,
    check_standing,
    check_times,
    checked_advertisement,
    checked_named,
    checked_subscription,
)
from tidegate.routing.clients.moves import Moves
from tidegate.routing.clients.named_subscriptions import NamedSubscriptions
from tidegate.routing.clients.sessions import Sessions
from tidegate.routing.forwarding import Forwarding, MonitorAsker, NamedAsker
from tidegate.routing.merging import MergedFilters
from tidegate.routing.messages import Address, Client, Message, Outgoing, Peer
from tidegate.routing.outbox import Destination, OneFilterEach
from tidegate.routing.overlay.domains import Domain
from tidegate.routing.overlay.neighbours import Neighbours
from tidegate.routing.patterns.delegation import Patterns
from tidegate.routing.strategies import Arrival, BrokerDomains, Strategy, asked_for
from tidegate.routing.substrates import substrate as make_substrate
from tidegate.routing.waves import Waves


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """How much a broker takes from others."""

    filters: Limits = DEFAULT_LIMITS
    per_client_max: int = 10_000
    """Subscriptions, and advertisements, of one client."""
    interests_max: int = 1_000_000
    """Things that a neighbour may send in one message."""


class Broker:
    """One broker of an overlay.

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
        substrate: str = "poset",
        limits: BrokerLimits | None = None,
    ) -> None:
        self.name = name
        self.strategy = strategy
        self.around = BrokerDomains()
        self.only_advertised = (
            strategy.needs_advertisements if only_advertised is None else only_advertised
        )
        """Whether an event is delivered only if its publisher has advertised it (Siena, 3.4)."""
        self.offers: Forwarding[Advertisement] = Forwarding(ADVERTISEMENTS, self._wanted_offers)
        self.subscriptions: Forwarding[WantedFilter] = Forwarding(
            FILTERS,
            self._wanted_filters,
            self._merged if merging else OneFilterEach,
            structure=structure,
            by_item=strategy.needs_advertisements,
        )
        self.substrate = make_substrate(substrate)(self.subscriptions.poset)
        self.subscriptions.listener = self.substrate
        self.claims = NamedSubscriptions(self)
        self.variables = Variables()
        """What the subscriptions of own clients see as `@name`."""
        self.variables.set(mode="standard")
        self.sessions = Sessions()
        self.neighbours = Neighbours(self)
        self.waves = Waves(name, self.around)
        self.moves = Moves(self)
        self.patterns = Patterns(self)
        self.limits = limits or BrokerLimits()
        self._begun_us = begun_us
        self._published = 0
        self._seen: dict[Peer, tuple[int, int]] = {}
        self.now_us = begun_us

    def add_domain(self, domain: Domain) -> None:
        """Be in a domain, with the links that it has already."""
        self.around.domains[domain.name] = domain
        for peer in domain.neighbours:
            self.around.domain_of[peer] = domain

    def _merged(self) -> MergedFilters:
        return MergedFilters(self.limits.filters)

    # -- what comes in ------------------------------------------------------------------------

    def handle(self, message: Message, sender: Address, now_us: int) -> Outgoing:
        """Take a message; gives what to send to whom."""
        try:
            self.now_us = now_us
            sent = self._dispatch(message, sender)
        except TidegateError as error:
            return [(sender, m.Refused(message, str(error)))]
        return sent + self._settled()

    def _dispatch(self, message: Message, sender: Address) -> Outgoing:
        if isinstance(sender, Client):
            return self._request(message, sender)
        match message:
            case m.Connect():
                return self.neighbours.connect(message, sender)
            case m.Accept():
                return self.neighbours.accepted(message, sender)
            case m.Refused():
                self.neighbours.refused(message, sender)
                return self.moves.refused(message.request, sender)
            case m.Disconnect():
                return self.lost(sender, self.now_us)
        if sender not in self.around.domain_of:
            raise RoutingError(f"{sender!r} is not a neighbour of {self.name!r}; connect first")
        return self._from_neighbour(message, sender)

    def _request(self, message: Message, client: Client) -> Outgoing:
        if self.sessions.must_wait(client, message):
            self.sessions.postpone(client, message)
            return []
        match message:
            case m.Publish(event):
                return self._publish(event, client)
            case m.Subscribe(wanted, name=None):
                return self.subscribe(checked_subscription(wanted, self.limits.filters), client)
            case m.Subscribe():
                return self._subscribe_by_name(message, client)
            case m.Update(name, version, confirm=confirm):
                self.claims.update(client, message)
                return self._confirmed(NamedAsker(client, name), version) if confirm else []
            case m.Cancel(name):
                self.claims.cancel(client, name)
            case m.Unsubscribe(wanted):
                return self._unsubscribe(checked_subscription(wanted, self.limits.filters), client)
            case m.Advertise(offered):
                return self.advertise(checked_advertisement(offered, self.limits.filters), client)
            case m.Unadvertise(offered):
                return self._unadvertise(
                    checked_advertisement(offered, self.limits.filters), client
                )
            case m.Suspend():
                self.sessions.suspend(client)
            case m.Resume(home, moves):
                if home is None or home == self.name:
                    return self.sessions.resume(client)
                return self.moves.begin(client, home, moves)
            case m.Depart():
                return self.dismiss(client)
            case _:
                raise RoutingError(f"a client cannot send {type(message).__name__}")
        return []

    def _from_neighbour(self, message: Message, peer: Peer) -> Outgoing:
        match message:
            case m.Notify():
                return self._pass_on(message, peer)
            case m.Interests():
                self._take_interests(message, peer)
            case m.Offers():
                return self._take_offers(message, peer)
            case m.NotifyChain():
                check_times(message.publications)
                self.patterns.found(message, peer)
            case m.Delegate():
                check_pattern(message.pattern, self.limits.filters)
                return self.patterns.delegated(message, peer)
            case m.Undelegate():
                return self.patterns.undelegated(message, peer)
            case m.Announce(announcements):
                return self.neighbours.announced(announcements, peer)
            case m.Probe():
                self._check_tree(message.tree, peer)
                return self._waves_done(self.waves.probed(message, peer))
            case m.Echo():
                return self._waves_done(self.waves.echoed(message, peer))
            case m.Seek():
                self._check_tree(message.tree, peer)
                return self.moves.sought(message, peer)
            case m.SeekReply():
                return self.moves.found(message, peer)
            case m.Release():
                return self.moves.released(message, peer)
            case m.HandOver():
                return self.moves.handed_over(message)
            case _:
                raise RoutingError(f"a broker cannot send {type(message).__name__}")
        return []

    # -- clients ------------------------------------------------------------------------------

    def subscribe(self, wanted: Filter | Pattern, client: Client) -> Outgoing:
        """Enter what a client asks for."""
        self._check_room(self._subscribed(client), "subscriptions", client)
        self.sessions.begin(client)
        if isinstance(wanted, Pattern):
            return self.patterns.ask(client, wanted, self.now_us)
        self.subscriptions.ask(client, wanted)
        return []

    def _subscribed(self, client: Client) -> int:
        others = len(self.patterns.held(client)) + self.claims.count(client)
        return len(self.subscriptions.held(client)) + others

    def _subscribe_by_name(self, message: m.Subscribe, client: Client) -> Outgoing:
        named = checked_named(message, self.now_us, self.limits.filters)
        self.enter(named, client)
        claim = NamedAsker(client, named.subscription.id)
        return self._confirmed(claim, named.version) if message.confirm else []

    def enter(self, named: m.NamedSubscription, client: Client) -> None:
        """Enter what a client asks for by a name."""
        self._check_room(self._subscribed(client), "subscriptions", client)
        self.sessions.begin(client)
        self.claims.subscribe(client, named)

    def _confirmed(self, claim: NamedAsker, version: int) -> Outgoing:
        if not self.strategy.sends_subscriptions:
            return [(claim.client, m.InForce(claim.name, version))]
        return self.claims.confirm(claim, version)

    def _unsubscribe(self, wanted: Filter | Pattern, client: Client) -> Outgoing:
        if isinstance(wanted, Pattern):
            count, sent = self.patterns.cancel(client, wanted)
        else:
            count, sent = self.subscriptions.cancel(client, wanted), []
            count += self.claims.cancel_covered(client, wanted)
        if not count:
            raise RoutingError(f"{client.identity!r} has no subscription that this covers")
        return sent

    def advertise(self, offered: Advertisement, client: Client) -> Outgoing:
        """Enter what a client will publish."""
        self._check_room(len(self.offers.held(client)), "advertisements", client)
        self.sessions.begin(client)
        return self._offers_changed([offered]) if self.offers.ask(client, offered) else []

    def _unadvertise(self, offered: Advertisement, client: Client) -> Outgoing:
        if not self.offers.cancel(client, offered):
            raise RoutingError(f"{client.identity!r} has no advertisement that this covers")
        return self._offers_changed([offered])

    def _publish(self, event: Event, client: Client) -> Outgoing:
        if self.only_advertised and not any(
            each.allows(event) for each in self.offers.asked(client)
        ):
            raise RoutingError(f"{client.identity!r} has not advertised such an event")
        if event.time is None:
            event = Event(event.attributes, from_us(self.now_us))
        self._published += 1
        stamp = m.Stamp(self.name, self._begun_us, self._published)
        publication = m.Publication(event, stamp, client.identity)
        return self._route(Arrival(publication, None, None, None))

    def dismiss(self, client: Client) -> Outgoing:
        """Forget a client and all that it has asked for."""
        for wanted in self.subscriptions.asked(client):
            self.subscriptions.cancel(client, wanted)
        offered = self.offers.asked(client)
        for offer in offered:
            self.offers.cancel(client, offer)
        self.claims.dismiss(client)
        self.sessions.end(client)
        return self.patterns.dismiss(client) + self._offers_changed(offered)

    def _check_room(self, count: int, what: str, client: Client) -> None:
        if count >= self.limits.per_client_max:
            raise RoutingError(f"{client.identity!r} has {count} {what}, which is the most")

    # -- events -------------------------------------------------------------------------------

    def _pass_on(self, message: m.Notify, peer: Peer) -> Outgoing:
        self._check_tree(message.tree, peer)
        check_times([message.publication])
        broker, begun, number = message.publication.stamp
        if self._seen.get(broker, (0, 0)) >= (begun, number) or broker == self.name:
            return []
        self._seen[broker] = (begun, number)
        arrival = Arrival(message.publication, peer, message.tree, message.destinations)
        return self._route(arrival)

    def last_seen(self) -> tuple[m.Stamp, ...]:
        """The last event of each broker that has come here."""
        own = m.Stamp(self.name, self._begun_us, self._published)
        return own, *(m.Stamp(broker, *last) for broker, last in self._seen.items())

    def _route(self, arrival: Arrival) -> Outgoing:
        """Deliver an event here and send it on."""
        for_others = arrival.destinations is not None and self.name not in arrival.destinations
        matched: list[PosetNode[WantedFilter]] = []
        if not for_others:
            matched = self.substrate.matching(arrival.publication.event)
        sent = self._deliver(arrival.publication, matched)
        sent += self.strategy.hops(arrival, asked_for(matched, self.around), self.around)
        return sent

    def _deliver(
        self, publication: m.Publication, matched: Iterable[PosetNode[WantedFilter]]
    ) -> Outgoing:
        """Give an event to all here who ask for what it matches."""
        matches: dict[Client, list[m.MatchedVersion]] = {}
        unnamed: dict[Client, None] = {}
        for asker in dict.fromkeys(asker for node in matched for asker in node.subscribers):
            if isinstance(asker, Client):
                unnamed[asker] = None
            elif isinstance(asker, NamedAsker):
                match = self.claims.judge(asker, publication.event)
                if match is not None:
                    matches.setdefault(asker.client, []).append(match)
            elif isinstance(asker, MonitorAsker):
                self.patterns.heard(asker, publication)
        sent: Outgoing = []
        for client in {**unnamed, **dict.fromkeys(matches)}:
            names = tuple(matches.get(client, ()))
            delivery = m.Deliver(publication, names, unnamed=client in unnamed)
            sent += self.sessions.deliver(client, delivery)
        return sent

    # -- tables -------------------------------------------------------------------------------

    def _take_interests(self, message: m.Interests, peer: Peer) -> None:
        added = [key for key, _ in message.wanted]
        changed = [key for key, _ in message.altered]
        self._check_keys(self.subscriptions, peer, [*message.unwanted, *changed], added)
        wanted = list(message.wanted)
        for key, cells in message.altered:
            wanted.append((key, altered(self.subscriptions.item(peer, key), cells)))
        for _, each in wanted:
            check_standing(each, self.limits.filters)
        for key, each in wanted:
            self.subscriptions.put(peer, key, each)
        self.subscriptions.take_back(peer, message.unwanted)

    def _take_offers(self, message: m.Offers, peer: Peer) -> Outgoing:
        added = [key for key, _ in message.offered]
        self._check_keys(self.offers, peer, message.withdrawn, added)
        for _, offered in message.offered:
            checked_advertisement(offered, self.limits.filters)
        changed = [self.offers.item(peer, key) for key in message.withdrawn]
        for key, offered in message.offered:
            self.offers.put(peer, key, offered)
            changed.append(offered)
        self.offers.take_back(peer, message.withdrawn)
        return self._offers_changed(changed)

    def _check_keys(
        self, table: Forwarding[Any], peer: Peer, dropped: Iterable[m.Key], added: list[m.Key]
    ) -> None:
        most = self.limits.interests_max
        if len(added) > most:
            raise RoutingError(f"{len(added)} at once; at most {most} are taken")
        for key in added:
            self._check_tree(key.tree, peer)
        for key in dropped:
            if not table.holds(peer, key):
                raise RoutingError(f"{peer!r} takes back or changes {key}, which it has not sent")

    def _check_tree(self, tree: Peer | None, peer: Peer) -> None:
        domain = self.around.domain_of[peer]
        if (tree is not None) != domain.tree_per_source:
            needed = "a tree for each source" if domain.tree_per_source else "one tree only"
            raise RoutingError(f"the domain {domain.name!r} has {needed}; {tree!r} does not fit")

    def _offers_changed(self, changed: list[Advertisement]) -> Outgoing:
        """See where subscriptions are to be sent, now that other advertisements are there."""
        if not self.strategy.needs_advertisements or not changed:
            return []
        for node in self.subscriptions.poset:
            if any(each.overlaps(widest(node.item)) for each in changed):
                self.subscriptions.mark(node)
        return self.patterns.factor_anew()

    def _wanted_filters(self, node: PosetNode[WantedFilter]) -> Iterable[Destination]:
        return self.strategy.wanted(node, self.around, self.offers)

    def _wanted_offers(self, node: PosetNode[Advertisement]) -> Iterable[Destination]:
        if not self.strategy.needs_advertisements:
            return ()
        return self.around.away_from(node.subscribers)

    def _settled(self) -> Outgoing:
        """What to tell the neighbours."""
        sent: Outgoing = []
        for peer, offers in self.offers.settle().items():
            sent.append((peer, m.Offers(tuple(offers.added), tuple(offers.dropped))))
        for peer, wants in self.subscriptions.settle().items():
            cells = [(key, differing_cells(old, new)) for key, old, new in wants.altered]
            differing = tuple(each for each in cells if each[1])
            if wants.added or wants.dropped or differing:
                wanted, unwanted = tuple(wants.added), tuple(wants.dropped)
                sent.append((peer, m.Interests(wanted, unwanted, differing)))
        return sent

    # -- neighbours ---------------------------------------------------------------------------

    def join(self, peer: Peer, domain: str, cost_us: int, *, as_client: bool = False) -> Outgoing:
        """Ask another broker to be a neighbour; ``as_client`` takes it for the master."""
        return self.neighbours.join(peer, domain, cost_us, as_client=as_client)

    def knows(self, peer: Peer) -> bool:
        """Whether a broker is a neighbour, or was asked to be one."""
        return self.neighbours.knows(peer)

    def leave(self, peer: Peer, now_us: int) -> Outgoing:
        """Be a neighbour no longer."""
        if peer not in self.around.domain_of:
            raise RoutingError(f"{peer!r} is not a neighbour of {self.name!r}")
        return [(peer, m.Disconnect()), *self.lost(peer, now_us)]

    def lost(self, peer: Peer, now_us: int) -> Outgoing:
        """Take note that a link is down: what came over it, and was sent, is void."""
        was_there = peer in self.around.domain_of
        sent = self.neighbours.lost(peer, now_us)
        if not was_there:
            return sent
        offered = [node.item for node in self.offers.held_by(peer)]
        self.offers.forget(peer)
        self.subscriptions.forget(peer)
        sent += self.patterns.lost(peer) + self._offers_changed(offered)
        sent += self.moves.lost(peer)  # before the waves that they wait for
        sent += self._waves_done(self.waves.lost(peer))
        return sent + self._settled()

    def mark_everything(self) -> None:
        """See anew where everything is to be sent."""
        self.offers.mark_all()
        self.subscriptions.mark_all()

    # -- time ---------------------------------------------------------------------------------

    @property
    def due_us(self) -> int | None:
        """When `wake` has something to do; None if it has nothing."""
        return self.patterns.due_us

    def wake(self, now_us: int) -> Outgoing:
        """Do what was to be done by a time."""
        self.now_us = now_us
        return self.patterns.wake(now_us)

    # -- waves --------------------------------------------------------------------------------

    def start_wave(self, done: Callable[[], Outgoing]) -> Outgoing:
        """Have something done when all brokers have taken in all that was sent so far."""
        return self._settled() + self._waves_done(self.waves.start(done))

    def _waves_done(self, result: tuple[Outgoing, list[Callable[[], Outgoing]]]) -> Outgoing:
        sent, done = result
        for action in done:
            sent = sent + action()
        return sent

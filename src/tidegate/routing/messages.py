"""The messages between clients and brokers, and between brokers; each is a small frozen value.

    client -> own broker    Publish, Subscribe, Unsubscribe, Advertise, Unadvertise   (Siena, 3)
                            Update, Cancel            ("Parametric Subscriptions", figures 5 and 6)
                            Suspend, Resume, Depart
    broker -> own client    Deliver, DeliverSequence, InForce, Missed, Refused
    broker -> neighbour     FilterDelta, AdvertisementDelta    what the neighbour's tables must hold
                            Sync                               ... all of it, after a restart
                            Notify                             an event on its way
                            Delegate, Undelegate, NotifyChain  parts of patterns (Siena, 4.2.4)
                            Connect, Accept, Disconnect, Announce, Refused     links of the overlay
                            Probe, Echo                        waves (see `waves`)
                            Seek, SeekReply, Release, HandOver a client that moves (see `moves`)
                            SummaryUpdate, SummaryWithdrawal, SummaryReceived, Drain, Drained
                                                               summaries (see `summaries`)
                            Trace, Traced                      the way of an event (see `tracing`)

A broker that cannot accept a message answers with `Refused`, and its state has not changed.

A request of a client may name a space (see `spaces`). It is checked against the space, and concerns
only events, subscriptions and advertisements of this space.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Evolve
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.values import Value
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.matching.subscription import Subscription
from tidegate.routing.cell_updates import Cell
from tidegate.routing.overlay.graph import Announcement


class Client(NamedTuple):
    """The identity of a client; only the runtime knows the address at which it can be reached."""

    identity: str


Peer = str
"""The name of a broker, as the address of a neighbour."""
Address = Client | Peer


# -- from clients -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A client asks its broker for all events that match a filter, or sequences for a pattern.

    A subscription with a name can be updated later; its filter may have parameters and evolve.
    """

    wanted: Filter | Pattern | str
    name: str | None = None
    parameters: Mapping[str, Value] = field(default_factory=dict)
    evolve: Evolve | None = None
    version: int = 0
    """The version that deliveries name; each update must have a higher one."""
    origin_us: int | None = None
    """The time at which `t` is 0; None for the time at which the broker handles this request."""
    confirm: bool = False
    """Whether the broker sends `InForce` once all brokers have the subscription."""
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """A client changes a named subscription at its broker, in one step.

    Parameters that are not named keep their values, also with a new filter; None unsets one.
    """

    name: str
    version: int
    parameters: Mapping[str, Value | None] = field(default_factory=dict)
    filter: Filter | str | None = None
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """A client ends a named subscription at its broker."""

    name: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A client ends, at its broker, all its subscriptions that a filter or pattern covers."""

    wanted: Filter | Pattern | str
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Advertise:
    """A client tells its broker which events it will publish."""

    advertisement: Advertisement | str
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """A client ends, at its broker, all its advertisements that an advertisement covers."""

    advertisement: Advertisement | str
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Publish:
    """A client gives its broker an event, which goes to every client that has subscribed to it."""

    event: Event
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Suspend:
    """A client asks its broker to keep its deliveries until it resumes."""


@dataclass(frozen=True, slots=True)
class Resume:
    """A client resumes; at another broker than before, that one fetches what its home has kept."""

    home: Peer | None = None
    """The broker at which the client was before; None for the broker that gets this request."""
    moves: int = 0
    """How often the client has moved, this move included. A client that counts its moves may go
    back and forth at will; one that leaves this 0 must have arrived before it comes back."""


@dataclass(frozen=True, slots=True)
class Depart:
    """A client leaves for good; its broker cancels all its subscriptions and advertisements."""


# -- to clients ---------------------------------------------------------------------------------


class NamedSubscription(NamedTuple):
    """A version of a named subscription; the id of the subscription is the name."""

    subscription: Subscription
    version: int
    space: str | None = None


class Stamp(NamedTuple):
    """Identifies a publication; stamps of one broker are in the order of publication."""

    broker: Peer
    begun_us: int
    """When the broker was started. After a restart numbers begin at 1 again, so stamps are
    compared by this first."""
    number: int


@dataclass(frozen=True, slots=True)
class Publication:
    """An event as the broker of its publisher has stamped it, with the publisher's identity."""

    event: Event
    stamp: Stamp
    publisher: str
    space: str | None = None
    """The name of its space, empty for the default one; None in a network without spaces."""


class MatchedVersion(NamedTuple):
    """A named subscription and the version of it that an event matches."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Deliver:
    """A broker gives its client an event that matches at least one of the client's subscriptions.

    The event is sent once, however many subscriptions of the client it matches.
    """

    publication: Publication
    matches: tuple[MatchedVersion, ...] = ()
    """The client's named subscriptions that the event matches."""
    unnamed: bool = True
    """Whether the event matches a subscription of the client that has no name."""


@dataclass(frozen=True, slots=True)
class InForce:
    """A broker tells its client that all brokers have this version of a subscription, or a later
    one: events published from now on are matched by it wherever they are published."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class DeliverSequence:
    """A broker gives its client events that together match a pattern it has subscribed to."""

    pattern: Pattern
    publications: tuple[Publication, ...]


@dataclass(frozen=True, slots=True)
class Missed:
    """A broker tells its client how many deliveries it dropped while the client was suspended."""

    count: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A broker answers a message that it cannot accept, and which has not changed its state."""

    request: Message
    reason: str


# -- between brokers ----------------------------------------------------------------------------


class Key(NamedTuple):
    """Identifies a filter or advertisement on one link, for as long as its sender has not removed
    it. Together with the index of a cell it is a variable that both ends of the link share (the
    broker variables of "Parametric Subscriptions", 4.3)."""

    number: int
    tree: Peer | None
    """The root of the spanning tree along which it spreads; None where there is only one tree."""


@dataclass(frozen=True, slots=True)
class FilterDelta:
    """A broker changes the filters that a neighbour holds for it.

    The neighbour applies the whole message before it handles the next one. So when a narrow filter
    replaces a wide one, or one version the one before, no event falls between the two.
    """

    added: tuple[tuple[Key, WantedFilter], ...] = ()
    """New filters, and filters that replace one of another structure under its key."""
    removed: tuple[Key, ...] = ()
    updated: tuple[tuple[Key, tuple[Cell, ...]], ...] = ()
    """Cells that have another value, of filters whose structure stays as it was."""


@dataclass(frozen=True, slots=True)
class AdvertisementDelta:
    """A broker changes the advertisements that a neighbour holds for it.

    They say which events may come to the neighbour over this link.
    """

    added: tuple[tuple[Key, Advertisement], ...] = ()
    removed: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Sync:
    """A broker that has come back from its durable state says what a neighbour must hold from now
    on: all of it, in place of what it holds.

    It is the first message of the broker's new stream (see `link_session`). Where the neighbour
    holds the same already, as equal digests show, the filters and advertisements are left out; both
    ends then number the keys anew, in the same order.
    """

    digest: bytes
    filters: tuple[tuple[Key, WantedFilter], ...] | None = None
    advertisements: tuple[tuple[Key, Advertisement], ...] | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """A broker that is to examine its summaries for an event, and which brokers need it no more.

    Bits stand for the brokers of a domain in the order of their names.
    """

    examiner: Peer
    examined: int
    """The brokers whose subscriptions were examined: the paper's BROCLI."""
    brokers: int
    """A digest of the names that the bits stand for."""


@dataclass(frozen=True, slots=True)
class Notify:
    """A broker passes an event on to a neighbour, along a spanning tree.

    With summaries there is no tree: the event follows the shortest paths to the brokers it is for.
    """

    publication: Publication
    tree: Peer | None = None
    """The broker at which the event entered the domain; None where there is only one tree."""
    targets: frozenset[Peer] | None = None
    """The brokers the event must reach, if they are known (match-first, summaries)."""
    examination: Examination | None = None
    """The broker that examines the event next (summaries)."""


@dataclass(frozen=True, slots=True)
class Delegate:
    """A broker asks a neighbour to find all chains of events for a pattern (see `chains`)."""

    number: int
    """Identifies the pattern in `NotifyChain` and `Undelegate`; chosen by the sender."""
    pattern: Pattern
    levels: int
    """How many times in a row the pattern may still be delegated, from the receiver on."""


@dataclass(frozen=True, slots=True)
class Undelegate:
    """A broker tells a neighbour that it no longer needs the chains of a delegated pattern."""

    number: int


@dataclass(frozen=True, slots=True)
class NotifyChain:
    """A broker answers a neighbour's `Delegate` with one chain: an event for each step."""

    number: int
    publications: tuple[Publication, ...]


@dataclass(frozen=True, slots=True)
class Connect:
    """A broker asks another one to become its neighbour in a domain."""

    domain: str
    cost_us: int
    master: bool = False
    """Whether the receiver becomes the master of the sender (hierarchical domains only)."""
    announcements: tuple[Announcement, ...] = ()
    has_spaces: bool = False
    """Whether the sender is a broker of a network with spaces."""


@dataclass(frozen=True, slots=True)
class Accept:
    """A broker accepts a `Connect`; from now on the two are neighbours."""

    domain: str
    cost_us: int
    announcements: tuple[Announcement, ...] = ()


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A broker tells its neighbour that it gives up their link."""


@dataclass(frozen=True, slots=True)
class Announce:
    """A broker tells a neighbour what it has newly learned of the links of their domain."""

    announcements: tuple[Announcement, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """A wave goes out: the neighbour passes the probe on down the tree, and answers with `Echo`
    once all brokers further down have handled whatever came before the probe."""

    origin: Peer
    number: int
    tree: Peer | None = None


@dataclass(frozen=True, slots=True)
class Echo:
    """A wave comes back: all brokers from the sender on down the tree have handled the probe."""

    origin: Peer
    number: int


@dataclass(frozen=True, slots=True)
class Seek:
    """The new broker of a client (``origin``) looks for the old one (``home``), down its tree."""

    origin: Peer
    number: int
    client: Client
    home: Peer
    tree: Peer | None = None
    moves: int = 0
    """How often the client has moved, as counted in `Resume`."""


@dataclass(frozen=True, slots=True)
class SeekReply:
    """A neighbour answers `Seek`: whether the old broker was found at it or further down the tree,
    and what the client has subscribed to and advertised there."""

    origin: Peer
    number: int
    is_found: bool
    subscriptions: tuple[Filter | Pattern, ...] = ()
    advertisements: tuple[Advertisement, ...] = ()
    named: tuple[NamedSubscription, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """The new broker tells the old one that it gets all events published from now on."""

    origin: Peer
    number: int


@dataclass(frozen=True, slots=True)
class HandOver:
    """The old broker gives the new one the deliveries it has kept, and forgets the client."""

    origin: Peer
    number: int
    kept: tuple[Deliver | DeliverSequence, ...]
    missed: int = 0
    """How many deliveries the old broker has dropped because it kept too many."""
    seen: tuple[Stamp, ...] = ()
    """The last event of each broker that has come to the old broker: the client has received
    those up to here that are not in ``kept``."""


class Validity(NamedTuple):
    """The publication times for which the summary of a broker speaks, both ends included."""

    broker: Peer
    begin_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class SummaryUpdate:
    """A broker gives a neighbour its merged summary, or the difference to the last one."""

    number: int
    """Numbers rise with each update or withdrawal of a broker."""
    brokers: tuple[Peer, ...]
    """The brokers whose subscriptions are in it (the paper's Merged_Brokers); empty for a
    difference, whose brokers are those of the last summary."""
    validity: tuple[Validity, ...]
    """The brokers whose subscriptions evolve; the others are valid at any time."""
    tables: bytes
    is_urgent: bool = False
    """Whether the neighbour should pass it on at once."""


@dataclass(frozen=True, slots=True)
class SummaryWithdrawal:
    """A broker takes back the summary it has given a neighbour."""

    number: int


@dataclass(frozen=True, slots=True)
class SummaryReceived:
    """A broker acknowledges all updates up to a number: whoever examines them, has them."""

    number: int


@dataclass(frozen=True, slots=True)
class Drain:
    """A broker asks all brokers of a domain for `Drained`, which follows their events to it."""

    origin: Peer
    number: int
    tree: Peer | None = None


@dataclass(frozen=True, slots=True)
class Drained:
    """A broker answers `Drain`, on the way of its events: none from before is on its way any more.

    ``stops`` are the brokers still to be visited, of which the origin is the last.
    """

    number: int
    broker: Peer
    stops: tuple[Peer, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """A broker has a neighbour report what would become of an event, as if it got ``notify``."""

    origin: Peer
    """The broker at which the trace began."""
    number: int
    notify: Notify


@dataclass(frozen=True, slots=True)
class Traced:
    """The report of a broker on a traced event, on its way to where the trace began."""

    origin: Peer
    number: int
    report: str
    """JSON; see `trace_report`."""


ClientRequest = (
    Subscribe | Update | Cancel | Unsubscribe | Advertise | Unadvertise | Publish
    | Suspend | Resume | Depart
)  # fmt: skip
PeerMessage = (
    FilterDelta | AdvertisementDelta | Sync | Notify | Connect | Accept | Disconnect | Announce
    | Delegate | Undelegate | NotifyChain | Probe | Echo | Seek | SeekReply | Release | HandOver
    | SummaryUpdate | SummaryWithdrawal | SummaryReceived | Drain | Drained | Trace | Traced
)  # fmt: skip
Message = ClientRequest | PeerMessage | Deliver | DeliverSequence | InForce | Missed | Refused
Outgoing = list[tuple[Address, Message]]
"""Receivers and messages, in the order in which they must be sent."""

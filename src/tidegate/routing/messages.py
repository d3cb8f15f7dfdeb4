"""What brokers and clients say to each other; each message is a small value.

A client speaks for its identity: it publishes, subscribes and advertises (Siena, 3), and changes
what it has given a name (`Update`, "Parametric Subscriptions", 4.3). Brokers tell each other what
they want and what they can give (`Interests`, `Offers`), pass events on (`Notify`), and join and
leave (`Connect`, `Disconnect`). A request that cannot be met is `Refused`, and nothing
has changed.
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
    """The identity of a client; where it can be reached is the runtime's business."""

    identity: str


Peer = str
"""A broker, by its name."""
Address = Client | Peer


# -- from clients -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Have all events that match, from now on; or all sequences of events, for a pattern.

    With a name it can be changed later, and its filter may have parameters and move.
    """

    wanted: Filter | Pattern | str
    name: str | None = None
    parameters: Mapping[str, Value] = field(default_factory=dict)
    evolve: Evolve | None = None
    version: int = 0
    """What deliveries are to name; each change has a higher one."""
    origin_us: int | None = None
    """When `t` begins to count; None for when the broker gets this."""
    confirm: bool = False
    """Whether the client is to be told when this is in force everywhere."""


@dataclass(frozen=True, slots=True)
class Update:
    """Change a subscription that has a name, as one: parameters (None takes a value away), or the
    whole filter, for which parameters that are not named keep their values."""

    name: str
    version: int
    parameters: Mapping[str, Value | None] = field(default_factory=dict)
    filter: Filter | str | None = None
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a subscription that has a name."""

    name: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Cancel all subscriptions of this client that are covered."""

    wanted: Filter | Pattern | str


@dataclass(frozen=True, slots=True)
class Advertise:
    """Say which events will be published."""

    offered: Advertisement | str


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """Cancel all advertisements of this client that are covered."""

    offered: Advertisement | str


@dataclass(frozen=True, slots=True)
class Publish:
    """Give an event to all who want it."""

    event: Event


@dataclass(frozen=True, slots=True)
class Suspend:
    """Keep what comes for this client until it resumes."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on, here; and fetch what another broker has kept, if the client was there before."""

    home: Peer | None = None
    moves: int = 0
    """How often the client has moved, this one included; who counts may go back and forth at will,
    and who does not must have arrived before it comes back."""


@dataclass(frozen=True, slots=True)
class Depart:
    """Leave for good: cancel all subscriptions and advertisements of this client."""


# -- to clients ---------------------------------------------------------------------------------


class NamedSubscription(NamedTuple):
    """A subscription that has a name, its id, as it stands."""

    subscription: Subscription
    version: int


class Stamp(NamedTuple):
    """Tells an event from all others; those of one broker are in the order of publication."""

    broker: Peer
    begun: int
    """When the broker began, in microseconds: after a restart it counts anew."""
    number: int


@dataclass(frozen=True, slots=True)
class Publication:
    """An event on its way, and who published it."""

    event: Event
    stamp: Stamp
    publisher: str


class MatchedVersion(NamedTuple):
    """A subscription that has a name, and which version of it an event matches."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Deliver:
    """An event for a client, which has a subscription that it matches."""

    publication: Publication
    matches: tuple[MatchedVersion, ...] = ()
    """Its subscriptions with a name that the event matches."""
    unnamed: bool = True
    """Whether it has a subscription without a name that the event matches."""


@dataclass(frozen=True, slots=True)
class InForce:
    """All brokers go by this version of a subscription, or by a later one."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class DeliverSequence:
    """Events that together match a pattern to which a client has subscribed."""

    pattern: Pattern
    publications: tuple[Publication, ...]


@dataclass(frozen=True, slots=True)
class Missed:
    """So many deliveries could not be kept while a client was suspended."""

    count: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that cannot be met, and why."""

    request: Message
    reason: str


# -- between brokers ----------------------------------------------------------------------------


class Key(NamedTuple):
    """What a broker calls something that it has sent to a neighbour, and for which tree."""

    number: int
    tree: Peer | None
    """The broker at the root of the spanning tree that it follows; None where there is one tree."""


@dataclass(frozen=True, slots=True)
class Interests:
    """What a broker wants from now on, and no longer wants, from a neighbour; takes hold at once,
    so that nothing is missed when something wide is replaced by something narrow."""

    wanted: tuple[tuple[Key, WantedFilter], ...] = ()
    unwanted: tuple[Key, ...] = ()
    altered: tuple[tuple[Key, tuple[Cell, ...]], ...] = ()
    """What was sent before, and is the same but for some values."""


@dataclass(frozen=True, slots=True)
class Offers:
    """What publishers behind a broker may publish from now on, and no longer publish."""

    offered: tuple[tuple[Key, Advertisement], ...] = ()
    withdrawn: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Notify:
    """An event on its way along a tree."""

    publication: Publication
    tree: Peer | None = None
    destinations: frozenset[Peer] | None = None
    """The brokers it is for, where the first one has found that out (match-first)."""


@dataclass(frozen=True, slots=True)
class Delegate:
    """Find all chains of events for a pattern (see `chains`)."""

    number: int
    pattern: Pattern
    levels: int
    """How often the receiver may delegate parts of it, in a row."""


@dataclass(frozen=True, slots=True)
class Undelegate:
    """Find them no longer."""

    number: int


@dataclass(frozen=True, slots=True)
class NotifyChain:
    """Events that satisfy the steps of a pattern that was delegated."""

    number: int
    publications: tuple[Publication, ...]


@dataclass(frozen=True, slots=True)
class Connect:
    """Ask to be a neighbour in a domain."""

    domain: str
    cost_us: int
    master: bool = False
    """Whether the broker that is asked becomes the master of the one that asks."""
    announcements: tuple[Announcement, ...] = ()


@dataclass(frozen=True, slots=True)
class Accept:
    """The answer to `Connect`: yes."""

    domain: str
    cost_us: int
    announcements: tuple[Announcement, ...] = ()


@dataclass(frozen=True, slots=True)
class Disconnect:
    """The sender is no longer a neighbour."""


@dataclass(frozen=True, slots=True)
class Announce:
    """What is new of the links of a domain."""

    announcements: tuple[Announcement, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """Asks all brokers down a tree to answer when they have done all that came before."""

    origin: Peer
    number: int
    tree: Peer | None = None


@dataclass(frozen=True, slots=True)
class Echo:
    """All brokers down the tree from here have done what came before a probe."""

    origin: Peer
    number: int


@dataclass(frozen=True, slots=True)
class Seek:
    """Asks all brokers down a tree for a client that resumes at the origin."""

    origin: Peer
    number: int
    client: Client
    home: Peer
    tree: Peer | None = None
    moves: int = 0
    """How often the client has moved."""


@dataclass(frozen=True, slots=True)
class SeekReply:
    """Whether a client was at this broker or further down, and what it had asked for."""

    origin: Peer
    number: int
    is_here: bool
    wanted: tuple[Filter | Pattern, ...] = ()
    offered: tuple[Advertisement, ...] = ()
    named: tuple[NamedSubscription, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """What is published from now on comes to the new broker of a client."""

    origin: Peer
    number: int


@dataclass(frozen=True, slots=True)
class HandOver:
    """What was kept for a client at its old broker."""

    origin: Peer
    number: int
    kept: tuple[Deliver | DeliverSequence, ...]
    missed: int = 0
    """How many deliveries could not be kept."""
    seen: tuple[Stamp, ...] = ()
    """The last event of each broker that has come there: the client had what is not in ``kept``."""


ClientRequest = (
    Subscribe | Update | Cancel | Unsubscribe | Advertise | Unadvertise | Publish
    | Suspend | Resume | Depart
)  # fmt: skip
PeerMessage = (
    Interests | Offers | Notify | Connect | Accept | Disconnect | Announce
    | Delegate | Undelegate | NotifyChain | Probe | Echo | Seek | SeekReply | Release | HandOver
)  # fmt: skip
Message = ClientRequest | PeerMessage | Deliver | DeliverSequence | InForce | Missed | Refused
Outgoing = list[tuple[Address, Message]]
"""Who gets what, in this order."""

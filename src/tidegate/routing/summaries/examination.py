"""The examination of events in one domain: which brokers get an event, and who examines it next.

Rules ("Subscription Summarization", 4.3, algorithm 3).

(1) A broker that examines an event looks for owners of matching subscriptions in the summaries that
    it knows (`Plan.known`), except for brokers that are in the list of examined ones. It adds all
    it knows to the list, sends the event to the owners directly, and the list with the event to the
    broker of highest degree that is not in it, the nearest one on a tie. When the list is complete
    the examination ends.
(2) A broker that ought to be known, but whose summary is missing, does not speak for the right
    brokers or is not valid at the time of publication, counts as an owner.
(3) The list is a set of bits, numbered by the names of the brokers of the graph. A list that was
    made for other brokers counts as empty.
(4) Messages go along the shortest paths. A broker that only relays an event does not match it and
    does not take it for seen; targets that have the next hop in common share a copy, and so does
    the examiner. A broker that cannot reach the examiner takes its place.

Why no event is lost and none overtakes another, while links do not change. By rule (2) whom an
examiner knows, and so the brokers that an event visits, is a function of the graph and of the
broker where the event came in, whatever summaries have arrived. So all events from one broker to
one owner have the same way: from examiner to examiner up to the first that knows the owner, from
there on the shortest path. Links keep the order, so the rule of `event_routing` holds that a stamp
which is not newer is a second copy. (In the paper the list follows from what has arrived. Then the
first event after the arrival of a summary takes a shorter way, and overtakes those before it.)
While links change an event may be lost or come twice, as with every routing; the stamps drop what
comes twice, and end examinations that would go round between brokers that disagree about the links.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.matching.poset.wanted_filter import event_us
from tidegate.matching.summary.index import SummaryIndex
from tidegate.matching.summary.merging import merge
from tidegate.routing.messages import Examination, Notify, Peer, Publication
from tidegate.routing.summaries.exchange import SummaryExchange


@dataclass(slots=True)
class EventCounts:
    """What a broker has done for events; the paper counts a hop for each message to a broker that
    examines or owns, however many links it crosses."""

    examined: int = 0
    """Events examined here."""
    to_examiners: int = 0
    """Events sent on to another examiner: hops as the paper counts them."""
    to_owners: int = 0
    """Events sent to owners, one for each owner: hops as the paper counts them."""
    unknown: int = 0
    """Those of ``to_owners`` of whom no summary was valid."""
    copies: int = 0
    """Messages on links: real hops."""
    in_vain: int = 0
    """Events that came here as to an owner, and matched nothing."""


class Examiner:
    """Examines the events of one domain at one broker."""

    def __init__(self, exchange: SummaryExchange, counts: EventCounts) -> None:
        self._exchange = exchange
        self._counts = counts
        self._revision = -1
        """The revision of the exchange from which all that follows was computed."""
        self._unknown: frozenset[Peer] = frozenset()
        """Brokers that ought to be known, and of which there is no summary."""
        self._validity: tuple[tuple[Peer, int, int], ...] = ()
        self._index: SummaryIndex | None = None

    def examines(self, examination: Examination | None) -> bool:
        """Whether this broker is the examiner, or takes its place because it cannot be reached."""
        if examination is None:
            return False
        examiner = examination.examiner
        return examiner == self._exchange.domain.me or self.next_hop(examiner) is None

    def examine(
        self, publication: Publication, event: Event, examination: Examination | None
    ) -> tuple[set[Peer], Examination | None]:
        """The owners of an event, and the next examination; ``event`` is as brokers match it.

        An event that enters the domain here comes without an examination.
        """
        plan, me = self._exchange.plan, self._exchange.domain.me
        examined = 0
        if examination is not None and examination.brokers == plan.digest:
            examined = examination.examined
        self._counts.examined += 1
        self._refresh()
        unknown = self._unknown_at(event_us(publication.event))
        matching = set() if self._index is None else self._index.owners_matching(event)
        owners = {each for each in matching | unknown if not examined & plan.bit(each)}
        self._counts.to_owners += len(owners)
        self._counts.unknown += len(owners & unknown)
        examined |= plan.known_bits(me)
        following = plan.next_examiner(me, examined)
        if following is None:
            return owners, None
        self._counts.to_examiners += 1
        return owners, Examination(following, examined, plan.digest)

    def _unknown_at(self, time_us: int) -> set[Peer]:
        """The brokers that ought to be known here, and are not at this time (rule 2)."""
        invalid = {broker for broker, begin, end in self._validity if not begin <= time_us <= end}
        return invalid | self._unknown

    def _refresh(self) -> None:
        exchange = self._exchange
        plan = exchange.plan
        if self._revision == exchange.revision:
            return
        self._revision = exchange.revision
        unknown: set[Peer] = set()
        held = []
        for child in plan.children(exchange.domain.me):
            usable = exchange.usable(child)
            if usable is None:
                unknown |= plan.sent(child)
            else:
                held.append(usable)
        self._unknown = frozenset(unknown)
        self._validity = tuple(validity for each in held for validity in each.validity)
        self._index = SummaryIndex(merge([each.tables for each in held])) if held else None

    # -- copies on links ----------------------------------------------------------------------

    def copies(
        self, publication: Publication, targets: Iterable[Peer], examination: Examination | None
    ) -> list[tuple[Peer, Notify]]:
        """One message for each next hop to some targets and to the next examiner."""
        by_hop: dict[Peer, set[Peer]] = {}
        for target in sorted(targets):
            hop = self.next_hop(target)
            if hop is not None:
                by_hop.setdefault(hop, set()).add(target)
        onward = None if examination is None else self.next_hop(examination.examiner)
        if onward is not None:
            by_hop.setdefault(onward, set())
        self._counts.copies += len(by_hop)
        return [
            (
                hop,
                Notify(
                    publication, None, frozenset(behind), examination if hop == onward else None
                ),
            )
            for hop, behind in by_hop.items()
        ]

    def next_hop(self, broker: Peer) -> Peer | None:
        """The neighbour on the way to a broker; None if there is none."""
        hop = self._exchange.domain.next_hop(broker)
        return hop if hop in self._exchange.domain.neighbours else None


def check_notify(message: Notify) -> None:
    """Raise unless an event has the form in which summaries route it."""
    if message.tree is not None:
        raise RoutingError("an event that summaries route follows no tree")
    examination = message.examination
    if examination is not None and examination.examined < 0:
        raise RoutingError("the list of examined brokers is no set of bits")

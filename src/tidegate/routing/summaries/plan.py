"""Who merges whose summary, and in which order an event visits brokers: functions of the graph.

Rules ("Subscription Summarization", 4.2, algorithm 2).

(1) Each broker has at most one *parent*, to which it sends its summary: the neighbour of equal or
    higher degree, of these the one of the smallest degree, of these the first by name (a shorter
    name before a longer one, so that 8 comes before 11). A broker whose neighbours all have lower
    degrees has none.
(2) What a broker sends is its own summary merged with those of its children of lower degree. What
    it *knows* has those of its children of equal degree too.
(3) With a limit, a degree counts at most so much: a *virtual* degree (the paper's future work, 6).
    Hubs then look like their neighbours, and events are examined at more brokers.
(4) *To hubs*, the parent is the neighbour of the highest *rank* above the own, and what a broker
    sends has what all its children have sent. A rank is the degree, of equal ones the name. About
    half as many brokers then examine an event.

Why rounds come to the same. In the paper all brokers of degree 1 send in round 1, those of degree 2
in round 2, and so on, each what it has received in the rounds before. Only children of lower degree
send in earlier rounds, hence rule (2): what comes from a child of equal degree comes in the round
in which this broker sends itself, too late to be passed on. Two neighbours of equal degree that
select each other both send what they have from below, and then both know the same. A neighbour of
equal or higher degree has not sent anything in an earlier round, so "with which it has not
communicated" excludes nobody. Therefore nothing depends on when a round begins: a broker may send
as soon as it has heard from all its children of lower degree, and `rounds` is only another order of
the same messages. As degrees rise along a chain of such children, the waiting ends.

Rule (4) is algorithm 2 read another way. The neighbour of the smallest degree is only preferred
there. What has come from an equal one is merged by the pseudo-code ("all received summaries"), not
by the text ("in the previous iterations"): here brokers of one degree send one after the other. So
no two brokers send to each other, and summaries do not end halfway at two neighbours of equal
degree, of which a backbone has many.

Every broker knows all links of its domain, so all come to the same plan without a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from tidegate.routing.messages import Peer
from tidegate.routing.overlay.graph import Graph

PLANS_MAX = 64
"""How many plans are shared by brokers that know the same graph."""


class RoundMessage(NamedTuple):
    """A summary that is sent in a round of algorithm 2."""

    sender: Peer
    receiver: Peer
    merged: frozenset[Peer]
    """The brokers whose subscriptions are in it: the paper's Merged_Brokers."""


class Plan:
    """The plan of the brokers that reach each other in one graph.

    >>> graph = Graph({"a": {"b": 1}, "b": {"a": 1, "c": 1}, "c": {"b": 1}})
    >>> plan = plan_of(graph, "a")
    >>> plan.parent("a"), plan.parent("b"), sorted(plan.known("b"))
    ('b', None, ['a', 'b', 'c'])
    """

    def __init__(
        self, graph: Graph, brokers: Iterable[Peer], degree_max: int | None, *, to_hubs: bool
    ) -> None:
        self.brokers: tuple[Peer, ...] = tuple(sorted(brokers))
        """All brokers; the index of one is its bit in sets of brokers."""
        self.digest = _digest(self.brokers)
        """Identifies the brokers, and so the meaning of bits."""
        self._graph = graph
        self._bit_of = {broker: 1 << i for i, broker in enumerate(self.brokers)}
        self._degrees = {each: _degree(graph, each, degree_max) for each in self.brokers}
        self._to_hubs = to_hubs
        self._parents = {each: self._choose_parent(each) for each in self.brokers}
        self._children: dict[Peer, list[Peer]] = {}
        for child, parent in self._parents.items():
            if parent is not None:
                self._children.setdefault(parent, []).append(child)
        self._sent: dict[Peer, frozenset[Peer]] = {}
        for broker in sorted(self.brokers, key=self._rank, reverse=True):
            parts = (self._sent[child] for child in self.lower_children(broker))
            self._sent[broker] = frozenset((broker,)).union(*parts)
        self._visits: dict[Peer, list[Peer]] = {}
        self._known_bits: dict[Peer, int] = {}

    def __contains__(self, broker: Peer) -> bool:
        return broker in self._bit_of

    # -- algorithm 2 --------------------------------------------------------------------------

    def degree(self, broker: Peer) -> int:
        """The degree of a broker as it counts here (rule 3)."""
        return self._degrees[broker]

    def parent(self, broker: Peer) -> Peer | None:
        """The neighbour to which a broker sends its summary."""
        return self._parents.get(broker)

    def children(self, broker: Peer) -> list[Peer]:
        """The neighbours that send their summaries to a broker."""
        return self._children.get(broker, [])

    def lower_children(self, broker: Peer) -> list[Peer]:
        """The children whose summaries a broker passes on, merged with its own."""
        degree = self._degrees[broker]
        return [
            each for each in self.children(broker) if self._to_hubs or self._degrees[each] < degree
        ]

    def sent(self, broker: Peer) -> frozenset[Peer]:
        """The brokers whose subscriptions are in what a broker sends (rules 2 and 4)."""
        return self._sent[broker]

    def known(self, broker: Peer) -> frozenset[Peer]:
        """The brokers whose subscriptions a broker has when all have sent (rule 2)."""
        parts = (self._sent[child] for child in self.children(broker))
        return frozenset((broker,)).union(*parts)

    def _rank(self, broker: Peer) -> _Rank:
        return _rank(self._degrees, broker)

    def _choose_parent(self, broker: Peer) -> Peer | None:
        neighbours = self._graph.neighbours(broker)
        return _selected(broker, neighbours, self._degrees, to_hubs=self._to_hubs)

    # -- algorithm 3 --------------------------------------------------------------------------

    def bits(self, brokers: Iterable[Peer]) -> int:
        """A set of brokers as bits."""
        found = 0
        for broker in brokers:
            found |= self._bit_of[broker]
        return found

    def known_bits(self, broker: Peer) -> int:
        """`known` as bits."""
        bits = self._known_bits.get(broker)
        if bits is None:
            bits = self._known_bits[broker] = self.bits(self.known(broker))
        return bits

    def bit(self, broker: Peer) -> int:
        """The bit of a broker; 0 if it is not in the graph."""
        return self._bit_of.get(broker, 0)

    def next_examiner(self, broker: Peer, examined: int) -> Peer | None:
        """The broker of highest degree that is not examined yet, the nearest one on a tie."""
        for each in self._visits_from(broker):
            if not examined & self._bit_of[each]:
                return each
        return None

    def stops(self, broker: Peer, owner: Peer) -> Iterator[Peer]:
        """The examiners, and at the end the owner, that an event passes from one to the other.

        It is the way of every event that a broker of the same domain, or a gateway, lets in.
        """
        at, examined = broker, self.known_bits(broker)
        while not examined & self._bit_of[owner]:
            following = self.next_examiner(at, examined)
            assert following is not None  # the owner is missing still
            at = following
            examined |= self.known_bits(at)
            yield at
        if at != owner:
            yield owner

    def _visits_from(self, broker: Peer) -> list[Peer]:
        """All brokers in the order in which an event at a broker would visit them."""
        visits = self._visits.get(broker)
        if visits is None:
            costs = self._graph.tree(broker).costs
            visits = self._visits[broker] = sorted(
                self.brokers, key=lambda each: (-self._degrees[each], costs[each])
            )
        return visits


def plan_of(
    graph: Graph, broker: Peer, degree_max: int | None = None, *, to_hubs: bool = False
) -> Plan:
    """The plan of a broker and all that it reaches; brokers that know the same graph share it."""
    return _shared_plan(graph, frozenset(graph.tree(broker).costs), degree_max, to_hubs)


@lru_cache(maxsize=PLANS_MAX)
def _shared_plan(
    graph: Graph, brokers: frozenset[Peer], degree_max: int | None, to_hubs: bool
) -> Plan:
    return Plan(graph, brokers, degree_max, to_hubs=to_hubs)


_Rank = tuple[int, int, Peer]


def _rank(degrees: Mapping[Peer, int], broker: Peer) -> _Rank:
    """A key that is the less, the higher a broker ranks (rule 4)."""
    return -degrees[broker], len(broker), broker


def _selected(
    broker: Peer, neighbours: Iterable[Peer], degrees: Mapping[Peer, int], *, to_hubs: bool
) -> Peer | None:
    """The neighbour to which a broker sends (rules 1 and 4)."""
    own = degrees[broker]
    candidates = [each for each in neighbours if each in degrees and degrees[each] >= own]
    if to_hubs:
        ranks = {each: _rank(degrees, each) for each in candidates}
        above = [each for each in candidates if ranks[each] < _rank(degrees, broker)]
        return min(above, key=ranks.__getitem__, default=None)
    return min(candidates, key=lambda each: (degrees[each], len(each), each), default=None)


def rounds(
    graph: Graph, broker: Peer, degree_max: int | None = None, *, to_hubs: bool = False
) -> list[list[RoundMessage]]:
    """The messages of algorithm 2, round by round, as the paper has it (4.2).

    ``broker`` is any broker of the component; round i is at index i - 1, and may be empty.
    """
    brokers = tuple(graph.tree(broker).costs)
    degrees = {each: _degree(graph, each, degree_max) for each in brokers}
    merged = {each: frozenset((each,)) for each in brokers}
    communicated: set[frozenset[Peer]] = set()
    found: list[list[RoundMessage]] = []
    for degree in range(1, max(degrees.values()) + 1):
        messages: list[RoundMessage] = []
        senders = [each for each in brokers if degrees[each] == degree]
        for sender in sorted(senders, key=lambda each: _rank(degrees, each), reverse=to_hubs):
            silent = [
                each
                for each in graph.neighbours(sender)
                if frozenset((sender, each)) not in communicated
            ]
            receiver = _selected(sender, silent, degrees, to_hubs=to_hubs)
            if receiver is not None:
                messages.append(RoundMessage(sender, receiver, merged[sender]))
                if to_hubs:  # one after the other
                    merged[receiver] |= merged[sender]
        # All messages of a round are on their way at once: none has what another one brings.
        for sender, receiver, brought in messages:
            merged[receiver] |= brought
            communicated.add(frozenset((sender, receiver)))
        found.append(messages)
    return found


def _degree(graph: Graph, broker: Peer, degree_max: int | None) -> int:
    degree = len(graph.neighbours(broker))
    return degree if degree_max is None else min(degree, degree_max)


def _digest(brokers: Iterable[Peer]) -> int:
    return int.from_bytes(blake2b("\0".join(brokers).encode(), digest_size=8).digest(), "big")

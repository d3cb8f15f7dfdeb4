"""Domains: brokers that are connected in one way, as one of them sees them (Siena, 4.1).

A broker is in one domain or, as a gateway, in several, which makes the hybrid architectures. In
each it stands for all that comes from outside: its clients, and its other domains.

Every broker knows the links of its domains, because each announces its own, and passes on what it
has not heard before. An overlay that is set up as a whole comes with a `DomainPlan`, which says
the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tidegate.routing.messages import Peer
from tidegate.routing.overlay.graph import Announcement, Graph


class Architecture(Enum):
    """How the brokers of a domain are connected."""

    HIERARCHICAL = "hierarchical"
    """Each has at most one master, which takes it as a client."""
    ACYCLIC = "acyclic"
    """Peers, with one path between any two."""
    GENERAL = "general"
    """Peers, with any links; what comes from a broker follows the shortest paths from it."""


@dataclass(frozen=True, slots=True)
class DomainPlan:
    """The links of a domain as they were set up."""

    announcements: Mapping[Peer, Announcement] = field(default_factory=dict)
    graph: Graph = field(default_factory=lambda: Graph({}))


class Domain:
    """A domain as one broker sees it."""

    def __init__(
        self,
        name: str,
        architecture: Architecture,
        me: Peer,
        *,
        tree_per_source: bool = False,
        floods: bool = False,
        plan: DomainPlan | None = None,
    ) -> None:
        self.name = name
        self.architecture = architecture
        self.me = me
        self.tree_per_source = tree_per_source or architecture is Architecture.GENERAL
        self.only_upward = architecture is Architecture.HIERARCHICAL and not (
            floods or tree_per_source
        )
        """Whether subscriptions go to the master only, and events to it always (Siena, 4.2.1)."""
        self.neighbours: dict[Peer, int] = {}
        """Those to which there is a link, with its cost in microseconds."""
        self.master: Peer | None = None
        self._plan = plan or DomainPlan()
        self._news: dict[Peer, Announcement] = {}
        self._graph: Graph | None = self._plan.graph
        self._version = 0

    # -- links --------------------------------------------------------------------------------

    def link(self, peer: Peer, cost_us: int, *, is_master: bool = False) -> None:
        """Have a neighbour, as the plan says."""
        self.neighbours[peer] = cost_us
        if is_master:
            self.master = peer

    def unlink(self, peer: Peer) -> None:
        """Have it no longer."""
        self.neighbours.pop(peer, None)
        if self.master == peer:
            self.master = None

    def announcement(self, now_us: int) -> Announcement:
        """What to tell the others of the links of this broker."""
        last = self._known(self.me)  # the others may remember one from before a restart
        self._version = max(self._version + 1, now_us, 0 if last is None else last.version + 1)
        said = Announcement(self.me, self._version, tuple(sorted(self.neighbours.items())))
        self.learn([said])
        return said

    def learn(self, announcements: Iterable[Announcement]) -> list[Announcement]:
        """Take what others say of their links; gives what is new."""
        new: list[Announcement] = []
        for each in announcements:
            known = self._known(each.broker)
            if known is None or known.version < each.version:
                self._news[each.broker] = each
                new.append(each)
        if new:
            self._graph = None
        return new

    def known(self) -> tuple[Announcement, ...]:
        """All that is known of the links."""
        return tuple({**self._plan.announcements, **self._news}.values())

    def _known(self, broker: Peer) -> Announcement | None:
        return self._news.get(broker) or self._plan.announcements.get(broker)

    @property
    def graph(self) -> Graph:
        """The links of all brokers, as far as they are known."""
        if self._graph is None:
            self._graph = Graph.of(self.known())
        return self._graph

    def closes_cycle(self, peer: Peer, known_there: Iterable[Announcement]) -> bool:
        """Whether a link would be the second way to a broker where there may be one only."""
        if self.architecture is Architecture.GENERAL:
            return False
        both = {each.broker: each for each in self.known()}
        for each in known_there:
            if each.broker not in both or both[each.broker].version < each.version:
                both[each.broker] = each
        return Graph.of(both.values()).reaches(self.me, peer)

    # -- ways ---------------------------------------------------------------------------------

    @property
    def own_tree(self) -> Peer | None:
        """The tree for what comes into the domain here."""
        return self.me if self.tree_per_source else None

    def onward(self, tree: Peer | None, sender: Peer | None) -> list[Peer]:
        """The neighbours down a tree: away from the broker it is rooted at, or from the sender."""
        if tree is not None:
            below = self.graph.tree(tree).children(self.me)
            return [each for each in below if each in self.neighbours and each != sender]
        return [each for each in self.neighbours if each != sender]

    def upward(self, sender: Peer | None) -> list[Peer]:
        """The master, unless it was the sender."""
        return [] if self.master is None or self.master == sender else [self.master]

    def is_between(self, source: Peer, target: Peer) -> bool:
        """Whether the way from a broker to another one leads through this one."""
        graph = self.graph
        return graph.tree(source).leads(through=graph.tree(self.me), to=target)

    def next_hop(self, target: Peer) -> Peer | None:
        """The neighbour on the way to a broker."""
        return self.graph.tree(target).parents.get(self.me)

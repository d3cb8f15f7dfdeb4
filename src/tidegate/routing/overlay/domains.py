"""Domains: brokers that are connected by one architecture, as one of them sees it (Siena, 4.1).

Every broker knows all links of its domains. Each broker announces its own links, with a version
that grows with each change, and passes on announcements that are new to it. So all brokers come to
know the same links, and to compute the same spanning trees. An overlay that is set up as a whole
starts with a `DomainPlan`, from which brokers know all links without announcements.
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
    """Each broker has at most one master, which treats it like a client."""
    ACYCLIC = "acyclic"
    """Peers with one path between any two."""
    GENERAL = "general"
    """Peers with any links; messages from a broker follow the shortest paths from it."""


@dataclass(frozen=True, slots=True)
class DomainPlan:
    """The links of a domain as it was set up, shared by all its brokers."""

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
        """``floods`` says whether events go to all brokers, and subscriptions nowhere."""
        self.name = name
        self.architecture = architecture
        self.me = me
        self.tree_per_source = tree_per_source or architecture is Architecture.GENERAL
        self.routes_to_master = architecture is Architecture.HIERARCHICAL and not (
            floods or tree_per_source
        )
        """Whether subscriptions go to the master only, and every event to it (Siena, 4.2.1)."""
        self.neighbours: dict[Peer, int] = {}
        """The neighbours in this domain, with the cost of the link in microseconds."""
        self.master: Peer | None = None
        self._plan = plan or DomainPlan()
        self._learned: dict[Peer, Announcement] = {}
        """Announcements that are newer than those of the plan."""
        self._graph: Graph | None = self._plan.graph
        """None if an announcement has come since it was computed."""
        self._version = 0
        self.revision = 0
        """Grows with every announcement that was new, even if the links are the same after it."""

    # -- links --------------------------------------------------------------------------------

    def link(self, peer: Peer, cost_us: int, *, is_master: bool = False) -> None:
        """Add a neighbour; the other brokers do not know of it until it is announced."""
        self.neighbours[peer] = cost_us
        if is_master:
            self.master = peer

    def unlink(self, peer: Peer) -> None:
        """Remove a neighbour, if it is one."""
        self.neighbours.pop(peer, None)
        if self.master == peer:
            self.master = None

    def announce(self, now_us: int) -> Announcement:
        """A new announcement of this broker's own links.

        Versions follow the clock, so that they grow over a restart. The others may still have an
        announcement from before the restart that is ahead of the clock; it is exceeded too.
        """
        last = self._latest(self.me)
        self._version = max(self._version + 1, now_us, 0 if last is None else last.version + 1)
        announced = Announcement(self.me, self._version, tuple(sorted(self.neighbours.items())))
        self.learn([announced])
        return announced

    def learn(self, announcements: Iterable[Announcement]) -> list[Announcement]:
        """Take announcements of brokers; returns those that were new."""
        new: list[Announcement] = []
        for each in announcements:
            known = self._latest(each.broker)
            if known is None or known.version < each.version:
                self._learned[each.broker] = each
                new.append(each)
        if new:
            self._graph = None
            self.revision += 1
        return new

    def announcements(self) -> tuple[Announcement, ...]:
        """The latest known announcement of each broker."""
        return tuple({**self._plan.announcements, **self._learned}.values())

    def _latest(self, broker: Peer) -> Announcement | None:
        return self._learned.get(broker) or self._plan.announcements.get(broker)

    @property
    def graph(self) -> Graph:
        """The links of all brokers, as far as they are known."""
        if self._graph is None:
            self._graph = Graph.of(self.announcements())
        return self._graph

    def closes_cycle(self, peer: Peer, known_there: Iterable[Announcement]) -> bool:
        """Whether a link to another broker would be a second path where only one is allowed.

        Each end may know of links that the other has not heard of yet, so both views are joined.
        """
        if self.architecture is Architecture.GENERAL:
            return False
        both = {each.broker: each for each in self.announcements()}
        for each in known_there:
            if each.broker not in both or both[each.broker].version < each.version:
                both[each.broker] = each
        return Graph.of(both.values()).reaches(self.me, peer)

    # -- spanning trees -----------------------------------------------------------------------

    @property
    def own_tree(self) -> Peer | None:
        """The tree of messages that enter the domain at this broker; None if there is one only."""
        return self.me if self.tree_per_source else None

    def downstream(self, tree: Peer | None, sender: Peer | None) -> list[Peer]:
        """The neighbours down a tree: away from its root or, with only one tree, from the sender.

        A lost link leaves the tree only with its announcement, hence the look at the neighbours.
        """
        if tree is not None:
            below = self.graph.tree(tree).children(self.me)
            return [each for each in below if each in self.neighbours and each != sender]
        return [each for each in self.neighbours if each != sender]

    def towards_master(self, sender: Peer | None) -> list[Peer]:
        """The master, in a list; empty if there is none or it was the sender."""
        return [] if self.master is None or self.master == sender else [self.master]

    def is_on_path(self, source: Peer, target: Peer) -> bool:
        """Whether the path from one broker to another leads through this one, ends included."""
        graph = self.graph
        return graph.tree(source).passes(through=graph.tree(self.me), to=target)

    def next_hop(self, target: Peer) -> Peer | None:
        """The neighbour on the path to a broker; None if it is not reached."""
        # Paths are the same in both directions, so the parent in the target's tree is that hop.
        return self.graph.tree(target).parents.get(self.me)

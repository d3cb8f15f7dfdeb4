"""Link matching: a broker finds the links of an event, not its subscribers (Gryphon, 3).

Rules.

(1) Every broker holds all filters. Each has a set of links: over which its subscribers are reached,
    with COLLECTED for those of this broker itself (see `virtual_links`).
(2) An event goes over a link if the link is in the mask of the event's tree and a matching filter
    has it. It is sent once to a neighbour, whatever the number of virtual links that lead there.
(3) No list of targets travels with an event, and no broker knows who gets it in the end.

Why each subscriber gets an event once. Let s be the home of a subscriber and p that of the
publisher. At each broker on the path from p to s, the next hop to s is downstream on the tree of p,
so the mask has the virtual link of s, the filter of the subscriber has it too, and the event goes
to the next broker of the path. At any other broker s is not downstream, and the mask lacks the
link. So an event follows the tree of p and comes to each broker from its parent only. A broker to
which nobody's event should have come, because a neighbour floods or has an outdated filter,
searches like any other and finds no link.

Theory of operation. `MatcherSubstrate` keeps the filters in a matcher that knows links: the search
tree, the columnar index, or the oracle. Links are prepared when the next event comes (the paper's
preparation time): for filters that have new or other askers, or, if the graph of a domain has
changed, for all. Then one search (`LinkMatcher.match_links`) finds the links to pass the event on
to and the filters of this broker's own subscribers.

The latter are in a second matcher of the same kind too. They are few, and a search of these alone
takes a fraction of the steps that finding them among all filters takes. It is used for events that
go no further, and where the search rule says so.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.language.events import Event
from tidegate.matching.matcher import COLLECTED, LinkMatcher, LinkMatches
from tidegate.matching.poset.wanted_filter import event_us
from tidegate.matching.subscription import Moment
from tidegate.routing.links.search_rule import Sample, SearchRule
from tidegate.routing.links.virtual_links import LinkNumbers
from tidegate.routing.messages import Notify
from tidegate.routing.overlay.broker_domains import BrokerDomains, TreeInDomain
from tidegate.routing.spaces import routed_event
from tidegate.routing.strategies import Hops, IncomingEvent
from tidegate.routing.substrates import FilterNode, MatcherSubstrate, id_of

_UNKNOWN = -1
"""In place of the links of a node: the matcher may have others than the node had."""


class LinkMatching:
    """The filters of a broker with their links; a listener of the table."""

    def __init__(self, domains: BrokerDomains, make_matcher: Callable[[], LinkMatcher]) -> None:
        self.steps = 0
        """Matching steps of all events so far."""
        self.numbers = LinkNumbers(domains)
        self.rule = SearchRule()
        self._domains = domains
        self._matcher = make_matcher()
        self._substrate = MatcherSubstrate(self._matcher)
        self._own = OwnFilters(make_matcher())
        self._links: dict[FilterNode, int] = {}
        """The links of each node, as the matcher has them."""
        self._unprepared: dict[FilterNode, None] = {}
        """Nodes whose askers have changed since the last event."""

    # -- filters ------------------------------------------------------------------------------

    def add(self, node: FilterNode) -> None:
        self._substrate.add(node)
        self._links[node] = 0  # until the next event comes; its askers are known then

    def remove(self, node: FilterNode) -> None:
        self._substrate.remove(node)
        self._own.discard(node)
        del self._links[node]
        self._unprepared.pop(node, None)

    def change(self, node: FilterNode) -> None:
        self._substrate.change(node)
        self._own.change(node)
        # Where the structure has changed, the matcher has a new subscription without links.
        self._links[node] = _UNKNOWN
        self._unprepared[node] = None

    def askers_changed(self, node: FilterNode) -> None:
        self._unprepared[node] = None

    def prepare(self) -> None:
        """Bring the links of all nodes up to date."""
        self._substrate.write()
        nodes = self._links if self.numbers.refresh() else self._unprepared
        for node in nodes:
            links = self.numbers.of_askers(node.subscribers)
            if links != self._links[node]:
                self._links[node] = links
                self._matcher.set_links(id_of(node), links)
                if links & COLLECTED:
                    self._own.add(node)
                else:
                    self._own.discard(node)
        self._unprepared.clear()

    def links_of(self, node: FilterNode) -> int:
        """The links of a node, as of the last event."""
        return self._links[node]

    def is_own(self, node: FilterNode) -> bool:
        """Whether this broker's own askers wanted a node, as of the last event."""
        return node in self._own

    # -- events -------------------------------------------------------------------------------

    def route(self, incoming: IncomingEvent) -> tuple[list[FilterNode], Hops]:
        """The nodes of this broker's own askers that an event matches, and the next hops."""
        self.prepare()
        publication = incoming.publication
        trees = list(self._domains.trees_from(incoming.sender, incoming.tree))
        found = self._search(routed_event(publication), trees)
        self.steps += found.steps
        hops = [
            (peer, Notify(publication, tree))
            for domain, tree, _ in trees
            for peer in self.numbers.peers(found.links, domain)
        ]
        return self._substrate.nodes(found.collected), hops

    def _search(self, event: Event, trees: list[TreeInDomain]) -> LinkMatches:
        """The links of an event among those down some trees, and its own askers here."""
        moment, mask = Moment(event_us(event)), self.numbers.mask(trees)
        if not mask:
            return self._own.match(event, moment)
        if self.rule.takes_sample():
            return self._sample(event, moment, trees)
        if self.rule.floods:
            own = self._own.match(event, moment)
            return LinkMatches(mask, own.collected, own.steps)
        if not self.rule.searches_apart:
            return self._matcher.match_links(event, moment, mask | COLLECTED)
        links = self._matcher.match_links(event, moment, mask)
        own = self._own.match(event, moment)
        return LinkMatches(links.links, own.collected, links.steps + own.steps)

    def _sample(self, event: Event, moment: Moment, trees: list[TreeInDomain]) -> LinkMatches:
        """As ``_search``, in all ways at once, so that the rule can choose."""
        mask = self.numbers.mask(trees)
        found = self._matcher.match_links(event, moment, mask | COLLECTED)
        links = self._matcher.match_links(event, moment, mask)
        own = self._own.match(event, moment)
        spurious = self._peers_of(mask, trees) - self._peers_of(found.links, trees)
        self.rule.add_sample(Sample(found.steps, links.steps, own.steps, spurious))
        steps = found.steps + links.steps + own.steps
        return LinkMatches(found.links, found.collected, steps)

    def _peers_of(self, links: int, trees: list[TreeInDomain]) -> int:
        return sum(len(self.numbers.peers(links, domain)) for domain, _, _ in trees)


class OwnFilters:
    """The filters of a broker's own askers alone, in a matcher of their own."""

    def __init__(self, matcher: LinkMatcher) -> None:
        self._matcher = matcher
        self._substrate = MatcherSubstrate(matcher)

    def __contains__(self, node: FilterNode) -> bool:
        return id_of(node) in self._matcher

    def add(self, node: FilterNode) -> None:
        """Add a node, unless it is there."""
        if node not in self:
            self._substrate.add(node)
            self._substrate.write()
            self._matcher.set_links(id_of(node), COLLECTED)

    def discard(self, node: FilterNode) -> None:
        """Remove a node, if it is there."""
        if node in self:
            self._substrate.remove(node)

    def change(self, node: FilterNode) -> None:
        """Replace the filter of a node by its present item, if it is there."""
        if node in self:
            self._substrate.change(node)
            self._substrate.write()
            # Where the structure has changed, the matcher has a new subscription without links.
            self._matcher.set_links(id_of(node), COLLECTED)

    def match(self, event: Event, moment: Moment) -> LinkMatches:
        """The nodes that an event matches, as ids, and the steps."""
        return self._matcher.match_links(event, moment, COLLECTED)

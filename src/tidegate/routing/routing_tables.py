"""The routing tables of a broker: filters and advertisements, exchanged with neighbours as deltas.

A delta of a neighbour is applied here, and the deltas for neighbours are made here. Between the two
lies `forwarding`, which decides what each neighbour must hold.

    FilterDelta of a neighbour   -> apply_filters        -> table `subscriptions`  -> settle
    AdvertisementDelta           -> apply_advertisements -> table `advertisements` -> settle
    a request of a client        -> `Forwarding.ask`, `set_named`, ...             -> settle

With `advertisement` routing a change of advertisements also changes where subscriptions are sent,
and which parts of patterns are delegated; `advertisements_changed` updates both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tidegate.errors import RoutingError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.matching.poset.antichain import Antichain
from tidegate.matching.poset.coverage import ADVERTISEMENTS, FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter, over_estimate_ever
from tidegate.routing.cell_updates import differing_cells, identity, structure, with_cells
from tidegate.routing.forwarding import Forwarding
from tidegate.routing.merging import MergedFilters
from tidegate.routing.messages import AdvertisementDelta, FilterDelta, Key, Outgoing, Peer
from tidegate.routing.outbox import Destination, OneFilterEach
from tidegate.routing.tables.covered_nodes import CoveredNodes
from tidegate.routing.tables.deferred_nodes import DeferredNodes
from tidegate.routing.tables.node_table import NodeTable
from tidegate.routing.validation import check_wanted_filter, checked_advertisement

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker


def needs_all_filters(broker: Broker) -> bool:
    """Whether a filter of a broker must not hide another one."""
    strategy = broker.strategy
    return strategy.matches_links or (
        strategy.sends_summaries and not broker.summary_settings.subsumption
    )


class RoutingTables:
    """The two tables of a broker: who asked for which filter, who has advertised what."""

    def __init__(self, broker: Broker, *, merging: bool, deferred: bool) -> None:
        """``deferred`` says whether filters are placed in the poset only when the table settles,
        because events are not matched by it."""
        self._broker = broker
        self._merging = merging
        self.without_sync: dict[Peer, None] = {}
        """Neighbours that get a `Sync` before any delta (see `durability.restoring`)."""
        nodes: NodeTable[WantedFilter] = (
            DeferredNodes(identity, self._covered_filters, self._has_destinations)
            if deferred
            else self._covered_filters()
        )
        self.subscriptions: Forwarding[WantedFilter] = Forwarding(nodes, FILTERS.covers)
        self.advertisements: Forwarding[Advertisement] = Forwarding(
            CoveredNodes(ADVERTISEMENTS, self.advertisement_destinations), ADVERTISEMENTS.covers
        )

    def _covered_filters(self) -> CoveredNodes[WantedFilter]:
        return CoveredNodes(
            FILTERS,
            self.filter_destinations,
            self._merged_filters if self._merging else OneFilterEach,
            structure=structure,
            by_item=self._broker.strategy.needs_advertisements,
            antichain=Antichain(identity) if needs_all_filters(self._broker) else None,
        )

    def _has_destinations(self) -> bool:
        """Whether any filter could be sent to anyone."""
        return self._broker.strategy.sends_subscriptions and any(
            domain.master is not None if domain.routes_to_master else domain.neighbours
            for domain in self._broker.domains.by_name.values()
        )

    def _merged_filters(self) -> MergedFilters:
        return MergedFilters(self._broker.limits.filters)

    def filter_destinations(self, node: PosetNode[WantedFilter]) -> Iterable[Destination]:
        """The destinations of a filter if nothing covered it (rule 1 of `forwarding`)."""
        broker = self._broker
        if broker.strategy.sends_summaries:  # the broker itself: its own summary
            return (Destination(broker.name, None),)
        return broker.strategy.destinations(node, broker.domains, self.advertisements)

    def advertisement_destinations(self, node: PosetNode[Advertisement]) -> Iterable[Destination]:
        """The destinations of an advertisement if nothing covered it."""
        if not self._broker.strategy.needs_advertisements:
            return ()
        return self._broker.domains.destinations_away_from(node.subscribers)

    # -- deltas of neighbours -----------------------------------------------------------------

    def apply_filters(self, delta: FilterDelta, peer: Peer) -> None:
        """Apply a delta of a neighbour to the table of filters, all of it or nothing.

        Adding comes first: a filter that is removed under one key and added under another keeps its
        node, and nothing is sent on because of it.
        """
        updated = [key for key, _ in delta.updated]
        added = [key for key, _ in delta.added]
        self._check_keys(self.subscriptions, peer, [*delta.removed, *updated], added)
        wanted = list(delta.added)
        for key, cells in delta.updated:
            wanted.append((key, with_cells(self.subscriptions.item_of_peer(peer, key), cells)))
        for _, each in wanted:
            check_wanted_filter(each, self._broker.limits.filters)
        for key, each in wanted:
            self.subscriptions.put(peer, key, each)
        self.subscriptions.remove(peer, delta.removed)

    def apply_advertisements(self, delta: AdvertisementDelta, peer: Peer) -> Outgoing:
        """Apply a delta of a neighbour to the table of advertisements, all of it or nothing."""
        added = [key for key, _ in delta.added]
        self._check_keys(self.advertisements, peer, delta.removed, added)
        for _, advertisement in delta.added:
            checked_advertisement(advertisement, self._broker.limits.filters)
        changed = [self.advertisements.item_of_peer(peer, key) for key in delta.removed]
        for key, advertisement in delta.added:
            self.advertisements.put(peer, key, advertisement)
            changed.append(advertisement)
        self.advertisements.remove(peer, delta.removed)
        return self.advertisements_changed(changed)

    def _check_keys(
        self, table: Forwarding[Any], peer: Peer, known: Iterable[Key], added: list[Key]
    ) -> None:
        """Raise unless a neighbour may add these keys, and has sent the known ones before."""
        items_max = self._broker.limits.delta_items_max
        if len(added) > items_max:
            raise RoutingError(
                f"{peer!r} adds {len(added)} filters or advertisements in one message; "
                f"at most {items_max} are taken"
            )
        for key in added:
            self._broker.domains.check_tree(key.tree, peer)
        for key in known:
            if not table.has_key(peer, key):
                raise RoutingError(f"{peer!r} removes or updates {key}, which it has not sent")

    def forget(self, peer: Peer) -> list[Advertisement]:
        """Remove all that a neighbour has sent, and the record of what it was sent: its link is
        down. Returns its advertisements, for `advertisements_changed`."""
        self.without_sync.pop(peer, None)
        advertised = [node.item for node in self.advertisements.nodes_of_peer(peer)]
        self.advertisements.forget(peer)
        self.subscriptions.forget(peer)
        return advertised

    # -- what depends on advertisements, and on links -------------------------------------------

    def advertisements_changed(self, changed: list[Advertisement]) -> Outgoing:
        """Mark the subscriptions whose destinations depend on new or removed advertisements, and
        factor the patterns again."""
        if not self._broker.strategy.needs_advertisements or not changed:
            return []
        for node in self.subscriptions.poset:
            if any(each.overlaps(over_estimate_ever(node.item)) for each in changed):
                self.subscriptions.mark(node)
        return self._broker.patterns.factor_all()

    def mark_all(self) -> None:
        """Compute all destinations again at the next `settle`, because links have changed."""
        self.advertisements.mark_all()
        self.subscriptions.mark_all()

    # -- deltas for neighbours ----------------------------------------------------------------

    def settle(self) -> Outgoing:
        """The deltas that bring all neighbours up to date: at most one of each kind for each."""
        summaries = self._broker.summaries
        if summaries is not None:
            own = self.subscriptions.settle().get(self._broker.name)
            if own is not None:
                summaries.own_changed(own)
            return summaries.settle()
        sent: Outgoing = []
        for peer, advertised in self.advertisements.settle().items():
            added, removed = tuple(advertised.added), tuple(advertised.removed)
            if peer not in self.without_sync:
                sent.append((peer, AdvertisementDelta(added, removed)))
        for peer, delta in self.subscriptions.settle().items():
            cells = [(key, differing_cells(old, new)) for key, old, new in delta.updated]
            # Filters that are written differently may still have the same cells.
            updated = tuple(each for each in cells if each[1])
            if (delta.added or delta.removed or updated) and peer not in self.without_sync:
                filters = FilterDelta(tuple(delta.added), tuple(delta.removed), updated)
                sent.append((peer, filters))
        return sent

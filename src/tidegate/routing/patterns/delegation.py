"""Patterns in the overlay: monitors factor, delegate and assemble them (Siena, 4.2.4).

Rules.

(1) A pattern has one monitor at this broker, shared by all clients and neighbours that ask for it.
(2) Its steps are *factored*: advertisements say through which neighbours the events of a step can
    come. Contiguous steps whose events all come through one neighbour are *delegated* to it as a
    pattern of their own; for every other step the monitor asks for events itself, like a client.
    The neighbour has a monitor for what was delegated to it, and may delegate in turn.
(3) When advertisements change, all patterns are factored again.
(4) Events count in the order of publication, not of arrival. What comes to a monitor waits until
    nothing earlier can come: `LATENESS_US`, and as much again for each level of delegation that is
    still allowed below, because the monitors there wait too.

A delegated pattern keeps the time limit of the whole (`within`): a part that takes longer cannot
belong to a match. A neighbour reports chains and not matches; `chains` explains why.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tidegate.errors import RoutingError
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.values import to_us
from tidegate.routing.askers import MonitorAsker, NeighbourAsker
from tidegate.routing.messages import (
    Client,
    Delegate,
    DeliverSequence,
    NotifyChain,
    Outgoing,
    Peer,
    Publication,
    Stamp,
    Undelegate,
)
from tidegate.routing.patterns.chains import Chain, Chains, GreedySelection, Position
from tidegate.routing.spaces import routed_event

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker

LATENESS_US = 1_000_000
"""How long an event, or a chain from the neighbour that has found it, may take to a monitor."""
LEVELS_MAX = 3
"""How often in a row a pattern is delegated; each level delays matches by `LATENESS_US`."""


class PatternPart(NamedTuple):
    """Contiguous steps of a pattern, and which broker finds their events."""

    first_step: int
    next_step: int
    provider: Peer | None
    """The neighbour to which they are delegated; None for a single step that is matched here."""


class Delegator(NamedTuple):
    """A neighbour that has delegated a pattern, with the number under which it did so.

    A neighbour may delegate the same pattern several times, under different numbers: as part of
    several patterns, or at several places of one.
    """

    peer: Peer
    number: int


@dataclass(slots=True)
class Monitor:
    """Finds the chains of one pattern, for clients and for neighbours that have delegated it."""

    number: int
    pattern: Pattern
    levels: int
    chains: Chains
    clients: dict[Client, GreedySelection] = field(default_factory=dict)
    delegators: dict[Delegator, None] = field(default_factory=dict)
    parts: list[PatternPart] = field(default_factory=list)
    waiting: list[tuple[Position, int, tuple[Chain, ...]]] = field(default_factory=list)
    """A heap of fragments by the position of their ends, until nothing earlier can come; the number
    is the order of arrival, so that fragments themselves are never compared."""

    def delegated_parts(self) -> Iterator[PatternPart]:
        """The parts that neighbours find."""
        return (part for part in self.parts if part.provider is not None)

    def own_steps(self) -> list[int]:
        """The steps that are matched here."""
        return [part.first_step for part in self.parts if part.provider is None]


_NUMBERS = 1 << 30
"""The number of a monitor is less by far than twice this, so that numbers of parts have 64 bits."""


class PatternMonitors:
    """The monitors of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._monitors: dict[int, Monitor] = {}
        self._by_text: dict[tuple[str, int], Monitor] = {}
        """Monitors by the text of the pattern, and how often it may still be delegated."""
        # After a restart other numbers, mostly: chains for a pattern from before may still come.
        self._last_number = broker.now_us % _NUMBERS
        self._arrived = 0

    def __len__(self) -> int:
        return len(self._monitors)

    # -- clients and delegators ---------------------------------------------------------------

    def patterns_of(self, client: Client) -> list[Pattern]:
        """The patterns to which a client has subscribed."""
        return [each.pattern for each in self._monitors.values() if client in each.clients]

    def subscribe(self, client: Client, pattern: Pattern, now_us: int) -> Outgoing:
        """Find a pattern for a client, in events published from now on.

        Unlike with filters, a pattern of the client that covers this one does not make it
        unnecessary: the matches of the two are different sequences.
        """
        monitor, sent = self._monitor(pattern, LEVELS_MAX)
        monitor.clients.setdefault(client, GreedySelection(Position(now_us, Stamp("", 0, 0))))
        return sent

    def unsubscribe(self, client: Client, pattern: Pattern) -> tuple[int, Outgoing]:
        """Cancel all patterns of a client that ``pattern`` covers.

        Returns their number, and what to send.
        """
        covered = [
            each
            for each in self._monitors.values()
            if client in each.clients and pattern.covers(each.pattern)
        ]
        return len(covered), self._remove(covered, client)

    def remove_client(self, client: Client) -> Outgoing:
        """Cancel all patterns of a client."""
        monitors = [each for each in self._monitors.values() if client in each.clients]
        return self._remove(monitors, client)

    def on_delegate(self, message: Delegate, peer: Peer) -> Outgoing:
        """Find a pattern for a neighbour."""
        if not 0 <= message.levels < LEVELS_MAX:
            raise RoutingError(
                f"a pattern is delegated at most {LEVELS_MAX} times in a row, so the levels left "
                f"are 0 to {LEVELS_MAX - 1}, not {message.levels}"
            )
        monitor, sent = self._monitor(message.pattern, message.levels)
        monitor.delegators[Delegator(peer, message.number)] = None
        return sent

    def on_undelegate(self, message: Undelegate, peer: Peer) -> Outgoing:
        """Stop finding a pattern for a neighbour."""
        delegator = Delegator(peer, message.number)
        monitors = [each for each in self._monitors.values() if delegator in each.delegators]
        if not monitors:
            raise RoutingError(f"{peer!r} has not delegated a pattern {message.number}")
        return self._remove(monitors, delegator)

    def on_link_lost(self, peer: Peer) -> Outgoing:
        """Remove the delegations of a neighbour whose link is down.

        What was delegated to it is factored again when its advertisements are removed.
        """
        sent: Outgoing = []
        for monitor in list(self._monitors.values()):
            for delegator in [each for each in monitor.delegators if each.peer == peer]:
                sent += self._remove([monitor], delegator)
        return sent

    def on_restart(self, peer: Peer) -> Outgoing:
        """Remove the delegations of a neighbour that has restarted, and delegate to it anew."""
        sent = self.on_link_lost(peer)
        for monitor in self._monitors.values():
            for part in monitor.delegated_parts():
                if part.provider == peer:
                    sent.append((peer, _delegate(monitor, part)))
        return sent

    def _monitor(self, pattern: Pattern, levels: int) -> tuple[Monitor, Outgoing]:
        """The monitor of a pattern, which may be new, and what to send if it is."""
        text = str(pattern), levels
        known = self._by_text.get(text)
        if known is not None:
            return known, []
        self._last_number += 1
        chains = Chains(len(pattern.steps), pattern.within_us)
        monitor = Monitor(self._last_number, pattern, levels, chains)
        self._monitors[monitor.number] = self._by_text[text] = monitor
        return monitor, self._factor(monitor)

    def _remove(self, monitors: Iterable[Monitor], asker: Client | Delegator) -> Outgoing:
        """Remove a client or delegator from monitors, and monitors that nobody needs any more."""
        sent: Outgoing = []
        for monitor in monitors:
            if isinstance(asker, Client):
                del monitor.clients[asker]
            else:
                del monitor.delegators[asker]
            if not monitor.clients and not monitor.delegators:
                sent += self._set_parts(monitor, [])
                del self._monitors[monitor.number]
                del self._by_text[str(monitor.pattern), monitor.levels]
        return sent

    # -- factoring and delegation -------------------------------------------------------------

    def providers(self, wanted: Filter) -> set[Peer | None]:
        """The neighbours through which events that match a filter can come, by advertisements.

        None in the set means the clients of this broker.
        """
        providers: set[Peer | None] = set()
        for node in self._broker.advertisements.poset:
            if node.item.overlaps(wanted):
                for asker in node.subscribers:
                    providers.add(asker.peer if isinstance(asker, NeighbourAsker) else None)
        return providers

    def factored(self, pattern: Pattern, levels: int) -> list[PatternPart]:
        """The parts of a pattern, with delegated parts as long as possible.

        A single step is never delegated: to ask for its events takes no more messages.
        """
        steps = pattern.steps
        only: list[Peer | None] = []
        """The neighbour that alone provides the events of each step; None if there is no such."""
        for step in steps:
            providers = self.providers(step)
            only.append(next(iter(providers)) if len(providers) == 1 else None)
        parts: list[PatternPart] = []
        begin = 0
        while begin < len(steps):
            end = begin + 1
            while end < len(steps) and only[end] is not None and only[end] == only[begin]:
                end += 1
            if end - begin == 1 or levels == 0:
                end = begin + 1
                parts.append(PatternPart(begin, end, None))
            else:
                parts.append(PatternPart(begin, end, only[begin]))
            begin = end
        return parts

    def factor_all(self) -> Outgoing:
        """Factor all patterns again, because advertisements have changed."""
        return [each for monitor in self._monitors.values() for each in self._factor(monitor)]

    def _factor(self, monitor: Monitor) -> Outgoing:
        parts = self.factored(monitor.pattern, monitor.levels)
        return [] if parts == monitor.parts else self._set_parts(monitor, parts)

    def _set_parts(self, monitor: Monitor, parts: list[PatternPart]) -> Outgoing:
        """Replace the parts of a pattern; neighbours are told only of parts that have changed."""
        before, monitor.parts = monitor.parts, parts
        sent: Outgoing = []
        for part in before:
            peer = part.provider
            if peer in self._broker.domains.domain_of and part not in parts:  # else it is lost
                assert peer is not None
                sent.append((peer, Undelegate(_part_number(monitor, part))))
        for part in parts:
            if part.provider is not None and part not in before:
                sent.append((part.provider, _delegate(monitor, part)))
        self._ask_for_own_steps(monitor)
        return sent

    def _ask_for_own_steps(self, monitor: Monitor) -> None:
        """Ask for the events of the steps that are matched here, instead of those before."""
        table, asker = self._broker.subscriptions, MonitorAsker(monitor.number)
        wanted = [monitor.pattern.steps[step] for step in monitor.own_steps()]
        for node in table.nodes_of(asker):
            table.cancel(asker, node.item)
        for each in wanted:
            table.ask(asker, each)

    # -- events and chains --------------------------------------------------------------------

    def on_event(self, asker: MonitorAsker, publication: Publication) -> None:
        """Take an event that matches a step for which a monitor has asked."""
        monitor = self._monitors[asker.number]
        at, event = _position(publication), routed_event(publication)
        fragments = tuple(
            Chain(step, step + 1, at, at, (publication,))
            for step in monitor.own_steps()
            if monitor.pattern.steps[step].matches(event)
        )
        self._wait(monitor, at, fragments)

    def on_chain(self, message: NotifyChain, peer: Peer) -> None:
        """Take a chain that a neighbour has found for a delegated part.

        A chain for a part that is no longer delegated to this neighbour is ignored: it was sent
        before the neighbour knew.
        """
        for monitor in self._monitors.values():
            for part in monitor.delegated_parts():
                if part.provider == peer and _part_number(monitor, part) == message.number:
                    if len(message.publications) != part.next_step - part.first_step:
                        raise RoutingError(
                            f"{peer!r} has {len(message.publications)} events for "
                            f"{part.next_step - part.first_step} steps of a pattern; "
                            "a chain has one for each"
                        )
                    begin, end = map(_position, (message.publications[0], message.publications[-1]))
                    fragment = Chain(
                        part.first_step, part.next_step, begin, end, message.publications
                    )
                    self._wait(monitor, end, (fragment,))

    def _wait(self, monitor: Monitor, at: Position, fragments: tuple[Chain, ...]) -> None:
        if fragments:
            self._arrived += 1
            heapq.heappush(monitor.waiting, (at, self._arrived, fragments))

    # -- time ---------------------------------------------------------------------------------

    @property
    def due_us(self) -> int | None:
        """When the next fragment has waited long enough; None if none waits."""
        if not self._monitors:
            return None
        due = [
            each.waiting[0][0].time_us + _wait_us(each)
            for each in self._monitors.values()
            if each.waiting
        ]
        return min(due, default=None)

    def wake(self, now_us: int) -> Outgoing:
        """Take the fragments that have waited long enough, in order; returns what they complete.

        Links that end at the same event are taken together (see `Chains.take`).
        """
        sent: Outgoing = []
        for monitor in list(self._monitors.values()):
            latest_us = now_us - _wait_us(monitor)
            while monitor.waiting and monitor.waiting[0][0].time_us <= latest_us:
                at, _, fragments = heapq.heappop(monitor.waiting)
                together = list(fragments)
                while monitor.waiting and monitor.waiting[0][0] == at:
                    together += heapq.heappop(monitor.waiting)[2]
                for chain in monitor.chains.take(together):
                    sent += self._report(monitor, chain)
        return sent

    def _report(self, monitor: Monitor, chain: Chain) -> Outgoing:
        """Give a complete chain to the clients for which it is a match, and to all delegators."""
        sent: Outgoing = []
        for client, selection in monitor.clients.items():
            if selection.take(chain):
                pattern, _ = self._broker.spaces.unbound(monitor.pattern)
                match = DeliverSequence(pattern, chain.publications)
                sent += self._broker.sessions.deliver(client, match)
        for peer, number in monitor.delegators:
            sent.append((peer, NotifyChain(number, chain.publications)))
        return sent


def _wait_us(monitor: Monitor) -> int:
    """How long fragments of a monitor wait: rule (4)."""
    return LATENESS_US * (monitor.levels + 1)


def _delegate(monitor: Monitor, part: PatternPart) -> Delegate:
    steps = monitor.pattern.steps[part.first_step : part.next_step]
    delegated = Pattern(steps, monitor.pattern.within_s)
    return Delegate(_part_number(monitor, part), delegated, monitor.levels - 1)


def _part_number(monitor: Monitor, part: PatternPart) -> int:
    """The number under which a part is delegated: that of the monitor, then 16 bits for each step.

    It is the same whenever the same part is delegated again, so nothing has to be remembered.
    """
    return monitor.number << 32 | part.first_step << 16 | part.next_step


def _position(publication: Publication) -> Position:
    time = publication.event.time
    assert time is not None  # the first broker of an event sets it, and others check it
    return Position(to_us(time), publication.stamp)

"""Patterns in the network: factored, delegated, and assembled by monitors (Siena, 4.2.4).

Theory of operation. A pattern that somebody asks for has a monitor here. Its steps are *factored*:
for each it is known, from the advertisements, through which neighbours events can come. Contiguous
steps whose events all come through one neighbour are *delegated* to it as a pattern of their own;
for the others the monitor asks for events like a client does. The neighbour has a monitor for what
was delegated, and may delegate in turn. When advertisements change, patterns are factored anew.

Events count in the order of publication. What a monitor hears of waits until nothing earlier can
come: ``lateness_us``, and as much again for each level of delegation that is still allowed below.
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
from tidegate.routing.forwarding import MonitorAsker, NeighbourAsker
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
from tidegate.routing.patterns.chains import Chain, Chains, Greedy, Position

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker

LATENESS_US = 1_000_000
LEVELS_MAX = 3
"""How often in a row a pattern is delegated."""


class PatternPart(NamedTuple):
    """Contiguous steps of a pattern, and who finds them."""

    first_step: int
    next_step: int
    provider: Peer | None
    """The neighbour to which they are delegated; None for a single step, whose events come here."""


class Delegator(NamedTuple):
    """A neighbour that has delegated a pattern, and what it calls it.

    It may have delegated one for several parts, which it knows by different names.
    """

    peer: Peer
    number: int


@dataclass(slots=True)
class Monitor:
    """Looks for one pattern."""

    number: int
    pattern: Pattern
    levels: int
    chains: Chains
    clients: dict[Client, Greedy] = field(default_factory=dict)
    delegators: dict[Delegator, None] = field(default_factory=dict)
    parts: list[PatternPart] = field(default_factory=list)
    waiting: list[tuple[Position, int, tuple[Chain, ...]]] = field(default_factory=list)
    """What is not to be looked at yet, by position."""

    def delegated(self) -> Iterator[PatternPart]:
        """The parts that others find."""
        return (part for part in self.parts if part.provider is not None)

    def own_steps(self) -> list[int]:
        """The steps that are found here."""
        return [part.first_step for part in self.parts if part.provider is None]


class Patterns:
    """The monitors of a broker."""

    def __init__(self, broker: Broker, lateness_us: int = LATENESS_US) -> None:
        self._broker = broker
        self._lateness_us = lateness_us
        self._monitors: dict[int, Monitor] = {}
        self._by_name: dict[tuple[str, int], Monitor] = {}
        """By the text of the pattern, and how often it may be delegated."""
        self._made = 0
        self._arrived = 0

    def __len__(self) -> int:
        return len(self._monitors)

    # -- who asks -----------------------------------------------------------------------------

    def held(self, client: Client) -> list[Pattern]:
        """The patterns that a client has asked for."""
        return [each.pattern for each in self._monitors.values() if client in each.clients]

    def ask(self, client: Client, pattern: Pattern, now_us: int) -> Outgoing:
        """Look for a pattern for a client.

        One that covers it does not replace it, as with filters: its matches are other sequences.
        """
        monitor, sent = self._monitor(pattern, LEVELS_MAX)
        monitor.clients.setdefault(client, Greedy(Position(now_us, Stamp("", 0, 0))))
        return sent

    def cancel(self, client: Client, pattern: Pattern) -> tuple[int, Outgoing]:
        """Cancel the patterns of a client that one covers; gives how many those are."""
        covered = [
            each
            for each in self._monitors.values()
            if client in each.clients and pattern.covers(each.pattern)
        ]
        return len(covered), self._remove(covered, client)

    def dismiss(self, client: Client) -> Outgoing:
        """Cancel all patterns of a client."""
        return self._remove([e for e in self._monitors.values() if client in e.clients], client)

    def delegated(self, message: Delegate, peer: Peer) -> Outgoing:
        """Look for a pattern for a neighbour."""
        if not 0 <= message.levels < LEVELS_MAX:
            raise RoutingError(f"a pattern is delegated at most {LEVELS_MAX} times in a row")
        monitor, sent = self._monitor(message.pattern, message.levels)
        monitor.delegators[Delegator(peer, message.number)] = None
        return sent

    def undelegated(self, message: Undelegate, peer: Peer) -> Outgoing:
        """Look for it no longer."""
        delegator = Delegator(peer, message.number)
        found = [each for each in self._monitors.values() if delegator in each.delegators]
        if not found:
            raise RoutingError(f"{peer!r} has not delegated a pattern {message.number}")
        return self._remove(found, delegator)

    def lost(self, peer: Peer) -> Outgoing:
        """Go on without a neighbour that is gone."""
        sent: Outgoing = []
        for monitor in list(self._monitors.values()):
            for delegator in [each for each in monitor.delegators if each.peer == peer]:
                sent += self._remove([monitor], delegator)
        return sent

    def _monitor(self, pattern: Pattern, levels: int) -> tuple[Monitor, Outgoing]:
        """The monitor of a pattern, which begins if there is none."""
        name = str(pattern), levels
        found = self._by_name.get(name)
        if found is not None:
            return found, []
        self._made += 1
        chains = Chains(len(pattern.steps), pattern.within_us)
        monitor = Monitor(self._made, pattern, levels, chains)
        self._monitors[monitor.number] = self._by_name[name] = monitor
        return monitor, self._factor(monitor)

    def _remove(self, monitors: Iterable[Monitor], asker: Client | Delegator) -> Outgoing:
        sent: Outgoing = []
        for monitor in monitors:
            if isinstance(asker, Client):
                del monitor.clients[asker]
            else:
                del monitor.delegators[asker]
            if not monitor.clients and not monitor.delegators:
                sent += self._replace(monitor, [])
                del self._monitors[monitor.number]
                del self._by_name[str(monitor.pattern), monitor.levels]
        return sent

    # -- factoring and delegation -------------------------------------------------------------

    def available(self, wanted: Filter) -> set[Peer | None]:
        """Through which neighbours events can come that match; None for clients of this broker."""
        providers: set[Peer | None] = set()
        for offer in self._broker.offers.poset:
            if offer.item.overlaps(wanted):
                for asker in offer.subscribers:
                    providers.add(asker.peer if isinstance(asker, NeighbourAsker) else None)
        return providers

    def factored(self, pattern: Pattern, levels: int) -> list[PatternPart]:
        """The parts of a pattern: as long as possible where one neighbour has all of it."""
        steps = pattern.steps
        only: list[Peer | None] = []
        for step in steps:
            providers = self.available(step)
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

    def factor_anew(self) -> Outgoing:
        """Factor all patterns again, because advertisements have changed."""
        return [each for monitor in self._monitors.values() for each in self._factor(monitor)]

    def _factor(self, monitor: Monitor) -> Outgoing:
        parts = self.factored(monitor.pattern, monitor.levels)
        return [] if parts == monitor.parts else self._replace(monitor, parts)

    def _replace(self, monitor: Monitor, parts: list[PatternPart]) -> Outgoing:
        """Have others look for other parts."""
        before, monitor.parts = monitor.parts, parts
        sent: Outgoing = []
        for part in before:
            peer = part.provider
            if peer in self._broker.around.domain_of and part not in parts:
                assert peer is not None
                sent.append((peer, Undelegate(_name(monitor, part))))
        for part in parts:
            if part.provider is not None and part not in before:
                asked = Pattern(
                    monitor.pattern.steps[part.first_step : part.next_step],
                    monitor.pattern.within_s,
                )
                name = _name(monitor, part)
                sent.append((part.provider, Delegate(name, asked, monitor.levels - 1)))
        self._ask_for(monitor)
        return sent

    def _ask_for(self, monitor: Monitor) -> None:
        """Ask for the events of the steps that are found here."""
        table, watcher = self._broker.subscriptions, MonitorAsker(monitor.number)
        wanted = [monitor.pattern.steps[step] for step in monitor.own_steps()]
        for node in table.held(watcher):
            table.cancel(watcher, node.item)
        for each in wanted:
            table.ask(watcher, each)

    # -- what comes in ------------------------------------------------------------------------

    def heard(self, watcher: MonitorAsker, publication: Publication) -> None:
        """Take an event that a monitor has asked for."""
        monitor = self._monitors[watcher.number]
        at = _position(publication)
        links = tuple(
            Chain(step, step + 1, at, at, (publication,))
            for step in monitor.own_steps()
            if monitor.pattern.steps[step].matches(publication.event)
        )
        self._wait(monitor, at, links)

    def found(self, message: NotifyChain, peer: Peer) -> None:
        """Take what a neighbour has found for a part of a pattern."""
        for monitor in self._monitors.values():
            for part in monitor.delegated():
                if part.provider == peer and _name(monitor, part) == message.number:
                    if len(message.publications) != part.next_step - part.first_step:
                        raise RoutingError(
                            f"{peer!r} has {len(message.publications)} events for "
                            f"{part.next_step - part.first_step} steps of a pattern"
                        )
                    begin, end = map(_position, (message.publications[0], message.publications[-1]))
                    link = Chain(part.first_step, part.next_step, begin, end, message.publications)
                    self._wait(monitor, end, (link,))

    def _wait(self, monitor: Monitor, at: Position, links: tuple[Chain, ...]) -> None:
        if links:
            self._arrived += 1
            heapq.heappush(monitor.waiting, (at, self._arrived, links))

    # -- what time brings ---------------------------------------------------------------------

    @property
    def due_us(self) -> int | None:
        """When there is something to look at."""
        if not self._monitors:
            return None
        due = [
            each.waiting[0][0].time_us + self._patience_us(each)
            for each in self._monitors.values()
            if each.waiting
        ]
        return min(due, default=None)

    def wake(self, now_us: int) -> Outgoing:
        """Look at all for which nothing earlier can come any more."""
        sent: Outgoing = []
        for monitor in list(self._monitors.values()):
            border = now_us - self._patience_us(monitor)
            while monitor.waiting and monitor.waiting[0][0].time_us <= border:
                at, _, links = heapq.heappop(monitor.waiting)
                together = list(links)
                while monitor.waiting and monitor.waiting[0][0] == at:
                    together += heapq.heappop(monitor.waiting)[2]
                for chain in monitor.chains.take(together):
                    sent += self._tell(monitor, chain)
        return sent

    def _patience_us(self, monitor: Monitor) -> int:
        return self._lateness_us * (monitor.levels + 1)

    def _tell(self, monitor: Monitor, chain: Chain) -> Outgoing:
        sent: Outgoing = []
        for client, greedy in monitor.clients.items():
            if greedy.take(chain):
                match = DeliverSequence(monitor.pattern, chain.publications)
                sent += self._broker.sessions.deliver(client, match)
        for peer, number in monitor.delegators:
            sent.append((peer, NotifyChain(number, chain.publications)))
        return sent


def _name(monitor: Monitor, part: PatternPart) -> int:
    """What a part is called when it is delegated."""
    return monitor.number << 32 | part.first_step << 16 | part.next_step


def _position(publication: Publication) -> Position:
    time = publication.event.time
    assert time is not None  # brokers give one to each event
    return Position(to_us(time), publication.stamp)

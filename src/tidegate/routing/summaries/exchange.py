"""The exchange of summaries in one domain: what a broker holds from its children, and sends on.

Rules ("Subscription Summarization", 4.2; `plan` says who is parent and child).

(1) A summary that was sent speaks for a fixed set of brokers, its Merged_Brokers: those that the
    plan names (`Plan.sent`). The receiver uses it only while its own plan names the same.
(2) A broker sends to its parent when it can use the summaries of all its children of lower degree:
    first in full, then differences to what the parent holds.
(3) Changes wait for `period_us`, so that they travel together; if there are `batch_max` of them, or
    somebody waits urgently, they are sent at once.
(4) When what the parent holds is no longer what rule (1) says, because links have changed or a
    child has withdrawn its summary, it is withdrawn at once. From then on those who examine events
    take these brokers for ones that match everything (see `examination`), which is always right.
(5) A broker acknowledges an update when everybody above it that uses it has it: at once, if nothing
    of it is passed on or its parent holds no summary, else when its own parent has acknowledged.

Theory of operation. Nothing is ever missed for lack of a summary: a broker of which nothing is
known counts as one that matches. So a subscription is in force when no summary without it is used
any more, which rule (5) tells its broker. There are no rounds; rule (2) makes the messages of the
first round of all brokers just those of algorithm 2, one for each broker that has a parent. Later
each broker has periods of its own, so a change takes at most one period for each step up its chain
of parents, whose degrees rise.

Numbers of updates rise over all parents that a broker has had, so an acknowledgement that comes
late, for what another parent or an earlier session had, acknowledges nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from tidegate.errors import RoutingError
from tidegate.matching.summary.merging import merge
from tidegate.matching.summary.tables import SummaryTables
from tidegate.matching.summary.wire.messages import (
    apply_difference,
    decode,
    encode,
    encode_difference,
)
from tidegate.routing.messages import (
    Outgoing,
    Peer,
    SummaryReceived,
    SummaryUpdate,
    SummaryWithdrawal,
    Validity,
)
from tidegate.routing.overlay.domains import Domain
from tidegate.routing.overlay.graph import Graph
from tidegate.routing.summaries.plan import Plan, plan_of
from tidegate.routing.summaries.settings import SummarySettings

Action = Callable[[], Outgoing]


class SummaryOfClients(Protocol):
    """The own summary of a broker in a domain."""

    @property
    def present(self) -> SummaryTables:
        """The summary as it is."""
        ...

    def tables(self, now_us: int) -> SummaryTables:
        """The summary as it is to be sent now, after its window was moved if that is due."""
        ...

    def validity(self) -> Iterable[Validity]:
        """When it is valid, if not always."""
        ...


@dataclass(frozen=True, slots=True)
class MergedSummary:
    """A summary that has crossed a link, and that both ends hold."""

    brokers: frozenset[Peer]
    validity: tuple[Validity, ...]
    tables: SummaryTables


ANSWERS_MAX = 100
"""Acknowledgements that wait for the parent, of one child."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What follows when an own message is acknowledged: an answer to a child, or an action."""

    number: int
    answer: tuple[Peer, int] | None = None
    action: Action | None = None


@dataclass(slots=True)
class ExchangeCounts:
    """What a broker has sent to its parents."""

    full: int = 0
    differences: int = 0
    withdrawals: int = 0
    bytes: int = 0
    """The bytes of all tables, full and differences."""


class SummaryExchange:
    """The summaries that one broker has from and gives to its neighbours in a domain."""

    def __init__(
        self,
        domain: Domain,
        own: SummaryOfClients,
        settings: SummarySettings,
        *,
        begun_us: int = 0,
    ) -> None:
        """``begun_us`` is when the broker was started. Numbers go on from there, so that an
        acknowledgement from before a restart is not taken for one of a later summary."""
        self.domain = domain
        self.own = own
        self.counts = ExchangeCounts()
        self.held: dict[Peer, MergedSummary] = {}
        """What neighbours have sent, children by the present plan or not."""
        self.revision = 0
        """Grows when what `usable` returns may have changed."""
        self.settled_revision = domain.revision
        """The revision of the domain of which all brokers are known to know (see `summaries`)."""
        self.ready: list[Action] = []
        """Actions that nothing has to be waited for any more; the caller runs them."""
        self._settings = settings
        self._complete, self._complete_at = False, -1
        """Whether all that has to be merged is there, as of a revision."""
        self._graph: Graph | None = None
        self._plan: Plan | None = None
        self._parent: Peer | None = None
        self._sent: MergedSummary | None = None
        """What the parent holds; None if nothing."""
        self._last_number = begun_us
        self._acknowledged = begun_us
        self._changes = 0
        """Changes since the parent was last sent something."""
        self._is_urgent = False
        self._is_refused = False
        """Whether the parent has refused the whole summary, and nothing has changed since."""
        self._due_us: int | None = None
        self._waiting: list[_Waiting] = []

    # -- the plan -----------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """The plan of the present links."""
        graph = self.domain.graph
        if graph is not self._graph or self._plan is None:
            self._graph = graph
            settings = self._settings
            self._plan = plan_of(
                graph, self.domain.me, settings.degree_max, to_hubs=settings.to_hubs
            )
            self.revision += 1
        return self._plan

    @property
    def parent(self) -> Peer | None:
        """The neighbour to which summaries are sent at present."""
        return self._parent

    @property
    def sent(self) -> MergedSummary | None:
        """What the parent holds from this broker; None if nothing."""
        return self._sent

    def usable(self, child: Peer) -> MergedSummary | None:
        """The summary of a child, if it speaks for the right brokers (rule 1)."""
        held = self.held.get(child)
        return held if held is not None and held.brokers == self.plan.sent(child) else None

    def _is_complete(self) -> bool:
        """Whether all that has to be merged is there (rule 2)."""
        plan = self.plan
        if self._complete_at != self.revision:  # it is asked for after every message
            children = plan.lower_children(self.domain.me)
            self._complete = all(self.usable(each) is not None for each in children)
            self._complete_at = self.revision
        return self._complete

    # -- messages -----------------------------------------------------------------------------

    def on_update(self, update: SummaryUpdate, peer: Peer, now_us: int) -> Outgoing:
        """Take the summary of a neighbour, or refuse it as a whole."""
        if update.brokers:
            held = MergedSummary(frozenset(update.brokers), update.validity, decode(update.tables))
        else:
            before = self.held.get(peer)
            if before is None:
                raise RoutingError(f"{peer!r} sends a difference to a summary that it has not sent")
            tables = apply_difference(before.tables, update.tables)
            held = MergedSummary(before.brokers, update.validity, tables)
        strange = [each for each in held.tables.owners if each not in held.brokers]
        strange += [each.broker for each in held.validity if each.broker not in held.brokers]
        if strange or peer not in held.brokers:
            raise RoutingError(
                f"the summary of {peer!r} is not of the brokers that it names: "
                f"{strange[0] if strange else peer!r}"
            )
        self.held[peer] = held
        return self._child_changed(peer, update.number, now_us, is_urgent=update.is_urgent)

    def on_withdrawal(self, message: SummaryWithdrawal, peer: Peer, now_us: int) -> Outgoing:
        """Forget the summary of a neighbour."""
        self.held.pop(peer, None)
        return self._child_changed(peer, message.number, now_us, is_urgent=False)

    def _child_changed(self, peer: Peer, number: int, now_us: int, *, is_urgent: bool) -> Outgoing:
        self.revision += 1
        if peer not in self.plan.lower_children(self.domain.me):
            return [(peer, SummaryReceived(number))]  # nothing of it is passed on
        self.note_changes(1)
        self._is_urgent |= is_urgent
        sent = self.advance(now_us)
        self._add_answer(peer, number)
        return sent + self._answer()

    @property
    def answers_waiting(self) -> int:
        """The number of acknowledgements that children wait for."""
        return sum(each.answer is not None for each in self._waiting)

    def _add_answer(self, peer: Peer, number: int) -> None:
        """Answer a child when all that this broker knows by now is acknowledged.

        An answer includes the earlier ones. So one that waits for the same takes the place of the
        one before, and so does any when a child has very many: the child only waits longer.
        """
        waits_for = self._number_of_changes()
        places = [
            place
            for place, each in enumerate(self._waiting)
            if each.answer is not None and each.answer[0] == peer
        ]
        waiting = _Waiting(waits_for, answer=(peer, number))
        if places and (self._waiting[places[-1]].number == waits_for or len(places) >= ANSWERS_MAX):
            self._waiting[places[-1]] = waiting
        else:
            self._waiting.append(waiting)

    def on_received(self, message: SummaryReceived, peer: Peer) -> Outgoing:
        """Note that the parent has acknowledged."""
        if peer != self._parent:
            return []  # a former parent
        if message.number > self._last_number:
            raise RoutingError(f"{peer!r} acknowledges the summary {message.number}, not sent yet")
        self._acknowledged = max(self._acknowledged, message.number)
        return self._answer()

    def on_refused(self, update: SummaryUpdate, peer: Peer, now_us: int) -> Outgoing:
        """Withdraw a summary that the parent could not take, and send it again in full; if it was
        in full, when something has changed."""
        if peer != self._parent or self._sent is None or update.number != self._last_number:
            return []
        self._is_refused = bool(update.brokers)
        return [*self._withdraw(), *self.advance(now_us)]

    def forget(self, peer: Peer) -> Outgoing:
        """Forget a neighbour whose link is down."""
        self.held.pop(peer, None)
        self.revision += 1
        # If it comes back after a restart, it counts from 1 again.
        self._waiting = [
            each for each in self._waiting if each.answer is None or each.answer[0] != peer
        ]
        if peer != self._parent:
            return []
        self._begin_session(None)
        return self._answer()

    # -- changes ------------------------------------------------------------------------------

    def note_changes(self, count: int) -> None:
        """Note changes of the own summary; `advance` has to follow."""
        self._changes += count
        if count:
            self._is_refused = False

    def when_acknowledged(self, action: Action, now_us: int, *, is_urgent: bool) -> Outgoing:
        """Put an action in `ready` when all present subscriptions of this broker are in force."""
        sent = self.advance(now_us)
        if is_urgent and self._number_of_changes() > self._acknowledged:
            self._is_urgent = True
            sent += self.advance(now_us)
        self._waiting.append(_Waiting(self._number_of_changes(), action=action))
        return sent + self._answer()

    @property
    def due_us(self) -> int | None:
        """When `advance` must be called next; None if it need not be."""
        if self._parent != self.plan.parent(self.domain.me):
            return 0  # at once: `advance` finds out what follows
        return (self._due_us or 0) if self._must_send() else None

    def advance(self, now_us: int) -> Outgoing:
        """Send what is to be sent by now."""
        sent: Outgoing = []
        parent = self.plan.parent(self.domain.me)
        if parent != self._parent:
            if self._sent is not None and self._parent in self.domain.neighbours:
                sent += self._withdraw()
            self._begin_session(parent)
        elif self._sent is not None and not self._is_right(self._sent):
            sent += self._withdraw()
        if not self._must_send():
            self._due_us = None
        else:
            if self._due_us is None:
                self._due_us = now_us + self._settings.period_us
            is_full = self._changes >= self._settings.batch_max
            if is_full or self._is_urgent or self._due_us <= now_us:
                sent += self._send(now_us)
        self._is_urgent = False
        return sent + self._answer()

    def _is_right(self, sent: MergedSummary) -> bool:
        """Whether what the parent holds is of the brokers that it should be of (rule 4)."""
        brokers = self.plan.sent(self.domain.me)
        # Identity first: it is asked for after every message, and sets may be large.
        same = sent.brokers is brokers or sent.brokers == brokers
        return same and self._is_complete()

    def _must_send(self) -> bool:
        if self._parent is None:
            return False
        if self._sent is None:
            return self._is_complete() and not self._is_refused
        return self._changes > 0 or self._is_urgent

    def _begin_session(self, parent: Peer | None) -> None:
        """Have another parent, which has nothing from this broker yet."""
        self._parent, self._sent = parent, None
        self._acknowledged = self._last_number
        self._due_us = None
        self._is_refused = False
        self._waiting = [replace(each, number=0) for each in self._waiting]

    def _withdraw(self) -> Outgoing:
        assert self._parent is not None
        self._sent = None
        self._last_number += 1
        self.counts.withdrawals += 1
        return [(self._parent, SummaryWithdrawal(self._last_number))]

    def _send(self, now_us: int) -> Outgoing:
        assert self._parent is not None
        me, before = self.domain.me, self._sent
        parts = [self.held[child] for child in self.plan.lower_children(me)]
        tables = merge([self.own.tables(now_us), *(each.tables for each in parts)])
        # the validity after the tables, which may have moved the window
        validity = (*self.own.validity(), *(each for part in parts for each in part.validity))
        brokers = self.plan.sent(me)
        self._sent = MergedSummary(brokers, validity, tables)
        data = encode(tables) if before is None else encode_difference(before.tables, tables)
        self._last_number += 1
        self._changes, self._due_us = 0, None
        self.counts.bytes += len(data)
        self.counts.full += before is None
        self.counts.differences += before is not None
        named = tuple(sorted(brokers)) if before is None else ()
        update = SummaryUpdate(self._last_number, named, validity, data, self._is_urgent)
        return [(self._parent, update)]

    # -- acknowledgements ---------------------------------------------------------------------

    def _number_of_changes(self) -> int:
        """The number of the message that tells the parent of everything up to now."""
        if self._parent is None:
            return 0
        if self._sent is not None and self._changes:
            return self._last_number + 1
        return self._last_number

    def _answer(self) -> Outgoing:
        """Acknowledge what has come into force, and make the actions that waited for it ready."""
        done = [each for each in self._waiting if each.number <= self._acknowledged]
        if not done:
            return []
        self._waiting = [each for each in self._waiting if each.number > self._acknowledged]
        self.ready += [each.action for each in done if each.action is not None]
        latest: dict[Peer, int] = {}
        for peer, number in (each.answer for each in done if each.answer is not None):
            latest[peer] = max(number, latest.get(peer, 0))
        return [
            (peer, SummaryReceived(number))
            for peer, number in latest.items()
            if peer in self.domain.neighbours
        ]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is waiting to be sent or acknowledged."""
        return not self._waiting and not self.ready and self.due_us is None

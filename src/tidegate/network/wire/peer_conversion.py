"""Routing messages between brokers to their wire form and back.

Events leave a message on the way out, into a list, and come back from an iterator in the same
order; filter shapes go through the tables of the connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tidegate.errors import ProtocolError, TidegateError
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.evolve import Evolve, evolve_from_int, evolve_to_int
from tidegate.language.filters import Filter
from tidegate.language.limits import Limits
from tidegate.language.parsing.parser import Parser, parse_filter
from tidegate.language.patterns.pattern import Pattern
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, underlying_filter
from tidegate.matching.subscription import Subscription
from tidegate.network.wire import peer_messages as w
from tidegate.network.wire.filter_shapes import ReceivedFilterShapes, SentFilterShapes
from tidegate.network.wire.values import (
    WireValue,
    row_of,
    value_of,
    values_of,
    wire_cells,
    wire_value,
)
from tidegate.routing import messages as m
from tidegate.routing.overlay.graph import Announcement

# The broker that handles a message checks it against its own limits, and then refuses the message
# instead of ending the connection. Here is only what parsing itself must not exceed.
_LIMITS = Limits(length_chars_max=1 << 22, cost_max=1 << 20, disjuncts_max=1 << 16)


class PeerWriter:
    """Converts the messages that are sent on one connection."""

    def __init__(self, shapes: SentFilterShapes) -> None:
        self._shapes = shapes
        self.definitions: list[bytes] = []
        """The definitions of filter shapes that must be sent before the message."""
        self.publications: list[m.Publication] = []
        """The events of the message."""

    def write(self, message: m.PeerMessage | m.Refused) -> w.WireMessage:
        """The wire form of a message; definitions and events of the one before are dropped."""
        self._shapes.begin_message()
        self.definitions, self.publications = [], []
        if not isinstance(message, m.Refused):
            return self._plain(message)
        request = message.request
        if not isinstance(request, m.PeerMessage):
            raise ProtocolError(f"a neighbour never sends {type(request).__name__}")
        return w.Refused(self._plain(request), message.reason[:2_000])

    def _plain(self, message: m.PeerMessage) -> w.Plain:
        match message:
            case m.FilterDelta(added, removed, updated):
                return w.FilterDelta(
                    [(key, self._wanted(each)) for key, each in added],
                    list(removed),
                    [(key, [(i, wire_value(v)) for i, v in cells]) for key, cells in updated],
                )
            case m.AdvertisementDelta(offered, removed):
                return w.AdvertisementDelta([(k, str(each)) for k, each in offered], list(removed))
            case m.Sync(digest, None, _) | m.Sync(digest, _, None):
                return w.Sync(digest, None, None)
            case m.Sync(digest, filters, advertisements):
                return w.Sync(
                    digest,
                    [(key, self._wanted(each)) for key, each in filters or ()],
                    [(key, str(each)) for key, each in advertisements or ()],
                )
            case m.Notify(publication, tree, targets, examination):
                self.publications.append(publication)
                ordered = None if targets is None else sorted(targets)
                return w.Notify(tree, ordered, wire_examination(examination))
            case m.Delegate(number, pattern, levels):
                return w.Delegate(number, str(pattern), levels)
            case m.Undelegate(number):
                return w.Undelegate(number)
            case m.NotifyChain(number, publications):
                self.publications += publications
                return w.NotifyChain(number, len(publications))
            case m.Connect(domain, cost_us, master, announcements, has_spaces):
                heard = _wire_announcements(announcements)
                return w.Connect(domain, cost_us, master, heard, has_spaces)
            case m.Accept(domain, cost_us, announcements):
                return w.Accept(domain, cost_us, _wire_announcements(announcements))
            case m.Disconnect():
                return w.Disconnect()
            case m.Announce(announcements):
                return w.Announce(_wire_announcements(announcements))
            case m.Probe(origin, number, tree):
                return w.Probe(origin, number, tree)
            case m.Echo(origin, number):
                return w.Echo(origin, number)
            case m.Seek(origin, number, client, home, tree, moves):
                return w.Seek(origin, number, client.identity, home, tree, moves)
            case m.SeekReply():
                return self._seek_reply(message)
            case m.Release(origin, number):
                return w.Release(origin, number)
            case m.HandOver(origin, number, kept, missed, seen):
                return w.HandOver(origin, number, list(map(self._kept, kept)), missed, list(seen))
            case m.SummaryUpdate(number, brokers, validity, tables, is_urgent):
                return w.SummaryUpdate(number, list(brokers), list(validity), tables, is_urgent)
            case m.SummaryWithdrawal(number):
                return w.SummaryWithdrawal(number)
            case m.SummaryReceived(number):
                return w.SummaryReceived(number)
            case m.Drain(origin, number, tree):
                return w.Drain(origin, number, tree)
            case m.Drained(number, broker, stops):
                return w.Drained(number, broker, list(stops))
            case m.Trace(origin, number, m.Notify(publication, tree, targets, examination)):
                self.publications.append(publication)
                ordered = None if targets is None else sorted(targets)
                wire = wire_examination(examination)
                return w.Trace(origin, number, tree, ordered, wire)
            case m.Traced(origin, number, report):
                return w.Traced(origin, number, report)

    def _wanted(self, wanted: WantedFilter) -> w.WireFilter:
        body, row = self._filter(underlying_filter(wanted))
        if isinstance(wanted, EvolvingFilter):
            return w.WireFilter(body, row, wanted.origin_us, evolve_to_int(wanted.evolve))
        return w.WireFilter(body, row)

    def _filter(self, filter: Filter) -> tuple[int | str, list[WireValue]]:
        shape, row = filter.shape_and_row
        if len(shape.disjuncts) == 1:
            number = self._shapes.number(shape, self.definitions)
            if number is not None:
                return number, wire_cells(row)
        return str(filter), []

    def _seek_reply(self, message: m.SeekReply) -> w.SeekReply:
        wanted = message.subscriptions
        return w.SeekReply(
            message.origin,
            message.number,
            message.is_found,
            [self._wanted(each) for each in wanted if isinstance(each, Filter)],
            [str(each) for each in wanted if isinstance(each, Pattern)],
            list(map(str, message.advertisements)),
            list(map(self._named, message.named)),
        )

    def _named(self, named: m.NamedSubscription) -> w.WireNamed:
        subscription, version, space = named
        body, row = self._filter(subscription.filter)
        evolve = evolve_to_int(subscription.evolve)
        return w.WireNamed(
            subscription.id,
            w.WireFilter(body, row, subscription.origin, evolve),
            {name: wire_value(value) for name, value in subscription.parameters.items()},
            subscription.since,
            version,
            space,
        )

    def _kept(self, delivery: m.Deliver | m.DeliverSequence) -> w.WireKept:
        if isinstance(delivery, m.DeliverSequence):
            self.publications += delivery.publications
            return w.WireKept(str(delivery.pattern), len(delivery.publications))
        self.publications.append(delivery.publication)
        return w.WireKept(None, 1, list(delivery.matches), delivery.unnamed)


class PeerReader:
    """Converts the messages that come on one connection."""

    def __init__(self, shapes: ReceivedFilterShapes) -> None:
        self._shapes = shapes

    def read(
        self, message: w.WireMessage, publications: Iterator[m.Publication]
    ) -> m.PeerMessage | m.Refused:
        """The routing message; raises ProtocolError for one that is malformed.

        All of the publications must belong to it.
        """
        made: m.PeerMessage | m.Refused
        if isinstance(message, w.Refused):
            made = m.Refused(self._plain(message.request, publications), message.reason)
        else:
            made = self._plain(message, publications)
        if next(publications, None) is not None:
            raise ProtocolError(f"{type(message).__name__} has more events than it says")
        return made

    def _plain(self, message: w.Plain, publications: Iterator[m.Publication]) -> m.PeerMessage:
        match message:
            case w.FilterDelta(added, removed, updated):
                return m.FilterDelta(
                    tuple((m.Key(*key), self._wanted(each)) for key, each in added),
                    tuple(m.Key(*key) for key in removed),
                    tuple(
                        (m.Key(*key), tuple((i, value_of(v)) for i, v in cells))
                        for key, cells in updated
                    ),
                )
            case w.AdvertisementDelta(offered, removed):
                return m.AdvertisementDelta(
                    tuple((m.Key(*key), _advertisement(text)) for key, text in offered),
                    tuple(m.Key(*key) for key in removed),
                )
            case w.Sync(digest, None, None):
                return m.Sync(digest)
            case w.Sync(digest, list(filters), list(advertisements)):
                return m.Sync(
                    digest,
                    tuple((m.Key(*key), self._wanted(each)) for key, each in filters),
                    tuple((m.Key(*key), _advertisement(text)) for key, text in advertisements),
                )
            case w.Sync():
                raise ProtocolError("a Sync has both filters and advertisements, or neither")
            case w.Notify(tree, targets, examination):
                [publication] = _taken(publications, 1)
                wanted = None if targets is None else frozenset(targets)
                return m.Notify(publication, tree, wanted, examination_of(examination))
            case w.Delegate(number, pattern, levels):
                return m.Delegate(number, _pattern(pattern), levels)
            case w.Undelegate(number):
                return m.Undelegate(number)
            case w.NotifyChain(number, events):
                return m.NotifyChain(number, _taken(publications, events))
            case w.Connect(domain, cost_us, master, announcements, has_spaces):
                heard = _announcements(announcements)
                return m.Connect(domain, cost_us, master, heard, has_spaces)
            case w.Accept(domain, cost_us, announcements):
                return m.Accept(domain, cost_us, _announcements(announcements))
            case w.Disconnect():
                return m.Disconnect()
            case w.Announce(announcements):
                return m.Announce(_announcements(announcements))
            case w.Probe(origin, number, tree):
                return m.Probe(origin, number, tree)
            case w.Echo(origin, number):
                return m.Echo(origin, number)
            case w.Seek(origin, number, client, home, tree, moves):
                return m.Seek(origin, number, m.Client(client), home, tree, moves)
            case w.SeekReply(origin, number, is_found, filters, patterns, advertisements, named):
                return m.SeekReply(
                    origin,
                    number,
                    is_found,
                    (*map(self._filter, filters), *map(_pattern, patterns)),
                    tuple(map(_advertisement, advertisements)),
                    tuple(map(self._named, named)),
                )
            case w.Release(origin, number):
                return m.Release(origin, number)
            case w.HandOver(origin, number, kept, missed, seen):
                deliveries = tuple(_kept(each, publications) for each in kept)
                stamps = tuple(m.Stamp(*each) for each in seen)
                return m.HandOver(origin, number, deliveries, missed, stamps)
            case w.SummaryUpdate(number, brokers, validity, tables, is_urgent):
                spans = tuple(m.Validity(*each) for each in validity)
                return m.SummaryUpdate(number, tuple(brokers), spans, tables, is_urgent)
            case w.SummaryWithdrawal(number):
                return m.SummaryWithdrawal(number)
            case w.SummaryReceived(number):
                return m.SummaryReceived(number)
            case w.Drain(origin, number, tree):
                return m.Drain(origin, number, tree)
            case w.Drained(number, broker, stops):
                return m.Drained(number, broker, tuple(stops))
            case w.Trace(origin, number, tree, targets, examination):
                [publication] = _taken(publications, 1)
                wanted = None if targets is None else frozenset(targets)
                notify = m.Notify(publication, tree, wanted, examination_of(examination))
                return m.Trace(origin, number, notify)
            case w.Traced(origin, number, report):
                return m.Traced(origin, number, report)

    def _wanted(self, wire: w.WireFilter) -> WantedFilter:
        filter = self._filter(wire)
        if wire.origin_us is None:
            return filter
        return EvolvingFilter(filter, wire.origin_us, _evolve(wire.evolve))

    def _filter(self, wire: w.WireFilter) -> Filter:
        if isinstance(wire.body, str):
            if wire.row:
                raise ProtocolError("a filter that is a text has no row")
            try:
                return Filter(parse_filter(wire.body, _LIMITS))
            except TidegateError as error:
                raise ProtocolError(f"the filter of a neighbour: {error}") from None
        return self._shapes.filter(wire.body, row_of(wire.row))

    def _named(self, wire: w.WireNamed) -> m.NamedSubscription:
        subscription = Subscription(
            wire.name,
            self._filter(wire.filter),
            values_of(wire.parameters),
            since=wire.since_us,
            origin=wire.filter.origin_us,
            evolve=_evolve(wire.filter.evolve),
        )
        return m.NamedSubscription(subscription, wire.version, wire.space)


def wire_examination(examination: m.Examination | None) -> w.WireExamination | None:
    """The wire form of an examination."""
    if examination is None:
        return None
    examined = examination.examined
    size = (examined.bit_length() + 7) // 8
    return w.WireExamination(
        examination.examiner,
        examined.to_bytes(size, "little"),
        examination.brokers.to_bytes(8, "big"),
    )


def examination_of(wire: w.WireExamination | None) -> m.Examination | None:
    """The examination of a wire form."""
    if wire is None:
        return None
    examined = int.from_bytes(wire.examined, "little")
    return m.Examination(wire.examiner, examined, int.from_bytes(wire.brokers, "big"))


def _taken(publications: Iterator[m.Publication], count: int) -> tuple[m.Publication, ...]:
    taken = tuple(islice(publications, count))
    if len(taken) < count:
        raise ProtocolError(f"{count} events are announced, {len(taken)} follow")
    return taken


def _kept(wire: w.WireKept, publications: Iterator[m.Publication]) -> m.Deliver | m.DeliverSequence:
    events = _taken(publications, wire.events)
    if wire.pattern is not None:
        return m.DeliverSequence(_pattern(wire.pattern), events)
    if wire.events != 1:
        raise ProtocolError(f"a delivery that was kept has one event, not {wire.events}")
    matches = tuple(m.MatchedVersion(*each) for each in wire.matches)
    return m.Deliver(events[0], matches, wire.unnamed)


def _wire_announcements(announcements: tuple[Announcement, ...]) -> list[w.WireAnnouncement]:
    return [
        w.WireAnnouncement(each.broker, each.version, list(each.costs_us)) for each in announcements
    ]


def _announcements(wire: list[w.WireAnnouncement]) -> tuple[Announcement, ...]:
    return tuple(Announcement(each.broker, each.version, tuple(each.costs_us)) for each in wire)


def _advertisement(text: str) -> Advertisement:
    try:
        return parse_advertisement(text, _LIMITS)
    except TidegateError as error:
        raise ProtocolError(f"the advertisement of a neighbour: {error}") from None


def _pattern(text: str) -> Pattern:
    try:
        nodes, within_s = Parser(text, _LIMITS).pattern()
    except TidegateError as error:
        raise ProtocolError(f"the pattern of a neighbour: {error}") from None
    return Pattern(tuple(map(Filter, nodes)), within_s)


def _evolve(number: int) -> Evolve | None:
    try:
        return evolve_from_int(number)
    except TidegateError as error:
        raise ProtocolError(f"the evolve mode of a neighbour: {error}") from None

"""Generated messages between brokers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from support.strategies import filters, values
from support.wire_messages import names, numbers, optional_names, publications, spaces
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.evolve import Cached, Lazy, Periodic
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.matching.subscription import Subscription
from tidegate.network.wire.links import Linked, LinkMessage, Notifications, Route
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing import messages as m
from tidegate.routing.overlay.graph import Announcement

keys = st.builds(m.Key, numbers, optional_names)
evolves = st.sampled_from([None, Lazy(), Periodic(0.5), Cached(2.0)])
times_us = st.sampled_from([0, 1, -5, 1_700_000_000_000_000])
wanted = filters | st.builds(EvolvingFilter, filters, times_us, evolves)
patterns = st.sampled_from(["a = 1 then b < 2", "a = 1 then a = 2 then c like 'x%' within 1.5 s"])
offers = st.sampled_from(["a = 1 and a = 2", "b > 3 or c = 'x'", "true"]).map(parse_advertisement)
announcements = st.lists(
    st.builds(
        Announcement, names, numbers, st.lists(st.tuples(names, numbers), max_size=2).map(tuple)
    ),
    max_size=2,
).map(tuple)
examinations = st.none() | st.builds(
    m.Examination, names, st.sampled_from([0, 1, 2**80 + 5]), st.sampled_from([0, 2**64 - 1])
)
targets = st.none() | st.frozensets(names)
notifies = st.builds(m.Notify, publications(), optional_names, targets, examinations)
subscriptions = st.builds(
    Subscription,
    id=names,
    filter=filters,
    parameters=st.dictionaries(names, values, max_size=2),
    since=st.none() | times_us,
    origin=st.none() | times_us,
    evolve=evolves,
)
named = st.builds(m.NamedSubscription, subscriptions, numbers, spaces)
some_publications = st.lists(publications(), max_size=3).map(tuple)
kept = st.builds(
    m.Deliver,
    publications(),
    st.lists(st.builds(m.MatchedVersion, names, numbers), max_size=2).map(tuple),
    st.booleans(),
) | st.builds(m.DeliverSequence, patterns.map(parse_pattern), some_publications)


@st.composite
def seek_replies(draw: st.DrawFn) -> m.SeekReply:
    plain: list[Filter | Pattern] = [*draw(st.lists(filters, max_size=2))]
    plain += draw(st.lists(patterns.map(parse_pattern), max_size=2))
    return m.SeekReply(
        draw(names),
        draw(numbers),
        draw(st.booleans()),
        tuple(plain),
        draw(st.lists(offers, max_size=1).map(tuple)),
        draw(st.lists(named, max_size=2).map(tuple)),
    )


digests = st.binary(min_size=32, max_size=32)
plain_messages = st.one_of(
    st.builds(
        m.FilterDelta,
        st.lists(st.tuples(keys, wanted), max_size=3).map(tuple),
        st.lists(keys, max_size=2).map(tuple),
        st.lists(
            st.tuples(keys, st.lists(st.tuples(numbers, values), max_size=2).map(tuple)),
            max_size=2,
        ).map(tuple),
    ),
    st.builds(
        m.AdvertisementDelta,
        st.lists(st.tuples(keys, offers), max_size=2).map(tuple),
        st.lists(keys, max_size=2).map(tuple),
    ),
    st.builds(m.Sync, digests),
    st.builds(
        m.Sync,
        digests,
        st.lists(st.tuples(keys, wanted), max_size=3).map(tuple),
        st.lists(st.tuples(keys, offers), max_size=2).map(tuple),
    ),
    notifies,
    st.builds(m.Delegate, numbers, patterns.map(parse_pattern), numbers),
    st.builds(m.Undelegate, numbers),
    st.builds(m.NotifyChain, numbers, some_publications),
    st.builds(m.Connect, st.just(""), numbers, st.booleans(), announcements, st.booleans()),
    st.builds(m.Accept, st.just("hill"), numbers, announcements),
    st.just(m.Disconnect()),
    st.builds(m.Announce, announcements),
    st.builds(m.Probe, names, numbers, optional_names),
    st.builds(m.Echo, names, numbers),
    st.builds(m.Seek, names, numbers, names.map(m.Client), names, optional_names, numbers),
    seek_replies(),
    st.builds(m.Release, names, numbers),
    st.builds(
        m.HandOver,
        names,
        numbers,
        st.lists(kept, max_size=3).map(tuple),
        numbers,
        st.lists(st.builds(m.Stamp, names, times_us, numbers), max_size=2).map(tuple),
    ),
    st.builds(
        m.SummaryUpdate,
        numbers,
        st.lists(names, max_size=2).map(tuple),
        st.lists(st.builds(m.Validity, names, times_us, times_us), max_size=2).map(tuple),
        st.binary(max_size=5),
        st.booleans(),
    ),
    st.builds(m.SummaryWithdrawal, numbers),
    st.builds(m.SummaryReceived, numbers),
    st.builds(m.Drain, names, numbers, optional_names),
    st.builds(m.Drained, numbers, names, st.lists(names, max_size=2).map(tuple)),
    st.builds(
        m.Trace,
        names,
        numbers,
        st.builds(m.Notify, publications(), optional_names, targets, examinations),
    ),
    st.builds(m.Traced, names, numbers, st.text(max_size=5)),
)
peer_messages = plain_messages | st.builds(m.Refused, plain_messages, st.just("no"))


@st.composite
def notifications(draw: st.DrawFn) -> Notifications:
    routes = draw(st.lists(st.builds(Route, optional_names, targets, examinations), max_size=3))
    count = draw(st.integers(0, 5)) if routes else 0
    block = PublicationBlock.of([draw(publications()) for _ in range(count)], draw(st.booleans()))
    route_of = [draw(st.integers(0, len(routes) - 1)) for _ in range(count)]
    return Notifications(block, routes, np.array(route_of, np.int64))


link_messages = peer_messages | notifications()


def comparable(message: LinkMessage) -> object:
    """A message in a form that is equal for equal messages, types of values included."""
    if isinstance(message, Notifications):
        flags = message.publications.flags.tolist()
        notifies = [_texts(message.message(index)) for index in range(len(message))]
        return [each.replace(", fold=1", "") for each in notifies], flags
    return _texts(message).replace(", fold=1", "")  # UTC has no fold, and it is not sent


def _texts(message: object) -> str:
    """As `repr`, but a filter is its shape and row, however it was made."""
    match message:
        case Filter():
            return repr(message.shape_and_row)
        case EvolvingFilter(filter, origin_us, evolve):
            return f"{_texts(filter)} {origin_us} {evolve}"
        case Subscription():
            others = (message.parameters, message.since, message.origin, message.evolve)
            return f"{message.id} {_texts(message.filter)} {others}"
        case Pattern():
            return f"{[_texts(step) for step in message.steps]} {message.within_s}"
        case m.FilterDelta(added, removed, updated):
            return f"{[(key, _texts(each)) for key, each in added]} {removed} {updated}"
        case m.Sync(digest, None, None):
            return f"Sync {digest!r}"
        case m.Sync(digest, filters, offers):
            held = [(key, _texts(each)) for key, each in filters or ()]
            return f"Sync {digest!r} {held} {[(key, str(each)) for key, each in offers or ()]}"
        case m.SeekReply():
            wanted = [_texts(each) for each in message.subscriptions]
            named = [(_texts(each.subscription), *each[1:]) for each in message.named]
            offered = list(map(str, message.advertisements))
            head = (message.origin, message.number, message.is_found)
            return f"{head} {wanted} {named} {offered}"
        case m.AdvertisementDelta(added, removed):
            return f"{[(key, str(each)) for key, each in added]} {removed}"
        case m.Delegate(number, pattern, levels):
            return f"{number} {_texts(pattern)} {levels}"
        case m.HandOver(origin, number, kept, missed, seen):
            return f"{origin} {number} {[_texts(each) for each in kept]} {missed} {seen}"
        case m.DeliverSequence(pattern, publications):
            return f"{_texts(pattern)} {publications}"
        case m.Refused(request, reason):
            return f"{_texts(request)} {reason}"
        case m.Trace(origin, number, notify):
            return f"{origin} {number} {_texts(notify)}"
        case m.Notify(targets=frozenset() as targets):  # two equal sets may differ in their order
            return f"{replace(message, targets=None)!r} {sorted(targets)}"
    return repr(message)


def messages_of(linked: list[object]) -> list[object]:
    """The messages of what came out of a connection."""
    assert all(isinstance(each, Linked) for each in linked)
    return [comparable(each.message) for each in linked if isinstance(each, Linked)]

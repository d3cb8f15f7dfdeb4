"""A batch of events leads to what its events lead to one by one."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.strategies import conjunctions, events_aimed_at
from support.twin_brokers import TwinBrokers
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.spaces import Space
from tidegate.language.values import from_us
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.routing.broker import Broker
from tidegate.routing.messages import (
    Address,
    Advertise,
    AdvertisementDelta,
    Client,
    FilterDelta,
    Key,
    Notify,
    Publication,
    Publish,
    Resume,
    Stamp,
    Subscribe,
    Suspend,
    Update,
)
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.overlay.graph import Announcement
from tidegate.routing.strategies import STRATEGIES, strategy

ANN, BOB, CAT, PUB = (Client(each) for each in ("ann", "bob", "cat", "pub"))
PEERS = ("left", "right", "top")
SENDERS: list[Address] = [ANN, PUB, *PEERS]
ASKERS: list[Address] = [ANN, BOB, CAT, *PEERS]
SUBSTRATES = ("poset", "columnar", "tree", "naive")


def broker(
    routing: str,
    architecture: Architecture = Architecture.ACYCLIC,
    substrate: str | None = None,
    **more: object,
) -> Broker:
    """A broker with three neighbours, each of which has another one behind it."""
    made = Broker("me", strategy(routing), substrate=substrate, **more)  # type: ignore[arg-type]
    domain = Domain(
        "d",
        architecture,
        "me",
        tree_per_source=made.strategy.tree_per_source,
        floods=not made.strategy.sends_subscriptions,
    )
    for peer in PEERS:
        is_master = architecture is Architecture.HIERARCHICAL and peer == "top"
        domain.link(peer, 1, is_master=is_master)
    domain.announce(1)
    for peer in PEERS:
        links = (("me", 1), (f"{peer}-2", 1))
        domain.learn([Announcement(peer, 1, links), Announcement(f"{peer}-2", 1, ((peer, 1),))])
    made.add_domain(domain)
    return made


def notify(made: Broker, peer: str, event: Event, number: int) -> Notify:
    """An event that a neighbour passes on in the way that the routing of a broker has."""
    tree = f"{peer}-2" if made.domains.by_name["d"].tree_per_source else None
    targets = frozenset(["me", "right"]) if made.strategy.sends_targets else None
    return Notify(Publication(event, Stamp(f"{peer}-2", 1, number), "far"), tree, targets)


@pytest.mark.parametrize("substrate", SUBSTRATES)
@settings(max_examples=40)
@given(data=st.data())
def test_a_batch_is_as_its_events_one_by_one(substrate: str, data: st.DataObject) -> None:
    wanted = data.draw(st.lists(conjunctions(), min_size=1, max_size=8))
    askers = [data.draw(st.sampled_from(ASKERS)) for _ in wanted]
    attributes = data.draw(
        st.lists(events_aimed_at(*(each.node for each in wanted)), min_size=1, max_size=12)
    )
    twins = TwinBrokers(lambda: broker("subscription", substrate=substrate))
    for number, (asker, filter) in enumerate(zip(askers, wanted, strict=True)):
        ask(twins, asker, filter, number)
    sent: list[tuple[Address, Publish | Notify]] = []
    for number, each in enumerate(attributes):
        sender = data.draw(st.sampled_from(SENDERS))
        # now and then an event comes a second time
        number = max(1, number - data.draw(st.integers(0, 1)))
        event = Event(each, from_us(number))
        if isinstance(sender, Client):
            untimed = data.draw(st.booleans())
            sent.append((sender, Publish(Event(each) if untimed else event)))
        else:
            sent.append((sender, notify(twins.single, sender, event, number)))
    twins.check(sent)


def ask(twins: TwinBrokers, asker: Address, wanted: Filter, number: int) -> None:
    if isinstance(asker, Client):
        name = None if number % 3 == 0 else f"s{number}"
        twins.both(asker, Subscribe(wanted, name, version=number))
        return
    tree = f"{asker}-2" if twins.single.domains.by_name["d"].tree_per_source else None
    twins.both(asker, FilterDelta(((Key(number, tree), wanted),)))


@pytest.mark.parametrize("architecture", Architecture)
@pytest.mark.parametrize("routing", STRATEGIES)
def test_the_next_hops_are_those_of_each_event(routing: str, architecture: Architecture) -> None:
    if routing == "summaries" and architecture is Architecture.HIERARCHICAL:
        pytest.skip("summaries know no hierarchy")
    random = Random(1)
    twins = TwinBrokers(lambda: broker(routing, architecture))
    for peer in PEERS:
        offered = parse_advertisement("x is not null and y is not null")
        if twins.single.strategy.needs_advertisements:
            tree = f"{peer}-2" if twins.single.domains.by_name["d"].tree_per_source else None
            twins.both(peer, AdvertisementDelta(((Key(1, tree), offered),)))
    for client in (ANN, BOB, PUB):
        twins.both(client, Advertise("x is not null and y is not null"))
    for number in range(24):
        asker = random.choice(ASKERS)
        if isinstance(asker, Client) or twins.single.strategy.sends_subscriptions:
            ask(twins, asker, parse(f"x > {random.randrange(9)} and y < 5"), number)
    twins.both(CAT, Suspend())
    for round in range(3):
        sent: list[tuple[Address, Publish | Notify]] = []
        for number in range(20):
            event = Event.of({"x": random.randrange(12), "y": random.randrange(8)}, from_us(9))
            sender = random.choice(SENDERS)
            if isinstance(sender, Client):
                sent.append((sender, Publish(event)))
            else:
                sent.append((sender, notify(twins.single, sender, event, 100 * round + number + 1)))
        twins.check(sent)
    twins.both(CAT, Resume())


def test_what_cannot_have_come_this_way_is_refused_alone() -> None:
    twins = TwinBrokers(lambda: broker("subscription"))
    event = Event.of({"x": 1}, from_us(1))
    good = notify(twins.single, "left", event, 1)
    stamp = Stamp("far", 1, 5)
    twins.check(
        [
            ("left", good),
            ("left", Notify(Publication(event, stamp, "far"), "a tree")),
            ("left", Notify(Publication(event, stamp, "far"), None, frozenset(["me"]))),
            ("left", Notify(Publication(Event.of({"x": 1}), stamp, "far"))),
            ("right", Notify(Publication(event, stamp, "far"))),
        ]
    )


def test_events_are_checked_against_their_spaces_and_meet_only_filters_of_these() -> None:
    twins = TwinBrokers(
        lambda: broker("subscription", spaces=[Space("a", {"x": int}), Space("b", {"x": float})])
    )
    for number, space in enumerate(("a", "b", None)):
        twins.both(ANN, Subscribe("x > 0", f"in {space}", version=number, space=space))
        twins.both(BOB, Subscribe("x > 0", space=space))
    sent: list[tuple[Address, Publish | Notify]] = []
    values = (1, 1.5, "text")
    for space in ("a", None, "b", "c"):
        sent += [(PUB, Publish(Event.of({"x": each}), space)) for each in values]
    sent.append((PUB, Publish(Event.of({"tidegate.space": "a", "x": 1}))))
    far = Publication(Event.of({"x": 1}, from_us(1)), Stamp("far", 1, 1), "far", "b")
    sent.append(("left", Notify(far)))
    twins.check(sent)


def test_only_advertised_events_are_accepted_if_they_must_be() -> None:
    twins = TwinBrokers(lambda: broker("subscription", only_advertised=True))
    twins.both(ANN, Subscribe("x > 0"))
    twins.both(PUB, Advertise("x > 5"))
    twins.check([(PUB, Publish(Event.of({"x": x}))) for x in (9, 1, 7)])


@pytest.mark.parametrize("substrate", SUBSTRATES)
def test_evolving_subscriptions_are_evaluated_exactly(substrate: str) -> None:
    twins = TwinBrokers(lambda: broker("subscription", substrate=substrate))
    twins.both(ANN, Subscribe("x < t * @speed", "grows", version=1, origin_us=0))
    twins.both(ANN, Subscribe("x < :top", "top", {"top": 3}, version=2))
    evolving = EvolvingFilter(parse("x < t"), 0)
    twins.both("left", FilterDelta(((Key(1, None), evolving),)))
    for made in (twins.single, twins.batching):
        made.variables.set(speed=2)
    at = [Event.of({"x": x}, from_us(seconds * 1_000_000)) for x in (1, 5) for seconds in (0, 1, 3)]
    twins.check([(PUB, Publish(each)) for each in at])


def test_patterns_see_the_events_of_a_batch_in_their_order() -> None:
    twins = TwinBrokers(lambda: broker("subscription"))
    twins.both(ANN, Subscribe("x = 1 then x = 2"))
    twins.check([(PUB, Publish(Event.of({"x": x}, from_us(x)))) for x in (1, 2, 3)])
    found = [each.wake(10**9) for each in (twins.single, twins.batching)]
    assert found[0] == found[1] != []


def test_events_of_a_client_that_is_still_arriving_wait() -> None:
    twins = TwinBrokers(lambda: broker("subscription"))
    twins.both(BOB, Subscribe("x > 0"))
    twins.both(PUB, Resume(home="elsewhere", moves=1))
    twins.check([(PUB, Publish(Event.of({"x": 1}))), (ANN, Publish(Event.of({"x": 2})))])
    assert len(twins.batching.sessions[PUB].requests) == 1


def test_an_update_shows_in_the_next_batch() -> None:
    twins = TwinBrokers(lambda: broker("subscription", substrate="columnar"))
    twins.both(ANN, Subscribe("x < :top", "s", {"top": 3}, version=1))
    twins.both(BOB, Subscribe("x < 3", "same", version=1))
    events: list[tuple[Address, Publish | Notify]]
    events = [(PUB, Publish(Event.of({"x": x}))) for x in (1, 5, 7)]
    twins.check(events)
    for version, top in enumerate((6, 9, 3), start=2):
        twins.both(ANN, Update("s", version, {"top": top}))
        twins.check(events)

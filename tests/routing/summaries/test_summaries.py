"""Routing by summaries as a whole: what is in force when, windows, moves, spaces, gateways."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.broker_network import Network
from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.spaces import Space
from tidegate.language.values import from_us
from tidegate.matching.summary.summary import Summary
from tidegate.matching.summary.tables import NO_ENTRIES
from tidegate.matching.summary.wire.messages import encode, encode_difference
from tidegate.routing.broker import Broker
from tidegate.routing.messages import (
    Client,
    Drain,
    Drained,
    Examination,
    Message,
    Notify,
    Probe,
    Publication,
    Publish,
    Refused,
    Resume,
    Stamp,
    Subscribe,
    SummaryReceived,
    SummaryUpdate,
    SummaryWithdrawal,
    Update,
    Validity,
)
from tidegate.routing.strategies import strategy
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.routing.summaries.summaries import Summaries
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.world import SilentClient, World

TREE = [("a", "b"), ("b", "c"), ("c", "d"), ("c", "e")]
"""a -> b -> c, d -> c, e -> c; c has degree 3 and no parent."""
SECOND_US = 1_000_000


def network(settings: SummarySettings | None = None, spaces: tuple[Space, ...] = ()) -> Network:
    found = Network(TREE, "summaries", summaries=settings, spaces=spaces)
    found.wait()
    return found


def summaries_of(network: Network, broker: str) -> Summaries:
    summaries = network.brokers[broker].summaries
    assert summaries is not None
    return summaries


def is_due(network: Network, broker: str) -> bool:
    return network.brokers[broker].due_us is not None


def probes(network: Network) -> list[Message]:
    return [each for waiting in network.waiting.values() for each in waiting
            if isinstance(each, Probe)]  # fmt: skip


# -- what is in force when -------------------------------------------------------------------------


def test_until_it_is_in_force_a_subscription_may_miss_events() -> None:
    found = network()
    found.ask("a", "ann", Subscribe("x = 1", "one", version=1, confirm=True))
    found.publish("e", "pub", x=1)
    found.run()
    assert found.delivered("ann") == []
    found.publish("a", "pub", x=1)  # its own broker has it at once
    assert found.delivered("ann") == [{"x": 1}]
    found.wait()
    assert found.in_force("ann") == [("one", 1)]
    found.publish("e", "pub", x=1)
    found.run()
    assert found.delivered("ann") == [{"x": 1}, {"x": 1}]


def test_after_links_have_changed_a_wave_is_awaited_once() -> None:
    found = network()
    found.ask("a", "ann", Subscribe("x = 1", "one", version=1, confirm=True))
    for broker in "ab":
        found.now_us += SECOND_US
        found.take(broker, found.brokers[broker].wake(found.now_us))
        found.run_until(lambda: bool(probes(found)) or not any(found.waiting.values()))
    assert probes(found)
    assert found.in_force("ann") == []
    found.wait()
    assert found.in_force("ann") == [("one", 1)]
    found.ask("a", "ann", Update("one", 2, filter="x = 2", confirm=True))
    for broker in "ab":
        found.now_us += SECOND_US
        found.take(broker, found.brokers[broker].wake(found.now_us))
        while found.step():
            assert not probes(found)
    assert found.in_force("ann") == [("one", 1), ("one", 2)]


def test_versions_that_are_asked_for_meanwhile_share_the_next_confirmation() -> None:
    found = network()
    for version in (1, 2, 3):
        request = (
            Subscribe("x = 1", "one", version=1, confirm=True)
            if version == 1
            else Update("one", version, filter=f"x = {version}", confirm=True)
        )
        found.ask("a", "ann", request)
    found.wait()
    assert found.in_force("ann") == [("one", 1), ("one", 3)]


def test_an_update_of_a_parameter_is_a_small_difference() -> None:
    found = network()
    for n in range(20):
        found.subscribe("a", "bob", f"y = {n}")
    found.ask("a", "ann", Subscribe("x < :limit", "one", {"limit": 5}, version=1))
    found.wait()
    full = len(summaries_of(found, "a").own.present.ranges)
    counts = summaries_of(found, "a").exchanges["d"].counts
    before = counts.bytes
    found.ask("a", "ann", Update("one", 2, {"limit": 7}))
    found.wait()
    assert full == 2
    assert 0 < counts.bytes - before < before
    found.publish("e", "pub", x=6)
    found.run()
    assert found.delivered("ann") == [{"x": 6}]


# -- windows ---------------------------------------------------------------------------------------


def test_windows_move_with_events_and_not_with_time() -> None:
    found = network(SummarySettings(window_us=3 * SECOND_US))
    evolving = Subscribe("x between t and t + 1", "one", version=1, origin_us=found.now_us)
    begun_us = found.now_us
    found.ask("a", "ann", evolving)
    found.wait()
    assert not is_due(found, "a")
    for seconds in (100, 110, 200):
        found.now_us = begun_us + seconds * SECOND_US
        for x in (seconds, seconds + 50):  # the second does not match
            found.ask("e", "pub", Publish(Event({"x": x + 0.5}, from_us(found.now_us))))
            found.run()
        assert found.delivered("ann")[-1] == {"x": seconds + 0.5}
        assert is_due(found, "a")
        found.wait()
        in_vain = summaries_of(found, "a").counts.in_vain
        found.ask("e", "pub", Publish(Event({"x": -1}, from_us(found.now_us))))
        found.run()
        assert summaries_of(found, "a").counts.in_vain == in_vain  # the window was moved
        assert not is_due(found, "a")
    assert len(found.delivered("ann")) == 3


# -- moves -----------------------------------------------------------------------------------------


def test_a_client_that_moves_does_not_wait_for_the_period() -> None:
    found = network(SummarySettings(3_600 * SECOND_US))
    found.subscribe("a", "ann", "x = 1")
    found.wait()
    found.ask("d", "ann", Resume("a", 1))
    found.run()
    assert Client("ann") not in found.brokers["a"].sessions
    assert not found.brokers["d"].sessions[Client("ann")].is_arriving
    found.publish("e", "pub", x=1)
    found.run()
    assert found.delivered("ann") == [{"x": 1}]


# -- spaces, substrates, patterns ------------------------------------------------------------------


def test_spaces_are_kept_apart() -> None:
    spaces = (Space("east", {"x": int}), Space("west", {"x": int}))
    found = network(spaces=spaces)
    found.ask("a", "ann", Subscribe("x = 1", space="east"))
    found.wait()
    for space in ("west", "east"):
        found.ask("e", "pub", Publish(Event.of({"x": 1}), space))
        found.run()
    assert found.delivered("ann") == [{"x": 1}]


def test_without_subsumption_covered_filters_are_in_the_summary() -> None:
    for subsumption, count in ((True, 1), (False, 2)):
        found = network(SummarySettings(subsumption=subsumption))
        found.subscribe("a", "ann", "x > 1")
        found.subscribe("a", "bob", "x > 5")
        found.wait()
        assert len(summaries_of(found, "a").own.numbers) == count
        found.publish("e", "pub", x=7)
        found.run()
        assert found.delivered("ann") == found.delivered("bob") == [{"x": 7}]


def test_the_poset_finds_no_subscribers_where_it_hides_nothing() -> None:
    settings = SummarySettings(subsumption=False)
    with pytest.raises(RoutingError, match="the substrate 'poset' hides filters"):
        Broker("a", strategy("summaries"), substrate="poset", summaries=settings)
    with pytest.raises(RoutingError, match="there is no substrate 'rose'"):
        Broker("a", strategy("summaries"), substrate="rose", summaries=settings)


def test_lists_of_other_routings_are_refused() -> None:
    found = Network(TREE)
    found.publish("a", "pub", x=1)
    found.subscribe("b", "ann", "x = 1")
    found.run()
    found.publish("a", "pub", x=1)
    (message,) = found.waiting["a", "b"]
    assert isinstance(message, Notify)
    routed = network()
    in_tree = Notify(message.publication, "a")
    ((_, refused),) = routed.brokers["b"].handle(in_tree, "a", 9)
    assert isinstance(refused, Refused)


# -- hostile neighbours ----------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d", "e", "z", "", "é"])
NUMBERS = st.sampled_from([0, 1, 2, 99, -1, 2**63, -(2**63), 10**30])
LISTS = st.lists(NAMES, max_size=4).map(tuple)
TABLES = Summary()
TABLES.add("a", 1, parse("x = 1 or s like 'a%'"))
WIRE = (
    b"", b"nonsense", encode(NO_ENTRIES), encode(TABLES.tables()),
    encode_difference(NO_ENTRIES, TABLES.tables()), encode_difference(TABLES.tables(), NO_ENTRIES),
)  # fmt: skip
PUBLICATIONS = st.builds(
    Publication,
    st.builds(
        lambda value, time_us: Event(Event.of({"x": value, "y": 1}).attributes, from_us(time_us)),
        st.sampled_from([1, -0.0, 2**62, math.inf]),
        st.sampled_from([0, 1, 10**15]),
    ),
    st.builds(Stamp, NAMES, NUMBERS, NUMBERS),
    st.just("pub"),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        SummaryUpdate,
        NUMBERS,
        LISTS | st.sampled_from([("a",), ("a", "b")]),
        st.lists(st.builds(Validity, NAMES, NUMBERS, NUMBERS), max_size=2).map(tuple),
        st.sampled_from(WIRE),
        st.booleans(),
    ),
    st.builds(SummaryWithdrawal, NUMBERS),
    st.builds(SummaryReceived, NUMBERS),
    st.builds(Drain, NAMES, NUMBERS, st.none() | NAMES),
    st.builds(Drained, NUMBERS, NAMES, LISTS),
    st.builds(
        Notify,
        PUBLICATIONS,
        st.none() | NAMES,
        st.none() | LISTS.map(frozenset),
        st.none() | st.builds(Examination, NAMES, NUMBERS, NUMBERS),
    ),
)


@given(st.lists(st.tuples(st.sampled_from(TREE), st.booleans(), MESSAGES), max_size=8))
@example([(("a", "b"), False, Drain("b", 1))])
@settings(max_examples=settings().max_examples // 4)
def test_whatever_a_neighbour_sends_is_handled_or_refused(
    sent: list[tuple[tuple[str, str], bool, Message]],
) -> None:
    found = network()
    for broker in found.brokers:
        found.subscribe(broker, f"at {broker}", "x = 1 and y < 2 + t")
    found.wait()
    for (lower, upper), is_from_above, message in sent:
        sender, receiver = (upper, lower) if is_from_above else (lower, upper)
        answers = found.brokers[receiver].handle(message, sender, found.now_us)
        assert all(each.reason for _, each in answers if isinstance(each, Refused))
        found.take(receiver, answers)
        found.wait()


# -- gateways --------------------------------------------------------------------------------------


def test_every_event_visits_the_gateways_and_the_domains_behind_them() -> None:
    world = World(generate("graphs-in-tree", 20, 1), "summaries")
    received: list[str] = []

    class Listener(SilentClient):
        def __init__(self, home: str) -> None:
            self.home = home

        def receive(self, message: Message, now_us: int) -> None:  # noqa: ARG002
            received.append(self.home)

    for home in world.topology.brokers:
        world.admit(Client(home), Listener(home), home)
        world.request(Client(home), Subscribe("x = 1"))
    world.admit(Client("pub"), SilentClient(), "c0.1")
    world.run()
    gateways = [each for each in world.topology.brokers if len(world.topology.domains_of(each)) > 1]
    assert gateways
    for gateway in gateways:
        summaries = world.sites[gateway].broker.summaries
        assert summaries is not None
        assert len(summaries.exchanges) == 2
    world.request(Client("pub"), Publish(Event.of({"x": 1})))
    world.run()
    assert sorted(received) == sorted(world.topology.brokers)
    updates: list[object] = []
    world.observer = lambda _now, _sender, _receiver, message: updates.append(message)
    world.request(Client(gateways[0]), Subscribe("y = 1", "one", version=1, confirm=True))
    world.run()
    assert not any(isinstance(each, SummaryUpdate) for each in updates)

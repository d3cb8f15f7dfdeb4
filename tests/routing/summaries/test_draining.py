"""When a broker is drained, every event from before has come, whatever way it took."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.broker_network import Network
from tidegate.errors import RoutingError
from tidegate.routing.messages import Drain, Drained, Notify, Outgoing, Refused
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.summaries.exchange import Action
from tidegate.routing.summaries.summaries import Summaries
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.world import World

LATERAL = (
    "f-o f-e f-p f-x f-y f-z e-o e-d e-u e-v d-q d-r d-s d-t"  # the link f-e is not on o's tree
)
TREE = "a-b b-c c-d b-e e-f e-g"


def network(links: str, architecture: Architecture = Architecture.GENERAL) -> Network:
    pairs = [(each[0], each[2]) for each in links.split()]
    found = Network(pairs, "summaries", architecture)
    found.wait()
    return found


def summaries_of(network: Network, broker: str) -> Summaries:
    summaries = network.brokers[broker].summaries
    assert summaries is not None
    return summaries


def events_left(links: str, architecture: Architecture, seed: int) -> list[dict[str, object]]:
    """Publish some events, have a broker wait for all of them, and return those that are missing
    when it is done."""
    random = Random(seed)
    found = network(links, architecture)
    home = random.choice(list(found.brokers))
    found.subscribe(home, "ann", "n >= 0")
    found.wait()
    published: list[dict[str, object]] = []
    for n in range(random.randrange(8)):
        found.publish(random.choice(list(found.brokers)), "pub", n=n)
        published.append({"n": n})
        for _ in range(random.randrange(6)):
            found.step(random)
    is_done: list[bool] = []

    def done() -> Outgoing:
        is_done.append(True)
        return []

    found.take(home, found.brokers[home].start_wave(done))
    while not is_done:
        assert found.step(random)
    left = [each for each in published if each not in found.delivered("ann")]
    found.run(random)
    assert not len(summaries_of(found, home).drains)
    assert len(found.delivered("ann")) == len(published)
    return left


@pytest.mark.parametrize(
    ("links", "architecture"), [(LATERAL, Architecture.GENERAL), (TREE, Architecture.ACYCLIC)]
)
@settings(max_examples=settings().max_examples // 4)
@given(seed=st.integers(0, 2**32))
def test_all_events_from_before_have_come(
    links: str, architecture: Architecture, seed: int
) -> None:
    assert events_left(links, architecture, seed) == []


def test_a_wave_on_a_spanning_tree_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def wave(summaries: Summaries, done: Action) -> Outgoing:
        return summaries._broker.start_plain_wave(done)

    monkeypatch.setattr(Summaries, "when_nothing_is_on_its_way", wave)
    assert any(events_left(LATERAL, Architecture.GENERAL, seed) for seed in range(100))


def test_the_answers_take_the_way_of_events() -> None:
    """The event from p is examined at f and e, and goes from there to o; so does the answer."""
    found = network(LATERAL)
    ways: dict[str, list[tuple[str, str]]] = {"event": [], "answer": []}
    found.subscribe("o", "ann", "n = 1")
    found.wait()
    found.take("o", found.brokers["o"].start_wave(list))
    found.publish("p", "pub", n=1)
    while any(found.waiting.values()):
        link = next(link for link, messages in found.waiting.items() if messages)
        message = found.waiting[link][0]
        if isinstance(message, Notify) and (message.targets or message.examination):
            ways["event"].append(link)
        if isinstance(message, Drained) and message.broker == "p":
            ways["answer"].append(link)
        found.arrive(*link)
    assert ways["answer"] == [("p", "f"), ("f", "e"), ("e", "o")]
    assert set(ways["answer"]) <= set(ways["event"])
    assert found.delivered("ann") == [{"n": 1}]


def test_it_begins_anew_when_links_change() -> None:
    found = network(TREE, Architecture.ACYCLIC)
    is_done: list[bool] = []

    def done() -> Outgoing:
        is_done.append(True)
        return []

    found.take("a", found.brokers["a"].start_wave(done))
    found.step()
    found.cut("e", "f")  # the answer of f is lost
    found.run()
    assert is_done == [True]
    assert not len(summaries_of(found, "a").drains)


def test_an_answer_from_before_a_restart_is_for_no_drain_of_now() -> None:
    found = network(TREE, Architecture.ACYCLIC)
    found.take("a", found.brokers["a"].start_wave(list))
    stale: list[Drained] = []
    while found.step():
        waiting = found.waiting.get(("c", "b"), ())
        stale += [each for each in waiting if isinstance(each, Drained) and each.broker == "d"]
    found.cut("a", "b")
    del found.brokers["a"]
    found.now_us += 1
    found.connect("a", "b")
    found.wait()
    is_done: list[bool] = []

    def done() -> Outgoing:
        is_done.append(True)
        return []

    found.take("a", found.brokers["a"].start_wave(done))
    found.take("b", found.brokers["b"].handle(stale[0], "c", found.now_us))
    found.arrive("b", "a")
    (draining,) = summaries_of(found, "a").drains._drains
    assert "d" in draining.pending
    found.run()
    assert is_done == [True]


def test_a_broker_alone_is_drained_at_once() -> None:
    found = Network([], "summaries")
    found.add("a")
    is_done: list[bool] = []

    def done() -> Outgoing:
        is_done.append(True)
        return []

    assert found.brokers["a"].start_wave(done) == []
    assert is_done == [True]


def test_gateways_drain_what_lies_behind_them_first() -> None:
    world = World(generate("graphs-in-tree", 20, 1), "summaries")
    world.run()
    home = "c0.0"
    answered: list[str] = []

    def observe(_now_us: int, _sender: object, receiver: object, message: object) -> None:
        if isinstance(message, Drained) and message.stops == (receiver,):
            answered.append(message.broker)

    world.observer = observe
    is_done: list[bool] = []

    def done() -> Outgoing:
        is_done.append(True)
        return []

    world.send(home, world.sites[home].broker.start_wave(done))
    world.run()
    assert is_done == [True]
    assert set(answered) == set(world.topology.brokers) - {home}
    gateways = [each for each in world.topology.brokers if len(world.topology.domains_of(each)) > 1]
    own = next(each for each in gateways if each.startswith("c0."))
    others = {each for each in world.topology.brokers if not each.startswith("c0.")}
    assert own != home
    assert set(answered[: answered.index(own)]) >= others


def test_malformed_answers_are_refused() -> None:
    found = network(TREE, Architecture.ACYCLIC)
    exchange = next(iter(summaries_of(found, "a").exchanges.values()))
    with pytest.raises(RoutingError, match="names no broker to go to"):
        summaries_of(found, "a").drains.on_drained(Drained(1, "b", ()), exchange)
    assert summaries_of(found, "a").drains.on_drained(Drained(9, "b", ("a",)), exchange) == []
    assert summaries_of(found, "a").drains.on_drained(Drained(9, "b", ("z",)), exchange) == []
    with pytest.raises(RoutingError, match="goes to a broker twice"):
        summaries_of(found, "a").drains.on_drained(Drained(1, "b", ("c", "d", "c")), exchange)
    (refused,) = found.brokers["a"].handle(Drain("b", 1, "b"), "b", 1)
    assert "one tree only" in str(refused)
    ((_, refusal),) = found.brokers["a"].handle(Drain("a", 1), "b", 1)
    assert isinstance(refusal, Refused)
    assert "back to 'a', its origin" in refusal.reason

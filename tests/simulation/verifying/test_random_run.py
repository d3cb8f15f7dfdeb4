"""Every routing on every architecture delivers what the oracle says, also with failures.

A failing seed prints the command that repeats it. `make soak` runs 100,000 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tidegate.language.events import Event
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.routing.askers import Asker
from tidegate.routing.broker import Broker
from tidegate.routing.clients.sessions import KeptDelivery, Sessions
from tidegate.routing.forwarding import Forwarding
from tidegate.routing.messages import Address, Client, Key, Message, Notify, Outgoing, Peer, Refused
from tidegate.routing.overlay.broker_domains import BrokerDomains
from tidegate.routing.strategies import (
    STRATEGIES,
    AskersByDomain,
    IncomingEvent,
    NextHops,
    Strategy,
)
from tidegate.routing.tables.covered_nodes import CoveredNodes
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.verifying.random_run import Mix, RandomRun
from tidegate.simulation.verifying.verification import VERIFIED_TOPOLOGIES, VerificationCase, cases

pytestmark = pytest.mark.slow

SEEDS_EACH = 7
BATCHES = [(first, first + SEEDS_EACH) for first in range(0, 21, SEEDS_EACH)]


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: f"seeds-{batch[0]}-{batch[1] - 1}")
@pytest.mark.parametrize("routing", STRATEGIES)
@pytest.mark.parametrize("topology", VERIFIED_TOPOLOGIES)
def test_deliveries_are_those_of_the_oracle(
    topology: str, routing: str, batch: tuple[int, int]
) -> None:
    for case in cases(range(*batch), [topology], [routing]):
        problems = case.problems()
        assert not problems, "\n".join([*problems, case.command])


def test_at_least_500_runs() -> None:
    assert len(BATCHES) * SEEDS_EACH * len(STRATEGIES) * len(VERIFIED_TOPOLOGIES) >= 500


@pytest.mark.parametrize("routing", ["subscription", "advertisement"])
@pytest.mark.parametrize("topology", ["random-tree", "random-graph", "hierarchy"])
def test_merged_filters_deliver_the_same(topology: str, routing: str) -> None:
    for seed in range(5):
        run = RandomRun(generate(topology, 1 + seed * 2, seed), routing, seed, Mix(merging=True))
        assert run.problems() == [], (topology, routing, seed)


SEMANTICS = [
    (routing, only_advertised)
    for routing in STRATEGIES
    for only_advertised in (False, True)
    if only_advertised or not STRATEGIES[routing].needs_advertisements
]


@pytest.mark.parametrize(("routing", "only_advertised"), SEMANTICS)
@pytest.mark.parametrize("topology", VERIFIED_TOPOLOGIES)
def test_both_semantics(topology: str, routing: str, only_advertised: bool) -> None:
    brokers = None if topology == "centralized" else 5
    run = RandomRun(
        generate(topology, brokers, 3), routing, 3, Mix(only_advertised=only_advertised)
    )
    refusals: list[str] = []

    def observe(_now_us: int, _sender: Address, _receiver: Address, message: Message) -> None:
        if isinstance(message, Refused):
            refusals.append(message.reason)

    run.world.observer = observe
    assert run.problems() == []
    assert any("has not advertised" in each for each in refusals) == only_advertised


def test_a_broker_that_accepts_events_without_an_advertisement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def handle(broker: Broker, message: Message, sender: Address, now_us: int) -> Outgoing:
        broker.only_advertised = False
        return right(broker, message, sender, now_us)

    right: Callable[..., Outgoing] = Broker.handle
    monkeypatch.setattr(Broker, "handle", handle)
    assert finds("1 times, not 0", "flooding", "random-tree")


def test_one_seed_is_one_run() -> None:
    def state(run: RandomRun) -> object:
        run.problems()
        return run.world.now_us, dict(run.world.arrived_by_type), run.random.random()

    runs = [RandomRun(generate("random-graph", 6, 3), "subscription", 3) for _ in range(2)]
    assert state(runs[0]) == state(runs[1])


# -- broken brokers: each of them must be found, or the checks are worth nothing ------------------


def finds(text: str, routing: str, topology: str, seeds: int = 30) -> bool:
    """Whether one of some runs has a problem with a text."""
    return any(
        text in problem
        for seed in range(seeds)
        for problem in VerificationCase(routing, seed, topology, 6).problems()
    )


def test_a_broker_that_does_not_send_filters_that_are_no_longer_covered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def remove_asker(table: CoveredNodes[object], asker: Asker, node: PosetNode[object]) -> None:
        marked = dict(table._marked)
        right(table, asker, node)
        if node not in table.poset:
            table._marked = {each: None for each in marked if each in table.poset}

    right: Callable[..., None] = CoveredNodes.remove_asker
    monkeypatch.setattr(CoveredNodes, "remove_asker", remove_asker)
    assert finds("was sent to", "subscription", "random-tree")


def test_a_broker_that_sends_events_down_the_wrong_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    def astray(
        incoming: IncomingEvent, asked: AskersByDomain, domains: BrokerDomains
    ) -> list[tuple[Peer, Notify]]:
        hops = right(incoming, asked, domains)
        return [(peer, Notify(notify.publication, "b0")) for peer, notify in hops]

    right = next_hops("subscription")
    monkeypatch.setitem(dict_of_strategies(), "subscription", Strategy(astray))
    assert finds("0 times, not 1", "subscription", "random-graph")


def test_a_broker_that_drops_some_events(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_but_the_last(
        incoming: IncomingEvent, asked: AskersByDomain, domains: BrokerDomains
    ) -> list[tuple[Peer, Notify]]:
        hops = right(incoming, asked, domains)
        return hops[:-1] if len(hops) > 1 else hops

    right = next_hops("subscription")
    lossy = Strategy(all_but_the_last)
    monkeypatch.setitem(dict_of_strategies(), "subscription", lossy)
    assert finds("0 times, not 1", "subscription", "random-tree")


def next_hops(routing: str) -> NextHops:
    function = STRATEGIES[routing].next_hops
    assert function is not None
    return function


def dict_of_strategies() -> dict[str, Strategy]:
    assert isinstance(STRATEGIES, dict)
    return STRATEGIES


def test_a_broker_that_delivers_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(sessions: Sessions, client: Client, delivery: KeptDelivery) -> Outgoing:
        return right(sessions, client, delivery) * 2

    right: Callable[..., Outgoing] = Sessions.deliver
    monkeypatch.setattr(Sessions, "deliver", twice)
    assert finds(" after ", "subscription", "random-tree")


def test_a_broker_that_delivers_events_that_do_not_match(monkeypatch: pytest.MonkeyPatch) -> None:
    def to_all(
        poset: Poset[WantedFilter], _event: Event, *, include_evolving: bool
    ) -> list[PosetNode[WantedFilter]]:
        return [node for node in poset if include_evolving or not node.evolves]

    monkeypatch.setattr(Poset, "matching", to_all)
    assert finds("never asked for", "subscription", "random-tree")


def test_a_broker_that_keeps_the_filters_of_a_client_that_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def remove_client(broker: Broker, client: Client) -> Outgoing:
        broker.sessions.end(client)
        return []

    monkeypatch.setattr(Broker, "remove_client", remove_client)
    assert finds("still asks here", "subscription", "random-tree")
    assert finds("has not asked for", "subscription", "random-tree")


def test_an_exception_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_broker: Broker, _client: Client) -> Outgoing:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(Broker, "remove_client", broken)
    assert finds("ZeroDivisionError: by zero (broken, ", "flooding", "random-tree")


def test_a_broker_whose_state_depends_on_its_history(monkeypatch: pytest.MonkeyPatch) -> None:
    def remove(table: Forwarding[object], peer: Peer, keys: Iterable[Key]) -> None:
        if peer != "b0":
            right(table, peer, keys)

    right: Callable[..., None] = Forwarding.remove
    monkeypatch.setattr(Forwarding, "remove", remove)
    assert finds("computed from scratch", "subscription", "random-tree")

"""A broker that restarts, and what it and its neighbours say to each other then.

Random runs with all routings are in `tests/simulation/verifying/test_random_run_durable.py`.
"""

from __future__ import annotations

from collections import deque

import pytest

from support.broker_network import Network
from tidegate.language.filters import parse
from tidegate.routing.durability.durable_state import export_state
from tidegate.routing.durability.restoring import held_digest, restore_state, sync_for
from tidegate.routing.messages import (
    Cancel,
    Client,
    Delegate,
    Disconnect,
    FilterDelta,
    InForce,
    Key,
    Message,
    Probe,
    Refused,
    Subscribe,
    SummaryReceived,
    Suspend,
    Sync,
    Update,
)

LINE = [("a", "b"), ("b", "c")]


class RestartingNetwork(Network):
    """A network whose brokers restart: what they had sent and has not arrived is lost."""

    def restart(self, name: str, *, with_digest: bool = True) -> list[Sync]:
        """Restart a broker from its durable state; returns what it syncs with its neighbours."""
        state = export_state(self.brokers.pop(name))
        self.now_us += 1
        broker = self.add(name)
        sent = restore_state(broker, state, self.now_us)
        syncs = []
        for peer in sorted(broker.domains.domain_of):
            held = held_digest(self.brokers[peer], name) if with_digest else None
            sync = sync_for(broker, peer, held)
            syncs.append(sync)
            self.waiting[name, peer] = deque([sync])
        self.take(name, sent)
        return syncs

    def passed(self) -> list[Message]:
        """Let all messages arrive; returns them."""
        messages: list[Message] = []
        while any(self.waiting.values()):
            link = next(link for link, waiting in self.waiting.items() if waiting)
            messages.append(self.waiting[link][0])
            self.arrive(*link)
        return messages


@pytest.mark.parametrize("substrate", [None, "columnar"])
@pytest.mark.parametrize("routing", ["subscription", "match-first", "link-matching"])
def test_events_go_on_as_if_nothing_had_happened(routing: str, substrate: str | None) -> None:
    network = RestartingNetwork(LINE, routing, substrate=substrate)
    network.ask("a", "ann", Subscribe("x < :top", "s", {"top": 5}, version=1))
    network.subscribe("c", "bob", "x > 3")
    network.subscribe("b", "cat", "x = 4")
    network.run()
    for name in ("b", "a", "c", "b"):
        syncs = network.restart(name)
        assert [each.filters for each in syncs] == [None] * len(syncs)
        network.run()
        for publisher in "abc":
            network.publish(publisher, "pub", x=4)
            network.run()
        for client in ("ann", "bob", "cat"):
            assert network.delivered(client) == [{"x": 4}] * 3
            network.received[client].clear()
    network.ask("a", "ann", Update("s", 2, {"top": 2}))
    network.ask("a", "ann", Cancel("s"))
    network.run()
    network.publish("c", "pub", x=1)
    network.run()
    assert network.delivered("ann") == []


def test_equal_state_is_not_sent_and_later_changes_fit() -> None:
    network = RestartingNetwork(LINE)
    for number in range(5):
        request = Subscribe("x = :n", f"s{number}", {"n": number}, version=1)
        network.ask("a", "ann", request)
    network.run()
    network.ask("a", "ann", Cancel("s1"))  # keys are no longer without gaps
    network.run()
    (sync,) = network.restart("a")
    assert sync.filters is None
    assert sync.advertisements is None
    assert network.passed() == [sync]
    network.ask("a", "ann", Update("s3", 2, {"n": 33}))
    (message,) = [each for each in network.waiting["a", "b"] if isinstance(each, FilterDelta)]
    assert len(message.updated) == 1
    network.run()
    held = {str(each) for each in network.brokers["b"].subscriptions.held_from("a").values()}
    assert held == {"x = 0", "x = 2", "x = 33", "x = 4"}


def test_what_differs_is_replaced_in_one_step() -> None:
    network = RestartingNetwork(LINE)
    network.ask("a", "ann", Subscribe("x < :top", "kept", {"top": 1}, version=1))
    network.ask("a", "ann", Subscribe("y < :top", "goes", {"top": 1}, version=2))
    network.run()
    network.ask("a", "ann", Subscribe("z < :top", "comes", {"top": 1}, version=3))
    network.ask("a", "ann", Cancel("goes"))
    # both changes are on their way when the broker restarts: they are lost
    (sync,) = network.restart("a")
    assert sync.filters is not None
    assert len(sync.filters) == 2
    network.step()
    held = {str(each) for each in network.brokers["b"].subscriptions.held_from("a").values()}
    assert held == {"x < 1", "z < 1"}
    network.run()
    held = {str(each) for each in network.brokers["c"].subscriptions.held_from("b").values()}
    assert held == {"x < 1", "z < 1"}


def test_without_the_digest_all_is_sent() -> None:
    network = RestartingNetwork(LINE)
    network.subscribe("a", "ann", "x < 1")
    network.run()
    (sync,) = network.restart("a", with_digest=False)
    assert sync.filters is not None
    assert [str(each) for _, each in sync.filters] == ["x < 1"]
    assert network.passed() == [sync]  # to b, which has no news for c


def test_waves_of_others_are_probed_again() -> None:
    network = RestartingNetwork(LINE)
    network.ask("a", "ann", Subscribe("x < 1", "s", version=1, confirm=True))
    network.arrive("a", "b")
    network.arrive("a", "b")  # the probe; b has it, and forgets it
    network.waiting["b", "c"].clear()
    network.restart("b")
    messages = network.passed()
    assert sum(isinstance(each, Probe) for each in messages) == 2
    assert network.in_force("ann") == [("s", 1)]
    assert [len(each.waves) for each in network.brokers.values()] == [0, 0, 0]


def test_an_own_wave_is_asked_for_again() -> None:
    network = RestartingNetwork(LINE)
    network.ask("a", "ann", Subscribe("x < 1", "s", version=1, confirm=True))
    network.restart("a")
    network.run()
    assert network.in_force("ann") == []
    network.take("a", network.brokers["a"].confirm(Client("ann"), "s"))
    network.run()
    assert network.received["ann"] == [InForce("s", 1)]


def test_patterns_are_delegated_anew_on_both_sides() -> None:
    network = RestartingNetwork(LINE, "advertisement")
    network.advertise("c", "pub", "x is not null and y is not null")
    network.run()
    network.subscribe("a", "ann", "x = 1 then y = 1")
    network.run()
    for name in "bac":
        network.restart(name)
        assert any(isinstance(each, Delegate) for each in network.passed())
        network.publish("c", "pub", x=1, y=0)
        network.publish("c", "pub", x=0, y=1)
        network.wait()
        assert len(network.sequences("ann")) == 1
        network.received["ann"].clear()


def test_a_suspended_client_is_suspended_still() -> None:
    network = RestartingNetwork(LINE)
    network.subscribe("a", "ann", "x < 1")
    network.ask("a", "ann", Suspend())
    network.restart("a")
    network.run()
    assert network.brokers["a"].sessions[Client("ann")].is_suspended


def test_a_copy_of_an_event_is_known_after_a_restart() -> None:
    network = RestartingNetwork(LINE)
    network.subscribe("c", "ann", "x = 1")
    network.run()
    network.publish("a", "pub", x=1)
    copy = network.waiting["a", "b"][0]
    network.run()
    network.restart("c")
    network.run()
    network.waiting["b", "c"].append(copy)
    network.run()
    assert network.delivered("ann") == [{"x": 1}]


@pytest.mark.parametrize(
    "sync",
    [
        Sync(b"another"),
        Sync(b"", ((Key(0, None), parse("x = 1")),), ()),
        Sync(b"", ((Key(1, "tree"), parse("x = 1")),), ()),
        Sync(b"", ((Key(1, None), parse("x = :p")),), ()),
        Sync(b"", (), ((Key(1, None), "x ="),)),  # type: ignore[arg-type]
    ],
)
def test_a_sync_that_does_not_fit_is_refused_and_the_link_given_up(sync: Sync) -> None:
    network = RestartingNetwork(LINE)
    network.subscribe("a", "ann", "x < 1")
    network.run()
    (refused,) = network.brokers["b"].handle(sync, "a", 1)
    assert isinstance(refused[1], Refused)
    held = network.brokers["b"].subscriptions.held_from("a")
    assert [str(each) for each in held.values()] == ["x < 1"]
    sent = network.brokers["a"].handle(refused[1], "b", 1)
    assert ("b", Disconnect()) in sent
    assert not network.brokers["a"].knows("b")


def test_an_old_acknowledgement_is_not_taken_for_one_of_a_new_summary() -> None:
    network = RestartingNetwork(LINE, "summaries")
    network.now_us = 1_000
    network.subscribe("a", "ann", "x = 1")
    network.wait()
    network.restart("a")
    network.wait()
    (exchange,) = network.brokers["a"].summaries.exchanges.values()  # type: ignore[union-attr]
    acknowledged = exchange._acknowledged
    assert exchange.sent is not None
    network.brokers["a"].handle(Subscribe("y = 1"), Client("ann"), network.now_us)
    for number in range(1, 20):  # one from before the restart would have such a number
        network.brokers["a"].handle(SummaryReceived(number), "b", network.now_us)
    assert exchange._acknowledged == acknowledged >= 1_000


def test_a_chain_for_a_pattern_from_before_is_ignored() -> None:
    network = RestartingNetwork(LINE, "advertisement")
    network.advertise("c", "pub", "x is not null and y is not null")
    network.run()
    network.subscribe("a", "ann", "x = 1 then y = 1")
    old = {each.number for each in network.waiting["a", "b"] if isinstance(each, Delegate)}
    network.run()
    network.now_us += 77
    network.restart("a")
    new = {each.number for each in network.waiting["a", "b"] if isinstance(each, Delegate)}
    assert old
    assert new
    assert not old & new

"""The exchange: who sends what when, withdrawals, acknowledgements, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from support.broker_network import Network
from tidegate.language.filters import parse
from tidegate.matching.summary.summary import Summary
from tidegate.matching.summary.tables import NO_ENTRIES
from tidegate.matching.summary.wire.messages import encode
from tidegate.routing.messages import (
    Message,
    Outgoing,
    Peer,
    Refused,
    Subscribe,
    SummaryReceived,
    SummaryUpdate,
    SummaryWithdrawal,
    Validity,
)
from tidegate.routing.summaries.exchange import SummaryExchange
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.world import World

PERIOD_US = 1_000_000
OTHER = Summary()
OTHER.add("a", 7, parse("y = 1"))
OTHER_TABLES = OTHER.tables()
TREE = [("a", "b"), ("b", "c"), ("c", "d"), ("c", "e")]
"""a -> b -> c, d -> c, e -> c; c has degree 3 and no parent."""


def network(settings: SummarySettings | None = None) -> Network:
    found = Network(TREE, "summaries", summaries=settings or SummarySettings(PERIOD_US))
    found.wait()
    return found


def exchange_of(network: Network, broker: str) -> SummaryExchange:
    summaries = network.brokers[broker].summaries
    assert summaries is not None
    return summaries.exchanges["d"]


def sent_by(network: Network, sender: str, receiver: str) -> list[Message]:
    return list(network.waiting.get((sender, receiver), ()))


def test_one_message_for_each_broker_that_has_a_parent() -> None:
    """The hops of propagation: fewer than there are brokers (5.2.1)."""
    world = World(generate("summaries13"), "summaries")
    sent: Counter[tuple[object, object]] = Counter()
    merged: dict[tuple[object, object], tuple[str, ...]] = {}

    def observe(_now_us: int, sender: object, receiver: object, message: object) -> None:
        if isinstance(message, SummaryUpdate):
            sent[sender, receiver] += 1
            merged[sender, receiver] = message.brokers

    world.observer = observe
    world.run()
    assert sent == Counter({
        ("1", "2"): 1, ("2", "5"): 1, ("3", "5"): 1, ("4", "5"): 1, ("6", "5"): 1, ("7", "8"): 1,
        ("9", "8"): 1, ("10", "8"): 1, ("12", "11"): 1, ("13", "11"): 1,
    })  # fmt: skip
    assert merged["2", "5"] == ("1", "2")
    assert merged["10", "8"] == ("10",)


def test_a_broker_waits_for_its_children() -> None:
    found = Network([], "summaries")
    for one, other in TREE:
        found.connect(one, other)
    b = exchange_of(found, "b")
    assert (b.parent, b.sent) == ("c", None)
    assert b.due_us is None  # a has not sent anything
    found.wait()
    assert exchange_of(found, "b").usable("a") is not None
    assert b.sent is not None
    assert b.sent.brokers == {"a", "b"}


def test_changes_wait_for_the_period() -> None:
    found = network()
    begun_us = found.now_us
    found.subscribe("a", "ann", "x = 1")
    found.now_us += 5
    found.subscribe("a", "bob", "x = 2")
    assert found.brokers["a"].due_us == begun_us + PERIOD_US
    assert sent_by(found, "a", "b") == []
    assert found.brokers["a"].wake(begun_us + PERIOD_US - 1) == []
    ((receiver, update),) = found.brokers["a"].wake(begun_us + PERIOD_US)
    assert receiver == "b"
    assert isinstance(update, SummaryUpdate)
    assert update.brokers == ()  # a difference
    assert found.brokers["a"].due_us is None


def test_a_full_batch_goes_early() -> None:
    found = network(SummarySettings(PERIOD_US, batch_max=3))
    for n in range(2):
        found.subscribe("a", "ann", f"x = {n}")
    assert sent_by(found, "a", "b") == []
    found.subscribe("a", "ann", "x = 2")
    assert len(sent_by(found, "a", "b")) == 1
    assert found.brokers["a"].due_us is None


def test_without_a_period_nothing_waits() -> None:
    found = network(SummarySettings(0))
    found.subscribe("a", "ann", "x = 1")
    assert len(sent_by(found, "a", "b")) == 1


def test_what_is_covered_is_not_sent_until_what_covers_it_leaves() -> None:
    found = network()
    found.subscribe("a", "ann", "x > 1")
    found.wait()
    found.subscribe("a", "bob", "x > 5")
    assert found.brokers["a"].due_us is None
    found.ask("a", "ann", Subscribe("y = 1"))
    found.wait()
    counts = exchange_of(found, "a").counts
    assert (counts.full, counts.differences) == (1, 2)


def test_an_acknowledgement_comes_when_the_chain_has_the_update() -> None:
    found = network()
    found.ask("a", "ann", Subscribe("x = 1", "one", version=1, confirm=True))
    for broker in ("a", "b"):
        assert found.in_force("ann") == []
        due_us = found.brokers[broker].due_us
        assert due_us is not None
        found.now_us = due_us
        found.take(broker, found.brokers[broker].wake(due_us))
        found.run()
    assert found.in_force("ann") == [("one", 1)]


def test_an_acknowledgement_that_comes_too_early_loses_an_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the wait is for: `b` acknowledges before it has passed the update on."""

    def on_update(
        exchange: SummaryExchange, update: SummaryUpdate, peer: Peer, now_us: int
    ) -> Outgoing:
        sent = right(exchange, update, peer, now_us)
        return [*sent, (peer, SummaryReceived(update.number))]

    right = SummaryExchange.on_update
    monkeypatch.setattr(SummaryExchange, "on_update", on_update)
    found = network()
    found.ask("a", "ann", Subscribe("x = 1", "one", version=1, confirm=True))
    due_us = found.brokers["a"].due_us
    assert due_us is not None
    found.now_us = due_us
    found.take("a", found.brokers["a"].wake(due_us))
    found.run()
    assert found.in_force("ann") == [("one", 1)]
    found.publish("e", "pub", x=1)
    found.run()
    assert found.delivered("ann") == []


def test_at_the_end_of_a_chain_it_is_in_force_at_once() -> None:
    found = network()
    found.ask("c", "ann", Subscribe("x = 1", "one", version=1, confirm=True))
    found.run()  # a wave, because links have changed since the first broker was started
    assert found.in_force("ann") == [("one", 1)]


def test_before_the_first_summary_everything_is_in_force() -> None:
    found = Network(TREE, "summaries")
    found.ask("a", "ann", Subscribe("x = 1", "one", version=1, confirm=True))
    found.run()  # a wave, because links have changed
    assert found.in_force("ann") == [("one", 1)]
    found.publish("e", "pub", x=1)
    found.run()
    assert found.delivered("ann") == [{"x": 1}]


# -- links -------------------------------------------------------------------------------------


def test_a_lost_child_is_withdrawn_at_once() -> None:
    found = network()
    found.cut("a", "b")
    assert any(isinstance(each, SummaryWithdrawal) for each in sent_by(found, "b", "c"))
    found.run()
    assert exchange_of(found, "c").held.keys() == {"d", "e"}
    found.wait()
    # b has degree 1 now, and sends its own summary alone
    assert exchange_of(found, "c").held["b"].brokers == {"b"}
    found.connect("a", "b")
    found.wait()
    assert exchange_of(found, "c").held["b"].brokers == {"a", "b"}


def test_another_parent_gets_the_summary_in_full() -> None:
    found = network()
    found.subscribe("d", "ann", "x = 1")
    found.wait()
    for leaf in ("p", "q", "r"):
        found.connect(leaf, "d")  # d has degree 4 now, and c is its child
    found.wait()
    assert exchange_of(found, "d").parent is None
    assert exchange_of(found, "c").parent == "d"
    assert "d" not in exchange_of(found, "c").held
    assert exchange_of(found, "d").held["c"].brokers == {"a", "b", "c", "e"}


def test_a_summary_that_speaks_for_others_is_not_used() -> None:
    found = network()
    exchange = exchange_of(found, "c")
    held = exchange.held["b"]
    assert exchange.usable("b") is held
    exchange.held["b"] = replace(held, brokers=frozenset({"b"}))
    assert exchange.usable("b") is None


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (SummaryUpdate(9, ("b", "a"), (), b"nonsense"), "the bytes are not those of a summary"),
        (SummaryUpdate(9, (), (), b"nonsense"), "the bytes are not those of a summary"),
        (SummaryUpdate(9, ("a",), (), encode(NO_ENTRIES)), "not of the brokers that it names: 'b'"),
        (
            SummaryUpdate(9, ("b",), (Validity("z", 0, 1),), encode(NO_ENTRIES)),
            "not of the brokers that it names: 'z'",
        ),
        (SummaryReceived(99), "acknowledges the summary 99, not sent yet"),
    ],
)
def test_malformed_messages_change_nothing(message: Message, problem: str) -> None:
    found = network()
    receiver, sender = ("b", "c") if isinstance(message, SummaryReceived) else ("c", "b")
    before = dict(exchange_of(found, receiver).held)
    ((_, refused),) = found.brokers[receiver].handle(message, sender, found.now_us)
    assert isinstance(refused, Refused)
    assert problem in refused.reason
    assert exchange_of(found, receiver).held == before


def test_a_difference_to_nothing_is_refused() -> None:
    found = network()
    message = SummaryUpdate(9, (), (), encode(NO_ENTRIES))
    ((_, refused),) = found.brokers["d"].handle(message, "c", found.now_us)
    assert isinstance(refused, Refused)
    assert "difference to a summary that it has not sent" in refused.reason


def test_a_summary_that_was_refused_is_withdrawn_and_sent_in_full() -> None:
    found = network()
    exchange_of(found, "b").held["a"] = replace(
        exchange_of(found, "b").held["a"], tables=OTHER_TABLES
    )
    found.subscribe("a", "ann", "x = 1")
    found.wait()
    assert exchange_of(found, "a").counts.withdrawals == 1
    assert exchange_of(found, "b").held["a"].tables.owners == ("a",)
    found.publish("e", "pub", x=1)
    found.wait()
    assert found.delivered("ann") == [{"x": 1}]


def test_a_whole_summary_that_was_refused_is_not_sent_again_before_something_changes() -> None:
    found = network()
    exchange = exchange_of(found, "a")
    exchange._withdraw()
    exchange.advance(found.now_us)
    ((_, update),) = exchange.advance(found.now_us + PERIOD_US)
    assert isinstance(update, SummaryUpdate)
    assert update.brokers == ("a",)
    exchange.on_refused(update, "b", found.now_us)
    assert exchange.due_us is None
    assert exchange.on_refused(update, "b", found.now_us) == []
    found.subscribe("a", "bob", "x = 2")
    assert exchange.due_us is not None


def test_what_a_former_parent_says_is_ignored() -> None:
    found = network()
    assert found.brokers["c"].handle(SummaryReceived(99), "b", found.now_us) == []


def test_other_routings_take_no_summaries() -> None:
    found = Network(TREE)
    ((_, refused),) = found.brokers["a"].handle(SummaryReceived(1), "b", 1)
    assert isinstance(refused, Refused)
    assert "a broker cannot send SummaryReceived" in refused.reason


def test_a_child_that_does_not_wait_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent that does not answer, and a child that sends message after message."""
    monkeypatch.setattr("tidegate.routing.summaries.exchange.ANSWERS_MAX", 5)
    found = network()
    exchange = exchange_of(found, "b")  # its parent is c, its child a
    full = SummaryUpdate(
        0, ("a",), (Validity("a", 0, 1 << 60),), encode(OTHER_TABLES), is_urgent=True
    )
    for number in range(2, 60):
        found.now_us += PERIOD_US
        # there and gone again, so that b has something new to say each time
        update: Message = SummaryWithdrawal(number)
        if number % 2:
            update = replace(full, number=number)
        found.take("b", found.brokers["b"].handle(update, "a", found.now_us))
        found.take("b", found.brokers["b"].wake(found.now_us))
        assert exchange.answers_waiting <= 5
    assert exchange.answers_waiting == 5
    # when the parent answers at last, nobody waits any more
    found.wait()
    assert exchange.answers_waiting == 0

"""What a journal has told of is the whole durable state, whatever has happened."""

from __future__ import annotations

from random import Random

import pytest

from support.broker_network import Network
from tidegate.language.events import Event
from tidegate.routing.broker import Broker
from tidegate.routing.durability.durable_state import (
    ClientKey,
    DurableKey,
    DurableRecord,
    Journal,
    NamedKey,
    SeenKey,
    export_state,
)
from tidegate.routing.messages import (
    Advertise,
    Cancel,
    Client,
    Depart,
    Publish,
    Resume,
    Subscribe,
    Suspend,
    Unadvertise,
    Unsubscribe,
    Update,
)
from tidegate.routing.strategies import strategy

LINE = [("a", "b"), ("b", "c")]
ANN = Client("ann")


class Disk:
    """What a journal of a broker has told, put together."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.journal = Journal(broker)
        self.records: dict[DurableKey, DurableRecord] = {}

    def store(self) -> int:
        """Store the changes; returns how many there were."""
        changes = self.journal.changes()
        for key, record in changes.items():
            if record is None:
                self.records.pop(key, None)
            else:
                self.records[key] = record
        return len(changes)


@pytest.mark.parametrize("routing", ["subscription", "advertisement"])
@pytest.mark.parametrize("substrate", [None, "columnar"])
def test_changes_add_up_to_the_whole_state(routing: str, substrate: str | None) -> None:
    random = Random(1)
    network = Network(LINE, routing, substrate=substrate, only_advertised=False)
    disks = [Disk(broker) for broker in network.brokers.values()]
    home = {client: random.choice("abc") for client in ("ann", "bob", "cat")}
    moves = dict.fromkeys(home, 0)
    for version in range(1, 250):
        client = random.choice(list(home))
        text, name = f"x > {random.randrange(6)}", random.choice("st")
        network.now_us += 1
        request = random.choice(
            (
                Subscribe(text),
                Subscribe(f"{text} then y = 1"),
                Subscribe("x < :top", name, {"top": version}, version=version),
                Update(name, version, {"top": version}),
                Cancel(name),
                Unsubscribe(text),
                Advertise(text),
                Unadvertise(text),
                Publish(Event.of({"x": random.randrange(9)})),
                Suspend(),
                Resume(),
                Depart(),
            )
        )
        network.ask(home[client], client, request)
        if isinstance(request, Suspend) and random.random() < 0.5:
            moves[client] += 1
            before, home[client] = home[client], random.choice("abc")
            network.ask(home[client], client, Resume(before, moves[client]))
        for _ in range(random.randrange(4)):
            network.step(random)
        if random.random() < 0.05:
            network.cut("b", "c")
            network.connect("b", "c")
        for disk in disks:
            if random.random() < 0.5:
                disk.store()
                assert disk.records == export_state(disk.broker)
    assert len(disks[1].records) > 10


def test_nothing_is_told_twice() -> None:
    network = Network(LINE)
    disk = Disk(network.brokers["b"])
    assert disk.store() > 0
    assert disk.store() == 0
    network.subscribe("a", "ann", "x > 1")
    network.run()
    assert disk.store() == 1
    network.publish("a", "pub", x=1)
    network.run()
    assert disk.store() == 0  # nobody behind b wanted it
    network.subscribe("c", "bob", "x > 0")
    network.run()
    network.publish("a", "pub", x=1)
    network.run()
    network.publish("a", "pub", x=2)
    network.run()
    disk.store()
    seen = disk.records[SeenKey("a")]
    assert seen == network.brokers["b"].events.last_seen_of("a")


def test_a_client_on_its_way_here_is_not_durable_yet() -> None:
    network = Network(LINE)
    disk = Disk(network.brokers["c"])
    network.ask("a", "ann", Subscribe("x > 1", "s", version=1))
    network.run()
    network.ask("a", "ann", Suspend())
    network.ask("c", "ann", Resume("a", 1))
    while ANN not in network.brokers["c"].sessions or not network.brokers["c"].named.count(ANN):
        network.step()
        disk.store()
        assert ClientKey(ANN) not in disk.records
        assert NamedKey(ANN, "s") not in disk.records
    network.run()
    disk.store()
    assert ClientKey(ANN) in disk.records
    assert NamedKey(ANN, "s") in disk.records
    assert ClientKey(ANN) not in export_state(network.brokers["a"])


def test_a_journal_begins_with_all_there_is() -> None:
    broker = Broker("a", strategy("subscription"))
    broker.handle(Subscribe("x > 1", "s", version=1), ANN, 0)
    assert dict(Journal(broker).changes()) == export_state(broker)

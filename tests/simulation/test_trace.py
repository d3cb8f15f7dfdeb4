from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from tidegate.errors import SimulationError
from tidegate.language.events import Event
from tidegate.language.evolve import Periodic
from tidegate.language.filters import parse
from tidegate.language.values import Value
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.routing import messages as m
from tidegate.routing.clients.client_state import ClientState
from tidegate.routing.messages import Client, Key
from tidegate.simulation.faults import Fault
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.scenario import Scenario, Simulation
from tidegate.simulation.trace import CONTENT_CHARS_MAX, Trace, content, replay, request_of
from tidegate.simulation.verifying.interests import (
    NUMBERS,
    TEXTS,
    random_event,
    random_moving_filter,
    random_parameters,
    random_policy,
)
from tidegate.simulation.workloads import Demand
from tidegate.simulation.world import Weather, World

DEMAND = Demand(publishers=4, subscribers=20, rate_per_s=50.0, duration_s=3.0)


def traced(routing: str, topology: str = "random-graph") -> list[str]:
    """The lines of the trace of a run in which much happens."""
    lines: list[str] = []
    overlay = generate(topology, 8, 4)
    link = overlay.links[0]
    faults = (
        Fault((overlay.brokers[1],), 500_000, 1_500_000),
        Fault((link.a, link.b), 200_000, 2_000_000),
    )
    scenario = Scenario(
        overlay, routing, "churn", 4, DEMAND,
        processor_us=300, semantics="advertisement", weather=Weather(5_000, 0.1), faults=faults,
    )  # fmt: skip
    trace = Trace(lines.append)
    simulation = Simulation(scenario, trace)
    trace.begin(simulation.world, {"workload": "churn"})
    simulation.run()
    return lines


LINES = traced("subscription")


@pytest.mark.parametrize("routing", ["flooding", "match-first", "subscription", "advertisement"])
@pytest.mark.parametrize("topology", ["random-graph", "graphs-in-tree"])
def test_a_replay_gives_the_same_messages(routing: str, topology: str) -> None:
    lines = traced(routing, topology)
    replayed = replay(io.StringIO("".join(lines)))
    assert replayed.difference is None
    assert replayed.messages == sum('"kind"' in line for line in lines) > 500


def test_a_trace_is_the_same_each_time() -> None:
    assert traced("subscription") == LINES


def test_each_line_says_when_from_whom_to_whom_and_what() -> None:
    header, *records = map(json.loads, LINES)
    assert header["tidegate_trace"] == 1
    assert header["overlay"]["name"] == "random-graph"
    kinds = {record.get("kind") for record in records}
    assert {"Notify", "Interests", "Deliver", "Announce", "Connect", "Accept"} <= kinds
    times = [record["us"] for record in records]
    assert times == sorted(times)
    message = next(record for record in records if record.get("kind") == "Notify")
    assert set(message) == {"us", "from", "to", "kind", "content"}


def first(kind: str) -> int:
    return next(index for index, line in enumerate(LINES) if kind in line)


def test_another_message_is_found() -> None:
    index = first('"Notify"')
    changed = LINES[index].replace("'level': ", "'level': 1")
    replayed = replay(io.StringIO("".join([*LINES[:index], changed, *LINES[index + 1 :]])))
    assert replayed.difference is not None
    assert (replayed.difference.line, replayed.difference.traced) == (index + 1, changed)
    assert replayed.difference.now == LINES[index]


def test_a_message_that_is_missing_or_too_much_is_found() -> None:
    last = len(LINES) - 1
    assert '"kind"' in LINES[last]
    short = replay(io.StringIO("".join(LINES[:last]))).difference
    assert short is not None
    assert (short.traced, short.now) == (None, LINES[last])
    more = replay(io.StringIO("".join([*LINES, LINES[last]]))).difference
    assert more is not None
    assert (more.line, more.now) == (last + 2, None)


def test_another_request_gives_other_messages() -> None:
    index = first('"do": "publish"')
    record = json.loads(LINES[index])
    record["event"]["level"] += 1
    lines = [*LINES[:index], json.dumps(record) + "\n", *LINES[index + 1 :]]
    assert replay(io.StringIO("".join(lines))).difference is not None


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([""], "line 1: this is not a JSON object"),
        (["{}"], "line 1: this is no trace of version 1"),
        (['{"tidegate_trace": 1}'], "line 1: 'overlay' is missing"),
        ([LINES[0].replace('"subscription"', '"pigeons"')], "line 1: there is no routing 'pigeo"),
        ([LINES[0], "[]"], "line 2: this is not a JSON object"),
        ([LINES[0], '{"us": 0}'], "line 2: 'client' is missing"),
        ([LINES[0], '{"us": 0, "admit": "s0", "broker": "b99"}'], "line 2: there is no broker"),
        ([LINES[0], '{"us": 0, "fault": "burn", "names": []}'], "line 2: 'burn' is not a valid"),
        ([LINES[0], '{"us": 0, "client": "x", "do": "subscribe", "filter": "x"}'], "not admitted"),
        ([LINES[0], '{"us": 0, "client": "x", "do": "sing"}'], "line 2: there is no request 'si"),
        (
            [LINES[0], '{"us": 0, "client": "x", "do": "publish", "event": 3, "time_us": null}'],
            "line 2: an event is a mapping",
        ),
    ],
)
def test_what_is_no_trace(lines: list[str], reason: str) -> None:
    with pytest.raises(SimulationError, match=reason):
        replay(io.StringIO("\n".join(line.rstrip("\n") for line in lines)))


# -- subscriptions with a name ------------------------------------------------------------------


class Nobody:
    def receive(self, message: m.Message, now_us: int) -> None:
        pass


def changing(routing: str, **more: Any) -> list[str]:
    """The lines of the trace of a run in which subscriptions change and move."""
    lines: list[str] = []
    trace = Trace(lines.append)
    world = World(generate("random-tree", 6, 2), routing, 7, watcher=trace, **more)
    trace.begin(world, {})
    random = Random(5)
    clients = [Client(f"c{number}") for number in range(4)]
    for client in clients:
        broker = random.choice(world.topology.brokers)
        world.admit(client, Nobody(), broker)
        trace.admitted(client, broker)
    states = {client: ClientState() for client in clients}
    for client in clients:
        everything = " and ".join(f"{name} is not null" for name in (*NUMBERS, *TEXTS))
        world.request(client, m.Advertise(everything))
    world.run()
    begun_us = world.now_us

    def act() -> None:
        client = random.choice(clients)
        state, what = states[client], random.randrange(6)
        if "s" not in state:
            filter = random_moving_filter(random)
            values = random_parameters(random, filter)
            request = state.subscribe(
                "s", filter, values, now_us=world.now_us, evolve=random_policy(random),
                confirm=random.random() < 0.5,
            )  # fmt: skip
            world.request(client, request)
        elif what < 3:
            changed = random_moving_filter(random) if what == 0 else None
            of = changed or state["s"].subscription.filter
            new: dict[str, Value | None] = {**random_parameters(random, of)}
            new.update(dict.fromkeys(of.parameters[:1]))
            world.request(client, state.update("s", new, filter=changed, confirm=what == 1))
        elif what == 3:
            world.request(client, state.cancel("s"))
        else:
            world.request(client, m.Publish(random_event(random)))

    for number in range(300):
        world.at(begun_us + number * 20_000, act)
    world.run()
    return lines


@pytest.mark.parametrize("routing", ["flooding", "match-first", "subscription", "advertisement"])
def test_subscriptions_that_change_and_move_are_replayed(routing: str) -> None:
    lines = changing(routing)
    replayed = replay(io.StringIO("".join(lines)))
    assert replayed.difference is None
    records = [json.loads(line) for line in lines]
    assert replayed.messages == sum("kind" in record for record in records) > 100
    done = {record.get("do") for record in records}
    assert {"subscribe", "update", "cancel", "publish"} <= done


@pytest.mark.parametrize("more", [{"merging": True}, {"substrate": "naive"}], ids=str)
def test_the_replay_has_brokers_of_the_same_kind(more: dict[str, Any]) -> None:
    lines = changing("subscription", **more)
    assert replay(io.StringIO("".join(lines))).difference is None
    header = json.loads(lines[0])
    assert {name: header[name] for name in more} == more


def test_what_they_ask_for_is_held_in_full() -> None:
    lines: list[str] = []
    trace = Trace(lines.append)
    at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    values: dict[str, Value] = {"n": 1.5, "s": "a'b", "at": at, "yes": True, "many": 2**60}
    requests: list[m.Message] = [
        m.Subscribe(
            "x < :n + t and s = :s", "one", {"n": 1.5, "s": "a"}, Periodic(0.5), 3, 7, True
        ),
        m.Subscribe("x = :n and s = :s and d < :at and y = :yes and z = :many", "two", values),
        m.Subscribe("x < 1", "three"),
        m.Subscribe("d < timestamp '2026-01-02T03:04:05Z'"),
        m.Update("one", 4, {"n": None}),
        m.Update("two", 5, {"at": at}, "x = :n and d >= :at", confirm=True),
        m.Cancel("one"),
        m.Publish(Event.of({"d": at, "x": 1}, at)),
    ]
    for request in requests:
        trace(5, Client("ann"), "b0", request)
    assert [request_of(json.loads(line)) for line in lines] == requests


def test_contents_of_changes() -> None:
    altered = ((Key(3, "b1"), ((0, 5), (2, "a"))), (Key(4, None), ((1, 1.5),)))
    moving = EvolvingFilter(parse("x < t"), 7)
    interests = m.Interests(((Key(2, None), moving),), (Key(1, None),), altered)
    assert content(interests) == "+2 x < t since 7 us; -1; ~3@b1 {0: 5, 2: 'a'}; ~4 {1: 1.5}"
    assert content(m.InForce("s", 3)) == "InForce(name='s', version=3)"


def test_a_delivery_says_for_which_versions_it_is() -> None:
    publication = m.Publication(Event.of({"x": 1}), m.Stamp("b", 0, 1), "p")
    named = m.Deliver(
        publication, (m.MatchedVersion("s", 3), m.MatchedVersion("u", 4)), unnamed=False
    )
    assert content(named) == "b:0:1 {'x': 1} for s 3, u 4"
    assert content(m.Deliver(publication)) == "b:0:1 {'x': 1}"


def test_long_content_is_cut_and_still_told_apart() -> None:
    def line(last: str) -> str:
        lines: list[str] = []
        event = Event.of({"text": "x" * 500 + last})
        message = m.Deliver(m.Publication(event, m.Stamp("b", 0, 1), "p"))
        Trace(lines.append)(0, "b", Client("s"), message)
        return lines[0]

    assert len(line("a")) < CONTENT_CHARS_MAX + 150
    assert line("a") != line("b")


def test_contents() -> None:
    offers = m.Offers((), (Key(3, "b1"), Key(4, None)))
    assert content(offers) == "-3@b1; -4"
    assert content(m.Refused(m.Suspend(), "no")) == "Suspend: no"
    publication = m.Publication(Event.of({"x": 1}), m.Stamp("b", 0, 1), "p")
    notify = m.Notify(publication, "b", frozenset(["d", "c"]))
    assert content(notify) == "b:0:1 {'x': 1} on b for c, d"
    assert content(m.Echo("b", 1)) == "Echo(origin='b', number=1)"


def test_a_request_that_a_trace_cannot_hold() -> None:
    with pytest.raises(SimulationError, match="a trace cannot hold the request Disconnect"):
        Trace(str)(0, Client("s"), "b", m.Disconnect())


def test_all_requests_can_be_held() -> None:
    lines: list[str] = [LINES[0], '{"us": 0, "admit": "ann", "broker": "b0"}\n']
    trace = Trace(lines.append)
    for request in (
        m.Advertise("x = 1"),
        m.Unadvertise("x = 1"),
        m.Subscribe("x = 1"),
        m.Unsubscribe("x = 1"),
        m.Publish(Event.of({"x": 1})),
        m.Suspend(),
        m.Resume(),
        m.Resume("b1", 2),
        m.Depart(),
    ):
        trace(5, Client("ann"), "b0", request)
    replayed = replay(io.StringIO("".join(lines)))
    assert replayed.messages == 0
    assert replayed.difference is not None  # the messages were left out

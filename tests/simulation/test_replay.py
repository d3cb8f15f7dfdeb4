from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import pytest

from support.traced_run import traced
from tidegate.errors import SimulationError
from tidegate.language.events import Event
from tidegate.language.values import Value
from tidegate.routing import messages as m
from tidegate.routing.clients.client_state import ClientState
from tidegate.routing.messages import Client
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.replay import replay
from tidegate.simulation.trace import Trace
from tidegate.simulation.verifying.random_filters import (
    NUMBERS,
    STRINGS,
    random_event,
    random_evolve_mode,
    random_parameters,
    random_parametric_filter,
)
from tidegate.simulation.world import SilentClient, World

pytestmark = pytest.mark.slow

LINES = traced("subscription")


@pytest.mark.parametrize(
    "routing",
    ["flooding", "match-first", "subscription", "advertisement", "link-matching", "summaries"],
)
@pytest.mark.parametrize("topology", ["random-graph", "graphs-in-tree"])
def test_a_replay_gives_the_same_messages(routing: str, topology: str) -> None:
    lines = traced(routing, topology)
    replayed = replay(io.StringIO("".join(lines)))
    assert replayed.difference is None
    assert replayed.messages == sum('"kind"' in line for line in lines) > 500


def first(text: str) -> int:
    """The index of the first line with a text."""
    return next(index for index, line in enumerate(LINES) if text in line)


def test_another_message_is_found() -> None:
    index = first('"Notify"')
    changed = LINES[index].replace("'level': ", "'level': 1")
    replayed = replay(io.StringIO("".join([*LINES[:index], changed, *LINES[index + 1 :]])))
    assert replayed.difference is not None
    assert (replayed.difference.line, replayed.difference.traced) == (index + 1, changed)
    assert replayed.difference.now == LINES[index]


def test_a_message_that_is_missing_or_added_is_found() -> None:
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
        (["{}"], "line 1: this is no trace of version 2"),
        (['{"tidegate_trace": 2}'], "line 1: 'overlay' is missing"),
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
def test_a_wrong_trace_is_refused(lines: list[str], reason: str) -> None:
    with pytest.raises(SimulationError, match=reason):
        replay(io.StringIO("\n".join(line.rstrip("\n") for line in lines)))


def test_all_requests_can_be_replayed() -> None:
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


# -- subscriptions with a name ------------------------------------------------------------------


def traced_updates(routing: str, **more: Any) -> list[str]:
    """The trace of a run in which clients subscribe, update and cancel by name."""
    lines: list[str] = []
    trace = Trace(lines.append)
    world = World(generate("random-tree", 6, 2), routing, 7, observer=trace, **more)
    trace.begin(world, {})
    random = Random(5)
    clients = [Client(f"c{number}") for number in range(4)]
    for client in clients:
        broker = random.choice(world.topology.brokers)
        world.admit(client, SilentClient(), broker)
        trace.client_admitted(client, broker)
    states = {client: ClientState() for client in clients}
    for client in clients:
        everything = " and ".join(f"{name} is not null" for name in (*NUMBERS, *STRINGS))
        world.request(client, m.Advertise(everything))
    world.run()
    begun_us = world.now_us

    def act() -> None:
        client = random.choice(clients)
        state, choice = states[client], random.randrange(6)
        if "s" not in state:
            filter = random_parametric_filter(random)
            values = random_parameters(random, filter)
            request = state.subscribe(
                "s", filter, values, now_us=world.now_us, evolve=random_evolve_mode(random),
                confirm=random.random() < 0.5,
            )  # fmt: skip
            world.request(client, request)
        elif choice < 3:
            changed = random_parametric_filter(random) if choice == 0 else None
            of = changed or state["s"].subscription.filter
            new: dict[str, Value | None] = {**random_parameters(random, of)}
            new.update(dict.fromkeys(of.parameters[:1]))
            world.request(client, state.update("s", new, filter=changed, confirm=choice == 1))
        elif choice == 3:
            world.request(client, state.cancel("s"))
        else:
            world.request(client, m.Publish(random_event(random)))

    for number in range(300):
        world.at(begun_us + number * 20_000, act)
    world.run()
    return lines


@pytest.mark.parametrize(
    "routing",
    ["flooding", "match-first", "subscription", "advertisement", "link-matching", "summaries"],
)
def test_updates_and_evolving_filters_are_replayed(routing: str) -> None:
    lines = traced_updates(routing)
    replayed = replay(io.StringIO("".join(lines)))
    assert replayed.difference is None
    records = [json.loads(line) for line in lines]
    assert replayed.messages == sum("kind" in record for record in records) > 100
    done = {record.get("do") for record in records}
    assert {"subscribe", "update", "cancel", "publish"} <= done


@pytest.mark.parametrize("more", [{"merging": True}, {"substrate": "naive"}], ids=str)
def test_the_replay_has_brokers_with_the_same_settings(more: dict[str, Any]) -> None:
    lines = traced_updates("subscription", **more)
    assert replay(io.StringIO("".join(lines))).difference is None
    header = json.loads(lines[0])
    assert {name: header[name] for name in more} == more

"""Clients that follow a script."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from tidegate.errors import SimulationError
from tidegate.language.events import Event
from tidegate.language.spaces import Space
from tidegate.matching.json_lines import non_blank_lines
from tidegate.routing import messages as m
from tidegate.routing.messages import Client
from tidegate.simulation.faults import parse_crash
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.replay import replay
from tidegate.simulation.report import Report
from tidegate.simulation.scenario import Scenario, Simulation
from tidegate.simulation.script import Script, ScriptAction, read_script
from tidegate.simulation.trace import Trace
from tidegate.simulation.workloads import Demand

CHAIN = generate("chain", 4)
ANN = Client("ann")


def script_of(*records: dict[str, Any], spaces: Sequence[Space] = ()) -> Script:
    lines = [json.dumps(record).encode() for record in records]
    return read_script(non_blank_lines(lines), CHAIN, spaces)


def action(at: str, client: str, do: str, **more: object) -> dict[str, Any]:
    return {"at": at, "client": client, "do": do, **more}


SUBSCRIBED = action("0s", "ann", "subscribe", broker="b0", filter="x > 0")
PUBLISHED = [action(f"{n}s", "bob", "publish", broker="b3", event={"x": n}) for n in range(1, 6)]


def subscribed(**more: object) -> dict[str, Any]:
    return {**SUBSCRIBED, **more}


def run(*records: dict[str, Any], **more: Any) -> Report:
    script = script_of(*records, spaces=more.get("spaces", ()))
    demand = Demand(0, 0, 0.0, script.duration_s)
    return Simulation(Scenario(CHAIN, demand=demand, script=script, **more)).run()


def outputs(report: Report, client: str = "ann") -> list[tuple[str, str, object]]:
    return [
        (each.broker, each.what, each.content)
        for each in report.script_outputs
        if each.client == client
    ]


def test_the_actions_of_a_script() -> None:
    script = script_of(
        action("2s", "ann", "suspend"), SUBSCRIBED, action("2s", "ann", "resume", broker="b2")
    )
    assert script.actions == (
        ScriptAction(0, ANN, "b0", m.Subscribe("x > 0")),
        ScriptAction(2_000_000, ANN, "b0", m.Suspend()),
        ScriptAction(2_000_000, ANN, "b2", m.Resume("b0", 1)),
    )
    assert script.clients == {ANN: "b0"}
    assert script.duration_s == 2.0
    assert Script(()).duration_s == 0.0


def test_a_subscription_with_a_name_is_changed_as_one() -> None:
    report = run(
        subscribed(name="s", filter="x > :least and x < :most", params={"least": 1, "most": 3}),
        *PUBLISHED,
        action("2500ms", "ann", "update", name="s", params={"least": 3, "most": 9}),
        action("3500ms", "ann", "update", name="s", filter="x < 0 + 2 * t", params={}),
        action("4500ms", "ann", "cancel", name="s"),
        action("4600ms", "ann", "update", name="s", params={}),
    )
    assert outputs(report) == [
        ("b0", "in force", "s (version 1)"),
        ("b0", "event", {"x": 2}),
        ("b0", "in force", "s (version 2)"),
        ("b0", "in force", "s (version 3)"),
        ("b0", "event", {"x": 4}),
        ("b0", "refused", "'ann' has no subscription 's'"),
    ]
    assert report.script_outputs[0].line().endswith("s  ann at b0: in force s (version 1)")


def test_an_evolving_filter() -> None:
    report = run(subscribed(name="s", filter="x >= t - 1.5", evolve="periodic 1s"), *PUBLISHED)
    assert [content for _, what, content in outputs(report) if what == "event"] == [
        {"x": n} for n in range(1, 6)
    ]


def test_moves_are_counted() -> None:
    script = script_of(
        SUBSCRIBED,
        action("1s", "ann", "resume", broker="b2"),
        action("2s", "ann", "resume", broker="b0"),
        action("3s", "ann", "resume"),
    )
    requests = [each.request for each in script.actions[1:]]
    assert requests == [m.Resume("b0", 1), m.Resume("b2", 2), m.Resume()]


def test_a_delivery_is_recorded() -> None:
    report = run(SUBSCRIBED, PUBLISHED[0])
    (output,) = report.script_outputs
    assert (output.us, output.client, output.content) == (1_030_000, "ann", {"x": 1})
    assert (report.published, report.delivered, report.is_scripted) == (1, 1, True)
    assert report.delays is not None
    assert report.delays.max_ms == 30.0


def test_a_client_that_moves_misses_nothing() -> None:
    away = action("1500ms", "ann", "suspend")
    back = action("4500ms", "ann", "resume", broker="b2")
    assert outputs(run(SUBSCRIBED, away, back, *PUBLISHED)) == [
        ("b0", "event", {"x": 1}), *(("b2", "event", {"x": n}) for n in range(2, 6)),
    ]  # fmt: skip


NOT_COVERED = (
    "'ann' has no subscription that `y = 1` covers; only equal or narrower ones are cancelled"
)


def test_a_client_gets_nothing_that_its_own_values_no_longer_match() -> None:
    """The broker has kept 7 for the value of before."""
    report = run(
        {"at": "0s", "client": "ann", "broker": "b0", "do": "subscribe", "name": "cheap",
         "filter": "x < :l", "params": {"l": 10}},
        {"at": "1s", "client": "ann", "do": "suspend"},
        {"at": "2s", "client": "bob", "broker": "b1", "do": "publish", "event": {"x": 7}},
        {"at": "2s", "client": "bob", "broker": "b1", "do": "publish", "event": {"x": 3}},
        {"at": "3s", "client": "ann", "do": "update", "name": "cheap", "params": {"l": 5}},
        {"at": "4s", "client": "ann", "do": "resume"},
    )  # fmt: skip
    events = [content for _, what, content in outputs(report) if what == "event"]
    assert events == [{"x": 3}]


def test_refusals_and_sequences_are_recorded() -> None:
    report = run(
        action("0s", "ann", "subscribe", broker="b0", filter="x = 1 then x = 2"),
        action("0s", "ann", "unsubscribe", filter="y = 1"),
        *PUBLISHED[:2],
        action("9s", "ann", "depart"),
    )
    assert outputs(report) == [
        ("b0", "refused", NOT_COVERED),
        ("b0", "sequence", [{"x": 1}, {"x": 2}]),
    ]
    lines = list(report.lines())
    assert lines[0] == f"   0.000 s  ann at b0: refused {NOT_COVERED}"
    assert lines[1].endswith(' s  ann at b0: sequence [{"x": 1}, {"x": 2}]')
    assert "run           subscription routing, scripted clients, seed 0" in lines
    assert report.refused == 1


def test_advertisements_and_faults() -> None:
    report = run(
        SUBSCRIBED,
        action("0s", "bob", "advertise", broker="b3", filter="x > 0 and x < 3"),
        action("2500ms", "bob", "unadvertise", filter="x is not null"),
        *PUBLISHED[:3],
        routing="advertisement",
        faults=(parse_crash("b1@1500ms", CHAIN),),
    )
    assert outputs(report) == [("b0", "event", {"x": 1})]
    assert outputs(report, "bob") == [
        ("b3", "refused", "'bob' has not advertised such an event; advertise it first")
    ]
    report = run(SUBSCRIBED, *PUBLISHED[:2], faults=(parse_crash("b3@1500ms", CHAIN),))
    assert (report.delivered, report.unheard) == (1, 1)


def test_a_trace_of_a_script_can_be_replayed() -> None:
    lines: list[str] = []
    trace = Trace(lines.append)
    script = script_of(
        SUBSCRIBED, action("1500ms", "ann", "suspend"), action("3s", "ann", "resume", broker="b2"),
        action("9s", "ann", "depart"), *PUBLISHED,
    )  # fmt: skip
    simulation = Simulation(Scenario(CHAIN, script=script, demand=Demand(0, 0, 0, 9.0)), trace)
    trace.begin(simulation.world, {})
    simulation.run()
    replayed = replay(io.StringIO("".join(lines)))
    assert replayed.difference is None
    assert replayed.messages > 40


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (
            {"client": "ann", "broker": "b0"},
            "'do' is missing; it is one of subscribe, unsubscribe, ",
        ),
        (action("0s", "ann", "dance"), "do: 'dance' is none of"),
        (action("soon", "ann", "depart"), "at: 'soon' is not a duration"),
        (action("0s", "ann", "subscribe", broker="b0"), "'filter' is missing"),
        ({"do": "depart"}, "'client' is missing"),
        (action("0s", "ann", "publish", broker="b0", event={"x": [1]}), "x"),
        (action("0s", "ann", "publish", broker="b0", event=5), "an event"),
        (
            action("0s", "ann", "subscribe", broker="b0", filter=5),
            "'filter' must be a non-empty string, not 5",
        ),
        (action("0s", "", "depart", broker="b0"), "'client' must be a non-empty string, not ''"),
        (action("0s", "ann", "depart"), "the earliest line of 'ann' must name its broker"),
        (subscribed(params={}), "a subscription with 'params' or 'evolve' needs a 'name'"),
        (subscribed(evolve="lazy"), "a subscription with 'params' or 'evolve' needs a 'name'"),
        (subscribed(name=""), "'name' must be a non-empty string, not ''"),
        (subscribed(name="s", params=[1]), "'params' must be an object, not [1]"),
        (subscribed(name="s", evolve="often"), "'often'"),
        (action("0s", "ann", "update", broker="b0"), "'name' is missing"),
        (
            action("0s", "ann", "cancel", broker="b0", name="s", params={}),
            "'cancel' takes no 'params'",
        ),
        (action("0s", "ann", "depart", broker="b9"), "there is no broker 'b9' in 'chain'"),
        (action("0s", "ann", "depart", broker="b0", filter="x = 1"), "'depart' takes no 'filter'"),
    ],
)
def test_a_wrong_line_is_refused(record: dict[str, Any], reason: str) -> None:
    with pytest.raises(SimulationError, match=r"line 1: ") as caught:
        script_of(record)
    assert reason in str(caught.value)


def test_a_client_that_changes_its_broker_without_resuming_is_refused() -> None:
    with pytest.raises(SimulationError, match="line 2: 'ann' is at 'b0'; it moves to 'b1' when it"):
        script_of(SUBSCRIBED, action("1s", "ann", "depart", broker="b1"))


def test_a_line_that_is_no_json_is_refused() -> None:
    with pytest.raises(SimulationError, match="line 3: "):
        read_script(non_blank_lines([b"\n", b"\n", b"{\n"]), CHAIN)


def test_the_example(request: pytest.FixtureRequest) -> None:
    path = request.config.rootpath / "examples" / "overlay" / "script.jsonl"
    overlay = generate("chain")
    with path.open("rb") as file:
        script = read_script(non_blank_lines(file), overlay)
    demand = Demand(0, 0, 0.0, script.duration_s)
    report = Simulation(Scenario(overlay, demand=demand, script=script)).run()
    cheap = {"airline": "UA", "dest": "MXP", "price": 90}
    assert outputs(report, "ann")[1:] == [
        ("b5", "event", cheap),
        ("b5", "event", {"airline": "UA", "dest": "DEN", "price": 180}),
    ]
    assert [what for _, what, _ in outputs(report, "bob")] == ["event", "refused"]
    assert outputs(report, "sue") == [
        ("b2", "in force", "cheap (version 1)"),
        ("b2", "event", cheap),
        ("b2", "in force", "cheap (version 2)"),
        ("b2", "event", {"airline": "UA", "dest": "DEN", "price": 180}),
    ]
    ((_, _, sequence),) = outputs(report, "eve")
    assert isinstance(sequence, list)
    assert sequence[1] == cheap


# -- in spaces ------------------------------------------------------------------------------------


TRADES = Space("trades", {"x": int, "at": datetime})
WEATHER = Space("weather", {"x": int})
TWO = (TRADES, WEATHER)
DAY = datetime(2026, 1, 2, tzinfo=UTC)


def test_requests_of_a_script_name_their_space() -> None:
    events = [
        action(f"{n}s", "bob", "publish", broker="b3", event={"x": 1}, **space)
        for n, space in enumerate([{"space": "trades"}, {"space": "weather"}, {}], 1)
    ]
    report = run(
        subscribed(space="trades"),
        action("0s", "bob", "subscribe", broker="b3", filter="x > 0 then x > 0"),
        action("0s", "eve", "subscribe", broker="b1", filter="x > 0"),
        *events,
        action("4s", "ann", "unsubscribe", filter="true", space="trades"),
        {**events[0], "at": "5s"},
        spaces=TWO,
    )
    assert outputs(report) == [("b0", "event", {"x": 1})]
    assert outputs(report, "eve") == [("b1", "event", {"x": 1})]
    (first, second) = report.script_outputs
    assert (first.space, second.space) == ("trades", None)
    assert first.line() == '   1.030 s  ann at b0: {"x": 1} in trades'
    assert second.line() == '   3.020 s  eve at b1: {"x": 1}'


def test_what_does_not_fit_its_space_is_refused_by_the_broker() -> None:
    report = run(
        subscribed(space="trades", filter="true or y > 0"),
        subscribed(space="trade"),
        action("0s", "ann", "advertise", filter="y > 0", space="weather"),
        action("1s", "ann", "publish", event={"x": "a"}, space="trades"),
        spaces=TWO,
    )
    assert [str(each.content).split("\n")[0] for each in report.script_outputs] == [
        "space 'trades' has no attribute 'y'; it has x, at",
        "there is no space 'trade'; did you mean 'trades'?",
        "space 'weather' has no attribute 'y'; it has x",
        "attribute 'x' is an integer in space 'trades', not the string 'a'",
    ]
    (refused,) = run(subscribed(space="trades")).script_outputs
    assert refused.content == "there is no space 'trades'; this broker has none"


def test_strings_of_a_script_are_timestamps_where_the_space_has_one() -> None:
    named = subscribed(name="s", filter="at > :p", params={"p": "2026-01-02"}, space="trades")
    published = action("1s", "ann", "publish", event={"at": "2026-01-02"}, space="trades")
    script = script_of(
        named,
        published,
        action("2s", "ann", "update", name="s", params={"p": "2026-01-02"}),
        action("3s", "ann", "update", name="s", filter="at = 5 or x > :p", params={"p": "a"}),
        action("4s", "ann", "update", name="s", params={"p": [1]}),
        {**published, "at": "5s", "space": "weather"},
        {**named, "at": "6s", "filter": "at >"},
        {**named, "at": "7s", "space": "nowhere"},
        spaces=TWO,
    )
    requests = [each.request for each in script.actions]
    assert requests[1] == m.Publish(Event({"at": DAY}), "trades")
    assert requests[5] == m.Publish(Event({"at": "2026-01-02"}), "weather")
    values = [each.parameters for each in requests if isinstance(each, m.Subscribe | m.Update)]
    text = {"p": "2026-01-02"}
    assert values == [{"p": DAY}, {"p": DAY}, {"p": "a"}, {"p": [1]}, text, text]
    with pytest.raises(SimulationError, match="line 1: attribute 'at': 'soon' is not a timestamp"):
        script_of({**published, "broker": "b0", "event": {"at": "soon"}}, spaces=TWO)
    with pytest.raises(SimulationError, match="line 1: parameter :p: 'soon' is not a timestamp"):
        script_of({**named, "params": {"p": "soon"}}, spaces=TWO)
    with pytest.raises(SimulationError, match="'space' must be a non-empty string, not 5"):
        script_of(subscribed(space=5))
    with pytest.raises(SimulationError, match="'suspend' takes no 'space'"):
        script_of(action("0s", "ann", "suspend", broker="b0", space="trades"))


def test_a_run_with_spaces_is_replayed() -> None:
    lines: list[str] = []
    trace = Trace(lines.append)
    script = script_of(
        subscribed(space="trades", name="s", filter="at > :p", params={"p": "2026-01-02"}),
        action("1s", "bob", "publish", broker="b3", event={"at": "2026-01-03"}, space="trades"),
        action("2s", "bob", "publish", event={"at": 5}, space="trades"),
        spaces=TWO,
    )
    demand = Demand(0, 0, 0.0, script.duration_s)
    scenario = Scenario(CHAIN, demand=demand, script=script, spaces=TWO)
    simulation = Simulation(scenario, trace)
    trace.begin(simulation.world, {})
    report = simulation.run()
    assert [each.what for each in report.script_outputs] == ["in force", "event", "refused"]
    replayed = replay(io.StringIO("".join(lines)))
    assert replayed.difference is None
    assert replayed.messages == sum('"kind"' in line for line in lines)
    without = json.loads(lines[0])
    del without["spaces"]
    older = [json.dumps(without) + "\n", *lines[1:]]
    assert replay(io.StringIO("".join(older))).difference is not None

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from support.command_line import Folder
from tidegate.matching.summary.budget import SummaryBudget
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.overlays.json_file import to_json
from tidegate.simulation.verifying.random_run import RandomRun
from tidegate.simulation.workloads import WORKLOADS

SMALL = ("--topology", "chain", "--brokers", "3", "--subscribers", "20", "--duration", "1s")


def test_a_report(folder: Folder) -> None:
    ran = folder.run("simulate", *SMALL)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "overlay       chain, 3 brokers, 2 links"
    assert lines[1] == "run           subscription routing, zipf workload, seed 0"


def test_json_and_options(folder: Folder) -> None:
    ran = folder.run(
        "simulate", *SMALL, "--json", "--seed", "5", "--workload", "bursts", "--routing",
        "flooding", "--rate", "200", "--publishers", "3", "--processor-us", "100",
    )  # fmt: skip
    made = json.loads(ran.out)
    assert (made["workload"], made["routing"], made["seed"]) == ("bursts", "flooding", 5)
    assert made["wanted"] == made["delivered"]
    assert made["loads"][0]["busy_share"] > 0


def test_none_of_something_is_not_the_default(folder: Folder) -> None:
    made = json.loads(folder.run("simulate", *SMALL, "--json", "--publishers", "0").out)
    assert made["published"] == 0


def test_an_overlay_from_a_file(folder: Folder) -> None:
    folder.write("mine.json", [to_json(generate("hierarchy", 4))])
    ran = folder.run(
        "simulate", "--overlay", "mine.json", "--routing", "hierarchy", "--duration", "1s"
    )
    assert ran.code == 0
    assert "hierarchy routing" in ran.out


def test_summaries(folder: Folder) -> None:
    ran = folder.run(
        "simulate", *SMALL, "--json", "--routing", "summaries", "--summary-period", "20ms",
        "--summary-batch", "5", "--degree-max", "1", "--to-hubs", "--no-subsumption",
        "--trace", "t.jsonl",
        "--summary-rows", "3",
    )  # fmt: skip
    made = json.loads(ran.out)
    assert made["wanted"] == made["delivered"]
    assert made["summaries"]["updates"] >= 2
    header = json.loads(folder.read("t.jsonl").splitlines()[0])
    assert header["summaries"] == {
        "period_us": 20_000, "batch_max": 5, "degree_max": 1, "to_hubs": True, "subsumption": False,
        "window_us": 10_000_000, "budget": asdict(SummaryBudget(rows_max=3)),
    }  # fmt: skip
    assert folder.run("simulate", "--replay", "t.jsonl").code == 0


def test_faults_and_slow_subscribers(folder: Folder) -> None:
    ran = folder.run(
        "simulate", *SMALL, "--json", "--crash", "b1@100ms..300ms", "--cut", "b0-b1@500ms..700ms",
        "--slow", "20@100ms",
    )  # fmt: skip
    made = json.loads(ran.out)
    assert made["delivered"] < made["wanted"]
    assert made["unheard"] > 0
    assert made["backlog_max"] > 1


def test_links_that_are_bad_and_a_partition(folder: Folder) -> None:
    arguments = ("simulate", "--topology", "gryphon", "--subscribers", "20", "--duration", "1s")
    plain, rough = (
        json.loads(folder.run(*arguments, "--json", *more).out)
        for more in ((), ("--bandwidth", "9000", "--jitter", "30ms", "--duplicates", "0.3"))
    )
    assert rough["delivered"] == plain["delivered"]
    assert rough["delays"]["max_ms"] > plain["delays"]["max_ms"]
    ran = folder.run(*arguments, "--json", "--partition", "B,A.3@100ms..800ms")
    made = json.loads(ran.out)
    assert 0 < made["delivered"] < made["wanted"]
    assert made["kinds"]["Accept"] == 7  # A-B, B-C, B.3-C.1, A-A.3 and three below A.3


def test_the_semantics_of_advertisements(folder: Folder) -> None:
    made = json.loads(folder.run("simulate", *SMALL, "--json", "--semantics", "advertisement").out)
    assert made["kinds"]["Advertise"] == 10
    assert made["delivered"] == made["wanted"]


def test_spaces_of_a_script(folder: Folder) -> None:
    for name in ("trades", "weather"):
        types = {"price": "float", "at": "timestamp"}
        folder.write(f"{name}.json", [{"name": name, "attributes": types}])
    wanted = {"client": "ann", "broker": "b0", "do": "subscribe", "filter": "price > 1"}
    bob = {"client": "bob", "broker": "b1", "do": "publish"}
    folder.write("script.jsonl", [
        {**wanted, "space": "trades"},
        {**wanted, "filter": "prize > 1", "space": "trades"},
        {**bob, "at": "1s", "event": {"price": 2, "at": "2026-01-02"}, "space": "trades"},
        {**bob, "at": "2s", "event": {"price": 2}, "space": "weather"},
    ])  # fmt: skip
    given = ("simulate", "--topology", "chain", "--brokers", "2", "--script", "script.jsonl")
    spaces = ("--space", "trades.json", "--space", "weather.json")
    ran = folder.run(*given, *spaces, "--json", "--trace", "trace.jsonl")
    assert ran.code == 0
    outputs = [(each["what"], each["space"]) for each in json.loads(ran.out)["happenings"]]
    assert outputs == [("refused", None), ("event", "trades")]
    ran = folder.run("simulate", "--replay", "trace.jsonl")
    assert ran.code == 0
    said = folder.refused(*given, *spaces, "--space", "trades.json")
    assert said == "error: trades.json: the space of trades.json has the name 'trades' too\n"
    said = folder.refused(*given, "--space", "no.json")
    assert said == "error: no.json: cannot be read: No such file or directory\n"
    said = folder.refused("simulate", *SMALL, *spaces)
    assert "--space: goes with --script; a workload has attributes of its own" in said
    assert "--space" in folder.refused("simulate", "--verify", *spaces)


def test_a_script(folder: Folder) -> None:
    asked = {"client": "ann", "broker": "b0", "do": "subscribe", "filter": "x > 0"}
    published = {"at": "1s", "client": "bob", "broker": "b1", "do": "publish", "event": {"x": 1}}
    folder.write("script.jsonl", [asked, published])
    arguments = ("simulate", "--topology", "chain", "--script", "script.jsonl")
    ran = folder.run(*arguments)
    assert (ran.code, ran.out.splitlines()[0]) == (0, '   1.010 s  ann at b0: {"x": 1}')
    (happening,) = json.loads(folder.run(*arguments, "--json").out)["happenings"]
    assert (happening["us"], happening["content"]) == (1_010_000, {"x": 1})
    said = folder.refused(*arguments, "--rate", "5")
    assert "--rate: --script defines the actions of clients" in said
    folder.write("script.jsonl", [published, {"client": "ann", "do": "depart"}])
    said = folder.refused(*arguments)
    assert said.startswith("error: script.jsonl: line 2: the earliest line of 'ann' must name its")
    assert "cannot be read" in folder.refused(*arguments[:-1], "none.jsonl")


def test_a_trace_and_its_replay(folder: Folder) -> None:
    assert folder.run("simulate", *SMALL, "--trace", "t.jsonl").code == 0
    ran = folder.run("simulate", "--replay", "t.jsonl")
    assert ran.code == 0
    assert ran.out.endswith(" messages are the same, byte for byte\n")
    assert json.loads(folder.run("simulate", "--replay", "t.jsonl", "--json").out)["messages"] > 9


def test_a_replay_that_is_not_the_same(folder: Folder) -> None:
    folder.run("simulate", *SMALL, "--trace", "t.jsonl")
    lines = folder.read("t.jsonl").splitlines()
    folder.write("t.jsonl", lines[:-1])
    ran = folder.run("simulate", "--replay", "t.jsonl")
    assert ran.code == 1
    assert "the message differs:\n  traced  nothing more\n  now     {" in ran.out


def test_loads_for_pictures(folder: Folder) -> None:
    ran = folder.run("simulate", *SMALL, "--loads", "loads.json", "--picture", "loads.svg")
    assert (ran.code, ran.err) == (0, "drew loads.svg\n")
    ran = folder.run(
        "topology", "--topology", "chain", "--brokers", "3", "--loads", "loads.json", "--output",
        "x.svg",
    )  # fmt: skip
    assert ran.code == 0


@pytest.mark.slow
def test_verification(folder: Folder) -> None:
    ran = folder.run("simulate", "--verify", "--topology", "random-tree", "--seeds", "0-1")
    assert (ran.code, ran.err, ran.out) == (0, "", "12 runs, 0 with problems\n")
    ran = folder.run("simulate", "--verify", "--runs", "5", "--json")
    assert json.loads(ran.out) == {"runs": 5, "failed": 0}
    folder.write("mine.json", [to_json(generate("chain", 2))])
    ran = folder.run("simulate", "--verify", "--overlay", "mine.json", "--routing", "flooding")
    assert ran.out == "1 run, 0 with problems\n"


def test_a_failing_seed_is_printed_with_its_command(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        RandomRun, "problems", lambda run: ["bad"] * 7 if run.world.seed == 12 else []
    )
    arguments = ("simulate", "--verify", "--routing", "flooding", "--topology", "random-tree")
    ran = folder.run(*arguments, "--seeds", "10-13")
    assert ran.code == 1
    assert ran.out == (
        "bad\n" * 5 + "and 2 more\n"
        "  tidegate simulate --verify --topology random-tree --brokers 3 --routing flooding "
        "--seed 12\n"
        "4 runs, 1 with problems\n"
    )
    ran = folder.run(*arguments, "--seed", "12", "--json")
    failed, verdict = map(json.loads, ran.out.splitlines())
    assert (len(failed["problems"]), verdict) == (7, {"runs": 1, "failed": 1})


def test_help_names_all_workloads(folder: Folder) -> None:
    assert all(f"  {name} " in folder.run("simulate", "--help").out for name in WORKLOADS)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "give one of --topology and --overlay"),
        (("--topology", "chain", "--overlay", "x"), "give one of --topology and --overlay"),
        (("--overlay", "x", "--brokers", "3"), "--brokers is for --topology"),
        (("--overlay", "none.json"), "none.json: cannot be read: No such file"),
        (("--topology", "mesh"), "there is no topology 'mesh'"),
        (("--topology", "tree", "--routing", "hierarchy"), "needs a hierarchical overlay; 'tree'"),
        (("--topology", "tree", "--workload", "regional"), "has no regions"),
        (("--topology", "tree", "--rate", "-1"), "the rate must be a finite number >= 0, not -1.0"),
        (("--topology", "tree", "--duration", "soon"), "'soon' is not a duration"),
        (
            ("--topology", "tree", "--slow", "many"),
            "'many' is no number with a duration; write it like 3@20ms",
        ),
        (
            ("--topology", "tree", "--slow", "300@1ms"),
            "300 slow subscribers, but there are only 100",
        ),
        (("--topology", "tree", "--crash", "b1"), "'b1' has no time"),
        (("--topology", "tree", "--cut", "b1-b9@1s"), "there is no link 'b1-b9'"),
        (("--topology", "tree", "--partition", "b99@1s"), "there is no broker or region 'b99'"),
        (("--topology", "tree", "--bandwidth", "0"), "0.0 is not in the range x>0"),
        (("--topology", "tree", "--duplicates", "2"), "2.0 is not in the range 0<=x<=1"),
        (
            ("--topology", "tree", "--routing", "advertisement", "--semantics", "subscription"),
            "delivers only advertised events",
        ),
        (
            ("--topology", "tree", "--degree-max", "3"),
            "--degree-max: goes with --routing summaries",
        ),
        (
            ("--topology", "tree", "--routing", "summaries", "--summary-period", "3000000d"),
            "the period of summaries is 0 us or more, and a year at most",
        ),
        (("--verify", "--summary-period", "1s"), "--verify has a workload of its own"),
        (("--topology", "tree", "--picture", "x.gif"), "--picture takes a file of .svg, .png"),
        (("--topology", "tree", "--runs", "3"), "--runs: needs --verify"),
        (("--verify", "--rate", "3"), "--rate: --verify has a workload of its own"),
        (("--verify", "--seeds", "3"), "'3' is no range of seeds; write it like 0-99"),
        (
            ("--verify", "--seeds", "1-3", "--seed", "2"),
            "--seeds does not go with --seed and --runs",
        ),
        (("--verify", "--topology", "mesh"), "there is no topology 'mesh'"),
        (
            ("--verify", "--topology", "tree", "--routing", "hierarchy"),
            "needs a hierarchical overlay",
        ),
        (("--replay", "t", "--seed", "1"), "--seed: --replay takes all settings from the trace"),
        (("--replay", "none"), "none: cannot be read: No such file"),
    ],
)
def test_what_is_refused(folder: Folder, arguments: tuple[str, ...], reason: str) -> None:
    assert reason in folder.refused("simulate", *arguments)


def test_what_is_no_trace(folder: Folder) -> None:
    folder.write("t.jsonl", ["{}"])
    said = folder.refused("simulate", "--replay", "t.jsonl")
    assert said == "error: t.jsonl: line 1: this is no trace of version 2\n"
    folder.write("t.jsonl", [b"\xff"])
    assert "this is not UTF-8" in folder.refused("simulate", "--replay", "t.jsonl")


@pytest.mark.parametrize("option", ["--trace", "--loads"])
def test_an_output_file_that_cannot_be_written(folder: Folder, option: str) -> None:
    """With the exit code and the message of `tidegate match --output`."""
    said = folder.refused("simulate", *SMALL, option, "no/file")
    assert said == "error: no/file: cannot be written: No such file or directory\n"

from __future__ import annotations

import json
import sys
from unittest import mock

import pytest

from support.command_line import Folder
from tidegate.simulation.overlays.generators import TOPOLOGIES, generate
from tidegate.simulation.overlays.json_file import to_json


def test_a_summary(folder: Folder) -> None:
    ran = folder.run("topology", "--topology", "transit-stub", "--brokers", "50", "--seed", "3")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:2] == ["name          transit-stub", "brokers       50"]


def test_json_is_what_file_reads(folder: Folder) -> None:
    ran = folder.run("topology", "--topology", "random-graph", "--seed", "3", "--json")
    assert (ran.code, ran.out) == (0, to_json(generate("random-graph", seed=3)))
    folder.write("overlay.json", [ran.out])
    again = folder.run("topology", "--file", "overlay.json", "--json")
    assert (again.code, again.out) == (0, ran.out)


@pytest.mark.parametrize("name", ["overlay.svg", "overlay.png"])
def test_a_picture(folder: Folder, name: str) -> None:
    folder.write("loads.json", [{"links": {"b0-b1": 3}, "brokers": {"b1": 3}}])
    arguments = ("--topology", "chain", "--loads", "loads.json", "--output", name)
    ran = folder.run("topology", *arguments)
    assert (ran.code, ran.err) == (0, f"drew {name}\n")
    assert (folder.path / name).stat().st_size > 10_000


def test_help_names_all_topologies(folder: Folder) -> None:
    ran = folder.run("topology", "--help")
    assert all(f"  {name} " in ran.out for name in TOPOLOGIES)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "give one of --topology, --file and --broker"),
        (
            ("--topology", "chain", "--file", "x.json"),
            "give one of --topology, --file and --broker",
        ),
        (("--file", "x.json", "--seed", "1"), "--brokers and --seed are for --topology"),
        (("--topology", "chain", "--loads", "x.json"), "--loads needs --output"),
        (("--topology", "chain", "--output", "x.gif"), "--output takes a file of .svg, .png, not"),
        (("--topology", "chain", "--output", "no/x.svg"), "--output: there is no folder 'no'"),
        (("--topology", "mesh"), "error: there is no topology 'mesh'; there are centralized, "),
        (
            ("--topology", "isp24", "--brokers", "9"),
            "error: the topology 'isp24' always has 24 bro",
        ),
        (
            ("--topology", "chain", "--brokers", "0"),
            "error: the number of brokers must be 1 to 100000, not 0",
        ),
        (("--file", "none.json"), "error: none.json: cannot be read: No such file or directory"),
    ],
)
def test_what_is_refused(folder: Folder, arguments: tuple[str, ...], reason: str) -> None:
    assert reason in folder.refused("topology", *arguments)


def test_files_that_are_wrong(folder: Folder) -> None:
    folder.write("overlay.json", ['{"brokers": ["a", "b"], "links": []}'])
    said = folder.refused("topology", "--file", "overlay.json")
    assert said == "error: overlay.json: not connected: no path leads from 'a' to 'b'\n"
    folder.write("loads.json", [json.dumps({"brokers": {"z": 1}})])
    arguments = ("--topology", "chain", "--loads", "loads.json", "--output", "x.svg")
    said = folder.refused("topology", *arguments)
    assert said == "error: loads.json: there is no broker 'z' in 'chain'\n"


def test_a_picture_without_matplotlib(folder: Folder) -> None:
    with mock.patch.dict(sys.modules, {"tidegate.simulation.drawing.picture": None}):
        ran = folder.run("topology", "--topology", "chain", "--output", "x.svg")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: --output needs the extra `bench`: ")


def test_a_picture_that_cannot_be_written(folder: Folder) -> None:
    full = OSError(28, "No space left on device")
    with mock.patch("tidegate.simulation.drawing.picture.draw_overlay", side_effect=full):
        ran = folder.run("topology", "--topology", "chain", "--output", "x.svg")
    assert (ran.code, ran.err) == (1, "Error: x.svg: cannot be written: No space left on device\n")

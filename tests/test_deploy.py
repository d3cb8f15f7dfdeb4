"""The files in `deploy/` are sound: parsed by their own tools where these are installed."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from support.pages import ROOT
from tidegate.cli.network.broker import broker

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "tidegate-broker@.service"


def parsed_options(arguments: list[str]) -> dict[str, object]:
    """The options of `tidegate broker` in a command line; raises UsageError for a wrong one."""
    return broker.make_context("broker", arguments).params


def unit_lines(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text(), re.MULTILINE)


def test_unit_starts_a_broker_that_drains() -> None:
    [command] = unit_lines("ExecStart")
    words = command.replace("%i", "a").replace("$TIDEGATE_OPTIONS", "").split()
    assert words[:2] == ["/opt/tidegate/bin/tidegate", "broker"]
    options = parsed_options(words[2:])
    assert (options["name"], options["admin"]) == ("a", "127.0.0.1:7080")
    [timeout] = unit_lines("TimeoutStopSec")
    assert int(timeout) > 10  # ClientLimits.drain_s
    assert unit_lines("KillSignal") == ["SIGTERM"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "tidegate-broker@a.service"
    text = UNIT.read_text().replace("/opt/tidegate/bin/tidegate", sys.executable)
    unit.write_text(text)
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    about_us = [line for line in ran.stderr.splitlines() if "tidegate-broker" in line]
    assert about_us == []


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, without comments and with lines joined."""
    text = (DEPLOY / "Containerfile").read_text()
    bare = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", bare)
    return [
        (name, rest.strip())
        for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())
    ]


def test_container_runs_a_broker_as_nobody_else() -> None:
    found = instructions()
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "ENV", "STOPSIGNAL",
             "HEALTHCHECK", "ENTRYPOINT", "CMD"}  # fmt: skip
    assert {name for name, _ in found} <= known
    last = dict(found)
    entry = [*json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"])]
    assert entry[:2] == ["/opt/tidegate/bin/tidegate", "broker"]
    assert parsed_options(entry[2:])["data"] == Path("/data/store")
    assert (last["USER"], last["STOPSIGNAL"]) == ("tidegate", "SIGTERM")
    check = json.loads(last["HEALTHCHECK"].partition("CMD ")[2])
    ast.parse(check[2])
    for name, rest in found:
        if name == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            assert [each for each in sources if not (ROOT / each).exists()] == []


def test_alerts_ask_for_metrics_that_exist() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    documented = set(re.findall(r"^\| `(tidegate_\w+)", page, re.MULTILINE))
    used = set(re.findall(r"\btidegate_\w+", (DEPLOY / "alerts.yml").read_text()))
    assert used
    assert used <= documented


def test_a_wrong_option_would_be_found() -> None:
    with pytest.raises(click.UsageError):
        parsed_options(["--no-such-option"])

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from support.command_line import Folder
from tidegate.cli.command_group import COMMANDS, CommandGroup

TIDEGATE = (sys.executable, "-c", "from tidegate.cli import main; main()")


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*TIDEGATE, *arguments], text=True, stderr=subprocess.PIPE, timeout=60, **options
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_says_what_the_command_says_of_itself(name: str) -> None:
    command = CommandGroup().get_command(click.Context(CommandGroup()), name)
    assert command is not None
    assert command.name == name
    own = command.get_short_help_str(limit=200)
    listed = COMMANDS[name].help
    assert own.startswith(listed.rstrip(".")), own
    assert len(listed) <= 65


def test_the_help_imports_no_command() -> None:
    code = """
import sys
from tidegate.cli import main
sys.argv = ["tidegate", "--help"]
try:
    main()
except SystemExit as ended:
    assert ended.code == 0
slow = {"numba", "pyarrow", "pyspark", "matplotlib"} & sys.modules.keys()
assert not slow, slow
"""
    ran = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    for name in COMMANDS:
        assert f"  {name} " in ran.stdout


@pytest.mark.parametrize(
    ("given", "meant"),
    [("mathc", " (did you mean 'match'?)"), ("bachtest", " (did you mean 'backtest'?)"), ("x", "")],
)
def test_a_mistyped_command(folder: Folder, given: str, meant: str) -> None:
    ran = folder.run(given, "--events", "e")
    assert ran.code == 2
    assert ran.err.endswith(f"Error: there is no command {given!r}{meant}\n")


def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.jsonl"
    wanted.write_text('{"id": "a", "filter": "x = 1"}\n')
    process = subprocess.Popen(
        [*TIDEGATE, "match", "--subscriptions", str(wanted), "--events", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    # More than a pipe holds: when it is written, the command is reading its events.
    process.stdin.write(b'{"x": 2}\n' * 100_000)
    process.stdin.flush()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")


def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        ran = run("check", "x = 1", stdout=full)
    assert ran.returncode == 1
    assert ran.stderr == "error: the output cannot be written: No space left on device\n"


def test_a_closed_pipe_is_quiet(folder: Folder) -> None:
    folder.write("wanted.jsonl", [{"id": f"s{n}", "filter": "x = 1"} for n in range(200)])
    folder.write("events.jsonl", [{"x": 1}] * 500)
    files = f"--subscriptions {folder.path}/wanted.jsonl --events {folder.path}/events.jsonl"
    command = f"{TIDEGATE[0]} -c '{TIDEGATE[2]}' match {files}; echo $? >&2"
    ran = subprocess.run(
        ["sh", "-c", f"({command}) | head -1"], text=True, capture_output=True, timeout=60
    )
    assert (ran.stdout.count("\n"), ran.stderr) == (1, "1\n")

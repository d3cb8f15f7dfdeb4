"""Hunt for failures: run the property tests and random overlays with fresh seeds for some minutes.

Called by `make hunt MINUTES=10`, with the arguments of pytest behind its own. Each round has a new
seed and several parts: overlays of each topology, then each folder of tests, or at once what the
arguments of pytest select. No part begins after the given time, but one is always run.

Exit codes: 0 if nothing was found; 1 for a failure, printed with the command that repeats it; 2 if
a program could not run at all, such as pytest without any test; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from tidegate.simulation.verifying.verification import VERIFIED_TOPOLOGIES

OVERLAY_RUNS = 30
"""Random runs of a topology in each round; each is one seed and routing."""
BIN = Path(sys.executable).parent
TESTS = Path(__file__).parents[1] / "tests"

GRACE_S = 10.0
"""How long a program may take to end after Ctrl-C."""

FOUND, BROKEN, INTERRUPTED = 1, 2, 130
"""Exit codes, besides 0."""

PYTEST_TROUBLES = {
    2: "pytest was interrupted, perhaps by a test file that cannot be imported",
    3: "pytest had an internal error",
    4: "pytest does not understand its arguments",
    5: "pytest collected no property test",
}
"""Exit codes of pytest that say nothing about a property."""

Part = Callable[[int], int]
"""A part of a round: takes a seed, returns an exit code."""


def failed_tests(output: str) -> list[str]:
    """The ids of the tests that failed, as pytest lists them at the end of its output."""
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)


def repeating_command(test: str, seed: int) -> str:
    """The command line that runs one test with a seed; groups of xdist are not part of its name."""
    name = re.sub(r"@\w+$", "", test)
    return f".venv/bin/pytest {shlex.quote(name)} --hypothesis-seed={seed}"


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a program; after Ctrl-C, which it receives too, let it end its own processes."""
    # a profile of the environment would decide on chance and number of examples in place of ours
    environment = {name: os.environ[name] for name in os.environ if name != "HYPOTHESIS_PROFILE"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            output, errors = process.communicate()
        except KeyboardInterrupt:
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=GRACE_S)
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def hunt_properties(pytest_args: list[str], seed: int) -> int:
    """Run the property tests that pytest selects; returns an exit code."""
    command = [str(BIN / "pytest"), *pytest_args, "-q", "-m", "hypothesis and not soak"]
    result = run([*command, f"--hypothesis-seed={seed}"])
    if result.returncode == 0:
        return 0
    print(result.stdout, result.stderr, sep="\n")
    if result.returncode != 1:
        trouble = PYTEST_TROUBLES.get(result.returncode, "pytest ended")
        print(f"hunt: {trouble} (exit code {result.returncode}); nothing can be said")
        return BROKEN
    print("repeat with")
    for test in failed_tests(result.stdout) or ["tests"]:
        print("  " + repeating_command(test, seed))
    return FOUND


def hunt_overlays(topology: str, seed: int) -> int:
    """Compare random runs of overlays with the oracle; returns an exit code.

    `simulate --verify` prints by itself the command that repeats a failure.
    """
    options = ["--topology", topology, "--runs", str(OVERLAY_RUNS), "--seed", str(seed)]
    result = run([str(BIN / "tidegate"), "simulate", "--verify", "--jobs", "0", *options])
    if result.returncode == 0:
        return 0
    print(result.stdout, result.stderr, sep="\n")
    if result.returncode == 1:
        return FOUND
    print(f"hunt: tidegate simulate ended with exit code {result.returncode}; nothing can be said")
    return BROKEN


def parts_of_a_round(pytest_args: list[str]) -> dict[str, Part]:
    """The parts by name: the overlays first, because they take less time."""
    parts: dict[str, Part] = {
        f"overlays, {topology}": partial(hunt_overlays, topology)
        for topology in VERIFIED_TOPOLOGIES
    }
    if "-k" in pytest_args or any(Path(each.split("::")[0]).exists() for each in pytest_args):
        return {**parts, "selected property tests": partial(hunt_properties, pytest_args)}
    for folder in sorted(path for path in TESTS.iterdir() if path.is_dir()):
        if any("@given" in file.read_text("utf-8") for file in folder.rglob("test_*.py")):
            parts[f"tests/{folder.name}"] = partial(hunt_properties, [*pytest_args, str(folder)])
    return parts


def hunt(parts: dict[str, Part], end: float) -> int:
    """Run rounds until time is up; returns an exit code."""
    rounds, done = 0, 0
    try:
        while not done or time.monotonic() < end:
            seed = random.SystemRandom().randrange(10**9)
            rounds += 1
            print(f"hunt: round {rounds}, seed {seed}", flush=True)
            for name, part in parts.items():
                begin = time.monotonic()
                if done and begin >= end:
                    break
                exit_code = part(seed)
                if exit_code:
                    return exit_code
                done += 1
                print(f"  {name}: passed in {time.monotonic() - begin:.0f} s", flush=True)
    except KeyboardInterrupt:
        print(f"\nhunt: interrupted in round {rounds}, after {_parts(done)}; nothing found")
        return INTERRUPTED
    print(f"hunt: time is up in round {rounds}, after {_parts(done)}; nothing found")
    return 0


def _parts(count: int) -> str:
    return "1 part" if count == 1 else f"{count} parts"


def main(arguments: list[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    parser = argparse.ArgumentParser(description="Run property tests and overlays with new seeds.")
    parser.add_argument("--minutes", type=float, default=10.0, help="default: 10")
    options, pytest_args = parser.parse_known_args(arguments)
    return hunt(parts_of_a_round(pytest_args), time.monotonic() + 60 * options.minutes)


if __name__ == "__main__":
    sys.exit(main())

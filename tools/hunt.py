"""Hunt for failures: run the property tests and random overlays with fresh seeds for some minutes.

Called by `make hunt MINUTES=10`, with the arguments of pytest behind its own. Each round has a new
seed; no round begins after the given time. A failure is printed with the command that repeats it,
and ends the hunt with exit code 1.
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
from pathlib import Path

OVERLAY_RUNS = 200
"""Random runs in each round; each is one seed, topology and routing."""
BIN = Path(sys.executable).parent


def failed_tests(output: str) -> list[str]:
    """The ids of the tests that failed, as pytest lists them at the end of its output."""
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)


def repeating_command(test: str, seed: int) -> str:
    """The command line that runs one test with a seed; groups of xdist are not part of its name."""
    name = re.sub(r"@\w+$", "", test)
    return f".venv/bin/pytest {shlex.quote(name)} --hypothesis-seed={seed}"


def hunt_properties(seed: int, pytest_args: list[str]) -> bool:
    """Run all property tests with a seed; returns whether none failed."""
    command = [str(BIN / "pytest"), *pytest_args, "-q", "-m", "hypothesis and not soak"]
    # a profile of the environment would decide on chance and number of examples in its place
    environment = {name: os.environ[name] for name in os.environ if name != "HYPOTHESIS_PROFILE"}
    result = subprocess.run(
        [*command, f"--hypothesis-seed={seed}"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if result.returncode == 0:
        return True
    print(result.stdout, result.stderr, "repeat with", sep="\n")
    for test in failed_tests(result.stdout) or ["tests"]:
        print("  " + repeating_command(test, seed))
    return False


def hunt_overlays(seed: int) -> bool:
    """Compare random runs of overlays with the oracle; returns whether all agreed.

    `simulate --verify` prints by itself the command that repeats a failure.
    """
    options = ["--jobs", "0", "--runs", str(OVERLAY_RUNS), "--seed", str(seed)]
    command = [str(BIN / "tidegate"), "simulate", "--verify", *options]
    return subprocess.run(command, check=False).returncode == 0


def main() -> int:
    """Run rounds until time is up; returns the exit code."""
    parser = argparse.ArgumentParser(description="Run property tests and overlays with new seeds.")
    parser.add_argument("--minutes", type=float, default=10.0, help="default: 10")
    options, pytest_args = parser.parse_known_args()
    end = time.monotonic() + 60 * options.minutes
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        seed = random.SystemRandom().randrange(10**9)
        rounds += 1
        print(f"hunt: round {rounds}, seed {seed}", flush=True)
        if not (hunt_properties(seed, pytest_args) and hunt_overlays(seed)):
            return 1
    print(f"hunt: nothing found in {rounds} round{'s' * (rounds > 1)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

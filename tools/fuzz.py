"""Fuzz the wire protocol: mutated sessions for a decoder and for brokers, for some minutes.

Called by `make fuzz MINUTES=10`. Each round has a new seed and three parts: the decoder, guided by
the lines that it reaches; a broker without a store; a broker with one, of some routing.

Exit codes: 0 if nothing was found; 1 for a crash, whose stream is printed with the command that
repeats the round, to be kept in `tests/network/survival/crashes`; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.fuzzing import Crash, for_seconds, fuzz_broker, fuzz_decoder
from support.wire_client import running
from support.wire_sessions import sessions_to_broker, sessions_to_client
from tidegate.network.server.settings import BrokerSettings

PART_S = 20.0
FOUND, INTERRUPTED = 1, 130

BROKERS = (
    ("subscription", "acyclic"),
    ("subscription", "general"),
    ("subscription", "hierarchical"),
    ("advertisement", "acyclic"),
    ("link-matching", "general"),
    ("summaries", "acyclic"),
)
"""Routings and architectures."""


def decoder_part(seed: int, seconds: float) -> Crash | None:
    """Fuzz the decoder."""
    corpora = (sessions_to_broker(), sessions_to_client())
    return next(fuzz_decoder(random.Random(seed), corpora, for_seconds(seconds)), None)


async def broker_part(seed: int, seconds: float, *, has_store: bool) -> Crash | None:
    """Fuzz a broker."""
    chance = random.Random(seed)
    routing, architecture = chance.choice(BROKERS)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) if has_store else None
        settings = BrokerSettings(
            "a", port=0, data=data, routing=routing, architecture=architecture
        )
        async with running(settings) as server:
            return await fuzz_broker(chance, server, sessions_to_broker(), for_seconds(seconds))


def round_of(seed: int, seconds: float) -> Crash | None:
    """Run the three parts; returns the first crash."""
    return (
        decoder_part(seed, seconds)
        or asyncio.run(broker_part(seed, seconds, has_store=False))
        or asyncio.run(broker_part(seed, seconds, has_store=True))
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    parser = argparse.ArgumentParser(description="Fuzz the wire protocol.")
    parser.add_argument("--minutes", type=float, default=10.0, help="default: 10")
    parser.add_argument("--seed", type=int, help="of one round, to repeat it")
    options = parser.parse_args(arguments)
    logging.getLogger("tidegate").setLevel(logging.CRITICAL)
    end = time.monotonic() + 60 * options.minutes
    seconds = min(PART_S, 20 * options.minutes)
    rounds = 0
    try:
        while not rounds or (time.monotonic() < end and options.seed is None):
            rounds += 1
            seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
            print(f"fuzz: round {rounds}, seed {seed}", flush=True)
            crash = round_of(seed, seconds)
            if crash is not None:
                print(f"{crash.error}\n{crash.stream.hex()}\nrepeat with")
                print(f"  .venv/bin/python tools/fuzz.py --seed {seed} --minutes {options.minutes}")
                return FOUND
    except KeyboardInterrupt:
        print(f"\nfuzz: interrupted in round {rounds}; nothing found")
        return INTERRUPTED
    print(f"fuzz: time is up after round {rounds}; nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Garbage and mutated sessions: nothing but typed errors, and others are served meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.fuzzing import (
    TO_BROKER,
    LineCoverage,
    Mutator,
    Victim,
    decode,
    frames_of,
    fuzz_broker,
    fuzz_decoder,
    stream_of,
    times,
)
from support.wire_client import WireClient, running
from support.wire_sessions import sessions_to_broker, sessions_to_client
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire.flow import LinkAck
from tidegate.network.wire.handshake import Goodbye
from tidegate.network.wire.links import LinkMessage
from tidegate.routing import messages as m

CRASHES = Path(__file__).parent / "crashes"
"""Streams that have ended a broker, in hex."""


def test_the_corpus_is_sound() -> None:
    """What is mutated passes as it is: to the decoder, and back from its frames."""
    for way, sessions in enumerate((sessions_to_broker(), sessions_to_client())):
        for stream in sessions:
            decode(stream, way, Random(1))
            assert stream_of(frames_of(stream)) == stream


def test_decoders_fail_in_the_foreseen_way_only() -> None:
    corpora = (sessions_to_broker(), sessions_to_client())
    assert list(fuzz_decoder(Random(1), corpora, times(1_000))) == []


def test_mutants_differ_and_some_reach_new_lines() -> None:
    mutator, coverage = Mutator(Random(1), sessions_to_broker()), LineCoverage()
    mutants = [mutator.mutant() for _ in range(100)]
    assert len(set(mutants)) > 80
    for stream in sessions_to_broker():
        coverage.reaches_new(partial(decode, stream, TO_BROKER, Random(1)))
    assert any(
        coverage.reaches_new(partial(decode, stream, TO_BROKER, Random(1))) for stream in mutants
    )


@asynccontextmanager
async def victim(settings: BrokerSettings) -> AsyncIterator[tuple[BrokerServer, Victim]]:
    async with running(settings) as server:
        found = Victim(server)
        await found.start()
        try:
            yield server, found
        finally:
            await found.stop()


@pytest.mark.parametrize("has_store", [False, True])
def test_a_broker_serves_others_while_it_gets_mutated_sessions(
    tmp_path: Path, has_store: bool
) -> None:
    async def main() -> None:
        settings = BrokerSettings("a", port=0, data=tmp_path if has_store else None)
        async with running(settings) as server:
            crash = await fuzz_broker(Random(1), server, sessions_to_broker(), times(120))
            assert crash is None, f"{crash.error}: {crash.stream.hex()}"

    asyncio.run(main())


def test_sound_sessions_are_answered(tmp_path: Path) -> None:
    async def main() -> None:
        async with victim(BrokerSettings("a", port=0, data=tmp_path)) as (_, found):
            for stream in sessions_to_broker():
                assert await found.suffer(stream) is None

    asyncio.run(main())


@pytest.mark.parametrize("file", sorted(CRASHES.glob("*.hex")), ids=lambda file: file.stem)
def test_a_crash_that_was_found_does_not_come_back(tmp_path: Path, file: Path) -> None:
    stream = bytes.fromhex(file.read_text())
    decode(stream, TO_BROKER, Random(1))

    async def main() -> None:
        async with victim(BrokerSettings("a", port=0, data=tmp_path)) as (_, found):
            for _ in range(2):
                assert await found.suffer(stream) is None

    asyncio.run(main())


# -- neighbours that break the rules of a link -----------------------------------------------------


async def neighbour(server: BrokerServer, **hello: Any) -> WireClient:
    return await WireClient.connect(server.port, "b", role="broker", **hello)


@pytest.mark.parametrize("what", ["leaves one out", "acknowledges what was not sent"])
def test_a_neighbour_that_miscounts_loses_its_connection_only(what: str) -> None:
    async def main() -> None:
        async with victim(BrokerSettings("a", port=0)) as (server, found):
            peer = await neighbour(server)
            message: LinkMessage = m.Connect("main", 1_000, False, (), False)
            if what == "leaves one out":
                peer.wire.send_link(2, message)
                peer.flush()
            else:
                peer.send(LinkAck(7))
            goodbye = await peer.next(Goodbye)
            assert "came after" in goodbye.problem.reason or "of 0" in goodbye.problem.reason
            await peer.close()
            again = await neighbour(server, session=2)
            again.wire.send_link(1, message)
            again.flush()
            while "b" not in server.broker.domains.domain_of:
                await asyncio.sleep(0.01)
            assert await found.suffer(b"") is None
            await again.close()

    asyncio.run(main())


def test_a_neighbour_that_has_committed_what_was_never_sent_begins_anew() -> None:
    async def main() -> None:
        async with victim(BrokerSettings("a", port=0)) as (server, found):
            peer = await neighbour(server)
            epoch = server.links.by_peer["b"].session.epoch
            await peer.close()
            again = await neighbour(server, session=2, epoch=epoch, received=99)
            assert server.links.by_peer["b"].session.epoch > epoch
            await again.close()
            assert await found.suffer(b"") is None

    asyncio.run(main())

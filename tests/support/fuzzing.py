"""Mutated sessions of the wire protocol, for a decoder and for a broker that serves others.

A corpus of sound sessions is mutated at three levels: bytes, frames, and the values in a frame (a
field gets another value and the frame is built again, so that it passes the first checks). The
decoder is run with a trace of the lines that it reaches; a mutant that reaches new ones is mutated
further.
"""

from __future__ import annotations

import asyncio
import math
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType as PythonFrame
from typing import Any

import msgspec

from support.wire_client import WireClient
from tidegate.errors import TidegateError
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.deliveries import Deliver, DeliverSequence, Publish
from tidegate.network.wire.filter_shapes import subscribe_messages
from tidegate.network.wire.frames import FrameType
from tidegate.network.wire.handshake import Hello, Welcome
from tidegate.network.wire.links import Linked, Notifications
from tidegate.network.wire.publications import PublicationBlock
from tidegate.network.wire.requests import Subscribe, SubscribeRows, Update

Frame = tuple[int, bytes]
TO_BROKER, TO_CLIENT = 0, 1

INTERESTING: tuple[Any, ...] = (
    None, True, 0, 1, -1, 255, 2**31, 2**32, 2**62, 2**63 - 1, 2**64 - 1, -(2**63), 0.5, 1e308,
    math.inf, math.nan, "", "a", "b", "x" * 201, "\x00", "broker", "client", b"", b"\xff" * 40,
    [], {}, [[]], "x < 3", "x <", "((((((((x = 1))))))))", "x = 1 then y = 2 within 1 s",
    "x in (1, 2, 3) and y between :a and :a + t", "y like '%%%%_%%%a'", "x < :n / 0",
    "lazy", "periodic 1 s", "cached 0.5 s", [1, None], {"n": 1}, {"n": "x"},
)  # fmt: skip


def frames_of(stream: bytes) -> list[Frame]:
    """The frames of a stream; what is left at its end is left out."""
    found, at = [], 0
    while at + 5 <= len(stream):
        length = struct.unpack_from(">I", stream, at)[0]
        if not 1 <= length <= len(stream) - at - 4:
            break
        found.append((stream[at + 4], stream[at + 5 : at + 4 + length]))
        at += 4 + length
    return found


def split_off_first(stream: bytes) -> tuple[bytes, bytes]:
    """The first frame, after which a client must wait for the answer, and the rest."""
    frames = frames_of(stream)
    length = len(stream_of(frames[:1])) if frames else len(stream)
    return stream[:length], stream[length:]


def stream_of(frames: list[Frame]) -> bytes:
    return b"".join(struct.pack(">IB", len(body) + 1, type) + body for type, body in frames)


class Mutator:
    """Makes mutants of the entries of a corpus."""

    def __init__(self, chance: Random, corpus: list[bytes]) -> None:
        self._chance, self.corpus = chance, corpus

    def mutant(self) -> bytes:
        """A mutant of an entry, with one change or a few."""
        stream = self._chance.choice(self.corpus)
        for _ in range(self._chance.choice((1, 1, 1, 2, 3, 6))):
            frames = frames_of(stream)
            change = self._chance.choice(
                [self._values] * 6 + [self._bytes] * 2 + [self._frames] * 2 + [self._stream]
            )
            stream = change(frames) if frames else self._stream(frames)
        return stream

    def _place(self, frames: list[Frame]) -> int:
        """A frame to change; seldom the first one, without which nothing else is looked at."""
        first = 0 if self._chance.random() < 0.1 or len(frames) == 1 else 1
        return self._chance.randrange(first, len(frames))

    def _values(self, frames: list[Frame]) -> bytes:
        """Give one field of a frame another value."""
        at = self._place(frames)
        type, body = frames[at]
        try:
            if type == FrameType.LINK_MESSAGE and body[9:10] == b"\x02":
                size = struct.unpack_from("<I", body, 10)[0]
                head = self._packed(body[14 : 14 + size])
                changed = body[:10] + struct.pack("<I", len(head)) + head + body[14 + size :]
            else:
                changed = self._packed(body)
        except (msgspec.MsgspecError, struct.error, OverflowError, ValueError):
            return self._bytes(frames)
        frames[at] = (type, changed)
        return stream_of(frames)

    def _packed(self, packed: bytes) -> bytes:
        return msgspec.msgpack.encode(self._changed(msgspec.msgpack.decode(packed)))

    def _changed(self, value: Any) -> Any:
        chance = self._chance
        if isinstance(value, list) and value and chance.random() < 0.85:
            at = chance.randrange(len(value))
            kind = chance.random()
            if kind < 0.06:
                return value[:at] + value[at + 1 :]
            if kind < 0.12:
                return [*value[:at], value[at], *value[at:]]
            return [*value[:at], self._changed(value[at]), *value[at + 1 :]]
        if isinstance(value, dict) and value and chance.random() < 0.85:
            key = chance.choice(list(value))
            return {**value, key: self._changed(value[key])}
        if isinstance(value, int) and chance.random() < 0.4:
            return value + chance.choice((-1, 1, 2, 256))
        return chance.choice(INTERESTING)

    def _bytes(self, frames: list[Frame]) -> bytes:
        """Change, insert or remove bytes within a frame, whose length is right."""
        chance, at = self._chance, self._place(frames)
        type, body = frames[at]
        data = bytearray(body)
        for _ in range(chance.choice((1, 1, 2, 8))):
            place, kind = chance.randrange(len(data) + 1), chance.randrange(4)
            if kind == 0 and place < len(data):
                data[place] ^= 1 << chance.randrange(8)
            elif kind == 1 and place < len(data):
                data[place] = chance.choice((0, 1, 0x7F, 0x80, 0xC0, 0xDD, 0xFF))
            elif kind == 2:
                data[place:place] = chance.randbytes(chance.choice((1, 4, 8)))
            else:
                del data[place : place + chance.choice((1, 4, 8))]
        frames[at] = (type, bytes(data))
        return stream_of(frames)

    def _frames(self, frames: list[Frame]) -> bytes:
        """Remove, double, exchange or insert frames, or give one another type."""
        chance, at = self._chance, self._place(frames)
        kind = chance.randrange(5)
        if kind == 0:
            del frames[at]
        elif kind == 1:
            frames[at:at] = [frames[at]] * chance.choice((1, 2, 50))
        elif kind == 2:
            other = chance.randrange(len(frames))
            frames[at], frames[other] = frames[other], frames[at]
        elif kind == 3:
            frames[at:at] = frames_of(chance.choice(self.corpus))[chance.randrange(3) :]
        else:
            frames[at] = (int(chance.choice(list(FrameType))), frames[at][1])
        return stream_of(frames)

    def _stream(self, frames: list[Frame]) -> bytes:
        """Cut the stream off, put something between, or change a length."""
        stream, chance = bytearray(stream_of(frames)), self._chance
        at, kind = chance.randrange(len(stream) + 1), chance.randrange(3)
        if kind == 0:
            del stream[at:]
        elif kind == 1:
            stream[at:at] = chance.randbytes(chance.choice((1, 5, 64)))
        elif len(stream) >= 4:
            stream[:4] = struct.pack(">I", chance.choice((0, 1, 2**16 + 1, 2**31, 2**32 - 1)))
        return bytes(stream)


# -- the decoder ----------------------------------------------------------------------------------


def decode(stream: bytes, way: int, chance: Random) -> None:
    """Read a stream that comes in pieces, as a broker or as a client; raises nothing but bugs."""
    connection = Connection.accepting()
    if way == TO_CLIENT:
        connection = Connection.connecting(Hello("desk-7", 5))
        connection.take_output()
    for part in split_off_first(stream):
        size, at = chance.choice((1, 7, 1000, len(stream))), 0
        while at < len(part):
            for message in connection.receive(part[at : at + size]):
                if isinstance(message, Hello):
                    connection.welcome(Welcome("a", 9))
                _use(message, connection)
            at += size


def _use(message: object, connection: Connection) -> None:
    """Do with a message what its receiver does first."""
    try:
        match message:
            case Subscribe():
                message.to_message()
            case Update():
                message.to_message("name")
            case SubscribeRows():
                list(subscribe_messages(message, connection.received_filters))
            case Publish(events=block):
                [block.event(index) for index in range(len(block))]
            case Deliver(publications=block) | DeliverSequence(publications=block):
                _use_publications(block)
            case Linked(message=Notifications(publications=block)):
                _use_publications(block)
    except TidegateError:
        pass


def _use_publications(block: PublicationBlock) -> None:
    for index in range(len(block.events)):
        block.events.event(index)
        block.stamp(index)


class LineCoverage:
    """Which lines of the wire protocol a call reaches."""

    FOLDER = str(Path("tidegate", "network", "wire"))

    def __init__(self) -> None:
        self.lines: set[tuple[str, int]] = set()

    def reaches_new(self, call: Callable[[], None]) -> bool:
        """Whether a call reaches lines that no call before has reached."""
        before = len(self.lines)
        old = sys.gettrace()
        sys.settrace(self._enter)
        try:
            call()
        finally:
            sys.settrace(old)
        return len(self.lines) > before

    def _enter(self, frame: PythonFrame, _event: str, _argument: object) -> Any:
        return self._line if self.FOLDER in frame.f_code.co_filename else None

    def _line(self, frame: PythonFrame, _event: str, _argument: object) -> Any:
        self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


@dataclass(frozen=True)
class Crash:
    """What a stream has brought about."""

    stream: bytes
    way: int
    error: str


def fuzz_decoder(
    chance: Random, corpora: tuple[list[bytes], list[bytes]], goes_on: Callable[[], bool]
) -> Iterator[Crash]:
    """Let a decoder read mutants; yields those at which it fails in an unforeseen way."""
    coverage = LineCoverage()
    mutators = [Mutator(chance, list(each)) for each in corpora]
    while goes_on():
        way = chance.randrange(2)
        stream = mutators[way].mutant()
        seed = chance.random()
        try:
            if coverage.reaches_new(lambda s=stream, w=way, r=seed: decode(s, w, Random(r))):  # type: ignore[misc]
                mutators[way].corpus.append(stream)
        except Exception as error:  # noqa: BLE001 - it is what we look for
            yield Crash(stream, way, repr(error))


# -- a broker -------------------------------------------------------------------------------------


class Victim:
    """A broker that gets mutated sessions, and a client that it must serve meanwhile."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._failures: list[str] = []
        self._is_over = asyncio.ensure_future(server.wait())
        asyncio.get_running_loop().set_exception_handler(self._failed)

    def _failed(self, _loop: object, context: dict[str, Any]) -> None:
        self._failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    async def start(self) -> None:
        self._neighbour = await WireClient.connect(self._server.port, "neighbour")
        await self._neighbour.request(Subscribe, "ping > 0")

    async def stop(self) -> None:
        self._is_over.cancel()
        await self._neighbour.close()

    async def suffer(self, stream: bytes) -> str | None:
        """Send a stream; returns what went wrong, apart from the stream."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        first, rest = split_off_first(stream)
        writer.write(first)
        try:
            async with asyncio.timeout(30):
                if len(first) < len(stream) and await reader.read(1):
                    writer.write(rest)
                await self._ping()
                writer.transport.abort()
                await self._ping()
        except (TimeoutError, ConnectionError) as error:
            self._failures.append(f"the neighbour was not served: {error!r}")
        if self._is_over.done():
            self._failures.append(f"the broker has ended: {self._is_over.exception()!r}")
        failures, self._failures = self._failures, []
        return "; ".join(failures) or None

    async def _ping(self) -> None:
        self._neighbour.publish({"ping": 1})
        while not any(
            "ping" in shape.names
            for shape in (await self._neighbour.next(Deliver)).publications.events.shapes
        ):
            pass


async def fuzz_broker(
    chance: Random, server: BrokerServer, corpus: list[bytes], goes_on: Callable[[], bool]
) -> Crash | None:
    """Send a broker mutants until it fails, or long enough."""
    victim, mutator = Victim(server), Mutator(chance, corpus)
    await victim.start()
    try:
        while goes_on():
            stream = mutator.mutant()
            error = await victim.suffer(stream)
            if error is not None:
                return Crash(stream, TO_BROKER, error)
    finally:
        await victim.stop()
    return None


def for_seconds(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def times(count: int) -> Callable[[], bool]:
    left = iter(range(count))
    return lambda: next(left, None) is not None

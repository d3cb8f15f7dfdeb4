"""NATS and Mosquitto with the same load, the natural way: a subject per symbol, clients filter.

A connection subscribes to the subjects of the symbols that its subscriptions name, or to all if one
of them names none. Its filters it would evaluate itself; that work is left out here, so the figures
are better than those of a program that needs the answers. Events are JSON. Clients are raw sockets
that count bytes: what must come is known to the byte.

Each broker is sent some events and then the publisher waits until all have come, because both drop
what clients do not take in time.
"""

from __future__ import annotations

import json
import multiprocessing
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe

from tidegate.errors import NetworkError
from tidegate.experiments.network.broker_process import free_port
from tidegate.experiments.network.load import Load
from tidegate.experiments.network.scenarios import NetworkCase, Row
from tidegate.experiments.progress import Progress, silent

_READY_S = 20.0
_ALL = ""
"""In place of a symbol: all of them."""


@dataclass(frozen=True, slots=True)
class System:
    """A message broker of others: how it is started and spoken to."""

    name: str
    program: str
    arguments: Callable[[int], list[str]]
    hello: Callable[[str, Sequence[str]], bytes]
    """The bytes that connect and subscribe, of an identity and symbols."""
    ready: bytes
    """What ends the answer to ``hello``."""
    publication: Callable[[str, bytes], bytes]
    delivery_bytes: Callable[[str, bytes, int], int]
    """The size of a delivery; the number is that of the subscription on its connection."""
    events_ahead: int

    def measure(
        self, case: NetworkCase, connections: int, progress: Progress = silent
    ) -> Row | None:
        """Events a second; None if it is not installed."""
        program = shutil.which(self.program)
        if program is None:
            return None
        progress(f"{self.name}, {connections} connections")
        load, port = Load(case.subscriptions, connections, events=case.events), free_port()
        process = subprocess.Popen(
            [program, *self.arguments(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            return self._rounds(case, load, port)
        finally:
            process.terminate()
            process.wait()

    def _rounds(self, case: NetworkCase, load: Load, port: int) -> Row:
        row = Row(self.name, "subject per symbol, JSON, unfiltered", load.connections)
        wanted = [_symbols([each.text for each in one]) for one in load.by_connection]
        publisher = _connected(port)
        publisher.sendall(self.hello("publisher", []))
        _read_until(publisher, self.ready)
        here, there = multiprocessing.get_context("spawn").Pipe()
        receiver = multiprocessing.get_context("spawn").Process(
            target=_receive, daemon=True,
            args=(port, [self.hello(f"s{at}", each) for at, each in enumerate(wanted)], self.ready,
                  there),
        )  # fmt: skip
        receiver.start()
        there.close()
        try:
            if here.recv() != "ready":
                raise NetworkError(f"{self.name} does not answer")
            chunks = self._chunks(load, wanted)
            row.deliveries = sum(count for _, _, count in chunks)
            rates = []
            for _ in range(case.rounds):
                began = time.monotonic()
                for data, expected, _ in chunks:
                    here.send(expected)
                    publisher.sendall(data)
                    row.wrong += abs(expected - here.recv())
                rates.append(len(load.rows) / (time.monotonic() - began))
            row.set_rates(rates)
        finally:
            with suppress(OSError):
                here.send(None)
            receiver.join(10)
            publisher.close()
            here.close()
        return row

    def _chunks(self, load: Load, wanted: Sequence[Sequence[str]]) -> list[tuple[bytes, int, int]]:
        """Publications to send at once, the bytes that must come of them, and the deliveries."""
        places = [{symbol: place for place, symbol in enumerate(each, 1)} for each in wanted]
        found, made = [], []
        for event in load.rows:
            symbol, payload = str(event["symbol"]), json.dumps(event).encode()
            numbers = [n for each in places if (n := each.get(_ALL, each.get(symbol)))]
            size = sum(self.delivery_bytes(symbol, payload, number) for number in numbers)
            made.append((self.publication(symbol, payload), size, len(numbers)))
        for start in range(0, len(made), self.events_ahead):
            data, sizes, counts = zip(*made[start : start + self.events_ahead], strict=True)
            found.append((b"".join(data), sum(sizes), sum(counts)))
        return found


def _symbols(texts: Sequence[str]) -> list[str]:
    """The symbols that filters name; `_ALL` if one of them names none."""
    parts = [text.split("'")[1] if text.startswith("symbol = ") else _ALL for text in texts]
    return [_ALL] if _ALL in parts else sorted(set(parts))


def _receive(port: int, hellos: Sequence[bytes], ready: bytes, pipe: Pipe) -> None:
    """The process of the subscribers: answers each number of bytes with what has come."""
    sockets = []
    for hello in hellos:
        each = _connected(port)
        each.sendall(hello)
        _read_until(each, ready)
        sockets.append(each)
    pipe.send("ready")
    came = 0
    with select.epoll() as poll:
        by_fd = {each.fileno(): each for each in sockets}
        for fd in by_fd:
            poll.register(fd, select.EPOLLIN)
        while (expected := pipe.recv()) is not None:
            deadline = time.monotonic() + _READY_S
            while came < expected and time.monotonic() < deadline:
                for fd, _ in poll.poll(1):
                    came += len(by_fd[fd].recv(1 << 20))
            pipe.send(came)
            came = 0
    for each in sockets:
        each.close()


def _connected(port: int) -> socket.socket:
    deadline = time.monotonic() + _READY_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), _READY_S)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _read_until(connection: socket.socket, end: bytes) -> None:
    data = b""
    while not data.endswith(end):
        more = connection.recv(65_536)
        if not more:
            raise NetworkError("the broker has closed the connection")
        data += more


# -- NATS -------------------------------------------------------------------------------------


def _nats_hello(identity: str, symbols: Sequence[str]) -> bytes:
    lines = [f'CONNECT {{"verbose":false,"pedantic":false,"name":"{identity}"}}']
    lines += [f"SUB SYM.{each or '*'} {number}" for number, each in enumerate(symbols, 1)]
    return "\r\n".join([*lines, "PING", ""]).encode()


def _nats_publication(symbol: str, payload: bytes) -> bytes:
    return b"PUB SYM.%b %d\r\n%b\r\n" % (symbol.encode(), len(payload), payload)


def _nats_delivery_bytes(symbol: str, payload: bytes, number: int) -> int:
    return len(f"MSG SYM.{symbol} {number} {len(payload)}\r\n") + len(payload) + 2


NATS = System(
    "NATS", "nats-server", lambda port: ["-a", "127.0.0.1", "-p", str(port)], _nats_hello,
    b"PONG\r\n", _nats_publication, _nats_delivery_bytes, events_ahead=2_000,
)  # fmt: skip


# -- MQTT 3.1.1 -------------------------------------------------------------------------------


def _packet(kind: int, body: bytes) -> bytes:
    """A control packet: its type, the length in groups of seven bits, its body."""
    length, size = len(body), bytearray()
    while True:
        length, group = divmod(length, 128)
        size.append(group | (0x80 if length else 0))
        if not length:
            return bytes([kind]) + bytes(size) + body


def _text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def _mqtt_hello(identity: str, symbols: Sequence[str]) -> bytes:
    clean_session, keep_alive = b"\x02", b"\x00\x00"
    packets = [
        _packet(0x10, _text("MQTT") + b"\x04" + clean_session + keep_alive + _text(identity))
    ]
    if symbols:
        topics = b"".join(_text(f"SYM/{each or '#'}") + b"\x00" for each in symbols)
        packets.append(_packet(0x82, b"\x00\x01" + topics))
    return b"".join([*packets, b"\xc0\x00"])


def _mqtt_publication(symbol: str, payload: bytes) -> bytes:
    return _packet(0x30, _text(f"SYM/{symbol}") + payload)


def _mqtt_delivery_bytes(symbol: str, payload: bytes, _: int) -> int:
    return len(_mqtt_publication(symbol, payload))


MOSQUITTO = System(
    "Mosquitto", "mosquitto", lambda port: ["-p", str(port)], _mqtt_hello,
    b"\xd0\x00", _mqtt_publication, _mqtt_delivery_bytes, events_ahead=100,
)  # fmt: skip

SYSTEMS = (NATS, MOSQUITTO)

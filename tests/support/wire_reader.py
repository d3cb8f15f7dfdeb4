"""A second reader of the wire protocol, written after docs/protocol.md alone.

It knows nothing of the code that it checks, reads MessagePack by itself, and checks little.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

NO_TIME = -(2**63)


def frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The frames of a stream: type and body."""
    while data:
        (length,) = struct.unpack(">I", data[:4])
        yield data[4], data[5 : 4 + length]
        data = data[4 + length :]


class Source:
    """Bytes that are read from the beginning on."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, size: int) -> bytes:
        taken, self.data = self.data[:size], self.data[size:]
        assert len(taken) == size
        return taken

    def column(self, code: str, count: int) -> list[int]:
        size = struct.calcsize("<" + code)
        return list(struct.unpack(f"<{count}{code}", self.take(size * count)))

    def number(self, code: str) -> int:
        return self.column(code, 1)[0]

    def big(self, code: str) -> Any:
        return struct.unpack(">" + code, self.take(struct.calcsize(">" + code)))[0]

    def item(self) -> Any:
        """One item of MessagePack; an extension is (type, bytes)."""
        first = self.big("B")
        if first < 0x80:
            return first
        if first >= 0xE0:
            return first - 0x100
        if first < 0x90:
            return self.map(first - 0x80)
        if first < 0xA0:
            return [self.item() for _ in range(first - 0x90)]
        if first < 0xC0:
            return self.take(first - 0xA0).decode()
        match first:
            case 0xC0:
                return None
            case 0xC2 | 0xC3:
                return first == 0xC3
            case 0xC4 | 0xC5 | 0xC6:
                return self.take(self.big("BHI"[first - 0xC4]))
            case 0xC7 | 0xC8 | 0xC9:
                size = self.big("BHI"[first - 0xC7])
                return self.big("b"), self.take(size)
            case 0xCA | 0xCB:
                return self.big("fd"[first - 0xCA])
            case 0xCC | 0xCD | 0xCE | 0xCF:
                return self.big("BHIQ"[first - 0xCC])
            case 0xD0 | 0xD1 | 0xD2 | 0xD3:
                return self.big("bhiq"[first - 0xD0])
            case 0xD4 | 0xD5 | 0xD6 | 0xD7 | 0xD8:
                return self.big("b"), self.take(1 << (first - 0xD4))
            case 0xD9 | 0xDA | 0xDB:
                return self.take(self.big("BHI"[first - 0xD9])).decode()
            case 0xDC | 0xDD:
                return [self.item() for _ in range(self.big("HI"[first - 0xDC]))]
            case 0xDE | 0xDF:
                return self.map(self.big("HI"[first - 0xDE]))
        raise AssertionError(hex(first))

    def map(self, count: int) -> dict[Any, Any]:
        pairs = [(self.item(), self.item()) for _ in range(count)]
        return dict(pairs)


class Reader:
    """Reads one direction of a connection to plain messages: the type, and what is in it."""

    def __init__(self) -> None:
        self.shapes: list[tuple[str | None, list[str]]] = []
        self.payload = b""

    def read(self, data: bytes) -> list[tuple[int, Any]]:
        messages: list[tuple[int, Any]] = []
        for type, body in frames(data):
            source = Source(body)
            match type:
                case 0x06:
                    number, space, names = source.item()
                    self.shapes[:] = self.shapes[: number and len(self.shapes)]
                    assert number == len(self.shapes)
                    self.shapes.append((space, names))
                    continue
                case 0x1A:
                    first, flags = source.number("Q"), source.number("B")
                    messages.append((type, (first, bool(flags), events(source, self.shapes))))
                case 0x26 | 0x27:
                    messages.append((type, self.delivery(type, source)))
                case 0x41:
                    messages += [(type, each) for each in self.link(source)]
                case _:
                    messages.append((type, source.item()))
            assert source.data == b""
        return messages

    def delivery(self, type: int, source: Source) -> Any:
        more, stamps = head_and_stamps(source)
        if type == 0x27:
            return more, stamps, events(source, self.shapes)
        positions = source.column("Q", len(stamps))
        counts = source.column("I", len(stamps))
        matches = source.number("I")
        assert matches == sum(counts)
        handles, versions = source.column("I", matches), source.column("q", matches)
        return stamps, positions, counts, handles, versions, events(source, self.shapes)

    def link(self, source: Source) -> Iterator[Any]:
        number, flags = source.number("Q"), source.number("B")
        self.payload += source.take(len(source.data))
        if flags & 1:
            return
        payload, self.payload = Source(self.payload), b""
        if payload.number("B") == 1:
            routes, stamps = head_and_stamps(payload)
            route_of = payload.column("I", len(stamps))
            found = events(payload, self.shapes)
            yield number, [routes[index] for index in route_of], stamps, found
        else:
            message = Source(payload.take(payload.number("I"))).item()
            published: list[Any] = []
            if payload.data:
                own, stamps = head_and_stamps(payload)
                found = events(payload, [(space, names) for space, names in own])
                published = list(zip(stamps, found, strict=True))
            yield number, message, published


def head_and_stamps(source: Source) -> tuple[Any, list[tuple[str, int, int, str, int]]]:
    """The third part of the head, and broker, start, number, publisher and flags of each event."""
    origins, publishers, more = Source(source.take(source.number("I"))).item()
    count = source.number("I")
    columns = [source.column(code, count) for code in "IQIB"]
    return more, [
        (*origins[origin], number, publishers[publisher], flags)
        for origin, number, publisher, flags in zip(*columns, strict=True)
    ]


def events(source: Source, shapes: list[tuple[str | None, list[str]]]) -> list[Any]:
    """The events of a block: space, time, and values by name."""
    count = source.number("I")
    numbers, times, sizes = (source.column(code, count) for code in "IqI")
    found = []
    for number, time, size in zip(numbers, times, sizes, strict=True):
        body = Source(source.take(size))
        values = body.item()
        assert body.data == b""
        space, names = shapes[number]
        found.append((space, time, dict(zip(names, values, strict=True))))
    return found

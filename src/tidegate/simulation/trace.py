"""Traces: all messages of a run as JSON lines, with everything needed to run it again.

The first line describes the world: the overlay, the routing, the seed, the costs. Then follow, in
order of time, all actions from outside in full (clients that are admitted, their requests, faults),
and every message that arrives, with a summary of its content. The world is deterministic, so the
same actions produce the same messages; `replay.py` checks that.

    {"tidegate_trace": 1, "routing": "subscription", "seed": 0, ..., "overlay": {...}}
    {"us": 0, "admit": "s0", "broker": "b1"}
    {"us": 0, "client": "s0", "do": "subscribe", "filter": "topic = 't3'"}
    {"us": 10000, "from": "b1", "to": "b0", "kind": "FilterDelta", "content": "+1 topic = 't3'"}
    {"us": 500000, "fault": "crash", "names": ["b1"]}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from zlib import crc32

from tidegate.language.space_json import space_to_json
from tidegate.routing import messages as m
from tidegate.routing.messages import Address, Client, Message, Peer
from tidegate.simulation.faults import FaultStep
from tidegate.simulation.overlays.json_file import to_json
from tidegate.simulation.request_json import Record, request_to_json
from tidegate.simulation.world import World

VERSION = 2
"""Version of the file format; 2 has the messages between brokers as `FilterDelta` and the like."""
CONTENT_CHARS_MAX = 200


class Trace:
    """Writes the lines of a trace; the observer of a world."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def begin(self, world: World, more: Record) -> None:
        """Write the header, with ``more`` fields for readers, which a replay ignores."""
        header = {
            "tidegate_trace": VERSION,
            "routing": world.routing,
            "seed": world.seed,
            "processor_us": world.costs.base_us,
            "merging": world.merging,
            "substrate": world.substrate,
            "only_advertised": world.only_advertised,
            "weather": asdict(world.weather),
            "summaries": None if world.summaries is None else asdict(world.summaries),
            "spaces": [space_to_json(each) for each in world.spaces],
            **more,
            "overlay": json.loads(to_json(world.topology)),
        }
        self._put(header)

    def client_admitted(self, client: Client, broker: Peer) -> None:
        """Write that a client was added at a broker."""
        self._put({"us": 0, "admit": client.identity, "broker": broker})

    def client_moved(self, now_us: int, client: Client, broker: Peer) -> None:
        """Write that a client moved to another broker."""
        self._put({"us": now_us, "move": client.identity, "broker": broker})

    def fault_injected(self, now_us: int, step: FaultStep, names: Iterable[Peer]) -> None:
        """Write a step of a fault."""
        self._put({"us": now_us, "fault": step.value, "names": list(names)})

    def __call__(self, now_us: int, sender: Address, receiver: Address, message: Message) -> None:
        """Write a message; a request of a client in full, as it is needed for a replay."""
        if isinstance(sender, Client):
            self._put({"us": now_us, "client": sender.identity, **request_to_json(message)})
        else:
            self._write(message_line(now_us, sender, receiver, message))

    def _put(self, record: Record) -> None:
        self._write(json.dumps(record, ensure_ascii=False) + "\n")


def message_line(now_us: int, sender: Address, receiver: Address, message: Message) -> str:
    """The line of a message from a broker."""
    record = {
        "us": now_us,
        "from": _name(sender),
        "to": _name(receiver),
        "kind": type(message).__name__,
        "content": _shortened(content(message)),
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _name(address: Address) -> str:
    return address.identity if isinstance(address, Client) else address


def _shortened(text: str) -> str:
    """A text cut to CONTENT_CHARS_MAX, with a checksum by which a replay detects a difference."""
    if len(text) <= CONTENT_CHARS_MAX:
        return text
    return f"{text[:CONTENT_CHARS_MAX]}... {crc32(text.encode()):08x}"


def content(message: Message) -> str:
    """A one-line summary of a message.

    >>> from tidegate import Event
    >>> stamp = m.Stamp("b1", 0, 7)
    >>> content(m.Notify(m.Publication(Event.of({"level": 3}), stamp, "p1")))
    "b1:0:7 {'level': 3}"
    """
    match message:
        case m.Notify(publication, tree, destinations, examination):
            to = "" if not destinations else f" for {', '.join(sorted(destinations))}"
            if examination is not None:
                to += f" examined by {examination.examiner} after {examination.examined:b}"
            return _publication(publication) + (f" on {tree}" if tree else "") + to
        case m.SummaryUpdate(number, brokers, validity, tables):
            of = f" of {', '.join(brokers)}" if brokers else ""
            windows = "".join(
                f"; {each.broker} {each.begin_us}..{each.end_us}" for each in validity
            )
            return f"{number}{of}: {len(tables)} bytes {crc32(tables):08x}{windows}"
        case m.Deliver(publication, matches):
            versions = ", ".join(f"{name} {version}" for name, version in matches)
            return _publication(publication) + (f" for {versions}" if versions else "")
        case m.FilterDelta(added, removed, updated):
            cells = [f"~{_key(key)} {dict(each)}" for key, each in updated]
            return "; ".join([*_added_and_removed(added, removed), *cells])
        case m.Sync(digest, filters, advertisements):
            items = (*(filters or ()), *(advertisements or ()))
            return "; ".join([digest.hex()[:8], *_added_and_removed(items, ())])
        case m.AdvertisementDelta(added, removed):
            return "; ".join(_added_and_removed(added, removed))
        case m.Refused(request, reason):
            return f"{type(request).__name__}: {reason}"
    return str(message)


def _added_and_removed(
    added: Iterable[tuple[m.Key, object]], removed: Iterable[m.Key]
) -> list[str]:
    return [*(f"+{_key(key)} {item}" for key, item in added), *(f"-{_key(key)}" for key in removed)]


def _publication(publication: m.Publication) -> str:
    stamp = ":".join(map(str, publication.stamp))
    space = f" in {publication.space}" if publication.space else ""
    return f"{stamp} {dict(publication.event.attributes)}{space}"


def _key(key: m.Key) -> str:
    return str(key.number) if key.tree is None else f"{key.number}@{key.tree}"

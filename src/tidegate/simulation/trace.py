"""Traces: all messages of a run as JSON lines, with what it takes to run it again.

The first line says what the world is like: the overlay, the routing, the seed, the costs. Then
come, in order, what is done from outside, in full (clients that are admitted, what they request,
faults), and every message that arrives, with a text of its content. The world is deterministic, so
whoever does the same from outside gets the same messages; `replay` sees to that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import IO, Any
from zlib import crc32

from tidegate.errors import SimulationError, TidegateError
from tidegate.language.events import Event
from tidegate.language.evolve import parse_evolve
from tidegate.language.values import Value, from_us, to_us
from tidegate.routing import messages as m
from tidegate.routing.messages import Address, Client, Message, Peer
from tidegate.simulation.costs import Costs
from tidegate.simulation.faults import FaultStep
from tidegate.simulation.overlays.json_file import from_json, to_json
from tidegate.simulation.world import Weather, World

VERSION = 1
CONTENT_CHARS_MAX = 200

_Record = Mapping[str, Any]


class Trace:
    """Writes what happens in a world, as its `Watcher`."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def begin(self, world: World, more: _Record) -> None:
        """Write what the world is like, and whatever else a reader may want to know."""
        header = {
            "tidegate_trace": VERSION,
            "routing": world.routing,
            "seed": world.seed,
            "processor_us": world.costs.base_us,
            "merging": world.merging,
            "substrate": world.substrate,
            "only_advertised": world.only_advertised,
            "weather": asdict(world.weather),
            **more,
            "overlay": json.loads(to_json(world.topology)),
        }
        self._put(header)

    def admitted(self, client: Client, broker: Peer) -> None:
        """Take note of a new client."""
        self._put({"us": 0, "admit": client.identity, "broker": broker})

    def moved(self, now_us: int, client: Client, broker: Peer) -> None:
        """Take note of a client that goes to another broker."""
        self._put({"us": now_us, "move": client.identity, "broker": broker})

    def happened(self, now_us: int, step: FaultStep, names: Iterable[Peer]) -> None:
        """Take note of a fault."""
        self._put({"us": now_us, "fault": step.value, "names": list(names)})

    def __call__(self, now_us: int, sender: Address, receiver: Address, message: Message) -> None:
        """Take note of a message."""
        if isinstance(sender, Client):
            self._put({"us": now_us, "client": sender.identity, **_request_to_json(message)})
        else:
            self._write(_message_line(now_us, sender, receiver, message))

    def _put(self, record: _Record) -> None:
        self._write(json.dumps(record, ensure_ascii=False) + "\n")


def _message_line(now_us: int, sender: Address, receiver: Address, message: Message) -> str:
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
    """A text that is cut where it is long, with a checksum of all of it."""
    if len(text) <= CONTENT_CHARS_MAX:
        return text
    return f"{text[:CONTENT_CHARS_MAX]}... {crc32(text.encode()):08x}"


def content(message: Message) -> str:
    """What a message says, in a line.

    >>> stamp = m.Stamp("b1", 0, 7)
    >>> content(m.Notify(m.Publication(Event.of({"level": 3}), stamp, "p1")))
    "b1:0:7 {'level': 3}"
    """
    match message:
        case m.Notify(publication, tree, destinations):
            to = "" if destinations is None else f" for {', '.join(sorted(destinations))}"
            return _publication(publication) + (f" on {tree}" if tree else "") + to
        case m.Deliver(publication, matches):
            versions = ", ".join(f"{name} {version}" for name, version in matches)
            return _publication(publication) + (f" for {versions}" if versions else "")
        case m.Interests(new, gone, altered):
            cells = [f"~{_key(key)} {dict(each)}" for key, each in altered]
            return "; ".join([*_changes(new, gone), *cells])
        case m.Offers(new, gone):
            return "; ".join(_changes(new, gone))
        case m.Refused(request, reason):
            return f"{type(request).__name__}: {reason}"
    return str(message)


def _changes(new: Iterable[tuple[m.Key, object]], gone: Iterable[m.Key]) -> list[str]:
    return [*(f"+{_key(key)} {item}" for key, item in new), *(f"-{_key(key)}" for key in gone)]


def _publication(publication: m.Publication) -> str:
    stamp = ":".join(map(str, publication.stamp))
    return f"{stamp} {dict(publication.event.attributes)}"


def _key(key: m.Key) -> str:
    return str(key.number) if key.tree is None else f"{key.number}@{key.tree}"


# -- requests of clients ------------------------------------------------------------------------


def _request_to_json(message: Message) -> _Record:
    match message:
        case m.Publish(event):
            time_us = None if event.time is None else to_us(event.time)
            return {"do": "publish", "event": _to_json(event.attributes), "time_us": time_us}
        case m.Subscribe(wanted, name=None):
            return {"do": "subscribe", "filter": str(wanted)}
        case m.Subscribe():
            return {"do": "subscribe", "filter": str(message.wanted), **_named_to_json(message)}
        case m.Update(name, version, parameters, filter, confirm):
            text = None if filter is None else str(filter)
            return {"do": "update", "name": name, "version": version, "confirm": confirm,
                    "params": _to_json(parameters), "filter": text}  # fmt: skip
        case m.Cancel(name):
            return {"do": "cancel", "name": name}
        case m.Unsubscribe(wanted):
            return {"do": "unsubscribe", "filter": str(wanted)}
        case m.Advertise(offered):
            return {"do": "advertise", "filter": str(offered)}
        case m.Unadvertise(offered):
            return {"do": "unadvertise", "filter": str(offered)}
        case m.Suspend():
            return {"do": "suspend"}
        case m.Resume(home, moves):
            return {"do": "resume", "home": home, "moves": moves}
        case m.Depart():
            return {"do": "depart"}
    raise SimulationError(f"a trace cannot hold the request {type(message).__name__}")


def request_of(record: _Record) -> Message:
    """The request of a client that a line of a trace holds."""
    match record["do"]:
        case "publish":
            time_us = record["time_us"]
            return m.Publish(
                Event.of(_of_json(record["event"]), None if time_us is None else from_us(time_us))
            )
        case "subscribe" if "name" not in record:
            return m.Subscribe(record["filter"])
        case "subscribe":
            return _named_of(record)
        case "update":
            return m.Update(
                record["name"], record["version"], _of_json(record["params"]), record["filter"],
                record["confirm"],
            )  # fmt: skip
        case "cancel":
            return m.Cancel(record["name"])
        case "unsubscribe":
            return m.Unsubscribe(record["filter"])
        case "advertise":
            return m.Advertise(record["filter"])
        case "unadvertise":
            return m.Unadvertise(record["filter"])
        case "suspend":
            return m.Suspend()
        case "resume":
            return m.Resume(record.get("home"), record.get("moves", 0))
        case "depart":
            return m.Depart()
    raise SimulationError(f"there is no request {record['do']!r}")


def _to_json(values: Mapping[str, Value | None]) -> _Record:
    """Values by name; JSON has no timestamps, so those are objects with microseconds."""
    return {
        name: {"us": to_us(value)} if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def _of_json(values: Any) -> Any:
    """The values that such an object holds; what is none is left to those who want values."""
    if not isinstance(values, dict):
        return values
    return {
        name: from_us(each["us"]) if isinstance(each, dict) and set(each) == {"us"} else each
        for name, each in values.items()
    }


def _named_to_json(message: m.Subscribe) -> _Record:
    return {
        "name": message.name,
        "params": _to_json(message.parameters),
        "evolve": None if message.evolve is None else str(message.evolve),
        "version": message.version,
        "origin_us": message.origin_us,
        "confirm": message.confirm,
    }


def _named_of(record: _Record) -> Message:
    evolve = record["evolve"]
    return m.Subscribe(
        record["filter"],
        record["name"],
        _of_json(record["params"]),
        None if evolve is None else parse_evolve(evolve),
        record["version"],
        record["origin_us"],
        record["confirm"],
    )


# -- replay -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TraceDifference:
    """The first message that is another one."""

    line: int
    traced: str | None
    """None where the trace ends before the run."""
    now: str | None
    """None where the run ends before the trace."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How a run that was traced went this time."""

    messages: int
    difference: TraceDifference | None


class _Nobody:
    """A client that only listens."""

    def receive(self, message: Message, now_us: int) -> None:
        """Take what comes."""


class _DifferenceFound(Exception):  # noqa: N818 - no error, a way out of the run
    pass


class _TraceComparison:
    """Compares messages with the lines of a trace, as the `Watcher` of the new run."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = enumerate(lines, 1)
        self.same = 0
        self.difference: TraceDifference | None = None

    def __call__(self, now_us: int, sender: Address, receiver: Address, message: Message) -> None:
        if isinstance(sender, Client):
            return  # from the trace itself
        number, traced = self.next_message()
        now = _message_line(now_us, sender, receiver, message)
        if traced != now:
            self.difference = TraceDifference(number, traced, now)
            raise _DifferenceFound
        self.same += 1

    def next_message(self) -> tuple[int, str | None]:
        """The next line that is a message, and its number."""
        number = 0
        for number, line in self._lines:
            if "kind" in _decoded(line, number):
                return number, line
        return number, None


def replay(file: IO[str]) -> Replay:
    """Run what a trace says and compare the messages, byte for byte; the file must be seekable.

    Raises SimulationError for what is no trace.
    """
    world = _world_of(_decoded(file.readline(), 1))
    for number, line in enumerate(file, 2):
        record = _decoded(line, number)
        if "kind" not in record:
            with _said_of_line(number):
                _schedule(world, record)
    file.seek(0)
    comparison = _TraceComparison(file)
    world.watcher = comparison
    try:
        world.run()
    except _DifferenceFound:
        return Replay(comparison.same, comparison.difference)
    number, traced = comparison.next_message()
    left = None if traced is None else TraceDifference(number, traced, None)
    return Replay(comparison.same, left)


def _world_of(header: _Record) -> World:
    if header.get("tidegate_trace") != VERSION:
        raise SimulationError(f"line 1: this is no trace of version {VERSION}")
    with _said_of_line(1):
        return World(
            from_json(json.dumps(header["overlay"])),
            header["routing"],
            header["seed"],
            costs=Costs(base_us=header["processor_us"]),
            merging=header["merging"],
            substrate=header["substrate"],
            only_advertised=header["only_advertised"],
            weather=Weather(**header["weather"]),
        )


def _schedule(world: World, record: _Record) -> None:
    """Do what was done from outside, when it was done."""
    time_us = record["us"]
    if "admit" in record:
        world.topology.links_of(record["broker"])  # raises if there is no such broker
        world.admit(Client(record["admit"]), _Nobody(), record["broker"])
    elif "move" in record:
        world.topology.links_of(record["broker"])  # raises if there is no such broker
        client, broker = Client(record["move"]), record["broker"]
        world.at(time_us, lambda: world.home.update({client: broker}))
    elif "fault" in record:
        step, names = FaultStep(record["fault"]), tuple(record["names"])
        world.at(time_us, lambda: step.apply(world, names))
    else:
        client, request = Client(record["client"]), request_of(record)
        if client not in world.home:
            raise SimulationError(f"{client.identity!r} was not admitted")
        world.at(time_us, lambda: world.request(client, request))


def _decoded(line: str, number: int) -> _Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise SimulationError(f"line {number}: this is not a JSON object")
    return record


@contextmanager
def _said_of_line(number: int) -> Iterator[None]:
    """Say in which line of a trace something is wrong."""
    try:
        yield
    except KeyError as error:
        raise SimulationError(f"line {number}: {error} is missing") from None
    except (TypeError, ValueError) as error:
        raise SimulationError(f"line {number}: {error}") from None
    except TidegateError as error:
        raise SimulationError(f"line {number}: {error}") from None

"""Clients that do what a script says: JSON lines, each what a client asks of its broker at a time.

    {"at": "0s", "client": "ann", "broker": "b0", "do": "subscribe", "filter": "price < 10"}
    {"at": "1s", "client": "bob", "broker": "b2", "do": "publish", "event": {"price": 9}}
    {"at": "2s", "client": "ann", "do": "suspend"}
    {"at": "5s", "client": "ann", "broker": "b1", "do": "resume"}

What can be done: subscribe and unsubscribe with a filter or a pattern, advertise and unadvertise,
publish an event, suspend, resume, depart. The first line of a client says at which broker it is;
who resumes at another broker has moved there. Lines are in any order; those of one time happen in
the order of the file.

A subscription with a name may have parameters and move, can be changed as one and cancelled:

    {"client": "ann", "broker": "b0", "do": "subscribe", "name": "cheap",
     "filter": "price < :limit", "params": {"limit": 10}}
    {"at": "3s", "client": "ann", "do": "update", "name": "cheap", "params": {"limit": 30}}
    {"at": "4s", "client": "ann", "do": "cancel", "name": "cheap"}

When it or a change of it is in force everywhere, its client is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidegate.errors import BadValueError, SimulationError, TidegateError
from tidegate.language.durations import parse_duration
from tidegate.language.values import to_us
from tidegate.matching.json_lines import decode_line
from tidegate.routing import messages as m
from tidegate.routing.messages import Client, Message, Peer
from tidegate.simulation.clients import Tally
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.trace import Trace, request_of
from tidegate.simulation.world import World

FIELDS = {
    "subscribe": "filter", "unsubscribe": "filter", "advertise": "filter", "unadvertise": "filter",
    "update": "name", "cancel": "name",
    "publish": "event", "suspend": None, "resume": None, "depart": None,
}  # fmt: skip
"""What can be done, and what has to be said for it."""
_MORE_FIELDS = {"subscribe": {"name", "params", "evolve"}, "update": {"params", "filter"}}
"""What can be said besides."""


@dataclass(frozen=True, slots=True)
class ScriptAction:
    """What a client does at a time, and where it is then."""

    at_us: int
    client: Client
    broker: Peer
    request: Message


@dataclass(frozen=True, slots=True)
class Script:
    """What clients do, in order."""

    acts: tuple[ScriptAction, ...]

    @property
    def clients(self) -> dict[Client, Peer]:
        """All clients, and where each begins."""
        return {act.client: act.broker for act in reversed(self.acts)}

    @property
    def duration_s(self) -> float:
        """When the last thing is done."""
        return self.acts[-1].at_us / 1e6 if self.acts else 0.0


def read_script(lines: Iterable[tuple[int, bytes]], topology: Topology) -> Script:
    """Read the numbered lines of a script; raises SimulationError that names the line.

    >>> from tidegate.simulation.overlays.generators import generate
    >>> line = b'{"client": "ann", "broker": "b0", "do": "subscribe", "filter": "x < 1"}'
    >>> read_script([(1, line)], generate("chain", 2)).clients
    {Client(identity='ann'): 'b0'}
    """
    timed: list[tuple[int, int, Mapping[str, Any]]] = []
    for number, line in lines:
        try:
            made = decode_line(line)
            timed.append((_time_us(made), number, made))
        except TidegateError as error:
            raise SimulationError(f"line {number}: {error}") from None
    reading = _Reading(topology)
    acts: list[ScriptAction] = []
    for at_us, number, record in sorted(timed, key=lambda each: each[:2]):
        try:
            acts.append(reading.act(at_us, record))
        except TidegateError as error:
            raise SimulationError(f"line {number}: {error}") from None
    return Script(tuple(acts))


def _time_us(record: Mapping[str, Any]) -> int:
    try:
        return round(parse_duration(str(record.get("at", "0s"))).total_seconds() * 1e6)
    except BadValueError as error:
        raise SimulationError(f"at: {error}") from None


class _Reading:
    """What is known of clients after the lines so far, in the order of time."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._homes: dict[Client, Peer] = {}
        self._moves: dict[Client, int] = {}
        self._versions: dict[tuple[Client, str], int] = {}

    def act(self, at_us: int, record: Mapping[str, Any]) -> ScriptAction:
        """What a line says."""
        _check_fields(record)
        client, do = Client(record["client"]), record["do"]
        home = self._homes.get(client)
        broker = record.get("broker", home)
        if broker is None:
            raise SimulationError(
                f"the line of {client.identity!r} with the earliest time names its broker"
            )
        self._topology.links_of(broker)  # raises if there is no such broker
        self._homes[client] = broker
        if home in (None, broker):
            return ScriptAction(at_us, client, broker, self._request(client, record))
        if do != "resume":
            raise SimulationError(
                f"{client.identity!r} is at {home!r}; it moves to {broker!r} when it resumes there"
            )
        self._moves[client] = self._moves.get(client, 0) + 1
        return ScriptAction(at_us, client, broker, m.Resume(home, self._moves[client]))

    def _request(self, client: Client, record: Mapping[str, Any]) -> Message:
        filled = {"time_us": None, "origin_us": None, "confirm": True, **record}
        if "name" in record:
            key = client, record["name"]
            filled["version"] = self._versions[key] = self._versions.get(key, 0) + 1
            for name in ("params", "evolve", "filter"):
                filled.setdefault(name, {} if name == "params" else None)
        elif {"params", "evolve"} & set(record):
            raise SimulationError("a subscription with parameters, or that moves, has a 'name'")
        return request_of(filled)


def _check_fields(record: Mapping[str, Any]) -> None:
    do = record.get("do")
    if do not in FIELDS:
        what = "'do' is missing; it is one of" if do is None else f"do: {do!r} is none of"
        raise SimulationError(f"{what} {', '.join(FIELDS)}")
    needed = ["client", "do", *([FIELDS[do]] if FIELDS[do] else [])]
    for name in needed:
        if name not in record:
            raise SimulationError(f"{name!r} is missing")
    for name in ("client", "broker", "filter", "name", "evolve"):
        if name in record and not (isinstance(record[name], str) and record[name]):
            raise SimulationError(f"{name!r} must be a text, not {record[name]!r}")
    if not isinstance(record.get("params", {}), dict):
        raise SimulationError(f"'params' must be an object, not {record['params']!r}")
    unknown = set(record) - {*needed, "at", "broker"} - _MORE_FIELDS.get(do, set())
    if unknown:
        raise SimulationError(f"{min(unknown)!r} does not go with {do!r}")


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """What a client was told, and when."""

    us: int
    client: str
    broker: Peer
    what: str
    """`event`, `sequence`, `in force`, `refused` or `missed`."""
    content: Any

    def line(self) -> str:
        """For a reader.

        >>> Happening(1_250_000, "ann", "b0", "event", {"price": 9}).line()
        '   1.250 s  ann at b0: {"price": 9}'
        """
        plain = self.what in ("refused", "in force")
        said = self.content if plain else json.dumps(self.content, default=str)
        shown = said if self.what == "event" else f"{self.what} {said}"
        return f"{self.us / 1e6:8.3f} s  {self.client} at {self.broker}: {shown}"


class _ScriptClient:
    """A client of a script."""

    def __init__(self, client: Client, cast: ScriptClients) -> None:
        self._client = client
        self._cast = cast

    def receive(self, message: Message, now_us: int) -> None:
        """Take what comes from its broker."""
        match message:
            case m.Deliver(publication):
                self._cast.delivered(publication, now_us)
                self._tell("event", _shown(publication), now_us)
            case m.DeliverSequence(_, publications):
                self._tell("sequence", [_shown(each) for each in publications], now_us)
            case m.InForce(name, version):
                self._tell("in force", f"{name} (version {version})", now_us)
            case m.Refused(_, reason):
                self._cast.tally.refused += 1
                self._tell("refused", reason, now_us)
            case m.Missed(count):
                self._tell("missed", count, now_us)

    def _tell(self, what: str, content: object, now_us: int) -> None:
        broker = self._cast.world.home[self._client]
        told = ScriptOutput(now_us, self._client.identity, broker, what, content)
        self._cast.happenings.append(told)


def _shown(publication: m.Publication) -> dict[str, Any]:
    return dict(publication.event.attributes)


class ScriptClients:
    """All clients of a script, in a world."""

    def __init__(self, script: Script, world: World, tally: Tally, trace: Trace | None) -> None:
        self.world = world
        self.tally = tally
        self.happenings: list[ScriptOutput] = []
        """What they were told, in order."""
        self._script = script
        self._trace = trace

    def enter(self) -> None:
        """Have all of them at their brokers."""
        for client, broker in self._script.clients.items():
            self.world.admit(client, _ScriptClient(client, self), broker)
            if self._trace is not None:
                self._trace.admitted(client, broker)

    def begin(self, begin_us: int) -> None:
        """Have them do what the script says, from a time on."""
        for act in self._script.acts:
            self.world.at(begin_us + act.at_us, partial(self._do, act))

    def _do(self, act: ScriptAction) -> None:
        world = self.world
        if world.home[act.client] != act.broker:
            world.home[act.client] = act.broker
            if self._trace is not None:
                self._trace.moved(world.now_us, act.client, act.broker)
        self.tally.published += isinstance(act.request, m.Publish)
        self.tally.unheard += not world.sites[act.broker].is_up
        world.request(act.client, act.request)

    def delivered(self, publication: m.Publication, now_us: int) -> None:
        """Take note of how long an event took."""
        time = publication.event.time
        assert time is not None  # brokers give one to each event
        self.tally.delays_us.append(now_us - to_us(time))

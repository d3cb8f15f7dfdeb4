"""Scripts: JSON lines, each a request that a client sends to its broker at a given time.

    {"at": "0s", "client": "ann", "broker": "b0", "do": "subscribe", "filter": "price < 10"}
    {"at": "1s", "client": "bob", "broker": "b2", "do": "publish", "event": {"price": 9}}
    {"at": "2s", "client": "ann", "do": "suspend"}
    {"at": "5s", "client": "ann", "broker": "b1", "do": "resume"}

Requests are: subscribe and unsubscribe, with a filter or a pattern; advertise and unadvertise;
publish an event; suspend, resume, depart. The earliest line of a client names its broker. A client
that resumes at another broker moves there. Lines may be in any order; those of one time are
carried out in the order of the file.

A subscription with a name may have parameters and evolve, and can be updated and cancelled:

    {"client": "ann", "broker": "b0", "do": "subscribe", "name": "cheap",
     "filter": "price < :limit", "params": {"limit": 10}}
    {"at": "3s", "client": "ann", "do": "update", "name": "cheap", "params": {"limit": 30}}
    {"at": "4s", "client": "ann", "do": "cancel", "name": "cheap"}

When it, or an update of it, is in force at all brokers, the client receives a confirmation.

If the brokers have spaces, a request may name one, and strings in its event or its parameters are
timestamps where the space says so:

    {"client": "bob", "broker": "b2", "do": "publish", "event": {"price": 9}, "space": "trades"}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tidegate.errors import BadValueError, SimulationError, TidegateError
from tidegate.language.durations import parse_duration
from tidegate.language.filters import Filter, check_values
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.spaces import Space
from tidegate.language.values import to_us
from tidegate.matching.json_lines import decode_line
from tidegate.routing import messages as m
from tidegate.routing.clients.client_state import ClientState
from tidegate.routing.messages import Client, Message, Peer
from tidegate.simulation.clients import Tally
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.request_json import request_from_json
from tidegate.simulation.trace import Trace
from tidegate.simulation.world import World

FIELDS = {
    "subscribe": "filter", "unsubscribe": "filter", "advertise": "filter", "unadvertise": "filter",
    "update": "name", "cancel": "name",
    "publish": "event", "suspend": None, "resume": None, "depart": None,
}  # fmt: skip
"""The requests, each with the field it requires besides ``client``."""
_OPTIONAL_FIELDS = {
    "subscribe": {"name", "params", "evolve", "space"}, "update": {"params", "filter"},
    "unsubscribe": {"space"}, "advertise": {"space"}, "unadvertise": {"space"},
    "publish": {"space"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScriptAction:
    """A request of a client at a time, and the broker it is at then."""

    at_us: int
    client: Client
    broker: Peer
    request: Message


@dataclass(frozen=True, slots=True)
class Script:
    """The actions of all clients, in order of time."""

    actions: tuple[ScriptAction, ...]

    @property
    def clients(self) -> dict[Client, Peer]:
        """All clients, with the broker at which each begins."""
        # Reversed, so that the first action of a client wins.
        return {action.client: action.broker for action in reversed(self.actions)}

    @property
    def duration_s(self) -> float:
        """The time of the last action."""
        return self.actions[-1].at_us / 1e6 if self.actions else 0.0


def read_script(
    lines: Iterable[tuple[int, bytes]], topology: Topology, spaces: Iterable[Space] = ()
) -> Script:
    """Read the numbered lines of a script; raises SimulationError that names the line.

    Whether a request fits its space is left to the brokers, which refuse it if it does not.

    >>> from tidegate.simulation.overlays.generators import generate
    >>> line = b'{"client": "ann", "broker": "b0", "do": "subscribe", "filter": "x < 1"}'
    >>> read_script([(1, line)], generate("chain", 2)).clients
    {Client(identity='ann'): 'b0'}
    """
    timed: list[tuple[int, int, Mapping[str, Any]]] = []
    for number, line in lines:
        try:
            decoded = decode_line(line)
            timed.append((_time_us(decoded), number, decoded))
        except TidegateError as error:
            raise SimulationError(f"line {number}: {error}") from None
    # In order of time: the version of an update and the count of moves depend on earlier lines.
    reader = _ScriptReader(topology, spaces)
    actions: list[ScriptAction] = []
    for at_us, number, record in sorted(timed, key=lambda each: each[:2]):
        try:
            actions.append(reader.action(at_us, record))
        except TidegateError as error:
            raise SimulationError(f"line {number}: {error}") from None
    return Script(tuple(actions))


def _time_us(record: Mapping[str, Any]) -> int:
    try:
        return round(parse_duration(str(record.get("at", "0s"))).total_seconds() * 1e6)
    except BadValueError as error:
        raise SimulationError(f"at: {error}") from None


class _ScriptReader:
    """Reads records in order of time, and keeps what later ones depend on."""

    def __init__(self, topology: Topology, spaces: Iterable[Space]) -> None:
        self._topology = topology
        self._spaces = {each.name: each for each in spaces}
        self._homes: dict[Client, Peer] = {}
        self._moves: dict[Client, int] = {}
        """The number of moves of each client so far."""
        self._versions: dict[tuple[Client, str], int] = {}
        """The last version of each named subscription."""
        self._named: dict[tuple[Client, str], tuple[Filter, Space]] = {}
        """The filter and the space of each named subscription that is in a space."""

    def action(self, at_us: int, record: Mapping[str, Any]) -> ScriptAction:
        """The action of a record."""
        _check_fields(record)
        client, do = Client(record["client"]), record["do"]
        home = self._homes.get(client)
        broker = record.get("broker", home)
        if broker is None:
            raise SimulationError(f"the earliest line of {client.identity!r} must name its broker")
        self._topology.links_of(broker)  # raises if there is no such broker
        self._homes[client] = broker
        if home in (None, broker):
            request = self._with_timestamps(client, self._request(client, record))
            return ScriptAction(at_us, client, broker, request)
        if do != "resume":
            raise SimulationError(
                f"{client.identity!r} is at {home!r}; it moves to {broker!r} when it resumes there"
            )
        # The new broker fetches the subscriptions from the old one. The count tells brokers which
        # of several moves that overtake each other is the last.
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
            raise SimulationError("a subscription with 'params' or 'evolve' needs a 'name'")
        return request_from_json(filled)

    def _with_timestamps(self, client: Client, request: Message) -> Message:
        """A request with strings of its event or its parameters as timestamps, by its space.

        What is wrong in other ways is left as it is; its broker refuses it.
        """
        match request:
            case m.Publish(event, str(space)) if space in self._spaces:
                return replace(request, event=self._spaces[space].event_from_json(event))
            case m.Subscribe(str(text), str(name), space=str(space)) if space in self._spaces:
                filter = _parsed(text)
                if filter is not None:
                    known = self._named[client, name] = filter, self._spaces[space]
                    return replace(request, parameters=_timed(request.parameters, *known))
            case m.Update(name, filter=changed) if (client, name) in self._named:
                before, in_space = self._named[client, name]
                known = self._named[client, name] = _parsed(changed) or before, in_space
                return replace(request, parameters=_timed(request.parameters, *known))
        return request


def _timed(parameters: Mapping[str, Any], filter: Filter, space: Space) -> Mapping[str, Any]:
    """Parameters of a filter with strings as timestamps where the space has them."""
    try:
        values = check_values("parameter :", parameters)
    except BadValueError:
        return parameters
    return space.with_timestamps(filter, values)


def _parsed(text: object) -> Filter | None:
    """The filter of a text; None if it is none."""
    try:
        return Filter(parse_filter(text)) if isinstance(text, str) else None
    except TidegateError:
        return None


def _check_fields(record: Mapping[str, Any]) -> None:
    do = record.get("do")
    if do not in FIELDS:
        problem = "'do' is missing; it is one of" if do is None else f"do: {do!r} is none of"
        raise SimulationError(f"{problem} {', '.join(FIELDS)}")
    needed = ["client", "do", *([FIELDS[do]] if FIELDS[do] else [])]
    for name in needed:
        if name not in record:
            raise SimulationError(f"{name!r} is missing")
    for name in ("client", "broker", "filter", "name", "evolve", "space"):
        if name in record and not (isinstance(record[name], str) and record[name]):
            raise SimulationError(f"{name!r} must be a non-empty string, not {record[name]!r}")
    if not isinstance(record.get("params", {}), dict):
        raise SimulationError(f"'params' must be an object, not {record['params']!r}")
    unknown = set(record) - {*needed, "at", "broker"} - _OPTIONAL_FIELDS.get(do, set())
    if unknown:
        raise SimulationError(f"{do!r} takes no {min(unknown)!r}")


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """A message that a client received; the fields are those of ``simulate --json``."""

    us: int
    client: str
    broker: Peer
    what: str
    """`event`, `sequence`, `in force`, `refused` or `missed`."""
    content: Any
    space: str | None = None
    """The space of the event or sequence; None for the default one."""

    def line(self) -> str:
        """The message as a line of text.

        >>> ScriptOutput(1_250_000, "ann", "b0", "event", {"price": 9}).line()
        '   1.250 s  ann at b0: {"price": 9}'
        """
        is_text = self.what in ("refused", "in force")
        text = self.content if is_text else json.dumps(self.content, default=str)
        shown = text if self.what == "event" else f"{self.what} {text}"
        if self.space is not None:
            shown += f" in {self.space}"
        return f"{self.us / 1e6:8.3f} s  {self.client} at {self.broker}: {shown}"


class _ScriptClient:
    """A client of a script; records the messages that it receives.

    Like every client it judges a delivery once more, by the subscriptions as it has them now.
    """

    def __init__(self, client: Client, script_clients: ScriptClients) -> None:
        self._client = client
        self._script_clients = script_clients
        self.state = ClientState()

    def receive(self, message: Message, now_us: int) -> None:
        """Record a message from its broker."""
        match message:
            case m.Deliver(unnamed=False) if not self.state.accepted(message):
                pass
            case m.Deliver(publication):
                self._script_clients.count_delay(publication, now_us)
                self._record("event", _attributes(publication), now_us, publication.space)
            case m.DeliverSequence(_, publications):
                events = [_attributes(each) for each in publications]
                self._record("sequence", events, now_us, publications[0].space)
            case m.InForce(name, version):
                self._record("in force", f"{name} (version {version})", now_us)
            case m.Refused(_, reason):
                self._script_clients.tally.refused += 1
                self._record("refused", reason, now_us)
            case m.Missed(count):
                self._record("missed", count, now_us)

    def _record(self, what: str, content: object, now_us: int, space: str | None = None) -> None:
        broker = self._script_clients.world.home[self._client]
        identity = self._client.identity
        output = ScriptOutput(now_us, identity, broker, what, content, space or None)
        self._script_clients.outputs.append(output)


def _attributes(publication: m.Publication) -> dict[str, Any]:
    return dict(publication.event.attributes)


class ScriptClients:
    """The clients of a script in a world."""

    def __init__(self, script: Script, world: World, tally: Tally, trace: Trace | None) -> None:
        self.world = world
        self.tally = tally
        self.outputs: list[ScriptOutput] = []
        """The messages that they received, in order."""
        self._script = script
        self._trace = trace
        self._clients: dict[Client, _ScriptClient] = {}

    def admit(self) -> None:
        """Add all clients at their brokers."""
        for client, broker in self._script.clients.items():
            self._clients[client] = _ScriptClient(client, self)
            self.world.admit(client, self._clients[client], broker)
            if self._trace is not None:
                self._trace.client_admitted(client, broker)

    def begin(self, begin_us: int) -> None:
        """Schedule all actions; the times of the script count from ``begin_us``."""
        for action in self._script.actions:
            self.world.at(begin_us + action.at_us, partial(self._carry_out, action))

    def _carry_out(self, action: ScriptAction) -> None:
        world = self.world
        if world.home[action.client] != action.broker:
            world.home[action.client] = action.broker
            if self._trace is not None:
                self._trace.client_moved(world.now_us, action.client, action.broker)
        self.tally.published += isinstance(action.request, m.Publish)
        self.tally.unheard += not world.sites[action.broker].is_up
        self._clients[action.client].state.follow(action.request, world.now_us)
        world.request(action.client, action.request)

    def count_delay(self, publication: m.Publication, now_us: int) -> None:
        """Count the time from publication to delivery."""
        time = publication.event.time
        assert time is not None  # set by the broker
        self.tally.delays_us.append(now_us - to_us(time))

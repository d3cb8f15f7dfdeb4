"""Replay of a trace: the same actions in a new world, whose messages must be the same.

All actions of the trace are scheduled before the run starts, whereas the original run scheduled
them one by one. That makes no difference: at equal times a world carries out actions from outside
before messages (rule 1 of `world.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from tidegate.errors import SimulationError, TidegateError
from tidegate.language.space_json import space_from_json
from tidegate.matching.summary.budget import SummaryBudget
from tidegate.routing.messages import Address, Client, Message
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.simulation.costs import Costs
from tidegate.simulation.faults import FaultStep
from tidegate.simulation.overlays.json_file import from_json
from tidegate.simulation.request_json import Record, request_from_json
from tidegate.simulation.trace import VERSION, message_line
from tidegate.simulation.world import SilentClient, Weather, World


@dataclass(frozen=True, slots=True)
class TraceDifference:
    """The first message that differs from the trace."""

    line: int
    traced: str | None
    """None if the trace ends before the run."""
    now: str | None
    """None if the run ends before the trace."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a replay: the number of equal messages, and the first that differs."""

    messages: int
    difference: TraceDifference | None


class _DifferenceFound(Exception):  # noqa: N818 - not an error: ends the run from inside
    pass


class _TraceComparison:
    """Compares messages with the lines of a trace; the observer of the new world."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = enumerate(lines, 1)
        self.same = 0
        self.difference: TraceDifference | None = None

    def __call__(self, now_us: int, sender: Address, receiver: Address, message: Message) -> None:
        if isinstance(sender, Client):
            return  # requests come from the trace itself
        number, traced = self.next_message()
        now = message_line(now_us, sender, receiver, message)
        if traced != now:
            self.difference = TraceDifference(number, traced, now)
            raise _DifferenceFound
        self.same += 1

    def next_message(self) -> tuple[int, str | None]:
        """The number and text of the next line that is a message; None at the end of the trace."""
        number = 0
        for number, line in self._lines:
            if "kind" in _decoded(line, number):
                return number, line
        return number, None


def replay(file: IO[str]) -> Replay:
    """Run the actions of a trace and compare the messages, byte for byte.

    The file is read twice and must be seekable. Raises SimulationError that names a wrong line.
    """
    world = _world_of(_decoded(file.readline(), 1))
    for number, line in enumerate(file, 2):
        record = _decoded(line, number)
        if "kind" not in record:
            with _errors_name_line(number):
                _schedule(world, record)
    file.seek(0)
    comparison = _TraceComparison(file)
    world.observer = comparison
    try:
        world.run()
    except _DifferenceFound:
        return Replay(comparison.same, comparison.difference)
    number, traced = comparison.next_message()
    difference = None if traced is None else TraceDifference(number, traced, None)
    return Replay(comparison.same, difference)


def _world_of(header: Record) -> World:
    if header.get("tidegate_trace") != VERSION:
        raise SimulationError(f"line 1: this is no trace of version {VERSION}")
    with _errors_name_line(1):
        settings = header.get("summaries")
        return World(
            from_json(json.dumps(header["overlay"])),
            header["routing"],
            header["seed"],
            costs=Costs(base_us=header["processor_us"]),
            merging=header["merging"],
            substrate=header["substrate"],
            only_advertised=header["only_advertised"],
            weather=Weather(**header["weather"]),
            summaries=None if settings is None else _summary_settings(settings),
            spaces=tuple(map(space_from_json, header.get("spaces", ()))),
        )


def _summary_settings(record: Record) -> SummarySettings:
    return SummarySettings(**{**record, "budget": SummaryBudget(**record["budget"])})


def _schedule(world: World, record: Record) -> None:
    """Schedule an action of a trace at its time."""
    time_us = record["us"]
    if "admit" in record:
        world.topology.links_of(record["broker"])  # raises if there is no such broker
        world.admit(Client(record["admit"]), SilentClient(), record["broker"])
    elif "move" in record:
        world.topology.links_of(record["broker"])  # raises if there is no such broker
        client, broker = Client(record["move"]), record["broker"]
        world.at(time_us, lambda: world.home.update({client: broker}))
    elif "fault" in record:
        step, names = FaultStep(record["fault"]), tuple(record["names"])
        world.at(time_us, lambda: step.apply(world, names))
    else:
        client, request = Client(record["client"]), request_from_json(record)
        if client not in world.home:
            raise SimulationError(f"{client.identity!r} was not admitted")
        world.at(time_us, lambda: world.request(client, request))


def _decoded(line: str, number: int) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise SimulationError(f"line {number}: this is not a JSON object")
    return record


@contextmanager
def _errors_name_line(number: int) -> Iterator[None]:
    """Turn all errors into a SimulationError that names the line of the trace."""
    try:
        yield
    except KeyError as error:
        raise SimulationError(f"line {number}: {error} is missing") from None
    except (TypeError, ValueError) as error:
        raise SimulationError(f"line {number}: {error}") from None
    except TidegateError as error:
        raise SimulationError(f"line {number}: {error}") from None

"""Faults at given times, and the notation in which users write them.

`b3@2.5s..4s` is a broker that crashes and restarts, `a-b@1s..2s` a link that is cut and mended, and
`east,b7@1s..2s` a partition: brokers (here all of a region, and one more) that are cut off from all
others. Without an end, they stay down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from tidegate.errors import BadValueError, SimulationError
from tidegate.language.durations import parse_duration
from tidegate.routing.messages import Peer
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.world import World

MEND_RETRIES_US = (0, 500_000, 1_000_000)
"""When links are mended, after the end of the fault.

A broker refuses a connection that would close a cycle in an acyclic domain. While the loss of
another link is still being announced, a link may seem to do so; therefore it is tried again.
"""


class FaultStep(Enum):
    """A change of a broker or a link."""

    CRASH = "crash"
    RESTART = "restart"
    CUT = "cut"
    MEND = "mend"

    def apply(self, world: World, names: tuple[Peer, ...]) -> None:
        """Carry out the step on the broker or link with these names."""
        match self:
            case FaultStep.CRASH:
                if world.sites[names[0]].is_up:
                    world.crash(names[0])
            case FaultStep.RESTART:
                world.restart(names[0])
            case FaultStep.CUT:
                world.cut(*names)
            case FaultStep.MEND:
                world.mend(*names)


@dataclass(frozen=True, slots=True)
class Fault:
    """A time during which a broker or a link is down."""

    names: tuple[Peer, ...]
    """One broker, or the two ends of a link."""
    begin_us: int
    end_us: int | None = None
    """None if it stays down."""

    def steps(self, topology: Topology) -> Iterator[tuple[int, FaultStep, tuple[Peer, ...]]]:
        """The times, counted from the start of the run, and what happens to which names then."""
        is_link = len(self.names) == 2
        yield self.begin_us, FaultStep.CUT if is_link else FaultStep.CRASH, self.names
        if self.end_us is None:
            return
        if not is_link:
            yield self.end_us, FaultStep.RESTART, self.names
        for retry_us in MEND_RETRIES_US:
            if is_link:
                yield self.end_us + retry_us, FaultStep.MEND, self.names
            elif retry_us:  # a restart itself mends the links of the broker
                for peer in topology.neighbours(self.names[0]):
                    yield self.end_us + retry_us, FaultStep.MEND, (self.names[0], peer)


def parse_crash(text: str, topology: Topology) -> Fault:
    """Read the crash of a broker.

    >>> from tidegate.simulation.overlays.generators import generate
    >>> parse_crash("b3@2.5s..4s", generate("chain"))
    Fault(names=('b3',), begin_us=2500000, end_us=4000000)
    """
    name, begin_us, end_us = _name_and_times(text, "b3@2.5s..4s")
    topology.links_of(name)  # raises if there is no such broker
    return Fault((name,), begin_us, end_us)


def parse_cut(text: str, topology: Topology) -> Fault:
    """Read the cut of a link; its ends are named in either order."""
    name, begin_us, end_us = _name_and_times(text, "a-b@1s..2s")
    for link in topology.links:
        if name in (f"{link.a}-{link.b}", f"{link.b}-{link.a}"):
            return Fault((link.a, link.b), begin_us, end_us)
    raise SimulationError(f"there is no link {name!r} in {topology.name!r}")


def parse_partition(text: str, topology: Topology) -> tuple[Fault, ...]:
    """Read which brokers are cut off; the name of a region stands for all of its brokers.

    >>> from tidegate.simulation.overlays.generators import generate
    >>> [fault.names for fault in parse_partition("b0,b1@1s..2s", generate("star", 4))]
    [('b0', 'b2'), ('b0', 'b3')]
    """
    names, begin_us, end_us = _name_and_times(text, "east,b7@1s..2s")
    inside: set[Peer] = set()
    for name in names.split(","):
        members = [broker for broker, region in topology.regions.items() if region == name]
        if not members and name not in topology.brokers:
            regions = ", ".join(sorted(set(topology.regions.values()))) or "none"
            raise SimulationError(
                f"there is no broker or region {name!r} in {topology.name!r}; regions: {regions}"
            )
        inside.update(members or [name])
    cut = [link for link in topology.links if (link.a in inside) != (link.b in inside)]
    if not cut:
        raise SimulationError(f"{text!r} cuts no link of {topology.name!r}")
    return tuple(Fault((link.a, link.b), begin_us, end_us) for link in cut)


def _name_and_times(text: str, example: str) -> tuple[str, int, int | None]:
    name, sign, times = text.rpartition("@")
    begin, _, end = times.partition("..")
    if not sign or not name:
        raise SimulationError(f"{text!r} has no time; write it as {example}")
    try:
        begin_us = _time_us(begin)
        end_us = _time_us(end) if end else None
    except BadValueError as error:
        raise SimulationError(f"{text!r}: {error}") from None
    if end_us is not None and end_us <= begin_us:
        raise SimulationError(f"{text!r} ends before it begins; write it as {example}")
    return name, begin_us, end_us


def _time_us(text: str) -> int:
    return round(parse_duration(text).total_seconds() * 1e6)

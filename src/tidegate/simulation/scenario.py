"""Runs a workload in a world: a scenario says all of it, and one scenario is one run.

Publishers advertise, if the semantics asks for it; when that has settled, subscribers subscribe;
when that has settled, events are published for as long as the scenario says, and faults happen.
Times of events and faults count from then on. Clients of a broker that restarts say again what they
want.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from tidegate.errors import RoutingError
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.strategies import STRATEGIES
from tidegate.simulation.clients import Interest, SimulatedPublisher, SimulatedSubscriber, Tally
from tidegate.simulation.costs import Costs
from tidegate.simulation.faults import Fault, FaultStep
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.report import Report, broker_loads, delays_of, link_loads
from tidegate.simulation.script import Script, ScriptClients
from tidegate.simulation.trace import Trace
from tidegate.simulation.workloads import ClientPlan, Demand, workload
from tidegate.simulation.world import Weather, World

HIERARCHY = "hierarchy"
ROUTINGS = (*STRATEGIES, HIERARCHY)
BY_SUBSCRIPTIONS, BY_ADVERTISEMENTS = "subscription", "advertisement"
SEMANTICS = (BY_SUBSCRIPTIONS, BY_ADVERTISEMENTS)
"""What is delivered: all that is asked for, or of that what its publisher has advertised."""
SLICES = 200
"""Into so many parts the time of a run is divided to show progress."""
YOUNG_OBJECTS = 200_000

OnAdvance = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Slowness:
    """Subscribers that take a while for each delivery."""

    subscribers: int
    service_us: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that makes a run."""

    topology: Topology
    routing: str = "subscription"
    workload: str = "zipf"
    seed: int = 0
    demand: Demand = field(default_factory=Demand)
    processor_us: int = 0
    """How long a broker takes for each message."""
    merging: bool = False
    """Whether brokers send filters merged where that is exact."""
    substrate: str = "poset"
    """What finds the filters that an event matches, in brokers."""
    semantics: str | None = None
    """One of SEMANTICS; None for the one that fits the routing."""
    weather: Weather = field(default_factory=Weather)
    slow: Slowness | None = None
    faults: tuple[Fault, ...] = ()
    script: Script | None = None
    """What further clients do."""


def strategy_name(routing: str, topology: Topology) -> str:
    """The strategy of a routing; `hierarchy` is subscription forwarding where all is hierarchical.

    Raises RoutingError where the overlay is no hierarchy.
    """
    if routing != HIERARCHY:
        return routing
    others = [kind for kind in topology.domains.values() if kind is not Architecture.HIERARCHICAL]
    if others:
        raise RoutingError(
            f"the routing 'hierarchy' needs a hierarchical overlay; {topology.name!r} is "
            f"{others[0].value}. Take the topology 'hierarchy' or 'transit-stub-hierarchical', "
            "or the routing 'subscription'"
        )
    return "subscription"


def only_advertised(scenario: Scenario) -> bool:
    """Whether only what was advertised is delivered.

    Raises RoutingError where the routing does not go with the semantics.
    """
    needed = STRATEGIES[strategy_name(scenario.routing, scenario.topology)].needs_advertisements
    if scenario.semantics is None:
        return needed
    if needed and scenario.semantics == BY_SUBSCRIPTIONS:
        raise RoutingError(
            f"the routing {scenario.routing!r} delivers only what was advertised; take the "
            f"semantics {BY_ADVERTISEMENTS!r}, or another routing"
        )
    return scenario.semantics == BY_ADVERTISEMENTS


class Simulation:
    """One run of a scenario.

    >>> from tidegate.simulation.overlays.generators import generate
    >>> report = Simulation(Scenario(generate("chain", 3), demand=Demand(duration_s=1))).run()
    >>> report.delivered == report.wanted
    True
    """

    def __init__(self, scenario: Scenario, trace: Trace | None = None) -> None:
        self.scenario = scenario
        self._trace = trace
        self.world = World(
            scenario.topology,
            strategy_name(scenario.routing, scenario.topology),
            scenario.seed,
            costs=Costs(base_us=scenario.processor_us),
            merging=scenario.merging,
            substrate=scenario.substrate,
            only_advertised=only_advertised(scenario),
            weather=scenario.weather,
            watcher=trace,
        )
        self.tally = Tally()
        self._interest = Interest()
        plan = ClientPlan(
            workload(scenario.workload), scenario.demand, scenario.topology, scenario.seed
        )
        self._publishers = [
            SimulatedPublisher(each, self.world, self.tally) for each in plan.publishers()
        ]
        self.cast = ScriptClients(scenario.script or Script(()), self.world, self.tally, trace)
        slow = scenario.slow or Slowness(0, 0)
        self._subscribers = [
            SimulatedSubscriber(
                each, self.world, self.tally, slow.service_us if number < slow.subscribers else 0
            )
            for number, each in enumerate(plan.subscribers())
        ]

    def run(self, advance: OnAdvance = id) -> Report:
        """Run it all; ``advance`` is told of progress, `SLICES` steps in all."""
        begun_s = perf_counter()
        with _rare_collections():
            self._introduce(advance)
            self._go_on(advance)
        return self._report(perf_counter() - begun_s)

    # -- phases -------------------------------------------------------------------------------

    def _introduce(self, advance: OnAdvance) -> None:
        world, trace = self.world, self._trace
        clients: list[SimulatedPublisher | SimulatedSubscriber] = [
            *self._publishers,
            *self._subscribers,
        ]
        for each in clients:
            world.admit(each.plan.client, each, each.plan.broker)
            if trace is not None:
                trace.admitted(each.plan.client, each.plan.broker)
        self.cast.enter()
        if self._needs_advertisements:
            for publisher in self._publishers:
                publisher.introduce()
            self._settle(advance)
        for subscriber in self._subscribers:
            subscriber.enter(self._interest)
            subscriber.introduce()
        self._settle(advance)

    def _settle(self, advance: OnAdvance) -> None:
        """Let everything come to rest; nobody knows how long that takes, only that it goes on."""
        while (next_us := self.world.next_us) is not None:
            self.world.run(next_us)
            advance(0)

    @property
    def _needs_advertisements(self) -> bool:
        return bool(self.world.only_advertised)

    def _go_on(self, advance: OnAdvance) -> None:
        """Publish, change subscriptions and let things fail, until the time is over."""
        world = self.world
        begin_us = world.now_us
        end_us = begin_us + round(self.scenario.demand.duration_s * 1e6)
        for publisher in self._publishers:
            self._repeat(publisher.plan.times_us, publisher.publish, begin_us, end_us)
        for subscriber in self._subscribers:
            self._repeat(subscriber.plan.times_us, subscriber.change, begin_us, end_us)
        self.cast.begin(begin_us)
        for fault in self.scenario.faults:
            for time_us, step, names in fault.steps(self.scenario.topology):
                world.at(begin_us + time_us, self._fault(step, names))
        for number in range(1, SLICES + 1):
            world.run(begin_us + (end_us - begin_us) * number // SLICES)
            advance(1)
        world.run()

    def _repeat(
        self,
        times_us: Iterator[int],
        action: Callable[[Interest], None],
        begin_us: int,
        end_us: int,
    ) -> None:
        """Do something at each of some times; the next is scheduled when one has come."""
        world = self.world

        def tick() -> None:
            action(self._interest)
            schedule()

        def schedule() -> None:
            time_us = begin_us + next(times_us, end_us)
            if time_us < end_us:
                world.at(time_us, tick)

        schedule()

    def _fault(self, step: FaultStep, names: tuple[str, ...]) -> Callable[[], None]:
        def happen() -> None:
            was_up = self.world.sites[names[0]].is_up
            if self._trace is not None:
                self._trace.happened(self.world.now_us, step, names)
            step.apply(self.world, names)
            if step is FaultStep.RESTART and not was_up:
                self._introduce_again(names[0])

        return happen

    def _introduce_again(self, broker: str) -> None:
        if self._needs_advertisements:
            for publisher in self._publishers:
                if publisher.plan.broker == broker:
                    publisher.introduce()
        for subscriber in self._subscribers:
            if subscriber.plan.broker == broker:
                subscriber.introduce()

    # -- figures ------------------------------------------------------------------------------

    def _report(self, wall_s: float) -> Report:
        world, tally, scenario = self.world, self.tally, self.scenario
        links, loads = link_loads(world), broker_loads(world)
        return Report(
            topology=scenario.topology.name,
            brokers=len(scenario.topology.brokers),
            routing=scenario.routing,
            workload=scenario.workload,
            seed=scenario.seed,
            published=tally.published,
            wanted=tally.wanted,
            delivered=len(tally.delays_us),
            spurious=tally.spurious,
            refused=tally.refused,
            unheard=tally.unheard,
            delays=delays_of(tally),
            backlog_max=tally.backlog_max,
            messages=world.arrived,
            kinds={kind.__name__: count for kind, count in world.kinds.most_common()},
            link_messages=sum(each.messages for each in links),
            link_bytes=sum(each.bytes for each in links),
            in_vain=sum(site.in_vain for site in world.sites.values()),
            links=links,
            loads=loads,
            simulated_s=world.now_us / 1e6,
            wall_s=wall_s,
            messages_per_s=world.arrived / max(wall_s, 1e-9),
            is_scripted=scenario.script is not None,
            happenings=tuple(self.cast.happenings),
        )


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for cycles of dead objects rarely: a world has many objects, and hardly any such cycle.

    With Python's own setting that takes about as long as all the rest.
    """
    before = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)

"""Scenarios and their simulation: a workload on an overlay, with faults; one scenario is one run.

A run has phases. First publishers advertise, if the semantics requires it. When all messages of
that have been handled, subscribers subscribe. When that is done too, events are published for the
duration of the scenario, and faults happen; their times count from the start of this phase. The
clients of a broker that restarts advertise and subscribe again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from tidegate.errors import RoutingError, SimulationError
from tidegate.language.spaces import Space
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.strategies import STRATEGIES
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.simulation.clients import (
    ExpectedDeliveries,
    SimulatedPublisher,
    SimulatedSubscriber,
    Tally,
)
from tidegate.simulation.costs import Costs
from tidegate.simulation.faults import Fault, FaultStep
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.report import (
    Report,
    broker_loads,
    delays_of,
    link_loads,
    summary_figures,
)
from tidegate.simulation.script import Script, ScriptClients
from tidegate.simulation.trace import Trace
from tidegate.simulation.workloads import ClientPlan, Demand, workload
from tidegate.simulation.world import Weather, World

HIERARCHY = "hierarchy"
SUMMARIES = "summaries"
ROUTINGS = (*STRATEGIES, HIERARCHY)
BY_SUBSCRIPTIONS, BY_ADVERTISEMENTS = "subscription", "advertisement"
SEMANTICS = (BY_SUBSCRIPTIONS, BY_ADVERTISEMENTS)
"""Which events are delivered: all that match, or only those that were also advertised."""
PROGRESS_STEPS = 200
"""The number of steps in which a run reports its progress."""
YOUNG_OBJECTS_MAX = 200_000
"""Allocations between two runs of Python's garbage collector."""

OnAdvance = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class SlowSubscribers:
    """The first ``count`` subscribers need ``service_us`` for each delivery."""

    count: int
    service_us: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """The settings of a run; raises SimulationError if they contradict each other."""

    topology: Topology
    routing: str = "subscription"
    workload: str = "zipf"
    seed: int = 0
    demand: Demand = field(default_factory=Demand)
    processor_us: int = 0
    """Processor time that a broker takes for each message."""
    merging: bool = False
    """Whether brokers merge filters before sending them, where that is exact."""
    substrate: str | None = None
    """The matcher with which brokers find the filters that an event matches; None for the default
    of the routing."""
    semantics: str | None = None
    """One of SEMANTICS; None for the one that the routing needs."""
    weather: Weather = field(default_factory=Weather)
    slow: SlowSubscribers | None = None
    faults: tuple[Fault, ...] = ()
    script: Script | None = None
    """Further clients, with scripted actions."""
    spaces: tuple[Space, ...] = ()
    """The spaces that all brokers have; requests of a script may name one."""
    summaries: SummarySettings | None = None
    """The settings of the routing `summaries`; None for the defaults."""

    def __post_init__(self) -> None:
        subscribers = self.demand.subscribers
        if self.slow is not None and self.slow.count > subscribers:
            raise SimulationError(
                f"{self.slow.count} slow subscribers, but there are only {subscribers} subscribers"
            )
        if self.summaries is not None and self.routing != SUMMARIES:
            raise SimulationError(
                f"settings of summaries go with the routing {SUMMARIES!r}, not {self.routing!r}"
            )


def strategy_name(routing: str, topology: Topology) -> str:
    """The strategy of a routing; `hierarchy` is subscription forwarding in hierarchical domains.

    Raises RoutingError for `hierarchy` if the overlay has other domains.
    """
    if routing != HIERARCHY:
        return routing
    others = [each for each in topology.domains.values() if each is not Architecture.HIERARCHICAL]
    if others:
        raise RoutingError(
            f"the routing 'hierarchy' needs a hierarchical overlay; {topology.name!r} is "
            f"{others[0].value}. Take the topology 'hierarchy' or 'transit-stub-hierarchical', "
            "or the routing 'subscription'"
        )
    return "subscription"


def only_advertised(scenario: Scenario) -> bool:
    """Whether only advertised events are delivered.

    Raises RoutingError if the routing does not support the semantics.
    """
    needed = STRATEGIES[strategy_name(scenario.routing, scenario.topology)].needs_advertisements
    if scenario.semantics is None:
        return needed
    if needed and scenario.semantics == BY_SUBSCRIPTIONS:
        raise RoutingError(
            f"the routing {scenario.routing!r} delivers only advertised events; take the "
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
            observer=trace,
            spaces=scenario.spaces,
            summaries=scenario.summaries,
        )
        self.tally = Tally()
        self._expected = ExpectedDeliveries()
        plan = ClientPlan(
            workload(scenario.workload), scenario.demand, scenario.topology, scenario.seed
        )
        self._publishers = [
            SimulatedPublisher(each, self.world, self.tally) for each in plan.publishers()
        ]
        self.script_clients = ScriptClients(
            scenario.script or Script(()), self.world, self.tally, trace
        )
        slow = scenario.slow or SlowSubscribers(0, 0)
        self._subscribers = [
            SimulatedSubscriber(
                each, self.world, self.tally, slow.service_us if number < slow.count else 0
            )
            for number, each in enumerate(plan.subscribers())
        ]

    def run(self, advance: OnAdvance = id) -> Report:
        """Run all phases; ``advance`` is called with the number of progress steps made."""
        begun_s = perf_counter()
        with rare_collections():
            self._set_up(advance)
            self._publish_and_change(advance)
        return self._report(perf_counter() - begun_s)

    # -- phases -------------------------------------------------------------------------------

    def _set_up(self, advance: OnAdvance) -> None:
        """Add all clients; advertise, then subscribe."""
        world, trace = self.world, self._trace
        clients: list[SimulatedPublisher | SimulatedSubscriber] = [
            *self._publishers,
            *self._subscribers,
        ]
        for each in clients:
            world.admit(each.schedule.client, each, each.schedule.broker)
            if trace is not None:
                trace.client_admitted(each.schedule.client, each.schedule.broker)
        self.script_clients.admit()
        if self._needs_advertisements:
            for publisher in self._publishers:
                publisher.advertise()
            self._run_until_idle(advance)
        for subscriber in self._subscribers:
            subscriber.count_in(self._expected)
            subscriber.subscribe()
        # Only now do all brokers have all filters, and every expected delivery can be made.
        self._run_until_idle(advance)

    def _run_until_idle(self, advance: OnAdvance) -> None:
        """Handle all messages. How many follow is not known, so progress is shown as 0 steps."""
        while (next_us := self.world.next_us) is not None:
            self.world.run(next_us)
            advance(0)

    @property
    def _needs_advertisements(self) -> bool:
        return bool(self.world.only_advertised)

    def _publish_and_change(self, advance: OnAdvance) -> None:
        """Publish, change subscriptions and inject faults for the duration of the scenario."""
        world = self.world
        begin_us = world.now_us
        end_us = begin_us + round(self.scenario.demand.duration_s * 1e6)
        for publisher in self._publishers:
            self._repeat(publisher.schedule.times_us, publisher.publish, begin_us, end_us)
        for subscriber in self._subscribers:
            self._repeat(subscriber.schedule.times_us, subscriber.change, begin_us, end_us)
        self.script_clients.begin(begin_us)
        for fault in self.scenario.faults:
            for time_us, step, names in fault.steps(self.scenario.topology):
                world.at(begin_us + time_us, self._fault(step, names))
        for number in range(1, PROGRESS_STEPS + 1):
            world.run(begin_us + (end_us - begin_us) * number // PROGRESS_STEPS)
            advance(1)
        world.run()

    def _repeat(
        self,
        times_us: Iterator[int],
        action: Callable[[ExpectedDeliveries], None],
        begin_us: int,
        end_us: int,
    ) -> None:
        """Call an action at some times before the end.

        Each call schedules the next one, so that the heap of the world holds one action for each
        client and not one for each event.
        """
        world = self.world

        def tick() -> None:
            action(self._expected)
            schedule()

        def schedule() -> None:
            time_us = begin_us + next(times_us, end_us)
            if time_us < end_us:
                world.at(time_us, tick)

        schedule()

    def _fault(self, step: FaultStep, names: tuple[str, ...]) -> Callable[[], None]:
        def inject() -> None:
            was_up = self.world.sites[names[0]].is_up
            if self._trace is not None:
                self._trace.fault_injected(self.world.now_us, step, names)
            step.apply(self.world, names)
            if step is FaultStep.RESTART and not was_up:
                self._subscribe_again(names[0])

        return inject

    def _subscribe_again(self, broker: str) -> None:
        """Let the clients of a restarted broker, which has lost its state, set it up again."""
        if self._needs_advertisements:
            for publisher in self._publishers:
                if publisher.schedule.broker == broker:
                    publisher.advertise()
        for subscriber in self._subscribers:
            if subscriber.schedule.broker == broker:
                subscriber.subscribe()

    # -- report -------------------------------------------------------------------------------

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
            kinds={each.__name__: count for each, count in world.arrived_by_type.most_common()},
            link_messages=sum(each.messages for each in links),
            link_bytes=sum(each.bytes for each in links),
            in_vain=sum(site.in_vain for site in world.sites.values()),
            links=links,
            loads=loads,
            simulated_s=world.now_us / 1e6,
            wall_s=wall_s,
            messages_per_s=world.arrived / max(wall_s, 1e-9),
            is_scripted=scenario.script is not None,
            script_outputs=tuple(self.script_clients.outputs),
            summaries=summary_figures(world),
        )


@contextmanager
def rare_collections() -> Iterator[None]:
    """Run the garbage collector rarely.

    A world has many objects and hardly any dead cycles. With Python's default threshold the
    collector takes about as long as the simulation itself.
    """
    before = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS_MAX, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)

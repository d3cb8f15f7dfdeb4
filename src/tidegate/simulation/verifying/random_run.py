"""Random runs of an overlay, in which every delivery is compared with the oracle.

Theory of operation. A run has rounds, each of several phases.

1. *Actions.* At random times clients subscribe, update, cancel, advertise, are suspended, move,
   depart and publish. In every second round brokers and links fail and recover as well.
2. *Idle.* The world runs until no message is on its way. In a round with failures most of what is
   down is then brought up. Now the state of all brokers must satisfy the invariants
   (`invariants.py`) and equal one computed from scratch (`fresh_state.py`).
3. *Events of the round.* No client may have received one twice, out of order, or without a filter
   that matches. In a round without failures no client may have missed one that it must receive:
   because its filters did not change, wherever it moved, or because all versions of a subscription
   match (`checked_client.py`). With failures, events may be lost.
4. *Probes.* Events are published one at a time, and the world runs until idle after each. They must
   be delivered to exactly the clients that the oracle names: the naive matcher at each client, as
   if every event were flooded.
5. *Patterns.* Some clients subscribe to patterns, and the sequences they receive must be those of
   the embedded matcher.

One round follows another in the same world, so that mistakes in the state of brokers have time to
show. A seed determines the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple

from tidegate.language.events import Event
from tidegate.language.patterns.sequence_matcher import SequenceMatcher
from tidegate.language.values import Value, from_us
from tidegate.matching.summary.budget import EXACT_ENOUGH, SummaryBudget
from tidegate.routing import messages as m
from tidegate.routing.messages import Client, Peer, Stamp
from tidegate.routing.strategies import strategy
from tidegate.routing.summaries.settings import SummarySettings
from tidegate.simulation.durable_sites import DurableSites
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.verifying.checked_client import CheckedClient, VersionsInForce
from tidegate.simulation.verifying.fresh_state import differences_from_fresh
from tidegate.simulation.verifying.invariants import broken_invariants, wrong_client_state
from tidegate.simulation.verifying.random_filters import (
    random_advertisement,
    random_event,
    random_evolve_mode,
    random_filter,
    random_parameters,
    random_parametric_filter,
    random_pattern,
)
from tidegate.simulation.world import Weather, World

ROUND_US = 2_000_000
"""The time in which the actions of a round happen; short, so that many messages overlap."""
PAUSE_US = 1_000_000
"""The longest time between two probes, in which evolving filters change."""
NAMES = ("one", "two")
"""The names of subscriptions; few, so that they are used again."""
ACTIONS_MAX = 1_000_000
"""A world that is not idle after this many actions never will be."""


@dataclass(frozen=True, slots=True)
class Mix:
    """The settings of a run."""

    clients: int = 8
    rounds: int = 4
    actions: int = 25
    """The number of actions in a round."""
    probes: int = 12
    """The number of probes at the end of a round."""
    failures: bool = True
    """Whether brokers and links fail in every second round."""
    merging: bool | None = None
    """Whether brokers merge filters; None for every other seed."""
    only_advertised: bool | None = None
    """Whether only advertised events are delivered; None for every third seed, and always where
    the routing needs it."""
    durable: bool = False
    """Whether brokers store their state and links outlive connections. Then failures are broken
    connections and, with ``stops``, brokers that stop and come back."""
    stops: bool = True
    """Whether brokers stop, if they are durable; nothing may be lost if they do not."""
    moves: bool = True
    """Whether clients move to other brokers."""
    updates: bool = True
    """Whether there are named subscriptions, which have parameters or evolve."""
    substrate: str | None = None
    summaries: SummarySettings | None = None
    """The settings of the routing by summaries; None for some that follow from the seed."""


class _PublishedEvent(NamedTuple):
    """An event of a round, and what was known of clients when it was published."""

    event: Event
    by_filter: frozenset[Client]
    """Clients that must receive it unless their filters change in this round."""
    in_force: dict[Client, VersionsInForce]
    """The named subscriptions of clients that could be reached."""


class RandomRun:
    """One random run; the same seed gives the same run."""

    def __init__(
        self,
        topology: Topology,
        routing: str,
        seed: int,
        mix: Mix | None = None,
        make_world: Callable[..., World] = World,
    ) -> None:
        """``make_world`` is for brokers that are not simulated; it is called as `World` is."""
        self.mix = mix or Mix()
        weather = Weather(extra_delay_us_max=20_000, duplicated=0.05)
        merging = seed % 2 == 1 if self.mix.merging is None else self.mix.merging
        self.needs_advertisements = strategy(routing).needs_advertisements or (
            seed % 3 == 2 if self.mix.only_advertised is None else self.mix.only_advertised
        )
        self.world = make_world(
            topology, routing, seed,
            weather=weather, merging=merging, only_advertised=self.needs_advertisements,
            substrate=self.mix.substrate, is_durable=self.mix.durable,
            summaries=self.mix.summaries or random_summary_settings(seed),
        )  # fmt: skip
        self.random = Random(f"actions {seed}")
        self.clients: dict[Client, CheckedClient] = {}
        self._with_failures = False
        """Whether brokers and links fail in this round."""
        updates = [4, 12, 1] if self.mix.updates else [0, 0, 0]
        # Two weights are drawn, so that some runs have many advertisements or moves and others few.
        self._weights = [
            8, 6, 3, self.random.choice((3, 6)), 1, self.random.choice((1, 8)), 0.5, *updates,
        ]  # fmt: skip
        """The weights of the actions, in the order of `_client_action`."""
        self._published: list[_PublishedEvent] = []
        """The events of this round."""
        self._problems: list[str] = []
        """The problems found in this round."""
        for number in range(self.mix.clients):
            client = CheckedClient(Client(f"c{number}"))
            self.clients[client.address] = client
            self.world.admit(client.address, client, self.random.choice(topology.brokers))
        # `@v` has another value at each broker. Which of them an event was matched with depends on
        # where its client was then, so any of them is allowed.
        self._variables_of_brokers: list[Mapping[str, Value]] = [{}]
        for site in self.world.sites.values():
            value = self.random.randint(0, 9)
            site.broker.variables.set(v=value)
            self._variables_of_brokers.append({"v": value})

    def problems(self) -> list[str]:
        """Run all rounds, up to the first with problems; returns these."""
        for number in range(self.mix.rounds):
            problems = self._round(with_failures=self.mix.failures and number % 2 == 1)
            if problems:
                return [f"round {number}: {each}" for each in problems]
        return []

    def _run_until_idle(self) -> None:
        self.world.run(actions_max=ACTIONS_MAX)

    # -- a round ------------------------------------------------------------------------------

    def _round(self, *, with_failures: bool) -> list[str]:
        self._with_failures = with_failures
        for client in self.clients.values():
            client.begin_round()
        self._published.clear()
        self._problems = []
        begun_us = self.world.now_us
        action = self._action_or_failure if with_failures else self._client_action
        for time_us in sorted(self.random.randrange(ROUND_US) for _ in range(self.mix.actions)):
            self.world.at(begun_us + time_us, action)
        self._run_until_idle()
        if with_failures:
            self._recover()
        problems = (
            broken_invariants(self.world)
            + differences_from_fresh(self.world)
            + self._client_state_problems()
        )
        only_delays = self.mix.durable and not self.mix.stops
        problems += self._problems_of_round(nothing_lost=not with_failures or only_delays)
        return problems or self._problems_of_probes() or self._problems_of_patterns()

    def _recover(self) -> None:
        """Bring up all brokers and links; now and then leave them down for the next round."""
        durable = self.world.durable
        if durable is not None:
            for name in self.world.sites:
                durable.come_back(name)
            for a, b in list(self.world.directions):
                durable.reconnect(a, b)
            self._run_until_idle()
            return
        if self.random.random() < 0.2:
            return
        for _ in range(3):  # see `faults.MEND_RETRIES_US`
            for name, site in self.world.sites.items():
                if not site.is_up:
                    self.world.restart(name)
            for a, b in list(self.world.directions):
                if a < b:
                    self.world.mend(a, b)
            self._run_until_idle()

    def _client_action(self) -> None:
        client = self.random.choice(list(self.clients.values()))
        home = self.world.home[client.address]
        if not self.world.sites[home].is_up:
            if self.world.durable is None:
                self._connect_elsewhere(client)
            return  # it waits for its broker, which knows it
        self.random.choices(
            (self._publish, self._subscribe, self._unsubscribe, self._advertise, self._unadvertise,
             self._suspend_or_move, self._depart, self._subscribe_by_name, self._update,
             self._cancel),
            self._weights,
        )[0](client)  # fmt: skip

    def _action_or_failure(self) -> None:
        if self.random.random() < 0.75:
            self._client_action()
            return
        world = self.world
        if world.durable is not None:
            self._durable_failure(world.durable)
            return
        failure = self.random.randrange(4)  # crash, restart, cut or mend
        broker = self.random.choice(world.topology.brokers)
        if failure == 0 and world.sites[broker].is_up:
            world.crash(broker)
            for client in self.clients.values():
                if world.home[client.address] == broker:
                    client.reset()
        elif failure == 1:
            world.restart(broker)
        elif world.directions:
            a, b = self.random.choice(list(world.directions))
            if failure == 2:
                world.cut(a, b)
            else:
                world.mend(a, b)

    def _durable_failure(self, durable: DurableSites) -> None:
        """Stop a broker, have it come back, or break the connection of a link or bring it back."""
        broker = self.random.choice(self.world.topology.brokers)
        links = list(self.world.directions)
        a, b = self.random.choice(links) if links else (broker, broker)
        failure = self.random.randrange(4 if self.mix.stops else 2)
        if failure >= 2:
            (durable.stop if failure == 2 else durable.come_back)(broker)
        elif links:
            (durable.break_connection if failure == 0 else durable.reconnect)(a, b)

    def _connect_elsewhere(self, client: CheckedClient) -> None:
        """Make a client whose broker crashed a new client of another broker.

        That one may deliver events again that the client has received before. So those are checked
        now, and forgotten.
        """
        up = [name for name, site in self.world.sites.items() if site.is_up]
        if up:
            self._problems += _wrong_deliveries(client, self._variables_of_brokers)
            client.received.clear()
            self.world.home[client.address] = self.random.choice(up)

    # -- actions of clients -------------------------------------------------------------------

    def _publish(self, client: CheckedClient) -> None:
        event = self._event_of(client)
        if self._may_publish(client, event) and self._is_settled(client):
            reachable = self._reachable(self.world.home[client.address])
            others = [each for each in self.clients.values() if self._home_of(each) in reachable]
            by_filter = frozenset(
                each.address
                for each in others
                if each.is_stable and any(wanted.matches(event) for wanted in each.filters)
            )
            in_force = {each.address: each.versions_in_force() for each in others}
            self._published.append(_PublishedEvent(event, by_filter, in_force))
        self.world.request(client.address, m.Publish(event))

    def _is_settled(self, publisher: CheckedClient) -> bool:
        """Whether all brokers have the advertisements of a publisher, if they matter."""
        return not self.needs_advertisements or publisher.is_stable

    def _subscribe(self, client: CheckedClient) -> None:
        wanted = random_filter(self.random)
        client.has_session, client.is_stable = True, False
        client.round_filters.append(wanted)
        if not any(each.covers(wanted) for each in client.filters):
            client.filters = [each for each in client.filters if not wanted.covers(each)] + [wanted]
        self.world.request(client.address, m.Subscribe(wanted))

    def _unsubscribe(self, client: CheckedClient) -> None:
        held = self.random.choice(client.filters) if client.filters else None
        wanted = held if held and self.random.random() < 0.7 else random_filter(self.random)
        client.is_stable = False
        client.filters = [each for each in client.filters if not wanted.covers(each)]
        request = client.state.unsubscribe(wanted)
        for name in [each for each in client.versions if each not in client.state]:
            client.end_subscription(name)
        self.world.request(client.address, request)

    def _advertise(self, client: CheckedClient) -> None:
        offered = random_advertisement(self.random)
        client.has_session, client.is_stable = True, False
        if not any(each.covers(offered) for each in client.advertisements):
            client.advertisements = [
                each for each in client.advertisements if not offered.covers(each)
            ] + [offered]
        self.world.request(client.address, m.Advertise(offered))

    def _unadvertise(self, client: CheckedClient) -> None:
        if not client.advertisements:
            return
        offered = self.random.choice(client.advertisements)
        client.is_stable = False
        client.advertisements = [each for each in client.advertisements if not offered.covers(each)]
        self.world.request(client.address, m.Unadvertise(offered))

    def _subscribe_by_name(self, client: CheckedClient) -> None:
        name = self.random.choice(NAMES)
        if name in client.state:
            return
        client.has_session = True
        filter = random_parametric_filter(self.random)
        request = client.state.subscribe(
            name,
            filter,
            random_parameters(self.random, filter),
            now_us=self.world.now_us,
            evolve=random_evolve_mode(self.random),
            confirm=self.random.random() < 0.5,
        )
        client.add_version(name)
        self.world.request(client.address, request)

    def _update(self, client: CheckedClient) -> None:
        """Update parameters or, now and then, the whole filter."""
        names = sorted(client.versions)
        if not names:
            self._subscribe_by_name(client)
            return
        name = self.random.choice(names)
        filter = random_parametric_filter(self.random) if self.random.random() < 0.2 else None
        values = random_parameters(self.random, filter or client.state[name].subscription.filter)
        confirm = self.random.random() < 0.5
        request = client.state.update(name, values, filter=filter, confirm=confirm)
        client.add_version(name)
        self.world.request(client.address, request)

    def _cancel(self, client: CheckedClient) -> None:
        name = self.random.choice(NAMES)
        if name in client.state:
            self.world.request(client.address, client.state.cancel(name))
            client.end_subscription(name)

    def _suspend_or_move(self, client: CheckedClient) -> None:
        if not client.has_session:
            return
        if not client.is_suspended:
            client.is_suspended = True
            self.world.request(client.address, m.Suspend())
            return
        client.is_suspended = False
        home = self.world.home[client.address]
        target = self.random.choice(sorted(self._reachable(home)))
        # A move needs both brokers and the path between them until it is completed.
        if not self.mix.moves or target == home or self._with_failures:
            self.world.request(client.address, m.Resume())
            return
        # The client is at the new broker at once; its subscriptions follow by messages.
        self.world.home[client.address] = target
        client.moves += 1
        self.world.request(client.address, m.Resume(home, client.moves))

    def _depart(self, client: CheckedClient) -> None:
        self.world.request(client.address, m.Depart())
        client.reset()

    # -- checks -------------------------------------------------------------------------------

    def _client_state_problems(self) -> list[str]:
        return [
            each
            for client in self.clients.values()
            for each in wrong_client_state(
                self.world,
                client.address,
                client.filters,
                client.advertisements,
                client.has_session,
            )
        ]

    def _problems_of_round(self, *, nothing_lost: bool) -> list[str]:
        """Check the deliveries of the round (phase 3)."""
        problems = self._problems
        for client in self.clients.values():
            problems += _wrong_deliveries(client, self._variables_of_brokers)
        if nothing_lost:
            for event, by_filter, in_force in self._published:
                for address, client in self.clients.items():
                    must = address in by_filter and client.is_stable
                    must = must or (
                        address in in_force and client.must_receive(event, in_force[address])
                    )
                    # A suspended client has not received its events yet; it does when it resumes.
                    if must and not client.is_suspended and not _has_received(client, event):
                        problems.append(f"{address.identity} has missed {_text(event)}")
        return problems

    def _problems_of_probes(self) -> list[str]:
        """Publish probes and compare each with the oracle (phase 4)."""
        world = self.world
        for client in self.clients.values():
            if client.is_suspended and world.sites[world.home[client.address]].is_up:
                client.is_suspended = False
                world.request(client.address, m.Resume())
            elif not world.sites[world.home[client.address]].is_up:
                client.reset()
        self._run_until_idle()
        problems: list[str] = []
        for _ in range(self.mix.probes):
            world.run(world.now_us + self.random.randrange(PAUSE_US))
            publisher = self.random.choice(list(self.clients.values()))
            if not world.sites[world.home[publisher.address]].is_up:
                continue
            event = self._event_of(publisher)
            wanted = self._oracle(publisher, event)
            for client in self.clients.values():
                client.received.clear()
            world.request(publisher.address, m.Publish(event))
            self._run_until_idle()
            for client in self.clients.values():
                received, expected = len(client.received), int(client.address in wanted)
                if received != expected:
                    problems.append(
                        f"{client.address.identity} at {self._home_of(client)} received "
                        f"{_text(event)} of {publisher.address.identity} at "
                        f"{self._home_of(publisher)} {received} times, not {expected}"
                    )
        return problems

    def _problems_of_patterns(self) -> list[str]:
        """Subscribe to patterns, publish, and compare with the embedded matcher (phase 5)."""
        world, random = self.world, self.random
        connected = [
            client for client in self.clients.values() if world.sites[self._home_of(client)].is_up
        ]
        if not connected:
            return []
        patterns = {
            client.address: random_pattern(random)
            for client in random.sample(connected, min(2, len(connected)))
        }
        for address, pattern in patterns.items():
            self.clients[address].has_session = True
            world.request(address, m.Subscribe(pattern))
        self._run_until_idle()
        oracles = {address: SequenceMatcher(pattern) for address, pattern in patterns.items()}
        expected: dict[Client, list[tuple[Event, ...]]] = {address: [] for address in patterns}
        begun_us = world.now_us
        for client in connected:
            client.sequences.clear()
        for number in range(self.mix.probes):
            publisher = random.choice(connected)
            time_us = begun_us + (number + 1) * 100_000
            event = Event(self._event_of(publisher).attributes, from_us(time_us))
            world.at(time_us, partial(world.request, publisher.address, m.Publish(event)))
            if self._may_publish(publisher, event):
                reachable = self._reachable(self._home_of(publisher))
                for address in patterns:
                    if world.home[address] in reachable:
                        expected[address] += oracles[address].feed(event)
        self._run_until_idle()
        problems = [
            f"{address.identity} at {world.home[address]} received "
            f"{len(self.clients[address].sequences)} sequences for {patterns[address]}, "
            f"not {len(expected[address])}"
            for address in patterns
            if self.clients[address].sequences != expected[address]
        ]
        for address, pattern in patterns.items():
            world.request(address, m.Unsubscribe(pattern))
        self._run_until_idle()
        left = [name for name, site in world.sites.items() if len(site.broker.patterns)]
        return problems + [f"{name} still looks for patterns" for name in left]

    def _event_of(self, publisher: CheckedClient) -> Event:
        """Draw an event, in most cases one that the publisher may publish."""
        # Events that were not advertised are refused, so a run with many of them would test little.
        for _ in range(10):
            event = random_event(self.random)
            if self._may_publish(publisher, event):
                break
        return Event(event.attributes, from_us(self.world.now_us))

    def _may_publish(self, publisher: CheckedClient, event: Event) -> bool:
        return not self.needs_advertisements or any(
            each.allows(event) for each in publisher.advertisements
        )

    def _oracle(self, publisher: CheckedClient, event: Event) -> set[Client]:
        """The clients that must receive an event that is published while brokers are idle."""
        if not self._may_publish(publisher, event):
            return set()
        reachable = self._reachable(self._home_of(publisher))
        return {
            client.address
            for client in self.clients.values()
            if self._home_of(client) in reachable
            and client.wants(event, self._variables(client.address))
        }

    def _variables(self, address: Client) -> Mapping[str, Value]:
        broker = self.world.sites[self.world.home[address]].broker
        return broker.variables.state.values

    def _home_of(self, client: CheckedClient) -> Peer:
        return self.world.home[client.address]

    def _reachable(self, broker: Peer) -> set[Peer]:
        """The brokers to which links that are up lead from a broker, and itself."""
        reached = {broker}
        frontier = [broker]
        for each in frontier:
            for neighbour in self.world.topology.neighbours(each):
                is_up = self.world.durable or self.world.directions[each, neighbour].is_up
                if neighbour not in reached and is_up:
                    reached.add(neighbour)
                    frontier.append(neighbour)
        return reached


def random_summary_settings(seed: int) -> SummarySettings:
    """Settings for a run: periods and windows that end within a round, and others."""
    random = Random(f"summaries {seed}")
    return SummarySettings(
        period_us=random.choice((0, 50_000, 400_000, 1_000_000)),
        batch_max=random.choice((1, 3, 1_000)),
        degree_max=random.choice((None, None, 1, 2)),
        subsumption=random.random() < 0.7,
        window_us=random.choice((100_000, 1_000_000, 10_000_000)),
        budget=random.choice(
            (EXACT_ENOUGH, SummaryBudget(rows_max=2), SummaryBudget(joins_covered=True))
        ),
        to_hubs=random.random() < 0.5,
    )


def _has_received(client: CheckedClient, event: Event) -> bool:
    # By identity: two random events may be equal, and a world passes on the same object.
    return any(each.event.attributes is event.attributes for each in client.received)


def _wrong_deliveries(
    client: CheckedClient, variables: Iterable[Mapping[str, Value]]
) -> Iterable[str]:
    """Events that a client received twice, out of order, or without a filter that matches."""
    for each in client.received:
        if not client.may_receive(each.event, variables):
            yield f"{client.address.identity} never asked for {_text(each.event)}"
    # The stamps of one publishing broker must rise, as long as it does not restart.
    last: dict[tuple[Peer, int], Stamp] = {}
    for each in client.received:
        source = each.stamp.broker, each.stamp.begun_us
        before = last.get(source)
        if before is not None and before >= each.stamp:
            yield f"{client.address.identity} received {tuple(each.stamp)} after {tuple(before)}"
        last[source] = each.stamp


def _text(event: Event) -> str:
    return str(dict(event.attributes))

"""Random runs of an overlay, compared with what every client should have got.

Theory of operation. A run has rounds. In a round clients subscribe, cancel, advertise, are
suspended, move and leave; brokers and links fail and come back; and events are published all the
while. When nothing more happens, the state of every broker is checked, and some events are
published into the quiet, whose deliveries must be exactly those that the oracle says: the naive
matcher at each client, as if every event were flooded. Of the events that were published before
that, no client may get one twice, out of order or without ever having asked for it; and in a round
without failures a client whose subscriptions stay as they were, wherever it moves, misses none.
Nor does one that changes parameters, of what matched all the while (see `actors`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple

from tidegate.language.events import Event
from tidegate.language.patterns.sequence_matcher import SequenceMatcher
from tidegate.language.values import Value, from_us
from tidegate.routing import messages as m
from tidegate.routing.messages import Client, Peer, Stamp
from tidegate.routing.strategies import strategy
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.verifying.actors import Actor, Sure
from tidegate.simulation.verifying.interests import (
    random_advertisement,
    random_event,
    random_filter,
    random_moving_filter,
    random_parameters,
    random_pattern,
    random_policy,
)
from tidegate.simulation.verifying.invariants import broken_rules, unlike_asked
from tidegate.simulation.verifying.recomputing import differences
from tidegate.simulation.world import Weather, World

ROUND_US = 2_000_000
PAUSE_US = 1_000_000
NAMES = ("one", "two")
ACTIONS_MAX = 1_000_000
"""What has not come to rest after so much never will."""


@dataclass(frozen=True, slots=True)
class Mix:
    """What happens in a run."""

    clients: int = 8
    rounds: int = 4
    actions: int = 25
    """In a round, events published on the way included."""
    probes: int = 12
    """Events that are published into the quiet at the end of a round."""
    failures: bool = True
    merging: bool | None = None
    """Whether brokers merge filters; None for every other seed."""
    only_advertised: bool | None = None
    """Whether only what was advertised is delivered; None for every third seed, and always where
    the routing needs it."""
    moves: bool = True
    changing: bool = True
    """Whether there are subscriptions with parameters, and such that move."""
    substrate: str = "poset"


class _Expected(NamedTuple):
    """An event on its way, and who must get it."""

    event: Event
    stable: frozenset[Client]
    """Those who get it if their filters stay as they are."""
    sure: dict[Client, Sure]
    """The subscriptions with a name that are in force, by client, and which version."""


class RandomRun:
    """One random run; the same seed is the same run."""

    def __init__(self, topology: Topology, routing: str, seed: int, mix: Mix | None = None) -> None:
        self.mix = mix or Mix()
        weather = Weather(extra_delay_us_max=20_000, duplicated=0.05)
        merging = seed % 2 == 1 if self.mix.merging is None else self.mix.merging
        self.needs_advertisements = strategy(routing).needs_advertisements or (
            seed % 3 == 2 if self.mix.only_advertised is None else self.mix.only_advertised
        )
        self.world = World(
            topology, routing, seed,
            weather=weather, merging=merging, only_advertised=self.needs_advertisements,
            substrate=self.mix.substrate,
        )  # fmt: skip
        self.random = Random(f"actions {seed}")
        self.actors: dict[Client, Actor] = {}
        self._stormy = False
        changes = [4, 12, 1] if self.mix.changing else [0, 0, 0]
        self._weights = [
            8, 6, 3, self.random.choice((3, 6)), 1, self.random.choice((1, 8)), 0.5, *changes,
        ]  # fmt: skip
        """How often each kind of action is taken, in the order of `_calm_action`."""
        self._expected: list[_Expected] = []
        self._found: list[str] = []
        """What clients got in this round and should not have."""
        for number in range(self.mix.clients):
            actor = Actor(Client(f"c{number}"))
            self.actors[actor.client] = actor
            self.world.admit(actor.client, actor, self.random.choice(topology.brokers))
        self._ever_variables: list[Mapping[str, Value]] = [{}]
        for site in self.world.sites.values():
            value = self.random.randint(0, 9)
            site.broker.variables.set(v=value)
            self._ever_variables.append({"v": value})

    def problems(self) -> list[str]:
        """Run; gives all that was not as it should be."""
        for number in range(self.mix.rounds):
            stormy = self.mix.failures and number % 2 == 1
            found = self._round(stormy)
            if found:
                return [f"round {number}: {each}" for each in found]
        return []

    def _rest(self) -> None:
        """Let time pass until nothing more happens."""
        self.world.run(actions_max=ACTIONS_MAX)

    # -- a round ------------------------------------------------------------------------------

    def _round(self, stormy: bool) -> list[str]:
        self._stormy = stormy
        for actor in self.actors.values():
            actor.begin_round()
        self._expected.clear()
        self._found = []
        begun = self.world.now_us
        times = sorted(self.random.randrange(ROUND_US) for _ in range(self.mix.actions))
        for time in times:
            self.world.at(begun + time, self._stormy_action if stormy else self._calm_action)
        self._rest()
        if stormy:
            self._heal()
        found = broken_rules(self.world) + differences(self.world) + self._leftovers()
        found += self._problems_on_the_way(exact=not stormy)
        return found or self._problems_in_the_quiet() or self._problems_with_patterns()

    def _heal(self) -> None:
        """Bring up most of what is down, and sometimes leave it so."""
        if self.random.random() < 0.2:
            return
        for _ in range(3):  # a connection may be refused while news of another is on its way
            for name, site in self.world.sites.items():
                if not site.is_up:
                    self.world.restart(name)
            for a, b in list(self.world.lines):
                if a < b:
                    self.world.mend(a, b)
            self._rest()

    def _calm_action(self) -> None:
        actor = self.random.choice(list(self.actors.values()))
        home = self.world.home[actor.client]
        if not self.world.sites[home].is_up:
            self._go_elsewhere(actor)
            return
        self.random.choices(
            (self._publish, self._subscribe, self._unsubscribe, self._advertise, self._unadvertise,
             self._suspend_or_move, self._depart, self._claim, self._update, self._cancel),
            self._weights,
        )[0](actor)  # fmt: skip

    def _stormy_action(self) -> None:
        if self.random.random() < 0.75:
            self._calm_action()
            return
        world = self.world
        what = self.random.randrange(4)
        broker = self.random.choice(world.topology.brokers)
        if what == 0 and world.sites[broker].is_up:
            world.crash(broker)
            for actor in self.actors.values():
                if world.home[actor.client] == broker:
                    actor.forgotten()
        elif what == 1:
            world.restart(broker)
        elif world.lines:
            a, b = self.random.choice(list(world.lines))
            if what == 2:
                world.cut(a, b)
            else:
                world.mend(a, b)

    def _go_elsewhere(self, actor: Actor) -> None:
        """Be a new client of another broker; the one it had is down, and has forgotten it.

        What it has had may come to the other broker later, and then it comes again.
        """
        up = [name for name, site in self.world.sites.items() if site.is_up]
        if up:
            self._found += _unfit(actor, self._ever_variables)
            actor.received.clear()
            self.world.home[actor.client] = self.random.choice(up)

    # -- what clients do ----------------------------------------------------------------------

    def _publish(self, actor: Actor) -> None:
        event = self._event_of(actor)
        if self._may_publish(actor, event) and self._is_settled(actor):
            near = self._reachable(self.world.home[actor.client])
            there = [each for each in self.actors.values() if self.world.home[each.client] in near]
            stable = frozenset(
                each.client
                for each in there
                if each.is_stable and any(wanted.matches(event) for wanted in each.filters)
            )
            sure = {each.client: each.sure_names() for each in there}
            self._expected.append(_Expected(event, stable, sure))
        self.world.request(actor.client, m.Publish(event))

    def _is_settled(self, publisher: Actor) -> bool:
        return not self.needs_advertisements or publisher.is_stable

    def _subscribe(self, actor: Actor) -> None:
        wanted = random_filter(self.random)
        actor.is_known, actor.is_stable = True, False
        actor.ever.append(wanted)
        if not any(each.covers(wanted) for each in actor.filters):
            actor.filters = [each for each in actor.filters if not wanted.covers(each)] + [wanted]
        self.world.request(actor.client, m.Subscribe(wanted))

    def _unsubscribe(self, actor: Actor) -> None:
        held = self.random.choice(actor.filters) if actor.filters else None
        wanted = held if held and self.random.random() < 0.7 else random_filter(self.random)
        actor.is_stable = False
        actor.filters = [each for each in actor.filters if not wanted.covers(each)]
        request = actor.state.unsubscribe(wanted)
        for name in [each for each in actor.named if each not in actor.state]:
            actor.cancelled(name)
        self.world.request(actor.client, request)

    def _advertise(self, actor: Actor) -> None:
        offered = random_advertisement(self.random)
        actor.is_known, actor.is_stable = True, False
        if not any(each.covers(offered) for each in actor.advertisements):
            actor.advertisements = [
                each for each in actor.advertisements if not offered.covers(each)
            ] + [offered]
        self.world.request(actor.client, m.Advertise(offered))

    def _unadvertise(self, actor: Actor) -> None:
        if not actor.advertisements:
            return
        offered = self.random.choice(actor.advertisements)
        actor.is_stable = False
        actor.advertisements = [each for each in actor.advertisements if not offered.covers(each)]
        self.world.request(actor.client, m.Unadvertise(offered))

    def _claim(self, actor: Actor) -> None:
        """Subscribe with a name."""
        name = self.random.choice(NAMES)
        if name in actor.state:
            return
        actor.is_known = True
        filter = random_moving_filter(self.random)
        request = actor.state.subscribe(
            name,
            filter,
            random_parameters(self.random, filter),
            now_us=self.world.now_us,
            evolve=random_policy(self.random),
            confirm=self.random.random() < 0.5,
        )
        actor.changed(name)
        self.world.request(actor.client, request)

    def _update(self, actor: Actor) -> None:
        """Change parameters or, now and then, the whole filter."""
        names = sorted(actor.named)
        if not names:
            self._claim(actor)
            return
        name = self.random.choice(names)
        filter = random_moving_filter(self.random) if self.random.random() < 0.2 else None
        values = random_parameters(self.random, filter or actor.state[name].subscription.filter)
        confirm = self.random.random() < 0.5
        request = actor.state.update(name, values, filter=filter, confirm=confirm)
        actor.changed(name)
        self.world.request(actor.client, request)

    def _cancel(self, actor: Actor) -> None:
        name = self.random.choice(NAMES)
        if name in actor.state:
            self.world.request(actor.client, actor.state.cancel(name))
            actor.cancelled(name)

    def _suspend_or_move(self, actor: Actor) -> None:
        if not actor.is_known:
            return
        if not actor.is_suspended:
            actor.is_suspended = True
            self.world.request(actor.client, m.Suspend())
            return
        actor.is_suspended = False
        home = self.world.home[actor.client]
        target = self.random.choice(sorted(self._reachable(home)))
        if not self.mix.moves or target == home or self._stormy:
            self.world.request(actor.client, m.Resume())
            return
        self.world.home[actor.client] = target
        actor.moves += 1
        self.world.request(actor.client, m.Resume(home, actor.moves))

    def _depart(self, actor: Actor) -> None:
        self.world.request(actor.client, m.Depart())
        actor.forgotten()

    # -- what should be -----------------------------------------------------------------------

    def _leftovers(self) -> list[str]:
        """What brokers hold for clients that they have not asked for, or the reverse."""
        return [
            each
            for actor in self.actors.values()
            for each in unlike_asked(
                self.world, actor.client, actor.filters, actor.advertisements, actor.is_known
            )
        ]

    def _problems_on_the_way(self, *, exact: bool) -> list[str]:
        found = self._found
        for actor in self.actors.values():
            found += _unfit(actor, self._ever_variables)
        if exact:
            for event, stable, sure in self._expected:
                for client, actor in self.actors.items():
                    due = client in stable and actor.is_stable
                    due = due or (client in sure and actor.is_due(event, sure[client]))
                    if due and not actor.is_suspended and not _has(actor, event):
                        found.append(f"{client.identity} has missed {_shown(event)}")
        return found

    def _problems_in_the_quiet(self) -> list[str]:
        world = self.world
        for actor in self.actors.values():
            if actor.is_suspended and world.sites[world.home[actor.client]].is_up:
                actor.is_suspended = False
                world.request(actor.client, m.Resume())
            elif not world.sites[world.home[actor.client]].is_up:
                actor.forgotten()
        self._rest()
        found: list[str] = []
        for _ in range(self.mix.probes):
            world.run(world.now_us + self.random.randrange(PAUSE_US))
            publisher = self.random.choice(list(self.actors.values()))
            if not world.sites[world.home[publisher.client]].is_up:
                continue
            event = self._event_of(publisher)
            wanted = self._oracle(publisher, event)
            for actor in self.actors.values():
                actor.received.clear()
            world.request(publisher.client, m.Publish(event))
            self._rest()
            for actor in self.actors.values():
                got, should = len(actor.received), int(actor.client in wanted)
                if got != should:
                    found.append(
                        f"{actor.client.identity} at {world.home[actor.client]} got "
                        f"{_shown(event)} of {publisher.client.identity} at "
                        f"{world.home[publisher.client]} {got} times, not {should}"
                    )
        return found

    def _problems_with_patterns(self) -> list[str]:
        """Ask for patterns, publish, and compare with the embedded matcher."""
        world, random = self.world, self.random
        there = [
            actor for actor in self.actors.values() if world.sites[world.home[actor.client]].is_up
        ]
        if not there:
            return []
        asked = {
            actor.client: random_pattern(random)
            for actor in random.sample(there, min(2, len(there)))
        }
        for client, pattern in asked.items():
            self.actors[client].is_known = True
            world.request(client, m.Subscribe(pattern))
        self._rest()
        oracles = {client: SequenceMatcher(pattern) for client, pattern in asked.items()}
        wanted: dict[Client, list[tuple[Event, ...]]] = {client: [] for client in asked}
        begun = world.now_us
        for actor in there:
            actor.sequences.clear()
        for number in range(self.mix.probes):
            publisher = random.choice(there)
            time_us = begun + (number + 1) * 100_000
            event = Event(self._event_of(publisher).attributes, from_us(time_us))
            world.at(time_us, partial(world.request, publisher.client, m.Publish(event)))
            if self._may_publish(publisher, event):
                near = self._reachable(world.home[publisher.client])
                for client in asked:
                    if world.home[client] in near:
                        wanted[client] += oracles[client].feed(event)
        self._rest()
        found = [
            f"{client.identity} at {world.home[client]} got {len(self.actors[client].sequences)} "
            f"sequences for {asked[client]}, not {len(wanted[client])}"
            for client in asked
            if self.actors[client].sequences != wanted[client]
        ]
        for client, pattern in asked.items():
            world.request(client, m.Unsubscribe(pattern))
        self._rest()
        left = [name for name, site in world.sites.items() if len(site.broker.patterns)]
        return found + [f"{name} still looks for patterns" for name in left]

    def _event_of(self, publisher: Actor) -> Event:
        """An event, most often one that the publisher may publish."""
        for _ in range(10):
            event = random_event(self.random)
            if self._may_publish(publisher, event):
                break
        return Event(event.attributes, from_us(self.world.now_us))

    def _may_publish(self, publisher: Actor, event: Event) -> bool:
        return not self.needs_advertisements or any(
            each.allows(event) for each in publisher.advertisements
        )

    def _oracle(self, publisher: Actor, event: Event) -> set[Client]:
        if not self._may_publish(publisher, event):
            return set()
        near = self._reachable(self.world.home[publisher.client])
        return {
            actor.client
            for actor in self.actors.values()
            if self.world.home[actor.client] in near
            and actor.wants(event, self._variables(actor.client))
        }

    def _variables(self, client: Client) -> Mapping[str, Value]:
        broker = self.world.sites[self.world.home[client]].broker
        return broker.variables.known.values

    def _reachable(self, broker: Peer) -> set[Peer]:
        seen = {broker}
        waiting = [broker]
        for each in waiting:
            for near in self.world.topology.neighbours(each):
                if near not in seen and self.world.lines[each, near].is_up:
                    seen.add(near)
                    waiting.append(near)
        return seen


def _has(actor: Actor, event: Event) -> bool:
    return any(each.event.attributes is event.attributes for each in actor.received)


def _unfit(actor: Actor, variables: Iterable[Mapping[str, Value]]) -> Iterable[str]:
    """What a client got twice, out of order, or without ever having asked for it."""
    for each in actor.received:
        if not actor.ever_asked(each.event, variables):
            yield f"{actor.client.identity} never asked for {_shown(each.event)}"
    last: dict[tuple[Peer, int], Stamp] = {}
    for each in actor.received:
        source = each.stamp.broker, each.stamp.begun
        before = last.get(source)
        if before is not None and before >= each.stamp:
            yield f"{actor.client.identity} got {tuple(each.stamp)} after {tuple(before)}"
        last[source] = each.stamp


def _shown(event: Event) -> str:
    return str(dict(event.attributes))

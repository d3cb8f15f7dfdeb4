"""A network of processes under load, which are killed at random points; its history is judged."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from support import history as h
from support.forked_processes import ForkedProcess, ForkServer
from support.history_checker import Finding, findings
from support.history_clients import END, WANTED
from support.linked_brokers import free_ports, until_linked

WAIT_S = 120.0


@dataclass(frozen=True)
class Plan:
    """A network and its load."""

    links: dict[str, str]
    """By broker: the brokers to which it connects."""
    architecture: str = "acyclic"
    routing: str = "subscription"
    publishers: int = 2
    subscribers: int = 3
    events: int = 250
    """Events of each publisher."""
    batch: int = 7
    pause_s: float = 0.02
    kills: int = 10


LINE = {"a": "", "b": "a", "c": "b"}
RING = {"a": "", "b": "a", "c": "ab"}


class KilledNetwork:
    """The processes of one run."""

    def __init__(self, server: ForkServer, folder: Path, plan: Plan, seed: int) -> None:
        self._folder, self._plan = folder, plan
        self._chance = Random(f"{seed} kills")
        self.killed: Counter[str] = Counter()
        names = list(plan.links)
        self._ports = ports = dict(zip(names, free_ports(len(names)), strict=True))
        self._brokers = [
            ForkedProcess(
                server, "broker", folder / f"broker-{name}.log",
                {
                    "name": name, "port": ports[name], "data": str(folder / name),
                    "peers": [ports[peer] for peer in plan.links[name]],
                    "architecture": plan.architecture, "routing": plan.routing,
                },
            )
            for name in names
        ]  # fmt: skip
        urls = [f"tidegate://127.0.0.1:{port}" for port in ports.values()]
        self._publishers = [
            self._client(
                server, "publisher", f"pub{index}", urls[-index % len(urls)], seed,
                {"count": plan.events, "batch": plan.batch, "pause_s": plan.pause_s},
            )
            for index in range(plan.publishers)
        ]  # fmt: skip
        kinds = sorted(WANTED)
        self._subscribers = [
            self._client(
                server, "subscriber", f"sub{index}", urls[-1 - index % len(urls)], seed,
                {
                    "names": [kinds[(index + each) % len(kinds)] for each in range(2)],
                    "publishers": plan.publishers,
                },
            )
            for index in range(plan.subscribers)
        ]  # fmt: skip

    def _client(
        self, server: ForkServer, program: str, name: str, url: str, seed: int, more: dict[str, Any]
    ) -> ForkedProcess:
        own: dict[str, Any] = {
            "url": url,
            "identity": name,
            "log": str(self._history(name)),
            "seed": seed,
        }
        return ForkedProcess(server, program, self._folder / f"{name}.log", {**own, **more})

    def _history(self, client: str) -> Path:
        return self._folder / f"{client}.history"

    def _histories(self, prefix: str = "") -> list[list[h.AnyRecord]]:
        return [h.read(each) for each in sorted(self._folder.glob(f"{prefix}*.history"))]

    # -- a run ----------------------------------------------------------------------------------

    def run(self) -> list[Finding]:
        """Kill at points that the seed draws until all events are through; judge the history."""
        processes = [*self._brokers, *self._publishers, *self._subscribers]
        try:
            for each in self._brokers:
                each.start()
            asyncio.run(self._until_linked())
            for each in self._subscribers:
                each.start()
            self._until(lambda: self._are_subscribed())
            for each in self._publishers:
                each.start()
            for kill in range(1, self._plan.kills + 1):
                self._until_published(kill / (self._plan.kills + 1))
                time.sleep(self._chance.random() / 50)  # not only where a client has just logged
                self._kill_one()
            self._until_ended([*self._publishers, *self._subscribers])
        finally:
            for each in processes:
                each.kill()
        return findings(h.merged(self._histories()))

    async def _until_linked(self) -> None:
        """Wait until subscriptions go over each link, both ways."""
        for name, peers in self._plan.links.items():
            for peer in peers:
                await until_linked(self._ports[name], self._ports[peer])
                await until_linked(self._ports[peer], self._ports[name])

    def _are_subscribed(self) -> bool:
        """Whether all subscribers hear of the end of each publisher."""
        logs = self._histories("sub")
        return len(logs) == len(self._subscribers) and all(
            any(isinstance(each, h.InForce) and each.name == END for each in log) for log in logs
        )

    def _kill_one(self) -> None:
        """Kill a broker at the edge or within, a publisher or a subscriber; start it again."""
        all_kinds = {
            "edge": [self._brokers[0], self._brokers[-1]], "inner": self._brokers[1:-1],
            "publisher": self._publishers, "subscriber": self._subscribers,
        }  # fmt: skip
        kinds = {kind: victims for kind, victims in all_kinds.items() if victims}
        # Each kind in turn, so that few kills have all of them.
        fewest = min(self.killed[kind] for kind in kinds)
        kind = self._chance.choice([each for each in kinds if self.killed[each] == fewest])
        self.killed[kind] += 1
        victim = self._chance.choice(kinds[kind])
        victim.kill()
        victim.start()

    def _until_published(self, share: float) -> None:
        wanted = share * self._plan.events * self._plan.publishers
        self._until(lambda: self._confirmed() >= wanted)

    def _confirmed(self) -> int:
        return sum(
            max((each.number for each in log if isinstance(each, h.Confirmed)), default=0)
            for log in self._histories("pub")
        )

    def _until_ended(self, clients: Sequence[ForkedProcess]) -> None:
        for each in clients:
            self._until(lambda client=each: client.exit_code() is not None)  # type: ignore[misc]

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"nothing goes on in {self._folder}: {self.state()}")
            time.sleep(0.02)

    def state(self) -> dict[str, str]:
        """The last record of each client, to see where it stands."""
        return {log[-1].client: str(log[-1]) for log in self._histories() if log}

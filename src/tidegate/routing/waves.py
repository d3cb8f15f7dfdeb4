"""Waves: a broker learns when all others have taken in what it sent before.

A probe goes down the broker's tree, behind all that was sent before on the same links. A broker
that has had the echoes of all it passed a probe to, or has nobody to pass it to, sends an echo back
(the echo algorithm). Links keep the order of messages, so when the wave is back, what was sent
before it is in force everywhere, and what was on its way here before that has come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.routing.messages import Echo, Outgoing, Peer, Probe
from tidegate.routing.strategies import BrokerDomains

AfterWave = Callable[[], Outgoing]
Result = tuple[Outgoing, list[AfterWave]]
"""What to send, and what to do now that a wave is back."""


@dataclass(slots=True)
class _Wave:
    """A wave that has not come back from everywhere."""

    sender: Peer | None
    pending: set[Peer]
    done: AfterWave | None


class Waves:
    """The waves that pass a broker."""

    def __init__(self, me: Peer, around: BrokerDomains) -> None:
        self._me = me
        self._around = around
        self._started = 0
        self._waves: dict[tuple[Peer, int], _Wave] = {}

    def __len__(self) -> int:
        return len(self._waves)

    def start(self, done: AfterWave) -> Result:
        """Start a wave."""
        self._started += 1
        return self._pass_on(Probe(self._me, self._started), None, done)

    def probed(self, probe: Probe, peer: Peer) -> Result:
        """Take part in the wave of another broker."""
        return self._pass_on(probe, peer, None)

    def echoed(self, echo: Echo, peer: Peer) -> Result:
        """Take note that a wave is back from a neighbour."""
        return self._back(echo.origin, echo.number, peer)

    def lost(self, peer: Peer) -> Result:
        """Wait no longer for a neighbour that is gone."""
        sent: Outgoing = []
        actions: list[AfterWave] = []
        for (origin, number), wave in list(self._waves.items()):
            if wave.sender == peer:
                del self._waves[origin, number]
            elif peer in wave.pending:
                more, done = self._back(origin, number, peer)
                sent += more
                actions += done
        return sent, actions

    def _pass_on(self, probe: Probe, sender: Peer | None, done: AfterWave | None) -> Result:
        if (probe.origin, probe.number) in self._waves and sender is not None:
            return [(sender, Echo(probe.origin, probe.number))], []  # it came on another way too
        sent: Outgoing = []
        pending: set[Peer] = set()
        for domain, tree, source in self._around.ways_of(sender, probe.tree):
            for peer in domain.onward(tree, source):
                pending.add(peer)
                sent.append((peer, Probe(probe.origin, probe.number, tree)))
        self._waves[probe.origin, probe.number] = _Wave(sender, pending, done)
        if pending:
            return sent, []
        return self._finish(probe.origin, probe.number)

    def _back(self, origin: Peer, number: int, peer: Peer) -> Result:
        wave = self._waves.get((origin, number))
        if wave is None:
            return [], []
        wave.pending.discard(peer)
        return ([], []) if wave.pending else self._finish(origin, number)

    def _finish(self, origin: Peer, number: int) -> Result:
        wave = self._waves.pop((origin, number))
        if wave.done is not None:
            return [], [wave.done]
        assert wave.sender is not None
        return [(wave.sender, Echo(origin, number))], []

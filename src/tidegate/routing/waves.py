"""Waves: how a broker learns that all other brokers have handled what it sent before.

Rules (the echo algorithm; probe and echo as in Chang, 1982).

(1) A broker passes a probe on down the tree, behind everything that it has sent on the same links.
(2) It sends an echo back when all neighbours to which it has passed the probe have sent theirs; at
    once, if there are none.

Links keep the order of messages. So a probe comes to a broker after whatever was sent before it,
and an echo comes back after whatever was on its way here before. When a wave is back at its origin:

- what the origin sent before the wave is in force at all brokers (confirmations of an update);
- events that were on their way to the origin before the wave reached their broker have arrived
  (hand-over of a client that moves).

A neighbour whose link goes down is not waited for: what it should have had is void anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.routing.messages import Echo, Outgoing, Peer, Probe
from tidegate.routing.overlay.broker_domains import BrokerDomains

AfterWave = Callable[[], Outgoing]
"""Action of the origin once its wave is complete; returns messages."""
WaveResult = tuple[Outgoing, list[AfterWave]]
"""Messages, and the actions of the waves that are complete at this broker, their origin.

The callbacks are returned and not called, because they may change the tables of the broker and
start other waves.
"""


@dataclass(slots=True)
class _Wave:
    """A wave that this broker has passed on and that has not come back from all neighbours."""

    sender: Peer | None
    """The neighbour that gets the echo; None at the origin."""
    pending: dict[Peer, Probe]
    """The neighbours whose echo is missing, with what they were sent."""
    done: AfterWave | None
    """None unless this is the origin."""


class Waves:
    """The waves that started at a broker or pass it."""

    def __init__(self, me: Peer, domains: BrokerDomains, begun_us: int) -> None:
        self._me = me
        self._domains = domains
        self._last_number = begun_us
        """Numbers go on over restarts: other brokers may still know a wave from before."""
        self._waves: dict[tuple[Peer, int], _Wave] = {}
        """By origin and number, which counts the waves of the origin."""

    def __len__(self) -> int:
        return len(self._waves)

    def start(self, done: AfterWave) -> WaveResult:
        """Start a wave, and call ``done`` when it is back."""
        self._last_number += 1
        return self._pass_on(Probe(self._me, self._last_number), None, done)

    def on_probe(self, probe: Probe, peer: Peer) -> WaveResult:
        """Pass on the wave of another broker."""
        return self._pass_on(probe, peer, None)

    def on_echo(self, echo: Echo, peer: Peer) -> WaveResult:
        """Note that a wave is back from a neighbour."""
        return self._echoed(echo.origin, echo.number, peer)

    def on_link_lost(self, peer: Peer) -> WaveResult:
        """Stop waiting for a neighbour whose link is down, and forget the waves it has sent."""
        sent: Outgoing = []
        actions: list[AfterWave] = []
        for (origin, number), wave in list(self._waves.items()):
            if wave.sender == peer:
                del self._waves[origin, number]
            elif peer in wave.pending:
                more, done = self._echoed(origin, number, peer)
                sent += more
                actions += done
        return sent, actions

    def on_restart(self, peer: Peer) -> Outgoing:
        """Probe a neighbour again that has restarted, and forget the waves it has sent."""
        for wave_id in [id for id, wave in self._waves.items() if wave.sender == peer]:
            del self._waves[wave_id]
        return [(peer, wave.pending[peer]) for wave in self._waves.values() if peer in wave.pending]

    def _pass_on(self, probe: Probe, sender: Peer | None, done: AfterWave | None) -> WaveResult:
        passing = self._waves.get((probe.origin, probe.number))
        if passing is not None and sender is not None:
            if passing.sender == sender:
                return [], []  # it is probed again after a restart: the echo is still to come
            # It has come along another path too, as can happen while links change.
            return [(sender, Echo(probe.origin, probe.number))], []
        pending: dict[Peer, Probe] = {}
        for domain, tree, source in self._domains.trees_from(sender, probe.tree):
            for peer in domain.downstream(tree, source):
                pending[peer] = Probe(probe.origin, probe.number, tree)
        self._waves[probe.origin, probe.number] = _Wave(sender, pending, done)
        if pending:
            return list(pending.items()), []
        return self._finish(probe.origin, probe.number)

    def _echoed(self, origin: Peer, number: int, peer: Peer) -> WaveResult:
        wave = self._waves.get((origin, number))
        if wave is None:  # forgotten, because its sender was lost
            return [], []
        wave.pending.pop(peer, None)
        return ([], []) if wave.pending else self._finish(origin, number)

    def _finish(self, origin: Peer, number: int) -> WaveResult:
        wave = self._waves.pop((origin, number))
        if wave.done is not None:
            return [], [wave.done]
        assert wave.sender is not None
        return [(wave.sender, Echo(origin, number))], []

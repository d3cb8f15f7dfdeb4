"""Publications that were refused although they asked for a confirmation.

The number of a refused publication counts as taken. If its publisher has not heard of the refusal,
because the connection broke or the broker was killed, it sends the publication again, and must be
told the same, not that it is confirmed. So refusals are stored in the transaction that stores how
far a publisher's numbers were taken; the last ones are kept.

    kind      owner       key                  value
    refused   identity    [epoch, number]      `Problem`
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from tidegate.network.store.transaction import Transaction
from tidegate.network.wire.problems import Problem

_log = logging.getLogger(__name__)

REFUSED = "refused"
REFUSED_MAX = 65_536
"""Refusals that are kept, of all publishers together."""

_encode = msgspec.msgpack.Encoder().encode
_key = msgspec.msgpack.Decoder(tuple[int, int])
_problem = msgspec.msgpack.Decoder(Problem)


class _Number(NamedTuple):
    identity: str
    epoch: int
    number: int

    @property
    def key(self) -> bytes:
        return _encode((self.epoch, self.number))


class Refusals:
    """The last refusals of a broker."""

    def __init__(self, refused_max: int = REFUSED_MAX) -> None:
        self._refused_max = refused_max
        self._problems: dict[_Number, Problem] = {}

    def __len__(self) -> int:
        return len(self._problems)

    def add(
        self, identity: str, epoch: int, number: int, problem: Problem, transaction: Transaction
    ) -> None:
        """Keep a refusal, and forget the oldest one if there are too many."""
        refused = _Number(identity, epoch, number)
        self._problems[refused] = problem
        transaction.put_state(REFUSED, identity, refused.key, _encode(problem))
        while len(self._problems) > self._refused_max:
            self._remove(next(iter(self._problems)), transaction)

    def take_back(self, identity: str, epoch: int, number: int, transaction: Transaction) -> None:
        """Forget a refusal: the number does not count as taken."""
        self._remove(_Number(identity, epoch, number), transaction)

    def _remove(self, refused: _Number, transaction: Transaction) -> None:
        if self._problems.pop(refused, None) is not None:
            transaction.remove_state(REFUSED, refused.identity, refused.key)

    def among(
        self, identity: str, epoch: int, first: int, count: int
    ) -> Iterator[tuple[int, Problem]]:
        """Those of a range of numbers that were refused."""
        for number in range(first, first + count):
            problem = self._problems.get(_Number(identity, epoch, number))
            if problem is not None:
                yield number, problem

    def restore(self, state: Iterable[tuple[str, str, bytes, bytes]]) -> None:
        """Go on with what the store has kept."""
        for kind, identity, key, value in state:
            if kind != REFUSED:
                continue
            try:
                refused = _Number(identity, *_key.decode(key))
                self._problems[refused] = _problem.decode(value)
            except msgspec.DecodeError as error:
                _log.error("a refusal of %r cannot be restored: %s", identity, error)

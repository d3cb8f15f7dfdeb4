"""Rates: how many events and requests an identity may send in a second.

An identity may send as much as it likes while its bucket is not empty, so a frame is never cut up;
what it has taken too much is made up for before it may send again. A bucket holds what flows in
within a second.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.errors import LimitError
from tidegate.network.server.settings import ClientLimits

BUCKETS_MAX = 10_000
"""Buckets that are kept; those that are full again can be forgotten."""


class TokenBucket:
    """What one identity may still send.

    >>> bucket = TokenBucket(10.0, now=0.0)
    >>> bucket.take(25)
    >>> bucket.wait_s(now=1.0), bucket.wait_s(now=2.0)
    (0.5, 0.0)
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._level = rate
        self._at = now

    def wait_s(self, now: float) -> float:
        """How long to wait until more may be sent; 0 if it may be now."""
        self._level = min(self._rate, self._level + max(0.0, now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._level > 0 else max(-self._level, 1e-3) / self._rate

    def take(self, count: int) -> None:
        """Note that something was sent."""
        self._level -= count

    @property
    def is_full(self) -> bool:
        """Whether it is as a new one."""
        return self._level >= self._rate


class RateLimit:
    """One limit, for each identity by itself."""

    def __init__(self, rate: float | None, clock: Callable[[], float]) -> None:
        """None for no limit; ``clock`` is in seconds."""
        self._rate = rate
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}

    def wait_s(self, identity: str) -> float:
        """How long an identity has to wait; 0 if it need not."""
        return (
            0.0 if self._rate is None else self._bucket(identity, self._rate).wait_s(self._clock())
        )

    def take(self, identity: str, count: int) -> None:
        """Note what an identity has sent."""
        if self._rate is not None:
            self._bucket(identity, self._rate).take(count)

    def _bucket(self, identity: str, rate: float) -> TokenBucket:
        bucket = self._buckets.get(identity)
        if bucket is None:
            now = self._clock()
            if len(self._buckets) >= BUCKETS_MAX:
                for each in self._buckets.values():
                    each.wait_s(now)
                kept = {name: each for name, each in self._buckets.items() if not each.is_full}
                self._buckets = kept
            bucket = self._buckets[identity] = TokenBucket(rate, now)
        return bucket


class Rates:
    """The limits on rates of a broker."""

    def __init__(
        self, limits: ClientLimits, clock: Callable[[], float], name_of: Callable[[str], str]
    ) -> None:
        """``name_of`` has the name under which an identity is counted."""
        self._limits = limits
        self._clock = clock
        self._name_of = name_of
        self._events = RateLimit(limits.event_rate_max, clock)
        self._requests = RateLimit(limits.request_rate_max, clock)
        self.slows = limits.over_rate == "slow"
        """Whether who is too fast has to wait; else it is refused."""

    def release(self) -> None:
        """Let everybody go on, because the broker drains."""
        self._events = self._requests = RateLimit(None, self._clock)

    def events_wait_s(self, identity: str) -> float:
        """How long an identity has to wait before its next events."""
        return self._events.wait_s(self._name_of(identity))

    def took_events(self, identity: str, count: int) -> None:
        """Count events."""
        self._events.take(self._name_of(identity), count)

    def requests_wait_s(self, identity: str) -> float:
        """How long an identity has to wait before its next request."""
        return self._requests.wait_s(self._name_of(identity))

    def took_requests(self, identity: str, count: int) -> None:
        """Count requests; a row of many subscriptions counts as one."""
        self._requests.take(self._name_of(identity), count)

    def too_many_events(self) -> LimitError:
        """Why events were refused."""
        most = round(self._limits.event_rate_max or 0)
        return LimitError("too many events in a second", "event_rate_max", most)

    def too_many_requests(self) -> LimitError:
        """Why a request was refused."""
        most = round(self._limits.request_rate_max or 0)
        return LimitError("too many requests in a second", "request_rate_max", most)

"""The engine: subscriptions and matching inside one process."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidegate.errors import (
    EventError,
    SnapshotError,
    SubscriptionError,
    UnsetParameterWarning,
)
from tidegate.language.events import Event
from tidegate.language.evolve import Evolve, check_evolve
from tidegate.language.filters import Filter, check_values, parse
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.values import to_us, to_value
from tidegate.language.variables import Provider, Variables
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.batches import EventBatch, times_us_of, wall_clock
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.evolving.cached import CachedMatcher
from tidegate.matching.evolving.lazy import LazyMatcher
from tidegate.matching.evolving.periodic import PeriodicMatcher
from tidegate.matching.explain import Explanation, explain
from tidegate.matching.matcher import PinningMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.poset.matcher import PosetMatcher
from tidegate.matching.records import (
    SubscriptionRecord,
    checked_parameters,
    records_of,
    subscription_of,
)
from tidegate.matching.rete.matcher import ReteMatcher
from tidegate.matching.subscription import Moment, Subscription

MATCHERS: dict[str, Callable[[], PinningMatcher]] = {
    "columnar": ColumnarMatcher,
    "naive": NaiveMatcher,
    "poset": lambda: PeriodicMatcher(LazyMatcher(PosetMatcher())),
    "rete": lambda: PeriodicMatcher(LazyMatcher(ReteMatcher(), only_cached=True)),
}
"""The matchers by name. Those that can only hold filters that stand still are wrapped."""


@dataclass(frozen=True, slots=True)
class EngineSubscription:
    """A subscription of an engine, to be changed and cancelled."""

    id: str
    _engine: Engine

    def update(self, parameters: Mapping[str, object] | None = None, **more: object) -> None:
        """Change parameters, all at once; in force when this returns."""
        self._engine.update(self.id, parameters, **more)

    def cancel(self) -> None:
        """End the subscription."""
        self._engine.cancel(self.id)


class Engine:
    """Finds, for each event, the subscriptions whose filters match it.

    >>> engine = Engine()
    >>> sub = engine.subscribe("symbol = 'IBM' and price < :limit", limit=10.0)
    >>> engine.match({"symbol": "IBM", "price": 9.5}) == [sub.id]
    True
    >>> sub.update(limit=5.0)
    >>> engine.match({"symbol": "IBM", "price": 9.5})
    []

    ``matcher`` names what is inside: "columnar", "poset", the covering poset of Siena, "rete", a
    Rete network, or "naive", the oracle. ``clock`` gives the time at which subscriptions begin and
    events are judged that do not say; the default is the time of day. A clock that gives None stops
    time: `t` is 0 and `now()` undefined.
    """

    def __init__(
        self,
        *,
        matcher: str = "columnar",
        clock: Callable[[], datetime | None] = wall_clock,
    ) -> None:
        if matcher not in MATCHERS:
            raise SubscriptionError(
                f"there is no matcher {matcher!r}; there are {', '.join(sorted(MATCHERS))}"
            )
        self._inner = MATCHERS[matcher]()
        self._matcher = CachedMatcher(self._inner)
        self._clock = clock
        self._variables = Variables()
        self._lock = threading.Lock()
        self._made = 0

    def __len__(self) -> int:
        return len(self._matcher)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and id in self._matcher

    # -- subscriptions ------------------------------------------------------------------------

    def subscribe(
        self,
        filter: str | Filter,
        *,
        id: str | None = None,
        subscriber: str | None = None,
        since: datetime | None = None,
        evolve: Evolve | None = None,
        parameters: Mapping[str, object] | None = None,
        **more: object,
    ) -> EngineSubscription:
        """Add a subscription, with the values of its parameters by name.

        A parameter may also stand in ``parameters``, which one named like an argument must. One
        that has no value yet satisfies nothing. ``evolve`` says when a filter that moves with time
        is evaluated: `Lazy()`, which is the default, `Periodic(interval)` or `Cached(threshold)`.

        >>> from datetime import UTC, datetime, timedelta
        >>> from tidegate import Periodic
        >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
        >>> engine = Engine()
        >>> sub = engine.subscribe("x < 3 + t", since=noon, evolve=Periodic(1.0))
        >>> engine.match({"x": 3.2}, time=noon + timedelta(seconds=0.5))
        []
        >>> engine.match({"x": 3.2}, time=noon + timedelta(seconds=1)) == [sub.id]
        True
        """
        check_evolve(evolve)
        parsed = filter if isinstance(filter, Filter) else parse(filter)
        values = checked_parameters(parsed.parameters, {**(parameters or {}), **more})
        unset = [name for name in parsed.parameters if name not in values]
        if unset:
            warnings.warn(
                f"parameter :{unset[0]} has no value; until it has, the filter matches nothing",
                UnsetParameterWarning,
                stacklevel=2,
            )
        kept = {name: value for name, value in values.items() if value is not None}
        with self._lock:
            chosen = self._new_id() if id is None else id
            begun = self._since(since)
            new = Subscription(chosen, parsed, kept, begun, subscriber, evolve=evolve)
            self._matcher.add([new])
        return EngineSubscription(chosen, self)

    def subscribe_batch(self, table: pa.Table | pa.RecordBatch) -> list[str]:
        """Add the subscriptions of an Arrow table, all or none; gives their ids.

        Columns are `id` and `filter` and, where wanted, `subscriber`, `params` (a struct or map of
        values, or a JSON object as a string), `evolve` (`lazy`, `periodic 1 s` or `cached 1 s`),
        `since` and `until`.
        """
        return self.subscribe_records(records_of(table))

    def subscribe_records(self, records: Iterable[SubscriptionRecord]) -> list[str]:
        """Add subscriptions, all or none; gives their ids.

        Filters are read in bulk, which is quick where many have one shape; the oracle reads each
        by itself.
        """
        parser = None if isinstance(self._inner, NaiveMatcher) else BulkParser()
        ids: list[str] = []

        def subscriptions() -> Iterator[Subscription]:
            for record in records:
                ids.append(record.id)
                subscription = subscription_of(record, parser)
                if subscription.since is None:
                    subscription = replace(subscription, since=self._since(None))
                yield subscription

        with self._lock:
            self._matcher.add(subscriptions())
        return ids

    def _new_id(self) -> str:
        while True:
            self._made += 1
            if f"s{self._made}" not in self._matcher:
                return f"s{self._made}"

    def _since(self, since: datetime | None) -> int | None:
        time = to_value(since) if since is not None else self._clock()
        return to_us(time) if isinstance(time, datetime) else None

    def get(self, id: str) -> Subscription:
        """A subscription as it stands: its filter, parameters, beginning and subscriber."""
        try:
            return self._matcher.get(id)
        except KeyError:
            raise _unknown(id) from None

    def update(
        self, id: str, parameters: Mapping[str, object] | None = None, **more: object
    ) -> None:
        """Change parameters of a subscription, all at once; in force when this returns."""
        raw = {**parameters, **more} if parameters else more
        values = check_values("parameter :", raw)
        try:
            self._matcher.update(id, values)
        except KeyError:
            raise _unknown(id) from None

    def update_batch(self, updates: Mapping[str, Mapping[str, object]]) -> None:
        """Change parameters of many subscriptions, by id: all or none, and quicker than one by one.

        >>> engine = Engine()
        >>> for id in ("a", "b"):
        ...     _ = engine.subscribe("price < :limit", id=id, limit=5)
        >>> engine.update_batch({"a": {"limit": 9}, "b": {"limit": 8}})
        >>> engine.match({"price": 8.5})
        ['a']
        """
        checked = {id: check_values("parameter :", raw) for id, raw in updates.items()}
        try:
            if isinstance(self._inner, ColumnarMatcher):
                self._inner.update_many(checked)
                self._matcher.drop_versions(checked)
                return
            for id, values in checked.items():
                self._matcher.get(id).updated(values)  # before the first of them is changed
            for id, values in checked.items():
                self._matcher.update(id, values)
        except KeyError as error:
            raise _unknown(error.args[0]) from None

    def cancel(self, id: str) -> None:
        """End a subscription."""
        try:
            self._matcher.remove(id)
        except KeyError:
            raise _unknown(id) from None

    # -- variables ----------------------------------------------------------------------------

    def set_variables(self, **variables: object) -> None:
        """Set variables that filters see as `@name`; None takes one away."""
        self._variables.set(**variables)

    def provide(self, name: str, provider: Provider | None) -> None:
        """Have a function asked for a variable at the moment of each event; None takes it away.

        It is given the time of the event, None where there is none, and is asked only if a filter
        uses the variable. `@time_of_day`, the seconds since midnight UTC, is there already.

        >>> engine = Engine()
        >>> engine.provide("weekend", lambda time: time.weekday() >= 5)
        >>> sub = engine.subscribe("closed = @weekend")
        """
        self._variables.provide(name, provider)

    # -- snapshots ----------------------------------------------------------------------------

    def snapshot(self, path: str | Path) -> None:
        """Write all subscriptions, indexed, to one Arrow file that can be memory-mapped."""
        if not isinstance(self._inner, ColumnarMatcher):
            raise SnapshotError("only an engine with the columnar matcher can be written to a file")
        with self._lock:
            self._inner.save(path)

    @classmethod
    def restore(
        cls, path: str | Path, *, clock: Callable[[], datetime | None] = wall_clock
    ) -> Engine:
        """An engine with the subscriptions of a snapshot; changes to it leave the file alone."""
        engine = cls(clock=clock)
        loaded = engine._inner = ColumnarMatcher.load(path)
        engine._matcher = CachedMatcher(loaded)
        engine._matcher.resume(loaded.cached())
        return engine

    # -- matching -----------------------------------------------------------------------------

    def match(
        self, event: Event | Mapping[str, object], *, time: datetime | None = None
    ) -> list[str]:
        """The ids of the subscriptions that match an event, in no particular order.

        The event is judged at ``time``, else at its own publication time, else now.
        """
        taken = Event.of(event, time)
        return self.match_at(taken, self.moment(taken))

    def match_at(self, event: Event, moment: Moment) -> list[str]:
        """The ids of the subscriptions that match an event judged at a moment."""
        return self._matcher.match(event, moment)

    def match_batch(
        self,
        events: pa.Table | pa.RecordBatch | Sequence[Event | Mapping[str, object]],
        *,
        event_time: str | None = None,
    ) -> pa.Table:
        """Match many events: a table of pairs, `event` (its index) and `subscription` (an id).

        ``event_time`` names the column, of timestamps, that has the time at which each event is
        judged. Without it they are judged now; events that carry their own time, at that.
        """
        if isinstance(events, (pa.Table, pa.RecordBatch)):
            batch = self._timed(EventBatch.of(events), event_time)
        else:
            taken = [Event.of(each) for each in events]
            batch = self._timed(EventBatch.of_events(taken), event_time)
            if event_time is None and any(each.time is not None for each in taken):
                moments = [self.moment(each).time_us for each in taken]
                known = [NO_TIME if each is None else each for each in moments]
                batch = batch.judged_at(np.array(known, np.int64))
        return self._matcher.match_batch(batch.knowing(self._variables.known)).to_table()

    def _timed(self, batch: EventBatch, event_time: str | None) -> EventBatch:
        if event_time is None:
            return batch.at(self._clock())
        column = batch.column(event_time)
        if column is None:
            raise EventError(f"the events have no column {event_time!r} with their time")
        return batch.judged_at(times_us_of(column, event_time))

    def moment(self, event: Event | None = None) -> Moment:
        """When an event is judged, at its own time or now, with the variables as they are."""
        time = (None if event is None else event.time) or self._clock()
        time_us = None if time is None else to_us(time)
        return Moment(time_us, self._variables.at(time_us))

    def explain(
        self, id: str, event: Event | Mapping[str, object], *, time: datetime | None = None
    ) -> Explanation:
        """Why a subscription does or does not match an event, predicate by predicate."""
        taken = Event.of(event, time)
        return explain(self.get(id), taken, self.moment(taken))


def _unknown(id: str) -> SubscriptionError:
    return SubscriptionError(f"there is no subscription {id!r}")

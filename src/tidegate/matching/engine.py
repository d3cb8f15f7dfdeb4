"""The engine: subscriptions and matching inside one process.

An engine checks what users give it (filters, parameters, events) and turns it into the values that
matchers work on; a matcher checks no more than ids and parameter names. Around the matcher that the
user chose, `CachedMatcher` adds the one mode of evolution that depends on which events came before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa

from tidegate.errors import (
    EventError,
    SnapshotError,
    SpaceError,
    SubscriptionError,
    TidegateError,
    UnsetParameterWarning,
)
from tidegate.language.events import Event
from tidegate.language.evolve import Evolve, check_evolve
from tidegate.language.filters import Filter, check_values, parse
from tidegate.language.json_values import values_from_json, values_to_json
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.space_json import space_from_json, space_to_json
from tidegate.language.spaces import Space
from tidegate.language.values import to_us
from tidegate.language.variables import Provider, Variables
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.batches import EventBatch, misfits, times_us_of, wall_clock
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.evolving.cached import CachedMatcher
from tidegate.matching.explain import Explanation, explain
from tidegate.matching.forking import Rank, forkable_lock
from tidegate.matching.matcher import PinningMatcher, SnapshotMatcher, Updates
from tidegate.matching.records import (
    SubscriptionRecord,
    checked_parameters,
    records_of,
    subscription_of,
    text_of,
    time_of,
)
from tidegate.matching.registry import matcher_entry
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.tuning import TreeTuning
from tidegate.matching.variable_uses import VariableUses

_SPACE_NOTE, _VARIABLES_NOTE = "space", "variables"


@dataclass(frozen=True, slots=True)
class EngineSubscription:
    """A handle to a subscription of an engine, to update and to cancel it."""

    id: str
    _engine: Engine

    def update(self, parameters: Mapping[str, object] | None = None, **more: object) -> None:
        """Change parameters, all at once; the change is in force when this returns."""
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

    ``matcher`` names the matcher inside: "columnar"; "tree" (the search tree of Gryphon), which is
    faster where filters ask for equality with few values, but takes more memory and is many times
    slower where they ask for ranges (a `TreeTuning` in place of the name has its settings); "poset"
    (the covering poset of Siena), "rete" (a Rete network), "summary" (a subscription summary) or
    "naive" (the oracle).

    ``clock`` returns the time of subscriptions and events that have none of their own; the default
    is the time of day. With a clock that returns None there is no time: `t` is 0 and `now()`
    undefined. With a ``space``, whatever does not fit it is refused, and nothing has changed then:
    subscriptions and updates with a FilterError, events with an EventError.
    """

    def __init__(
        self,
        *,
        matcher: str | TreeTuning = "columnar",
        clock: Callable[[], datetime | None] = wall_clock,
        space: Space | None = None,
    ) -> None:
        entry = matcher_entry(matcher)
        self._parses_in_bulk = entry.parses_in_bulk
        self._inner: PinningMatcher = entry.make()
        self._matcher = CachedMatcher(self._inner)
        self._clock = clock
        if not isinstance(space, Space | None):
            raise SpaceError(f"the space of an engine is a Space, not {type(space).__name__}")
        self._space = space
        self._variables = Variables()
        self._changing_variables = forkable_lock(Rank.ENGINE)
        self._variables_used = VariableUses()
        self._numbers = count(1)
        """For the ids of subscriptions that are given none."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Engine can be neither copied nor pickled; write it to a file with snapshot() and "
            "read it with Engine.restore()"
        )

    @property
    def space(self) -> Space | None:
        """The space that events and subscriptions must fit; attributes can be added to it."""
        return self._space

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
        since: datetime | str | None = None,
        evolve: Evolve | None = None,
        parameters: Mapping[str, object] | None = None,
        **more: object,
    ) -> EngineSubscription:
        """Add a subscription, with the values of its parameters by name.

        Parameters may also be given in ``parameters``; one named like an argument must be. A
        parameter without a value satisfies nothing until it has one. ``evolve`` chooses when an
        evolving filter is evaluated: `Lazy()`, the default, `Periodic(interval)` or
        `Cached(threshold)`. It begins now, or at ``since``, which may be an ISO 8601 text.

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
        names = {"id": id, "subscriber": subscriber}
        id, subscriber = text_of(names, "id"), text_of(names, "subscriber")
        parsed = filter if isinstance(filter, Filter) else parse(filter)
        values = checked_parameters(parsed.parameters, {**(parameters or {}), **more})
        kept = {name: value for name, value in values.items() if value is not None}
        if self.space is not None:
            text = filter if isinstance(filter, str) else None
            self.space.check_filter(parsed, kept, text=text)
        unset = [name for name in parsed.parameters if name not in values]
        if unset:
            warnings.warn(
                f"parameter :{unset[0]} has no value; until it has, the filter matches nothing",
                UnsetParameterWarning,
                stacklevel=2,
            )
        begin_us = self._begin_us(since)
        new = Subscription(
            "" if id is None else id, parsed, kept, begin_us, subscriber, evolve=evolve
        )
        self._variables_used.note(parsed.variables)
        try:
            if id is None:
                id = self._add_with_new_id(new)
            else:
                self._matcher.add([new])
        except BaseException:
            self._variables_used.drop(parsed.variables)
            raise
        self._variables_used.enter(id, parsed.variables)
        return EngineSubscription(id, self)

    def subscribe_batch(self, table: pa.Table | pa.RecordBatch) -> list[str]:
        """Add the subscriptions of an Arrow table, all or none; returns their ids.

        Columns are `id` and `filter` and, where wanted, `subscriber`, `params` (a struct or map of
        values, or a JSON object as a string), `evolve` (`lazy`, `periodic 1 s` or `cached 1 s`),
        `since` and `until`.
        """
        if not isinstance(table, (pa.Table, pa.RecordBatch)):
            raise SubscriptionError(f"subscriptions are an Arrow table, not {type(table).__name__}")
        return self.subscribe_records(records_of(table))

    def subscribe_records(self, records: Iterable[SubscriptionRecord]) -> list[str]:
        """Add subscriptions, all or none; returns their ids."""
        parser = BulkParser() if self._parses_in_bulk else None
        ids: list[str] = []
        noted: list[tuple[str, tuple[str, ...]]] = []

        def subscriptions() -> Iterator[Subscription]:
            for record in records:
                ids.append(record.id)
                subscription = subscription_of(record, parser, self.space)
                if subscription.since is None:
                    subscription = replace(subscription, since=self._begin_us(None))
                names = tuple(subscription.filter.variables)
                if names:
                    self._variables_used.note(names)
                    noted.append((record.id, names))
                yield subscription

        try:
            self._matcher.add(subscriptions())
        except BaseException:
            for _, names in noted:
                self._variables_used.drop(names)
            raise
        for id, names in noted:
            self._variables_used.enter(id, names)
        return ids

    def _add_with_new_id(self, subscription: Subscription) -> str:
        """Add a subscription under an id that no other has; returns the id."""
        while True:
            id = f"s{next(self._numbers)}"
            if id in self._matcher:
                continue
            try:
                self._matcher.add([replace(subscription, id=id)])
            except SubscriptionError:
                if id not in self._matcher:
                    raise
                # another thread has given this id to a subscription of its own meanwhile
            else:
                return id

    def _begin_us(self, since: datetime | str | None) -> int | None:
        """When a subscription begins, in microseconds: as given, else now; None without time."""
        time = time_of({"since": since}, "since") or self._clock()
        return None if time is None else to_us(time)

    def get(self, id: str) -> Subscription:
        """A subscription with its filter, current parameters, beginning and subscriber."""
        try:
            return self._matcher.get(id)
        except KeyError:
            raise _unknown(id) from None

    def update(
        self, id: str, parameters: Mapping[str, object] | None = None, **more: object
    ) -> None:
        """Change parameters of a subscription, all at once; in force when this returns.

        None removes the value of a parameter.
        """
        raw = {**parameters, **more} if parameters else more
        values = check_values("parameter :", raw)
        try:
            if self.space is not None:
                self._check_updates({id: values}, self.space)
            self._matcher.update(id, values)
        except KeyError:
            raise _unknown(id) from None

    def update_batch(self, updates: Mapping[str, Mapping[str, object]]) -> None:
        """Change parameters of many subscriptions, by id, all or none; faster than one by one.

        >>> engine = Engine()
        >>> for id in ("a", "b"):
        ...     _ = engine.subscribe("price < :limit", id=id, limit=5)
        >>> engine.update_batch({"a": {"limit": 9}, "b": {"limit": 8}})
        >>> engine.match({"price": 8.5})
        ['a']
        """
        checked = {id: check_values("parameter :", raw) for id, raw in updates.items()}
        try:
            if self.space is not None:
                self._check_updates(checked, self.space)
            self._matcher.update_many(checked)
        except KeyError as error:
            raise _unknown(error.args[0]) from None

    def _check_updates(self, updates: Updates, space: Space) -> None:
        """Raise unless subscriptions fit a space with the new values of their parameters."""
        for id, parameters in updates.items():
            updated = self._matcher.get(id).updated(parameters)
            space.check_filter(updated.filter, updated.parameters)

    def cancel(self, id: str) -> None:
        """End a subscription."""
        names = self._variables_used.leave(id)
        try:
            self._matcher.remove(id)
        except KeyError:
            self._variables_used.drop(names)  # of one that another thread has cancelled
            raise _unknown(id) from None
        self._variables_used.drop(names)

    # -- variables ----------------------------------------------------------------------------

    def set_variables(self, **variables: object) -> None:
        """Set variables that filters see as `@name`; None removes one."""
        with self._changing_variables:
            self._variables.set(**variables)

    def provide(self, name: str, provider: Provider | None) -> None:
        """Call a function for the value of a variable when an event is judged; None removes it.

        The function is called with the time of the event, None if it has none, and only if a filter
        uses the variable. `@time_of_day`, the seconds since midnight UTC, is built in.

        >>> engine = Engine()
        >>> engine.provide("weekend", lambda time: time.weekday() >= 5)
        >>> sub = engine.subscribe("closed = @weekend")
        """
        with self._changing_variables:
            self._variables.provide(name, provider)

    # -- snapshots ----------------------------------------------------------------------------

    def snapshot(self, path: str | Path) -> None:
        """Write all subscriptions, indexed, to one Arrow file that can be memory-mapped.

        The space, the variables that were set and the versions of `Cached` filters are saved with
        them; providers of variables are not. A reader of the path finds the old file or the new
        one, never half of one.
        """
        if not isinstance(self._inner, SnapshotMatcher):
            raise SnapshotError("only an engine with the columnar matcher can be written to a file")
        self._inner.save(path, notes=self._notes)

    def _notes(self) -> dict[str, object]:
        """What a snapshot has beside the subscriptions; read while these do not change."""
        notes: dict[str, object] = {_VARIABLES_NOTE: values_to_json(self._variables.state.values)}
        if self.space is not None:
            notes[_SPACE_NOTE] = space_to_json(self.space)
        return notes

    @classmethod
    def restore(
        cls,
        path: str | Path,
        *,
        clock: Callable[[], datetime | None] = wall_clock,
        space: Space | None = None,
        mapped: bool = True,
    ) -> Engine:
        """An engine with the subscriptions of a snapshot; changes to it leave the file as it is.

        The file is mapped into memory, which copies nothing and shares it with other processes. A
        mapped file may be replaced or removed, but who cuts it short kills the processes that use
        it. If ``mapped`` is False, the file is read, and nothing that happens to it later matters.

        It has the space with which the snapshot was written, or another one that is given; raises
        SubscriptionError if a subscription does not fit that.
        """
        engine = cls(clock=clock, space=space)
        # of all matchers only the columnar one has a file format, so a snapshot is always of one
        loaded = engine._inner = ColumnarMatcher.load(path, mapped=mapped)
        engine._space = _restored_space(loaded, space, path)
        engine._matcher = CachedMatcher(loaded)
        engine._matcher.resume(loaded.cached())
        engine._variables_used = VariableUses(loaded.variables())
        variables = values_from_json(loaded.notes.get(_VARIABLES_NOTE, {}))
        engine._variables.set(**variables)
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
        if self.space is not None:
            self.space.check_event(event)
        return self._matcher.match(event, moment)

    def match_batch(
        self,
        events: pa.Table | pa.RecordBatch | Sequence[Event | Mapping[str, object]],
        *,
        event_time: str | None = None,
    ) -> pa.Table:
        """Match many events; returns a table of pairs `event` (its index), `subscription` (an id).

        ``event_time`` names a column of timestamps: the times at which the events are judged.
        Without it, an `Event` that has a time is judged at it, and all others now.
        """
        if isinstance(events, (pa.Table, pa.RecordBatch)):
            batch = self._timed(EventBatch.of(events), event_time)
        else:
            if not isinstance(events, Iterable):
                raise EventError(f"events are a table or a list, not {type(events).__name__}")
            taken = [Event.of(each) for each in events]
            batch = self._timed(EventBatch.of_events(taken), event_time)
            if event_time is None and any(each.time is not None for each in taken):
                times_us = [self._time_us(each) for each in taken]
                known = [NO_TIME if each is None else each for each in times_us]
                batch = batch.judged_at(np.array(known, np.int64))
        if self.space is not None:
            for row, reason in misfits(batch, self.space):
                raise EventError(f"event {row}: {reason}")
        variables = self._variables.state.evaluated(self._variables_used, batch.distinct_times())
        return self._matcher.match_batch(batch.with_variables(variables)).to_table()

    def _timed(self, batch: EventBatch, event_time: str | None) -> EventBatch:
        """A batch judged at the times of a column, or now."""
        if event_time is None:
            return batch.at(self._clock())
        column = batch.column(event_time)
        if column is None:
            raise EventError(f"the events have no column {event_time!r} with their time")
        return batch.judged_at(times_us_of(column, event_time))

    def moment(self, event: Event | None = None) -> Moment:
        """The moment at which an event is judged: its own time or now, and the variables."""
        time_us = self._time_us(event)
        variables = self._variables.state.evaluated(self._variables_used, [time_us])
        return Moment(time_us, variables.at(time_us))

    def _time_us(self, event: Event | None) -> int | None:
        """The time at which an event is judged, in microseconds: its own, else now."""
        time = (None if event is None else event.time) or self._clock()
        return None if time is None else to_us(time)

    def explain(
        self, id: str, event: Event | Mapping[str, object], *, time: datetime | None = None
    ) -> Explanation:
        """Why a subscription does or does not match an event, predicate by predicate."""
        taken = Event.of(event, time)
        if self.space is not None:
            self.space.check_event(taken)
        return explain(self.get(id), taken, self.moment(taken))


def _restored_space(loaded: ColumnarMatcher, given: Space | None, path: str | Path) -> Space | None:
    """The space of a restored engine: the given one, which all subscriptions must fit, or the one
    in the snapshot."""
    note = loaded.notes.get(_SPACE_NOTE)
    saved = None if note is None else space_from_json(note)
    if given is None or (saved is not None and given.includes(saved)):
        return given or saved
    # Whether a subscription fits depends on its shape and the kinds of its values alone.
    for subscription in loaded.samples():
        try:
            given.check_filter(subscription.filter, subscription.parameters)
        except TidegateError as error:
            raise SubscriptionError(f"{path}: subscription {subscription.id!r}: {error}") from None
    return given


def _unknown(id: str) -> SubscriptionError:
    return SubscriptionError(f"there is no subscription {id!r}")

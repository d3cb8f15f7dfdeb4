"""The result of a backtest: counts in total, over time and by subscriber."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta

from pyspark.sql import DataFrame

from tidegate.language.durations import format_duration

EFFECTS = ("live", "changed", "entering", "leaving")
SPARKLINE_MAX = 60
"""The number of marks that fit on a line beside the counts."""

_MARKS = " ▁▂▃▄▅▆▇█"
_NAME_MAX = 40


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of deliveries of the live table and of the changed one."""

    live: int = 0
    """Deliveries of the live table."""
    changed: int = 0
    """Deliveries that the changed table would have made."""
    entering: int = 0
    """Deliveries of the changed table that the live one did not make."""
    leaving: int = 0
    """Deliveries of the live table that the changed one would not have made."""

    @property
    def staying(self) -> int:
        """The number of deliveries that both tables make."""
        return self.live - self.leaving

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.live + other.live,
            self.changed + other.changed,
            self.entering + other.entering,
            self.leaving + other.leaving,
        )


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """The counts of a time bucket, which begins at ``begin``."""

    begin: datetime
    events: int
    counts: Counts


@dataclass(frozen=True, slots=True)
class SubscriberCounts:
    """The counts of a subscriber, or of a subscription that has none."""

    subscriber: str | None
    subscription: str | None
    """The id of the subscription where there is no subscriber, else None."""
    counts: Counts

    @property
    def name(self) -> str:
        """The subscriber, or else the id of the subscription."""
        return self.subscriber or self.subscription or ""


@dataclass(frozen=True, slots=True)
class Backtest:
    """What changed subscriptions would have delivered over history, compared to the live ones.

    All counts are of the subscriptions that differ; the others deliver the same in both tables.
    """

    events: int
    subscriptions: int
    """The number of subscriptions that differ."""
    counts: Counts
    first: datetime | None
    """The time of the first event; None if there are no events, or no times."""
    last: datetime | None
    """The time of the last event."""
    every: timedelta | None
    """The width of the buckets; None if there are none."""
    buckets: tuple[BucketCounts, ...]
    """In the order of time, including buckets without events; empty if events have no times."""
    subscribers: tuple[SubscriberCounts, ...]
    """The subscribers whose deliveries change most come first."""
    subscribers_in_all: int
    """The number of subscribers with deliveries of either table."""
    deliveries: DataFrame = field(repr=False, compare=False)
    """The deliveries themselves, computed when an action asks for them: the columns of the event or
    of the key, `subscription`, `subscriber`, `version`, and `effect`: entering, leaving or
    staying."""

    def summary(self) -> str:
        """The counts as text for people, with a sparkline for the counts over time."""
        return "\n".join(_summary(self))

    def to_json(self) -> dict[str, object]:
        """The counts as a JSON object."""
        return {
            "events": self.events,
            "subscriptions": self.subscriptions,
            **asdict(self.counts),
            "first": _iso(self.first),
            "last": _iso(self.last),
            "every_s": None if self.every is None else self.every.total_seconds(),
            "buckets": [
                {"begin": _iso(each.begin), "events": each.events, **asdict(each.counts)}
                for each in self.buckets
            ],
            "subscribers": [
                {
                    "subscriber": each.subscriber,
                    "subscription": each.subscription,
                    **asdict(each.counts),
                }
                for each in self.subscribers
            ],
            "subscribers_in_all": self.subscribers_in_all,
        }


def sparkline(numbers: Sequence[int], most: int) -> str:
    """A mark for each number whose height shows it; a blank for 0.

    >>> sparkline([0, 1, 4, 8], 8)
    ' ▁▄█'
    """
    # Rounded up, so that only 0 is blank.
    steps = len(_MARKS) - 1
    return "".join(_MARKS[-(-each * steps // most) if most else 0] for each in numbers)


def format_span(result: Backtest) -> str:
    """The times of the first and the last event; the date is given twice only if it differs."""
    if result.first is None or result.last is None:
        return ""
    is_one_day = result.first.date() == result.last.date()
    last = result.last.time().isoformat() if is_one_day else _plain(result.last)
    return f"{_plain(result.first)} to {last} UTC"


def _summary(result: Backtest) -> Iterator[str]:
    yield _heading(result)
    yield ""
    marks, buckets_per_mark = _merged(result.buckets)
    most = max((max(each.live, each.changed) for each in marks), default=0)
    head = f"{'':<10}{'deliveries':>12}"
    if result.every is not None:
        span = format_duration(buckets_per_mark * result.every)
        head += f"   over time, a mark for {span}, the highest for {most:,}"
    yield head
    for name in EFFECTS:
        line = sparkline([getattr(each, name) for each in marks], most)
        yield f"{name:<10}{getattr(result.counts, name):>12,}   {line}".rstrip()
    if result.subscribers:
        yield ""
        yield from _subscriber_table(result)


def _heading(result: Backtest) -> str:
    differ = _counted_noun(result.subscriptions, "subscription")
    differ += " differs" if result.subscriptions == 1 else " differ"
    if result.first is None:
        times = " without times" if result.events else ""
    else:
        times = f" from {format_span(result)}"
    return f"{_counted_noun(result.events, 'event')}{times}; {differ}"


def _subscriber_table(result: Backtest) -> Iterator[str]:
    names = [_shortened(each.name) for each in result.subscribers]
    width = max(map(len, ["subscriber", *names])) + 2
    yield f"{'subscriber':<{width}}" + "".join(f"{name:>10}" for name in EFFECTS)
    for name, each in zip(names, result.subscribers, strict=True):
        yield f"{name:<{width}}" + "".join(
            f"{getattr(each.counts, effect):>10,}" for effect in EFFECTS
        )
    more = result.subscribers_in_all - len(result.subscribers)
    if more:
        yield f"and {more:,} more"


def _merged(buckets: Sequence[BucketCounts]) -> tuple[list[Counts], int]:
    """The counts of buckets, merged to at most ``SPARKLINE_MAX``; and how many buckets each has."""
    width = max(1, -(-len(buckets) // SPARKLINE_MAX))
    starts = range(0, len(buckets), width)
    return [
        _total(each.counts for each in buckets[start : start + width]) for start in starts
    ], width


def _total(counts: Iterable[Counts]) -> Counts:
    return sum(counts, Counts())


def _counted_noun(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_MAX else name[: _NAME_MAX - 1] + "…"


def _plain(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat(" ")


def _iso(time: datetime | None) -> str | None:
    return None if time is None else f"{time.replace(tzinfo=None).isoformat()}Z"

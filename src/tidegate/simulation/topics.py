"""The attributes of a workload's events: a topic, some more popular than others, a level, a region.

Popularity follows Zipf's law: the topic of rank k is subscribed to, and published, in proportion to
1 / k**skew. In a regional workload every region has its own ranking, so that the popular topics of
one are rare in the others (Gryphon, 5).
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value, from_us

LEVELS = 100
AT_LEAST = parse("topic = :topic and level >= :level")
"""The filter of subscribers that change by updates."""
PORTFOLIO_MAX = 10
"""The number of topics of a publisher, some of which may be equal."""


@dataclass(frozen=True, slots=True)
class Topics:
    """Topics with their popularity; ``shift`` rotates the ranking, for a region."""

    count: int
    skew: float
    shift: int = 0
    _sums: Sequence[float] = field(init=False, repr=False)
    """Cumulated weights of the ranks, for drawing by bisection."""

    def __post_init__(self) -> None:
        weights = (1 / rank**self.skew for rank in range(1, self.count + 1))
        object.__setattr__(self, "_sums", list(accumulate(weights)))

    def draw(self, random: Random) -> str:
        """Draw a topic."""
        rank = bisect(self._sums, random.random() * self._sums[-1])
        return f"t{(min(rank, self.count - 1) + self.shift) % self.count}"

    def random_values(self, random: Random) -> dict[str, Value]:
        """Draw values for the parameters of `AT_LEAST`."""
        return {"topic": self.draw(random), "level": random.randrange(0, LEVELS, 10)}

    def random_filter(self, random: Random) -> Filter:
        """Draw the filter of a subscriber: a topic, and in half of the cases a lowest level."""
        topic = self.draw(random)
        if random.random() < 0.5:
            return parse(f"topic = '{topic}'")
        return parse(f"topic = '{topic}' and level >= {random.randrange(0, LEVELS, 10)}")


@dataclass(frozen=True, slots=True)
class Portfolio:
    """The topics of a publisher and its region."""

    topics: Sequence[str]
    region: str

    @classmethod
    def random(cls, topics: Topics, region: str, random: Random) -> Portfolio:
        """Draw topics; popular ones are in more portfolios, and more often in one."""
        return cls([topics.draw(random) for _ in range(PORTFOLIO_MAX)], region)

    def advertisement(self) -> Advertisement:
        """The advertisement of all events that the publisher may publish."""
        topics = ", ".join(f"'{topic}'" for topic in sorted(set(self.topics)))
        return parse_advertisement(
            f"topic in ({topics}) and level is not null and region is not null"
        )

    def event(self, random: Random, now_us: int) -> Event:
        """Draw the next event."""
        attributes: dict[str, Value] = {
            "topic": random.choice(self.topics),
            "level": random.randrange(LEVELS),
            "region": self.region,
        }
        return Event(attributes, from_us(now_us))

"""What events of a workload are about: topics, some more popular than others, a level, a region.

Popularity follows Zipf's law: the topic of rank k is asked for, and published, as often as
1 / k**skew. With locality every region has a ranking of its own, so that what is popular in one is
rare in the others (Gryphon, 5).
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
"""What a subscriber asks for that changes its mind by updates."""
PORTFOLIO_MAX = 10
"""How many topics a publisher has."""


@dataclass(frozen=True, slots=True)
class Topics:
    """Topics by their popularity.

    ``shift`` moves the ranking on, for a region.
    """

    count: int
    skew: float
    shift: int = 0
    _sums: Sequence[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = (1 / rank**self.skew for rank in range(1, self.count + 1))
        object.__setattr__(self, "_sums", list(accumulate(weights)))

    def draw(self, random: Random) -> str:
        """A topic."""
        rank = bisect(self._sums, random.random() * self._sums[-1])
        return f"t{(min(rank, self.count - 1) + self.shift) % self.count}"

    def values(self, random: Random) -> dict[str, Value]:
        """What a subscriber may ask for, as values for `AT_LEAST`."""
        return {"topic": self.draw(random), "level": random.randrange(0, LEVELS, 10)}

    def wanted(self, random: Random) -> Filter:
        """What a subscriber may ask for; half of the filters are narrower than a topic."""
        topic = self.draw(random)
        if random.random() < 0.5:
            return parse(f"topic = '{topic}'")
        return parse(f"topic = '{topic}' and level >= {random.randrange(0, LEVELS, 10)}")


@dataclass(frozen=True, slots=True)
class Portfolio:
    """The topics of a publisher, and the region it is in."""

    topics: Sequence[str]
    region: str

    @classmethod
    def drawn(cls, topics: Topics, region: str, random: Random) -> Portfolio:
        """Some topics; popular ones are in more portfolios, and more often in one."""
        return cls([topics.draw(random) for _ in range(PORTFOLIO_MAX)], region)

    def advertisement(self) -> Advertisement:
        """What the publisher will publish."""
        among = ", ".join(f"'{topic}'" for topic in sorted(set(self.topics)))
        return parse_advertisement(
            f"topic in ({among}) and level is not null and region is not null"
        )

    def event(self, random: Random, now_us: int) -> Event:
        """What the publisher publishes next."""
        attributes: dict[str, Value] = {
            "topic": random.choice(self.topics),
            "level": random.randrange(LEVELS),
            "region": self.region,
        }
        return Event(attributes, from_us(now_us))

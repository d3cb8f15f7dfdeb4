"""The workload of subscription summaries ("Subscription Summarization", 5.2, table 2), made real.

There are 10 attributes, 4 of numbers and 6 of strings. A subscription constrains 2 and 3 of them.
Each attribute has two *general rows*: two ranges of prices, or two prefixes. A subscription is of
one of three kinds:

- *general*: a general row for each of its attributes; the first ones of each broker, one in
  a hundred, drawn from a pool that all brokers share and that is four times as large;
- *covered*: equalities with values that lie in the rows of a general one of the same broker, drawn
  with the wanted probability of subsumption;
- *unlike any other*: equalities with values outside of all rows (prices in cents, 10 letters).

So a covered subscription is really covered, as a whole, by another one at home, and the share of
those can be measured. The paper draws for each constraint whether it lies in a row, and for each
subscription and broker whether it is forwarded. What it does not say was chosen here: the three
kinds, how many are general, the pool, and that a subsumed string value has a prefix in common.

An event has the five attributes of a subscription. One half of them satisfy that subscription; the
other half have for each attribute the value that some subscription asks for, so that most match
nothing though each of their values is wanted by somebody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from string import ascii_lowercase

from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.values import Value
from tidegate.matching.poset.wanted_filter import WantedFilter, underlying_filter
from tidegate.routing.messages import Peer

NUMBERS = tuple(f"n{i}" for i in range(4))
STRINGS = tuple(f"s{i}" for i in range(6))
NAMED_NUMBERS = 2
NAMED_STRINGS = 3
RANGES = 2
"""General rows of an attribute: n_sr of table 2."""
STRING_CHARS = 10
"""ssv of table 2."""
PREFIXES = ("ALPHA", "BRAVO")
RANGE_CENTS = 5_000
RANGE_STEP_CENTS = 10_000
CENTS_MAX = 10_000_000
GENERAL_SHARE = 0.01
POOL_FACTOR = 4

ID_BYTES = 4
"""sid of table 2."""
NUMBER_BYTES = 4
"""sst of table 2."""
NAME_BYTES = 2
"""A byte for the number of the attribute, which all brokers know, and one for the operator."""
LENGTH_BYTES = 1


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a subscription asks of an attribute: a general row, or a value."""

    attribute: str
    row: int | None
    value: Value = 0
    """Of no account if there is a row."""

    def text(self) -> str:
        """The constraint as a filter has it.

        >>> Constraint("n0", 0).text(), Constraint("s1", 1).text()
        ('n0 between 100 and 149.99', "s1 starts with 'BRAVO'")
        """
        if self.row is None:
            shown = repr(self.value) if isinstance(self.value, str) else f"{self.value:.10g}"
            return f"{self.attribute} = {shown}"
        if self.attribute in STRINGS:
            return f"{self.attribute} starts with '{PREFIXES[self.row]}'"
        low, high = _range_cents(self.row)
        return f"{self.attribute} between {low / 100:.10g} and {high / 100:.10g}"

    def satisfying(self, random: Random) -> Value:
        """A value that satisfies the constraint."""
        return self.value if self.row is None else _value_in(self.attribute, self.row, random)


Interest = tuple[Constraint, ...]
"""What a subscription asks for."""


@dataclass(frozen=True, slots=True)
class PlacedInterest:
    """A subscription and its broker."""

    broker: Peer
    number: int
    """Of this broker, in the order of subscribing."""
    interest: Interest
    filter: Filter


class SummaryWorkload:
    """Subscriptions for the brokers of a network, with a probability of subsumption."""

    def __init__(
        self, brokers: Sequence[Peer], subsumption: float, held: int, seed: int = 1
    ) -> None:
        """``held`` is how many each broker has before the new ones of a period; of these some are
        general."""
        self._brokers = brokers
        self._subsumption = subsumption
        self._general = max(1, round(GENERAL_SHARE * held))
        self._seed = seed
        pool = Random(f"pool of {seed}")
        self._pool = [_general_interest(pool) for _ in range(POOL_FACTOR * self._general)]

    def subscriptions(self, count: int) -> list[list[PlacedInterest]]:
        """The first ``count`` subscriptions of each broker; fewer are the first of more."""
        parser = BulkParser()
        found = []
        for broker in self._brokers:
            drawn = list(islice(self._interests(broker), count))
            texts = [" and ".join(each.text() for each in interest) for interest in drawn]
            filters = [Filter.of_shape(*shape_row) for shape_row in parser.read_many(texts)]
            found.append(
                [
                    PlacedInterest(broker, number, interest, filter)
                    for number, (interest, filter) in enumerate(zip(drawn, filters, strict=True))
                ]
            )
        return found

    def _interests(self, broker: Peer) -> Iterator[Interest]:
        random = Random(f"{broker} of {self._seed}")
        general = random.sample(self._pool, self._general)
        yield from general
        while True:
            is_covered = random.random() < self._subsumption
            interest = random.choice(general) if is_covered else _general_interest(random)
            yield tuple(
                Constraint(
                    each.attribute,
                    None,
                    each.satisfying(random) if is_covered else _rare_value(each.attribute, random),
                )
                for each in interest
            )


def events(placed: Sequence[PlacedInterest], count: int, seed: int = 1) -> list[Event]:
    """Events that are near to some subscriptions; every second one satisfies one of them."""
    random = Random(f"events of {seed}")
    by_attribute: dict[str, list[Constraint]] = {}
    for each in placed:
        for constraint in each.interest:
            by_attribute.setdefault(constraint.attribute, []).append(constraint)
    found = []
    for number in range(count):
        wanted = random.choice(placed).interest
        if number % 2:
            wanted = tuple(random.choice(by_attribute[each.attribute]) for each in wanted)
        found.append(Event.of({each.attribute: each.satisfying(random) for each in wanted}))
    return found


def filter_bytes(wanted: WantedFilter) -> int:
    """The size of a filter in a plain encoding with the sizes of table 2.

    The paper has 50 bytes for a subscription on average.

    >>> from tidegate.language.filters import parse
    >>> filter_bytes(parse("n0 = 3.5 and n1 between 1 and 2 and s0 = 'ABCDEFGHIJ'"))
    33
    """
    filter = underlying_filter(wanted)
    _, row = filter.shape_and_row
    values = sum(
        LENGTH_BYTES + len(each.encode()) if isinstance(each, str) else NUMBER_BYTES for each in row
    )
    return ID_BYTES + NAME_BYTES * len(filter.attributes) + values


def _general_interest(random: Random) -> Interest:
    names = random.sample(NUMBERS, NAMED_NUMBERS) + random.sample(STRINGS, NAMED_STRINGS)
    return tuple(Constraint(name, random.randrange(RANGES)) for name in names)


def _range_cents(row: int) -> tuple[int, int]:
    low = (row + 1) * RANGE_STEP_CENTS
    return low, low + RANGE_CENTS - 1


def _value_in(attribute: str, row: int, random: Random) -> Value:
    if attribute in STRINGS:
        rest = random.choices(ascii_lowercase, k=STRING_CHARS - len(PREFIXES[row]))
        return PREFIXES[row] + "".join(rest)
    return random.randint(*_range_cents(row)) / 100


def _rare_value(attribute: str, random: Random) -> Value:
    if attribute in STRINGS:
        return "".join(random.choices(ascii_lowercase, k=STRING_CHARS))
    return random.randrange((RANGES + 1) * RANGE_STEP_CENTS, CENTS_MAX) / 100

"""Ids of subscriptions, packed in bits ("Subscription Summarization", 3.2).

An id is the concatenation of three fields: c1, the broker to which the subscription belongs; c2,
its number among the subscriptions of that broker; c3, a mask with a bit for each attribute that it
constrains. Their widths follow from the parameters of the system: the rounded-up logarithm of the
number of brokers and of subscriptions a broker, and one bit for each attribute.

Rule. When attributes are added, only c3 becomes wider: an id made before is the same id with zero
bits in front of its mask (the future work of the paper, section 6).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tidegate.errors import SummaryError


class SummaryId(NamedTuple):
    """The three fields of an id; bit i of ``mask`` stands for attribute i."""

    broker: int
    number: int
    mask: int


@dataclass(frozen=True, slots=True)
class IdLayout:
    """The widths of the fields, from the parameters of the system.

    >>> layout = IdLayout(brokers_max=4, subscriptions_max=8, attributes_max=7)
    >>> f"{layout.pack(SummaryId(broker=2, number=1, mask=0b1101000)):0{layout.bits}b}"
    '100011101000'
    """

    brokers_max: int = 2**16
    subscriptions_max: int = 2**31
    attributes_max: int = 4096

    def __post_init__(self) -> None:
        for name in ("brokers_max", "subscriptions_max", "attributes_max"):
            value = getattr(self, name)
            if value < 1:
                raise SummaryError(f"{name} of an id layout is {value}; it must be 1 or more")

    @property
    def broker_bits(self) -> int:
        """The width of c1."""
        return (self.brokers_max - 1).bit_length()

    @property
    def number_bits(self) -> int:
        """The width of c2."""
        return (self.subscriptions_max - 1).bit_length()

    @property
    def bits(self) -> int:
        """The width of an id."""
        return self.broker_bits + self.number_bits + self.attributes_max

    def check_broker(self, broker: int) -> None:
        """Raise SummaryError for a broker that c1 has no room for."""
        _check("broker", "brokers", broker, self.brokers_max)

    def check_number(self, number: int) -> None:
        """Raise SummaryError for a number that c2 has no room for."""
        _check("subscription", "subscriptions", number, self.subscriptions_max)

    def check_attribute(self, attribute: int) -> None:
        """Raise SummaryError for an attribute that c3 has no bit for."""
        _check("attribute", "attributes", attribute, self.attributes_max)

    def pack(self, id: SummaryId) -> int:
        """An id as one integer; raises SummaryError if a field does not fit."""
        self.check_broker(id.broker)
        self.check_number(id.number)
        if id.mask < 0:
            raise SummaryError(f"the mask of a subscription id is {id.mask}; it has no sign")
        self.check_attribute(max(0, id.mask.bit_length() - 1))
        upper = id.broker << self.number_bits | id.number
        return upper << self.attributes_max | id.mask

    def unpack(self, packed: int) -> SummaryId:
        """The fields of a packed id; raises SummaryError for one that is too wide."""
        if not 0 <= packed < 1 << self.bits:
            raise SummaryError(
                f"a subscription id has {self.bits} bits here, which {packed} has not"
            )
        upper, mask = packed >> self.attributes_max, packed & (1 << self.attributes_max) - 1
        number = upper & (1 << self.number_bits) - 1
        return SummaryId(upper >> self.number_bits, number, mask)

    def with_attributes(self, attributes_max: int) -> IdLayout:
        """The layout for more attributes; c1 and c2 stay as they are."""
        if attributes_max < self.attributes_max:
            raise SummaryError(
                f"a layout for {self.attributes_max} attributes cannot shrink to {attributes_max}: "
                "ids made before would lose bits of their masks"
            )
        return replace(self, attributes_max=attributes_max)

    def repacked(self, packed: int, earlier: IdLayout) -> int:
        """An id that was packed by an earlier layout, as this one packs it."""
        return self.pack(earlier.unpack(packed))


def _check(noun: str, nouns: str, value: int, limit: int) -> None:
    if not 0 <= value < limit:
        raise SummaryError(
            f"{noun} {value} does not fit into subscription ids, which have room for {limit} "
            f"{nouns}; set {nouns}_max of the IdLayout to {value + 1} or more"
            if value >= 0
            else f"{noun} {value} of a subscription id is negative"
        )


@dataclass(slots=True)
class _Numbers:
    """Numbers that are given out: those in use are kept low, so that few bits suffice."""

    used: int = 0
    """Numbers from here on were never given out."""
    freed: list[int] = field(default_factory=list)

    def take(self) -> int:
        if self.freed:
            return heapq.heappop(self.freed)
        self.used += 1
        return self.used - 1


class SummaryIds:
    """Gives out the fields of ids: brokers in the order of their first appearance; numbers and bits
    of attributes from the lowest on, and those that are not in use any more again.

    >>> ids = SummaryIds()
    >>> ids.broker("home"), ids.take("home"), ids.take("home"), ids.take_attribute("price")
    (0, 0, 1, 0)
    """

    def __init__(self, layout: IdLayout | None = None) -> None:
        self.layout = layout or IdLayout()
        self.brokers: dict[str, int] = {}
        self.attributes: dict[str, int] = {}
        """The bits of the attributes that are in use."""
        self._numbers: dict[str, _Numbers] = {}
        self._bits = _Numbers()
        self._uses: dict[str, int] = {}
        """How many entries name each attribute."""

    def check(self, broker: str, entries: int, attributes: Iterable[str]) -> None:
        """Raise SummaryError if there is no room for so many more entries with these attributes."""
        if broker not in self.brokers:
            self.layout.check_broker(len(self.brokers))
        numbers = self._numbers.get(broker) or _Numbers()
        fresh = entries - len(numbers.freed)
        if fresh > 0:
            self.layout.check_number(numbers.used + fresh - 1)
        new = set(attributes) - self.attributes.keys()
        if new:
            self.layout.check_attribute(len(self.attributes) + len(new) - 1)

    def broker(self, name: str) -> int:
        """c1 of a broker."""
        number = self.brokers.setdefault(name, len(self.brokers))
        self.layout.check_broker(number)
        return number

    def take_attribute(self, name: str) -> int:
        """The bit of an attribute in c3, for one more entry that names it."""
        bit = self.attributes.get(name)
        if bit is None:
            bit = self.attributes[name] = self._bits.take()
            self.layout.check_attribute(bit)
        self._uses[name] = self._uses.get(name, 0) + 1
        return bit

    def free_attribute(self, name: str) -> bool:
        """Note that one entry less names an attribute; whether that was the last one."""
        self._uses[name] -= 1
        if self._uses[name]:
            return False
        del self._uses[name]
        heapq.heappush(self._bits.freed, self.attributes.pop(name))
        return True

    def take(self, broker: str) -> int:
        """A free c2 of a broker, the lowest that was freed or else a new one."""
        number = self._numbers.setdefault(broker, _Numbers()).take()
        self.layout.check_number(number)
        return number

    def free(self, broker: str, number: int) -> None:
        """Give a number back, to be used again."""
        heapq.heappush(self._numbers[broker].freed, number)

    def grow(self, attributes_max: int) -> None:
        """Make room for more attributes; ids given out before stay valid."""
        self.layout = self.layout.with_attributes(attributes_max)

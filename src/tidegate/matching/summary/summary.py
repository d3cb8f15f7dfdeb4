"""The summary of subscriptions: what they ask for, attribute by attribute, changed in place
("Subscription Summarization", 3).

Rules. (1) Never a false negative: whatever matches a subscription is found for it. (2) What was
added, removed and replaced before leaves no trace: without a budget the rows depend on the
subscriptions alone. (3) A change costs what it changes; nothing is built anew.

Theory of operation. A subscription is dissolved: each conjunct of its normal form is an *entry*,
and what an entry asks of an attribute becomes intervals and string patterns, the *terms*, in the
rows of that attribute (`ranges.py`, `strings.py`). Rows list terms, in one pool
(`member_lists.py`). An event is matched by looking up the rows that its values lie in, and counting
for each entry the attributes in which one of its terms is listed (`counter.py`): it matches if they
are all those of its mask.

A summary is not thread-safe; `matcher.py` has a lock around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from tidegate.errors import SummaryError
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.values import Value
from tidegate.matching.arrays import I32, I64, U64
from tidegate.matching.summary.budget import EXACT_ENOUGH, SummaryBudget
from tidegate.matching.summary.constraints import Constraint, PatternTerm, RangeTerm, constraint_of
from tidegate.matching.summary.counter import (
    AttributeRows,
    EntryCounter,
    FoundEntries,
    satisfied_lists,
)
from tidegate.matching.summary.ids import IdLayout, SummaryIds
from tidegate.matching.summary.member_lists import MemberLists, Terms, grown
from tidegate.matching.summary.ranges import RangeRows
from tidegate.matching.summary.strings import StringRows
from tidegate.matching.summary.tables import (
    WORD_BITS,
    ChannelKind,
    RangeTable,
    StringTable,
    SummaryTables,
    mask_words,
)

Conjunct = Mapping[str, Constraint]
"""What an entry asks for, by attribute."""

SubscriptionKey = tuple[str, int]
"""The owner of a subscription, and the number that the owner knows it by."""

_UNUSED = -1
"""Number of attributes of an entry that is not in use: none has as many."""


@dataclass(slots=True)
class _Entry:
    """A conjunct in the rows: its constraints, and the terms in which they are."""

    key: SubscriptionKey
    number: int
    constraints: dict[str, Constraint] = field(default_factory=dict)
    terms: dict[str, tuple[int, ...]] = field(default_factory=dict)
    unconditional: int | None = None
    """The term in the list of what matches every event."""


class Summary:
    """A summary that is changed and matched in place.

    >>> from tidegate.language.filters import parse
    >>> summary = Summary()
    >>> summary.add("home", 1, parse("symbol = 'IBM' and price < 10"))
    1
    >>> summary.matching(Event.of({"symbol": "IBM", "price": 9.5}))
    [('home', 1)]
    """

    def __init__(
        self, budget: SummaryBudget = EXACT_ENOUGH, layout: IdLayout | None = None
    ) -> None:
        self.budget = budget
        self.ids = SummaryIds(layout)
        self._subscriptions: dict[SubscriptionKey, list[int]] = {}
        self._entries: dict[int, _Entry] = {}
        self._free: list[int] = []
        self._needed: I32 = np.zeros(0, np.int32)
        self._owners: I32 = np.zeros(0, np.int32)
        self._masks: U64 = np.zeros((0, 1), np.uint64)
        self._lists = MemberLists()
        self._terms = Terms()
        self._rows: dict[str, AttributeRows] = {}
        self._ranges: dict[tuple[str, ChannelKind], RangeRows] = {}
        self._strings: dict[str, StringRows] = {}
        self._unconditional = self._lists.new()
        self._counter = EntryCounter()

    def __len__(self) -> int:
        """The number of subscriptions."""
        return len(self._subscriptions)

    def __contains__(self, key: object) -> bool:
        return key in self._subscriptions

    @property
    def entries(self) -> int:
        """The number of entries: conjuncts of all subscriptions."""
        return len(self._entries)

    # -- changes ------------------------------------------------------------------------------

    def add(self, owner: str, number: int, filter: Filter) -> int:
        """Add a subscription, whose filter is of constants; returns the number of its entries.

        Raises SummaryError if it exists already or if ids have no room for it, and UnresolvedError
        for a filter with parameters, variables or functions of time.
        """
        key = (owner, number)
        if key in self._subscriptions:
            raise SummaryError(f"subscription {number} of {owner!r} is in the summary already")
        wanted = _conjuncts(filter)
        self.ids.check(owner, len(wanted), _attributes(wanted))
        self._subscriptions[key] = [self._add_entry(key, each) for each in wanted]
        return len(wanted)

    def remove(self, owner: str, number: int) -> None:
        """Remove a subscription; raises SummaryError if it does not exist."""
        for entry in self._entries_of(owner, number):
            self._remove_entry(entry)
        del self._subscriptions[owner, number]

    def replace(self, owner: str, number: int, filter: Filter) -> None:
        """Give a subscription another filter; only the terms that differ are changed."""
        old = self._entries_of(owner, number)
        wanted = _conjuncts(filter)
        self.ids.check(owner, len(wanted) - len(old), _attributes(wanted))
        kept: dict[int, int] = {}
        rest = list(old)
        for index, conjunct in enumerate(wanted):
            same = (each for each in rest if self._entries[each].constraints == conjunct)
            entry = next(same, None)
            if entry is not None:
                rest.remove(entry)
                kept[index] = entry
        changed: list[int] = []
        for index, conjunct in enumerate(wanted):
            if index in kept:
                changed.append(kept[index])
            elif rest:
                changed.append(rest.pop(0))
                self._change_entry(changed[-1], conjunct)
            else:
                changed.append(self._add_entry((owner, number), conjunct))
        for entry in rest:
            self._remove_entry(entry)
        self._subscriptions[owner, number] = changed

    def _entries_of(self, owner: str, number: int) -> list[int]:
        entries = self._subscriptions.get((owner, number))
        if entries is None:
            raise SummaryError(f"there is no subscription {number} of {owner!r} in the summary")
        return entries

    def _add_entry(self, key: SubscriptionKey, conjunct: Conjunct) -> int:
        entry = self._free.pop() if self._free else len(self._entries)
        self._reserve(entry + 1)
        self._entries[entry] = _Entry(key, self.ids.take(key[0]))
        self._owners[entry] = self.ids.broker(key[0])
        self._needed[entry], self._masks[entry] = 0, 0
        self._change_entry(entry, conjunct)
        return entry

    def _remove_entry(self, entry: int) -> None:
        record = self._entries[entry]
        for name in list(record.constraints):
            self._constrain(entry, record, name, ())
        if record.unconditional is not None:
            self._set_unconditional(entry, record, False)
        self._needed[entry] = _UNUSED
        self.ids.free(record.key[0], record.number)
        del self._entries[entry]
        self._free.append(entry)

    def _change_entry(self, entry: int, conjunct: Conjunct) -> None:
        record = self._entries[entry]
        for name in [name for name in record.constraints if name not in conjunct]:
            self._constrain(entry, record, name, ())
        for name, constraint in conjunct.items():
            self._constrain(entry, record, name, constraint)
        if (record.unconditional is None) == (not conjunct):
            self._set_unconditional(entry, record, not conjunct)
        self._needed[entry] = len(conjunct) or 1

    def _constrain(self, entry: int, record: _Entry, name: str, wanted: Constraint) -> None:
        """Give an entry other terms of an attribute; an attribute without any leaves its mask."""
        constraint = record.constraints.get(name, ())
        if constraint == wanted:
            return
        old = dict(zip(constraint, record.terms.get(name, ()), strict=True))
        # First what is new, so that rows in common with the old terms stay.
        new = {each: old[each] if each in old else self._add_term(entry, name, each)
               for each in wanted}  # fmt: skip
        for each, number in old.items():
            if each not in new:
                self._remove_term(name, each, number)
        if wanted:
            record.constraints[name], record.terms[name] = wanted, tuple(new.values())
        else:
            del record.constraints[name], record.terms[name]
        if not constraint:
            self._add_to_mask(entry, name)
        elif not wanted:
            self._remove_from_mask(entry, name)

    def _add_to_mask(self, entry: int, name: str) -> None:
        bit = self.ids.take_attribute(name)
        self._reserve_masks(len(self._masks), bit // WORD_BITS + 1)
        self._masks[entry, bit // WORD_BITS] |= _bit(bit)

    def _remove_from_mask(self, entry: int, name: str) -> None:
        """Remove an attribute from a mask; one that no entry names any more leaves nothing."""
        bit = self.ids.attributes[name]
        self._masks[entry, bit // WORD_BITS] &= ~_bit(bit)
        if self.ids.free_attribute(name):
            for kind in self._rows.pop(name).ranges:
                self._ranges.pop((name, kind)).free()
            self._strings.pop(name, None)

    def _add_term(self, entry: int, name: str, term: RangeTerm | PatternTerm) -> int:
        if isinstance(term, RangeTerm):
            number = self._terms.add(entry, term.low, term.high, loose=not term.exact)
            self._range_rows(name, term.kind).add(number)
        else:
            number = self._terms.add(entry, 0.0, 0.0, loose=not term.exact)
            self._string_rows(name).add(number, term.pattern)
        return number

    def _remove_term(self, name: str, term: RangeTerm | PatternTerm, number: int) -> None:
        if isinstance(term, RangeTerm):
            self._ranges[name, term.kind].remove(number)
        else:
            self._strings[name].remove(number, term.pattern)
        self._terms.free(number)

    def _set_unconditional(self, entry: int, record: _Entry, value: bool) -> None:
        always = np.array([self._unconditional])
        if value:
            record.unconditional = self._terms.add(entry, 0.0, 0.0, loose=False)
            self._lists.append(always, np.array([record.unconditional << 1], np.int32))
        elif record.unconditional is not None:
            self._lists.remove(always, record.unconditional)
            self._terms.free(record.unconditional)
            record.unconditional = None

    def _range_rows(self, name: str, kind: ChannelKind) -> RangeRows:
        rows = self._ranges.get((name, kind))
        if rows is None:
            rows = RangeRows(kind, self._lists, self._terms, self.budget)
            self._ranges[name, kind] = rows
            self._attribute_rows(name).ranges[kind] = rows
        return rows

    def _string_rows(self, name: str) -> StringRows:
        rows = self._strings.get(name)
        if rows is None:
            rows = self._strings[name] = StringRows(self._lists, self._terms, self.budget)
            self._rows[name] = self._attribute_rows(name)._replace(strings=rows)
        return rows

    def _attribute_rows(self, name: str) -> AttributeRows:
        return self._rows.setdefault(name, AttributeRows({}, None))

    def _reserve(self, entries: int) -> None:
        """Make room for entries."""
        self._needed, self._owners = grown(self._needed, entries), grown(self._owners, entries)
        self._reserve_masks(len(self._needed), self._masks.shape[1])

    def _reserve_masks(self, entries: int, words: int) -> None:
        if self._masks.shape[0] < entries or self._masks.shape[1] < words:
            wider = np.zeros((entries, max(words, self._masks.shape[1])), np.uint64)
            wider[: self._masks.shape[0], : self._masks.shape[1]] = self._masks
            self._masks = wider

    # -- matching -----------------------------------------------------------------------------

    def matching(self, event: Event) -> list[tuple[str, int]]:
        """The subscriptions that an event may match, as owner and number, each once."""
        found = self.find(event.attributes).entries.tolist()
        return list(dict.fromkeys(self._entries[entry].key for entry in found))

    def find(self, attributes: Mapping[str, Value]) -> FoundEntries:
        """The entries that an event may match, and which of them it matches for sure."""
        satisfied = satisfied_lists(attributes, self._rows)
        if self._lists.length[self._unconditional]:
            satisfied.lists.append(self._unconditional << 1)
            satisfied.end()
        return self._counter.count(self._lists, self._terms.entry, self._needed, satisfied)

    def key(self, entry: int) -> SubscriptionKey:
        """The subscription that an entry belongs to."""
        return self._entries[entry].key

    def rows(self, attribute: str) -> int:
        """The number of rows in all tables of an attribute."""
        of_attribute = self._rows.get(attribute)
        if of_attribute is None:
            return 0
        ranges = sum(len(rows) for (name, _), rows in self._ranges.items() if name == attribute)
        return ranges + (len(self._strings[attribute]) if attribute in self._strings else 0)

    # -- as tables ----------------------------------------------------------------------------

    def tables(self) -> SummaryTables:
        """The summary as it is merged and sent."""
        used = np.array(sorted(self._entries), np.int64)
        owners = sorted({entry.key[0] for entry in self._entries.values()})
        owner_rank = _rank(owners, self.ids.brokers)
        numbers = np.array([self._entries[each].number for each in used.tolist()], np.int64)
        order = np.lexsort((numbers, owner_rank[self._owners[used]])) if len(used) else used
        used = used[order]
        masks = self._masks[used]
        in_use = np.bitwise_or.reduce(masks, axis=0)
        bits = self.ids.attributes
        names = sorted(name for name, bit in bits.items() if in_use[bit // WORD_BITS] & _bit(bit))
        position: I32 = np.zeros(len(self._needed), np.int32)
        position[used] = np.arange(len(used))
        return SummaryTables(
            owners=tuple(owners),
            attributes=tuple(names),
            entry_owners=owner_rank[self._owners[used]].astype(np.int32),
            entry_numbers=numbers[order],
            entry_masks=_permuted(masks, [bits[name] for name in names]),
            ranges=tuple(self._range_tables(position)),
            strings=tuple(self._string_tables(position)),
        )

    def _range_tables(self, position: I32) -> Iterator[RangeTable]:
        for name, kind in sorted(self._ranges):
            rows = self._ranges[name, kind]
            if not rows.is_empty:
                lows, highs, row_of, terms = rows.arrays()
                listed = self._listed(len(lows), row_of, terms, position)
                yield RangeTable(name, kind, lows.copy(), highs.copy(), *listed)

    def _string_tables(self, position: I32) -> Iterator[StringTable]:
        for name in sorted(self._strings):
            rows = self._strings[name]
            if not rows.is_empty:
                patterns, row_of, terms = rows.arrays()
                listed = self._listed(len(patterns), row_of, terms, position)
                yield StringTable(name, patterns, *listed)

    def _listed(self, rows: int, row_of: I64, terms: I32, position: I32) -> tuple[I64, I32]:
        """The starts and members of a table: the entries of terms, each once in a row, in order."""
        entries = position[self._terms.entry[terms]].astype(np.int64)
        pairs = np.unique(row_of * len(self._needed) + entries)
        counts = np.bincount(pairs // len(self._needed), minlength=rows)
        starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return starts, (pairs % len(self._needed)).astype(np.int32)


def _conjuncts(filter: Filter) -> list[Conjunct]:
    """What each conjunct of a filter asks for; none if no event can match."""
    return [
        {name: constraint_of(values) for name, values in conjunction.sets.items()}
        for conjunction in filter.resolved_form().conjunctions
    ]


def _attributes(conjuncts: Iterable[Conjunct]) -> set[str]:
    return {name for conjunct in conjuncts for name in conjunct}


def _bit(attribute: int) -> np.uint64:
    """The bit of an attribute in its word of a mask."""
    return np.uint64(1) << np.uint64(attribute % WORD_BITS)


def _rank(names: list[str], indexes: Mapping[str, int]) -> I64:
    """The place of each index among names in order; 0 for one that is not among them."""
    rank: I64 = np.zeros(max(indexes.values(), default=-1) + 1, np.int64)
    for place, name in enumerate(names):
        rank[indexes[name]] = place
    return rank


def _permuted(masks: U64, bits: list[int]) -> U64:
    """Masks of which bit i is the given bit of other masks."""
    permuted: U64 = np.zeros((len(masks), mask_words(len(bits))), np.uint64)
    for place, bit in enumerate(bits):
        is_set = masks[:, bit // WORD_BITS] >> np.uint64(bit % WORD_BITS) & np.uint64(1)
        permuted[:, place // WORD_BITS] |= is_set << np.uint64(place % WORD_BITS)
    return permuted

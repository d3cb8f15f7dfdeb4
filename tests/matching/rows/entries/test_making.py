"""Entries of subscriptions: together they hold exactly when the filters do."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import PARAMETERS, events_aimed_at, filters, numbers, values
from tidegate.language.evolve import Cached, Periodic
from tidegate.language.filters import Filter, parse
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.semantics import holds
from tidegate.language.values import Kind, Value
from tidegate.matching.arrays import I32, NO_TIME
from tidegate.matching.rows.encoding import Encoded, encode_event, encode_variables
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.making import EntryMaker
from tidegate.matching.rows.judging import judge_event
from tidegate.matching.rows.kernels.constraints import in_set, satisfied
from tidegate.matching.rows.kernels.entry_lists import Entries
from tidegate.matching.rows.kernels.flags import (
    DEAD,
    MOVING,
    ORDINAL_SHIFT,
    SET,
    SHARED,
    VERIFY,
)
from tidegate.matching.rows.kernels.functions import check_functions
from tidegate.matching.rows.kernels.motion import EVERY, M_PIN, M_SINCE
from tidegate.matching.rows.kernels.programs import STACK_MAX
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.subscription import Moment, Subscription

SECOND = 1_000_000


class Made:
    """Subscriptions in a table, and their entries."""

    def __init__(self, *subscriptions: Subscription) -> None:
        self.table, self.channels = SubscriptionTable(), Channels()
        self.channels.variable_kinds["mode"] = frozenset([Kind.NUMBER, Kind.TIME])
        self.maker = EntryMaker(self.table, self.channels)
        self.numbers = self.table.stage(subscriptions)
        self.table.publish(self.numbers)
        self.lists = list(self.maker.entries(self.numbers))
        self.channels.flush()

    def flags(self) -> list[tuple[int, int]]:
        """The subscription and the flags of each entry."""
        return sorted(
            pair
            for each in self.lists
            for pair in zip(each.subscription.tolist(), each.flags.tolist(), strict=True)
        )

    def found(self, event: dict[str, Value], moment: Moment) -> dict[int, bool]:
        """The subscriptions that some entry finds, and whether all such need verification."""
        encoded = encode_event(event, self.channels, self.table.pool)
        judge_event(encoded.matrix, event, moment, self.channels)
        found: dict[int, bool] = {}
        for entries in self.lists:
            for index, number in enumerate(entries.subscription.tolist()):
                flags = self._satisfied(entries, index, encoded, moment)
                if flags >= 0:
                    found[number] = found.get(number, True) and bool(flags & VERIFY)
        return found

    def _satisfied(self, entries: Entries, index: int, event: Encoded, moment: Moment) -> int:
        """The flags of an entry that an event satisfies; -1 if it does not."""
        flags = entries.flags[index]
        if flags & DEAD:
            return -1
        (row,) = event.matrix
        for place in range(entries.first[index], entries.first[index + 1]):
            channel = entries.channel[place]
            low, high = entries.low[place], entries.high[place]
            if channel & SET:
                is_inside = in_set(row[channel ^ SET], low, high, event.set_first, event.set_value)
            else:
                is_inside = satisfied(row[channel], low, high)
            if not is_inside:
                return -1
        begin, end = entries.motion_first[index : index + 2].astype(np.int64)
        if begin == end:
            return int(flags)
        time_us = NO_TIME if moment.time_us is None else np.int64(moment.time_us)
        return int(
            check_functions(
                np.int64(flags), begin, end, entries.motion, entries.motion.view(np.int64),
                np.array([*self.channels.program, 0], np.int32), event.matrix, np.int64(0),
                time_us, encode_variables(moment.variables, self.channels), np.empty(STACK_MAX),
            )
        )  # fmt: skip


def subscription(id: str, text: str) -> Subscription:
    return Subscription(id, parse(text))


parameters = st.fixed_dictionaries({}, optional=dict.fromkeys(PARAMETERS, values))
moments = st.builds(
    Moment,
    st.none() | st.integers(0, 5 * SECOND),
    st.fixed_dictionaries({}, optional={"load": numbers, "mode": values}),
)


@given(st.lists(st.tuples(filters, parameters), min_size=1, max_size=4), moments, st.data())
def test_entries_hold_when_filters_do(
    drawn: list[tuple[Filter, dict[str, Value]]], moment: Moment, data: st.DataObject
) -> None:
    """An entry that is to be verified may hold more often, never less."""
    subscriptions = [
        Subscription(
            str(number),
            filter,
            {name: value for name, value in filled.items() if name in filter.parameters},
            since=SECOND,
        )
        for number, (filter, filled) in enumerate(drawn)
    ]
    made = Made(*subscriptions)
    event = data.draw(events_aimed_at(*(filter.node for filter, _ in drawn)))
    found = made.found(event, moment)
    for number, each in zip(made.numbers.tolist(), subscriptions, strict=True):
        wanted = holds(each.filter.node, event, each.environment(moment))
        if wanted:
            assert number in found
        else:
            assert found.get(number, True)


def test_plain_filters_of_all_shapes_are_one_list() -> None:
    made = Made(subscription("a", "x < 1"), subscription("b", "y = 'b'"), subscription("c", "true"))
    (entries,) = made.lists
    assert sorted(entries.subscription.tolist()) == [0, 1, 2]
    assert made.flags() == [(0, 0), (1, 0), (2, 0)]


def test_a_subscription_of_several_disjuncts_has_shared_entries() -> None:
    made = Made(subscription("a", "x < 1 or y < 1"), subscription("b", "x in (1, 2, 3)"))
    shared = [(number, SHARED | ordinal << ORDINAL_SHIFT) for number, ordinal in
              ((0, 1), (0, 2), (1, 1), (1, 2), (1, 3))]  # fmt: skip
    assert made.flags() == shared


def test_a_filter_that_matches_nothing_has_no_living_entry() -> None:
    made = Made(
        subscription("a", "false"), Subscription("b", Filter(parse_filter("x > 2 and x < 1")))
    )
    assert all(flags & DEAD for _, flags in made.flags())


def test_rows_of_one_shape_with_values_of_other_kinds() -> None:
    made = Made(*(subscription(id, f"x = {id} or y = 1") for id in ("1", "2.5", "'s'", "true")))
    found = {str(value): made.found({"x": value}, Moment()) for value in (1, 2.5, "s", True)}
    assert found == {"1": {0: False}, "2.5": {1: False}, "s": {2: False}, "True": {3: False}}


def test_nothing_is_made_of_no_subscriptions() -> None:
    made = Made(subscription("a", "x < 1"))
    none: I32 = np.zeros(0, np.int32)
    assert list(made.maker.entries(none)) == []


def test_entries_of_some_subscriptions_only() -> None:
    made = Made(*(subscription(str(number), f"x < {number} + t") for number in range(3)))
    some = list(made.maker.entries(np.array([2, 0], np.int32)))
    assert sorted(number for each in some for number in each.subscription.tolist()) == [0, 2]


def test_a_motion_knows_the_origin_and_the_mode_of_its_subscription() -> None:
    moving = parse("x < t")
    made = Made(
        Subscription("lazy", moving, since=5),
        Subscription("periodic", moving, since=6, evolve=Periodic(2)),
        Subscription("cached", moving, since=7, evolve=Cached(2), pinned_at_us=9),
        Subscription("timeless", moving),
        Subscription("later", moving, since=8, origin=3),
    )
    (entries,) = made.lists
    words = entries.motion.view(np.int64).reshape(len(made.numbers), -1)
    assert entries.flags.tolist() == [MOVING] * 5
    assert words[:, M_SINCE].tolist() == [5, 6, 7, NO_TIME, 3]
    assert words[:, M_PIN].tolist() == [EVERY, EVERY + 2 * SECOND, 9, EVERY, EVERY]


# -- lists ----------------------------------------------------------------------------------------

MEMBERS = [1, 2, 2.5, 3, "a", "b", True, 2**60]
LISTS = [
    "x in (1, 2.5, 'a', true, :p)",
    "x in (1, 2, 3, :p) and y in ('a', :p) and z > 1",
    "x in (1, 2) and x in (2, 3, :p)",
    "x in (1, 2, :p) and x < 2 + t and y in ('a', 'b')",
    "x in (1, 2) or y in ('a', :p, 'b') or z = 3",
    "x in (1152921504606846976, 3) and y != :p",
    "x in (1, @v) or x not in (1, :p)",
]


@given(
    st.lists(st.tuples(st.sampled_from(LISTS), st.sampled_from([None, *MEMBERS])), min_size=1),
    st.lists(st.fixed_dictionaries({name: st.sampled_from(MEMBERS) for name in "xyz"}), min_size=1),
)
def test_lists_are_found_by_each_of_their_values(
    chosen: list[tuple[str, Value | None]], events: list[dict[str, Value]]
) -> None:
    subscriptions = [
        Subscription(f"s{number}", Filter(parse_filter(text)), {} if p is None else {"p": p}, 0)
        for number, (text, p) in enumerate(chosen)
    ]
    made = Made(*subscriptions)
    moment = Moment(SECOND, {"v": 2})
    for event in events:
        found = made.found(event, moment)
        for number, each in zip(made.numbers.tolist(), subscriptions, strict=True):
            matches = holds(each.filter.node, event, each.environment(moment))
            assert (number in found) >= matches
            assert matches or found.get(number, True), "found, and sure, but wrong"


def test_a_list_as_long_as_a_filter_may_have_needs_no_verification() -> None:
    long = ", ".join(f"'w{number}'" for number in range(5000))
    wide = ", ".join(map(str, range(900)))
    texts = [f"s in ({long}) and x > 1", f"s in ('a', 'b', 'c') and x in ({wide})"]
    made = Made(*(Subscription(text[-9:], parse(text), {}) for text in texts))
    assert {flags & VERIFY for _, flags in made.flags()} == {0}
    assert len(made.flags()) == 5000 + 3 * 900


def test_lists_whose_choices_are_too_many_are_verified() -> None:
    values = ", ".join(map(str, range(100)))
    made = Made(Subscription("s", parse(f"x in ({values}) and y in ({values})"), {}))
    assert [flags & VERIFY for _, flags in made.flags()] == [VERIFY] * 100

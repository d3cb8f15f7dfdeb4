"""Plain filters of many shapes, made entries all at once: they hold when the filters do."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.language.filters import Filter, parse
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.semantics import holds
from tidegate.language.shapes import Shape
from tidegate.language.values import Value
from tidegate.matching.arrays import I32
from tidegate.matching.rows.encoding import encode_event
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.comparisons import is_plain, plain_entries
from tidegate.matching.rows.kernels.constraints import satisfied
from tidegate.matching.rows.kernels.entry_lists import Entries
from tidegate.matching.rows.kernels.flags import DEAD, SET, VERIFY
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.subscription import Moment, Subscription

BIG = 2**53 + 1
TEXTS = [
    "x < 2", "x > 2 and x < 5", "x > 5 and x < 2", "x = 2 and y = 'a'", "x != 2", "x is not null",
    "x = true", "y = 'a'", "y != 'a'", "y > 'a'", "x >= :p", "x = :unset", "x < 2 and x != 1",
    f"x = {BIG}", f"x > {BIG} and x < {BIG + 9}", "x between 1 and 3",
    "x = timestamp '2026-01-02T12:00:00Z'", "x <= 1e308 and x >= -1e308",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x < 1 and y like 'a%' and z is not null", True),
        ("x between :p and 3", True),
        ("true", True),
        ("x < 1 or y < 1", False),
        ("x in (1, 2)", False),
        ("x not in (1, 2)", False),
        ("x < 1 + t", False),
        ("x < :p * 2", False),
        ("x < now()", False),
        ("x < @load", False),
    ],
)
def test_what_is_plain(text: str, wanted: bool) -> None:
    shape, _ = parse(text).shape_and_row
    assert is_plain(shape) is wanted


def compiled(subscriptions: list[Subscription]) -> tuple[SubscriptionTable, Channels, Entries]:
    table, channels = SubscriptionTable(), Channels()
    numbers = table.stage(subscriptions)
    table.publish(numbers)
    members: list[tuple[Shape, I32]] = [
        (table.shapes[shape], some) for shape, some in table.by_shape(numbers)
    ]
    return table, channels, plain_entries(members, table, channels)


some_values: st.SearchStrategy[Value] = st.sampled_from(
    [0, 1, 2, 2.0, 2.5, 3, 5, BIG, BIG + 1, float(BIG), "a", "b", True]
)


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8), st.data())
def test_entries_hold_when_filters_do(texts: list[str], data: st.DataObject) -> None:
    """Those that are to be verified may hold more often, never less."""
    names = st.sampled_from("xy")
    event = data.draw(st.dictionaries(names, some_values))
    subscriptions = [
        Subscription(str(n), Filter(parse_filter(text)), {"p": 2.5} if ":p" in text else {})
        for n, text in enumerate(texts)
    ]
    table, channels, entries = compiled(subscriptions)
    (row,) = encode_event(event, channels, table.pool).matrix
    for index, number in enumerate(entries.subscription.tolist()):
        part = slice(int(entries.first[index]), int(entries.first[index + 1]))
        asked = zip(entries.channel[part], entries.low[part], entries.high[part], strict=True)
        found = not entries.flags[index] & DEAD and all(
            satisfied(row[channel], low, high) for channel, low, high in asked
        )
        each = subscriptions[number]
        wanted = holds(each.filter.node, event, each.environment(Moment(None, {})))
        if entries.flags[index] & VERIFY:
            assert found or not wanted
        else:
            assert found == wanted, (texts[number], event)


def test_each_channel_of_an_entry_has_one_range() -> None:
    _, _, entries = compiled([Subscription("s", parse("x > 1 and x < 9 and x >= 3 and y = 2"))])
    assert entries.channel.tolist() == sorted(set(entries.channel.tolist()))
    assert entries.low.tolist()[0] == 3.0
    assert entries.high.tolist()[0] == math.nextafter(9.0, 0.0)


def test_patterns_are_constraints_on_sets() -> None:
    _, channels, entries = compiled(
        [Subscription("s", parse("y like 'a%'")), Subscription("u", parse("y not like 'a%'"))]
    )
    assert all(channel & SET for channel in entries.channel.tolist())
    assert len(channels.patterns["y"].patterns()) == 1

"""An update in place must leave an index as if the subscription had come with the new values.

Whatever can be updated by plans is tested here: the columnar matcher and the search tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.strategies import neighbours
from support.tree_invariants import check_tree
from tidegate.errors import UnresolvedError
from tidegate.language.events import Event
from tidegate.language.expressions import ParameterRef
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value
from tidegate.matching.arrays import I32
from tidegate.matching.batches import EventBatch
from tidegate.matching.columnar.index import Index
from tidegate.matching.columnar.kernels.layout import DEFAULT_SIZES
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.columnar.sizes import IndexSizes
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.rows.entries.channels import NUMBER, Channels
from tidegate.matching.rows.entries.making import EntryMaker
from tidegate.matching.rows.kernels.cell_kinds import FLOAT
from tidegate.matching.rows.kernels.motion import MOTION_WORDS, R_CONSTANTS
from tidegate.matching.rows.kernels.programs import (
    C_LESS,
    P_CONSTANT,
    P_END,
    P_SUBTRACT,
    STACK_MAX,
)
from tidegate.matching.rows.store.cells import StringPool, encode
from tidegate.matching.rows.update_plans import plan_update
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.index import TreeIndex
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import PLAIN, TreeTuning

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
BIG = 2**53

# -- the same as new ------------------------------------------------------------------------------

STATIC = [
    "x < :a",
    "x >= :a and x <= :b",
    "x between :a - 3 and :a + 3",
    "x = :a",
    "k = 1 and x > :a and y < :b",
    "k = 1 and x = :a and y > :b",
    "x > :a / :b",
    "x != :a and y > :b",
    "x in (:a, :b)",
    "x > :a or y < :b",
    "x starts with :a",
    "k = 1 and y < :b and x = :a and x <= :b",
    "x > :a and y < :b or x = :a and k = 1 or y = :b",
    "k = 1 and x = :a or k = 1 and y < :b",
    "x in (:a, :b, 3) and y < :b",
    "x in (:a, 2) and y in (:b, 3) or x > :b",
    "x != :a",
    "x not starts with :a and y < :b",
    "x starts with :a or y contains :b",
    "x like :a and k = 1",
    "x = :a and x starts with :b",
    "x starts with :a and x ends with :b",
]
EVOLVING = [
    "x > :a + :b * t",
    "x between :a + t and :b + t",
    "k = 1 and x < :a - t and y >= :b",
    "x > t and x < :a",
    "x > :a * sin(t) and y < :b * sin(t)",
    "x <= :a + @load * t",
    "x > :a % (1 + t) and x != :b",
    "x > :a + t or y < :b * t and k = 1",
    "x in (:a, 4) and y < :b + t",
    "k = 1 and x != :a and y > :b + t or y = :a",
]

COUNT = DEFAULT_SIZES.bitmap_entries_min + 40


def subscription(filter: Filter, number: int) -> Subscription:
    """One of many whose bounds are spread out, some of them empty."""
    low = number * 7 % 23 - 5
    parameters: dict[str, Value] = {"a": low, "b": low + number % 9 - 1.5}
    known = {name: value for name, value in parameters.items() if name in filter.parameters}
    return Subscription(f"s{number}", filter, known, number % 3 * 1_000_000)


small = st.integers(-6, 24) | st.sampled_from([0.5, 2.25, 7.5, -3.5])
large = st.sampled_from([BIG - 1, BIG, BIG + 1, float(BIG), -BIG - 1, 2**63 - 1, math.inf])
others = st.sampled_from(["a", "ab", "a%", "", True, False, NOON, NOON + timedelta(seconds=3)])
values: st.SearchStrategy[Value] = st.one_of(small, small, large, others)

changes: st.SearchStrategy[dict[str, Value | None]] = st.fixed_dictionaries(
    {}, optional={"a": values | st.none(), "b": values | st.none()}
)
events = st.fixed_dictionaries({"x": values}, optional={"y": values, "k": st.just(1)})
moments = st.builds(
    Moment,
    st.none() | st.integers(0, 30_000_000),
    st.fixed_dictionaries({}, optional={"load": small}),
)


Rewriting = ColumnarMatcher | TreeMatcher
"""A matcher that updates entries by plans."""

MAKERS: dict[str, Callable[[], Rewriting]] = {
    # lays out a hundred subscriptions already, and again after 3 windows
    "columnar": lambda: ColumnarMatcher(
        sizes=IndexSizes(open_entries_max=32, windows_per_layout=3)
    ),
    "tree": lambda: TreeMatcher(TreeTuning(leaf_paths_max=3)),
    "plain tree": lambda: TreeMatcher(PLAIN),
    "factored tree": lambda: TreeMatcher(TreeTuning(leaf_paths_max=2, factored=1)),
}
every_matcher = pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
# all of them together get as many examples as another test
shared_examples = settings(max_examples=max(5, settings().max_examples // len(MAKERS)))
both_matchers = pytest.mark.parametrize("make", [ColumnarMatcher, TreeMatcher])


def found(
    matcher: Rewriting | NaiveMatcher, event: Mapping[str, Value], moment: Moment
) -> list[str]:
    return sorted(matcher.match(Event(event), moment))


def check(matcher: Rewriting) -> None:
    """Check the invariants of a tree."""
    if isinstance(matcher, TreeMatcher):
        check_tree(matcher._index.tree)


Step = tuple[int, dict[str, Value | None], dict[str, Value], Moment]
"""Which subscription gets other values for its parameters, and what comes then."""


def steps(changes: st.SearchStrategy[dict[str, Value | None]]) -> st.SearchStrategy[list[Step]]:
    numbers = st.sampled_from([0, 1, 2, COUNT - 1])
    return st.lists(st.tuples(numbers, changes, events, moments), min_size=1, max_size=4)


def check_steps(make: Callable[[], Rewriting], filter: Filter, steps: list[Step]) -> None:
    """Updated is as good as new, and as the oracle."""
    subscriptions = [subscription(filter, number) for number in range(COUNT)]
    naive, updated, fresh = NaiveMatcher(), make(), make()
    naive.add(subscriptions)
    updated.add(subscriptions)
    updated.match(Event({}), Moment())
    for number, parameters, event, moment in steps:
        known = {name: v for name, v in parameters.items() if name in filter.parameters}
        naive.update(f"s{number}", known)
        updated.update(f"s{number}", known)
        assert found(updated, event, moment) == found(naive, event, moment)
    check(updated)
    fresh.add([naive.get(each.id) for each in subscriptions])
    for number, _, _, moment in steps:
        for value in naive.get(f"s{number}").parameters.values():
            for near in neighbours(value):
                event = {"x": near, "y": near, "k": 1}
                assert found(updated, event, moment) == found(fresh, event, moment)


@every_matcher
@shared_examples
@given(st.sampled_from(STATIC).map(parse), steps(changes))
def test_updated_is_as_good_as_new(
    make: Callable[[], Rewriting], filter: Filter, steps: list[Step]
) -> None:
    check_steps(make, filter, steps)


@every_matcher
@shared_examples
@given(st.sampled_from(EVOLVING).map(parse), steps(changes))
def test_a_function_that_is_updated_is_as_good_as_new(
    make: Callable[[], Rewriting], filter: Filter, steps: list[Step]
) -> None:
    check_steps(make, filter, steps)


@every_matcher
@shared_examples
@given(
    st.lists(st.sampled_from([*STATIC, *EVOLVING]).map(parse), min_size=1, max_size=3),
    st.lists(st.dictionaries(st.integers(0, COUNT - 1), changes, max_size=8), max_size=3),
    st.lists(st.tuples(events, moments), min_size=1, max_size=3),
)
def test_many_updates_at_once_are_as_one_after_the_other(
    make: Callable[[], Rewriting],
    filters: list[Filter],
    rounds: list[dict[int, dict[str, Value | None]]],
    judged: list[tuple[dict[str, Value], Moment]],
) -> None:
    subscriptions = [subscription(filters[n % len(filters)], n) for n in range(COUNT)]
    naive, updated = NaiveMatcher(), make()
    for half in (subscriptions[::2], subscriptions[1::2]):  # in parts of their own
        naive.add(half)
        updated.add(half)
        updated.match(Event({}), Moment())
    for each in rounds:
        updates = {
            f"s{n}": {k: v for k, v in c.items() if k in subscriptions[n].filter.parameters}
            for n, c in each.items()
        }
        updated.update_many(updates)
        for id, known in updates.items():
            naive.update(id, known)
        for event, moment in judged:
            assert found(updated, event, moment) == found(naive, event, moment)
    check(updated)
    for one in subscriptions:
        assert updated.get(one.id).parameters == naive.get(one.id).parameters


@both_matchers
def test_of_many_updates_all_are_made_or_none(make: Callable[[], Rewriting]) -> None:
    matcher = make()
    matcher.add([Subscription(id, parse("x < :a"), {"a": 1}) for id in ("s", "u")])
    with pytest.raises(UnresolvedError, match=r"subscription 'u' has no parameter :b; it has :a"):
        matcher.update_many({"s": {"a": 9}, "u": {"b": 9}})
    with pytest.raises(KeyError):
        matcher.update_many({"s": {"a": 9}, "v": {"a": 9}})
    assert found(matcher, {"x": 2}, Moment()) == []
    matcher.update_many({})
    matcher.update_many({"s": {"a": 9}, "u": {}})
    assert found(matcher, {"x": 2}, Moment()) == ["s"]


@both_matchers
@pytest.mark.parametrize("other", [{"a": 0}, {"a": 0, "b": "m"}])
def test_a_plan_made_for_one_row_fits_another(
    make: Callable[[], Rewriting], other: dict[str, Value]
) -> None:
    filter = parse("x between :a + t and :b + t")
    matcher = make()
    matcher.add([Subscription("s", filter, {"a": 0, "b": 10}), Subscription("o", filter, other)])
    matcher.match(Event({}), Moment())
    matcher.update("o", {"a": 1})
    matcher.match(Event({}), Moment())
    matcher.update("s", {"a": 5})
    matches = [x for x in range(12) if "s" in matcher.match(Event({"x": x}), Moment())]
    assert matches == [5, 6, 7, 8, 9, 10]


def values_in_turn() -> Iterator[Value | None]:
    """Kinds that follow each other in any order, with numbers between them."""
    kinds: list[Value | None] = [3, 3.5, BIG + 1, NOON, "ab", True, None]
    for first in kinds:
        for second in kinds:
            yield first
            yield second


@pytest.mark.slow  # 98 updates of each filter by each matcher
@every_matcher
@pytest.mark.parametrize("text", [*STATIC, *EVOLVING])
def test_a_parameter_takes_every_kind_after_every_other(
    make: Callable[[], Rewriting], text: str
) -> None:
    filter = parse(text)
    naive, updated = NaiveMatcher(), make()
    subscriptions = [subscription(filter, number) for number in range(COUNT)]
    naive.add(subscriptions[:1])
    updated.add(subscriptions)
    updated.match(Event({}), Moment())
    for value in values_in_turn():
        for matcher in (naive, updated):
            matcher.update("s0", {"a": value})
        for x in (2, 3, 4, BIG + 1, NOON, "abc", True):
            event = {"x": x, "y": 100, "k": 1}
            matches = found(updated, event, Moment(2_000_000))
            assert ("s0" in matches) == bool(naive.match(Event(event), Moment(2_000_000)))
    check(updated)


@every_matcher
@pytest.mark.parametrize("text", ["x between :a and :b", "k = 1 and x between :a + t and :b + t"])
def test_a_range_may_be_empty_for_a_while(make: Callable[[], Rewriting], text: str) -> None:
    matcher = make()
    matcher.add([subscription(parse(text), number) for number in range(COUNT)])
    for low, high in [(3, 5), (5, 3), (6, 2), (4, 4), (9, 3), (3, 5)]:
        matcher.update("s0", {"a": low, "b": high})
        matches = ["s0" in matcher.match(Event({"x": x, "k": 1}), Moment(0)) for x in range(2, 7)]
        assert matches == [low <= x <= high for x in range(2, 7)]
        check(matcher)


@every_matcher
def test_bounds_that_move_are_written_anew_as_time_goes_on_and_back(
    make: Callable[[], Rewriting],
) -> None:
    filter = parse("x between :a + :b * t and :a + 2 + :b * t")
    naive, updated = NaiveMatcher(), make()
    subscriptions = [subscription(filter, number) for number in range(COUNT)]
    naive.add(subscriptions)
    updated.add(subscriptions)
    for step, seconds in enumerate([0, 1, 5, 100, 3, 1000, 0, 86_400 * 30, 2, 2, 50]):
        for number in (step % 5, COUNT - 1):
            for matcher in (naive, updated):
                matcher.update(f"s{number}", {"a": step, "b": (step % 3 - 1) / 4})
        for moment in (Moment(seconds * 1_000_000), Moment()):
            for x in range(-5, 25, 2):
                assert found(updated, {"x": x}, moment) == found(naive, {"x": x}, moment)
        check(updated)


@every_matcher
def test_what_is_sure_is_found_out_anew_for_each_window(make: Callable[[], Rewriting]) -> None:
    filter = parse("x between :a + t and :b + t")
    matcher = make()
    matcher.add([Subscription(f"s{n}", filter, {"a": 0, "b": 9}, 0) for n in range(COUNT)])
    events = EventBatch.of_events([Event({"x": 2.2}), Event({"x": 2.2})])
    matcher.match(Event({}), Moment(1_000_000_000))
    matcher.match(Event({}), Moment(0))
    matches = matcher.match_batch(events.judged_at(np.array([1_500_000, 2_400_000])))
    assert matches.events.tolist() == [0] * COUNT


@every_matcher
@pytest.mark.parametrize(
    ("text", "value"),
    [("x = :a", -0.0), ("x = :a * -1", 0), ("x > :a and x < 5e-324", -5e-324)],
)
def test_minus_zero_is_found_when_it_is_laid_out(
    make: Callable[[], Rewriting], text: str, value: float
) -> None:
    matcher = make()
    matcher.add([Subscription("s", parse(text), {"a": 1})])
    matcher.add([subscription(parse("x = :a"), number) for number in range(COUNT)])
    matcher.match(Event({}), Moment())
    matcher.update("s", {"a": value})
    assert "s" in found(matcher, {"x": 0}, Moment())
    more = [Subscription(f"y{number}", parse(f"y < {number}")) for number in range(COUNT)]
    matcher.add(more)
    assert "s" in found(matcher, {"x": 0}, Moment())


# -- in place -------------------------------------------------------------------------------------


def is_in_place(
    matcher: Rewriting, text: str, before: Mapping[str, Value], after: Mapping[str, Value | None]
) -> bool:
    """Whether an update is made in place, without a new entry."""
    matcher.add([Subscription("s", parse(text), before)])
    matcher.match(Event({}), Moment())
    with mock.patch.object(EntryMaker, "entries", autospec=True) as entries:
        matcher.update("s", after)
    return not entries.called


@pytest.mark.parametrize(("make", "index"), [(ColumnarMatcher, Index), (TreeMatcher, TreeIndex)])
def test_many_updates_of_one_kind_are_written_in_place_by_few_calls(
    make: Callable[[], Rewriting], index: type
) -> None:
    matcher = make()
    texts = ["x < :a", "y > :a and x < 5", "x > :a + t", "x in (1, 2) or y < :a"]
    matcher.add([Subscription(f"s{n}", parse(texts[n % 4]), {"a": n}) for n in range(80)])
    matcher.match(Event({}), Moment())
    matcher.update_many({f"s{n}": {"a": n} for n in range(4)})  # which makes the plans
    matcher.match(Event({}), Moment())
    with (
        mock.patch.object(index, "rewrite", autospec=True) as rewrite,
        mock.patch.object(EntryMaker, "entries", autospec=True) as entries,
    ):
        matcher.update_many({f"s{n}": {"a": n + 1} for n in range(80) if n % 4 < 3})
        assert not rewrite.called
        assert not entries.called


@both_matchers
@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("x < :a", {"a": 1}, {"a": 2}),
        ("x < :a", {"a": 1}, {"a": 2.5}),
        ("x < :a", {"a": 1.5}, {"a": 2}),
        ("x < :a", {"a": NOON}, {"a": NOON + timedelta(seconds=1)}),
        ("x = :a", {"a": True}, {"a": False}),
        ("x = :a", {"a": "m"}, {"a": "a new string"}),
        ("x = :a and y < :b", {"a": "m", "b": 1}, {"a": "n", "b": 2}),
        ("x > :a and x < :b", {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        ("x > :a and x < :b", {"a": 1, "b": 2}, {"a": 5}),
        ("x > :a and y < :b", {"a": 1, "b": 2}, {"a": 5, "b": 6}),
        ("x between :a - 3 and :a + 3", {"a": 1}, {"a": 2}),
        ("x > :a + t", {"a": 1}, {"a": 2.5}),
        ("x > :a * sin(t) and x < :b", {"a": 1, "b": 2}, {"a": 3, "b": 4}),
        ("x > :a * sin(t)", {"a": 1}, {"a": BIG + 1}),
    ],
)
def test_values_of_one_kind_are_written_in_place(
    make: Callable[[], Rewriting], text: str, before: dict[str, Value], after: dict[str, Value]
) -> None:
    assert is_in_place(make(), text, before, after)


@both_matchers
@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("x < :a", {"a": 1}, {"a": "m"}),
        ("x < :a", {"a": 1}, {"a": None}),
        ("x < :a", {}, {"a": 1}),
        ("x < :a", {"a": 1}, {"a": BIG}),
        ("x < :a", {"a": 1}, {"a": -math.inf}),
        ("x < :a", {"a": "m"}, {"a": "n"}),
        ("x < 1 / :a", {"a": 1}, {"a": 0}),
        ("x > :a + t", {"a": 1}, {"a": NOON}),
        ("x > :a and x < :b", {"a": 2, "b": 1}, {"a": 0}),  # it was empty when it came
    ],
)
def test_other_values_come_anew(
    make: Callable[[], Rewriting],
    text: str,
    before: dict[str, Value],
    after: dict[str, Value | None],
) -> None:
    assert not is_in_place(make(), text, before, after)


# -- plans ----------------------------------------------------------------------------------------


def plan(text: str, names: str, **parameters: Value) -> I32:
    """The plan for a change of some parameters, of a filter whose row has these values."""
    shape, row = parse(text).shape_and_row
    pool = StringPool()
    known = [parameters.get(e.name) if isinstance(e, ParameterRef) else e for e in row]
    kinds = [encode(value, pool)[0] for value in known]
    slots = [
        slot
        for slot, e in enumerate(row)
        if isinstance(e, ParameterRef) and e.name in names.split()
    ]
    channels = Channels()
    for attribute in ("x", "y"):
        channels.channel(attribute, NUMBER)
    return plan_update(shape, kinds, slots, channels).alone


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("x < :a", "a", [1, *(0, 0, 1), *(C_LESS, 1, 0, 2, P_CONSTANT, P_END), 0]),
        (
            "y < :a - 3",
            "a",
            [
                *(1, 1, 0, 1),
                *(C_LESS, 2, 0, 1, 4, P_CONSTANT, P_CONSTANT, P_SUBTRACT, P_END),
                0,
            ],
        ),
        # only what follows from the change
        ("x < :a and y < :b", "b", [1, *(1, 0, 1), *(C_LESS, 1, 1, 2, P_CONSTANT, P_END), 0]),
        # words of the motion, and the cells that they come from
        ("x < :a + :b * t", "b", [0, 1, MOTION_WORDS + R_CONSTANTS + 1, 1]),
        (
            "x < :a + :a * t",
            "a",
            [0, 2, *(MOTION_WORDS + R_CONSTANTS, 0), *(MOTION_WORDS + R_CONSTANTS + 1, 1)],
        ),
        ("x < t and x > :a", "a", [0, 1, MOTION_WORDS + R_CONSTANTS + R_CONSTANTS, 0]),
    ],
)
def test_plans(text: str, names: str, expected: list[int]) -> None:
    found = plan(text, names, a=1, b=2.5).tolist()
    cells = found[0]
    assert found[1 : cells + 1] == [FLOAT] * cells
    assert found[cells + 1 :] == expected


@pytest.mark.parametrize(
    "text",
    [
        "x > :a or y < 3",
        "x in (:a, 3)",
        "x not in (:a, 3)",
        "y > :a and x in (1, 2)",
        "x != :a",
        "x != 3 and x > :a",
        "x like :a",
        "x > :a + now()",
        "x > :a and x < :time",
        "x > :time + :a",
        "x > :a and x < 'm'",
        "x > :word and y < :a",
        "x > :a and x < :unset",
        "x = :word and x < 'z'",
        "x = :word and x != 'z'",
    ],
)
def test_shapes_without_a_plan(text: str) -> None:
    assert not len(plan(text, "a word", a=1, time=NOON, word="m"))


@pytest.mark.parametrize(
    "text",
    [
        "y != :b and x > :a",
        "y like 'a%' and x > :a",
        "y is not null and x > :a",
        "y < now() and x > :a",
        "x > :a and x < now()",  # a judgement of its own
        "x > :a and x < @load",
        "y = 'm' and x > :a",
        "y > :unset and x > :a",
        "x = :word",
        "x > :a and x like 'a%'",
        "x > :a and x is not null",
    ],
)
def test_shapes_with_a_plan_whatever_does_not_change(text: str) -> None:
    assert len(plan(text, "a word", a=1, b=2, word="m"))


def test_a_function_of_too_many_constants_has_no_plan() -> None:
    constants = ", ".join(str(number) for number in range(STACK_MAX))
    assert not len(plan(f"x > min(:a, {constants})", "a", a=1))

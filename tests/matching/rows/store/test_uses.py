"""Numbers that are given out again: counts of uses, and free numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.rows.store.uses import FORGOTTEN, FreeNumbers, UseCounts


def test_a_number_means_something_until_it_is_forgotten() -> None:
    uses = UseCounts()
    number = uses.new()
    uses.add_one(number)
    uses.remove([number])
    assert (uses.unused, uses.new()) == (1, 1)
    uses.add([0, 1])  # it is used again, and not forgotten
    assert uses.forget() == []
    uses.remove([0])
    assert (uses.forget(), uses.counts(), len(uses), uses.end) == ([0], [FORGOTTEN, 1], 1, 2)
    assert (uses.new(), uses.unused) == (0, 1)


def test_a_new_number_that_is_never_used_is_forgotten_too() -> None:
    uses = UseCounts()
    assert [uses.new(), uses.new()] == [0, 1]
    assert uses.forget() == [0, 1]


def test_those_that_were_unused_longest_are_forgotten_first() -> None:
    uses = UseCounts([1, 1, 1, FORGOTTEN])
    uses.remove([2, 0, 1])
    assert (uses.forget(keep=1), uses.forget(keep=1), uses.unused) == ([2, 0], [], 1)
    assert sorted([uses.new(), uses.new(), uses.new(), uses.new()]) == [0, 2, 3, 4]


@given(st.lists(st.tuples(st.sampled_from(["new", "add", "remove", "forget"]), st.integers(0, 5))))
def test_counts_are_those_of_the_uses(steps: list[tuple[str, int]]) -> None:
    uses, model = UseCounts(), dict[int, int]()
    for step, argument in steps:
        if step == "new":
            number = uses.new()
            assert number not in model
            model[number] = 0
        elif step == "forget":
            forgotten = uses.forget(argument)
            assert [model.pop(number) for number in forgotten] == [0] * len(forgotten)
            assert uses.unused <= argument
        elif step == "add" and argument in model:
            uses.add([argument, argument])
            model[argument] += 2
        elif step == "remove" and model.get(argument):
            uses.remove([argument])
            model[argument] -= 1
    assert {n: count for n, count in enumerate(uses.counts()) if count != FORGOTTEN} == model
    assert (len(uses), uses.unused) == (len(model), list(model.values()).count(0))
    again = UseCounts(uses.counts())
    assert again.new() not in model


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9))))
def test_the_lowest_free_number_is_given_out_first(steps: list[tuple[bool, int]]) -> None:
    free, model = FreeNumbers(), set[int]()
    for is_added, number in steps:
        if is_added and number not in model:
            free.add(number)
            model.add(number)
        elif not is_added:
            assert free.remove(number) is (number in model)
            model.discard(number)
        assert list(free) == sorted(model)
        if len(model) > 5:
            assert free.take() == min(model)
            model.remove(min(model))
    assert [free.take() for _ in range(len(model) + 1)] == [*sorted(model), None]

from __future__ import annotations

import pytest

from tidegate.matching.poset.ordered_set import OrderedSet


def test_members_stay_in_insertion_order() -> None:
    found = OrderedSet(["c", "a"])
    found |= OrderedSet(["b", "a"])
    assert list(found) == ["c", "a", "b"]
    found.remove("c")
    found.add("c")
    assert list(found) == ["a", "b", "c"]


def test_it_is_a_set() -> None:
    found = OrderedSet([3, 1, 3])
    assert len(found) == 2
    assert found == OrderedSet([1, 3])
    assert set(found) == {1, 3}
    assert list(found & {1}) == [1]
    assert 2 not in found
    found.discard(2)
    with pytest.raises(KeyError):
        found.remove(2)

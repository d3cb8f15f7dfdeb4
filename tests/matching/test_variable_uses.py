"""Which variables filters use: counted by subscription, and right while threads add and cancel."""

from __future__ import annotations

from tidegate.matching.variable_uses import VariableUses


def test_a_name_is_used_as_long_as_a_subscription_has_it() -> None:
    uses = VariableUses(["kept"])
    for id, names in (("s", ["a", "b"]), ("t", ["b"]), ("u", [])):
        uses.note(names)
        uses.enter(id, names)
    uses.drop(uses.leave("s"))
    assert [name in uses for name in ("a", "b", "kept")] == [False, True, True]
    for id in ("s", "u", "t"):
        uses.drop(uses.leave(id))
    assert len(uses) == 1


def test_what_could_not_be_added_is_dropped() -> None:
    uses = VariableUses()
    uses.note(["a"])
    assert "a" in uses
    uses.drop(["a"])
    assert "a" not in uses


def test_a_name_of_a_living_subscription_is_never_dropped() -> None:
    """A thread adds `s`; before it says so, another one cancels it, and a third adds it again."""
    uses = VariableUses()
    uses.note(["a"])  # of the first
    uses.drop(uses.leave("s"))
    uses.note(["b"])
    uses.enter("s", ["b"])
    uses.enter("s", ["a"])  # the first says so only now
    assert "b" in uses


def test_the_names_of_the_next_one_with_an_id_are_not_taken_for_those_of_the_removed_one() -> None:
    uses = VariableUses()
    uses.note(["a"])
    uses.enter("s", ["a"])
    of_removed = uses.leave("s")
    uses.note(["b"])
    uses.enter("s", ["b"])
    uses.drop(of_removed)
    assert ["a" in uses, "b" in uses] == [False, True]

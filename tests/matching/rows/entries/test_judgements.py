from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.language.expressions import Expression, Now, Slot, Variable, format_expression
from tidegate.language.filters import parse
from tidegate.language.shapes import Shape
from tidegate.language.syntax import Predicate
from tidegate.language.values import Kind
from tidegate.matching.rows.entries import channels as channels_module
from tidegate.matching.rows.entries.channels import Channels, ShapeNeeds
from tidegate.matching.rows.entries.judgements import (
    COMPARED,
    Judgement,
    bases_of,
    is_common,
    kinds_of,
    names_now,
    parse_operand,
    shifts_of,
)
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, INTEGER, STRING, TIME, UNDEFINED
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter

NUMBER = {Kind.NUMBER}
TIMES = {"when": frozenset([Kind.TIME]), "both": frozenset(Kind) & {Kind.NUMBER, Kind.TIME}}


def operand(text: str) -> Expression:
    """The operand of a shape, with slots in place of constants and parameters."""
    (predicate,) = parse(f"x < {text}").shape_and_row[0].disjuncts[0]
    return predicate.operands[0]


@pytest.mark.parametrize(
    ("text", "common", "now"),
    [
        ("@v", True, False),
        ("now()", True, True),
        ("-@v", True, False),
        ("now() - @v", True, True),
        ("max(@v, @w)", True, False),
        ("@v + 1", False, False),
        ("@v + t", False, False),
        (":a", False, False),
        ("now() - :a", False, True),
    ],
)
def test_what_is_the_same_for_all_subscriptions(text: str, common: bool, now: bool) -> None:
    assert is_common(operand(text)) is common
    assert names_now(operand(text)) is now


def test_seconds_that_are_added_are_taken_apart() -> None:
    found = shifts_of(operand("now() - :a + 2 * :b"))
    assert found is not None
    assert found.base == Now()
    assert [(sign, format_expression(each)) for sign, each in found.steps] == [
        ("-", "?"),
        ("+", "? * ?"),
    ]
    other = shifts_of(operand("60 + @when"))
    assert other is not None
    assert (other.base, other.steps) == (Variable("when"), (("+", Slot(0)),))


@pytest.mark.parametrize(
    "text", ["60 - now()", "now() - t", "now() * 2", ":a", "now()", "@v - (1 - @w)"]
)
def test_what_is_no_shift(text: str) -> None:
    assert shifts_of(operand(text)) is None


@pytest.mark.parametrize(
    ("text", "cells", "expected"),
    [
        ("? + 1", (FLOAT, INTEGER), {Kind.NUMBER}),
        ("? + 1", (TIME, INTEGER), {Kind.TIME}),
        ("? - ?", (TIME, TIME), {Kind.NUMBER}),
        ("? + ?", (TIME, TIME), set()),
        ("? - ?", (INTEGER, TIME), set()),
        ("? * 2", (TIME, INTEGER), set()),
        ("? + 1", (STRING, INTEGER), set()),
        ("? + 1", (UNDEFINED, INTEGER), set()),
        ("now() - ?", (FLOAT,), {Kind.TIME}),
        ("now() - ?", (TIME,), {Kind.NUMBER}),
        ("@v + ?", (FLOAT,), {Kind.NUMBER}),
        ("@when + ?", (FLOAT,), {Kind.TIME}),
        ("@both - ?", (FLOAT,), {Kind.NUMBER, Kind.TIME}),
        ("-(now() - ?)", (TIME,), {Kind.NUMBER}),
        ("-@when + ?", (FLOAT,), set()),
        ("max(?, t)", (FLOAT,), {Kind.NUMBER}),
    ],
)
def test_kinds(text: str, cells: tuple[int, ...], expected: set[Kind]) -> None:
    names = iter("abc")
    written = "".join(f":{next(names)}" if each == "?" else each for each in text)
    assert kinds_of(operand(written), cells, TIMES) == expected


def test_an_operand_that_is_written_can_be_read() -> None:
    for text in ("@v", "now()", "-@v", "now() - @v", "max(@v, -(@w + @v) * @w)"):
        expression = operand(text)
        assert parse_operand(format_expression(expression)) == expression


def shape_of(text: str) -> Shape:
    return parse(text).shape_and_row[0]


def test_bases_of_a_shape() -> None:
    shape = shape_of("x < @v and y > now() - 60 and z < 5 or x = now() and z < :a + t")
    assert bases_of(shape) == {("x", Variable("v")), ("y", Now()), ("x", Now())}


def needs(text: str) -> ShapeNeeds:
    shape = shape_of(text)
    names = {each.attribute for each in shape.disjuncts[0] if isinstance(each, Predicate)}
    return ShapeNeeds(frozenset(names), frozenset(), frozenset(), bases_of(shape))


def test_a_judgement_goes_with_the_last_shape_that_needs_it() -> None:
    channels = Channels()
    channels.hold(0, needs("x < @v and z is not null"))
    channels.hold(1, needs("x > @v or x < @w and z is not null"))
    first = channels.judgement(Judgement("x", COMPARED, Variable("v")))
    second = channels.judgement(Judgement("x", COMPARED, Variable("w")))
    assert (first, second) == (0, 1)
    channels.release([0])
    assert len(channels.judgements) == 2
    channels.release([1])
    assert not channels.judgements
    assert channels.judgement(Judgement("y", COMPARED, Variable("v"))) == 0  # given out again


def test_there_are_not_too_many_judgements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels_module, "JUDGEMENTS_MAX", 2)
    channels = Channels()
    found = [channels.judgement(Judgement("x", COMPARED, Variable(name))) for name in "abca"]
    assert found == [0, 1, None, 0]


def test_kinds_of_variables_that_are_noticed_are_taken_up() -> None:
    channels = Channels()
    channels.hold(3, ShapeNeeds(frozenset(), frozenset(["v"]), frozenset(), frozenset()))
    channels.hold(4, ShapeNeeds(frozenset(), frozenset(["w"]), frozenset(), frozenset()))
    channels.noticed_kinds["v"] = Kind.TIME
    assert channels.take_up_kinds() == [3]
    assert channels.variable_kinds == {"v": {Kind.TIME}}
    channels.noticed_kinds["v"] = Kind.NUMBER
    assert channels.take_up_kinds() == [3]
    assert channels.variable_kinds == {"v": {Kind.TIME, Kind.NUMBER}}
    assert channels.take_up_kinds() == []


def test_a_snapshot_has_the_judgements(tmp_path: Path) -> None:
    channels = Channels()
    channels.channel("y", INTEGER)
    number = channels.judgement(Judgement("x", COMPARED, operand("now() - @v")))
    channels.variable_kinds["v"] = frozenset([Kind.TIME])
    into = SectionWriter()
    channels.save(into)
    into.write(tmp_path / "snapshot")
    loaded = Channels.load(SectionReader(tmp_path / "snapshot"))
    assert loaded.judgements == {Judgement("x", COMPARED, operand("now() - @v")): number}
    assert loaded.columns == 2
    assert loaded.variable_kinds == {"v": {Kind.TIME}}

"""Channels, variables, programs and patterns: their numbers, and snapshots of them."""

from __future__ import annotations

from pathlib import Path

from tidegate.language.syntax import Operator
from tidegate.matching.rows.entries.channels import (
    NUMBER,
    PATTERNS,
    PRESENT,
    SATISFIED_BYTES_MAX,
    Channels,
    ShapeNeeds,
)
from tidegate.matching.rows.kernels.cell_kinds import STRING
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter

STARTS, LIKE = Operator.STARTS_WITH, Operator.LIKE


def with_patterns(*texts: str, satisfied_bytes_max: int = SATISFIED_BYTES_MAX) -> Channels:
    """Channels with patterns on how the name starts."""
    channels = Channels(satisfied_bytes_max=satisfied_bytes_max)
    channels.channel("name", PATTERNS)
    for text in texts:
        channels.pattern("name", STARTS, text)
    channels.flush()
    return channels


def test_an_attribute_has_a_channel_for_each_kind() -> None:
    channels = Channels()
    first = channels.channel("price", NUMBER)
    assert channels.channel("price", STRING) == first + 1
    assert channels.channel("price", NUMBER) == first
    assert channels.channel("size", PRESENT) == first + 2
    assert channels.of_attribute == {
        "price": [(NUMBER, first), (STRING, first + 1)],
        "size": [(PRESENT, first + 2)],
    }
    assert channels.columns == 3


def test_a_channel_of_patterns_holds_sets() -> None:
    channels = with_patterns()
    number = channels.channel("name", PATTERNS)
    assert number & SET
    assert channels.of_attribute["name"] == [(PATTERNS, number ^ SET)]


def test_the_channel_of_lifetimes_is_of_no_attribute() -> None:
    assert Channels().known_lifetime is None
    channels = Channels()
    number = channels.lifetime()
    assert channels.known_lifetime == number == channels.lifetime()
    assert channels.channel("time", NUMBER) != number


def test_a_pattern_and_its_complement_have_one_number() -> None:
    channels = with_patterns("a", "b")
    assert channels.pattern("name", STARTS, "a") == 0
    assert channels.pattern("name", Operator.NOT_STARTS_WITH, "b") == 1
    assert channels.pattern("name", LIKE, "bad \\") is None


def test_what_a_string_satisfies() -> None:
    channels = with_patterns("a", "ab", "b")
    assert channels.satisfied("name", "abc").tolist() == [0, 1]
    assert channels.satisfied("name", "abc").tolist() == [0, 1]
    channels.pattern("name", STARTS, "abc")
    channels.flush()  # which forgets what was satisfied before
    assert channels.satisfied("name", "abc").tolist() == [0, 1, 3]


def test_what_is_not_cached_is_found_again() -> None:
    channels = with_patterns("a", "b", satisfied_bytes_max=1)
    for _ in range(2):
        found = [channels.satisfied("name", text).tolist() for text in ("a", "b", "c")]
        assert found == [[0], [1], []]


def test_variables_and_programs_by_number() -> None:
    channels = Channels()
    assert [channels.variable(name) for name in ("load", "mode", "load")] == [0, 1, 0]
    assert [channels.add_program(code) for code in ((1, 2, 0), (3, 0), (1, 2, 0))] == [0, 3, 0]
    assert channels.program.tolist() == [1, 2, 0, 3, 0, 0]


def test_snapshots_keep_all_numbers(tmp_path: Path) -> None:
    channels = with_patterns("a", "b")
    channels.channel("price", NUMBER)
    channels.lifetime()
    channels.pattern("name", LIKE, "%c%")
    channels.flush()
    channels.variable("load")
    channels.add_program((1, 2, 0))
    channels.add_program((3, 0))
    into = SectionWriter()
    channels.save(into)
    into.write(tmp_path / "snapshot")
    loaded = Channels.load(SectionReader(tmp_path / "snapshot"))
    assert loaded.numbers == channels.numbers
    assert loaded.of_attribute == channels.of_attribute
    assert loaded.variables == channels.variables
    assert loaded.program.tolist() == channels.program.tolist()
    assert loaded.add_program((3, 0)) == 3
    assert loaded.known_lifetime == channels.known_lifetime
    for text in ("a", "bc", "c", ""):
        expected = channels.satisfied("name", text).tolist()
        assert loaded.satisfied("name", text).tolist() == expected


def needs(*attributes: str, variables: str = "", programs: tuple[int, ...] = ()) -> ShapeNeeds:
    return ShapeNeeds(
        frozenset(attributes),
        frozenset(variables.split()),
        frozenset([programs] if programs else ()),
        frozenset(),
    )


def test_what_no_shape_needs_is_dropped_and_its_numbers_are_used_again() -> None:
    channels = Channels()
    channels.hold(0, needs("a", "b", variables="load", programs=(1, 0)))
    channels.hold(1, needs("b", variables="load mode", programs=(2, 0)))
    numbers = [channels.channel(name, NUMBER) for name in "ab"]
    assert [channels.variable(name) for name in ("load", "mode")] == [0, 1]
    assert [channels.add_program(code) for code in ((1, 0), (2, 0))] == [0, 2]
    channels.release([0, 7])  # 7 is not held
    assert list(channels.of_attribute) == ["b"]
    assert channels.variables == {"load": 0, "mode": 1}
    assert channels.channel("c", NUMBER) == numbers[0]
    assert channels.add_program((3, 0)) == 0
    channels.release([1])
    assert (list(channels.of_attribute), channels.variables) == (["c"], {})
    assert (channels.variable("other"), channels.variable_columns) == (0, 2)
    assert not channels.is_held(1)


def test_a_channel_of_values_never_becomes_one_of_sets() -> None:
    """A kernel would take a value for the number of a set; entries that are gone are looked at."""
    channels = Channels()
    channels.hold(0, needs("a"))
    value, sets = channels.channel("a", NUMBER), channels.channel("a", PATTERNS) & ~SET
    channels.release([0])
    assert channels.channel("b", PATTERNS) & ~SET == sets
    assert channels.channel("c", PATTERNS) & ~SET == 2
    assert channels.channel("b", STRING) == value


def test_columns_at_the_end_are_trimmed() -> None:
    channels = Channels()
    for number in range(10):
        channels.hold(number, needs(f"a{number}"))
        channels.channel(f"a{number}", PATTERNS if number % 2 else NUMBER)
    channels.release([0, 1, *range(6, 10)])
    channels.trim(8)
    assert channels.columns == 8  # an index may look at them still
    channels.trim(0)
    assert channels.columns == 6  # the last one has a channel
    assert channels.channel("b", NUMBER) == 0
    assert channels.channel("c", NUMBER) == 6
    assert channels.channel("d", PATTERNS) == 1 | SET


def test_patterns_go_with_their_text() -> None:
    channels = with_patterns("a", "b", "ab")
    channels.channel("place", PATTERNS)
    channels.pattern("place", LIKE, "a")
    assert channels.satisfied("name", "abc").tolist() == [0, 2]
    channels.forget_texts(["a", "unknown"])
    assert (len(channels.patterns["name"]), len(channels.patterns["place"])) == (2, 0)
    assert channels.pattern("name", Operator.ENDS_WITH, "z") == 0
    channels.flush()  # what strings have satisfied was with other numbers
    assert channels.satisfied("name", "abc").tolist() == [2]
    assert channels.satisfied("name", "xyz").tolist() == [0]


def test_an_attribute_that_comes_back_has_no_patterns() -> None:
    channels = Channels()
    for text in ("a", "b"):
        channels.hold(0, needs("name"))
        channels.channel("name", PATTERNS)
        assert channels.pattern("name", STARTS, text) == 0
        channels.flush()
        assert channels.satisfied("name", text).tolist() == [0]
        assert channels.satisfied("name", "a" if text == "b" else "b").tolist() == []
        channels.release([0])
    channels.forget_texts(["a", "b"])
    assert channels.patterns == {}


def test_a_snapshot_has_the_free_numbers_too(tmp_path: Path) -> None:
    channels = with_patterns("a", "b")
    channels.forget_texts(["a"])
    for number, name in enumerate(("x", "y", "z")):
        channels.hold(number, needs(name, variables=f"v{name}", programs=(number, 0)))
        channels.channel(name, NUMBER)
        channels.variable(f"v{name}")
        channels.add_program((number, 0))
    channels.release([0, 1])
    into = SectionWriter()
    channels.save(into)
    into.write(tmp_path / "snapshot")
    loaded = Channels.load(SectionReader(tmp_path / "snapshot"))
    for each in (channels, loaded):
        assert each.columns == 4
        assert each.pattern("name", STARTS, "c") == 0
        assert each.pattern("name", STARTS, "b") == 1
        assert [each.channel(name, NUMBER) for name in ("z", "new", "newer")] == [3, 1, 2]
        assert [each.variable(name) for name in ("vz", "new")] == [2, 0]
        assert [each.add_program(code) for code in ((2, 0), (8, 0))] == [4, 2]
    loaded.drop_unheld()
    assert (loaded.numbers, loaded.variables) == ({}, {})

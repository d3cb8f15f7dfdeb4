"""Channels, variables, programs and patterns: their numbers, and snapshots of them."""

from __future__ import annotations

from pathlib import Path

from tidegate.language.syntax import Operator
from tidegate.matching.rows.entries.channels import (
    NUMBER,
    PATTERNS,
    PRESENT,
    SATISFIED_MAX,
    Channels,
)
from tidegate.matching.rows.kernels.cell_kinds import STRING
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter

STARTS, LIKE = Operator.STARTS_WITH, Operator.LIKE


def with_patterns(*texts: str, satisfied_max: int = SATISFIED_MAX) -> Channels:
    """Channels with patterns on how the name starts."""
    channels = Channels(satisfied_max=satisfied_max)
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
    assert len(channels) == 3


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


def test_only_so_many_strings_are_cached() -> None:
    channels = with_patterns("a", "b", satisfied_max=1)
    for _ in range(2):
        found = [channels.satisfied("name", text).tolist() for text in ("a", "b", "c")]
        assert found == [[0], [1], []]


def test_variables_and_programs_by_number() -> None:
    channels = Channels()
    assert [channels.variable(name) for name in ("load", "mode", "load")] == [0, 1, 0]
    assert [channels.add_program(code) for code in ((1, 2, 0), (3, 0), (1, 2, 0))] == [0, 3, 0]
    assert channels.program == [1, 2, 0, 3, 0]


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
    assert loaded.program == channels.program
    assert loaded.add_program((3, 0)) == 3
    assert loaded.known_lifetime == channels.known_lifetime
    for text in ("a", "bc", "c", ""):
        expected = channels.satisfied("name", text).tolist()
        assert loaded.satisfied("name", text).tolist() == expected

"""Files of settings: the types that a key may have."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from tidegate.errors import SettingsError
from tidegate.settings_file import TableReader, Within, all_problems, keys_of, read_tables


@dataclass(frozen=True, slots=True)
class Inner:
    word: Literal["one", "two"] = "one"

    def __post_init__(self) -> None:
        if self.word == "two":
            raise SettingsError("two is too many")


@dataclass(frozen=True, slots=True)
class Outer:
    text: str
    count: Annotated[int, Within(1, 9)] = 1
    share: float = 0.5
    wait_ms: int | None = None
    whole: timedelta = timedelta(0)
    file: Path | None = None
    files: tuple[Path, ...] = ()
    words: list[str] = field(default_factory=list)
    inner: Inner = field(default_factory=Inner)
    rows: tuple[Inner, ...] = ()
    free: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Units:
    pause_s: float = 1.0
    beat_ms: Annotated[int, Within(100)] = 100
    cost_us: int = 1


def read(**keys: Any) -> Outer | list[str]:
    reader = TableReader(Path("/etc"))
    found = reader.read(Outer, {"text": "x", **keys}, "outer")
    return reader.problems if found is None else found


def test_types() -> None:
    found = read(
        wait="1 s", count=2, share=1, whole="2 min", file="a", files=["b", "/c"], words=["d"],
        inner={"word": "one"}, rows=[{}, {"word": "one"}], free={"e": 1},
    )  # fmt: skip
    assert isinstance(found, Outer)
    assert (found.count, found.share, found.whole) == (2, 1, timedelta(minutes=2))
    assert found.wait_ms == 1_000
    assert (found.file, found.files) == (Path("/etc/a"), (Path("/etc/b"), Path("/c")))
    assert (found.words, found.rows, found.free) == (["d"], (Inner(), Inner()), {"e": 1})


def test_a_number_in_a_unit_of_time_is_a_duration() -> None:
    assert keys_of(Units) == ("pause", "beat", "cost")
    reader = TableReader(Path())
    found = reader.read(Units, {"pause": "1500 ms", "beat": "1 s", "cost": "2 ms"}, "units")
    assert found == Units(1.5, 1_000, 2_000)
    assert reader.read(Units, {"beat": "1 ms", "pause": 1, "pause_s": 1}, "units") is None
    assert reader.problems == [
        "[units] beat: 1 is not 100 or more",
        "[units] pause must be a duration in a string such as '10 s', not 1",
        "[units] has no key pause_s; it has pause, beat, cost; did you mean pause?",
    ]


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("text", 1, "[outer] text must be a string, not 1"),
        ("count", 10, "[outer] count: 10 is not from 1 to 9"),
        ("count", True, "[outer] count must be an integer, not True"),
        ("share", float("nan"), "[outer] share must be a finite number, not nan"),
        ("share", "1", "[outer] share must be a number, not '1'"),
        ("file", 1, "[outer] file must be a string, not 1"),
        ("files", "a", "[outer] files must be a list of strings, not 'a'"),
        ("words", [1], "[outer] words must be a list of strings, not [1]"),
        ("inner", 1, "[outer] inner must be a table, not 1"),
        ("inner", {"word": 1}, "[outer.inner] word: there is no 1; there are one, two"),
        ("inner", {"word": "two"}, "[outer.inner] two is too many"),
        ("rows", {}, "[outer] rows must be tables: write [[outer.rows]] before each"),
        ("rows", [{}, {"w": 1}], "[outer.rows, number 2] has no key w; it has word"),
    ],
)
def test_problems(key: str, value: object, problem: str) -> None:
    assert read(**{key: value}) == [problem]


def test_names_of_tables() -> None:
    reader = TableReader(Path(), {("outer", "old"): "text"})
    reader.check_names({"outter": {}, "outer": 1}, ("outer",))
    reader.read(Outer, {"old": "x"}, "outer")
    assert reader.problems == [
        "there is no table [outter]; there are outer; did you mean outer?",
        "outer must be a table: write [outer]",
        "[outer] old is now called text",
        "[outer] text is missing",
    ]
    error = all_problems(Path("f"), ["one", "two"], SettingsError)
    assert str(error) == "f: one\nf: two"


def test_tables_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_bytes(b"\xef\xbb\xbf[a]\nb = 1")
    assert read_tables(file, SettingsError) == {"a": {"b": 1}}
    for wrong, reason in ((b"[a", "is not valid TOML"), (b"a = '\xff'", "is not valid TOML")):
        file.write_bytes(wrong)
        with pytest.raises(SettingsError, match=reason):
            read_tables(file, SettingsError)
    with pytest.raises(SettingsError, match="No such file"):
        read_tables(tmp_path / "none", SettingsError)

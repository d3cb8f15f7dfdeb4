from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import SpaceError
from tidegate.matching.space_file import read_space, read_spaces

TEXT = """{"name": "trades",
 "attributes": {"symbol": "string", "price": "float"}}
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_space_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "s.json").write_text(TEXT, encoding=encoding)
    space = read_space(tmp_path / "s.json")
    assert (space.name, space.attributes) == ("trades", {"symbol": str, "price": float})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not valid JSON: expecting value at column 1"),
        ('{"name": "s",\n "attributes": {"a": }}',
         "not valid JSON: expecting value at line 2, column 22"),
        ("[]", "must be a JSON object, not a list"),
        ('{"name": "s", "attributes": {"a": "float", "a": "string"}}',
         "the name 'a' occurs twice in one object"),
        ('{"name": "s", "attributes": {"a": "flaot"}}',
         "attribute 'a': 'flaot' is no type; there are string, integer, float, boolean, timestamp "
         "(did you mean 'float'?)"),
        ('{"name": "\\ud800", "attributes": {}}',
         "the name of a space cannot be '\\ud800': a string must be valid Unicode, without lone "
         "surrogates"),
        ('{"name": ' * 100_000, "is nested too deeply"),
        (b'{"name": "\xff"}', "is not UTF-8 text, at byte 10"),
    ],
)  # fmt: skip
def test_malformed_files(tmp_path: Path, text: str | bytes, reason: str) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SpaceError) as raised:
        read_space(path)
    assert str(raised.value) == f"{path}: {reason}"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match=r"no\.json: cannot be read: No such file or directory"):
        read_space(str(tmp_path / "no.json"))
    with pytest.raises(SpaceError, match="cannot be read: Is a directory"):
        read_space(tmp_path)


def test_a_path_that_no_file_can_have() -> None:
    with pytest.raises(SpaceError, match="cannot be read"):
        read_space("a\0b")


def test_files_of_several_spaces_have_a_name_each(tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_text(TEXT)
    second.write_text(TEXT.replace("trades", "quotes"))
    assert [each.name for each in read_spaces([first, second])] == ["trades", "quotes"]
    second.write_text(TEXT)
    with pytest.raises(SpaceError) as raised:
        read_spaces([first, second])
    assert str(raised.value) == f"{second}: the space of {first} has the name 'trades' too"

from __future__ import annotations

from datetime import datetime

import pytest

from support.command_line import Folder
from tidegate.cli.files.spaces import read_space
from tidegate.errors import SpaceError


def test_a_space_is_read(folder: Folder) -> None:
    file = folder.write(
        "s.json",
        [
            '{"name": "trades",',
            ' "attributes": {"symbol": "string", "price": "float", "volume": "integer",',
            '                "open": "boolean", "at": "timestamp"}}',
        ],
    )
    space = read_space(str(folder.path / file))
    assert space.name == "trades"
    assert space.attributes == {
        "symbol": str,
        "price": float,
        "volume": int,
        "open": bool,
        "at": datetime,
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not valid JSON: expecting value at column 1"),
        ("[]", "must be a JSON object, not a list"),
        ('{"name": "s"}', "attributes: is missing; a space has name, attributes"),
        ('{"attributes": {}}', "name: is missing; a space has name, attributes"),
        ('{"name": "s", "attribute": {}}',
         "there is no field 'attribute'; a space has name, attributes"),
        ('{"name": 5, "attributes": {}}', "name: must be a string"),
        ('{"name": "", "attributes": {}}',
         "the name of a space is a string, not empty; it is ''"),
        ('{"name": "s", "attributes": ["a"]}', "attributes: must be an object of names and types"),
        ('{"name": "s", "attributes": {"": "float"}}',
         "space 's': the name of an attribute is a string, not empty; it is ''"),
        ('{"name": "s", "attributes": {"a": "int"}}',
         "attribute 'a': 'int' is no type; there are string, integer, float, boolean, timestamp "
         "(did you mean 'integer'?)"),
        ('{"name": "s", "attributes": {"a": 5}}',
         "attribute 'a': 5 is no type; there are string, integer, float, boolean, timestamp"),
        ('{"name": "s", "attributes": {"a": "flaot"}}',
         "attribute 'a': 'flaot' is no type; there are string, integer, float, boolean, timestamp "
         "(did you mean 'float'?)"),
        ('{"name": "s", "attributes": {"a": ["float"]}}',
         "attribute 'a': ['float'] is no type; there are string, integer, float, boolean, "
         "timestamp (did you mean 'float'?)"),
        ('{"name": "s", "attributes": {"a": "float", "a": "string"}}',
         "the name 'a' occurs twice in one object"),
        (b"\xff", "is not UTF-8 text"),
    ],
)  # fmt: skip
def test_malformed_files(folder: Folder, text: str | bytes, reason: str) -> None:
    path = str(folder.path / folder.write("s.json", [text]))
    with pytest.raises(SpaceError) as raised:
        read_space(path)
    assert str(raised.value) == f"{path}: {reason}"


def test_a_file_that_is_not_there(folder: Folder) -> None:
    with pytest.raises(SpaceError, match=r"no\.json: cannot be read: No such file or directory"):
        read_space(str(folder.path / "no.json"))

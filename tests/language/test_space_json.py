from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from tidegate.errors import SpaceError
from tidegate.language.space_json import space_from_json, space_to_json
from tidegate.language.spaces import Space

TYPES = {"symbol": str, "price": float, "volume": int, "open": bool, "at": datetime, "日本.x": str}


def test_a_space_comes_back_as_it_was() -> None:
    space = Space("trades", TYPES)
    again = space_from_json(json.loads(json.dumps(space_to_json(space))))
    assert (again.name, again.attributes) == ("trades", TYPES)


@pytest.mark.parametrize(
    ("decoded", "reason"),
    [
        ([], "a space is an object with name and attributes"),
        ({"name": "s"}, "attributes: is missing; a space has name, attributes"),
        ({"attributes": {}}, "name: is missing; a space has name, attributes"),
        ({"name": "s", "attribute": {}},
         "there is no field 'attribute'; a space has name, attributes"),
        ({"name": 5, "attributes": {}}, "name: must be a string"),
        ({"name": "", "attributes": {}}, "the name of a space is a string, not empty; it is ''"),
        ({"name": "s", "attributes": ["a"]}, "attributes: must be an object of names and types"),
        ({"name": "s", "attributes": {"": "float"}},
         "space 's': the name of an attribute is a string, not empty; it is ''"),
        ({"name": "s", "attributes": {"\ud800": "float"}},
         "space 's': the name of an attribute cannot be '\\ud800': a string must be valid "
         "Unicode, without lone surrogates"),
        ({"name": "s", "attributes": {"a": "int"}},
         "attribute 'a': 'int' is no type; there are string, integer, float, boolean, timestamp "
         "(did you mean 'integer'?)"),
        ({"name": "s", "attributes": {"a": 5}},
         "attribute 'a': 5 is no type; there are string, integer, float, boolean, timestamp"),
        ({"name": "s", "attributes": {"a": None}},
         "attribute 'a': None is no type; there are string, integer, float, boolean, timestamp"),
        ({"name": "s", "attributes": {"a": "flaot"}},
         "attribute 'a': 'flaot' is no type; there are string, integer, float, boolean, timestamp "
         "(did you mean 'float'?)"),
        ({"name": "s", "attributes": {"a": ["float"]}},
         "attribute 'a': ['float'] is no type; there are string, integer, float, boolean, "
         "timestamp (did you mean 'float'?)"),
        ({"name": "s", "attributes": {"quote": {"bid": "float", "ask": "float"}}},
         "attribute 'quote': attributes of nested objects have dotted names; "
         "declare 'quote.bid'"),
        ({"name": "s", "attributes": {"quote": {}}},
         "attribute 'quote': attributes of nested objects have dotted names; "
         "declare 'quote....'"),
    ],
)  # fmt: skip
def test_malformed_spaces(decoded: Any, reason: str) -> None:
    with pytest.raises(SpaceError) as raised:
        space_from_json(decoded)
    assert str(raised.value) == reason


def test_a_message_shows_little_of_what_is_no_type() -> None:
    with pytest.raises(SpaceError) as raised:
        space_from_json({"name": "s", "attributes": {"a": "x" * 100_000}})
    assert len(str(raised.value)) < 200

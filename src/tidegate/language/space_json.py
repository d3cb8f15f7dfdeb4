"""Spaces in JSON: an object with the name of the space and the types of its attributes.

{"name": "trades", "attributes": {"symbol": "string", "price": "float", "volume": "integer",
                                  "open": "boolean", "at": "timestamp"}}
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from reprlib import repr as shortened

from tidegate.errors import SpaceError
from tidegate.language.spaces import TYPE_NAMES, Space, nested_hint

_TYPES = {name: declared for declared, name in TYPE_NAMES.items()}
_FIELDS = ("name", "attributes")


def space_to_json(space: Space) -> dict[str, object]:
    """A space in a form that ``json.dumps`` writes.

    >>> space_to_json(Space("trades", {"price": float}))
    {'name': 'trades', 'attributes': {'price': 'float'}}
    """
    types = {name: TYPE_NAMES[declared] for name, declared in space.attributes.items()}
    return {"name": space.name, "attributes": types}


def space_from_json(decoded: object) -> Space:
    """The space of an object that ``json.loads`` has read; raises SpaceError that names the field.

    >>> space_from_json({"name": "trades", "attributes": {"price": "float"}})
    Space('trades', 1 attributes)
    """
    if not isinstance(decoded, Mapping):
        raise SpaceError(f"a space is an object with {' and '.join(_FIELDS)}")
    for field in [*decoded, *_FIELDS]:
        if field not in _FIELDS:
            raise SpaceError(f"there is no field {field!r}; a space has {', '.join(_FIELDS)}")
        if field not in decoded:
            raise SpaceError(f"{field}: is missing; a space has {', '.join(_FIELDS)}")
    name, attributes = decoded["name"], decoded["attributes"]
    if not isinstance(name, str):
        raise SpaceError("name: must be a string")
    if not isinstance(attributes, Mapping):
        raise SpaceError("attributes: must be an object of names and types")
    return Space(name, {each: _type(each, written) for each, written in attributes.items()})


def _type(attribute: str, written: object) -> type:
    if isinstance(written, str) and written in _TYPES:
        return _TYPES[written]
    if isinstance(written, Mapping):
        raise SpaceError(f"attribute {attribute!r}: {nested_hint(attribute, written)}")
    close = get_close_matches(str(written), _TYPES, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise SpaceError(
        f"attribute {attribute!r}: {shortened(written)} is no type; "
        f"there are {', '.join(_TYPES)}{hint}"
    )

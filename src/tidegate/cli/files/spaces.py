"""The file of a space: a JSON object with its name and the types of its attributes.

{"name": "trades", "attributes": {"symbol": "string", "price": "float", "volume": "integer",
                                  "open": "boolean", "at": "timestamp"}}
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from tidegate.errors import BadValueError, SpaceError
from tidegate.language.spaces import TYPE_NAMES, Space
from tidegate.matching.records import decode_object

_TYPES = {name: kind for kind, name in TYPE_NAMES.items()}
_FIELDS = ("name", "attributes")


def read_space(path: str) -> Space:
    """Read the file of a space; raises SpaceError that names the file and what is wrong in it."""
    try:
        text = Path(path).read_bytes().decode()
    except OSError as error:
        raise SpaceError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SpaceError(f"{path}: is not UTF-8 text") from None
    try:
        return _space(decode_object(text))
    except (BadValueError, SpaceError) as error:
        raise SpaceError(f"{path}: {error}") from None


def _space(fields: dict[str, object]) -> Space:
    for field in [*fields, *_FIELDS]:
        if field not in _FIELDS:
            raise SpaceError(f"there is no field {field!r}; a space has {', '.join(_FIELDS)}")
        if field not in fields:
            raise SpaceError(f"{field}: is missing; a space has {', '.join(_FIELDS)}")
    name, attributes = fields["name"], fields["attributes"]
    if not isinstance(name, str):
        raise SpaceError("name: must be a string")
    if not isinstance(attributes, dict):
        raise SpaceError("attributes: must be an object of names and types")
    return Space(name, {each: _type(each, written) for each, written in attributes.items()})


def _type(attribute: str, written: object) -> type:
    if isinstance(written, str) and written in _TYPES:
        return _TYPES[written]
    close = get_close_matches(str(written), _TYPES, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise SpaceError(
        f"attribute {attribute!r}: {written!r} is no type; there are {', '.join(_TYPES)}{hint}"
    )

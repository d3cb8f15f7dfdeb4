"""The file of a space: one JSON object, as `language/space_json.py` says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tidegate.errors import BadValueError, SpaceError
from tidegate.language.space_json import space_from_json
from tidegate.language.spaces import Space
from tidegate.matching.records import decode_object


def read_spaces(paths: Iterable[str | Path]) -> tuple[Space, ...]:
    """Read the files of several spaces, each of which has a name of its own."""
    files: dict[str, str | Path] = {}
    spaces: list[Space] = []
    for path in paths:
        spaces.append(read_space(path))
        other = files.setdefault(spaces[-1].name, path)
        if len(files) < len(spaces):
            raise SpaceError(f"{path}: the space of {other} has the name {spaces[-1].name!r} too")
    return tuple(spaces)


def read_space(path: str | Path) -> Space:
    """Read the file of a space; raises SpaceError that names the file and what is wrong in it."""
    try:
        # with or without a byte order mark, which editors on Windows write
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SpaceError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SpaceError(f"{path}: is not UTF-8 text, at byte {error.start}") from None
    except ValueError as error:  # a path with a NUL
        raise SpaceError(f"{path!r}: cannot be read: {error}") from None
    try:
        return space_from_json(decode_object(text))
    except (BadValueError, SpaceError) as error:
        raise SpaceError(f"{path}: {error}") from None

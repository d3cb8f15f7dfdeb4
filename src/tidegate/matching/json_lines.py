"""JSON Lines: the lines of a file, and the object that each of them holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.errors import BadValueError
from tidegate.matching.records import decode_object

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def filled_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, each with its number, counted from 1.

    >>> list(filled_lines([b'{"x": 1}\\n', b"\\n", b'{"x": 2}\\n']))
    [(1, b'{"x": 1}'), (3, b'{"x": 2}')]
    """
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if number == 1:
            bare = bare.removeprefix(_BYTE_ORDER_MARK)
        if bare:
            yield number, bare


def decode_line(line: bytes) -> dict[str, object]:
    """The JSON object that a line holds; raises BadValueError."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise BadValueError("is not UTF-8") from None
    return decode_object(text)

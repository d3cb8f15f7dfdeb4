"""JSON Lines: the non-blank lines of a file, and the JSON object in a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.errors import BadValueError
from tidegate.matching.records import decode_object

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def non_blank_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, stripped, each with its number, counted from 1.

    >>> list(non_blank_lines([b'{"x": 1}\\n', b"\\n", b'{"x": 2}\\n']))
    [(1, b'{"x": 1}'), (3, b'{"x": 2}')]
    """
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if number == 1:
            bare = bare.removeprefix(_BYTE_ORDER_MARK)
        if bare:
            yield number, bare


def decode_line(line: bytes) -> dict[str, object]:
    """The JSON object in a line; raises BadValueError."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise BadValueError("is not UTF-8") from None
    return decode_object(text)

"""Lines of JSON."""

from __future__ import annotations

import pytest

from tidegate.errors import BadValueError
from tidegate.matching.json_lines import decode_line, filled_lines


def test_blank_lines_are_counted_and_left_out() -> None:
    lines = [b"\n", b'{"x": 1}\r\n', b" \t\n", b'  {"x": 2}']
    assert list(filled_lines(lines)) == [(2, b'{"x": 1}'), (4, b'{"x": 2}')]


def test_a_file_may_begin_with_a_byte_order_mark() -> None:
    mark = b"\xef\xbb\xbf"
    assert list(filled_lines([mark + b"{}\n", mark + b"{}\n"])) == [(1, b"{}"), (2, mark + b"{}")]
    assert not list(filled_lines([mark + b"\n"]))


def test_the_object_of_a_line() -> None:
    assert decode_line('{"name": "é"}'.encode()) == {"name": "é"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"name": "\xe9"}', "is not UTF-8"),
        (b"{", "not valid JSON"),
        (b"[1]", "must be a JSON object, not a list"),
    ],
)
def test_what_is_no_object_is_said(line: bytes, reason: str) -> None:
    with pytest.raises(BadValueError, match=reason):
        decode_line(line)

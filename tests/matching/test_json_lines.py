"""Lines of JSON."""

from __future__ import annotations

import pytest

from tidegate.errors import BadValueError
from tidegate.matching.json_lines import decode_line, non_blank_lines


def test_blank_lines_are_counted_and_left_out() -> None:
    lines = [b"\n", b'{"x": 1}\r\n', b" \t\n", b'  {"x": 2}']
    assert list(non_blank_lines(lines)) == [(2, b'{"x": 1}'), (4, b'{"x": 2}')]


def test_a_file_may_begin_with_a_byte_order_mark() -> None:
    mark = b"\xef\xbb\xbf"
    assert list(non_blank_lines([mark + b"{}\n", mark + b"{}\n"])) == [
        (1, b"{}"),
        (2, mark + b"{}"),
    ]
    assert not list(non_blank_lines([mark + b"\n"]))


def test_the_object_of_a_line() -> None:
    assert decode_line('{"name": "é"}'.encode()) == {"name": "é"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\xff", "is not UTF-8"),
        (b"[]", "must be a JSON object, not a list"),
        (b"{} {}", "not valid JSON: extra data at column 4"),
        (b'{"a": 1, "a": 2}', "the name 'a' occurs twice in one object"),
        (b"[" * 100_000, "is nested too deeply"),
    ],
)
def test_lines_that_are_no_objects(line: bytes, reason: str) -> None:
    with pytest.raises(BadValueError, match=f"^{reason}$"):
        decode_line(line)

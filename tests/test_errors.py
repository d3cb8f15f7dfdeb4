from __future__ import annotations

import pickle

import pytest

from tidegate import errors
from tidegate.errors import FilterError, FilterLimitError


def test_the_place_is_underlined() -> None:
    assert str(FilterError("not so", "price < volume", 8, 14)) == (
        "not so\n"  # the lines as a reader sees them
        "  price < volume\n"
        "          ^^^^^^"
    )


def test_only_the_line_with_the_place_is_shown() -> None:
    error = FilterError("not so", "a = 1\n\tand b = 2\nand c = 3", 7, 10)
    assert str(error) == "not so\n   and b = 2\n   ^^^"


def test_a_long_line_is_cut_on_both_sides() -> None:
    text = "a" * 500
    reason, excerpt, carets = str(FilterError("not so", text, 250, 253)).split("\n")
    assert reason == "not so"
    assert excerpt == "  ..." + "a" * 100 + "..."
    assert carets == " " * 55 + "^^^"


def test_what_a_terminal_would_obey_is_not_shown() -> None:
    error = FilterError("not so", "a\x1b[31m = '\ud800\r'", 0)
    assert (
        str(error) == "not so\n  a\N{REPLACEMENT CHARACTER}[31m = '\N{REPLACEMENT CHARACTER} '\n  ^"
    )


def test_without_a_text_there_is_only_the_reason() -> None:
    assert str(FilterError("not so", " \n", 0)) == "not so"


def test_an_error_survives_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(FilterLimitError("too long", "price", 2, 4)))
    assert isinstance(error, FilterLimitError)
    assert (error.reason, error.text, error.start, error.end) == ("too long", "price", 2, 4)


@pytest.mark.parametrize("name", [name for name in vars(errors) if name.endswith("Error")])
def test_the_tree_in_the_docstring_names_every_error(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.TidegateError)
    assert name in (errors.__doc__ or "")


def test_a_reason_is_not_longer_than_a_reader_bears() -> None:
    assert FilterError("x" * 100_000, "", 0).reason == "x" * 500 + "..."

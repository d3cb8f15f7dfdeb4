"""Errors in the value of an option name the option."""

from __future__ import annotations

import pytest

from tidegate import FilterError, TidegateError
from tidegate.cli.option_errors import naming_option


def test_the_option_comes_before_the_message() -> None:
    with pytest.raises(TidegateError) as refused, naming_option("--since"):
        raise FilterError("is too late", "soon", 0, 4)
    assert str(refused.value) == "--since: is too late\n  soon\n  ^^^^"


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError), naming_option("--since"):
        _ = 1 / 0


def test_without_an_error_nothing_happens() -> None:
    with naming_option("--since"):
        pass

"""Errors in the value of an option, reported with the name of the option."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidegate.errors import TidegateError


@contextmanager
def naming_option(option: str) -> Iterator[None]:
    """Prefix the message of a TidegateError with the option that caused it."""
    try:
        yield
    except TidegateError as error:
        raise TidegateError(f"{option}: {error}") from None

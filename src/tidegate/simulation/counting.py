"""Numbers with their nouns, for lines that people read."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun, in the plural unless there is one.

    >>> counted(1, "run"), counted(2_000, "run"), counted(0, "delivery", "deliveries")
    ('1 run', '2,000 runs', '0 deliveries')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"

"""The bytes of a message, declared once: both ends write and read by these tables.

    magic      4 bytes  `TGSM`
    version    1 byte   1
    form       1 byte   0: a full summary, 1: a difference
    digests    16       of a difference only: digest of the old summary, digest of the new one
    summary             the fields of `SummaryEdit`, in their order
    tables              for each of its ``tables`` the fields of `RangeRows` or `StringRows`, then
                        those of `MemberRuns`
    checksum   4 bytes  CRC-32 (that of zlib) of all bytes before, little-endian

A full summary is the difference from the summary of nobody. A digest is the BLAKE2b hash, 8 bytes,
of the full message. How a field is written is its `Coding`; `columns` has the details.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, IntFlag
from typing import Annotated, get_type_hints

from tidegate.matching.arrays import F64, I64

MAGIC = b"TGSM"
VERSION = 1
DIGEST_BYTES = 8
CHECKSUM_BYTES = 4

KINDS = 4
"""A table is written as the number ``attribute * KINDS + kind``."""


class Form(IntEnum):
    """What a message holds."""

    FULL = 0
    DIFFERENCE = 1


class RowForm(IntFlag):
    """Which bounds of an added row are not written."""

    POINT = 1  # the high, which equals the low
    ADJOINS = 2  # the low, which is the float after the high of the added row before


class ValueForm(IntEnum):
    """How a bound is written."""

    DECIMAL = 0
    AFTER = 1  # the float after a decimal
    BEFORE = 2  # the float before a decimal
    FLOAT = 3


class Coding(Enum):
    """How a field is written: the name of a method of `Writer` and of `Reader`."""

    NUMBER = "number"
    NUMBERS = "numbers"
    ASCENDING = "ascending"
    FLOATS = "floats"
    TEXTS = "texts"


Number = Annotated[int, Coding.NUMBER]
Numbers = Annotated[I64, Coding.NUMBERS]
Ascending = Annotated[I64, Coding.ASCENDING]
Floats = Annotated[F64, Coding.FLOATS]
Texts = Annotated[tuple[str, ...], Coding.TEXTS]


@dataclass(frozen=True, slots=True)
class SummaryEdit:
    """Names and entries. *Old* indexes are of the old summary, all others of the new one."""

    owners_removed: Ascending  # old indexes; their entries are removed too
    owners_added: Texts  # ascending
    attributes_removed: Ascending  # old indexes; their tables are removed too
    attributes_added: Texts  # ascending
    entries_removed: Ascending  # old indexes; those of removed owners are not listed
    adding_owners: Ascending  # the owners that get entries
    adding_counts: Numbers  # for each of them, how many
    first_numbers: Numbers  # for each of them, the least added local number
    number_gaps: Numbers  # for each other added entry, its number less the one before
    mask_codes: Numbers  # for each added entry: 0 a new mask, k the k-th last new one
    mask_sizes: Numbers  # for each new mask, how many attributes it has
    mask_attributes: Numbers  # for each new mask its attributes, ascending
    tables: Ascending  # the tables that follow


@dataclass(frozen=True, slots=True)
class RangeRows:
    """Rows of a range table; `bounds` has the details."""

    rows_removed: Ascending  # old indexes
    row_forms: Numbers  # for each added row, see `RowForm`
    scale: Number  # decimals are divided by 10 ** scale
    value_forms: Numbers  # for each bound that is written, see `ValueForm`
    decimals: Ascending  # as integers, before the division
    floats: Floats


@dataclass(frozen=True, slots=True)
class StringRows:
    """Rows of a string table."""

    rows_removed: Ascending  # old indexes
    row_kinds: Ascending  # for each added row, its `RowKind`
    piece_counts: Numbers  # for each added row LIKE, how many parts it has
    parts: Texts  # of all added rows


@dataclass(frozen=True, slots=True)
class MemberRuns:
    """Changes of members: an entry joins, or leaves, the rows of some runs of the new table."""

    entries: Ascending  # numbered among the entries whose mask has the attribute
    run_counts: Numbers  # for each of them, how many runs it has
    run_gaps: Numbers  # for each run, how many rows lie before it, or after the run before
    run_lengths: Numbers  # for each run, how many rows it has


CODINGS: dict[type, dict[str, Coding]] = {
    record: {
        name: hint.__metadata__[0]
        for name, hint in get_type_hints(record, include_extras=True).items()
    }
    for record in (SummaryEdit, RangeRows, StringRows, MemberRuns)
}
"""The fields of each record, in their order."""

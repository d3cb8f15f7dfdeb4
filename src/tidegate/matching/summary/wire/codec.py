"""Stand-in: the wire form."""

from __future__ import annotations

import pickle

from tidegate.errors import SummaryError
from tidegate.matching.summary.tables import SummaryTables


def _text(tables: SummaryTables) -> bytes:
    return repr([(o, n, str(f)) for o, n, f in tables.filters]).encode()


def encode(tables: SummaryTables) -> bytes:
    return pickle.dumps(tables)


def decode(data: bytes) -> SummaryTables:
    tables: SummaryTables = pickle.loads(data)  # noqa: S301
    return tables


def encode_difference(old: SummaryTables, new: SummaryTables) -> bytes:
    return pickle.dumps((_text(old), new))


def apply_difference(old: SummaryTables, data: bytes) -> SummaryTables:
    text, new = pickle.loads(data)  # noqa: S301
    if text != _text(old):
        raise SummaryError("the difference was made for another summary")
    tables: SummaryTables = new
    return tables

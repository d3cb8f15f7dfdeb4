from __future__ import annotations

import tracemalloc
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.summary_tables import summary_tables
from tidegate.errors import SummaryError
from tidegate.matching.summary.merging import merge, restrict, without
from tidegate.matching.summary.tables import NO_ENTRIES, SummaryTables, check_tables
from tidegate.matching.summary.wire.columns import WireLimits
from tidegate.matching.summary.wire.messages import (
    apply_difference,
    decode,
    digest,
    encode,
    encode_difference,
)

LEFT, RIGHT = ["a", "c"], ["b", "d"]


@given(summary_tables())
def test_a_summary_survives_the_wire(tables: SummaryTables) -> None:
    data = encode(tables)
    decoded = decode(data)
    assert decoded == tables
    assert encode(decoded) == data


@given(summary_tables(), summary_tables())
def test_a_difference_makes_the_new_of_the_old(old: SummaryTables, new: SummaryTables) -> None:
    assert apply_difference(old, encode_difference(old, new)) == new


@given(summary_tables(LEFT), summary_tables(RIGHT), summary_tables(RIGHT))
def test_a_difference_between_summaries_that_share_much(
    constant: SummaryTables, before: SummaryTables, after: SummaryTables
) -> None:
    old, new = merge([constant, before]), merge([constant, after])
    for one, other in ((old, new), (old, constant), (constant, new), (old, old)):
        assert apply_difference(one, encode_difference(one, other)) == other

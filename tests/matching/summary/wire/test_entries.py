from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from support.summary_tables import paper_tables, summary_tables, varied_tables
from tidegate.errors import SummaryError
from tidegate.matching.summary.merging import GONE, merge
from tidegate.matching.summary.tables import NO_ENTRIES, SummaryTables
from tidegate.matching.summary.wire.columns import Allowance, Reader, WireLimits
from tidegate.matching.summary.wire.entries import edited_entries, moves, summary_edit
from tidegate.matching.summary.wire.layout import SummaryEdit

READER = Reader(b"", 0, Allowance(WireLimits(), 0, held_bytes=2**29))
OLD = merge([paper_tables(), varied_tables()])


def edit(old: SummaryTables, new: SummaryTables) -> SummaryEdit:
    return summary_edit(old, new, moves(old, new), [])


def without_tables(tables: SummaryTables) -> SummaryTables:
    return replace(tables, ranges=(), strings=())


@given(summary_tables(["a", "b"]), summary_tables(["a", "b"]))
def test_entries_come_back(old: SummaryTables, new: SummaryTables) -> None:
    edited, moved = edited_entries(old, edit(old, new), READER)
    assert edited == without_tables(new)
    expected = moves(old, new)
    assert moved.owners.tolist() == expected.owners.tolist()
    assert moved.attributes.tolist() == expected.attributes.tolist()
    assert moved.entries.tolist() == expected.entries.tolist()


def test_what_stays_is_not_written() -> None:
    same = edit(OLD, OLD)
    lengths = {name: len(getattr(same, name)) for name in SummaryEdit.__dataclass_fields__}
    assert set(lengths.values()) == {0}


def test_an_entry_stays_if_its_number_and_mask_do() -> None:
    old = varied_tables()
    masks = old.entry_masks.copy()
    masks[1] = masks[0]
    numbers = np.array([0, 1, 301, 7, 2**40])
    moved = moves(old, replace(old, entry_masks=masks, entry_numbers=numbers))
    assert moved.entries.tolist() == [0, GONE, GONE, 3, 4]


def test_a_new_attribute_moves_the_bits_of_masks() -> None:
    old, new = varied_tables(), merge([varied_tables(), paper_tables()])
    moved = moves(old, new)
    assert moved.attributes.tolist()[:3] == [0, 3, 4]
    assert moved.entries.tolist() == [2, 3, 4, 5, 6]
    changes = edit(old, new)
    assert changes.attributes_added == ("exchange", "low", "volume")
    assert changes.adding_owners.tolist() == [0]
    assert changes.entries_removed.tolist() == []


def test_an_entry_does_not_outlive_an_attribute_of_its_mask() -> None:
    old = paper_tables()
    names = tuple(name for name in old.attributes if name != "exchange")
    masks = old.entry_masks >> np.uint64(1)
    moved = moves(old, replace(old, attributes=names, entry_masks=masks))
    assert moved.entries.tolist() == [GONE, 1]


def test_masks_are_listed_once() -> None:
    masks = np.array([[1], [2], [1], [3], [2], [2]], np.uint64)
    new = SummaryTables(
        ("a",), ("x", "y"), np.zeros(6, np.int32), np.arange(6), masks, (), ()
    )  # fmt: skip
    changes = edit(NO_ENTRIES, new)
    assert changes.mask_codes.tolist() == [0, 0, 2, 0, 2, 2]
    assert changes.mask_sizes.tolist() == [1, 1, 2]
    assert changes.mask_attributes.tolist() == [0, 1, 0, 1]


def test_numbers_are_written_for_each_owner() -> None:
    changes = edit(NO_ENTRIES, varied_tables())
    assert changes.adding_counts.tolist() == [3, 2]
    assert changes.first_numbers.tolist() == [0, 7]
    assert changes.number_gaps.tolist() == [1, 299, 2**40 - 7]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"owners_removed": [3]}, "nothing that it refers to"),
        ({"attributes_removed": [-1]}, "nothing that it refers to"),
        ({"entries_removed": [7]}, "nothing that it refers to"),
        ({"entries_removed": [0, 0]}, "listed twice"),
        ({"adding_owners": [9]}, "nothing that it refers to"),
        ({"adding_counts": [0]}, "no number of added entries"),
        ({"adding_counts": [1, 1]}, "no number of added entries"),
        ({"adding_counts": [2**62]}, "no number of added entries"),
        ({"adding_counts": [1]}, "an added entry has no number"),
        ({"first_numbers": []}, "no number of added entries"),
        ({"mask_codes": [0]}, "a mask is missing"),
        ({"mask_codes": [0, 2]}, "a mask is missing"),
        ({"mask_codes": [1, 0]}, "a mask is missing"),
        ({"mask_sizes": [1, 1]}, "a mask is missing"),
        ({"mask_sizes": [3]}, "attribute of a mask is missing"),
        ({"mask_sizes": [2**62]}, "attribute of a mask is missing"),
        ({"mask_attributes": [0, 99]}, "does not have"),
        ({"mask_attributes": [1, 0]}, "not ascending"),
    ],
)
def test_malformed_edits_are_refused(changes: dict[str, list[int]], complaint: str) -> None:
    two = replace(
        edit(OLD, OLD),
        owners_added=("z",),
        adding_owners=np.array([3]),
        adding_counts=np.array([2]),
        first_numbers=np.array([0]),
        number_gaps=np.array([1]),
        mask_codes=np.array([0, 1]),
        mask_sizes=np.array([2]),
        mask_attributes=np.array([0, 1]),
    )
    assert len(edited_entries(OLD, two, READER)[0].entry_owners) == 9
    arrays = {name: np.array(each, np.int64) for name, each in changes.items()}
    with pytest.raises(SummaryError, match=complaint):
        edited_entries(OLD, replace(two, **arrays), READER)  # type: ignore[arg-type]

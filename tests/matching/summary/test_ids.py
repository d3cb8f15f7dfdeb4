from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import SummaryError
from tidegate.matching.summary.ids import IdLayout, SummaryId, SummaryIds

FIGURE_6 = IdLayout(brokers_max=4, subscriptions_max=8, attributes_max=7)


def test_figure_6() -> None:
    """Subscription 1 of broker 2, with the attributes 3, 5 and 6 from right to left."""
    id = SummaryId(broker=2, number=1, mask=1 << 3 | 1 << 5 | 1 << 6)
    assert (FIGURE_6.broker_bits, FIGURE_6.number_bits, FIGURE_6.bits) == (2, 3, 12)
    packed = FIGURE_6.pack(id)
    assert f"{packed:012b}" == "10" + "001" + "1101000"
    assert FIGURE_6.unpack(packed) == id


def test_the_sizes_that_the_paper_mentions() -> None:
    assert IdLayout(brokers_max=1000).broker_bits == 10
    assert IdLayout(subscriptions_max=1_000_000).number_bits == 20
    assert IdLayout(brokers_max=1, subscriptions_max=1, attributes_max=1).bits == 1


@given(st.data())
def test_ids_stay_valid_when_attributes_are_added(data: st.DataObject) -> None:
    sizes = st.integers(1, 300)
    layout = IdLayout(data.draw(sizes), data.draw(sizes), data.draw(sizes))
    id = SummaryId(
        data.draw(st.integers(0, layout.brokers_max - 1)),
        data.draw(st.integers(0, layout.subscriptions_max - 1)),
        data.draw(st.integers(0, 2**layout.attributes_max - 1)),
    )
    wider = layout.with_attributes(layout.attributes_max + data.draw(st.integers(0, 9)))
    again = wider.repacked(layout.pack(id), layout)
    assert wider.unpack(again) == layout.unpack(layout.pack(id)) == id
    assert (wider.broker_bits, wider.number_bits) == (layout.broker_bits, layout.number_bits)


@pytest.mark.parametrize(
    ("id", "message"),
    [
        (SummaryId(4, 0, 0), "broker 4 does not fit .* room for 4 brokers; set brokers_max .* 5"),
        (SummaryId(0, 8, 0), "subscription 8 .* 8 subscriptions; set subscriptions_max .* to 9"),
        (SummaryId(0, 0, 1 << 7), "attribute 7 .* 7 attributes; set attributes_max .* to 8"),
        (SummaryId(-1, 0, 0), "broker -1 of a subscription id is negative"),
        (SummaryId(0, 0, -1), "the mask of a subscription id is -1"),
    ],
)
def test_what_overflows_is_said(id: SummaryId, message: str) -> None:
    with pytest.raises(SummaryError, match=message):
        FIGURE_6.pack(id)


def test_malformed_layouts_and_ids_are_refused() -> None:
    with pytest.raises(SummaryError, match="brokers_max of an id layout is 0"):
        IdLayout(brokers_max=0)
    with pytest.raises(SummaryError, match="12 bits here, which 4096 has not"):
        FIGURE_6.unpack(4096)
    with pytest.raises(SummaryError, match="7 attributes cannot shrink to 6"):
        FIGURE_6.with_attributes(6)


def test_numbers_are_used_again_lowest_first() -> None:
    ids = SummaryIds()
    assert [ids.take("a") for _ in range(4)] == [0, 1, 2, 3]
    assert ids.take("b") == 0
    ids.free("a", 2)
    ids.free("a", 0)
    assert [ids.take("a") for _ in range(3)] == [0, 2, 4]


def test_bits_of_attributes_are_used_again() -> None:
    ids = SummaryIds(IdLayout(attributes_max=2))
    assert [ids.take_attribute(name) for name in ("x", "y", "x")] == [0, 1, 0]
    assert not ids.free_attribute("x")
    with pytest.raises(SummaryError, match="attribute 2"):
        ids.check("a", 0, ["z"])
    assert ids.free_attribute("x")
    ids.check("a", 0, ["z", "y"])
    assert [ids.take_attribute(name) for name in ("y", "z")] == [1, 0]
    assert ids.attributes == {"y": 1, "z": 0}


def test_room_is_checked_before_anything_is_taken() -> None:
    ids = SummaryIds(IdLayout(brokers_max=1, subscriptions_max=2, attributes_max=2))
    ids.check("a", 2, ["x", "y"])
    ids.broker("a"), ids.take("a"), ids.take_attribute("x")
    ids.check("a", 1, ["x", "y"])
    with pytest.raises(SummaryError, match="broker 1"):
        ids.check("b", 1, [])
    with pytest.raises(SummaryError, match="subscription 2"):
        ids.check("a", 2, [])
    with pytest.raises(SummaryError, match="attribute 2"):
        ids.check("a", 1, ["y", "z"])
    ids.grow(3)
    ids.check("a", 1, ["y", "z"])
    ids.free("a", 0)
    ids.check("a", 2, [])

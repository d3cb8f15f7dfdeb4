"""The order of pairs; what a part matches is tested with its layout, in test_layout.py."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.columnar.kernels.match import _stable_order, order_by_event


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(0, 4))
def test_pairs_in_the_order_of_their_events(events: list[int], room: int) -> None:
    """Those of one event stay in order, and what is behind the pairs stays as it is."""
    count = len(events)
    out_event = np.array([*events, *[9] * room], np.int32)
    subscription = np.arange(count + room, dtype=np.int32)
    flags = (np.arange(count + room) % 7).astype(np.uint8)
    order_by_event(count, 6, out_event, subscription, flags)
    wanted = sorted(range(count), key=lambda place: events[place])
    assert out_event.tolist() == [*sorted(events), *[9] * room]
    assert subscription.tolist() == [*wanted, *range(count, count + room)]
    assert flags[:count].tolist() == [place % 7 for place in wanted]


@given(st.lists(st.integers(-3, 3), max_size=40), st.integers(0, 3))
def test_equal_keys_stay_in_order(keys: list[int], more: int) -> None:
    """Keys behind the first ones, which are left over in a buffer, are not looked at."""
    wanted = sorted(range(len(keys)), key=lambda place: keys[place])
    buffer = np.array([*keys, *[-9] * more], np.int32)
    assert _stable_order(buffer, len(keys)).tolist() == wanted

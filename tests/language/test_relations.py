from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strategies import events_aimed_at, filters, conjunctions, nodes
from tidegate.language.filters import Filter


@given(st.data())
def test_covers_is_never_refuted(data: st.DataObject) -> None:
    wide, narrow = data.draw(filters), data.draw(filters)
    if wide.covers(narrow):
        event = data.draw(events_aimed_at(wide.node, narrow.node))
        assert wide.matches(event) or not narrow.matches(event)


@given(st.data())
def test_normal_form_means_the_same(data: st.DataObject) -> None:
    filter = data.draw(filters)
    event = data.draw(events_aimed_at(filter.node))
    assert Filter(filter.normal_form.to_node()).matches(event) == filter.matches(event)

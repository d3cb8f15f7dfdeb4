"""The workload of subscription summaries: what covers what, and which events match."""

from __future__ import annotations

from tidegate.experiments.summary_workload import (
    NAMED_NUMBERS,
    NAMED_STRINGS,
    SummaryWorkload,
    events,
    filter_bytes,
)

BROKERS = ("east", "west")


def test_each_subscription_names_half_of_the_attributes() -> None:
    for placed in SummaryWorkload(BROKERS, 0.5, 10).subscriptions(10):
        for each in placed:
            assert len(each.filter.attributes) == NAMED_NUMBERS + NAMED_STRINGS
            assert {one.attribute for one in each.interest} == set(each.filter.attributes)


def test_what_is_drawn_as_covered_is_covered_by_a_general_one_at_home() -> None:
    general, *others = SummaryWorkload(BROKERS, 1.0, 20).subscriptions(20)[1]
    assert all(general.filter.covers(each.filter) for each in others)
    general, *others = SummaryWorkload(BROKERS, 0.0, 20).subscriptions(20)[1]
    for each in others:
        assert not any(one.filter.covers(each.filter) for one in (general, *others) if one != each)


def test_fewer_subscriptions_are_the_first_of_more() -> None:
    workload = SummaryWorkload(BROKERS, 0.5, 10)
    few, more = workload.subscriptions(4), workload.subscriptions(9)
    assert [[str(each.filter) for each in placed] for placed in few] == [
        [str(each.filter) for each in placed[:4]] for placed in more
    ]


def test_every_second_event_satisfies_a_subscription() -> None:
    placed = [
        each for of_one in SummaryWorkload(BROKERS, 0.5, 10).subscriptions(10) for each in of_one
    ]
    drawn = events(placed, 20)
    assert all(any(each.filter.matches(event) for each in placed) for event in drawn[::2])
    assert sum(any(each.filter.matches(event) for each in placed) for event in drawn[1::2]) < 5


def test_subscriptions_are_about_as_large_as_in_the_paper() -> None:
    (placed,) = SummaryWorkload(("only",), 0.5, 100).subscriptions(100)
    mean = sum(filter_bytes(each.filter) for each in placed) / 100
    assert 45 < mean < 60

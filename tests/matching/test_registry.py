"""The matchers by name."""

from __future__ import annotations

import pytest

from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.filters import parse
from tidegate.matching.registry import MATCHERS, matcher_entry
from tidegate.matching.subscription import Moment, Subscription

SECOND_US = 1_000_000


def test_an_unknown_name_is_refused_with_the_choices() -> None:
    with pytest.raises(SubscriptionError) as raised:
        matcher_entry("quantum")
    choices = "columnar, naive, poset, rete, summary, tree"
    assert str(raised.value) == f"there is no matcher 'quantum'; there are {choices}"


@pytest.mark.parametrize("name", sorted(MATCHERS))
def test_an_entry_makes_a_new_matcher_each_time(name: str) -> None:
    first, second = matcher_entry(name).make(), matcher_entry(name).make()
    first.add([Subscription("s", parse("x = 1"))])
    assert (len(first), len(second)) == (1, 0)


@pytest.mark.parametrize("name", sorted(MATCHERS))
def test_every_matcher_takes_evolving_filters_and_pins_them(name: str) -> None:
    matcher = MATCHERS[name].make()
    matcher.add([Subscription("s", parse("x < t and y = @mode"), since=0, evolve=Cached(9.0))])
    event, moment = Event.of({"x": 1.5, "y": 1}), Moment(2 * SECOND_US, {"mode": 1})
    assert matcher.match(event, moment) == ["s"]
    matcher.pin(["s"], SECOND_US)
    assert matcher.match(event, moment) == []
    matcher.pin(["s"], None)
    assert matcher.match(event, moment) == ["s"]
    with pytest.raises(KeyError):
        matcher.pin(["nobody"], SECOND_US)


def test_only_the_oracle_parses_each_filter_by_itself() -> None:
    assert [name for name, entry in MATCHERS.items() if not entry.parses_in_bulk] == ["naive"]

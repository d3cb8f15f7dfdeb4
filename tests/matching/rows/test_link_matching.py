"""Links of an event: what the index decides, what is verified, and what is collected."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_index import FakeIndex, Pair, RecordedLock, WatchedVariables, pairs_of
from support.strategies import events_aimed_at, filters
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.matching.arrays import F64, I32, I64
from tidegate.matching.matcher import COLLECTED, LinkMatches
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.rows.encoding import Encoded
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.event_matching import EventMatching, is_match
from tidegate.matching.rows.found_pairs import EntryPairs
from tidegate.matching.rows.kernels.flags import VERIFY
from tidegate.matching.rows.link_matching import match_links
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.subscription import Moment, Subscription

ONE = Event({"x": 1})
WEST, EAST = 2, 4
ALL = COLLECTED | WEST | EAST
STEPS = 17


class FakeLinkIndex:
    """Finds the links and the entries that a test says, those that are in the mask."""

    def __init__(self, links: Mapping[int, int], found: int, pairs: list[Pair]) -> None:
        self._links = links
        self._found = found
        self._pairs = pairs

    def find_links(
        self, encoded: Encoded, times_us: I64, variables: F64, mask: int
    ) -> tuple[int, EntryPairs, int]:
        assert len(encoded.matrix) == len(times_us) == len(variables) == 1
        return self._found & mask, pairs_of(self._pairs), STEPS

    def links_of(self, numbers: I32) -> list[int]:
        return [self._links.get(number, 0) for number in numbers.tolist()]


class Links:
    """Subscriptions with links, by the id of each, and what the index finds."""

    def __init__(
        self,
        subscriptions: list[Subscription],
        links: list[int],
        found: int = 0,
        pairs: list[Pair] | None = None,
    ) -> None:
        self.log: list[str] = []
        self._table = SubscriptionTable()
        self._table.publish(self._table.stage(subscriptions))
        every = [(0, number, VERIFY) for number in range(len(subscriptions))]
        self._index = FakeLinkIndex(dict(enumerate(links)), found, pairs or [])
        self._matching = EventMatching(
            RecordedLock(self.log),
            self._table,
            Channels(),
            FakeIndex(self.log, lambda _: every),
            lambda: None,
        )

    def match(self, event: Event, moment: Moment, mask: int = ALL) -> LinkMatches:
        return match_links(self._matching, self._table, self._index, event, moment, mask)


def subscription(id: str, text: str) -> Subscription:
    return Subscription(id, parse(text))


def test_a_link_that_one_entry_is_verified_for_needs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verified: list[str] = []

    def noting(subscription: Subscription, event: Event, moment: Moment) -> bool:
        verified.append(subscription.id)
        return is_match(subscription, event, moment)

    monkeypatch.setattr("tidegate.matching.rows.link_matching.is_match", noting)
    subscriptions = [subscription(id, f"x = {1 + (id == 'a')}") for id in "abcdef"]
    links = Links(
        subscriptions,
        [WEST, WEST, WEST, WEST | EAST, COLLECTED | WEST, EAST],
        pairs=[(0, number, VERIFY) for number in range(6)],
    )
    assert links.match(ONE, Moment()) == LinkMatches(ALL, ["e"], STEPS)
    assert verified == ["a", "b", "d", "e"]


def test_links_that_the_index_finds_need_nothing_else() -> None:
    links = Links([subscription("a", "x = 1")], [WEST | EAST], found=WEST | EAST)
    assert links.match(ONE, Moment()) == LinkMatches(WEST | EAST, [], STEPS)
    assert links.match(ONE, Moment(), EAST) == LinkMatches(EAST, [], STEPS)
    assert links.log == ["share", "unshare"] * 2


def test_entries_that_need_verification_add_their_links_if_they_match() -> None:
    subscriptions = [subscription("a", "x = 1"), subscription("b", "x = 2")]
    links = Links(subscriptions, [WEST, EAST], pairs=[(0, 0, VERIFY), (0, 1, VERIFY)])
    assert links.match(ONE, Moment()) == LinkMatches(WEST, [], STEPS)
    assert links.match(Event({"x": 2}), Moment()) == LinkMatches(EAST, [], STEPS)


def test_matching_subscriptions_of_the_link_collected_are_returned_once() -> None:
    subscriptions = [subscription(id, "x = 1") for id in "abc"]
    pairs = [(0, 0, 0), (0, 1, VERIFY), (0, 0, 0), (0, 0, VERIFY)]
    links = Links(subscriptions, [COLLECTED, COLLECTED | WEST, COLLECTED], pairs=pairs)
    assert links.match(ONE, Moment()) == LinkMatches(COLLECTED | WEST, ["a", "b"], STEPS)
    assert links.match(ONE, Moment(), WEST) == LinkMatches(WEST, [], STEPS)


@pytest.mark.parametrize(
    ("links_of", "found", "mask", "verified"),
    [
        (WEST, 0, ALL, True),
        (WEST, WEST, ALL, False),
        (WEST | EAST, WEST, ALL, True),
        (WEST | EAST, WEST, COLLECTED | WEST, False),
        (WEST, 0, EAST, False),
        (COLLECTED | WEST, COLLECTED | WEST, ALL, True),  # it is wanted itself
    ],
)
def test_an_entry_is_not_verified_if_it_adds_no_link(
    links_of: int, found: int, mask: int, verified: bool
) -> None:
    variables = WatchedVariables(load=1)
    links = Links([subscription("a", "x = @load")], [links_of], found, [(0, 0, VERIFY)])
    links.match(ONE, Moment(None, variables), mask)
    assert variables.lookups == verified


def test_lifetimes_are_looked_at_where_the_index_knows_nothing_of_them() -> None:
    filter = parse("x = 1")
    subscriptions = [
        Subscription("past", filter, since=0, until=5),
        Subscription("present", filter, since=5),
    ]
    links = Links(subscriptions, [WEST, COLLECTED | EAST], found=WEST | EAST)
    assert links.match(ONE, Moment(3)) == LinkMatches(WEST, [], len(subscriptions))
    assert links.match(ONE, Moment(5)) == LinkMatches(COLLECTED | EAST, ["present"], 2)
    assert links.match(ONE, Moment(5), WEST) == LinkMatches(0, [], 2)
    assert links.match(ONE, Moment()).steps == STEPS, "without a time lifetimes do not count"


times = st.none() | st.integers(0, 9)


@given(
    st.lists(
        st.tuples(filters, st.integers(0, ALL), st.booleans(), times, times), min_size=1, max_size=5
    ),
    st.integers(0, ALL),
    times,
    st.data(),
)
def test_links_are_those_of_the_oracle(
    drawn: list[tuple[Filter, int, bool, int | None, int | None]],
    mask: int,
    time_us: int | None,
    data: st.DataObject,
) -> None:
    """Whatever of the subscriptions an index decides itself, and what it leaves open."""
    subscriptions = [
        Subscription(str(number), filter, {}, since, None, until)
        for number, (filter, _, _, since, until) in enumerate(drawn)
    ]
    naive = NaiveMatcher()
    naive.add(subscriptions)
    event = Event(data.draw(events_aimed_at(*(each.filter.node for each in subscriptions))))
    moment = Moment(time_us, {"load": 1})
    matching = {int(id) for id in naive.match(event, moment)}
    found, pairs = 0, list[Pair]()
    for number, (_, links, decides, _, _) in enumerate(drawn):
        naive.set_links(str(number), links)
        if not decides:
            pairs.append((0, number, VERIFY))
        elif number in matching:
            found |= links & ~COLLECTED
            pairs += [(0, number, 0)] * bool(links & COLLECTED & mask)
    index = Links(subscriptions, [links for _, links, *_ in drawn], found, pairs)
    answer, expected = index.match(event, moment, mask), naive.match_links(event, moment, mask)
    assert answer.links == expected.links
    assert sorted(answer.collected) == sorted(expected.collected)

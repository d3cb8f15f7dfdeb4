"""Random changes of a matcher that finds links, and alike of the oracle, and their comparison."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, datetime, timedelta

from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.values import Value
from tidegate.matching.matcher import BulkUpdatingMatcher, LinkMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Moment, Subscription

ATTRIBUTES = "abcdef"
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
STEPS_US = (0, 0, 100_000, 5_000_000, 60_000_000)


class RandomChanges:
    """Changes that a seed draws, of a matcher and of the oracle."""

    def __init__(self, seed: int, matcher: LinkMatcher) -> None:
        self.random = random.Random(seed)
        self.oracle, self.matcher = NaiveMatcher(), matcher
        self.ids: list[str] = []
        self.added = 0
        self.now_us = 0

    def run(self, count: int) -> None:
        changes = [self.add, self.remove, self.update, self.link, self.compare]
        for _ in range(count):
            (change,) = self.random.choices(changes, [7, 4, 2, 1, 7])
            change()

    def add(self) -> None:
        for _ in range(self.random.choice([1, 1, 1, 5, 20])):
            # Not `parse`, which warns of a filter that no event can match: threads that compile
            # kernels change the filters of warnings, and there is one list for all threads.
            filter = Filter(parse_filter(self._filter()))
            values = {name: self.random.randint(0, 6) for name in filter.parameters}
            since = None if self.random.random() < 0.97 else self.now_us
            subscription = Subscription(str(self.added), filter, values, since=since)
            self.added += 1
            self.ids.append(subscription.id)
            self._both("add", [subscription])
            if self.random.random() < 0.8:
                self._both("set_links", subscription.id, self._links())

    def remove(self) -> None:
        for _ in range(min(len(self.ids), self.random.choice([1, 1, 8]))):
            self._both("remove", self.ids.pop(self.random.randrange(len(self.ids))))

    def update(self) -> None:
        for id in self.random.sample(self.ids, min(1, len(self.ids))):
            for name in self.oracle.get(id).filter.parameters:
                value = self.random.choice([None, self.random.randint(0, 6), 1.5, "s1"])
                self._both("update", id, {name: value})

    def link(self) -> None:
        for id in self.random.sample(self.ids, min(1, len(self.ids))):
            self._both("set_links", id, self._links())

    def compare(self) -> None:
        self.now_us += self.random.choice(STEPS_US)
        moment = Moment(self.now_us if self.random.random() < 0.9 else None)
        event = Event.of(
            {name: self._value() for name in ATTRIBUTES if self.random.random() < 0.85}
        )
        assert sorted(self.matcher.match(event, moment)) == sorted(self.oracle.match(event, moment))
        mask = self._links()
        found, expected = (each.match_links(event, moment, mask) for each in self._matchers())
        assert found.links == expected.links
        assert sorted(found.collected) == sorted(expected.collected)

    def _matchers(self) -> tuple[LinkMatcher, LinkMatcher]:
        return self.matcher, self.oracle

    def _both(self, name: str, *arguments: object) -> None:
        for each in self._matchers():
            getattr(each, name)(*arguments)

    def _links(self) -> int:
        return self.random.getrandbits(self.random.choice([1, 3, 5, 70]))

    def _value(self) -> object:
        number = self.random.randint(0, 7)
        return self.random.choice([number, number, number + 0.5, f"s{number}"])

    def _filter(self) -> str:
        both = [self._predicate() for _ in range(self.random.randint(1, 4))]
        conjunction = " and ".join(both)
        return conjunction if self.random.random() < 0.9 else f"{conjunction} or {both[0]}"

    def _predicate(self) -> str:
        name, v = self.random.choice(ATTRIBUTES), self.random.randint(0, 6)
        forms = {
            f"{name} = {v}": 9,
            f"{name} < {v}": 2,
            f"{name} between {v} and {v + self.random.randint(0, 3)}": 3,
            f"{name} != {v}": 1,
            f"{name} = 's{v}'": 1,
            f"{name} starts with 's{v}'": 1,
            f"{name} > :p": 1,
            f"{name} = :q": 1,
            f"{name} between {v} - 1 + t / 10 and {v} + 1 + t / 10": 1,
            f"{name} in ({v}, {v + 1})": 1,
        }
        return self.random.choices(list(forms), list(forms.values()))[0]


class RandomUpdates(RandomChanges):
    """Mostly updates, of parameters of every kind, one by one and many at once."""

    FORMS = (
        "{0} = :a",
        "{0} = :a",
        "{0} > :a",
        "{0} between :a and :b",
        "{0} >= :a and {0} < :b and {1} = :a",
        "{0} between :a - 1 and :a + 1",
        "{0} < :a / :b",
        "{0} between :a - 1 + t / 10 and :b + t / 10",
        "{0} < :a * sin(t)",
        "{0} != :a and {1} > :b",
        "{0} in (:a, 3)",
        "{0} = 2 or {1} = :a",
        "{0} starts with :a",
    )
    OTHERS: tuple[Value | None, ...] = (
        None,
        True,
        False,
        NOON,
        NOON + timedelta(seconds=1),
        "s1",
        "s4",
        2**53 + 1,
        -0.0,
    )

    def run(self, count: int) -> None:
        self.add()
        changes = [self.add, self.remove, self.update, self.update_many, self.link, self.compare]
        for _ in range(count):
            (change,) = self.random.choices(changes, [2, 1, 12, 4, 1, 10])
            change()

    def update(self) -> None:
        for id in self.random.sample(self.ids, min(1, len(self.ids))):
            self._both("update", id, self._changes(id))

    def update_many(self) -> None:
        chosen = self.random.sample(self.ids, min(len(self.ids), self.random.choice([0, 2, 20])))
        updates = {id: self._changes(id) for id in chosen}
        assert isinstance(self.matcher, BulkUpdatingMatcher)
        self.matcher.update_many(updates)
        for id, changes in updates.items():
            self.oracle.update(id, changes)

    def _changes(self, id: str) -> dict[str, Value | None]:
        """Other values of some parameters, most of them of the same kind as before."""
        subscription = self.oracle.get(id)
        names = sorted(subscription.filter.parameters)
        chosen = self.random.sample(names, self.random.randint(0, len(names)))
        return {name: self._like(subscription.parameters.get(name)) for name in chosen}

    def _like(self, value: Value | None) -> Value | None:
        if self.random.random() < 0.1:
            return self.random.choice(self.OTHERS)
        number = self.random.randint(-1, 7)
        if isinstance(value, str):
            return f"s{number}"
        if isinstance(value, datetime):
            return NOON + timedelta(seconds=number)
        if isinstance(value, bool):
            return self.random.random() < 0.5
        return self.random.choice([number, number, number + 0.5])

    def _value(self) -> object:
        if self.random.random() < 0.15:
            return self.random.choice([each for each in self.OTHERS if each is not None])
        return super()._value()

    def _predicate(self) -> str:
        names = self.random.sample(ATTRIBUTES, 2)
        if self.random.random() < 0.4:
            return super()._predicate()
        return self.random.choice(self.FORMS).format(*names)


class ExtremeChanges(RandomChanges):
    """Numbers as large, as small and as near to each other as they get."""

    NUMBERS = (
        *("-1.7976931348623157e308", "-1e308", "-9223372036854775808", "-1", "-5e-324", "-0.0"),
        *("0", "5e-324", "1", "9007199254740992", "9007199254740993", "9223372036854775807"),
        *("1e308", "1.7976931348623157e308"),
    )

    def _value(self) -> object:
        return json.loads(self._number()) if self.random.random() < 0.9 else math.inf

    def _number(self) -> str:
        return self.random.choice(self.NUMBERS)

    def _predicate(self) -> str:
        name, low, high = self.random.choice(ATTRIBUTES), self._number(), self._number()
        forms = {
            f"{name} = {low}": 6,
            f"{name} < {low}": 2,
            f"{name} >= {low}": 2,
            f"{name} between {low} and {high}": 6,
            f"{name} != {low}": 1,
            f"{name} > :p": 1,
            f"{name} between {low} - t and {high} + t": 1,
            f"{name} in ({low}, {high})": 1,
            f"{name} is not null": 1,
        }
        return self.random.choices(list(forms), list(forms.values()))[0]

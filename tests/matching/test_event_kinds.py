"""What filters ask for and events do not have, found by attribute and kind."""

from __future__ import annotations

import pytest

from tidegate.language.filters import parse
from tidegate.language.values import Kind
from tidegate.matching.event_kinds import EventKinds
from tidegate.matching.subscription import Subscription

EVENTS = EventKinds(
    {"n": {Kind.NUMBER}, "s": {Kind.STRING}, "both": {Kind.NUMBER, Kind.STRING}, "at": {Kind.TIME}},
    "make {} a time",
)


@pytest.mark.parametrize(
    ("filter", "misfits"),
    [
        ("n > 1 and s = 'a' and both = 1 or both = 'a'", []),
        ("m > 1", ["no event has the attribute m"]),
        ("bot > 1", ["no event has the attribute bot (did you mean both?)"]),
        ("n = 's'", ["n is a number in all events, and is compared with a string"]),
        ("n like 'a%'", ["n is a number in all events, and `like` takes strings"]),
        ("both = true", ["both is a number or a string in all events, and is compared with a "
                         "boolean"]),
        ("s > timestamp '2026-01-01T00:00:00Z'",
         ["s is a string in all events, and is compared with a timestamp; make s a time"]),
        ("n = 1 or n = 'a' and m = 2",
         ["n is a number in all events, and is compared with a string",
          "no event has the attribute m"]),
    ],
)  # fmt: skip
def test_what_no_event_has(filter: str, misfits: list[str]) -> None:
    found = list(EVENTS.misfits(Subscription("id", parse(filter), {})))
    assert sorted(found) == sorted(misfits)

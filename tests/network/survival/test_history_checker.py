"""The checker of histories: a sound history passes, and each kind of sabotage is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from support import history as h
from support.history_checker import findings

ORIGIN_US = 1_700_000_000_000_000


class History:
    """Records, each a moment after the one before."""

    def __init__(self) -> None:
        self.records: list[h.AnyRecord] = []

    def add(self, kind: type[Any], client: str, **fields: Any) -> None:
        self.records.append(kind(client=client, at_ns=len(self.records) + 1, **fields))

    def publish(self, number: int, x: float, after_s: float = 0) -> None:
        time_us = ORIGIN_US + round(after_s * 1e6)
        self.add(h.Publish, "bob", number=number, attributes=event(number, x), time_us=time_us)
        self.add(h.Confirmed, "bob", number=number)

    def change(self, limit: float, version: int, filter: str = "x < :limit") -> None:
        self.add(h.Change, "ann", name="low", filter=filter, parameters={"limit": limit})
        self.add(h.InForce, "ann", name="low", version=version, origin_us=ORIGIN_US)

    def deliver(
        self, number: int, x: float, position: int, version: int = 1, after_s: float = 0
    ) -> None:
        time_us = ORIGIN_US + round(after_s * 1e6)
        self.add(
            h.Deliver, "ann",
            attributes=event(number, x), time_us=time_us, matches=[("low", version)],
            position=position,
        )  # fmt: skip

    def kinds(self) -> list[str]:
        """The kinds of what is wrong once the subscriber has drained."""
        self.add(h.Drained, "ann")
        return [each.kind for each in findings(self.records)]


def event(number: int, x: float) -> dict[str, Any]:
    return {"by": "bob", "n": number, "x": x}


def begun(limit: float = 5) -> History:
    history = History()
    history.add(h.Began, "ann")
    history.change(limit, version=1)
    return history


def sound() -> History:
    """Three events that match and one that does not."""
    history = begun()
    for number, x in ((1, 1), (2, 9), (3, 3), (4, 4)):
        history.publish(number, x)
    history.deliver(1, 1, position=10)
    history.deliver(3, 3, position=12)
    history.deliver(4, 4, position=13)
    return history


def test_a_sound_history_passes() -> None:
    assert sound().kinds() == []


Sabotage = Callable[[Sequence[h.AnyRecord]], list[h.AnyRecord]]
SABOTAGES: dict[str, tuple[str, Sabotage]] = {
    "a delivery is missing": ("lost", lambda all: [*all[:-3], *all[-2:]]),
    "the last delivery is missing": ("lost", lambda all: [*all[:-1]]),
    "an event comes again under another position": (
        "doubled",
        lambda all: [*all, again(all[-1], position=14)],
    ),
    "a position comes again": ("doubled", lambda all: [*all, again(all[-1])]),
    "two deliveries change places": (
        "reordered",
        lambda all: [
            *all[:-2],
            again(all[-1], at_ns=all[-2].at_ns, position=12),
            again(all[-2], at_ns=all[-1].at_ns, position=13),
        ],
    ),
    "positions fall": ("reordered", lambda all: [*all[:-2], all[-2], again(all[-1], position=11)]),
    "a value differs": ("corrupt", lambda all: [*all[:-1], again(all[-1], attributes=event(4, 1))]),
    "a type differs": (
        "corrupt",
        lambda all: [*all[:-1], again(all[-1], attributes=event(4, 4.0))],
    ),
    "the time differs": ("corrupt", lambda all: [*all[:-1], again(all[-1], time_us=7)]),
    "nobody has published it": (
        "corrupt",
        lambda all: [*all, again(all[-1], attributes=event(5, 4), position=14)],
    ),
    "it was refused": (
        "corrupt",
        lambda all: [
            *all[:-3],
            h.NotPublished(client="bob", number=4, at_ns=all[-3].at_ns),
            *all[-3:],
        ],
    ),
    "an event that does not match comes": (
        "stale",
        lambda all: [*all[:-2], again(all[-3], attributes=event(2, 9), position=11), *all[-2:]],
    ),
}


def again(record: h.AnyRecord, **changed: Any) -> h.AnyRecord:
    import msgspec

    return msgspec.structs.replace(record, **changed)


@pytest.mark.parametrize("name", SABOTAGES)
def test_each_sabotage_is_found(name: str) -> None:
    kind, sabotage = SABOTAGES[name]
    history = sound()
    history.records = sabotage(history.records)
    assert kind in history.kinds()


def test_an_event_that_only_a_version_of_before_matched_is_stale() -> None:
    history = begun(limit=5)
    history.change(2, version=2)
    history.publish(1, 4)
    history.deliver(1, 4, position=10)
    assert history.kinds() == ["stale"]


def test_a_version_that_is_no_longer_in_force_is_stale_although_the_event_matches() -> None:
    history = begun(limit=5)
    history.change(7, version=2)
    history.publish(1, 4)
    history.deliver(1, 4, position=10, version=1)
    assert history.kinds() == ["stale"]


def test_an_event_that_the_present_version_does_not_match_is_stale() -> None:
    history = begun(limit=5)
    history.publish(1, 4)
    history.change(2, version=2)
    history.deliver(1, 4, position=10, version=1)
    assert history.kinds() == ["stale"]


def test_while_a_version_comes_into_force_both_are_right() -> None:
    for is_delivered in (False, True):
        history = begun(limit=2)
        history.publish(1, 4)
        history.change(5, version=2)
        if is_delivered:
            history.deliver(1, 4, position=10, version=2)
        assert history.kinds() == []


def test_an_event_that_all_versions_match_must_come() -> None:
    history = begun(limit=5)
    history.publish(1, 1)
    history.change(3, version=2)
    assert history.kinds() == ["gap"]


def test_versions_after_a_later_event_of_the_publisher_do_not_count() -> None:
    history = begun(limit=5)
    history.publish(1, 1)
    history.publish(2, 2)
    history.deliver(2, 2, position=11)
    history.change(0, version=2)  # would let the first event pass for outdated
    assert history.kinds() == ["lost"]


def test_a_subscription_that_ends_excuses_what_is_missing() -> None:
    history = begun()
    history.publish(1, 1)
    history.add(h.Change, "ann", name="low", filter=None)
    history.add(h.InForce, "ann", name="low", version=2)
    history.publish(2, 2)
    assert history.kinds() == []


def test_an_evolving_filter_is_judged_by_the_time_of_the_event() -> None:
    history = begun()
    history.change(1, version=2, filter="x < :limit + t")
    history.publish(1, 2, after_s=0)
    history.publish(2, 2, after_s=3)
    assert history.kinds() == ["lost"]
    history = begun()
    history.change(1, version=2, filter="x < :limit + t")
    history.publish(1, 2, after_s=0)
    history.deliver(1, 2, position=10, version=2)
    assert history.kinds() == ["stale"]


def test_a_process_that_was_killed_may_get_again_what_it_has_not_acknowledged() -> None:
    history = sound()
    history.add(h.Began, "ann")
    history.deliver(3, 3, position=12)
    history.deliver(4, 4, position=13)
    assert history.kinds() == []


def test_a_process_may_not_get_another_event_at_a_position_that_it_has_passed() -> None:
    history = sound()
    history.publish(5, 1)
    history.add(h.Began, "ann")
    history.deliver(5, 1, position=11)
    assert "reordered" in history.kinds()


def test_an_event_of_which_nobody_knows_whether_it_was_published_may_come_or_not() -> None:
    for is_delivered in (False, True):
        history = begun()
        history.add(h.Publish, "bob", number=1, attributes=event(1, 1), time_us=ORIGIN_US)
        if is_delivered:
            history.deliver(1, 1, position=10)
        assert history.kinds() == []


def test_a_number_that_is_used_for_two_events_is_a_mistake_of_the_publisher() -> None:
    history = begun()
    history.publish(1, 1)
    history.publish(1, 2)
    with pytest.raises(ValueError, match="the number 1 for two events"):
        history.kinds()


def test_logs_are_read_back_and_merged(tmp_path: Path) -> None:
    logs = [h.Log(tmp_path / name, name) for name in ("ann", "bob")]
    logs[0].write(h.Began)
    logs[1].write(h.Publish, number=1, attributes={"x": 1, "y": 1.0, "z": True}, time_us=5)
    logs[0].write(h.Drained)
    with (tmp_path / "ann").open("ab") as file:
        file.write(b'{"type":"Beg')
    found = h.merged(h.read(tmp_path / name) for name in ("ann", "bob"))
    assert [type(each) for each in found] == [h.Began, h.Publish, h.Drained]
    assert isinstance(found[1], h.Publish)
    assert [type(each) for each in found[1].attributes.values()] == [int, float, bool]
    assert h.Log(tmp_path / "ann", "ann").before == [found[0], found[2]]

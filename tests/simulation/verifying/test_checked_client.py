"""What a client of a random run should have got: the checks must not be too strict, nor too lax."""

from __future__ import annotations

import pytest

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.patterns.pattern import parse_pattern
from tidegate.language.values import from_us
from tidegate.matching.subscription import Subscription
from tidegate.routing import messages as m
from tidegate.routing.messages import Client
from tidegate.simulation.verifying.actors import Actor, matches

SECOND = 1_000_000


def at(second: float, **attributes: object) -> Event:
    return Event.of(attributes, from_us(round(second * SECOND)))


def publication(event: Event) -> m.Publication:
    return m.Publication(event, m.Stamp("b", 0, 1), "pub")


def delivery(event: Event, version: int | None = None) -> m.Deliver:
    named = () if version is None else (m.MatchedVersion("s", version),)
    return m.Deliver(publication(event), named, unnamed=version is None)


@pytest.fixture
def actor() -> Actor:
    """Asks for x < 5 by the name s."""
    actor = Actor(Client("ann"))
    actor.state.subscribe("s", "x < :n", {"n": 5}, now_us=0)
    actor.changed("s")
    return actor


def change(actor: Actor, n: int) -> int:
    version = actor.state.update("s", {"n": n}).version
    actor.changed("s")
    return version


# -- what comes ---------------------------------------------------------------------------------


def test_what_it_wants_is_received_and_what_is_stale_is_not(actor: Actor) -> None:
    actor.receive(delivery(at(1, x=4), 1), 0)
    actor.receive(delivery(at(1, x=7), 1), 0)
    actor.receive(delivery(at(1, y=7)), 0)
    assert [dict(each.event.attributes) for each in actor.received] == [{"x": 4}, {"y": 7}]


def test_all_else_that_comes_is_noted(actor: Actor) -> None:
    pattern = parse_pattern("x = 1 then x = 2")
    actor.receive(m.DeliverSequence(pattern, (publication(at(1, x=1)),)), 0)
    actor.receive(m.Refused(m.Suspend(), "no"), 0)
    assert actor.sequences == [(at(1, x=1),)]
    assert actor.refused == ["no"]
    actor.receive(m.Missed(3), 0)


def test_versions_in_force_only_go_up(actor: Actor) -> None:
    second, third = change(actor, 6), change(actor, 7)
    actor.receive(m.InForce("s", third), 0)
    assert actor.sure_names() == {"s": (0, third)}
    actor.receive(m.InForce("s", second), 0)
    actor.receive(m.InForce("s", 99), 0)  # which it never had
    actor.receive(m.InForce("other", 1), 0)
    assert actor.sure_names() == {"s": (0, third)}


# -- what it should get -------------------------------------------------------------------------


def test_nothing_is_due_that_is_not_in_force(actor: Actor) -> None:
    assert actor.sure_names() == {}
    assert not actor.is_due(at(1, x=1), actor.sure_names())
    actor.receive(m.InForce("s", 1), 0)
    assert actor.is_due(at(1, x=1), actor.sure_names())
    assert not actor.is_due(at(1, x=6), actor.sure_names())


def test_what_matched_all_versions_since_is_due(actor: Actor) -> None:
    actor.receive(m.InForce("s", 1), 0)
    sure = actor.sure_names()
    change(actor, 3)
    change(actor, 9)
    assert actor.is_due(at(1, x=2), sure)
    assert not actor.is_due(at(1, x=4), sure)  # not by the second version
    assert not actor.is_due(at(1, x=8), sure)  # not by the first one
    actor.receive(m.InForce("s", 3), 0)
    assert actor.is_due(at(1, x=8), actor.sure_names())


def test_what_was_cancelled_is_not_due(actor: Actor) -> None:
    actor.receive(m.InForce("s", 1), 0)
    sure = actor.sure_names()
    actor.state.cancel("s")
    actor.cancelled("s")
    assert not actor.is_due(at(1, x=1), sure)
    assert actor.sure_names() == {}
    actor.state.subscribe("s", "x < 9", now_us=0)  # another one of this name
    actor.changed("s")
    assert not actor.is_due(at(1, x=1), sure)


def test_one_of_the_same_name_and_version_after_it_departed_is_another(actor: Actor) -> None:
    actor.receive(m.InForce("s", 1), 0)
    sure = actor.sure_names()
    actor.forgotten()
    actor.state.subscribe("s", "x < 9", now_us=0)
    actor.changed("s")
    assert list(actor.named["s"]) == [1]
    assert not actor.is_due(at(1, x=1), sure)


def test_when_brokers_are_at_rest_the_last_version_is_in_force(actor: Actor) -> None:
    last = change(actor, 3)
    actor.received.append(publication(at(1, x=1)))
    actor.is_stable = False
    actor.begin_round()
    assert actor.sure_names() == {"s": (0, last)}
    assert actor.named == {"s": {last: actor.state["s"].subscription}}
    assert actor.is_stable
    assert not actor.received
    assert not actor.ever_asked(at(1, x=4), [{}])  # by the version before


def test_what_it_ever_asked_for_in_a_round(actor: Actor) -> None:
    actor.filters = [parse("y = 1")]
    actor.begin_round()
    change(actor, 9)
    change(actor, 2)
    assert actor.ever_asked(at(1, x=8), [{}])
    assert actor.ever_asked(at(1, y=1), [{}])
    assert not actor.ever_asked(at(1, x=9), [{}])
    actor.state.cancel("s")
    actor.cancelled("s")
    assert actor.ever_asked(at(1, x=8), [{}])  # it was asked for


def test_what_it_wants_now_is_by_the_last_version(actor: Actor) -> None:
    change(actor, 9)
    assert actor.wants(at(1, x=8), {})
    change(actor, 2)
    assert not actor.wants(at(1, x=4), {})
    actor.filters = [parse("x = 4")]
    assert actor.wants(at(1, x=4), {})


def test_variables_of_any_broker_count_for_what_was_asked(actor: Actor) -> None:
    actor.state.update("s", filter="z < @v")
    actor.changed("s")
    assert actor.wants(at(1, z=3), {"v": 4})
    assert not actor.wants(at(1, z=3), {"v": 2})
    assert not actor.wants(at(1, z=3), {})
    assert actor.ever_asked(at(1, z=3), [{}, {"v": 2}, {"v": 4}])
    assert not actor.ever_asked(at(1, z=3), [{}, {"v": 2}])


def test_who_is_forgotten_begins_anew(actor: Actor) -> None:
    actor.filters = [parse("y = 1")]
    actor.is_known = actor.is_suspended = True
    actor.receive(m.InForce("s", 1), 0)
    actor.forgotten()
    assert (actor.filters, actor.named, actor.in_force) == ([], {}, {})
    assert (actor.is_known, actor.is_suspended, actor.is_stable) == (False,) * 3
    assert "s" not in actor.state
    assert actor.ever_asked(at(1, x=1), [{}])  # what is on its way may still come


def test_the_oracle_knows_the_time() -> None:
    rising = Subscription("s", parse("x < :n + t"), {"n": 2}, since=SECOND, origin=SECOND)
    assert matches(rising, at(4, x=4.5), {})
    assert not matches(rising, at(3, x=4.5), {})
    assert not matches(rising, at(0.5, x=0), {})  # before it began

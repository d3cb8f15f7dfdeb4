"""The bounds on what a client must and may receive are neither too strict nor too lax."""

from __future__ import annotations

import pytest

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.patterns.pattern import parse_pattern
from tidegate.language.values import from_us
from tidegate.matching.subscription import Subscription
from tidegate.routing import messages as m
from tidegate.routing.messages import Client
from tidegate.simulation.verifying.checked_client import CheckedClient, matches

SECOND = 1_000_000


def at(second: float, **attributes: object) -> Event:
    return Event.of(attributes, from_us(round(second * SECOND)))


def publication(event: Event) -> m.Publication:
    return m.Publication(event, m.Stamp("b", 0, 1), "pub")


def delivery(event: Event, version: int | None = None) -> m.Deliver:
    named = () if version is None else (m.MatchedVersion("s", version),)
    return m.Deliver(publication(event), named, unnamed=version is None)


@pytest.fixture
def client() -> CheckedClient:
    """Subscribes to x < 5 under the name s."""
    client = CheckedClient(Client("ann"))
    client.state.subscribe("s", "x < :n", {"n": 5}, now_us=0)
    client.add_version("s")
    return client


def update(client: CheckedClient, n: int) -> int:
    version = client.state.update("s", {"n": n}).version
    client.add_version("s")
    return version


# -- messages -----------------------------------------------------------------------------------


def test_events_that_match_only_an_old_version_are_not_accepted(client: CheckedClient) -> None:
    client.receive(delivery(at(1, x=4), 1), 0)
    client.receive(delivery(at(1, x=7), 1), 0)
    client.receive(delivery(at(1, y=7)), 0)
    assert [dict(each.event.attributes) for each in client.received] == [{"x": 4}, {"y": 7}]


def test_other_messages(client: CheckedClient) -> None:
    pattern = parse_pattern("x = 1 then x = 2")
    client.receive(m.DeliverSequence(pattern, (publication(at(1, x=1)),)), 0)
    client.receive(m.Refused(m.Suspend(), "no"), 0)
    client.receive(m.Missed(3), 0)
    assert client.sequences == [(at(1, x=1),)]
    assert client.received == []


def test_versions_in_force_only_go_up(client: CheckedClient) -> None:
    second, third = update(client, 6), update(client, 7)
    client.receive(m.InForce("s", third), 0)
    assert client.versions_in_force() == {"s": (0, third)}
    client.receive(m.InForce("s", second), 0)
    client.receive(m.InForce("s", 99), 0)  # an unknown version
    client.receive(m.InForce("other", 1), 0)
    assert client.versions_in_force() == {"s": (0, third)}


# -- expected events ----------------------------------------------------------------------------


def test_only_versions_in_force_require_an_event(client: CheckedClient) -> None:
    assert client.versions_in_force() == {}
    assert not client.must_receive(at(1, x=1), client.versions_in_force())
    client.receive(m.InForce("s", 1), 0)
    assert client.must_receive(at(1, x=1), client.versions_in_force())
    assert not client.must_receive(at(1, x=6), client.versions_in_force())


def test_an_event_that_matches_all_versions_since_must_be_received(client: CheckedClient) -> None:
    client.receive(m.InForce("s", 1), 0)
    in_force = client.versions_in_force()
    update(client, 3)
    update(client, 9)
    assert client.must_receive(at(1, x=2), in_force)
    assert not client.must_receive(at(1, x=4), in_force)  # the second version does not match
    assert not client.must_receive(at(1, x=8), in_force)  # the first one does not match
    client.receive(m.InForce("s", 3), 0)
    assert client.must_receive(at(1, x=8), client.versions_in_force())


def test_a_cancelled_subscription_requires_nothing(client: CheckedClient) -> None:
    client.receive(m.InForce("s", 1), 0)
    in_force = client.versions_in_force()
    client.state.cancel("s")
    client.end_subscription("s")
    assert not client.must_receive(at(1, x=1), in_force)
    assert client.versions_in_force() == {}
    client.state.subscribe("s", "x < 9", now_us=0)  # another subscription of this name
    client.add_version("s")
    assert not client.must_receive(at(1, x=1), in_force)


def test_a_subscription_of_the_same_name_and_version_after_a_departure_is_another(
    client: CheckedClient,
) -> None:
    client.receive(m.InForce("s", 1), 0)
    in_force = client.versions_in_force()
    client.reset()
    client.state.subscribe("s", "x < 9", now_us=0)
    client.add_version("s")
    assert list(client.versions["s"]) == [1]
    assert not client.must_receive(at(1, x=1), in_force)


def test_at_the_start_of_a_round_the_last_version_is_in_force(client: CheckedClient) -> None:
    last = update(client, 3)
    client.received.append(publication(at(1, x=1)))
    client.is_stable = False
    client.begin_round()
    assert client.versions_in_force() == {"s": (0, last)}
    assert client.versions == {"s": {last: client.state["s"].subscription}}
    assert client.is_stable
    assert not client.received
    assert not client.may_receive(at(1, x=4), [{}])  # only the version before matches


def test_what_a_client_may_receive_in_a_round(client: CheckedClient) -> None:
    client.filters = [parse("y = 1")]
    client.begin_round()
    update(client, 9)
    update(client, 2)
    assert client.may_receive(at(1, x=8), [{}])
    assert client.may_receive(at(1, y=1), [{}])
    assert not client.may_receive(at(1, x=9), [{}])
    client.state.cancel("s")
    client.end_subscription("s")
    assert client.may_receive(at(1, x=8), [{}])  # it matched earlier in this round


def test_a_client_wants_what_the_last_version_matches(client: CheckedClient) -> None:
    update(client, 9)
    assert client.wants(at(1, x=8), {})
    update(client, 2)
    assert not client.wants(at(1, x=4), {})
    client.filters = [parse("x = 4")]
    assert client.wants(at(1, x=4), {})


def test_the_variables_of_any_broker_are_allowed(client: CheckedClient) -> None:
    client.state.update("s", filter="z < @v")
    client.add_version("s")
    assert client.wants(at(1, z=3), {"v": 4})
    assert not client.wants(at(1, z=3), {"v": 2})
    assert not client.wants(at(1, z=3), {})
    assert client.may_receive(at(1, z=3), [{}, {"v": 2}, {"v": 4}])
    assert not client.may_receive(at(1, z=3), [{}, {"v": 2}])


def test_reset(client: CheckedClient) -> None:
    client.filters = [parse("y = 1")]
    client.has_session = client.is_suspended = True
    client.receive(m.InForce("s", 1), 0)
    client.reset()
    assert (client.filters, client.versions, client.in_force) == ([], {}, {})
    assert (client.has_session, client.is_suspended, client.is_stable) == (False,) * 3
    assert "s" not in client.state
    assert client.may_receive(at(1, x=1), [{}])  # messages on their way may still arrive


def test_the_oracle_knows_the_time() -> None:
    rising = Subscription("s", parse("x < :n + t"), {"n": 2}, since=SECOND, origin=SECOND)
    assert matches(rising, at(4, x=4.5), {})
    assert not matches(rising, at(3, x=4.5), {})
    assert not matches(rising, at(0.5, x=0), {})  # before it began

"""A client's own view of its subscriptions is strict, whatever its broker has learned by then."""

from __future__ import annotations

from random import Random

import pytest

from support.broker_network import Network
from tidegate.errors import FilterError, RoutingError, TidegateError
from tidegate.language.events import Event
from tidegate.language.evolve import Periodic
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.matching.subscription import Subscription
from tidegate.routing.clients.client_state import ClientState, is_covered, matches_now
from tidegate.routing.messages import (
    Cancel,
    Client,
    Deliver,
    Depart,
    MatchedVersion,
    Message,
    NamedSubscription,
    Publication,
    Publish,
    Refused,
    Stamp,
    Subscribe,
    Unsubscribe,
    Update,
)

SECOND = 1_000_000
LINE = [("a", "b"), ("b", "c"), ("c", "d")]


def at(second: float, **attributes: object) -> Event:
    return Event.of(attributes, from_us(round(second * SECOND)))


def delivery(event: Event, *matches: tuple[str, int], unnamed: bool = False) -> Deliver:
    publication = Publication(event, Stamp("b", 0, 1), "pub")
    return Deliver(publication, tuple(MatchedVersion(*each) for each in matches), unnamed)


def with_cheap(limit: float = 10) -> ClientState:
    client = ClientState()
    client.subscribe("cheap", "price < :limit", {"limit": limit}, now_us=0)
    return client


# -- requests -----------------------------------------------------------------------------------


def test_requests_say_all_that_a_broker_needs() -> None:
    client = ClientState()
    request = client.subscribe(
        "near", "x < :n + t", {"n": 5}, now_us=7, evolve=Periodic(2.0), confirm=True
    )
    assert request == Subscribe(
        "x < :n + t", "near", {"n": 5}, Periodic(2.0), version=1, origin_us=7, confirm=True
    )
    assert client.update("near", {"n": 6}) == Update("near", 2, {"n": 6})
    assert client.update("near", filter="x < :n", confirm=True) == Update(
        "near", 3, {}, "x < :n", confirm=True
    )
    assert client.cancel("near") == Cancel("near")


def test_all_changes_of_a_client_are_numbered() -> None:
    client = with_cheap()
    assert client.subscribe("other", "x = 1", now_us=0).version == 2
    assert client.update("cheap", {"limit": 3}).version == 3
    client.cancel("cheap")
    assert client.subscribe("cheap", "price < 1", now_us=0).version == 4  # not 1 again
    assert [client[name].version for name in ("other", "cheap")] == [2, 4]


def test_a_change_is_in_force_for_the_client_at_once() -> None:
    client = with_cheap()
    assert "cheap" in client
    assert client["cheap"].subscription.parameters == {"limit": 10}
    client.update("cheap", {"limit": None})
    assert client["cheap"].subscription.parameters == {}
    client.update("cheap", {"limit": 4}, filter="price < :limit and kind = 'a'")
    assert str(client["cheap"].subscription.filter) == "price < :limit and kind = 'a'"
    client.cancel("cheap")
    assert "cheap" not in client


def test_a_request_that_raises_changes_nothing() -> None:
    client = with_cheap()
    before = client["cheap"]
    wrong: list[tuple[type[TidegateError], str]] = []
    for call in (
        lambda: client.subscribe("cheap", "x = 1", now_us=0),
        lambda: client.subscribe("", "x = 1", now_us=0),
        lambda: client.subscribe("n" * 201, "x = 1", now_us=0),
        lambda: client.subscribe("new", "x = ", now_us=0),
        lambda: client.subscribe("new", "x = :p", {"q": 1}, now_us=0),
        lambda: client.subscribe("new", "x = :p", {"p": [1]}, now_us=0),  # type: ignore[dict-item]
        lambda: client.update("cheap", {"price": 3}),
        lambda: client.update("cheap", {"limit": [3]}),  # type: ignore[dict-item]
        lambda: client.update("cheap", filter="price <"),
        lambda: client.update("dear", {"limit": 3}),
        lambda: client.cancel("dear"),
        lambda: client["dear"],
    ):
        with pytest.raises(TidegateError) as caught:
            call()
        wrong.append((caught.type, str(caught.value)))
    assert client["cheap"] == before
    assert "new" not in client
    assert client.update("cheap", {"limit": 3}).version == 2
    assert wrong[0] == (
        RoutingError,
        "there is a subscription 'cheap' already; update or cancel it",
    )
    assert issubclass(wrong[3][0], FilterError)
    assert wrong[-1] == (RoutingError, "there is no subscription 'dear'; subscribe first")


def test_requests_made_elsewhere_are_followed_if_a_broker_takes_them() -> None:
    client = ClientState()
    client.follow(Subscribe("x < :l", "cheap", {"l": 10}, version=4), 0)
    assert client["cheap"].version == 4
    client.follow(Update("cheap", 5, {"l": 3}), 0)
    assert client["cheap"].subscription.parameters == {"l": 3}
    for refused in (
        Subscribe("x < 1", "cheap", version=9), Subscribe("x <", "bad", version=9),
        Update("cheap", 9, {"other": 1}), Update("none", 9), Cancel("none"), Subscribe("x < 1"),
    ):  # fmt: skip
        client.follow(refused, 0)
        assert [each.version for each in client.resubscribe()] == [5]
    client.follow(Unsubscribe(parse("x < 0")), 0)
    assert "cheap" in client
    client.follow(Unsubscribe(parse("x < 99")), 0)
    assert "cheap" not in client
    for end in (Cancel("a"), Depart()):
        client.follow(Subscribe("x < 1", "a"), 0)
        client.follow(end, 0)
        assert "a" not in client


def test_an_unsubscription_ends_what_it_covers() -> None:
    client = with_cheap(5)
    client.subscribe("dear", "price < :limit", {"limit": 50}, now_us=0)
    client.subscribe("falling", "price < 5 - t and kind = @k", now_us=0)
    client.subscribe("rising", "price < t", now_us=0)
    assert client.unsubscribe(parse("price < 9")) == Unsubscribe(parse("price < 9"))
    assert [name for name in ("cheap", "dear", "falling", "rising") if name in client] == [
        "dear",
        "rising",
    ]


def test_covered_now_and_for_all_time() -> None:
    rising = NamedSubscription(Subscription("s", parse("x < t"), since=0, origin=0), 1)
    assert not is_covered(rising, parse("x < 1000000"))
    assert is_covered(rising, parse("x is not null"))
    unknown = NamedSubscription(Subscription("s", parse("x < :p")), 1)  # which nothing matches
    assert is_covered(unknown, parse("x = 1"))


# -- deliveries ---------------------------------------------------------------------------------


def test_a_delivery_that_no_longer_matches_is_not_accepted() -> None:
    client = with_cheap()
    event = at(1, price=7)
    assert client.accepted(delivery(event, ("cheap", 1))) == (MatchedVersion("cheap", 1),)
    client.update("cheap", {"limit": 5})
    assert client.accepted(delivery(event, ("cheap", 1))) == ()
    assert client.accepted(delivery(at(1, price=4), ("cheap", 1))) == (MatchedVersion("cheap", 1),)
    client.cancel("cheap")
    assert client.accepted(delivery(at(1, price=4), ("cheap", 2))) == ()


def test_matches_of_one_delivery_are_accepted_one_by_one() -> None:
    client = with_cheap()
    client.subscribe("even", "n = 2", now_us=0)
    event = at(1, price=70, n=2)
    accepted = client.accepted(delivery(event, ("cheap", 1), ("even", 2)))
    assert accepted == (MatchedVersion("even", 2),)
    assert client.accepted(delivery(event, ("cheap", 1), unnamed=True)) == ()


def test_an_evolving_filter_is_evaluated_at_the_time_of_the_event() -> None:
    client = ClientState()
    client.subscribe("w", "x between t - 1 and t + 1", now_us=10 * SECOND)
    assert client.accepted(delivery(at(15, x=5.5), ("w", 1)))
    assert not client.accepted(delivery(at(15, x=6.5), ("w", 1)))
    assert not client.accepted(delivery(at(9, x=0), ("w", 1)))  # before it began


def test_predicates_with_variables_count_as_satisfied() -> None:
    subscription = Subscription("s", parse("x < :n and y < @v"), {"n": 5}, since=0, origin=0)
    assert matches_now(subscription, at(1, x=4, y=1e9))
    assert not matches_now(subscription, at(1, x=6, y=0))
    assert not matches_now(subscription, at(1, x=4))


# -- with a broker ------------------------------------------------------------------------------


def accepted(network: Network, client: ClientState, name: str = "ann") -> list[object]:
    """The values of x in the events that a client accepts."""
    return [
        each.publication.event.attributes["x"]
        for each in network.received.get(name, ())
        if isinstance(each, Deliver) and client.accepted(each)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_outdated_gets_through_and_versions_are_in_order(seed: int) -> None:
    """Coverage, strictness and order (3.3): the client changes its mind while events flow."""
    random = Random(seed)
    network = Network(LINE)
    client = ClientState()
    network.ask("d", "ann", client.subscribe("s", "x = :n", {"n": 0}, now_us=0))
    network.run(random)
    late: list[Update] = []
    for n in range(1, 40):
        if random.random() < 0.5:
            late.append(client.update("s", {"n": n % 3}))  # made, and not yet at the broker
        if late and random.random() < 0.5:
            network.ask("d", "ann", late.pop(0))
        before = len(network.received["ann"])
        network.publish("a", "pub", x=random.randrange(3))
        for _ in range(random.randrange(4)):
            network.step(random)
        wanted = client["s"].subscription.parameters["n"]
        for message in network.received["ann"][before:]:
            assert isinstance(message, Deliver)
            matches = client.accepted(message)
            assert bool(matches) == (message.publication.event.attributes["x"] == wanted)
    for update in late:
        assert network.ask("d", "ann", update) == []
    network.run(random)
    versions = [match.version for (match,) in network.matches("ann")]
    assert versions == sorted(versions)


def test_a_broker_that_has_restarted_gets_all_subscriptions_again() -> None:
    network = Network(LINE)
    client = ClientState()
    requests: list[Message] = [
        client.subscribe("still", "x < :n", {"n": 1}, now_us=0),
        client.subscribe("rising", "x < t - 100", now_us=5 * SECOND, evolve=Periodic(1.0)),
        client.subscribe("gone", "x is not null", now_us=0),
        client.update("still", {"n": 3}),
        client.cancel("gone"),
    ]
    for request in requests:
        network.ask("d", "ann", request)
    network.run()
    network.cut("c", "d")
    network.run()
    assert len(network.brokers["c"].subscriptions.poset) == 0
    del network.brokers["d"]
    network.connect("d", "c")
    network.received.clear()
    again = client.resubscribe()
    assert [(each.name, each.version) for each in again] == [("still", 4), ("rising", 2)]
    for each in again:
        assert network.ask("d", "ann", each) == []
    network.run()
    for second, x in ((50, 2), (50, 4), (110, 4), (110, 6)):  # `t` counts on from second 5
        network.ask("a", "pub", Publish(at(second, x=x)))
    network.run()
    assert accepted(network, client) == [2, 4]
    assert network.matches("ann") == [(MatchedVersion("still", 4),), (MatchedVersion("rising", 2),)]
    assert network.ask("d", "ann", client.update("still", {"n": 5})) == []


def test_client_and_broker_agree_on_what_an_unsubscription_covers() -> None:
    network = Network(LINE)
    for seed in range(40):
        random = Random(seed)
        client, name = ClientState(), f"client-{seed}"
        texts = ["x < :n", "x < :n + t", "x < :n - t", "x < :n and y < @v", "x > :n or y = :n"]
        for number, text in enumerate(texts):
            value = random.randrange(9)
            network.ask("a", name, client.subscribe(str(number), text, {"n": value}, now_us=0))
        wanted = parse(f"x < {random.randrange(12)} or y = {random.randrange(9)}")
        answer = network.ask("a", name, client.unsubscribe(wanted))
        left = [str(number) for number in range(len(texts)) if str(number) in client]
        held = network.brokers["a"].named.subscriptions_of(Client(name))
        assert [each.subscription.id for each in held] == left
        assert any(isinstance(each, Refused) for each in answer) == (len(left) == len(texts))

"""Damped and predicted values, from end to end, compared with filters on the exact values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.ticking import START, Clock
from tidegate import Hub, Parameter, Reckoned, Subscriber, on, parse
from tidegate.language.events import Event
from tidegate.matching.engine import Engine

pytestmark = pytest.mark.slow

FILTERS = [
    "x between :place - 3 and :place + 3",
    "x not between :place and :place + 1",
    "x = :place",
    "x != :place",
    "x in (1, :place)",
    "x not in (1, :place)",
    "x < 2 * :place - t",
    "x >= abs(:place) - :speed",
    "x <= -:place or x > max(:place, 10)",
    "x < :place * @load",
    "x > :speed and x < :speed + :place / 4",
]


class Traveller(Subscriber):
    place = Reckoned(0.0, tolerance=2)
    speed = Parameter(1, damping=0.5)

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []


def _handler(index: int, text: str) -> Callable[[Traveller, Event], None]:
    def handle(self: Traveller, event: Event) -> None:
        self.seen.append((event["n"], index))

    return on(text)(handle)


Everything = type(
    "Everything",
    (Traveller,),
    {f"handle_{index}": _handler(index, text) for index, text in enumerate(FILTERS)},
)

near = st.sampled_from([-4.0, -3, -1, 0, 1, 3, 4]) | st.floats(-10, 10)
assignments = st.tuples(
    st.just("place"), st.integers(-20, 20) | st.floats(-50, 50) | st.none()
) | st.tuples(st.just("speed"), st.sampled_from([0, 0.5, 1, 1.5, 2, 7, -3]))
drives = st.tuples(st.just("drive"), st.sampled_from([-15, -5, 1, 10.0, 19]))
events = st.tuples(st.just("event"), near)
pauses = st.sampled_from([0.0, 0.05, 0.1, 0.5, 30.0])


def check(
    steps: list[tuple[float, tuple[str, float | None]]], matcher: str = "columnar"
) -> tuple[int, int]:
    """Carry out steps, each a pause and then an event, an assignment or a drive (20 assignments).

    Returns the number of steps that assign, and of updates sent.
    """
    clock = Clock()
    engine = Engine(matcher=matcher, clock=clock)
    engine.set_variables(load=-1.5)
    hub = Hub(engine)
    traveller: Traveller = hub.attach(Everything())
    wanted: list[tuple[int, int]] = []
    filters = [parse(text) for text in FILTERS]
    for number, (pause, (what, value)) in enumerate(steps):
        clock.wait(pause)
        if what in ("place", "speed"):
            setattr(traveller, what, value)
            continue
        assert value is not None
        if what == "drive":
            for _ in range(20):
                clock.wait(0.1)
                traveller.place = (traveller.place or 0) + value / 10
            continue
        event = {"n": number, "x": (traveller.place or 0) + value}
        exact = {"place": traveller.place, "speed": traveller.speed}
        t = (clock.now - START).total_seconds()
        for index, filter in enumerate(filters):
            if filter.matches(event, exact, variables={"load": -1.5}, t=t):
                wanted.append((number, index))
        hub.publish_now(event)
    assert traveller.seen == wanted
    return sum(what != "event" for _, (what, _) in steps), hub.updates


@pytest.mark.parametrize("matcher", ["columnar", "naive"])
@given(steps=st.lists(st.tuples(pauses, assignments | drives | events), max_size=30))
def test_exactly_the_events_that_match_the_exact_values_are_handled(
    matcher: str, steps: list[tuple[float, tuple[str, float | None]]]
) -> None:
    check(steps, matcher)


def track(
    value_at: Callable[[float], float], seconds: float = 120, seed: int = 1
) -> list[tuple[float, tuple[str, float | None]]]:
    """Steps that assign a value ten times a second, with events in between."""
    rng = random.Random(seed)
    steps: list[tuple[float, tuple[str, float | None]]] = []
    for step in range(round(seconds * 10)):
        before_event = rng.uniform(0, 0.1)
        steps.append((before_event, ("event", rng.uniform(-6, 6))))
        steps.append((0.1 - before_event, ("place", value_at((step + 1) / 10))))
    return steps


def test_even_motion() -> None:
    assigned, updates = check(track(lambda t: 100 + 15 * t))
    assert updates < assigned / 100


def test_piecewise_linear_motion() -> None:
    rng = random.Random(3)
    turns = [rng.uniform(-50, 50) for _ in range(12)]

    def value_at(t: float) -> float:
        leg, share = divmod(t / 10, 1)
        a, b = turns[int(leg) % 12], turns[(int(leg) + 1) % 12]
        return a + (b - a) * share

    assigned, updates = check(track(value_at))
    assert updates < assigned / 20


def test_swinging() -> None:
    assigned, updates = check(track(lambda t: 30 * math.sin(t / 8)))
    assert updates < assigned / 10


def test_a_random_walk() -> None:
    rng = random.Random(4)
    place = 0.0

    def value_at(_: float) -> float:
        nonlocal place
        place += rng.gauss(0, 0.3)
        return place

    assigned, updates = check(track(value_at))
    assert updates < assigned / 5


def test_oscillation_is_damped_away() -> None:
    noise = random.Random(5)
    steps: list[tuple[float, tuple[str, float | None]]] = []
    for _ in range(500):
        steps.append((0.1, ("speed", 1 + noise.uniform(-0.5, 0.5))))
        steps.append((0.1, ("event", noise.uniform(-6, 6))))
    assert check(steps) == (500, 0)


def test_events_that_bring_their_own_times() -> None:
    """Also an event from before the band began to move is matched with the current value."""
    clock = Clock()
    hub = Hub(Engine(clock=clock))

    class Near(Traveller):
        @on("x = :place")
        def near(self, event: Event) -> None:
            self.seen.append((event["n"], 0))

    traveller = hub.attach(Near())
    for step in range(100):
        clock.wait(0.1)
        traveller.place = step
    hub.publish_now({"n": 0, "x": 99}, time=START)
    hub.publish_now({"n": 1, "x": 99})
    assert traveller.seen == [(0, 0), (1, 0)]

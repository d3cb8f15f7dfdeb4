from __future__ import annotations

from itertools import combinations, islice
from math import atan2, cos, hypot, pi, sin

import pytest

from tidegate.simulation.drawing.labels import Rectangle, free_angles, place_labels
from tidegate.simulation.drawing.positions import layout
from tidegate.simulation.overlays.generators import TOPOLOGIES, generate

pytestmark = pytest.mark.slow

RADIUS, SIZE = 6.0, 9.0


def test_a_name_is_where_its_broker_has_most_room() -> None:
    to_the_right = [(10.0, 0.0), (10.0, 10.0), (10.0, -10.0)]
    assert next(free_angles((0.0, 0.0), to_the_right)) == pytest.approx(pi)
    assert next(free_angles((0.0, 0.0), [(0.0, -10.0)])) == pytest.approx(pi / 2)
    assert next(free_angles((0.0, 0.0), [(0.0, 10.0)])) == pytest.approx(-pi / 2)
    assert next(free_angles((0.0, 0.0), [])) == pytest.approx(-pi / 2)


def test_all_gaps_are_tried_and_then_all_around() -> None:
    cross = [(10.0, 0.0), (0.0, 10.0), (-10.0, 0.0), (0.0, -10.0)]
    angles = [angle % (2 * pi) for angle in free_angles((0.0, 0.0), cross)]
    assert sorted(islice(angles, 4)) == pytest.approx([pi / 4, 3 * pi / 4, 5 * pi / 4, 7 * pi / 4])
    assert len(angles) == 12


def test_what_two_boxes_have_in_common() -> None:
    box = Rectangle(0, 0, 10, 4)
    assert box.common_area(Rectangle(8, 3, 20, 20)) == 2
    assert box.common_area(Rectangle(10, 0, 20, 4)) == box.common_area(Rectangle(-5, 5, 5, 9)) == 0


def test_names_stand_outside_of_their_brokers_however_large() -> None:
    for radius in (3.0, 20.0):
        placed = place_labels({"a": (0.0, 0.0)}, {"a": radius}, {"a": []}, SIZE)
        assert placed["a"].box.common_area(Rectangle(-radius, -radius, radius, radius)) == 0
        assert placed["a"].box.top == pytest.approx(-radius - 2.5)


def test_two_names_between_two_brokers_do_not_cover_each_other() -> None:
    """Both have the most room there, and there is room for one."""
    points = {"brokerage4": (0.0, 0.0), "brokerage2": (70.0, 0.0), "x": (-50.0, 0.0),
              "y": (120.0, 0.0)}  # fmt: skip
    links = {"brokerage4": ["x"], "brokerage2": ["y"], "x": ["brokerage4"], "y": ["brokerage2"]}
    placed = place_labels(points, dict.fromkeys(points, RADIUS), links, SIZE)
    assert placed["brokerage4"].box.common_area(placed["brokerage2"].box) == 0


@pytest.mark.parametrize(
    "name", [each for each, generator in TOPOLOGIES.items() if generator.brokers <= 48]
)
def test_hardly_a_name_is_covered_in_the_pictures_there_are(name: str) -> None:
    made = generate(name, seed=1)
    positions = layout(made)
    extent = (
        max(hypot(x - u, y - v) for x, y in positions.values() for u, v in positions.values()) or 1
    )
    points = {each: (x * 600 / extent, y * 600 / extent) for each, (x, y) in positions.items()}
    neighbours = {each: made.neighbours(each) for each in made.brokers}
    placed = place_labels(points, dict.fromkeys(points, RADIUS), neighbours, SIZE)
    covered = [
        (one, other)
        for one, other in combinations(made.brokers, 2)
        if placed[one].box.common_area(placed[other].box) > 0
    ]
    assert len(covered) <= len(made.brokers) // 10
    for each, label in placed.items():
        x, y = label.offset
        assert hypot(x, y) == pytest.approx(RADIUS + 2.5)
        assert (cos(atan2(y, x)) > 0.4) == (label.horizontal == "left"), each
        assert (sin(atan2(y, x)) > 0.4) == (label.vertical == "bottom"), each

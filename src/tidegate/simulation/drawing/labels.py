"""Placement of labels in a picture: beside their brokers, away from links, not over each other.

For each name, positions are tried in order: first in the widest gap between the links of its
broker, then in the other gaps, then in eight directions. The first position where the label covers
nothing is taken, or else the one where it covers the least.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import atan2, cos, pi, sin

Point = tuple[float, float]

GAP = 2.5
"""The distance between a broker and its name, in points."""
# The size of a character relative to the font size; roughly, as fonts differ.
CHAR_WIDTH = 0.6
LINE_HEIGHT = 1.2


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle on the page."""

    left: float
    bottom: float
    right: float
    top: float

    def common_area(self, other: Rectangle) -> float:
        """The area that two rectangles have in common."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, width) * max(0.0, height)


@dataclass(frozen=True, slots=True)
class Label:
    """The position of a name: its corner, side or middle is at ``offset`` from its broker."""

    offset: Point
    horizontal: str
    vertical: str
    box: Rectangle


def place_labels(
    points: Mapping[str, Point],
    radii: Mapping[str, float],
    neighbours: Mapping[str, Sequence[str]],
    size: float,
) -> dict[str, Label]:
    """A position for each name; all lengths, also ``size`` of the font, are in points."""
    brokers = {
        name: Rectangle(x - radii[name], y - radii[name], x + radii[name], y + radii[name])
        for name, (x, y) in points.items()
    }
    placed: dict[str, Label] = {}
    for name, point in points.items():
        others = [points[each] for each in neighbours[name]]
        candidates = [
            _label(name, point, radii[name], angle, size) for angle in free_angles(point, others)
        ]
        occupied = [box for each, box in brokers.items() if each != name]
        occupied += [label.box for label in placed.values()]
        covered = [sum(label.box.common_area(each) for each in occupied) for label in candidates]
        placed[name] = candidates[covered.index(min(covered))]  # the first of equals
    return placed


def free_angles(point: Point, others: Sequence[Point]) -> Iterator[float]:
    """Directions from a point, in radians, between the lines to others; the widest gap first."""
    angles = sorted(atan2(y - point[1], x - point[0]) for x, y in others)
    if not angles:
        yield -pi / 2
    elif len(angles) == 1 and abs(angles[0] - pi / 2) < pi / 4:
        yield -pi / 2  # the leaves of a hierarchy have their names below them
    gaps = [
        (after - before, before) for before, after in pairwise([*angles, *_after_full_turn(angles)])
    ]
    for gap, start in sorted(gaps, key=lambda each: -each[0]):
        yield start + gap / 2
    for eighth in range(8):
        yield eighth * pi / 4


def _after_full_turn(angles: Sequence[float]) -> list[float]:
    """The first angle again, after a full turn, so that the last gap has an end."""
    return [angles[0] + 2 * pi] if angles else []


def _label(name: str, point: Point, radius: float, angle: float, size: float) -> Label:
    x, y = cos(angle), sin(angle)
    offset = ((radius + GAP) * x, (radius + GAP) * y)
    horizontal = "center" if abs(x) < 0.4 else ("left" if x > 0 else "right")
    vertical = "center" if abs(y) < 0.4 else ("bottom" if y > 0 else "top")
    width, height = CHAR_WIDTH * size * len(name), LINE_HEIGHT * size
    left = point[0] + offset[0] - width * {"left": 0, "center": 0.5, "right": 1}[horizontal]
    bottom = point[1] + offset[1] - height * {"bottom": 0, "center": 0.5, "top": 1}[vertical]
    return Label(
        offset, horizontal, vertical, Rectangle(left, bottom, left + width, bottom + height)
    )

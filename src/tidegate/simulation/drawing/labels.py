"""Where to write the names of brokers in a picture: beside them, away from their links, and not
over each other.

A name is tried on the side where its broker has the most room between its links, then between the
others, then all around. The first place where it covers nothing is taken, or else the one where it
covers the least.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import atan2, cos, pi, sin

Point = tuple[float, float]

GAP = 2.5
"""Between a broker and its name, in points."""
CHAR_WIDTH = 0.6
LINE_HEIGHT = 1.2
"""Of a character, in parts of the size of the font; roughly, as fonts differ."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle on the page."""

    left: float
    bottom: float
    right: float
    top: float

    def common(self, other: Rectangle) -> float:
        """How much of the page both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, width) * max(0.0, height)


@dataclass(frozen=True, slots=True)
class Label:
    """Where a name stands: its corner, side or middle is at ``offset`` from its broker."""

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
    """A place for each name; all lengths are in points, also the size of the font."""
    brokers = {
        name: Rectangle(x - radii[name], y - radii[name], x + radii[name], y + radii[name])
        for name, (x, y) in points.items()
    }
    placed: dict[str, Label] = {}
    for name, point in points.items():
        others = [points[each] for each in neighbours[name]]
        tried = [
            _label(name, point, radii[name], angle, size) for angle in free_angles(point, others)
        ]
        taken = [box for each, box in brokers.items() if each != name]
        taken += [label.box for label in placed.values()]
        covered = [sum(label.box.common(each) for each in taken) for label in tried]
        placed[name] = tried[covered.index(min(covered))]  # the first of equals
    return placed


def free_angles(point: Point, others: Sequence[Point]) -> Iterator[float]:
    """Directions from a point away from lines to others, the one with the most room first."""
    angles = sorted(atan2(y - point[1], x - point[0]) for x, y in others)
    if not angles:
        yield -pi / 2
    elif len(angles) == 1 and abs(angles[0] - pi / 2) < pi / 4:
        yield -pi / 2  # the leaves of a hierarchy have their names below them
    gaps = [(after - before, before) for before, after in pairwise([*angles, *_turned(angles)])]
    for gap, start in sorted(gaps, key=lambda each: -each[0]):
        yield start + gap / 2
    for eighth in range(8):
        yield eighth * pi / 4


def _turned(angles: Sequence[float]) -> list[float]:
    """The first one again, after a whole turn."""
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

"""Pictures of overlays, as SVG or PNG; they need matplotlib and SciPy, of the extra `bench`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import atan2, cos, pi, sin
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from numpy.typing import NDArray

from tidegate.routing.domains import Architecture
from tidegate.simulation.loads import Loads
from tidegate.simulation.placing import Places, place
from tidegate.simulation.topology import Topology

FORMATS = (".svg", ".png")
LABELS_MAX = 60
REGIONS_MAX = 40

# Of the palette of Okabe and Ito, which colour-blind readers can tell apart.
_COLOURS = {
    Architecture.HIERARCHICAL: "#d55e00",
    Architecture.ACYCLIC: "#0072b2",
    Architecture.GENERAL: "#009e73",
}
_INK = "#333333"
_REGION = "#eef1f4"


def draw_overlay(topology: Topology, path: Path, loads: Loads | None = None) -> None:
    """Draw an overlay to a file whose name ends in one of FORMATS.

    Links have the colour of their architecture, and an arrow to the master in a hierarchy. With
    loads, a link is the thicker and darker, and a broker the larger and darker, the more messages
    it had.
    """
    with mpl.rc_context({"svg.hashsalt": "tidegate", "svg.fonttype": "none"}):  # same bytes again
        figure = _draw(topology, loads)
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        figure.savefig(path, metadata=metadata)


def _draw(topology: Topology, loads: Loads | None) -> Figure:
    figure = Figure(figsize=(10, 8), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    places = place(topology)
    scale = _Scale(topology.brokers)
    _draw_regions(axes, topology, places, scale)
    _draw_links(axes, topology, places, scale, loads)
    _draw_brokers(axes, topology, places, scale, loads)
    if len(topology.brokers) <= LABELS_MAX:
        _draw_arrows(axes, topology, places)
        _draw_labels(axes, topology, places, scale)
    brokers, links = len(topology.brokers), len(topology.links)
    axes.set_title(
        f"{topology.name}: {brokers:,} broker{'s'[: brokers != 1]}, "
        f"{links:,} link{'s'[: links != 1]}",
        fontsize=13,
        color=_INK,
        parse_math=False,
    )
    _draw_legend(figure, topology)
    return figure


class _Scale:
    """Sizes, in points, that suit the number of brokers."""

    def __init__(self, brokers: Sequence[str]) -> None:
        root = np.sqrt(len(brokers))
        longest = max(map(len, brokers))
        self.broker = float(np.clip(90 / root, 1.2, 13))
        self.link = float(np.clip(12 / root, 0.3, 1.8))
        self.label = float(np.clip(60 / root, 7, 10 if longest < 8 else 8 if longest < 10 else 7))


def _draw_regions(axes: Axes, topology: Topology, places: Places, scale: _Scale) -> None:
    """A pale ground behind the brokers of each region."""
    members: dict[str, list[tuple[float, float]]] = {}
    for broker, region in topology.regions.items():
        members.setdefault(region, []).append(places[broker])
    if not 1 < len(members) <= REGIONS_MAX:
        return
    for points in members.values():
        axes.add_patch(
            Polygon(
                _hull(points),
                facecolor=_REGION,
                edgecolor=_REGION,
                linewidth=3.2 * scale.broker,
                joinstyle="round",
                capstyle="round",
                zorder=0,
            )
        )


def _hull(points: Iterable[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """The convex hull, by Andrew's monotone chain."""
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered
    return [*_half_hull(ordered)[:-1], *_half_hull(ordered[::-1])[:-1]]


def _half_hull(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) > 1:
            (ax, ay), (bx, by) = hull[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _draw_links(
    axes: Axes, topology: Topology, places: Places, scale: _Scale, loads: Loads | None
) -> None:
    lines = [(places[link.a], places[link.b]) for link in topology.links]
    colours = [_COLOURS[topology.domains[link.domain]] for link in topology.links]
    if loads is None or not loads.links:
        widths = [scale.link] * len(lines)
        axes.add_collection(
            LineCollection(lines, colors=colours, linewidths=widths, alpha=0.8, zorder=1)
        )
        return
    counts = np.array([loads.links.get(link, 0) for link in topology.links], dtype=float)
    heat, norm = _heat("YlOrRd"), _norm(counts)
    widths = scale.link * (0.6 + 4 * norm(counts))
    axes.add_collection(
        LineCollection(lines, colors=colours, linewidths=widths + 0.9 * scale.link, zorder=1)
    )
    order = np.argsort(counts)  # the busiest on top
    axes.add_collection(
        LineCollection(
            [lines[i] for i in order],
            colors=heat(norm(counts[order])),
            linewidths=widths[order],
            zorder=2,
        )
    )
    _draw_bar(axes, heat, norm, "messages on a link")


def _draw_brokers(
    axes: Axes, topology: Topology, places: Places, scale: _Scale, loads: Loads | None
) -> None:
    x, y = np.array([places[broker] for broker in topology.brokers]).T
    area = scale.broker**2
    edge = min(1.0, scale.broker / 6)
    if loads is None or not loads.brokers:
        axes.scatter(x, y, s=area, c="white", edgecolors=_INK, linewidths=edge, zorder=3)
        return
    counts = np.array([loads.brokers.get(broker, 0) for broker in topology.brokers], dtype=float)
    heat, norm = _heat("PuBu"), _norm(counts)
    shares = norm(counts)
    areas = area * (0.4 + 2.6 * shares)
    axes.scatter(x, y, s=areas, c=heat(shares), edgecolors=_INK, linewidths=edge, zorder=3)
    _draw_bar(axes, heat, norm, "messages of a broker")


def _heat(name: str) -> Colormap:
    """A sequential colour map without its palest end, which is hard to see on white."""
    return LinearSegmentedColormap.from_list(name, mpl.colormaps[name](np.linspace(0.1, 1, 256)))


def _norm(counts: NDArray[np.float64]) -> Normalize:
    """From none to the most, by the square root: a few have most of the load, as a rule."""
    return PowerNorm(0.5, 0, max(counts.max(initial=0), 1))


def _draw_bar(axes: Axes, heat: Colormap, norm: Normalize, label: str) -> None:
    figure = axes.figure
    bar = figure.colorbar(
        ScalarMappable(norm, heat), ax=axes, location="right", shrink=0.4, pad=0.02, aspect=25
    )
    bar.set_label(label, fontsize=9, color=_INK)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)


def _draw_arrows(axes: Axes, topology: Topology, places: Places) -> None:
    """An arrowhead in the middle of each link of a hierarchy, towards the master."""
    for link in topology.links:
        if topology.domains[link.domain] is Architecture.HIERARCHICAL:
            (ax, ay), (bx, by) = places[link.a], places[link.b]
            axes.annotate(
                "",
                xy=(bx + 0.58 * (ax - bx), by + 0.58 * (ay - by)),
                xytext=(bx + 0.42 * (ax - bx), by + 0.42 * (ay - by)),
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": _COLOURS[Architecture.HIERARCHICAL],
                    "linewidth": 0,
                    "mutation_scale": 15,
                },
                zorder=2,
            )


def _draw_labels(axes: Axes, topology: Topology, places: Places, scale: _Scale) -> None:
    """The name of each broker, on the side where it has the most room between its links."""
    for broker in topology.brokers:
        angle = _free_angle(broker, topology, places)
        distance = 0.55 * scale.broker + 2.5
        x, y = cos(angle), sin(angle)
        axes.annotate(
            broker,
            places[broker],
            xytext=(distance * x, distance * y),
            textcoords="offset points",
            ha="center" if abs(x) < 0.4 else ("left" if x > 0 else "right"),
            va="center" if abs(y) < 0.4 else ("bottom" if y > 0 else "top"),
            fontsize=scale.label,
            color=_INK,
            parse_math=False,
            bbox={
                "boxstyle": "square,pad=0.05",
                "facecolor": "white",
                "alpha": 0.5,
                "linewidth": 0,
            },
            zorder=4,
        )


def _free_angle(broker: str, topology: Topology, places: Places) -> float:
    x, y = places[broker]
    angles = sorted(
        atan2(places[other][1] - y, places[other][0] - x) for other in topology.neighbours(broker)
    )
    if not angles:
        return -pi / 2
    gaps = [(after - before, before) for before, after in pairwise([*angles, angles[0] + 2 * pi])]
    gap, start = max(gaps)
    if len(angles) == 1 and abs(start - pi / 2) < pi / 4:
        return -pi / 2  # the leaves of a hierarchy have their names below them
    return start + gap / 2


def _draw_legend(figure: Figure, topology: Topology) -> None:
    used = [kind for kind in Architecture if kind in topology.domains.values()]
    handles = [
        Line2D([], [], color=_COLOURS[kind], linewidth=2, label=_legend_text(topology, kind))
        for kind in used
    ]
    if handles:
        figure.legend(
            handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9
        )


def _legend_text(topology: Topology, kind: Architecture) -> str:
    domains = [domain for domain, each in topology.domains.items() if each is kind]
    text = kind.value if len(topology.domains) == 1 else f"{kind.value}: {_few(domains)}"
    arrows = kind is Architecture.HIERARCHICAL and len(topology.brokers) <= LABELS_MAX
    return f"{text} (arrows lead to the master)" if arrows else text


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} domains"

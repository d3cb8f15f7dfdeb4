"""Pictures of overlays, as SVG or PNG; they need matplotlib and SciPy, of the extra `bench`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.drawing.labels import place_labels
from tidegate.simulation.drawing.loads import Loads
from tidegate.simulation.drawing.positions import Positions, layout
from tidegate.simulation.overlays.topology import Topology

K = TypeVar("K", bound=Hashable)

FORMATS = (".svg", ".png")
LABELS_MAX = 60
"""The number of brokers up to which they are labelled."""
REGIONS_MAX = 40
"""The number of regions up to which they are drawn."""

# From the palette of Okabe and Ito, which colour-blind readers can tell apart.
_COLOURS = {
    Architecture.HIERARCHICAL: "#d55e00",
    Architecture.ACYCLIC: "#0072b2",
    Architecture.GENERAL: "#009e73",
}
_LINKS_MAP, _BROKERS_MAP = "YlOrRd", "PuBu"
# Sizes in inches: of the drawing of brokers and links, and of the margins around it.
_DRAWING_IN = (9.0, 7.5)
_DRAWING_MIN_IN = (5.5, 2.0)
_SIDE_IN, _BARS_IN, _BOTTOM_IN, _TOP_IN = 0.9, 0.9, 0.8, 0.9
_INK = "#333333"
_REGION = "#eef1f4"


def draw_overlay(topology: Topology, path: Path, loads: Loads | None = None) -> None:
    """Draw an overlay to a file whose name ends in one of FORMATS.

    Links have the colour of their architecture, and an arrow to the master in a hierarchy. With
    loads, links are thicker and darker, and brokers larger and darker, the more messages they had.
    """
    # With a fixed salt and without a date, the same overlay gives the same bytes.
    with mpl.rc_context({"svg.hashsalt": "tidegate", "svg.fonttype": "none"}):
        figure = _draw(topology, loads)
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        figure.savefig(path, metadata=metadata)


def _draw(topology: Topology, loads: Loads | None) -> Figure:
    positions = layout(topology)
    scale = _Scale(topology, loads or Loads())
    page = _Page.of(positions, has_bars=scale.has_loads)
    figure = Figure(figsize=page.size_in, dpi=150)
    axes = figure.add_axes(page.frame)
    axes.set_axis_off()
    axes.set(xlim=page.x, ylim=page.y)
    _draw_regions(axes, topology, positions, scale)
    _draw_links(axes, topology, positions, scale)
    _draw_brokers(axes, topology, positions, scale)
    if len(topology.brokers) <= LABELS_MAX:
        _draw_arrows(axes, topology, positions)
        _draw_labels(axes, topology, positions, scale, page)
    for artist in axes.get_children():
        artist.set_clip_on(False)  # markers and labels at the edge go beyond it
    _draw_bars(axes, scale)
    _draw_title(axes, topology)
    _draw_legend(figure, topology)
    return figure


@dataclass(frozen=True, slots=True)
class _Page:
    """The size of the page, in inches, and the part of the plane that is drawn on it."""

    size_in: tuple[float, float]
    frame: tuple[float, float, float, float]
    """Left, bottom, width and height of the drawing, as shares of the page."""
    x: tuple[float, float]
    y: tuple[float, float]
    points_per_unit: float

    @classmethod
    def of(cls, positions: Positions, *, has_bars: bool) -> _Page:
        """A page for brokers at some positions, with margins for names, title, legend and bars."""
        low, high = np.min([*positions.values()], axis=0), np.max([*positions.values()], axis=0)
        middle, extent = (low + high) / 2, high - low
        sides = np.divide(_DRAWING_IN, extent, out=np.full(2, np.inf), where=extent > 0)
        inches_per_unit = float(min(sides.min(), 1e9)) if np.isfinite(sides).any() else 1.0
        drawn = np.maximum(extent * inches_per_unit, _DRAWING_MIN_IN)
        low, high = middle - drawn / 2 / inches_per_unit, middle + drawn / 2 / inches_per_unit
        width = drawn[0] + 2 * _SIDE_IN + has_bars * _BARS_IN
        height = drawn[1] + _BOTTOM_IN + _TOP_IN
        frame = (_SIDE_IN / width, _BOTTOM_IN / height, drawn[0] / width, drawn[1] / height)
        return cls(
            (width, height), frame, (low[0], high[0]), (low[1], high[1]), 72 * inches_per_unit
        )


class _Scale:
    """The sizes of brokers, links and labels in points, by the number of brokers and the loads."""

    def __init__(self, topology: Topology, loads: Loads) -> None:
        root = np.sqrt(len(topology.brokers))
        longest = max(map(len, topology.brokers))
        self.broker = float(np.clip(90 / root, 1.2, 13))
        self.link = float(np.clip(12 / root, 0.3, 1.8))
        self.label = float(np.clip(60 / root, 7, 10 if longest < 8 else 8 if longest < 10 else 7))
        self.links = _counts(loads.links, topology.links)
        self.brokers = _counts(loads.brokers, topology.brokers)

    @property
    def has_loads(self) -> bool:
        """Whether the loads of links or brokers are known."""
        return self.links is not None or self.brokers is not None

    @property
    def areas(self) -> NDArray[np.float64]:
        """The areas of brokers as matplotlib takes them: squares of diameters."""
        if self.brokers is None:
            return np.array([self.broker**2])
        return np.asarray(self.broker**2 * (0.4 + 2.6 * _norm(self.brokers)(self.brokers)))


def _counts(loads: Mapping[K, float], items: Iterable[K]) -> NDArray[np.float64] | None:
    """The messages of each link or broker; None if no loads are known."""
    return np.array([loads.get(each, 0) for each in items], dtype=float) if loads else None


def _draw_regions(axes: Axes, topology: Topology, positions: Positions, scale: _Scale) -> None:
    """A pale background behind the brokers of each region."""
    members: dict[str, list[tuple[float, float]]] = {}
    for broker, region in topology.regions.items():
        members.setdefault(region, []).append(positions[broker])
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


def _draw_links(axes: Axes, topology: Topology, positions: Positions, scale: _Scale) -> None:
    lines = [(positions[link.a], positions[link.b]) for link in topology.links]
    colours = [_COLOURS[topology.domains[link.domain]] for link in topology.links]
    counts = scale.links
    if counts is None:
        axes.add_collection(
            LineCollection(lines, colors=colours, linewidths=scale.link, alpha=0.8, zorder=1)
        )
        return
    shares = _norm(counts)(counts)
    widths = scale.link * (0.6 + 4 * shares)
    axes.add_collection(
        LineCollection(lines, colors=colours, linewidths=widths + 0.9 * scale.link, zorder=1)
    )
    order = np.argsort(counts)  # the busiest on top
    axes.add_collection(
        LineCollection(
            [lines[i] for i in order],
            colors=_heat(_LINKS_MAP)(shares[order]),
            linewidths=widths[order],
            zorder=2,
        )
    )


def _draw_brokers(axes: Axes, topology: Topology, positions: Positions, scale: _Scale) -> None:
    x, y = np.array([positions[broker] for broker in topology.brokers]).T
    edge = min(1.0, scale.broker / 6)
    counts = scale.brokers
    fill = "white" if counts is None else _heat(_BROKERS_MAP)(_norm(counts)(counts))
    axes.scatter(x, y, s=scale.areas, c=fill, edgecolors=_INK, linewidths=edge, zorder=3)


def _heat(name: str) -> Colormap:
    """A sequential colour map without its palest end, which is hard to see on white."""
    return LinearSegmentedColormap.from_list(name, mpl.colormaps[name](np.linspace(0.1, 1, 256)))


def _norm(counts: NDArray[np.float64]) -> Normalize:
    """Maps counts to 0..1 by their square root, because usually a few have most of the load."""
    return PowerNorm(0.5, 0, max(counts.max(initial=0), 1))


def _draw_bars(axes: Axes, scale: _Scale) -> None:
    """The colour bars for links and brokers, above each other on the right."""
    for height, counts, name, label in (
        (0.54, scale.links, _LINKS_MAP, "messages\non a link"),
        (0.0, scale.brokers, _BROKERS_MAP, "messages\nof a broker"),
    ):
        if counts is None:
            continue
        figure = axes.get_figure(root=True)
        assert figure is not None
        width_in, height_in = figure.get_size_inches()
        frame = axes.get_position()
        at = (frame.x1 + _SIDE_IN / width_in, frame.y0 + height * frame.height)
        inside = figure.add_axes((*at, 0.15 / width_in, 0.46 * frame.height))
        bar = figure.colorbar(ScalarMappable(_norm(counts), _heat(name)), cax=inside)
        bar.locator = MaxNLocator(nbins=max(2, round(height_in)), integer=True)
        bar.update_ticks()
        bar.set_label(label, fontsize=9, color=_INK)
        bar.ax.tick_params(labelsize=8)
        bar.outline.set_visible(False)


def _draw_title(axes: Axes, topology: Topology) -> None:
    brokers, links = len(topology.brokers), len(topology.links)
    axes.set_title(
        f"{topology.name}: {brokers:,} broker{'s'[: brokers != 1]}, "
        f"{links:,} link{'s'[: links != 1]}",
        fontsize=13,
        color=_INK,
        pad=32,
        parse_math=False,
    )


def _draw_arrows(axes: Axes, topology: Topology, positions: Positions) -> None:
    """An arrowhead in the middle of each link of a hierarchy, towards the master."""
    for link in topology.links:
        if topology.domains[link.domain] is Architecture.HIERARCHICAL:
            (ax, ay), (bx, by) = positions[link.a], positions[link.b]
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


def _draw_labels(
    axes: Axes, topology: Topology, positions: Positions, scale: _Scale, page: _Page
) -> None:
    """The name of each broker beside it."""
    unit, radii = page.points_per_unit, np.sqrt(scale.areas) / 2
    labels = place_labels(
        {broker: (x * unit, y * unit) for broker, (x, y) in positions.items()},
        dict(zip(topology.brokers, np.broadcast_to(radii, len(positions)), strict=True)),
        {broker: topology.neighbours(broker) for broker in topology.brokers},
        scale.label,
    )
    for broker, label in labels.items():
        axes.annotate(
            broker,
            positions[broker],
            xytext=label.offset,
            textcoords="offset points",
            ha=label.horizontal,
            va=label.vertical,
            fontsize=scale.label,
            color=_INK,
            parse_math=False,
            annotation_clip=False,
            bbox={
                "boxstyle": "square,pad=0.05",
                "facecolor": "white",
                "alpha": 0.5,
                "linewidth": 0,
            },
            zorder=4,
        )


def _draw_legend(figure: Figure, topology: Topology) -> None:
    used = [kind for kind in Architecture if kind in topology.domains.values()]
    handles = [
        Line2D([], [], color=_COLOURS[kind], linewidth=2, label=_legend_text(topology, kind))
        for kind in used
    ]
    if handles:
        figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=9)


def _legend_text(topology: Topology, kind: Architecture) -> str:
    domains = [domain for domain, each in topology.domains.items() if each is kind]
    text = kind.value if len(topology.domains) == 1 else f"{kind.value}: {_few(domains)}"
    arrows = kind is Architecture.HIERARCHICAL and len(topology.brokers) <= LABELS_MAX
    return f"{text} (arrows lead to the master)" if arrows else text


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} domains"

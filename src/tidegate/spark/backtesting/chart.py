"""A chart of a backtest over time; it needs matplotlib, which is in the extra `bench`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import matplotlib.dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tidegate.errors import BadValueError
from tidegate.language.durations import format_duration
from tidegate.spark.backtesting.result import Backtest, format_span

dates: Any = matplotlib.dates  # most of its functions have no type hints

FORMATS = (".pdf", ".png", ".svg")

# From the palette of Okabe and Ito, whose colours colour-blind readers can tell apart.
_LIVE, _CHANGED, _ENTERING, _LEAVING = "#777777", "#0072b2", "#009e73", "#d55e00"

# The range of dates in matplotlib. The margin of the chart, or the end of the last bucket, may be
# outside of it, and then no ticks can be drawn.
_FIRST = float(dates.date2num(datetime.min.replace(tzinfo=UTC)))
_LAST = float(dates.date2num(datetime.max.replace(microsecond=0, tzinfo=UTC)))


def draw_backtest(result: Backtest, path: Path) -> None:
    """Draw deliveries over time: live and changed ones above, entering and leaving ones below."""
    if result.every is None:
        raise BadValueError("a chart shows counts over time, and there are no events with times")
    figure = Figure(figsize=(9, 5.5), dpi=150, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    title = f"Deliveries every {format_duration(result.every)}, {format_span(result)}"
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    _draw_deliveries(above, result)
    _draw_effects(below, result)
    for axes in (above, below):
        axes.grid(True, axis="y", color="#dddddd")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):,.0f}"))
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
    locator = dates.AutoDateLocator()
    below.xaxis.set_major_locator(locator)
    below.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, show_offset=False))
    below.set_xlabel("time of the event, UTC")
    below.margins(x=0.01)
    left, right = below.get_xlim()
    below.set_xlim(max(left, _FIRST), min(right, _LAST))
    figure.savefig(path)


def _draw_deliveries(axes: Axes, result: Backtest) -> None:
    edges = _edges(result, result.every or timedelta())
    counts = [each.counts for each in result.buckets]
    live, changed = [each.live for each in counts], [each.changed for each in counts]
    axes.stairs(
        live, edges, fill=True, color=_LIVE, alpha=0.35, label=f"live, {result.counts.live:,}"
    )
    axes.stairs(
        changed,
        edges,
        baseline=None,
        color=_CHANGED,
        linewidth=1.6,
        label=f"changed, {result.counts.changed:,}",
    )
    axes.set_ylabel("deliveries")
    axes.set_ylim(0, max([*live, *changed, 1]) * 1.08)


def _draw_effects(axes: Axes, result: Backtest) -> None:
    edges = _edges(result, result.every or timedelta())
    counts = [each.counts for each in result.buckets]
    entering, leaving = [each.entering for each in counts], [-each.leaving for each in counts]
    axes.stairs(
        entering, edges, fill=True, color=_ENTERING, label=f"entering, {result.counts.entering:,}"
    )
    axes.stairs(
        leaving, edges, fill=True, color=_LEAVING, label=f"leaving, {result.counts.leaving:,}"
    )
    axes.axhline(0, color="#333333", linewidth=0.8)
    axes.set_ylabel("difference")
    axes.set_ylim(min([*leaving, 0]) * 1.15 - 0.05, max([*entering, 0]) * 1.15 + 0.05)


def _edges(result: Backtest, width: timedelta) -> list[float]:
    """The beginnings of the buckets and the end of the last one, in matplotlib's days."""
    begins = [each.begin for each in result.buckets]
    first = [float(each) for each in dates.date2num(begins)]
    return [*first, first[-1] + width / timedelta(days=1)]

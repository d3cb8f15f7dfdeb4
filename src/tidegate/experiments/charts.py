"""Charts of benchmark results; they need Matplotlib, of the extra `bench`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

from tidegate.experiments.matching import MatchingSpeed
from tidegate.experiments.summary_precision import PAPER_BUDGET, Precision

UPDATE_GOAL_US = 5
"""The goal for the median of an update, drawn as a line."""

# From the palette of Okabe and Ito, which colour-blind readers can tell apart. There are more
# colours than engines.
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
_GREY = "#777777"

CLOSE_SHARE = 0.1
"""Points whose sizes differ by less share a label."""

_Line = Sequence[tuple[int, float]]
"""Points of a line: number of subscriptions, value."""


def draw_matching(speeds: Iterable[MatchingSpeed], path: Path) -> None:
    """Draw events per second against the number of subscriptions, two lines for each engine."""
    by_engine = _by_engine(speeds)
    figure, axes = _figure()
    for colour, (engine, rows) in zip(_COLOURS, by_engine.items(), strict=False):
        batch = [(row.subscriptions, row.median_per_s) for row in rows]
        single = [(row.subscriptions, row.single.per_s) for row in rows]
        _plot(axes, batch, f"{engine}, in batches", colour)
        _plot(axes, single, f"{engine}, one at a time", colour, dashed=True)
    # The baseline is measured with each engine; slow engines stop at small sizes.
    longest = max(by_engine.values(), key=len, default=[])
    brute = [(row.subscriptions, row.baseline_per_s) for row in longest]
    _plot(axes, brute, "brute force in NumPy", _GREY)
    workloads = ", ".join(dict.fromkeys(row.workload for row in longest))
    axes.set_title(f"Matching: workload {workloads}, one thread")
    axes.set_ylabel("events per second")
    _save(figure, path)


def draw_updates(speeds: Iterable[MatchingSpeed], path: Path) -> None:
    """Draw the cost of an update of a parameter against the number of subscriptions."""
    figure, axes = _figure()
    for colour, (engine, rows) in zip(_COLOURS, _by_engine(speeds).items(), strict=False):
        costs = [(row.subscriptions, row.update) for row in rows if row.update is not None]
        _plot(axes, [(size, cost.p50_us) for size, cost in costs], f"{engine}, median", colour)
        p99 = [(size, cost.p99_us) for size, cost in costs]
        _plot(axes, p99, f"{engine}, 99th percentile", colour, dashed=True)
    axes.axhline(
        UPDATE_GOAL_US, color=_GREY, linewidth=1, linestyle=":", label=f"goal, {UPDATE_GOAL_US} µs"
    )
    axes.set_title("Updating a parameter: workload moving, Python API")
    axes.set_ylabel("microseconds per update")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 1), max(high, 100))  # a narrow scale would show noise as growth
    _save(figure, path)


def draw_precision(rows: Iterable[Precision], path: Path) -> None:
    """Draw the share of events that come in vain against the bytes of summaries, by budget."""
    lines: dict[tuple[float, bool], list[Precision]] = {}
    for row in rows:
        lines.setdefault((row.subsumption, row.covered_left_out), []).append(row)
    figure, axes = _figure()
    axes.set_yscale("linear")
    axes.margins(x=0.12, y=0.1)
    axes.set_xlabel("kilobytes that all brokers send, in full")
    axes.set_ylabel("events sent to brokers that match nothing there")
    thousands = FuncFormatter(lambda value, _: f"{value / 1000:,.10g}")
    axes.xaxis.set_major_formatter(thousands)
    axes.xaxis.set_minor_formatter(thousands)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for colour, ((subsumption, left_out), line) in zip(_COLOURS, lines.items(), strict=False):
        kind = "without covered ones" if left_out else "all subscriptions"
        budgets = [row for row in line if row.budget != PAPER_BUDGET]
        points = sorted((row.bytes, row.in_vain) for row in budgets)
        _plot(axes, points, f"{kind}, subsumption {subsumption:g}", colour)
        _name_budgets(axes, budgets, colour, is_below=left_out)
        for row in line:
            if row.budget == PAPER_BUDGET:
                label = f"{kind}, rows as in section 3.1"
                axes.plot(row.bytes, row.in_vain, "*", markersize=11, color=colour, label=label)
    axes.set_title("Precision of summaries against their size, by rows a table")
    _save(figure, path, columns=2)


def _name_budgets(axes: Axes, rows: Iterable[Precision], colour: str, *, is_below: bool) -> None:
    """Write the budgets beside their points, those of one point together."""
    names: dict[tuple[int, float], str] = {}
    for row in rows:
        close = (each for each in names if abs(each[0] / row.bytes - 1) < CLOSE_SHARE)
        point = next(close, (row.bytes, row.in_vain))
        names[point] = f"{names[point]}, {row.budget}" if point in names else row.budget
    for point, name in names.items():
        axes.annotate(
            name,
            point,
            xytext=(-4, -11) if is_below else (5, 5),
            textcoords="offset points",
            fontsize=7,
            color=colour,
            ha="right" if is_below else "left",
        )


def _by_engine(speeds: Iterable[MatchingSpeed]) -> dict[str, list[MatchingSpeed]]:
    by_engine: dict[str, list[MatchingSpeed]] = {}
    for speed in speeds:
        by_engine.setdefault(speed.engine, []).append(speed)
    return by_engine


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8, 5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("subscriptions")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color="#dddddd")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _plot(axes: Axes, line: _Line, label: str, colour: str, *, dashed: bool = False) -> None:
    axes.plot(
        [size for size, _ in line],
        [value for _, value in line],
        label=label,
        color=colour,
        marker="o",
        markersize=4,
        linestyle="--" if dashed else "-",
    )


def _save(figure: Figure, path: Path, columns: int = 3) -> None:
    figure.legend(loc="outside lower center", ncols=columns, frameon=False)
    figure.savefig(path)

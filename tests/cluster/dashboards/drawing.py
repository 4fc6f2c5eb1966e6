"""One picture of one dashboard: two panels a row, as Grafana has them, on a white ground of their own."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as Outline
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from tests.cluster.dashboards.panels import Series, Shown, Window, factor_of, written

COLOURS = (
    *("#2f9e44", "#0b5cad", "#c2410c", "#7c3aed", "#b7791f", "#0e7490", "#be185d", "#4d7c0f", "#6b7280", "#7f1d1d"),
    *("#1e3a8a", "#f59e0b", "#10b981", "#a78bfa", "#fb7185", "#0f172a"),
)
INK, GREY, RULE = "#111827", "#6b7280", "#e5e7eb"
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "dashboards", "font.size": 9, "figure.facecolor": "white"}
WIDTH, PLOT, LINE, HEAD = 11.0, 2.1, 0.17, 0.45  # inches: the picture, a plot, a line of a legend, the heading
NARROW = ((9, 3), (24, 2))  # letters of the longest name in a legend, and how many stand side by side then
BELOW = 0.27  # inches from a plot to its legend: the times stand between
PLAYED = "kube-state-metrics and dcgm-exporter are made up"
OUTLINE, NUMBER = re.compile(r' d="[^"]*"'), re.compile(r"(\.\d)\d+")


def draw(title: str, panels: Sequence[Shown], window: Window, into: Path) -> None:
    """Draw all panels of a dashboard into one SVG."""
    rows = [panels[at : at + 2] for at in range(0, len(panels), 2)]
    heights = [PLOT + LINE * max(_lines(panel) for panel in row) for row in rows]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, HEAD + sum(heights)), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
        if any(panel.played for panel in panels):
            figure.text(0.99, 0.995, PLAYED, ha="right", va="top", color=GREY)
        axes = [*figure.subplots(len(rows), 2, squeeze=False, height_ratios=heights).flat]
        for axis, panel in zip(axes, panels, strict=False):
            _panel(axis, panel, window)
        for axis in axes[len(panels) :]:
            axis.axis("off")
        figure.savefig(into, format="svg", metadata={"Date": None, "Creator": None})
    into.write_text(OUTLINE.sub(lambda found: NUMBER.sub(r"\1", found[0]), into.read_text()))


def _columns(panel: Shown) -> int:
    longest = max(len(each.name) for each in panel.series)
    return next((columns for letters, columns in NARROW if longest <= letters), 1)


def _lines(panel: Shown) -> int:
    return 0 if panel.draws == "numbers" or not panel.series else -(-len(panel.series) // _columns(panel))


def _panel(axis: Axes, panel: Shown, window: Window) -> None:
    axis.set_title(panel.title, loc="left", fontsize=9.5, fontweight="bold", color=INK)
    if not panel.series:
        _nothing(axis)
    elif panel.draws == "numbers":
        _numbers(axis, panel)
    else:
        (_bars if panel.draws == "bars" else _curves)(axis, panel.series, window)
        _over_time(axis, panel, window)
        _legend(axis, panel)


def _blank(axis: Axes) -> None:
    axis.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
    for side in axis.spines.values():
        side.set_color(RULE)


def _nothing(axis: Axes) -> None:
    _blank(axis)
    axis.text(0.5, 0.5, "No data", ha="center", va="center", fontsize=13, color=GREY)


def _numbers(axis: Axes, panel: Shown) -> None:
    """The numbers side by side; one alone needs no name."""
    _blank(axis)
    for place, each in enumerate(panel.series):
        across = (place + 0.5) / len(panel.series)
        axis.text(across, 0.55, written(each.last, panel.unit), ha="center", va="center", fontsize=26, color=COLOURS[0])
        if len(panel.series) > 1:
            axis.text(across, 0.2, each.name, ha="center", va="center", fontsize=9, color=INK)


def _curves(axis: Axes, shown: Sequence[Series], window: Window) -> None:
    """Broken where there was nothing for more than two steps; a point alone is a dot."""
    for place, each in enumerate(shown):
        at, value = np.array(each.points).T
        holes = np.flatnonzero(np.diff(at) > 2 * window.step) + 1
        at, value = np.insert(at, holes, np.nan), np.insert(value, holes, np.nan)
        axis.plot(
            at, value, color=_colour(place), linewidth=1.4, marker="." if len(each.points) == 1 else "", clip_on=False
        )


def _bars(axis: Axes, shown: Sequence[Series], window: Window) -> None:
    """Stacked, each series as one outline."""
    below: dict[float, float] = {}
    for place, each in enumerate(shown):
        bars = [_bar(at, below.get(at, 0.0), value, window.step) for at, value in each.points]
        outline = Outline.make_compound_path(*bars)
        axis.add_patch(PathPatch(outline, facecolor=_colour(place), alpha=0.75, linewidth=0))
        below |= {at: below.get(at, 0.0) + value for at, value in each.points}
    axis.update_datalim([(window.start, 0.0), (window.end, max(below.values()))])
    axis.autoscale_view(scalex=False)


def _bar(at: float, floor: float, value: float, step: float) -> Outline:
    left, right, top = at - 0.4 * step, at + 0.4 * step, floor + value
    return Outline([(left, floor), (left, top), (right, top), (right, floor), (left, floor)], closed=True)


def _over_time(axis: Axes, panel: Shown, window: Window) -> None:
    axis.set_xlim(window.start, window.end + window.step / 2)
    axis.xaxis.set_major_locator(MaxNLocator(6))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda at, _: f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"))
    _scale(axis, panel.unit)
    axis.tick_params(labelsize=8, color=RULE, labelcolor=GREY)
    axis.grid(True, color=RULE, linewidth=0.6)
    axis.set_axisbelow(True)
    for side in axis.spines.values():
        side.set_color(RULE)


def _scale(axis: Axes, unit: str) -> None:
    """From zero on, in round numbers of the unit that is written: minutes, not 100 seconds."""
    least, most = axis.dataLim.intervaly
    low, high = min(0.0, 1.06 * least), max(0.0, 1.06 * most)
    high = high if high > low else 1.0
    factor = factor_of(high, unit)
    marks = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low / factor, high / factor)
    axis.set_yticks([mark * factor for mark in marks])
    axis.set_ylim(low, high)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value, unit)))


def _legend(axis: Axes, panel: Shown) -> None:
    """Below the plot: the name of each series with its last value, as Grafana's table has it."""
    names = [f"{each.name or 'Value'}: {written(each.last, panel.unit)}" for each in panel.series]
    marks = [Patch(color=_colour(place)) for place in range(len(names))]
    figure = axis.get_figure()
    below = axis.transAxes + ScaledTranslation(0, -BELOW, figure.dpi_scale_trans)
    place = {"loc": "upper left", "bbox_to_anchor": (0, 0), "bbox_transform": below, "borderaxespad": 0, "borderpad": 0}
    size = {"fontsize": 8, "handlelength": 1.2, "handleheight": 0.5}
    axis.legend(marks, names, ncols=_columns(panel), frameon=False, **place, **size)


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]

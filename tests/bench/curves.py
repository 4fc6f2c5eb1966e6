"""The curves of docs/figures.md: what grows with the number of nodes, by which server stood beside the controller."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

Point = Mapping[str, Any]
OURS, LATE, BARE = "#0b5cad", "#c2410c", "#6b7280"
FILLED = {"kube-apiserver": True, "embedded server": False}  # markers of measured points
# A white ground of its own: read on light and on dark pages. Text stays text, and nothing changes from run to run.
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "growth", "font.size": 10, "figure.facecolor": "white"}


class Series(NamedTuple):
    """One curve; `value` is None where a point has no such figure."""

    name: str
    colour: str
    value: Callable[[Point], float | None]


class Panel(NamedTuple):
    """One figure over the number of nodes."""

    title: str
    unit: str
    curves: Sequence[Series]


def _last_claim(point: Point, side: str) -> float | None:
    found = point["storm"][side]
    return found["claimed_s"]["max"] if found else None


PANELS = (
    Panel(
        "Memory of the controller",
        "MiB resident",
        (
            Series("idle", OURS, lambda point: point["memory_mib"]["synced"]),
            Series("after the storm", LATE, lambda point: point["memory_mib"]["after_storm"]),
        ),
    ),
    Panel(
        "Idle, heartbeats going on",
        "% of a core",
        (Series("controller", OURS, lambda point: point["idle_cpu_percent"]),),
    ),
    Panel(
        "Condition until claim is visible",
        "ms",
        (
            Series("p50", OURS, lambda point: point["claim_ms"]["p50"]),
            Series("p95", LATE, lambda point: point["claim_ms"]["p95"]),
        ),
    ),
    Panel(
        "Storm until the last claim is visible",
        "s",
        (
            Series("controller", OURS, lambda point: _last_claim(point, "remediator")),
            Series("bare client", BARE, lambda point: _last_claim(point, "bare")),
        ),
    ),
    Panel(
        "From the start of the process until",
        "s",
        (
            Series("all lists are there", OURS, lambda point: point["start_s"]["listed"]),
            Series("all nodes are looked at", LATE, lambda point: point["start_s"]["all_seen"]),
        ),
    ),
)


def draw(points: Sequence[Point], into: Path) -> None:
    """Draw all panels into one SVG. On both axes each step is a factor: what is linear rises like the dotted line."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 6.4), layout="constrained")
        axes = figure.subplots(2, 3).flat
        for panel, axis in zip(PANELS, axes, strict=False):
            _panel(axis, panel, points)
        _key(axes[len(PANELS)], points)
        figure.savefig(into, format="svg", metadata={"Date": None, "Creator": None})


def _panel(axis: Axes, panel: Panel, points: Sequence[Point]) -> None:
    for series in panel.curves:
        for server, filled in FILLED.items():
            beside = [point for point in points if point["server"] == server]
            face = series.colour if filled else "white"
            axis.plot(*_drawn(series, beside), marker="o", color=series.colour, markerfacecolor=face)
    axis.set(title=panel.title, xlabel="nodes", ylabel=panel.unit)
    axis.legend([Line2D([], [], color=each.colour) for each in panel.curves], [each.name for each in panel.curves])
    if any(_drawn(panel.curves[0], points)):
        _linear(axis, panel.curves[0], points)
        _factors(axis, sorted({point["nodes"] for point in points}))


def _factors(axis: Axes, sizes: Sequence[int]) -> None:
    """Equal steps are equal factors; nodes are marked where a size was measured."""
    axis.set(xscale="log", yscale="log")
    axis.set_xticks(sizes, [f"{nodes:,}" for nodes in sizes], rotation=30)
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.minorticks_off()
    axis.grid(True, color="#e5e7eb", linewidth=0.6)


def _drawn(series: Series, points: Sequence[Point]) -> tuple[list[int], list[float]]:
    """Nodes and values of a curve; nothing is drawn of what is too little to be measured."""
    known = [(point["nodes"], value) for point in points if (value := series.value(point))]
    return [nodes for nodes, _ in known], [value for _, value in known]


def _linear(axis: Axes, series: Series, points: Sequence[Point]) -> None:
    """What growth in proportion to the nodes would be, from the first point on, as far as the curve goes."""
    nodes, values = _drawn(series, points)
    last = min(max(nodes), 2 * nodes[0] * max(values) / values[0])
    axis.plot([nodes[0], last], [values[0], values[0] * last / nodes[0]], color=BARE, linestyle=":", linewidth=1)


def _key(axis: Axes, points: Sequence[Point]) -> None:
    """What the markers mean, and how many faults each storm has."""
    axis.axis("off")
    marks = [
        Line2D(
            [], [], marker="o", color=OURS, markerfacecolor=OURS if filled else "white", label=f"beside the {server}"
        )
        for server, filled in FILLED.items()
    ]
    linear = Line2D([], [], color=BARE, linestyle=":", label="in proportion to the nodes")
    axis.legend(handles=[*marks, linear], loc="upper left", frameon=False)
    storms = [f"{point['storm']['faults']:,} of {point['nodes']:,} nodes" for point in points]
    axis.text(
        0.02, 0.5, "\n".join(["faults of each storm:", *dict.fromkeys(storms)]), va="top", transform=axis.transAxes
    )

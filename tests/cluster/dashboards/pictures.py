"""The dashboards as pictures for docs/alerts.md: `python -m tests.cluster.dashboards.pictures`.

For a minute (`--seconds`) a replica and a janitor have work to do, and a real Prometheus scrapes them. Then it is asked
each query of deploy/monitoring/dashboards.toml; what it answers is drawn, and nothing else.
"""

import argparse
import asyncio
import re
import runpy
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.cluster.dashboards.drawing import draw
from tests.cluster.dashboards.panels import Shown, Window, shown
from tests.cluster.dashboards.scene import scene

ROOT = Path(__file__).parents[3]
FIGURES = ROOT / "docs" / "figures"
ROWS = runpy.run_path(str(ROOT / "deploy/monitoring/dashboards.py"))["rows"]()
PLAYED = re.compile(r"\b(kube|DCGM)_")  # whose exporters are made up


class Picture(NamedTuple):
    """What one dashboard shows."""

    title: str
    panels: Sequence[Shown]
    window: Window


async def pictures(names: Sequence[str], seconds: float) -> dict[str, Picture]:
    """What these dashboards show after so much work. Raises Missing where there is no Prometheus."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        async with scene(Path(folder)) as prometheus:
            began = time.time()
            await asyncio.sleep(seconds)
            window = Window(began, time.time())
            for name in names:
                panels = [await shown(prometheus.url, panel, window, PLAYED) for panel in ROWS[name]["panels"]]
                found[name] = Picture(ROWS[name]["title"], panels, window)
    return found


def main() -> None:
    """Draw them, and print which panels have no data."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(ROWS), help="dashboards to draw, all unless given")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--output", type=Path, default=FIGURES)
    asked = parser.parse_args()
    for name, picture in asyncio.run(pictures(asked.names, asked.seconds)).items():
        draw(*picture, asked.output / f"dashboard-{name}.svg")
        print(f"{name}:", [panel.title for panel in picture.panels if not panel.series] or "every panel has data")


if __name__ == "__main__":
    main()

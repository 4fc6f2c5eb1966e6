"""The bench of growth still measures and draws; how fast anything was is for its figures, never for a test."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bench.growth import FOLDER
from tests.harness.benches import ROOT

SVG = "{http://www.w3.org/2000/svg}"


def growth(*arguments: str) -> str:
    """What the bench says to stderr and stdout."""
    command = [sys.executable, "-m", "tests.bench.growth", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def texts(picture: Path) -> str:
    """All that is written in the picture."""
    return "\n".join("".join(text.itertext()) for text in ElementTree.parse(picture).iter(f"{SVG}text"))


def measured(folder: Path, *sizes: str) -> list[dict]:
    growth(*sizes, "--claims", "1", "--idle", "1", "--output", str(folder))
    points = json.loads((folder / "growth.json").read_text())
    for point in points:
        assert point["start_s"]["all_seen"] >= point["start_s"]["listed"] > 0
        assert min(point["memory_mib"]["synced"], point["claim_ms"]["p50"]) > 0
        assert point["memory_mib"]["after_storm"] > 0
        assert point["storm"]["remediator"]["claimed_s"]["max"] > 0
        assert point["idle_cpu_percent"] >= 0
    return points


@pytest.mark.sampled("benches on a server", on_server=True)
@pytest.mark.cluster
def test_a_small_run_in_memory_states_every_number_and_draws_each_of_them(tmp_path: Path) -> None:
    (point,) = measured(tmp_path, "--nodes", "--in-memory", "40")
    assert (point["nodes"], point["server"], point["storm"]["faults"]) == (40, "embedded server", 8)
    written = texts(tmp_path / "growth.svg")
    from tests.bench.curves import PANELS  # only here: what draws takes long to import

    for panel in PANELS:
        assert panel.title in written
        assert panel.unit in written
    assert "8 of 40 nodes" in written


@pytest.mark.sampled("benches on a server", on_server=True)
@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_beside_a_real_api_server_the_storm_of_a_bare_client_is_stated_too(tmp_path: Path) -> None:
    (point,) = measured(tmp_path, "--nodes", "40", "--in-memory")
    assert (point["server"], point["storm"]["bare"]["claimed_s"]["max"] > 0) == ("kube-apiserver", True)


@pytest.mark.sampled("benches", rare=True)
def test_the_page_shows_the_curves_of_the_figures_that_are_kept(tmp_path: Path) -> None:
    """Drawn again they are the same picture: who changes the figures draws them."""
    (tmp_path / "growth.json").write_bytes((FOLDER / "growth.json").read_bytes())
    assert growth("--plot-only", "--output", str(tmp_path)) == ""
    assert texts(tmp_path / "growth.svg") == texts(FOLDER / "growth.svg")
    assert "(figures/growth.svg)" in (ROOT / "docs" / "figures.md").read_text()

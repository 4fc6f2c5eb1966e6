"""One run of the demo, for all tests that look at what came of it: the whole in CI, else some of its faults."""

from pathlib import Path

import pytest

from tests.remediator_sim.scenarios.running import PLAYED, Ended, end, start


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """`make demo ARGS="--summary json"`, from its first line to its last."""
    folder: Path = tmp_path_factory.mktemp("demo")
    return end(start(folder, "--summary", "json", "--patience", "240", *PLAYED.options), 560)

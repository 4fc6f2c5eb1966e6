"""The two programs of a watchdog, whose folder is no package."""

import sys
from pathlib import Path

import pytest

from tests.harness.apiserver import ApiServer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "watchdog"))


@pytest.fixture
def api(tmp_path):
    """An API server over HTTPS, whose gpu-1 is held by case-1."""
    server = ApiServer(tmp_path)
    yield server
    server.close()


@pytest.fixture
def folders(tmp_path):
    """That of the orders, and that of the answers."""
    made = (tmp_path / "of-orders", tmp_path / "of-answers")
    for folder in made:
        folder.mkdir()
    return made

"""Detectors are programs: tests import them by bare name."""

import sys
from pathlib import Path

import pytest

from tests.native import build_stub

DETECTORS = Path(__file__).resolve().parents[2] / "detectors"
sys.path.insert(0, str(DETECTORS))


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory):
    """Return the path of a freshly compiled libnvidia-ml.so.1."""
    return build_stub(tmp_path_factory.mktemp("nvml"))

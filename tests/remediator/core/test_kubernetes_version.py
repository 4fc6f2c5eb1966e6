"""The oldest Kubernetes that the controller works with, in the code, the chart and the pages."""

from pathlib import Path

import pytest

from remediator.core.kubernetes_version import OLDEST, too_old

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("version", ["v1.29.15", "v1.9.0", "v0.30.0", "1.29", "v1.29.9-eks-a1b2c3", "v1.29+"])
def test_an_older_api_server_is_refused_with_its_version_and_the_oldest_that_will_do(version):
    why = f"the API server is Kubernetes {version}, and 1.30 or newer is needed: upgrade the control plane first"
    assert too_old(version) == why


@pytest.mark.parametrize(
    "version", ["v1.30.0", "v1.37.2", "v2.0.0", "v1.30.5-gke.1443001", "v1.34.1+rke2r1", "", "main", "v1"]
)
def test_a_newer_one_and_one_whose_version_says_nothing_are_not(version):
    assert too_old(version) == ""


def test_the_chart_and_the_pages_name_the_same_version():
    oldest = ".".join(map(str, OLDEST))
    assert f'kubeVersion: ">={oldest}.0-0"' in (ROOT / "deploy/chart/Chart.yaml").read_text()
    assert f"Kubernetes {oldest} or newer" in (ROOT / "docs/install.md").read_text()
    assert f"| controller and Kubernetes | {oldest} or newer" in (ROOT / "docs/api-versions.md").read_text()


def test_a_version_is_read_in_one_place():
    reads = [str(path) for path in (ROOT / "remediator").rglob("*.py") if "v?([0-9]" in path.read_text()]
    assert reads == [str(ROOT / "remediator/core/kubernetes_version.py")]

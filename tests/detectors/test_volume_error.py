"""volume_error: a volume of a Pod that errs here has a Condition of its own, and the node's stays as it is."""

import json

import pytest

from tests.detectors.fixtures.filesystem_error import FINE as NODE_IS_FINE
from tests.detectors.fixtures.filesystem_error import POD
from tests.detectors.fixtures.volume_error import FINE, NONE
from tests.detectors.kernel_tree import BTIME, KernelTree

OK, FAULT, UNKNOWN = 0, 1, 2
STAGED = "/var/lib/kubelet/plugins/kubernetes.io/csi/disk.example/0f1e2d3c/globalmount"
ELSEWHERE = "/data/k8s/pods/8f3c2a10-1111-2222-3333-444455556666/volumes/kubernetes.io~csi/pv-1/mount"
ERRED = "ext4 on sde (a volume of a Pod) has met errors since boot"


@pytest.fixture
def tree(tmp_path):
    return KernelTree(tmp_path)


@pytest.mark.parametrize("point", [POD, STAGED, ELSEWHERE])
def test_one_bad_volume_is_told_of_until_it_is_gone_and_is_nothing_against_its_node(tree, point):
    tree.mount(point, "8:64", "sde")
    tree.ext4("sde")
    assert (tree.run("volume_error")[:2], tree.run("filesystem_error")[:2]) == ((OK, FINE), (OK, NODE_IS_FINE))
    tree.ext4("sde", 1, BTIME + 1030)
    assert tree.run("volume_error", 1060)[:2] == (FAULT, ERRED)
    assert tree.run("filesystem_error", 1060)[:2] == (OK, NODE_IS_FINE)
    tree.unmount("sde")
    assert tree.run("volume_error", 1120)[:2] == (OK, NONE)


def test_evidence_names_the_persistent_volume(tree):
    tree.mount(POD, "8:64", "sde")
    tree.ext4("sde")
    tree.run("volume_error")
    tree.ext4("sde", 1, BTIME + 1030)
    tree.run("volume_error", 1060)
    path = tree.state / "evidence/volume_error.json"
    kept = json.loads(path.read_text())
    assert kept["condition"] == "VolumeError"
    assert kept["filesystems"][0]["points"][0].endswith("/volumes/kubernetes.io~csi/pv-1/mount")
    assert len(path.read_bytes()) < 1200

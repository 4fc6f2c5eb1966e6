"""A container that was started before the driver: its own root has no NVML, and never will; the node's has one."""

import ctypes
import json
import shutil
import subprocess

import pytest

from tests.detectors.kernel.held import LIMIT, Held
from tests.detectors.kernel.needs import needs
from tests.detectors.node import Node
from tests.native import Script

OK, UNKNOWN = 0, 2


def own_nvml():
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


pytestmark = [*needs(), pytest.mark.skipif(own_nvml(), reason="this machine has an NVML of its own")]


@pytest.fixture
def host(tmp_path):
    """The root folder of a node with a /dev of its own, and who lives there."""
    folder = tmp_path / "host"
    (folder / "dev").mkdir(parents=True)
    held = Held("late_driver", folder, LIMIT)
    yield folder, held
    held.end()


@pytest.fixture
def node(tmp_path, host):
    """A node of two GPUs, seen from a container."""
    (tmp_path / "seen").mkdir()
    node = Node(tmp_path / "seen", gpus=2)
    (node.proc / "1").mkdir()
    (node.proc / "1/root").symlink_to(host[1].root)
    return node


def run(node, *options):
    """Run gpu_lost; the script of the library is named by its path in the node's root."""
    done = subprocess.run(
        node.command(*options),
        env={**node.environment(), "NVML_STUB": "/nvml.txt"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.strip()


def install(root, library):
    """Put the scripted library there, as packages of the driver do."""
    folder = root / "usr/lib64"
    folder.mkdir(parents=True)
    shutil.copy(library, folder / "libnvidia-ml.so.550.54.15")
    (folder / "libnvidia-ml.so.1").symlink_to("/usr/lib64/libnvidia-ml.so.550.54.15")
    Script(root / "nvml.txt").write("count 2", "log /calls")


def test_nvml_is_asked_as_soon_as_the_node_has_one_with_the_nodes_devices(node, host, nvml_library):
    folder, held = host
    assert run(node) == (UNKNOWN, "NVML cannot be asked (code 12)")
    install(folder, nvml_library)
    assert run(node) == (UNKNOWN, "NVML cannot be asked (code 12)"), "it would be asked without its devices"
    held.tell("/dev/nvidiactl")
    assert not (folder / "dev/nvidiactl").exists(), "else the way leads not through the node's mounts"
    assert run(node) == (OK, "every GPU answers")
    assert (folder / "calls").read_text().startswith("init -1\n")
    said = json.loads((node.state / "nvml.answer.json").read_text())
    assert (said["init"], said["count"], "odd" in said) == (0, 2, False)


def test_a_driver_in_a_container_has_its_own_root(node, host, nvml_library):
    folder, _ = host
    own = folder / "run/nvidia/driver"
    install(own, nvml_library)
    (own / "dev").mkdir()
    (own / "dev/nvidiactl").touch()
    for name in ("nvidia0", "nvidia1"):
        (own / "dev" / name).touch()
        (node.dev / name).unlink()
    assert run(node) == (OK, "every GPU answers")
    assert (own / "calls").read_text().startswith("init -1\n")


def test_a_driver_in_a_folder_of_its_own_is_named(node, host, nvml_library):
    folder, held = host
    install(folder / "usr/local/glibc", nvml_library)
    Script(folder / "nvml.txt").write("count 2")
    held.tell("/dev/nvidiactl")
    assert run(node) == (UNKNOWN, "NVML cannot be asked (code 12)")
    assert run(node, f"--driver-root={node.proc}/1/root/usr/local/glibc") == (OK, "every GPU answers")


def test_nvml_is_left_alone_while_no_driver_is_loaded(node, host, nvml_library):
    folder, held = host
    install(folder, nvml_library)
    held.tell("/dev/nvidiactl")
    shutil.rmtree(node.proc / "driver")
    assert run(node) == (UNKNOWN, "the driver is not loaded (yet)")
    assert not (folder / "calls").exists()


def test_where_the_child_is_at_is_told_of_a_hang_in_the_nodes_nvml(node, host, nvml_library):
    folder, held = host
    install(folder, nvml_library)
    held.tell("/dev/nvidiactl")
    Script(folder / "nvml.txt").write("count 2", "hang init")
    code, line = run(node, "--deadline=1")
    assert (code, line.endswith(" at init")) == (UNKNOWN, True), line

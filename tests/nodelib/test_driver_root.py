"""The way to the node's own NVML: which library is loaded, whose devices it is given, and when all stays as it is."""

import ctypes
import os
from pathlib import Path

import pytest

from nodelib.host.driver import CONTAINER, INSTALLER, enter, is_installing, roots

NODE = "proc/1/root"


def library(root, folder="usr/lib64"):
    """Put libnvidia-ml.so.1 there, as a link to the version, which a container would follow out of its root."""
    (root / folder).mkdir(parents=True, exist_ok=True)
    (root / folder / "libnvidia-ml.so.550.54.15").touch()
    (root / folder / "libnvidia-ml.so.1").symlink_to(f"/{folder}/libnvidia-ml.so.550.54.15")


def device(root):
    (root / "dev").mkdir(parents=True, exist_ok=True)
    (root / "dev/nvidiactl").touch()


@pytest.fixture
def steps(monkeypatch):
    """What is loaded and where we step, in this order."""
    found = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: found.append(("load", name)))
    monkeypatch.setattr(os, "chroot", lambda folder: found.append(("step", str(folder))))
    return found


@pytest.mark.parametrize(
    ("written", "runs", "works"),
    [("4242\n", True, True), ("4242\n", False, False), ("no number", True, False), (None, True, False)],
    ids=["its program runs", "it has ended", "garbage", "no driver in a container"],
)
def test_a_driver_in_a_container_is_at_work_while_its_program_runs(tmp_path, written, runs, works):
    proc = tmp_path / "proc"
    (proc / "4242").mkdir(parents=True)
    if not runs:
        (proc / "4242").rmdir()
    if written is not None:
        file = proc / "1/root" / INSTALLER
        file.parent.mkdir(parents=True)
        file.write_text(written)
    assert is_installing(proc) is works


OWN = f"{NODE}/{CONTAINER}"
# Where libraries are, where devices are, and from which root which are taken; () for none.
PLACES = {
    "a driver on the node": ((NODE,), (NODE,), (NODE, NODE)),
    "a driver in a container": ((OWN,), (OWN,), (OWN, OWN)),
    "a driver in a container, its devices on the node": ((OWN,), (NODE,), (OWN, NODE)),
    "a driver in a container, and a leftover on the node": ((OWN, NODE), (OWN, NODE), (OWN, OWN)),
    "no library": ((), (NODE,), ()),
    "no devices": ((NODE,), (), ()),
    "devices of a container that has no library": ((NODE,), (OWN,), ()),
}


@pytest.mark.parametrize(("libraries", "devices", "taken"), PLACES.values(), ids=PLACES.keys())
def test_library_and_devices_are_the_nodes_own(tmp_path, steps, libraries, devices, taken):
    for root in libraries:
        library(tmp_path / root)
    for root in devices:
        device(tmp_path / root)
    enter(roots(tmp_path / "proc", None), tmp_path / NODE)
    wanted = [("load", f"{tmp_path / root}/usr/lib64/libnvidia-ml.so.550.54.15") for root in taken[:1]]
    assert steps == [*wanted, *(("step", str(tmp_path / root)) for root in taken[1:])]


def test_a_root_that_is_named_has_the_library_and_perhaps_no_devices(tmp_path, steps):
    library(tmp_path / "glibc", "usr/lib")
    library(tmp_path / NODE)
    device(tmp_path / NODE)
    enter(roots(tmp_path / "proc", tmp_path / "glibc"), tmp_path / NODE)
    assert steps == [
        ("load", f"{tmp_path}/glibc/usr/lib/libnvidia-ml.so.550.54.15"),
        ("step", f"{tmp_path / NODE}"),
    ]


def test_on_the_node_itself_nothing_is_loaded_and_nobody_steps_anywhere(tmp_path, steps, monkeypatch):
    library(tmp_path)
    device(tmp_path)
    monkeypatch.setattr(Path, "samefile", lambda self, other: (self, other) == (tmp_path, "/"))
    enter([tmp_path], tmp_path)
    assert steps == []


@pytest.mark.parametrize("what", ["CDLL", "chroot"])
def test_where_we_may_not_all_stays_as_it_is(tmp_path, steps, monkeypatch, what):
    def refuse(_):
        raise PermissionError("no")

    library(tmp_path)
    device(tmp_path)
    monkeypatch.setattr(ctypes if what == "CDLL" else os, what, refuse)
    enter([tmp_path], tmp_path)
    assert [step for step, _ in steps] == ([] if what == "CDLL" else ["load"])

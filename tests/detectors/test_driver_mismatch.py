"""What driver_mismatch makes of the versions of module, libraries and NVML; how versions are found; garbage."""

import json
import re

import pytest
from driver_mismatch import DriverVersions, judge
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.host.child_process import ChildAnswer
from nodelib.host.driver import Module, libraries, module
from nodelib.host.gpus import Card
from tests.detectors.fixtures.driver_mismatch import LOADED, OPEN, VERSION, driver
from tests.detectors.node import Node
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = 0, 1, 2
BUILDS = {
    "550.54.15": VERSION,
    "570.86.10": OPEN,
    "470.256.02": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Thu May  2 14:37:44 UTC 2024\n",
    "1000.1": "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  {}  Release Build  (root@host)\nGCC\n",
}


@pytest.mark.parametrize(("version", "text"), BUILDS.items())
def test_the_version_of_the_module_is_read(tmp_path, version, text):
    driver(tmp_path, text=text, loaded=version)
    assert module(tmp_path / "proc").version == version


@pytest.mark.parametrize(
    "text", ["", "GCC version: 550.54.15\n", "NVRM version: \n", "NVRM version: x 550\n", "\x00\xff"]
)
def test_a_file_that_names_no_version_is_cannot_tell(tmp_path, text):
    driver(tmp_path, LOADED, text=text)
    found = module(tmp_path / "proc")
    assert (found.version, found.why) == ("", "it names none")
    assert judge(DriverVersions((), found, {"x": LOADED}, ChildAnswer({"init": 0})))[0] == UNKNOWN


def test_what_is_mounted_in_place_of_proc_is_cannot_tell(tmp_path):
    assert "is no /proc" in module(tmp_path).why


FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib64", "home/kubernetes/bin/nvidia/lib64")


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_library_is_found_where_distributions_put_it(tmp_path, folder):
    path = tmp_path / folder
    path.mkdir(parents=True)
    (path / "libnvidia-ml.so.1").symlink_to(f"/{folder}/libnvidia-ml.so.{LOADED}")
    (path / "libnvidia-ml.so.470.82.01").touch()
    assert list(libraries([tmp_path / "none", tmp_path]).values()) == [LOADED], "what the link points to, no leftover"


def test_a_library_that_is_mounted_as_a_file_is_told_by_what_lies_beside_it(tmp_path):
    path = tmp_path / "usr/lib64"
    path.mkdir(parents=True)
    for name in ("libnvidia-ml.so.1", f"libnvidia-ml.so.{LOADED}", "libnvidia-ml.so", "libnvidia-ml.a"):
        (path / name).touch()
    assert list(libraries([tmp_path]).values()) == [LOADED]
    (path / "libnvidia-ml.so.1").unlink()
    assert libraries([tmp_path]) == {}


def test_the_first_root_that_has_a_library_counts(tmp_path):
    driver(tmp_path, "570.86.10")
    (tmp_path / "usr/lib64").mkdir(parents=True)
    (tmp_path / "usr/lib64/libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.535.1.2")
    assert list(libraries([tmp_path / "driver", tmp_path]).values()) == ["570.86.10"]


def found(loaded=LOADED, versions=(), init=0, cards=1, **answer):
    listed = tuple(Card(f"0000:1{index}:00.0", "present", "nvidia") for index in range(cards))
    said = {} if init is None else {"init": init}
    return DriverVersions(listed, Module(loaded), dict(enumerate(versions)), ChildAnswer(said, **answer))


JUDGED = {
    "one version": (found(versions=[LOADED]), OK),
    "one version, and NVML hangs": (found(versions=[LOADED], init=None, silent_since="2026-01-01T00:00Z"), OK),
    "one version, and a leftover elsewhere": (found(versions=["470.1", LOADED]), OK),
    "another version": (found(versions=["570.1"]), FAULT),
    "another version, and NVML hangs": (found(versions=["570.1"], init=None, silent_since="2026-01-01T00:00Z"), FAULT),
    "two others": (found(versions=["570.1", "535.1"]), FAULT),
    "only NVML can be asked, and starts": (found(), OK),
    "only NVML can be asked, and finds another": (found(init=18), FAULT),
    "only NVML can be asked, and fails otherwise": (found(init=999), UNKNOWN),
    "only NVML can be asked, and hangs": (found(init=None, silent_since="2026-01-01T00:00Z"), UNKNOWN),
    "NVML contradicts the node": (found(versions=[LOADED], init=18), UNKNOWN),
    "no driver": (found(loaded="", init=9), UNKNOWN),
    "no driver that /proc shows": (found(loaded="", init=18), UNKNOWN),
    "no driver and no GPU": (found(loaded="", init=12, cards=0), OK),
    "a GPU that only NVML shows": (
        found(loaded="", cards=0)._replace(nvml=ChildAnswer({"init": 0, "count": 1})),
        UNKNOWN,
    ),
    "no GPU that NVML shows": (found(loaded="", cards=0)._replace(nvml=ChildAnswer({"init": 0, "count": 0})), OK),
    "no driver and no PCI": (found(loaded="", init=9)._replace(cards=None), UNKNOWN),
    "GPUs that nouveau has": (found(loaded="")._replace(cards=(Card("0000:10:00.0", "present", "nouveau"),)), UNKNOWN),
    "GPUs of virtual machines": (found(loaded="")._replace(cards=(Card("0000:10:00.0", "present", "vfio-pci"),)), OK),
}


@pytest.mark.parametrize(("seen", "verdict"), JUDGED.values(), ids=JUDGED.keys())
def test_versions_decide(seen, verdict):
    assert judge(seen)[0] == verdict


versions = st.from_regex(re.compile(r"[0-9]{3}\.[0-9]{1,3}(\.[0-9]{2})?", re.ASCII), fullmatch=True)


@given(versions, versions, st.sampled_from([0, 9, 18]))
def test_versions_that_differ_are_never_fine(loaded, other, init):
    verdict, line = judge(found(loaded=loaded, versions=[other], init=init))
    assert (verdict == OK) == (loaded == other and init != 18)
    assert line


@settings(max_examples=examples(100))
@given(st.binary(max_size=80) | st.binary(max_size=40).map(lambda some: b"NVRM version: " + some))
def test_garbage_in_place_of_the_version_is_never_health(tmp_path_factory, content):
    proc = tmp_path_factory.mktemp("proc")
    (proc / "driver/nvidia").mkdir(parents=True)
    (proc / "driver/nvidia/version").write_bytes(content)
    read = module(proc)
    assert bool(read.why) != bool(read.version)
    assert judge(DriverVersions((), read, {"x": "none"}, ChildAnswer({"init": 0})))[0] != OK


def test_evidence_is_kept_and_explained(tmp_path, nvml_library):
    node = Node(tmp_path, nvml_library, gpus=1, detector="driver_mismatch")
    (node.proc / "driver/nvidia/version").write_text(VERSION.format(LOADED))
    folder = tmp_path / "root/usr/lib64"
    folder.mkdir(parents=True)
    (folder / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.570.86.10")
    node.orders("init 18", gpus=1)
    assert node.run(f"--driver-root={tmp_path / 'root'}").code == FAULT
    ran = node.run(f"--driver-root={tmp_path / 'root'}", "--explain")
    assert ran.code == FAULT
    assert "Kernel Module 550.54.15" in " ".join(ran.line.split())
    kept = json.loads((node.state / "evidence/driver_mismatch.json").read_text())
    assert kept["libraries"] == {f"{folder}/libnvidia-ml.so.570.86.10": "570.86.10"}
    assert kept["nvml"] == 18

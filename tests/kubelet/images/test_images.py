"""A tar holds what the Dockerfile of its image says, from this machine's own files, and its bytes repeat."""

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.kubelet.images import build, machine
from tests.kubelet.images.bytecode import compiled
from tests.kubelet.images.dockerfile import ROOT, Image, image, pins, read
from tests.kubelet.images.oci import File, Run, layer, write

LAYER_OF_OPERATIONS = """
import hashlib, sys
from tests.kubelet.images.bytecode import compiled
from tests.kubelet.images.dockerfile import ROOT
from tests.kubelet.images.machine import tree
from tests.kubelet.images.oci import layer
files = tree(ROOT / "operations", "/o")
known = [compile(file.data, "other", "exec") for file in files if sys.argv[1:] and file.path.endswith(".py")]
print(hashlib.sha256(layer(compiled(files))).hexdigest())
"""


def test_a_dockerfile_is_read_as_docker_reads_it():
    found = image("node")
    assert found == Image(
        name="node",
        copy={name: f"/opt/remediator/{name}" for name in ("nodelib", "detectors", "operations", "watchdog")},
        programs=("node-problem-detector",),
        packages=found.packages,
        user="0:0",
        command=("node-problem-detector",),
    )
    assert set(found.packages) == {"nvidia-ml-py"}
    assert {"aiohttp", "kubernetes", "msgspec"} <= set(image("controller").packages)
    assert image("controller").user == "65532:65532"


@pytest.mark.parametrize("line", ["ENV A=b", "RUN apt-get install x", "COPY a b c", "COPY --from=x /y /bin/y"])
def test_a_line_that_a_tar_cannot_follow_is_an_error(line):
    with pytest.raises(ValueError, match=re.escape(f"x.Dockerfile: {line}")):
        read("x", f"# about\nFROM a\nCOPY b c\n{line}\nUSER 0:0\nCMD []\n")


def test_a_package_for_another_system_is_not_wanted():
    text = "a==1 ; sys_platform == 'other' \\\n    --hash=sha256:0\nb==2 \\\n    --hash=sha256:1\n"
    assert pins(text) == {"b": "2"}


def test_a_package_of_another_version_is_refused_with_the_remedy():
    with pytest.raises(
        machine.Unbuildable, match=r"msgspec is \S+ here and 0.0.1 in requirements.txt: run `make setup`"
    ):
        machine.packages({"msgspec": "0.0.1"})
    with pytest.raises(machine.Unbuildable, match="no-such-thing 1 is not installed here"):
        machine.packages({"no-such-thing": "1"})


@pytest.mark.slow
def test_the_same_files_are_the_same_bytes_in_every_process():
    def digest(seed, *more):
        command = [sys.executable, "-c", LAYER_OF_OPERATIONS, *more]
        env = {"PYTHONHASHSEED": seed}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env, cwd=ROOT).stdout

    assert digest("1") == digest("2", "in a process that knows the same names already")


def test_a_layer_has_the_folders_of_its_files_and_belongs_to_root():
    made = layer([File("/opt/a/run", b"x", 0o755), File("/etc/b", b"")], {"/tmp": 0o1777})
    with tarfile.open(fileobj=io.BytesIO(made)) as tar:
        found = {info.name: (info.mode, info.uid, info.gid, info.mtime, info.isdir()) for info in tar}
    folder = (0o755, 0, 0, 0, True)
    assert found == {
        "etc": folder,
        "etc/b": (0o644, 0, 0, 0, False),
        "opt": folder,
        "opt/a": folder,
        "opt/a/run": (0o755, 0, 0, 0, False),
        "tmp": (0o1777, 0, 0, 0, True),
    }


def test_a_program_starts_from_its_bytecode_without_a_look_at_its_source(tmp_path):
    files = compiled([File("/one.py", b"print('compiled')"), File("/two.py", b"import one")])
    with tarfile.open(fileobj=io.BytesIO(layer(files))) as tar:
        tar.extractall(tmp_path, filter="data")
    (tmp_path / "one.py").write_text("print('source')")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import two"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "compiled\n"


def test_every_digest_in_a_tar_is_that_of_its_blob_and_a_runtime_finds_it_by_name(tmp_path):
    names = {
        "docker.io/remediator/node:dev": Run(["a"], "0:0", {"A": "b"}),
        "docker.io/remediator/x:1": Run([], "1:1", {}),
    }
    layers = [layer([File("/a", b"a")]), layer([File("/b", b"b")])]
    digest = write(tmp_path / "dist" / "one.tar", names, layers)
    with tarfile.open(tmp_path / "dist" / "one.tar") as tar:
        blobs = {info.name: tar.extractfile(info).read() for info in tar if info.isfile()}
    index = json.loads(blobs["index.json"])
    assert digest == f"sha256:{hashlib.sha256(blobs['index.json']).hexdigest()}"
    for name, data in blobs.items():
        if name.startswith("blobs/sha256/"):
            assert name == f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"
    assert [one["annotations"]["io.containerd.image.name"] for one in index["manifests"]] == list(names)

    def blob(described):
        data = blobs[f"blobs/{described['digest'].replace(':', '/')}"]
        assert len(data) == described["size"]
        return data

    manifest = json.loads(blob(index["manifests"][0]))
    assert [blob(one) for one in manifest["layers"]] == layers
    config = json.loads(blob(manifest["config"]))
    assert config["config"] == {"Cmd": ["a"], "User": "0:0", "Env": ["A=b"]}
    assert config["rootfs"]["diff_ids"] == [one["digest"] for one in manifest["layers"]]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a tar is made of a Linux machine's own files")
def test_the_base_has_python_its_library_and_all_that_they_load():
    files = [*machine.python(), *machine.tools(build.TOOLS)]
    loaded = machine.libraries(files)
    paths = {file.path for file in (*files, *loaded)}
    assert {"/usr/local/bin/python3", "/usr/bin/env", "/usr/bin/nsenter", "/bin/sh"} <= paths
    assert any(path.endswith("/argparse.py") for path in paths)
    assert any(re.search(r"/libc\.so", path) for path in paths)
    assert not any(re.search(r"/(test|idlelib|__pycache__|site-packages)/", path) for path in paths)
    homes = {str(Path(file.path).parent) for file in loaded}
    assert all(home.startswith(("/lib", "/usr/lib")) for home in homes), "where a loader looks without being told"


def test_a_container_finds_its_programs_and_packages():
    assert build.run(image("controller")).env["PYTHONPATH"].endswith("/site-packages")
    path = build.run(image("node")).env["PATH"].split(":")
    assert {"/usr/local/bin", "/usr/sbin", "/sbin"} <= set(path), "of the node, too: a host program runs modprobe there"

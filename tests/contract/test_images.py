"""The images: what is committed is what the table says, nothing that a manifest names is missing, and bytes repeat."""

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from deploy.images import build, dockerfile, machine, requirements
from deploy.images.bytecode import compiled
from deploy.images.oci import File, Run, layer, write
from deploy.images.table import HERE, REQUIREMENTS, ROOT, read, shipped

BASE, IMAGES = shipped()
NODE, CONTROLLER = IMAGES
PINNED = REQUIREMENTS.read_text()
LAYER_OF_OPERATIONS = """
import hashlib, sys
from deploy.images.bytecode import compiled
from deploy.images.machine import tree
from deploy.images.oci import layer
from deploy.images.table import ROOT
files = tree(ROOT / "operations", "/o")
known = [compile(file.data, "other", "exec") for file in files if sys.argv[1:] and file.path.endswith(".py")]
print(hashlib.sha256(layer(compiled(files))).hexdigest())
"""


def named(image):
    return image.name


@pytest.mark.parametrize("image", IMAGES, ids=named)
def test_what_is_committed_is_what_the_table_says(image):
    for name, text in dockerfile.files(BASE, image, PINNED).items():
        assert (HERE / name).read_text() == text, f"{name}: run `python -m deploy.images --text`"


def test_nothing_is_committed_that_the_table_does_not_make():
    wanted = {name for image in IMAGES for name in dockerfile.files(BASE, image, PINNED)}
    found = {path.name for pattern in ("*.Dockerfile*", "*.txt") for path in HERE.glob(pattern)}
    assert found == wanted


@pytest.mark.parametrize("image", IMAGES, ids=named)
def test_docker_is_sent_all_that_is_copied_and_no_name_has_a_host(image):
    text, ignored = dockerfile.dockerfile(BASE, image), dockerfile.ignore(image).splitlines()
    sent = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE)
    assert sorted(copied) == sorted(sent)
    assert all((ROOT / one).exists() for one in copied)
    assert ignored[0] == "*"
    names = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert names
    assert not any("." in name.partition("/")[0] for name in names if "/" in name)


def test_the_node_image_has_every_program_that_a_manifest_names():
    inside = {
        path for source, target in NODE.copy.items() for path in (f.path for f in machine.tree(ROOT / source, target))
    }
    wanted = {
        word
        for path in (ROOT / "operations").glob("*.yaml")
        for word in re.findall(r"/opt/[\w./]+\.py", path.read_text())
    }
    rules = [rule for path in (ROOT / "deploy/npd").glob("*.json") for rule in json.loads(path.read_text())["rules"]]
    assert len(rules) >= 6
    assert wanted | {rule["path"] for rule in rules} <= inside
    daemon = next(yaml.safe_load_all((ROOT / "deploy/node-problem-detector.yaml").read_text()))
    (container,) = daemon["spec"]["template"]["spec"]["containers"]
    assert container["command"] == list(NODE.command) == list(NODE.programs)


def test_the_controller_image_has_the_command_that_its_deployment_runs():
    deployment = next(yaml.safe_load_all((ROOT / "deploy/controller.yaml").read_text()))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert f"/usr/local/bin/{container['command'][0]}" in CONTROLLER.copy.values()
    assert container["command"][: len(CONTROLLER.command)] == list(CONTROLLER.command)
    uid = deployment["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert CONTROLLER.user.split(":")[0] == str(uid)


def test_the_packages_of_an_image_are_those_of_the_hashed_requirements():
    assert set(requirements.pins(PINNED, NODE.packages)) == {"nvidia-ml-py"}
    everything = requirements.pins(PINNED)
    assert {"aiohttp", "kubernetes", "msgspec", "nvidia-ml-py"} <= set(everything)
    other = "a==1 ; sys_platform == 'other' \\\n    --hash=sha256:0\nb==2 \\\n    --hash=sha256:1\n"
    assert requirements.pins(other) == {"b": "2"}
    kept = requirements.only(PINNED, NODE.packages)
    assert kept.startswith("nvidia-ml-py==")
    assert kept.count("--hash=sha256:") >= 1
    assert kept.count("==") == 1


def test_a_package_of_another_version_is_refused_with_the_remedy():
    with pytest.raises(
        machine.Unbuildable, match=r"msgspec is \S+ here and 0.0.1 in requirements.txt: run `make setup`"
    ):
        machine.packages({"msgspec": "0.0.1"})
    with pytest.raises(machine.Unbuildable, match="no-such-thing 1 is not installed here"):
        machine.packages({"no-such-thing": "1"})


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


@pytest.mark.skipif(sys.platform != "linux", reason="a tar is made of a Linux machine's own files")
def test_the_base_has_python_its_library_and_all_that_they_load():
    files = [*machine.python(), *machine.tools(BASE.tools)]
    loaded = machine.libraries(files)
    paths = {file.path for file in (*files, *loaded)}
    assert {"/usr/local/bin/python3", "/usr/bin/env", "/usr/bin/nsenter", "/bin/sh"} <= paths
    assert any(path.endswith("/argparse.py") for path in paths)
    assert any(re.search(r"/libc\.so", path) for path in paths)
    assert not any(re.search(r"/(test|idlelib|__pycache__|site-packages)/", path) for path in paths)
    homes = {str(Path(file.path).parent) for file in loaded}
    assert all(home.startswith(("/lib", "/usr/lib")) for home in homes), "where a loader looks without being told"


def test_a_mistyped_row_of_the_table_is_an_error():
    with pytest.raises(TypeError, match="comand"):
        read('[base]\nfrom="a"\ngo="b"\ntools=[]\n[x]\nabout=""\ncomand=[]\nuser=""\ncopy={}')


def test_a_container_finds_its_programs_and_packages():
    assert build.run(CONTROLLER).env["PYTHONPATH"].endswith("/site-packages")
    path = build.run(NODE).env["PATH"].split(":")
    assert {"/usr/local/bin", "/usr/sbin", "/sbin"} <= set(path), "of the node, too: a host program runs modprobe there"

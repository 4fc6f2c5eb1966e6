"""How detectors come to ask as the kubelet of their node, and that nobody else is taken for it."""

import base64
import json
from pathlib import Path

import pytest

from nodelib.k8s.kubelet_config import KubeletConfig, Unusable, find, read
from tests.cluster.keys import Keys
from tests.detectors.proc_tree import pod_cgroup

KUBEADM = """apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority-data: {authority}
    server: https://api.example:6443
  name: default-cluster
contexts:
- context: {{cluster: default-cluster, namespace: default, user: default-auth}}
  name: default-context
current-context: default-context
users:
- name: default-auth
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
"""
EKS = """clusters: [{cluster: {certificate-authority: /etc/kubernetes/pki/ca.crt, server: https://api.example}}]
users:
- name: kubelet
  user:
    exec: {command: aws, args: [eks, get-token]}
"""


class Files:
    """The files of a node, and its /proc."""

    def __init__(self, folder: Path) -> None:
        self.root, self.proc = folder / "root", folder / "proc"
        self.root.mkdir()
        (self.proc / "1").mkdir(parents=True)
        (self.proc / "1/root").symlink_to(self.root)

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def process(
        self, pid: int, *words: str, cgroup: str = "0::/system.slice/kubelet.service\n", root: str = ""
    ) -> None:
        folder = self.proc / str(pid)
        folder.mkdir()
        (folder / "comm").write_text("kubelet\n")
        (folder / "cmdline").write_bytes("\0".join([*words, ""]).encode())
        (folder / "cgroup").write_text(cgroup)
        (folder / "root").symlink_to(root or self.root)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("/usr/bin/kubelet", "--v=2", "--kubeconfig=/etc/mine.conf"), "/etc/mine.conf"),
        (("kubelet", "-kubeconfig", "/etc/mine.conf"), "/etc/mine.conf"),
        (("kubelet", "--bootstrap-kubeconfig=/etc/b.conf", "--kubeconfig=/etc/mine.conf"), "/etc/mine.conf"),
        (("kubelet", "--kubeconfig=relative.conf"), "/var/lib/kubelet/kubeconfig"),
        (("kubelet",), "/var/lib/kubelet/kubeconfig"),
    ],
)
def test_the_file_is_the_one_that_the_kubelet_was_started_with_else_the_usual_one(
    files: Files, words: tuple[str, ...], path: str
) -> None:
    files.write("var/lib/kubelet/kubeconfig", "")
    files.process(700, *words)
    assert find(files.proc, files.root) == path


@pytest.mark.parametrize("theirs", ["cgroup", "root"])
def test_a_program_in_a_pod_that_calls_itself_kubelet_is_not_believed(
    files: Files, tmp_path: Path, theirs: str
) -> None:
    """Else any Pod could name an API server that says that the Pods of this node are gone."""
    (tmp_path / "container").mkdir()
    told = {"cgroup": {"cgroup": pod_cgroup()}, "root": {"root": str(tmp_path / "container")}}[theirs]
    files.process(700, "kubelet", "--kubeconfig=/tmp/mine", **told)
    assert find(files.proc, files.root) == ""


def test_a_node_without_a_kubelet_has_no_file(files: Files, tmp_path: Path) -> None:
    assert find(files.proc, files.root) == ""
    (tmp_path / "empty").mkdir()
    assert find(tmp_path / "empty", tmp_path / "empty") == ""


def test_kubeadms_file_names_one_file_for_certificate_and_key(files: Files) -> None:
    files.write("etc/kubernetes/kubelet.conf", KUBEADM.format(authority=base64.b64encode(b"CA").decode()))
    files.write("var/lib/kubelet/pki/kubelet-client-2026.pem", "CERTIFICATE AND KEY")
    (files.root / "var/lib/kubelet/pki/kubelet-client-current.pem").symlink_to(
        "/var/lib/kubelet/pki/kubelet-client-2026.pem"
    )
    path = find(files.proc, files.root)
    assert path == "/etc/kubernetes/kubelet.conf"
    assert read(files.root, path) == KubeletConfig("api.example", 6443, "CA", "CERTIFICATE AND KEY")


@pytest.mark.parametrize(
    ("server", "host", "port"),
    [
        ("https://10.0.0.1:6443", "10.0.0.1", 6443),
        ("https://[fd00::1]:443/", "fd00::1", 443),
        ("https://a.b", "a.b", 443),
    ],
)
def test_json_with_everything_in_it_is_read_too(files: Files, server: str, host: str, port: int) -> None:
    def data(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    user = {"client-certificate-data": data("CERT"), "client-key-data": data("KEY")}
    cluster = {"server": server, "certificate-authority-data": data("CA")}
    config = {"clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}]}
    files.write("etc/k.json", json.dumps(config))
    assert read(files.root, "/etc/k.json") == KubeletConfig(host, port, "CA", "CERT\nKEY")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (EKS, "has no client-certificate"),
        ("", "names no server"),
        ("server: http://clear.text", "names no server"),
        (KUBEADM.format(authority="QQ==") + EKS, "more than one cluster"),
    ],
)
def test_a_file_that_holds_no_certificate_is_refused_in_words(files: Files, text: str, words: str) -> None:
    files.write("etc/kubernetes/pki/ca.crt", "CA")
    files.write("etc/k.conf", text)
    with pytest.raises(Unusable, match=words):
        read(files.root, "/etc/k.conf")


def test_a_real_certificate_and_key_make_a_context_and_leave_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    kubeconfig = Keys(folder).kubeconfig("https://127.0.0.1:6443", "system:node:a", ["system:nodes"])
    assert read(Path("/"), str(kubeconfig)).context().get_ca_certs()

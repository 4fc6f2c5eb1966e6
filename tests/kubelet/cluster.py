"""Two real nodes of one control plane, to which all that is shipped is applied but the controller's Deployment."""

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from deploy.images.programs import binary
from tests.kubelet.images import build
from tests.kubelet.images.dockerfile import ROOT, image
from tests.kubelet.images.oci import Run
from tests.kubelet.node import PAUSE, Node
from tests.kubelet.plane import NodePlane

DEPLOY = ROOT / "deploy"
UNREACHED = "ValidatingWebhookConfiguration"
STALE = "detector-stale.json"
NAMES = ("real-1", "real-2")
TARGET, OTHER = NAMES
SLEEP = Run(("python3", "-I", "-S", "-c", "import signal; signal.pause()"), "65535:65535", build.ENVIRONMENT)


def sooner(monitor: dict[str, Any]) -> dict[str, Any]:
    """A monitor that runs every five seconds, for once a minute."""
    assert monitor["pluginConfig"]["invoke_interval"] == "60s"
    return monitor | {"pluginConfig": monitor["pluginConfig"] | {"invoke_interval": "5s"}}


class Cluster:
    """`with Cluster(folder, path)`: the API server has the manifests, and two nodes are up."""

    def __init__(self, folder: Path, path: str) -> None:
        self.folder = folder
        self.nodes: dict[str, Node] = {}
        self._path = path
        self._ends = ExitStack()
        self._plane = NodePlane(folder / "plane")

    def __enter__(self) -> "Cluster":
        try:
            self._start()
        except BaseException:
            self._ends.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    @property
    def kubeconfig(self) -> Path:
        """An administrator's."""
        return self._plane.kubeconfig

    @property
    def server(self) -> tuple[str, Path]:
        """The URL of the API server, and the certificate that it is known by."""
        return self._plane.url, self._plane.ca_file

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints. Raises RuntimeError with what it says where it fails."""
        command = [str(binary("kubectl")), "--kubeconfig", str(self.kubeconfig), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, documents: Sequence[dict[str, Any]]) -> None:
        """Create or change objects, held to every field."""
        text = yaml.safe_dump_all(documents)
        self.kubectl("apply", "--validate=strict", "-f", "-", stdin=text)

    def shipped(self) -> list[dict[str, Any]]:
        """The objects that `kubectl apply -k deploy` creates, with detectors that are heard of every few seconds.

        Without the webhook: this API server, outside of all nodes, reaches no Service.
        As often is looked for one that has stopped: until that was done after a boot, no fault starts anything.
        """
        slow, fast = (f"--k8s-exporter-heartbeat-period={period}" for period in ("5m", "5s"))
        text = self.kubectl("kustomize", str(DEPLOY))
        assert text.count(slow) == 1
        objects = [one for one in yaml.safe_load_all(text.replace(slow, fast)) if one and one["kind"] != UNREACHED]
        (files,) = (one["data"] for one in objects if STALE in one.get("data", ()))
        files[STALE] = json.dumps(sooner(json.loads(files[STALE])))
        return objects

    def give(self, name: str) -> None:
        """Import one image on both nodes, under the tag that the manifests ask for."""
        tar = self._tar(name)
        with ThreadPoolExecutor() as each:
            list(each.map(lambda node: node.import_images(tar), self.nodes.values()))

    def another(self, name: str, folder: Path) -> Node:
        """One more node, to be entered."""
        return Node(name, len(self.nodes) + 1, folder, self._plane, self._path, [self.folder / "node.tar"])

    def ready(self, *names: str) -> None:
        """Wait until these nodes are."""
        for state in ("create", "condition=Ready"):
            self.kubectl("wait", "node", *names, f"--for={state}", "--timeout=60s")

    def _start(self) -> None:
        self._tar("node")
        (self.folder / "plane").mkdir(parents=True)
        self._ends.enter_context(self._plane)
        with ThreadPoolExecutor() as aside:
            manifests = aside.submit(self._apply)
            # Here and not aside: the kernel ends children of a thread with the thread.
            for name in NAMES:
                self.nodes[name] = self._ends.enter_context(self.another(name, self.folder / name))
            manifests.result()
        self.ready(*NAMES)

    def _apply(self) -> None:
        self.kubectl("apply", "-k", str(DEPLOY / "crds"))
        ours = ("crd", "-l", "app.kubernetes.io/name=remediator")
        self.kubectl("wait", "--for=condition=Established", *ours, "--timeout=30s")
        self.apply([one for one in self.shipped() if one["kind"] != "Deployment"])

    def _tar(self, name: str) -> Path:
        made = image(name)
        tags = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["images"]
        (tag,) = [entry["newTag"] for entry in tags if entry["name"] == made.repository]
        path = self.folder / f"{name}.tar"
        build.tar(made, path, {f"{made.repository}:{tag}": build.run(made), PAUSE: SLEEP})
        return path

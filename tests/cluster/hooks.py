"""Jobs and Pods of Helm's hooks, played: no kubelet runs beside this API server."""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from deploy.chart import generate
from deploy.generated import write
from deploy.images.programs import binary
from remediator.core.names import SYSTEM_NAMESPACE
from remediator_sim.kubeconfig import write_kubeconfig
from tests.cluster.control_plane import ControlPlane

PATHS = {
    "job": f"/apis/batch/v1/namespaces/{SYSTEM_NAMESPACE}/jobs",
    "pod": f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods",
}


def run(*command: object, stdin: str | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def written_chart(folder: Path) -> Path:
    """The chart as `make chart` writes it."""
    for name, text in generate.files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@contextmanager
def playing(folder: Path) -> Iterator["Jobs"]:
    """A real API server, on which Jobs are played, with a namespace for the release."""
    with ControlPlane(controllers=False, scheduler=False, kwok=False) as plane:
        played = Jobs(plane, folder)
        played.kubectl("create", "namespace", SYSTEM_NAMESPACE)
        played.kubectl("create", "serviceaccount", "default", "-n", SYSTEM_NAMESPACE)
        played.start()
        try:
            yield played
        finally:
            played.stop()


class Jobs(threading.Thread):
    """Plays the Jobs of hooks until it is stopped: what each printed, in order."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        super().__init__(daemon=True)
        self.plane, self.folder = plane, folder
        self.printed: list[tuple[str, str]] = []
        self._stopped, self._played = threading.Event(), set[str]()

    def run(self) -> None:
        while not self._stopped.wait(0.2):
            for kind, path in PATHS.items():
                for each in self._listed(path):
                    if each["metadata"]["uid"] not in self._played:
                        self._played.add(each["metadata"]["uid"])
                        self._play(kind, each)

    def _listed(self, path: str) -> list[dict[str, Any]]:
        """What is there; of a server that is too busy to answer, nothing yet."""
        with suppress(OSError):
            found: list[dict[str, Any]] = self.plane.read(path)["items"]
            return found
        return []

    def stop(self) -> None:
        self._stopped.set()
        self.join(60)

    def kubectl(self, *words: object, stdin: str | None = None) -> str:
        return run(binary("kubectl"), "--kubeconfig", self.plane.kubeconfig, *words, stdin=stdin)

    def kubeconfig_of(self, account: str) -> Path:
        """With a token of this service account."""
        token = self.kubectl("create", "token", account, "-n", SYSTEM_NAMESPACE).strip()
        return write_kubeconfig(self.folder, account, self.plane.url, token, self.plane.ca_file)

    def _play(self, kind: str, each: dict[str, Any]) -> None:
        """A Job by its Pod, or a Pod: the command, with the rights of its account, and then its end."""
        name, is_pod = each["metadata"]["name"], kind == "pod"
        spec = each["spec"] if is_pod else each["spec"]["template"]["spec"]
        kubeconfig = self.kubeconfig_of(spec["serviceAccountName"])
        (container,) = spec["containers"]
        command = [self._mounted(word) for word in container["command"][1:]]
        words = [sys.executable, "-m", "remediator", *command, "--kubeconfig", str(kubeconfig)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        self.printed.append((name, done.stderr if is_pod else done.stdout + done.stderr))
        ended = pod_ended(done.returncode) if is_pod else job_ended(done.returncode)
        self.kubectl(
            *("patch", kind, name, "-n", SYSTEM_NAMESPACE, "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": ended})),
        )

    def _mounted(self, word: str) -> str:
        """A folder of a ConfigMap, as a kubelet writes it."""
        if word != "/etc/remediator/shipped":
            return word
        shipped = json.loads(
            self.kubectl("get", "configmap", "remediator-shipped", "-n", SYSTEM_NAMESPACE, "-o", "json")
        )
        folder = self.folder / "shipped"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write({folder / name: text for name, text in shipped["data"].items()})
        return str(folder)


def job_ended(code: int) -> dict[str, Any]:
    at = "2026-01-01T00:00:00Z"
    words = ("FailureTarget", "Failed") if code else ("SuccessCriteriaMet", "Complete")
    conditions = [{"type": word, "status": "True", "lastTransitionTime": at, "reason": "Played"} for word in words]
    times = {"startTime": at} if code else {"startTime": at, "completionTime": at}
    return {**times, "conditions": conditions, "failed" if code else "succeeded": 1}


def pod_ended(code: int) -> dict[str, Any]:
    return {"phase": "Failed" if code else "Succeeded"}

"""Both containers of a watchdog as processes, on a real control plane whose scheduler sees their orders, too."""

import json
import os
import subprocess
import sys

import pytest

from remediator.core import names
from remediator.core.template import RunOn
from remediator.kube.api import encode
from tests.builders import a_template, minutes
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import gpu_node
from tests.cluster.rights.granted import WATCHDOG, unused
from tests.contract.test_manifests import ROOT
from tests.harness.objects import BOOT
from tests.operations.scripted import Node
from tests.operations.test_elsewhere_for_real import CONTROLLER, Cluster
from tests.watchdog.script import QUICK, WORKS, restarts

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
SPACE = ("-n", names.OPERATIONS_NAMESPACE)


def an_order(cluster, node):
    """An order as the controller makes it, for the operation that holds the node; its name."""
    attempt = cluster.hold(node)
    env = {"NODE_NAME": node, "OPERATION": "restart-kubelet", "ATTEMPT_ID": attempt, "EXPECTED_BOOT_ID": BOOT}
    env["PARAMETERS"] = json.dumps({**QUICK, "caseUID": "case-1"})
    pod = cluster.read("nodeoperationtemplates", "restart-kubelet")["spec"]["podTemplate"]
    template = a_template("restart-kubelet", run_on=RunOn.WATCHDOG, pod=pod)
    body = encode.pod(template, f"{node}-order", node, labels={}, env=env, deadline=minutes(8))
    cluster("create", CONTROLLER, *SPACE, "-f", "-", stdin=body)
    return f"{node}-order"


class Watchdog:
    """The two containers of one node, with the token of its Pod, and a systemctl that answers by a script."""

    def __init__(self, cluster, node, folder):
        self.host = Node(folder, "restart_service")
        self.host.answers(*WORKS)
        self.tokens = folder / "token"
        for name in ("token", "of-orders", "of-answers"):
            (folder / name).mkdir()
        labels = "--selector=app.kubernetes.io/component=watchdog"
        where = ("pods", "-n", names.SYSTEM_NAMESPACE, labels, f"--field-selector=spec.nodeName={node}")
        (pod,) = cluster.wait_for(lambda: cluster.read(*where)["items"])
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod['metadata']['name']}")
        token = cluster("create", "token", "remediator-watchdog", "-n", names.SYSTEM_NAMESPACE, *bound)
        (self.tokens / "token").write_text(token)
        (self.tokens / "ca.crt").write_bytes(cluster.plane.ca_file.read_bytes())
        (self.tokens / "namespace").write_text(names.SYSTEM_NAMESPACE)
        host, port = cluster.plane.url.removeprefix("https://").split(":")
        between = {"ORDERS": str(folder / "of-orders"), "ANSWERS": str(folder / "of-answers")}
        self.log = folder / "take-orders.log"
        api = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "TOKEN_DIR": str(self.tokens)}
        self.running = [
            self._start("take_orders", {**between, **api, "NODE_NAME": node}),
            self._start("carry_out", {**between, "HOST_ROOT": str(self.host.root)}),
        ]

    def _start(self, name, variables):
        path = self.host.program.variables["PATH"] if name == "carry_out" else os.environ["PATH"]
        command = [sys.executable, "-I", "-S", "-B", str(ROOT / "watchdog" / f"{name}.py")]
        with self.log.open("a") as log:
            return subprocess.Popen(command, env={"PATH": path, **variables}, stdout=log, stderr=log)

    def stop(self):
        for process in self.running:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster():
    """A control plane with its scheduler and controllers, our kinds and the watchdog, and two nodes that KWOK plays."""
    with ControlPlane(audit=True) as plane:
        cluster = Cluster(plane)
        cluster("apply", "-k", str(ROOT / "deploy/crds"))
        cluster("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/name=remediator")
        for name in ("namespaces.yaml", "rbac.yaml", "admission"):
            cluster("apply", "-f", str(ROOT / "deploy" / name))
        cluster("apply", "-k", str(ROOT / "deploy/watchdog"))
        for index in (1, 2):
            cluster("create", "-f", "-", stdin=gpu_node(index))
        cluster("wait", "--for=condition=Ready", "node", "gpu-1", "gpu-2", "--timeout=60s")
        yield cluster


def test_an_order_is_carried_out_on_its_node_once_and_nothing_else_starts_it(cluster, tmp_path):
    watchdog = Watchdog(cluster, "gpu-1", tmp_path)
    try:
        others = an_order(cluster, "gpu-2")
        name = an_order(cluster, "gpu-1")

        def ended():
            found = cluster.read("pod", name, *SPACE)
            return found["status"]["phase"] in ("Succeeded", "Failed") and found

        pod = cluster.wait_for(ended, 120)
        (status,) = pod["status"]["containerStatuses"]
        end = status["state"]["terminated"]
        assert end["message"] == "restarted kubelet, which was active; it is active and healthy"
        assert (pod["status"]["phase"], end["exitCode"]) == ("Succeeded", 0)
        assert "nodeName" not in pod["spec"]
        assert restarts(watchdog.host) == ["kubelet.service"]
        other = cluster.read("pod", others, *SPACE)
        assert (other["status"]["phase"], other["spec"].get("nodeName")) == ("Pending", None)
        cluster.wait_for(lambda: not unused("remediator-watchdog", cluster.plane.audited(), WATCHDOG))
        (watchdog.tokens / "token").write_text("a-token-that-has-ended")
        cluster("delete", "pod", name, *SPACE, "--wait=false")
        cluster.wait_for(lambda: "the kubelet has not renewed it" in watchdog.log.read_text())
    finally:
        watchdog.stop()
        print(watchdog.log.read_text())

"""Operations that run elsewhere, each with its own account's token and rights, on a real control plane."""

import json
import subprocess
import time

import pytest

from deploy.images.programs import binary
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import gpu_node
from tests.contract.test_manifests import ROOT
from tests.harness.objects import BOOT
from tests.operations.conftest import Program
from tests.operations.fake_bmc import FakeBmc

pytestmark = pytest.mark.cluster

PLUGIN = "nvidia-device-plugin-daemonset"


class Cluster:
    """kubectl as administrator, and programs as the accounts that they have."""

    def __init__(self, plane):
        self.plane = plane

    def __call__(self, *args, stdin=None):
        command = [str(binary("kubectl")), "--kubeconfig", str(self.plane.kubeconfig), *args]
        text = None if stdin is None else json.dumps(stdin)
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout

    def read(self, *args):
        return json.loads(self("get", *args, "-o", "json"))

    def wait_for(self, what, seconds=60):
        until = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < until
            time.sleep(0.1)
        return found

    def hold(self, node):
        """Let case-1 hold a node, and make an operation of it; the operation's name."""
        self("taint", "node", node, "remediator.dev/case=case-1:PreferNoSchedule")
        self("cordon", node)
        self("annotate", "node", node, "remediator.dev/cordoned-by=case-1")
        uid = self.read("node", node)["metadata"]["uid"]
        spec = {"nodeName": node, "nodeUID": uid, "caseUID": "case-1", "templateName": "any"}
        operation = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeOperation", "spec": spec}
        self("create", "-f", "-", stdin={**operation, "metadata": {"name": f"op-{node}"}})
        return f"op-{node}"

    def program(self, folder, name, node, **variables):
        """Run a program as its account, with nothing but its token."""
        tokens = folder / f"{name}-token"
        if not tokens.exists():
            tokens.mkdir()
            account = f"remediator-{name.replace('_', '-')}"
            (tokens / "token").write_text(self("create", "token", account, "-n", "remediator-operations"))
            (tokens / "ca.crt").write_bytes(self.plane.ca_file.read_bytes())
            (tokens / "namespace").write_text("remediator-operations")
        program = Program(folder, name)
        host, port = self.plane.url.removeprefix("https://").split(":")
        program.variables |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        program.variables |= {"TOKEN_DIR": str(tokens), "NODE_NAME": node, "ATTEMPT_ID": f"op-{node}", **variables}
        return program


@pytest.fixture(scope="module")
def cluster():
    """A control plane with its controllers, our kinds and accounts, and two nodes that KWOK plays."""
    with ControlPlane() as plane:
        cluster = Cluster(plane)
        cluster("apply", "-k", str(ROOT / "deploy/crds"))
        cluster("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/name=remediator")
        for name in ("namespaces", "rbac", "admission"):
            cluster("apply", "-f", str(ROOT / f"deploy/{name}.yaml"))
        for index in (1, 2):
            cluster("create", "-f", "-", stdin=gpu_node(index))
        cluster("wait", "--for=condition=Ready", "node", "gpu-1", "gpu-2", "--timeout=60s")
        yield cluster


def pods_of(cluster, node, namespace="kube-system"):
    pods = cluster.read("pods", "-n", namespace, f"--field-selector=spec.nodeName={node}")["items"]
    return [(pod["metadata"]["uid"], pod["status"]["phase"]) for pod in pods]


def test_a_daemon_set_makes_another_pod_for_the_one_that_was_deleted(cluster, tmp_path):
    labels = {"app": "plugin"}
    pod = {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "i"}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    meta = {"name": PLUGIN, "namespace": "kube-system"}
    spec["updateStrategy"] = {"type": "OnDelete"}
    cluster("create", "-f", "-", stdin={"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec})
    [(old, _)] = cluster.wait_for(lambda: [one for one in pods_of(cluster, "gpu-1") if one[1] == "Running"])
    elsewhere = cluster.wait_for(lambda: [one for one in pods_of(cluster, "gpu-2") if one[1] == "Running"])
    second = time.time() // 1  # a Pod of the very second of the attempt would count as young
    cluster.wait_for(lambda: time.time() // 1 > second)
    cluster.hold("gpu-1")
    restart = cluster.program(tmp_path, "restart_device_plugin", "gpu-1")
    ran = restart(parameters={"caseUID": "case-1"})
    assert ran.code == 0, ran.out
    assert ran.message.startswith(f"restarted the device plugin of gpu-1: Pod kube-system/{PLUGIN}-")
    [(new, phase)] = pods_of(cluster, "gpu-1")
    assert (new != old, phase) == (True, "Running")
    assert pods_of(cluster, "gpu-2") == elsewhere
    again = restart(parameters={"caseUID": "case-1"})
    assert again.message.startswith("nothing to restart")
    assert pods_of(cluster, "gpu-1") == [(new, "Running")]
    outdated = json.dumps({"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}})
    cluster("patch", "daemonset", PLUGIN, "-n", "kube-system", "--type=merge", "-p", outdated)
    cni = cluster.program(tmp_path, "restart_cni", "gpu-2")
    cluster.hold("gpu-2")
    refused = cni(parameters={"caseUID": "case-1", "daemonSet": PLUGIN})
    assert (refused.code, pods_of(cluster, "gpu-2")) == (2, elsewhere), refused.out
    assert "updates OnDelete and has another version by now (2, Pod" in refused.message


def test_a_daemon_set_with_nvidias_own_tolerations_makes_another_pod_while_the_case_holds_the_node(cluster, tmp_path):
    cluster("create", "-f", "-", stdin=gpu_node(5))
    labels, name = {"app": "nvidia"}, "nvidia-device-plugin"
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    pod = {"tolerations": tolerations, "containers": [{"name": "c", "image": "i"}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    meta = {"name": name, "namespace": "default"}
    cluster("create", "-f", "-", stdin={"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec})
    [(old, _)] = cluster.wait_for(lambda: [one for one in pods_of(cluster, "gpu-5", "default") if one[1] == "Running"])
    second = time.time() // 1  # a Pod of the very second of the attempt would count as young
    cluster.wait_for(lambda: time.time() // 1 > second)
    cluster.hold("gpu-5")
    here = {"caseUID": "case-1", "namespace": "default"}
    cluster("taint", "node", "gpu-5", "example.com/maintenance=now:NoSchedule")
    refused = cluster.program(tmp_path, "restart_cni", "gpu-5")(parameters={**here, "daemonSet": name})
    assert refused.code == 2
    assert "example.com/maintenance:NoSchedule, so no new Pod would come" in refused.message
    assert [uid for uid, _ in pods_of(cluster, "gpu-5", "default")] == [old]
    cluster("taint", "node", "gpu-5", "example.com/maintenance-")
    ran = cluster.program(tmp_path, "restart_device_plugin", "gpu-5")(parameters=here)
    assert (ran.code, ran.message.startswith("restarted the device plugin of gpu-5")) == (0, True), ran.out
    [(new, phase)] = pods_of(cluster, "gpu-5", "default")
    assert (new != old, phase) == (True, "Running")


def test_a_cordon_outlives_its_case_until_that_is_undone(cluster, tmp_path):
    cluster("create", "-f", "-", stdin=gpu_node(3))
    cluster.hold("gpu-3")
    noted = {"cordon": "remediator.dev/kept-cordoned", "uncordon": "remediator.dev/cordoned-by"}
    said = {"cordon": "gpu-3 stays cordoned for a person", "uncordon": "the cordon of gpu-3 ends with the case"}
    for name in ("cordon", "uncordon"):
        ran = cluster.program(tmp_path, name, "gpu-3")(parameters={"caseUID": "case-1"})
        assert (ran.code, ran.message) == (0, said[name]), ran.out
        node = cluster.read("node", "gpu-3")
        marks = {key: value for key, value in node["metadata"]["annotations"].items() if "cordon" in key}
        assert (node["spec"]["unschedulable"], marks) == (True, {noted[name]: "case-1"})


def test_a_node_that_is_not_heard_of_loses_its_power_once(cluster, tmp_path):
    cluster("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-4"}})
    status = {"conditions": [{"type": "Ready", "status": "Unknown"}], "nodeInfo": {"bootID": BOOT}}
    cluster("patch", "node", "gpu-4", "--subresource=status", "-p", json.dumps({"status": status}))
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"leaseDurationSeconds": 1}}
    lease["metadata"] = {"name": "gpu-4", "namespace": "kube-node-lease"}
    cluster("create", "-f", "-", stdin=lease)
    operation = cluster.hold("gpu-4")
    bmc = FakeBmc(tmp_path / "bmc-state")
    there = {"BMC_DIR": str(bmc.mount(tmp_path / "bmc")), "EXPECTED_BOOT_ID": BOOT}
    cycle = cluster.program(tmp_path, "power_cycle", "gpu-4", **there)
    ran = [cycle(parameters={"caseUID": "case-1", "offSeconds": 0}) for _ in range(2)]
    bmc.close()
    assert [one.code for one in ran] == [0, 2], ran
    assert bmc.resets == ["ForceOff", "On"]
    cluster("delete", "nodeoperation", operation)
    cluster.wait_for(lambda: not cluster.read("leases", "-n", "remediator-operations")["items"])


@pytest.mark.parametrize("account", ["remediator-restart-device-plugin", "remediator-restart-cni"])
def test_who_restarts_a_daemon_sets_pod_may_delete_no_other(cluster, account):
    pod = {"metadata": {"name": account}, "spec": {"nodeName": "gpu-2", "containers": [{"name": "c", "image": "i"}]}}
    cluster("create", "-n", "default", "-f", "-", stdin={"apiVersion": "v1", "kind": "Pod", **pod})
    who = f"--as=system:serviceaccount:remediator-operations:{account}"

    def refused():
        """A binding of a policy takes a moment to count; a dry run is judged as the real deletion would be."""
        command = [str(binary("kubectl")), "--kubeconfig", str(cluster.plane.kubeconfig), "delete", "pod", account, who]
        done = subprocess.run(
            [*command, "-n", "default", "--dry-run=server"], capture_output=True, text=True, timeout=90, check=False
        )
        return done.returncode and done.stderr

    said = cluster.wait_for(refused)
    assert "only the Pod of a DaemonSet may be deleted to restart it" in said

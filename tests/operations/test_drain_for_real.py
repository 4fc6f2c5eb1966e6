"""Each strategy of a drain, and each thing that blocks one, on a real control plane, with the drain's own rights."""

import json
import threading

import pytest

from remediator.core import names
from tests.cluster.nodes import gpu_node
from tests.harness.objects import DECLARED
from tests.operations.test_elsewhere_for_real import CONTROLLER, cluster  # noqa: F401
from tests.remediator.kube.manifests.examples import manifest

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
KARPENTER = {"karpenter.sh/do-not-disrupt": "true"}
SCRATCH = [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]


class Node:
    """A node that case-1 holds, with Pods of users on it, in a namespace of its own."""

    def __init__(self, cluster, folder, index, *, kwok=True):  # noqa: F811
        self.cluster, self.name, self.space = cluster, f"gpu-{index}", f"team-{index}"
        node = gpu_node(index)
        if not kwok:  # then nobody speaks for it
            del node["metadata"]["annotations"]
        cluster("create", "-f", "-", stdin=node)
        cluster.hold(self.name)
        self.operation = f"op-{self.name}"
        status = {"status": {"phase": "Draining", "drainPod": names.name(self.name, "drain", "uid")}}
        path = ("--subresource=status", CONTROLLER, "--as-group=system:masters", "--type=merge", "-p")
        cluster("patch", "nodeoperation", self.operation, *path, json.dumps(status))
        cluster("create", "namespace", self.space)
        case = manifest("NodeRemediation", name=f"case-of-{self.name}")
        cluster("create", "-f", "-", stdin=case)
        self.program = cluster.program(folder, "drain", self.name)

    def pod(self, name, annotations=None, volumes=()):
        spec = {"nodeName": self.name, "containers": [{"name": "c", "image": "i"}], "volumes": list(volumes)}
        meta = {"name": name, "labels": {"app": name}, "annotations": annotations or {}}
        self.make({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    def budget(self, name, app):
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
        meta = {"name": name}
        self.make({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec})

    def make(self, obj):
        self.cluster("create", "-n", self.space, "-f", "-", stdin=obj)

    def runs(self, *names):
        for name in names:
            self.cluster("wait", "-n", self.space, "pod", name, "--for=condition=Ready", "--timeout=60s")

    def drain(self, **orders):
        uid = self.cluster.read("nodeoperation", self.operation)["metadata"]["uid"]
        named = {"operation": self.operation, "operationUID": uid, "caseUID": "case-1", "case": f"case-of-{self.name}"}
        return self.program(parameters={**named, "policy": "none", "timeoutSeconds": 60, **orders})

    def pods(self):
        return {pod["metadata"]["name"]: pod for pod in self.cluster.read("pods", "-n", self.space)["items"]}

    def blocked(self):
        drain = self.cluster.read("nodeoperation", self.operation)["status"]["drain"]
        return {one["pod"].partition("/")[2]: one for one in drain.get("blocked", ())}


def test_what_a_budget_holds_is_deleted_when_the_time_for_evictions_is_over(cluster, tmp_path):  # noqa: F811
    node = Node(cluster, tmp_path, 21)
    for name in ("held", "twice", "free"):
        node.pod(name, DECLARED)
    for name, app in (("held", "held"), ("one", "twice"), ("two", "twice")):
        node.budget(name, app)
    node.runs("held", "twice", "free")
    ran = node.drain(strategy="EvictThenDelete", timeoutSeconds=3, evictForSeconds=100)
    assert ran.code == 1, ran.out
    assert sorted(node.pods()) == ["held", "twice"]
    blocked = node.blocked()
    assert {name: one["pdb"] for name, one in blocked.items()} == {"held": "held", "twice": "one,two"}
    assert "more than one PodDisruptionBudget" in blocked["twice"]["message"]
    assert blocked["twice"]["message"].endswith("let only one of these PodDisruptionBudgets select it")
    ran = node.drain(strategy="EvictThenDelete", evictForSeconds=2)
    assert (ran.code, ran.message) == (0, f"drained {node.name}: 2 pods evicted or deleted"), ran.out


def test_what_would_be_lost_stays_until_it_is_declared(cluster, tmp_path):  # noqa: F811
    node = Node(cluster, tmp_path, 22)
    node.pod("bare")
    node.pod("data", volumes=SCRATCH)
    node.pod("kept", KARPENTER)
    node.pod("goes", DECLARED)
    node.runs("bare", "data", "kept", "goes")
    ran = node.drain(timeoutSeconds=3)
    assert ran.code == 1, ran.out
    assert sorted(node.pods()) == ["bare", "data", "goes", "kept"], "nobody goes for a drain that cannot end"
    assert not any("deletionTimestamp" in pod["metadata"] for pod in node.pods().values())
    why = {name: one["message"] for name, one in node.blocked().items()}
    assert why["bare"].startswith("no controller makes it again: annotate it with remediator.dev/evict=true")
    assert "data in emptyDir (dshm) would be lost" in why["data"]
    assert why["kept"].startswith("its annotation karpenter.sh/do-not-disrupt keeps it")
    ran = node.drain(timeoutSeconds=3, strategy="Delete", deleteBarePods=True)
    assert (ran.code, sorted(node.pods())) == (1, ["bare", "data", "goes", "kept"]), ran.out
    assert sorted(node.blocked()) == ["data", "kept"]
    cluster("annotate", "-n", node.space, "pod", "kept", "remediator.dev/evict=true")
    ran = node.drain(deleteBarePods=True, deleteEmptyDirData=True)
    assert (ran.code, node.pods()) == (0, {}), ran.out


def test_a_drain_that_waits_for_completion_disturbs_nobody(cluster, tmp_path):  # noqa: F811
    node = Node(cluster, tmp_path, 23)
    node.pod("work")
    node.pod("cache", DECLARED)
    node.runs("work", "cache")
    rules = [{"namespaces": [node.space], "selector": {"matchLabels": {"app": "cache"}}, "strategy": "None"}]
    orders = {"strategy": "WaitForCompletion", "rules": rules}
    ran = node.drain(timeoutSeconds=2, **orders)
    assert ran.code == 1, ran.out
    assert "WaitForCompletion: it is waited for until it ends by itself" in ran.message
    before = {name: pod["metadata"]["uid"] for name, pod in node.pods().items()}
    done = json.dumps({"status": {"phase": "Succeeded"}})
    finish = ("patch", "-n", node.space, "pod", "work", "--subresource=status", "--type=merge", "-p", done)
    timer = threading.Timer(2.0, cluster, finish)
    timer.start()
    ran = node.drain(**orders)
    timer.join()
    assert (ran.code, ran.message) == (0, f"drained {node.name}: 0 pods evicted or deleted"), ran.out
    assert {name: pod["metadata"]["uid"] for name, pod in node.pods().items()} == before


def test_a_drain_whose_progress_is_refused_evicts_nobody(cluster, tmp_path):  # noqa: F811
    node = Node(cluster, tmp_path, 25)
    node.pod("a", DECLARED)
    node.runs("a")
    other = json.dumps({"status": {"drainPod": "of-another-attempt"}})
    path = ("--subresource=status", CONTROLLER, "--as-group=system:masters", "--type=merge", "-p", other)
    cluster("patch", "nodeoperation", node.operation, *path)
    ran = node.drain(timeoutSeconds=3)
    assert ran.code == 1, ran.out
    assert "a drain Pod may write to its own NodeOperation only" in ran.message
    assert not any("deletionTimestamp" in pod["metadata"] for pod in node.pods().values())


def test_a_gang_stays_while_its_owner_keeps_one_of_it_on_another_node(cluster, tmp_path):  # noqa: F811
    node, other = Node(cluster, tmp_path, 26), gpu_node(27)
    cluster("create", "-f", "-", stdin=other)
    spec = {"containers": [{"name": "c", "image": "i"}]}
    for name, notes, where in (("worker", DECLARED, node.name), ("leader", KARPENTER, "gpu-27")):
        meta = {"name": name, "labels": {"jobset.sigs.k8s.io/jobset-name": "train"}, "annotations": notes}
        node.make({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec | {"nodeName": where}})
    node.runs("worker", "leader")
    ran = node.drain(timeoutSeconds=3)
    assert (ran.code, sorted(node.pods())) == (1, ["leader", "worker"]), ran.out
    assert f"its gang goes as a whole, and {node.space}/leader on another node may not" in ran.message
    ran = node.drain(timeoutSeconds=60, overrideAnnotationsAfterSeconds=1)
    assert (ran.code, sorted(node.pods())) == (0, ["leader"]), ran.out


READY = {"type": "Ready", "status": "True"}


def test_the_pods_of_a_silent_node_are_forgotten_and_those_of_one_that_reports_are_not(cluster, tmp_path):  # noqa: F811
    node = Node(cluster, tmp_path, 24, kwok=False)
    for name in ("lost", "ending"):
        node.pod(name, DECLARED)
        status(cluster, ("pod", name, "-n", node.space), {"phase": "Running", "conditions": [READY]})
    now = cluster.read("node", node.name)["metadata"]["creationTimestamp"]
    reports = READY | {"lastHeartbeatTime": now, "lastTransitionTime": now, "reason": "Test", "message": "test"}
    status(cluster, ("node", node.name), {"conditions": [reports]})
    ran = node.drain(strategy="ForceDelete", timeoutSeconds=2)
    assert (ran.code, sorted(node.pods())) == (1, ["ending", "lost"]), ran.out
    assert "its kubelet reports" in node.blocked()["lost"]["message"]
    cluster("delete", "-n", node.space, "pod", "ending", "--wait=false")
    ran = node.drain(timeoutSeconds=2)
    assert "deletionTimestamp" in node.pods()["lost"]["metadata"], "no kubelet ends what is evicted"
    # Nobody speaks for the node: the control plane calls it Unknown by itself, and takes Ready from its Pods.
    cluster.wait_for(lambda: not any(map(is_ready, [*node.pods().values(), cluster.read("node", node.name)])), 120)
    ran = node.drain(strategy="ForceDelete")
    assert (ran.code, node.pods()) == (0, {}), ran.out


def status(cluster, where, fields):  # noqa: F811
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": fields}))
    cluster("patch", *where, *patch)


def is_ready(obj):
    return any((one["type"], one["status"]) == ("Ready", "True") for one in obj["status"].get("conditions", ()))

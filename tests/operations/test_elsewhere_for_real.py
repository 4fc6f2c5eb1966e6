"""Operations that run elsewhere, each with its own account's token and rights, on a real control plane."""

import json
import subprocess
import time

import pytest

from deploy.images.programs import binary
from remediator.core import names
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import gpu_node
from tests.cluster.rights.granted import unused
from tests.contract.test_manifests import ROOT
from tests.harness.objects import BOOT, DECLARED, SYSTEM_UUID
from tests.harness.waiting import wait_for
from tests.operations.conftest import Program
from tests.operations.fake_bmc import FakeBmc
from tests.remediator.kube.manifests.examples import manifest

pytestmark = pytest.mark.cluster

CONTROLLER = "--as=system:serviceaccount:remediator-system:remediator"
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
        return wait_for(what, seconds)

    def hold(self, node, case="case-1"):
        """Let a case of this uid hold a node, and make an operation of it; the operation's name."""
        self("taint", "node", node, f"remediator.dev/case={case}:PreferNoSchedule")
        self("cordon", node)
        self("annotate", "node", node, f"remediator.dev/cordoned-by={case}")
        uid = self.read("node", node)["metadata"]["uid"]
        spec = {"nodeName": node, "nodeUID": uid, "caseUID": case, "templateName": "any"}
        operation = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeOperation", "spec": spec}
        self("create", "-f", "-", CONTROLLER, stdin={**operation, "metadata": {"name": f"op-{node}"}})
        return f"op-{node}"

    def token(self, template, node):
        """The token of a Pod that the controller made for the operation of a node."""
        env = [{"name": "NODE_NAME", "value": node}, {"name": "ATTEMPT_ID", "value": f"op-{node}"}]
        spec = {"serviceAccountName": f"remediator-{template}", "containers": [{"name": "c", "image": "i", "env": env}]}
        name = names.name(node, template, "uid")
        meta = {"name": name, "labels": {"remediator.dev/operation": template}}
        space = ("-n", "remediator-operations")
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        self("create", CONTROLLER, *space, "-f", "-", stdin=pod)
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={name}")
        return self("create", "token", f"remediator-{template}", *space, *bound)

    def program(self, folder, name, node, **variables):
        """Run a program as its account, with nothing but the token of its Pod."""
        tokens = folder / f"{name}-token"
        if not tokens.exists():
            tokens.mkdir()
            (tokens / "token").write_text(self.token(name.replace("_", "-"), node))
            (tokens / "ca.crt").write_bytes(self.plane.ca_file.read_bytes())
            (tokens / "namespace").write_text("remediator-operations")
        program = Program(folder, name)
        host, port = self.plane.url.removeprefix("https://").split(":")
        program.variables |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        program.variables |= {"TOKEN_DIR": str(tokens), "NODE_NAME": node, "ATTEMPT_ID": f"op-{node}", **variables}
        return program


@pytest.fixture(scope="module")
def cluster():
    """A control plane with its controllers, our kinds and accounts, and two nodes that KWOK plays.

    It notices after 16 seconds that nobody speaks for a node.
    """
    with ControlPlane(audit=True, pod_groups=True, lease_seconds=8, silent_seconds=16) as plane:
        cluster = Cluster(plane)
        cluster("apply", "-k", str(ROOT / "deploy/crds"))
        cluster("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/name=remediator")
        for name in ("namespaces.yaml", "rbac.yaml", "admission"):
            cluster("apply", "-f", str(ROOT / "deploy" / name))
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
    ran = cluster.program(tmp_path, "restart_cni", "gpu-5")(parameters={**here, "daemonSet": name})
    assert (ran.code, ran.message.startswith("restarted the network agent of gpu-5")) == (0, True), ran.out
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
    status["nodeInfo"]["systemUUID"] = SYSTEM_UUID
    cluster("patch", "node", "gpu-4", "--subresource=status", "-p", json.dumps({"status": status}))
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"leaseDurationSeconds": 1}}
    lease["metadata"] = {"name": "gpu-4", "namespace": "kube-node-lease"}
    cluster("create", "-f", "-", stdin=lease)
    operation = cluster.hold("gpu-4")
    volume = {"attacher": "csi.example", "nodeName": "gpu-4", "source": {"persistentVolumeName": "a"}}
    attached = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "a"}}
    cluster("create", "-f", "-", stdin=attached | {"spec": volume})
    bmc = FakeBmc(tmp_path / "bmc-state")
    there = {"BMC_DIR": str(bmc.mount(tmp_path / "bmc")), "EXPECTED_BOOT_ID": BOOT}
    cycle = cluster.program(tmp_path, "power_cycle", "gpu-4", **there)
    ran = [cycle(parameters={"caseUID": "case-1", "offSeconds": 0, "detachSeconds": 0}) for _ in range(2)]
    bmc.close()
    node = cluster.read("node", "gpu-4")
    taints = [(taint["key"], taint.get("value"), taint["effect"]) for taint in node["spec"]["taints"]]
    assert ("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute") in taints
    assert node["metadata"]["annotations"]["remediator.dev/out-of-service-boot"] == BOOT
    assert [one.code for one in ran] == [0, 2], ran
    assert bmc.resets == ["ForceOff", "On"]
    cluster("delete", "nodeoperation", operation)
    cluster.wait_for(lambda: not cluster.read("leases", "-n", "remediator-operations")["items"])


def test_a_drain_takes_the_pods_of_users_and_leaves_those_of_the_cluster(cluster, tmp_path):
    cluster("create", "-f", "-", stdin=gpu_node(6))
    cluster.hold("gpu-6")
    uid = cluster.read("nodeoperation", "op-gpu-6")["metadata"]["uid"]
    status = {"status": {"phase": "Draining", "drainPod": names.name("gpu-6", "drain", "uid")}}
    path = ("--subresource=status", CONTROLLER, "--as-group=system:masters", "--type=merge", "-p", json.dumps(status))
    cluster("patch", "nodeoperation", "op-gpu-6", *path)
    containers = [{"name": "c", "image": "i"}]
    for space, name in (("default", "worker"), ("default", "held"), ("kube-system", "coredns")):
        pod = {
            "metadata": {"name": name, "labels": {"app": name}, "annotations": DECLARED},
            "spec": {"nodeName": "gpu-6", "containers": containers},
        }
        cluster("create", "-n", space, "-f", "-", stdin={"apiVersion": "v1", "kind": "Pod", **pod})
    held = {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "held"}, "spec": held}
    cluster("create", "-n", "default", "-f", "-", stdin=budget)
    cluster("create", "-f", "-", stdin=manifest("NodeRemediation", name="case-1"))
    orders = {"operation": "op-gpu-6", "operationUID": uid, "caseUID": "case-1", "namespace": "remediator-system"}
    drain = cluster.program(tmp_path, "drain", "gpu-6")
    ran = drain(parameters={**orders, "timeoutSeconds": 3, "case": "case-1", "policy": "none"})
    assert (ran.code, "default/held (held)" in ran.message) == (1, True), ran.out
    assert cluster.read("nodeoperation", "op-gpu-6")["status"]["drain"]["evicted"] == 1
    ran = drain(parameters={**orders, "strategy": "Delete"})
    assert (ran.code, ran.message) == (0, "drained gpu-6: 1 pods evicted or deleted"), ran.out
    here = cluster.read("pods", "-A", "--field-selector=spec.nodeName=gpu-6")["items"]
    left = [pod for pod in here if pod["metadata"]["namespace"] != "remediator-operations"]
    owners = {pod["metadata"]["name"]: pod["metadata"].get("ownerReferences", [{}])[0].get("kind") for pod in left}
    assert owners.pop("coredns") is None
    assert set(owners.values()) == {"DaemonSet"}


def started_drain(cluster, folder, node, **orders):
    """The drain of a node that case-1 holds, and its process."""
    cluster("create", "-f", "-", stdin=gpu_node(int(node.removeprefix("gpu-"))))
    operation = cluster.hold(node)
    uid = cluster.read("nodeoperation", operation)["metadata"]["uid"]
    status = {"status": {"phase": "Draining", "drainPod": names.name(node, "drain", "uid")}}
    path = ("--subresource=status", CONTROLLER, "--as-group=system:masters", "--type=merge", "-p", json.dumps(status))
    cluster("patch", "nodeoperation", operation, *path)
    drain = cluster.program(folder, "drain", node)
    return drain, lambda: drain.start(
        parameters={"operation": operation, "operationUID": uid, "caseUID": "case-1", "timeoutSeconds": 60, **orders}
    )


LETS_GO = {"remediator.dev/evict": "true"}  # nothing makes these Pods again


def put_gang(cluster, node, **annotations):
    """Two Pods of one PodGroup, of which a budget holds the first one."""
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}}
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "train"}}
    cluster("create", "-n", "default", "-f", "-", stdin=group | {"spec": policy})
    for index in range(2):
        meta = {
            "name": f"train-{index}",
            "labels": {"index": str(index)},
            "annotations": {**LETS_GO, **(annotations if index else {})},
        }
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        spec["schedulingGroup"] = {"podGroupName": "train"}
        cluster(
            "create",
            "-n",
            "default",
            "-f",
            "-",
            stdin={"apiVersion": "v1", "kind": "Pod", "metadata": meta} | {"spec": spec},
        )
    held = {"minAvailable": 1, "selector": {"matchLabels": {"index": "0"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "train"}, "spec": held}
    cluster("create", "-n", "default", "-f", "-", stdin=budget)
    cluster.wait_for(lambda: len([phase for _, phase in training(cluster, node) if phase == "Running"]) == 2)


def training(cluster, node):
    pods = cluster.read("pods", "-n", "default", f"--field-selector=spec.nodeName={node}")["items"]
    return [(pod, pod["status"]["phase"]) for pod in pods if pod["metadata"]["name"].startswith("train")]


def test_a_pod_group_goes_as_a_whole_once_its_budget_lets_it_and_its_checkpoint_is_written(cluster, tmp_path):
    drain, start = started_drain(cluster, tmp_path, "gpu-7")
    put_gang(cluster, "gpu-7", **{"remediator.dev/checkpoint": "10m"})
    process = start()

    def progress():
        status = cluster.read("nodeoperation", "op-gpu-7")["status"].get("drain", {})
        return {one["pod"]: (one["pdb"], one["message"]) for one in status.get("blocked", [])}

    blocked = cluster.wait_for(lambda: progress() if len(progress()) == 2 else None)
    assert blocked["default/train-0"][0] == "train"
    assert blocked["default/train-1"] == ("", "waits for default/train-0 of the same gang")
    assert [pod["metadata"].get("deletionTimestamp") for pod, _ in training(cluster, "gpu-7")] == [None, None]

    cluster("delete", "pdb", "train", "-n", "default")
    requested = "remediator.dev/checkpoint-requested"

    def asked():
        pods = [pod for pod, _ in training(cluster, "gpu-7")]
        return [pod for pod in pods if requested in pod["metadata"].get("annotations", {})] if len(pods) == 2 else None

    [pod] = cluster.wait_for(asked)
    assert pod["metadata"]["name"] == "train-1"
    done = f"remediator.dev/checkpoint-done={pod['metadata']['annotations'][requested]}"
    cluster("annotate", "pod", "train-1", "-n", "default", done)
    ran = drain.finish(process)
    assert (ran.code, ran.message) == (0, "drained gpu-7: 2 pods evicted"), ran.out
    assert training(cluster, "gpu-7") == []


def put_gpus(cluster, node):
    """Two GPUs of a driver of DRA on a node, a class of them, and two Pods that claim one each."""
    gpus = [{"name": f"gpu-{at}", "attributes": {"uuid": {"string": f"GPU-{at:08}-{node}"}}} for at in range(2)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    published = {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": gpus}
    group, wanted = "resource.k8s.io/v1", {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    selectors = [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]
    bodies = [
        {"apiVersion": group, "kind": "ResourceSlice", "metadata": {"name": node}, "spec": published},
        {"apiVersion": group, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": selectors}},
    ]
    for name in ("first", "second"):
        claim = {"name": "gpu", "resourceClaimName": name}
        containers = [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]
        pod = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": containers, "resourceClaims": [claim]}
        meta = {"name": name, "namespace": "default"}
        claimed = {"devices": {"requests": [wanted]}}
        bodies += [
            {"apiVersion": group, "kind": "ResourceClaim", "metadata": meta, "spec": claimed},
            {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod},
        ]
    return bodies


def open_case(cluster, node):
    """A case of a node; its uid. Kubernetes deletes what belongs to a case that is not there."""
    uid = cluster.read("node", node)["metadata"]["uid"]
    spec = {"nodeName": node, "nodeUID": uid, "policyName": "gpu-lost"}
    meta = {"name": f"{node}-gpu-lost"}
    case = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeRemediation", "metadata": meta, "spec": spec}
    cluster("create", "-f", "-", CONTROLLER, stdin=case)
    return cluster.read("noderemediation", meta["name"])["metadata"]["uid"]


def test_a_gpu_that_is_isolated_alone_gets_no_pod_until_its_rule_goes(cluster, tmp_path):
    cluster("create", "-f", "-", stdin=gpu_node(9))
    cluster("wait", "--for=condition=Ready", "node", "gpu-9", "--timeout=60s")
    slices, kind, *work = put_gpus(cluster, "gpu-9")
    cluster("create", "-f", "-", stdin=slices)
    case = open_case(cluster, "gpu-9")
    cluster.hold("gpu-9", case)
    isolate = cluster.program(tmp_path, "isolate_gpu", "gpu-9")
    ran = isolate(parameters={"caseUID": case, "case": "gpu-9-gpu-lost", "gpus": "GPU-00000000-gpu-9"})
    told = "isolated gpu.nvidia.com/gpu-9/gpu-0 (NoSchedule); gpu-9 is in service without it"
    assert (ran.code, ran.message) == (0, told), ran.out
    assert "unschedulable" not in cluster.read("node", "gpu-9")["spec"]

    cluster("create", "-f", "-", stdin=kind)
    for body in work:
        cluster("create", "-f", "-", stdin=body)

    def devices():
        claims = cluster.read("resourceclaims", "-n", "default")["items"]
        allocated = (claim.get("status", {}).get("allocation", {}) for claim in claims)
        return sorted(result["device"] for each in allocated for result in each.get("devices", {}).get("results", ()))

    def refused():
        pods = cluster.read("pods", "-n", "default")["items"]
        conditions = [each for pod in pods for each in pod["status"].get("conditions", ())]
        return [each["message"] for each in conditions if each.get("reason") == "Unschedulable"]

    [why] = cluster.wait_for(lambda: refused() if devices() == ["gpu-1"] else None)
    assert "cannot allocate all claims" in why
    rules = ("devicetaintrules", "-l", f"remediator.dev/case-uid={case}")
    [rule] = cluster.read(*rules)["items"]
    cluster("delete", "devicetaintrule", rule["metadata"]["name"], CONTROLLER)
    cluster.wait_for(lambda: devices() == ["gpu-0", "gpu-1"])


def test_every_right_of_an_operations_account_is_used(cluster):
    """By the programs in the tests above; what nobody uses is not granted."""
    events = cluster.plane.audited()
    accounts = ("drain", "cordon", "uncordon", "restart-device-plugin", "restart-cni", "power-cycle", "isolate-gpu")
    assert {name: unused(f"remediator-{name}", events) for name in accounts} == {name: set() for name in accounts}

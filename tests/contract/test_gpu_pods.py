"""A real API server holds Pods with GPUs to what the examples ask of them."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.images.programs import binary
from tests.cluster.control_plane import ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
GPU = "nvidia.com/gpu"
TAINT = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    """kubectl as administrator, on an API server of its own with the two policies that validate."""
    with ControlPlane(controllers=False, scheduler=False, kwok=False) as plane:

        def run(*args: str, stdin: object = None) -> subprocess.CompletedProcess[str]:
            command = [str(binary("kubectl")), "--kubeconfig", str(plane.kubeconfig), *args]
            text = None if stdin is None else json.dumps(stdin)
            return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)

        for name in ("default", "apart"):
            run("create", "namespace", name)
            run("create", "serviceaccount", "default", "-n", name)
        run("label", "namespace", "apart", "remediator.dev/gpu-pods=unchecked")
        for example in ("attributes", "scheduler"):
            done = run("apply", "--validate=strict", "-f", str(EXAMPLES / f"gpu-pods-{example}.yaml"))
            assert (done.returncode, done.stderr) == (0, "")
        until(lambda: "gpu cannot be read" in refusal(run, pod(asks="memroy")))
        until(lambda: "set spec.schedulerName" in refusal(run, pod(scheduler="default-scheduler")))
        yield run


def until(holds: Callable[[], bool]) -> None:
    """A new policy holds after a moment."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)


def pod(scheduler: str = "gpu", gpus: int = 1, asks: str = "", of: str = GPU, **more: Any) -> dict[str, Any]:
    """A Pod of the second scheduler. `of`: the resource; `notes`: more annotations of ours."""
    resources = {"limits": {of: str(gpus)}} if gpus else {}
    notes = {"gpu": asks} if asks else {}
    notes |= more.pop("notes", {})
    meta = {"name": "tried", "annotations": {f"remediator.dev/{key}": text for key, text in notes.items()}}
    meta |= {"ownerReferences": more.pop("owners")} if "owners" in more else {}
    spec = {"schedulerName": scheduler, "containers": [{"name": "a", "image": "a:1", "resources": resources}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def refusal(kubectl: Kubectl, body: dict[str, Any], namespace: str = "default") -> str:
    """What the server says against the Pod; "" where it takes it. It makes none."""
    done = kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=body)
    return done.stderr


ROW = {"key": "nvidia.com/gpu-memory", "operator": "Gt", "values": ["8000"]}
MODELS = {"key": "model", "operator": "In", "values": [f"*{'A' * 8}{index:02}*" for index in range(16)]}
AFFINITY = json.dumps({"required": [ROW], "preferred": [{"key": "ecc", "operator": "Exists"}]})
TWICE = f'{AFFINITY[:-1]}, "required": []}}'
ROW_TWICE = AFFINITY.replace('"operator": "Exists"', '"operator": "Exists", "operator": "DoesNotExist"')
LARGE = json.dumps({"required": [MODELS] * 16, "preferred": [ROW] * 16}).ljust(8192)
DAEMON = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(pod(), "", id="a Pod with GPUs that names the scheduler"),
        pytest.param(pod("default-scheduler"), "set spec.schedulerName to gpu", id="one that does not"),
        pytest.param(pod("default-scheduler", 0), "", id="a Pod without GPUs"),
        pytest.param(pod("default-scheduler", nodeName="n"), "", id="a Pod that nobody schedules"),
        pytest.param(pod(tolerations=[TAINT]), "", id="a Pod with GPUs that tolerates GPU nodes"),
        pytest.param(pod("default-scheduler", 0, tolerations=[TAINT]), "only Pods that ask", id="one without GPUs"),
        pytest.param(pod("default-scheduler", 0, tolerations=[TAINT], owners=DAEMON), "", id="one of a DaemonSet"),
        pytest.param(pod("default-scheduler", 0, tolerations=[{"operator": "Exists"}]), "", id="who tolerates all"),
        pytest.param(pod(asks="memory>=40G, model in (*A100*, *H100*)"), "", id="an annotation that can be read"),
        pytest.param(pod("default-scheduler", of="aliyun.com/gpu-mem"), "set spec.schedulerName", id="memory of a GPU"),
        pytest.param(pod("default-scheduler", of="gpu.intel.com/xe"), "set spec.schedulerName", id="a GPU of Intel"),
        pytest.param(
            pod(notes={"gpu-cards": "2", "gpu-mps": "true", "require-health": "proven"}), "", id="all annotations"
        ),
        pytest.param(pod(notes={"gpu-cards": "65"}), "gpu-cards must be a number", id="too many cards"),
        pytest.param(pod(notes={"gpu-mps": "yes"}), "gpu-mps must be true or false", id="neither true nor false"),
        pytest.param(pod(notes={"require-health": "best"}), "require-health must be proven", id="another health"),
        pytest.param(pod(notes={"gpu-affinity": AFFINITY}), "", id="an affinity that can be read"),
        pytest.param(pod(notes={"gpu-affinity": "{}"}), "", id="one that asks for nothing"),
        pytest.param(pod(notes={"gpu-affinity": AFFINITY[:-1]}), "gpu-affinity cannot be read", id="cut short"),
        pytest.param(pod(notes={"gpu-affinity": AFFINITY.replace("Gt", "In")}), "", id="another operator"),
        pytest.param(pod(notes={"gpu-affinity": AFFINITY.replace("Gt", "Is")}), "gpu-affinity cannot", id="none"),
        pytest.param(pod(notes={"gpu-affinity": AFFINITY.replace("8000", "much")}), "gpu-affinity cannot", id="size"),
        pytest.param(pod(notes={"gpu-affinity": TWICE}), "gpu-affinity cannot be read", id="a list that stands twice"),
        pytest.param(pod(notes={"gpu-affinity": ROW_TWICE}), "gpu-affinity cannot", id="an operator that stands twice"),
        pytest.param(pod(notes={"gpu-affinity": LARGE}), "", id="as large as it may be"),
        pytest.param(pod(notes={"gpu-affinity": LARGE + " "}), "gpu-affinity cannot be read", id="larger"),
        pytest.param(pod(asks="memory>=40Gx"), "annotation remediator.dev/gpu cannot be read", id="one that cannot"),
    ],
)
def test_a_pod_is_taken_or_refused_with_what_would_help(kubectl: Kubectl, body: dict[str, Any], words: str) -> None:
    told = refusal(kubectl, body)
    assert words in told if words else told == ""


def test_a_namespace_with_the_label_is_left_alone(kubectl: Kubectl) -> None:
    assert refusal(kubectl, pod("default-scheduler", asks="memroy"), "apart") == ""


def test_the_twin_fills_in_the_scheduler_and_the_toleration_of_pods_with_gpus_alone(kubectl: Kubectl) -> None:
    assert kubectl("apply", "--validate=strict", "-f", str(EXAMPLES / "gpu-pods-defaults.yaml")).stderr == ""
    try:
        until(lambda: refusal(kubectl, pod("default-scheduler")) == "")
        mine = {"key": "mine", "operator": "Exists"}
        assert made(kubectl, pod("default-scheduler")) == ("gpu", [TAINT])
        assert made(kubectl, pod("default-scheduler", tolerations=[mine])) == ("gpu", [mine, TAINT])
        assert made(kubectl, pod("default-scheduler", tolerations=[TAINT])) == ("gpu", [TAINT])
        assert made(kubectl, pod("default-scheduler", of="aliyun.com/gpu-mem")) == ("gpu", [TAINT])
        assert made(kubectl, pod("default-scheduler", 0)) == ("default-scheduler", [])
        assert "set spec.schedulerName to gpu" in refusal(kubectl, pod("other"))
    finally:
        kubectl("delete", "-f", str(EXAMPLES / "gpu-pods-defaults.yaml"))


def made(kubectl: Kubectl, body: dict[str, Any]) -> tuple[str, list[Any]]:
    """The scheduler and the tolerations that the server makes of a Pod, without those of every Pod."""
    done = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=body)
    assert done.stderr == ""
    spec = json.loads(done.stdout)["spec"]
    every = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return spec["schedulerName"], [row for row in spec.get("tolerations", []) if row.get("key") not in every]

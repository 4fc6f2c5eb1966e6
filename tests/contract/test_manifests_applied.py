"""A real API server takes the manifests of deploy/ and operations/, and holds what they promise."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from deploy.images.programs import binary
from remediator.core.names import SERVING_SECRET
from remediator.kube import api
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import MERGE_PATCH, STRATEGIC_PATCH
from tests.cluster import trying
from tests.cluster.control_plane import ControlPlane
from tests.cluster.trying import Trier
from tests.contract.test_manifests import OBJECTS, PODS, ROOT
from tests.remediator.kube.manifests.examples import SPECS, TYPOS, WRONG, manifest

pytestmark = pytest.mark.cluster

CONTROLLER = "--as=system:serviceaccount:remediator-system:remediator"
DIGEST = "sha256:" + 64 * "a"
Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """An API server of its own, with nobody else on it."""
    with ControlPlane(controllers=False, scheduler=False, kwok=False) as plane:
        yield plane


@pytest.fixture(scope="module")
def kubeconfig(plane: ControlPlane) -> Path:
    return plane.kubeconfig


@pytest.fixture(scope="module")
def kubectl(kubeconfig: Path) -> Kubectl:
    """Run kubectl as administrator; the answer has its returncode, stdout and stderr."""

    def run(*args: str, stdin: object = None) -> subprocess.CompletedProcess[str]:
        command = [str(binary("kubectl")), "--kubeconfig", str(kubeconfig), *args]
        text = None if stdin is None else json.dumps(stdin)
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture(scope="module")
def deployed(kubectl: Kubectl) -> Kubectl:
    """Everything in deploy/ applied, as its kustomization says."""
    steps = (
        ("apply", "-k", str(ROOT / "deploy" / "crds")),
        ("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/name=remediator", "--timeout=30s"),
        ("apply", "--validate=strict", "-k", str(ROOT / "deploy")),
    )
    for step in steps:
        done = kubectl(*step)
        assert (done.returncode, done.stderr) == (0, ""), step
    return kubectl


@pytest.fixture(scope="module")
def tried(plane: ControlPlane, deployed: Kubectl) -> Trier:
    """What the server says against an object, once everything is deployed."""
    return Trier(plane)


def test_the_registry_and_digests_that_a_user_sets_are_those_of_every_image(tmp_path: Path) -> None:
    for folder in ("deploy", "operations"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    registry, whole = tmp_path / "deploy/registry.yaml", tmp_path / "deploy/kustomization.yaml"
    registry.write_text(registry.read_text().replace("registry: registry.invalid", "registry: reg.example:5000/gpu"))
    whole.write_text(whole.read_text().replace("newTag: 0.1.0", f'digest: "{DIGEST}"'))
    command = [str(binary("kubectl")), "kustomize", str(tmp_path / "deploy")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    images = set(re.findall(r"image: (\S+)", text))
    assert images == {f"reg.example:5000/gpu/remediator/{name}@{DIGEST}" for name in ("controller", "node")}
    assert "remediator-registry" not in text


def test_the_example_takes_only_images_of_ours_by_digest(deployed: Kubectl) -> None:
    example = str(ROOT / "deploy/examples/images-by-digest.yaml")

    def pod(image: str) -> dict[str, Any]:
        meta = {"name": "tried", "namespace": "remediator-operations"}
        spec = {"serviceAccountName": "remediator-host", "containers": [{"name": "a", "image": image}]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def tried(image: str) -> str:
        return deployed("create", CONTROLLER, "--dry-run=server", "-f", "-", stdin=pod(image)).stderr

    tagged, pinned = "registry.invalid/remediator/node:0.1.0", f"registry.invalid/remediator/node@{DIGEST}"
    assert deployed("create", CONTROLLER, "-f", "-", stdin=pod(tagged)).stderr == ""
    try:
        assert deployed("apply", "-f", example).stderr == ""
        until = time.monotonic() + 30
        while "by digest" not in tried(tagged):  # a new policy holds after a moment
            assert time.monotonic() < until
            time.sleep(0.2)
        assert "by digest" in tried(pinned.replace("registry.invalid", "elsewhere.example"))
        assert "by digest" not in tried(pinned)
        running = ("pod", "tried", "-n", "remediator-operations")
        assert deployed("label", *running, "still=changeable").stderr == ""
        changed = deployed("set", "image", *running, "a=elsewhere.example/x").stderr
        # Two policies deny it, and the server names the one that it asked first.
        assert "by digest" in changed or "nobody changes what a Pod of an operation runs" in changed
    finally:
        deployed("delete", "-f", example)
        deployed("delete", "pod", "tried", "-n", "remediator-operations", "--grace-period=0", "--force")


@pytest.fixture(scope="module")
def again(deployed: Kubectl) -> subprocess.CompletedProcess[str]:
    """Everything applied once more, after the controller's Secret was filled as the controller fills it."""
    patch = ("patch", "secret", SERVING_SECRET, "-n", "remediator-system", "-p", '{"data":{"ca.crt":"YQ=="}}')
    assert deployed(*patch).returncode == 0
    return deployed("apply", "--validate=strict", "-k", str(ROOT / "deploy"))


def test_everything_is_accepted_without_a_warning_and_may_be_applied_again(
    again: subprocess.CompletedProcess[str],
) -> None:
    assert (again.returncode, again.stderr) == (0, "")
    generated, read_by_kustomize_alone = 1, 1  # the ConfigMap of the detectors, that of the registry
    assert len(again.stdout.splitlines()) == len(OBJECTS) + generated - read_by_kustomize_alone


def test_the_controller_may_fill_its_own_secret_only_and_what_it_holds_survives_the_next_apply(
    deployed: Kubectl, again: subprocess.CompletedProcess[str]
) -> None:
    assert again.returncode == 0
    held = deployed("get", "secret", SERVING_SECRET, "-n", "remediator-system", "-o", "jsonpath={.data}").stdout
    assert json.loads(held) == {"ca.crt": "YQ=="}
    asked = ("get", "update", "create", "list", "delete", "patch")
    own, others = (
        [
            verb
            for verb in asked
            if deployed("auth", "can-i", verb, name, "-n", space, CONTROLLER).stdout.strip() == "yes"
        ]
        for name, space in ((f"secrets/{SERVING_SECRET}", "remediator-system"), ("secrets/other", "remediator-system"))
    )
    assert (own, others) == (["get", "update"], [])


@pytest.mark.parametrize(("title", "namespace", "pod"), PODS, ids=[title for title, _, _ in PODS])
def test_every_pod_would_be_admitted_where_it_runs(
    tried: Trier, title: str, namespace: str, pod: dict[str, Any]
) -> None:
    """By the Pod security of its namespace, and with no field that a Pod does not have."""
    one = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": title, "namespace": namespace}, "spec": pod}
    who = trying.CONTROLLER if namespace == "remediator-operations" else trying.ADMINISTRATOR
    assert tried(one, who) == (201, "")


@pytest.mark.parametrize("kind", SPECS)
def test_a_server_accepts_what_lint_accepts(tried: Trier, kind: str) -> None:
    maker = trying.CONTROLLER if kind == "NodeOperation" else trying.ADMINISTRATOR
    assert tried(manifest(kind, name="good"), maker) == (201, "")


BAD = WRONG | TYPOS


@pytest.mark.parametrize("case", BAD)
def test_a_server_refuses_what_lint_refuses_and_names_the_same_field(tried: Trier, case: str) -> None:
    document, field = BAD[case]
    answer = tried(document)
    assert not answer.taken
    assert field in answer.said


def test_an_unknown_operation_is_accepted_by_a_server(deployed: Kubectl) -> None:
    policy = manifest("RemediationPolicy", name="unknown", ladder=[{"operation": "nobody-knows"}])
    assert deployed("create", "--dry-run=server", "-f", "-", stdin=policy).returncode == 0


def test_what_was_decided_once_cannot_be_changed(deployed: Kubectl) -> None:
    changes = {
        "NodeRemediation": ("nr", "nodeName", "gpu-18", "nodeName is immutable"),
        "NodeOperation": ("nop", "parameters", {"a": "b"}, "spec is immutable"),
    }
    for kind, (short, field, value, message) in changes.items():
        assert deployed("apply", "-f", "-", CONTROLLER, stdin=manifest(kind, name="fixed")).returncode == 0
        done = deployed("patch", short, "fixed", "--type=merge", "-p", json.dumps({"spec": {field: value}}))
        assert message in done.stderr
        assert deployed("delete", short, "fixed").returncode == 0


async def test_kubectl_get_tells_the_story_of_a_case_in_a_line(
    deployed: Kubectl, kubeconfig: Path, tmp_path: Path
) -> None:
    attempts = [{"operation": f"x{n}", "template": name, "rung": n, "attempt": 1} for n, name in enumerate("ab")]
    status = {"phase": "Held", "rung": 0, "attempts": attempts, "blockedBy": [{"reason": "BudgetSpent"}]}
    assert deployed("apply", "-f", "-", stdin=manifest("NodeRemediation", name="told")).returncode == 0
    ours = deployed("create", "token", "remediator", "-n", "remediator-system").stdout.strip()
    path = api.CASE.path("told", subresource="status")
    assert await speak(kubeconfig, ours, tmp_path, path, {"status": status}, MERGE_PATCH) == 200
    heads, cells = (line.split() for line in deployed("get", "nr", "told").stdout.splitlines())
    assert heads == ["NAME", "NODE", "POLICY", "PHASE", "RUNG", "OPERATION", "BLOCKED", "AGE"]
    assert cells[:-1] == ["told", "gpu-17", "gpu-lost", "Held", "0", "b", "BudgetSpent"]
    assert deployed("delete", "nr", "told").returncode == 0


async def speak(kubeconfig: Path, token: str, tmp_path: Path, path: str, body: object, patch: str) -> int:
    """Send one patch as the bearer of a token; gives back the HTTP status."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    spoken = tmp_path / "kubeconfig"
    spoken.write_text(yaml.safe_dump(config))
    transport = await HttpTransport.from_kubeconfig(spoken)
    try:
        return (await transport.request("PATCH", path, body=msgspec.json.encode(body), content_type=patch)).status
    finally:
        await transport.close()


async def test_a_detector_writes_only_the_node_that_its_token_names(
    deployed: Kubectl, kubeconfig: Path, tmp_path: Path
) -> None:
    for name in ("own", "other"):
        deployed("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    asked = ("create", "token", "node-problem-detector", "-n", "remediator-system")
    bound = deployed(*asked, "--bound-object-kind=Node", "--bound-object-name=own").stdout.strip()
    unbound = deployed(*asked).stdout.strip()
    body = {"status": {"conditions": [{"type": "GpuLost", "status": "True"}]}}

    async def write(token: str, node: str) -> int:
        return await speak(kubeconfig, token, tmp_path, f"/api/v1/nodes/{node}/status", body, STRATEGIC_PATCH)

    assert await write(bound, "own") == 200
    assert await write(bound, "other") == 422
    assert await write(unbound, "own") == 422
    deployed("delete", "node", "own", "other")


async def test_the_controller_writes_one_condition_of_a_node_and_nothing_else_of_its_status(
    deployed: Kubectl, kubeconfig: Path, tmp_path: Path
) -> None:
    """Of the same request by the same account, only the type differs, or a field beside the conditions."""
    deployed("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "counted"}})
    token = deployed("create", "token", "remediator", "-n", "remediator-system").stdout.strip()

    async def write(**status: Any) -> int:
        path, body = "/api/v1/nodes/counted/status", {"status": status}
        return await speak(kubeconfig, token, tmp_path, path, body, STRATEGIC_PATCH)

    def conditions(kind: str) -> list[dict[str, str]]:
        return [{"type": kind, "status": "True", "reason": "UnexpectedAdmissionError"}]

    assert await write(conditions=conditions("PodsRejected")) == 200
    assert await write(conditions=conditions("GpuLost")) == 422
    assert await write(conditions=conditions("Ready")) == 422
    assert await write(capacity={"pods": "1"}) == 422
    assert deployed("get", "node", "counted", "-o", "jsonpath={.status.conditions[*].type}").stdout == "PodsRejected"
    deployed("delete", "node", "counted")


async def test_the_drain_program_writes_the_progress_of_its_own_operation_and_nothing_else(
    deployed: Kubectl, kubeconfig: Path, tmp_path: Path
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mine", "namespace": "remediator-operations"},
        "spec": {"serviceAccountName": "remediator-drain", "containers": [{"name": "drain", "image": "x"}]},
    }
    assert deployed("create", CONTROLLER, "-f", "-", stdin=pod).stderr == ""
    assert deployed("create", CONTROLLER, "-f", "-", stdin=manifest("NodeOperation", name="drained")).returncode == 0
    asked = ("create", "token", "remediator-drain", "-n", "remediator-operations")
    token = deployed(*asked, "--bound-object-kind=Pod", "--bound-object-name=mine").stdout.strip()

    async def write(**status: object) -> int:
        path = api.OPERATION.path("drained", subresource="status")
        return await speak(kubeconfig, token, tmp_path, path, {"status": status}, MERGE_PATCH)

    ours = deployed("create", "token", "remediator", "-n", "remediator-system").stdout.strip()

    async def belongs_to(name: str) -> None:
        status = {"status": {"phase": "Draining", "drainPod": name}}
        path = api.OPERATION.path("drained", subresource="status")
        assert await speak(kubeconfig, ours, tmp_path, path, status, MERGE_PATCH) == 200

    assert await write(drain={"left": 3, "evicted": 1}) == 422, "nobody has said whose it is"
    await belongs_to("mine")
    assert await write(drain={"left": 2}) == 200
    assert await write(phase=None) == 422
    await belongs_to("another")
    assert await write(drain={"left": 1}) == 422
    deployed("delete", "nop", "drained")
    deployed("delete", "pod", "mine", "-n", "remediator-operations", "--grace-period=0", "--force")

"""The janitor on a real API server, with the rights of its own account and admission in force."""

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from deploy.images.programs import binary
from remediator.cli.janitor import LEASE
from remediator.clock import SYSTEM
from remediator.core.idle_policy import IdlePolicy, IdleTicket, JanitorMode
from remediator.core.owner_work import Notice
from remediator.janitor.directory import Directory
from remediator.janitor.idle import reader
from remediator.janitor.idle.nvml import NodesRead
from remediator.janitor.idle.one_pass import IdlePass
from remediator.janitor.idle.policy_report import PolicyReport
from remediator.janitor.idle.sources import Sources
from remediator.janitor.one_pass import OnePass
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.owner_tickets import OwnerTickets
from remediator.janitor.pass_report import Report
from remediator.janitor.pods import PodWatch
from remediator.janitor.rules import read
from remediator.janitor.selection import Selection
from remediator.janitor.settings import JanitorSettings, Terms
from remediator.janitor.writer import Writer
from remediator.kube import api
from remediator.kube.runtime.elector import Elector
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.http import HttpTransport
from tests.cluster.control_plane import ControlPlane
from tests.cluster.rights.granted import JANITOR, unused
from tests.contract.test_janitor_manifests import option
from tests.harness.kinds import CONFIG_MAPS, NAMESPACES, PODS, SECRETS, Object, plain
from tests.harness.waiting import PATIENCE, until
from tests.remediator.janitor.idle_place import Asked, reference

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
ACCOUNT = "system:serviceaccount:remediator-system:remediator-janitor"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:remediator-system")
OLD = {"metadata": {"annotations": {"janitor/expires": "2020-01-01"}}}
KINDS = Selection(include_resources=frozenset(option("--include-resources").split(",")))
CLAIMS = """rules:
- {id: c, resources: [persistentvolumeclaims], jmespath: "_context.pvc_is_not_mounted", ttl: 1s}
"""
Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(controllers=False, scheduler=False, kwok=False, audit=True) as made:
        yield made


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane) -> Kubectl:
    """Run kubectl as administrator, with deploy/janitor applied."""

    def run(*args: str, stdin: object = None) -> str:
        command = [str(binary("kubectl")), "--kubeconfig", str(plane.kubeconfig), *args]
        text = None if stdin is None else json.dumps(stdin)
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("create", "namespace", "remediator-system")
    run("apply", "--validate=strict", "-k", str(ROOT / "deploy" / "janitor"))
    run("create", "namespace", "team")
    return run


def made(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "team", **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, **fields}


async def a_pass(client: Client, **settings: Any) -> Report:
    now = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    return await OnePass(
        client, JanitorSettings(JanitorMode.ENFORCE, selection=KINDS, **settings), Writer(client), now
    ).run()


async def test_with_its_own_rights_it_tells_deletes_and_changes_nothing_else(
    plane: ControlPlane, kubectl: Kubectl
) -> None:
    spec = {"containers": [{"name": "m", "image": "registry.invalid/x"}], "automountServiceAccountToken": False}
    kubectl("create", "serviceaccount", "default", "-n", "team")
    kubectl("create", "configmap", "kube-root-ca.crt", "-n", "kube-system")
    kubectl("create", "-f", "-", stdin=made("Pod", "old", spec=spec, **OLD))
    kubectl("create", "-f", "-", stdin=made("ConfigMap", "old", **OLD))
    kubectl("create", "-f", "-", stdin=made("Secret", "old", **OLD))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    kubectl("create", "-f", "-", stdin=made("PersistentVolumeClaim", "unused", spec=claim))
    transport = await HttpTransport.from_kubeconfig(plane.kubeconfig_for(ACCOUNT, GROUPS))
    client = Client(transport)
    try:
        await _until_admission_holds(client)
        told = await a_pass(client, terms=Terms(notice=timedelta(hours=1)))
        assert told.problems == []
        assert (told.totals[JanitorOutcome.TOLD], told.totals[JanitorOutcome.FAILED]) == (2, 0), list(told.rendered())
        report = await a_pass(client, rules=read(CLAIMS))
        assert report.problems == []
        assert (report.totals[JanitorOutcome.DELETED], report.totals[JanitorOutcome.FAILED]) == (3, 0), list(
            report.rendered()
        )
        assert "old" not in kubectl("get", "configmaps", "-n", "team", "-o", "name")
        for kind, name, where in (
            (CONFIG_MAPS, "kube-root-ca.crt", "kube-system"),
            (NAMESPACES, "remediator-system", ""),
        ):
            with pytest.raises(errors.ApiError, match="nothing of the cluster itself and of Remediator"):
                await client.delete(kind, name, namespace=where)
        with pytest.raises(errors.Forbidden):
            await client.get(SECRETS, "old", namespace="team")
        with pytest.raises(errors.Forbidden):
            await client.create(PODS, made("Pod", "new", spec=spec), namespace="team")
    finally:
        await transport.close()
    events = json.loads(kubectl("get", "events", "-n", "team", "-o", "json"))["items"]
    assert {event["reason"] for event in events} == {"DeleteNotification", "ExpiryTimeReached", "TimeToLiveExpired"}


async def test_with_its_own_rights_it_suspends_scales_and_deletes_what_is_idle_and_changes_nothing_else(
    plane: ControlPlane, kubectl: Kubectl
) -> None:
    kubectl("apply", "-f", str(ROOT / "deploy" / "crds" / "idlepolicies.yaml"))
    kubectl("wait", "--for=condition=Established", "crd/idlepolicies.remediator.dev", "--timeout=30s")
    kubectl("create", "namespace", "research")
    kubectl("create", "serviceaccount", "default", "-n", "research")
    main = {"name": "m", "image": "registry.invalid/x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"containers": [main], "automountServiceAccountToken": False}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    job = {"apiVersion": "batch/v1", "spec": {"template": {"spec": {**spec, "restartPolicy": "Never"}}}}
    web = {
        "apiVersion": "apps/v1",
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }

    def create(body: dict[str, Any], owner: dict[str, Any] | None = None) -> dict[str, Any]:
        body["metadata"] |= {"namespace": "research"} | ({"ownerReferences": [reference(owner)]} if owner else {})
        created: dict[str, Any] = json.loads(kubectl("create", "-o", "json", "-f", "-", stdin=body))
        return created

    made_web = create(made("Deployment", "web", **web))
    made_set = create(made("ReplicaSet", "web-1", **web), made_web)
    dns = made("Deployment", "dns", **web)
    dns["metadata"]["namespace"] = "kube-system"
    kubectl("create", "-f", "-", stdin=dns)
    owners = {"train-0": create(made("Job", "train", **job)), "web-1-x": made_set, "shell": None}
    started = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
    for name, owner in owners.items():
        create(made("Pod", name, spec=spec, metadata={"labels": {"a": "b", "owner": "alice"}}), owner)
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps(started))
        kubectl("patch", "pod", name, "-n", "research", *patch)
    actions = ["Suspend", "Scale", "Delete"]
    policy = {"mode": "Enforce", "namespaces": ["research"], "actions": actions}
    given = {
        "apiVersion": "remediator.dev/v1alpha1",
        "kind": "IdlePolicy",
        "metadata": {"name": "gpus"},
        "spec": policy,
    }
    kubectl("create", "-f", "-", stdin=given)
    source = Asked("research")
    source.pods = dict.fromkeys(owners, (0, 1, 120))
    transport = await HttpTransport.from_kubeconfig(plane.kubeconfig_for(ACCOUNT, GROUPS))
    client = Client(transport)
    now = datetime.now(UTC).replace(microsecond=0)
    try:

        async def idle(hours: float) -> PolicyReport:
            settings, at = JanitorSettings(JanitorMode.ENFORCE), now + timedelta(hours=hours)
            (report,) = await IdlePass(client, settings, Sources(source), Writer(client), at).run()
            return report

        kubectl("create", "-f", "-", stdin=made("ConfigMap", "old"))
        await _until_admission_holds(client)
        told = await idle(0)
        assert told.reasons.total() == told.count(JanitorOutcome.TOLD) == 3, list(told.rendered())
        done = await idle(4.1)
        outcomes = {line.what: line.outcome for line in done.lines}
        assert outcomes == {
            "jobs/research/train": JanitorOutcome.SUSPENDED,
            "deployments/research/web": JanitorOutcome.SCALED,
            "pods/research/shell": JanitorOutcome.DELETED,
        }, list(done.rendered())
        jobs, webs = (plain_of("batch", "jobs", "Job"), plain_of("apps", "deployments", "Deployment"))
        only = "the janitor may change nothing of an object but annotations, suspend Jobs, and scale to 0"
        for kind, name, change in (
            (jobs, "train", {"suspend": False}),
            (jobs, "train", {"suspend": True, "backoffLimit": 1}),
            (webs, "web", {"replicas": 3}),
            (webs, "web", {"replicas": 0, "paused": True}),
        ):
            with pytest.raises(errors.ApiError, match=only):
                await client.patch(kind, name, {"spec": change}, namespace="research")
        with pytest.raises(errors.ApiError, match=only):
            await client.patch(webs, "dns", {"spec": {"replicas": 0}}, namespace="kube-system")
    finally:
        await transport.close()
    scaled = json.loads(kubectl("get", "deployment", "web", "-n", "research", "-o", "json"))
    assert scaled["spec"]["replicas"] == 0
    assert scaled["metadata"]["annotations"]["remediator.dev/idle-replicas"] == "3"
    suspended = json.loads(kubectl("get", "job", "train", "-n", "research", "-o", "json"))
    assert suspended["spec"]["suspend"] is True


async def test_no_right_is_given_that_it_does_not_use(plane: ControlPlane, kubectl: Kubectl) -> None:
    """It leads, tells of one object of each kind and deletes it, and looks at GPUs that a ReplicaSet's Pod holds."""
    for kinds in ("idlepolicies", "tickets"):
        kubectl("apply", "-f", str(ROOT / "deploy" / "crds" / f"{kinds}.yaml"))
        kubectl("wait", "--for=condition=Established", f"crd/{kinds}.remediator.dev", "--timeout=30s")
    kubectl("create", "namespace", "used")
    kubectl("create", "serviceaccount", "default", "-n", "used")
    main = {"name": "m", "image": "registry.invalid/x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"containers": [main], "automountServiceAccountToken": False}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    pods = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}
    job = {"template": {"spec": {**spec, "restartPolicy": "Never"}}}
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "ConfigMap": ("v1", {}),
        "Service": ("v1", {"spec": {"ports": [{"port": 80}]}}),
        "PersistentVolumeClaim": ("v1", {"spec": claim}),
        "DaemonSet": ("apps/v1", {"spec": pods}),
        "Deployment": ("apps/v1", {"spec": pods}),
        "StatefulSet": ("apps/v1", {"spec": pods}),
        "Job": ("batch/v1", {"spec": job}),
        "CronJob": ("batch/v1", {"spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": job}}}),
        "Namespace": ("v1", {}),
        "Pod": ("v1", {"spec": spec}),
    }

    def create(kind: str, version: str, old: bool = True, **fields: Any) -> dict[str, Any]:
        body = made(kind, f"old-{kind.lower()}", **fields)
        body |= {"apiVersion": version}
        body["metadata"] |= {"namespace": "used", "annotations": OLD["metadata"]["annotations"] if old else {}}
        if kind == "Namespace":
            del body["metadata"]["namespace"]
        created: dict[str, Any] = json.loads(kubectl("create", "-o", "json", "-f", "-", stdin=body))
        return created

    for kind, (version, fields) in kinds.items():
        create(kind, version, **fields)
    owner = create("ReplicaSet", "apps/v1", old=False, spec=pods)
    held = made("Pod", "held", spec=spec)
    held["metadata"] |= {"namespace": "used", "labels": {"a": "b"}, "ownerReferences": [reference(owner)]}
    kubectl("create", "-f", "-", stdin=held)
    policy = {"apiVersion": "remediator.dev/v1alpha1", "kind": "IdlePolicy", "metadata": {"name": "used"}}
    kubectl("create", "-f", "-", stdin=policy | {"spec": {"namespaces": ["used"]}})
    transport = await HttpTransport.from_kubeconfig(plane.kubeconfig_for(ACCOUNT, GROUPS))
    client = Client(transport)
    try:

        async def lead() -> None:
            await a_pass(client, terms=Terms(notice=timedelta(hours=1)))
            await _a_watch_says_what_pages_say(client)
            await a_pass(client)
            now = datetime.now(UTC)
            await IdlePass(client, JanitorSettings(), Sources(Asked("used")), Writer(client), now).run()
            await NodesRead(client).of({"gone"}, anew=True)
            await _tickets_are_used(client, kubectl, now)
            await until(lambda: not unused("remediator-janitor", plane.audited(), JANITOR), 60)

        async with asyncio.timeout(90):
            await Elector(client, LEASE, "remediator-system", "test", SYSTEM).run(lead)
    finally:
        await transport.close()


async def _a_watch_says_what_pages_say(client: Client) -> None:
    """Of Pods of several namespaces, one of them overdue, and what IdlePolicies would look at of them."""
    settings, now = JanitorSettings(selection=KINDS), datetime.now(UTC)
    pods = PodWatch(client, settings)
    watching = asyncio.create_task(pods.run())
    try:
        await pods.listed()
        assert pods.whole()
        by_pages, by_watch = [
            await OnePass(client, settings, Writer(client), now, pods=known).run() for known in (None, pods)
        ]
        policies, _ = await reader.policies(client)
        held = [await reader.holdings(client, policies, KINDS, set(), known) for known in (None, pods)]
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    assert list(by_watch.rendered()) == list(by_pages.rendered())
    assert "pods/used/old-pod" in {line.what for line in by_watch.lines[JanitorOutcome.DELETED]}
    shown = [{each.uid: [pod.uid for pod in each.pods] for every in one.values() for each in every} for one in held]
    assert shown[0] == shown[1]


async def test_with_its_own_rights_it_tells_owners_of_pods_that_restart_or_wait_and_deletes_them_after_the_grace(
    plane: ControlPlane, kubectl: Kubectl
) -> None:
    kubectl("apply", "-f", str(ROOT / "deploy" / "crds" / "idlepolicies.yaml"))
    kubectl("wait", "--for=condition=Established", "crd/idlepolicies.remediator.dev", "--timeout=30s")
    kubectl("create", "namespace", "stuck")
    kubectl("create", "serviceaccount", "default", "-n", "stuck")
    env = [{"name": "TOKEN", "value": "hunter2"}]
    spec = {"containers": [{"name": "m", "image": "registry.invalid/x", "env": env}]}
    spec |= {"automountServiceAccountToken": False}
    times = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:30Z"}
    loop = {"name": "m", "image": "", "imageID": "", "ready": False, "restartCount": 9}
    loop |= {
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 3, **times}},
    }
    unfit = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/0 nodes are available.",
    }
    statuses = {
        "loops": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [loop]},
        "waits": {"phase": "Pending", "conditions": [unfit | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    }
    for name, status in statuses.items():
        body = made("Pod", name, spec=spec)
        body["metadata"]["namespace"] = "stuck"
        kubectl("create", "-f", "-", stdin=body)
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
        kubectl("patch", "pod", name, "-n", "stuck", *patch)

    def policy(name: str, **fields: Any) -> dict[str, Any]:
        given = {"mode": "Enforce", "namespaces": ["stuck"], "idleFor": "10m", "actions": ["Delete"], **fields}
        meta = {"name": name}
        return {"apiVersion": "remediator.dev/v1alpha1", "kind": "IdlePolicy", "metadata": meta, "spec": given}

    for finds in ("Restarts", "Pending"):
        kubectl("create", "-f", "-", stdin=policy(finds.lower(), finds=finds))
    with pytest.raises(AssertionError, match="alert must be given for finds Alert, and only for it"):
        kubectl("create", "-f", "-", stdin=policy("wrong", finds="Alert"))
    with pytest.raises(AssertionError, match="signals go with finds IdleGPUs and IdleCPU only"):
        kubectl("create", "-f", "-", stdin=policy("wrong", finds="Pending", signals=[{"series": "up"}]))
    transport = await HttpTransport.from_kubeconfig(plane.kubeconfig_for(ACCOUNT, "system:serviceaccounts"))
    client, now = Client(transport), datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)

    async def outcomes(hours: float) -> dict[str, JanitorOutcome]:
        at = now + timedelta(hours=hours)
        reports = await IdlePass(client, JanitorSettings(JanitorMode.ENFORCE), Sources(), Writer(client), at).run()
        named = {"restarts", "pending"}
        return {line.what: line.outcome for each in reports if each.policy.name in named for line in each.lines}

    try:
        assert await outcomes(0) == {"pods/stuck/loops": JanitorOutcome.TOLD, "pods/stuck/waits": JanitorOutcome.TOLD}
        listed = json.loads(kubectl("get", "events", "-n", "stuck", "-o", "json"))["items"]
        messages = [event["message"] for event in listed]
        assert await outcomes(4.1) == {
            "pods/stuck/loops": JanitorOutcome.DELETED,
            "pods/stuck/waits": JanitorOutcome.DELETED,
        }
    finally:
        await transport.close()
    loops, waits = sorted(messages)
    assert "loops: m has restarted 9 times; last exit: code 3 after 30s, " in loops
    assert loops.endswith("container m: image registry.invalid/x, env TOKEN")
    assert waits.startswith(
        "waits: Pending for 1h: Unschedulable: 0/0 nodes are available.; pods/waits will be deleted"
    )


async def _tickets_are_used(client: Client, kubectl: Kubectl, now: datetime) -> None:
    """It makes the Ticket of an owner, keeps what a comment asked for there, and may write nothing else of Tickets."""
    policy = IdlePolicy("used", ("used",), ticket=IdleTicket.EACH_OWNER)
    idle = PolicyReport(policy, enforces=True)
    place = "pods", "used", "held", "uid", "alice"
    idle.standing["uid"] = Notice("used", "IdleGPUs", *place, now, now + timedelta(hours=4), "1 GPU idle")
    report = Report(JanitorMode.ENFORCE, now, idle=[idle])

    async def a_look() -> list[str]:
        tickets = OwnerTickets(client, Writer(client), now, lambda: True)
        await tickets.keep()
        await tickets.write(report, Directory())
        return tickets.problems

    problems: list[str] = []

    async def looked() -> bool:
        problems[:] = await a_look()
        return "storage is (re)initializing" not in str(problems)

    await until(looked)  # for a moment after the kind was made its storage is not there
    assert problems == []
    (ticket,) = json.loads(kubectl("get", "tickets", "-l", "remediator.dev/about=Owner", "-o", "json"))["items"]
    name, stamp = ticket["metadata"]["name"], (now + timedelta(hours=8)).strftime("%Y-%m-%dT%H:%M:%SZ")
    keep = {"target": "pods/used/held", "until": stamp, "setBy": "github:alice"}
    for wrong in (
        {"metadata": {"name": "n"}, "spec": {"subject": {"kind": "Node", "nodeName": "n"}}},
        {"metadata": {"name": "o"}, "spec": {"subject": {"kind": "Owner", "ownerName": "o"}, "keeps": [keep]}},
    ):
        with pytest.raises(errors.ApiError, match="only Tickets of the kind Owner, and may add nothing to keeps"):
            await client.create(plain(api.TICKET), {"apiVersion": api.API_VERSION, "kind": "Ticket", **wrong})
    kubectl("patch", "ticket", name, "--type=merge", "-p", json.dumps({"spec": {"keeps": [keep]}}))
    assert await a_look() == []
    pod = json.loads(kubectl("get", "pod", "held", "-n", "used", "-o", "json"))
    notes = {key: value for key, value in pod["metadata"]["annotations"].items() if "/keep-" in key}
    assert notes == {"remediator.dev/keep-until": stamp, "remediator.dev/keep-set-by": f"github:alice {stamp}"}
    left = json.loads(kubectl("get", "ticket", name, "-o", "json"))["spec"]
    assert (left.get("keeps", []), len(left["alerts"])) == ([], 1)


def plain_of(group: str, plural: str, name: str) -> Kind[Object]:
    return Kind(group, "v1", plural, name, Object, namespaced=True)


async def _until_admission_holds(client: Client) -> None:
    """Policies take effect some seconds after they are made; until then this write goes through."""
    end, answer = time.monotonic() + 60 * PATIENCE, ""
    while "the janitor may change nothing of an object but annotations" not in answer:
        assert time.monotonic() < end, answer
        answer = await _answer(client, {"data": {"a": str(time.monotonic())}})
    other = await _answer(client, {"metadata": {"annotations": {"other": "x"}}})
    assert "only the annotations janitor/notified" in other


async def _answer(client: Client, change: dict[str, Any]) -> str:
    try:
        await client.patch(CONFIG_MAPS, "old", change, namespace="team")
    except errors.ApiError as refused:
        return refused.message
    return "written"

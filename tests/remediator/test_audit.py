"""Every write that touches a node has its line in the log: whose word, which case, what changed, how it ended."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from remediator.app import Replica
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.audit import QUIET, AuditOutcome, Authority, Mandate, Write, line, quiet, word
from remediator.core.case import Case, Manual, SetBy
from remediator.kube.api import encode
from remediator.kube.api.decode.writes import place, renews, write
from remediator.kube.runtime import audited as audited_module
from remediator.kube.runtime.audited import AuditedTransport, Caches, on_behalf
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.settings import Settings
from remediator_sim.apiserver import EmbeddedServer
from tests.builders import a_case, a_node, a_pod, a_template, at
from tests.harness.cluster import MemoryCluster
from tests.harness.controller import ControllerHarness, controller_harness, until
from tests.harness.kinds import NODES, OPERATIONS, PODS, SECRETS
from tests.harness.replica import at_work

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs/logs.md"
Line = dict[str, Any]


@pytest.fixture
async def harness() -> AsyncIterator[ControllerHarness]:
    async with controller_harness() as made:
        yield made


def lines(logs: list[Any], **wanted: object) -> list[Line]:
    """The audit lines with these values."""
    found = [entry for entry in logs if entry["event"] == "audit"]
    return [entry for entry in found if all(entry[key] == value for key, value in wanted.items())]


def fields(entries: list[Line]) -> list[tuple[str, object, object]]:
    """What they say has changed: the field, its value before, and after."""
    return [(one["field"], one.get("before"), one["after"]) for entry in entries for one in entry["changes"]]


def replica(harness: ControllerHarness) -> Replica:
    """One that is another user to the server than the kubelets and people of the harness."""
    client = Client(harness.server.transport("controller"))
    return Replica(client, Settings(identity="one", listen="127.0.0.1:0"), SYSTEM)


async def repaired(harness: ControllerHarness) -> list[Any]:
    """The log of a controller that repairs one node by a policy, and reboots another as a user asks."""
    await harness.policy()
    await harness.node("gpu-1", "True")
    await harness.node("gpu-2")
    with capture_logs() as logs:
        async with at_work(replica(harness).run()):
            await until(lambda: harness.ended("gpu-1", "Recovered"))
            node = harness.look("gpu-2")
            asked = {"nodeName": "gpu-2", "nodeUID": node["metadata"]["uid"], "templateName": "reboot"}
            await harness.make(OPERATIONS, "by-hand", **asked, requestedBy="ann")
            await until(lambda: harness.ended("gpu-2", "Recovered"))
    return logs


@pytest.mark.slow
async def test_every_write_that_the_server_has_carried_out_has_one_line_or_a_reason_why_it_needs_none(
    harness: ControllerHarness,
) -> None:
    logs = await repaired(harness)
    done = [one for one in harness.server.audit if one.user == "controller"]
    assert len(done) > 40
    places = [(place(one.path), one.verb) for one in done]
    touched = Counter((where.resource, where.name) for where, _ in places if where.resource not in QUIET)
    said = Counter(
        (entry["resource"], "" if entry["verb"] == "create" else entry["name"])
        for entry in lines(logs, outcome="Done", program="controller")
    )
    assert said == touched
    assert {resource for resource, _ in touched} == {
        "nodes",
        "pods",
        "noderemediations.remediator.dev",
        "nodeoperations.remediator.dev",
        "nodedisruptionbudgets.remediator.dev",
    }


@pytest.mark.slow
async def test_a_line_says_on_whose_word_for_which_case_and_what_was_before(harness: ControllerHarness) -> None:
    logs = await repaired(harness)
    case = harness.cases("gpu-1")[0]["metadata"]
    written = lines(logs, resource="nodes", name="gpu-1", outcome="Done")
    (claim,) = [line for line in written if ("spec.unschedulable", False, True) in fields([line])]
    assert (claim["by"], claim["who"], claim["case"], claim["node"]) == ("Policy", "gpu-lost", case["name"], "gpu-1")
    assert ("spec.taints", [], [f"remediator.dev/case={case['uid']}:PreferNoSchedule"]) in fields([claim])
    assert ("metadata.annotations[remediator.dev/cordoned-by]", None, case["uid"]) in fields([claim])
    assert claim["version"] != ""
    (release,) = [line for line in written if ("spec.unschedulable", True, False) in fields([line])]
    assert (release["case"], release["by"]) == (case["name"], "Policy")
    made = [line["name"] for line in lines(logs, resource="pods", verb="create", node="gpu-1", outcome="Done")]
    gone = [line["name"] for line in lines(logs, resource="pods", verb="delete", node="gpu-1")]
    assert len(made) == 3
    assert set(gone) == set(made)
    of_user = lines(logs, node="gpu-2")
    assert {(line["by"], line["who"]) for line in of_user if line["resource"] != "nodeinventories"} == {("User", "ann")}


@pytest.mark.slow
async def test_all_lines_have_the_keys_of_their_page(harness: ControllerHarness) -> None:
    section = DOCS.read_text().partition("## The audit line")[2].partition("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    found = {tuple(key for key in line if key not in ("event", "log_level")) for line in lines(await repaired(harness))}
    assert found == {tuple(key for key in documented if key not in ("event", "level", "timestamp"))}


@pytest.mark.slow
async def test_a_step_of_an_operation_is_one_line_with_its_node_its_case_and_a_reason(
    harness: ControllerHarness,
) -> None:
    logs = [entry for entry in await repaired(harness) if entry["event"] == "operation"]
    steps = [(entry["node"], entry["case"], entry["phase"], entry["reason"]) for entry in logs]
    cases = {node: harness.cases(node)[0]["metadata"]["name"] for node in ("gpu-1", "gpu-2")}
    for node, case in cases.items():
        of_case = [(phase, reason) for where, name, phase, reason in steps if (where, name) == (node, case)]
        assert of_case[-2:] == [("Operating", "Operating"), ("Succeeded", "Done")]
    told = Counter((entry["name"], entry["phase"], entry["message"]) for entry in logs)
    assert set(told.values()) == {1}, told
    assert {(where, name) for where, name, *_ in steps} - set(cases.items()) <= {("gpu-2", "")}  # no case is open yet
    documented = DOCS.read_text().partition("| `operation` |")[2].partition("|")[0]
    assert all(set(re.findall(r"`(\w+)`", documented)) == set(entry) - {"event", "log_level"} for entry in logs)


async def test_a_hold_that_stays_is_one_line_however_many_passes_see_it(harness: ControllerHarness) -> None:
    await harness.policy(mode="DryRun")
    await harness.node("gpu-1", "True")
    with capture_logs() as logs:
        async with at_work(replica(harness).run()):
            await until(lambda: harness.reasons("gpu-1") == ["DryRun"])
            for number in range(20):
                await harness.change(NODES, "gpu-1", metadata={"labels": {"seen": str(number)}})
            await harness.quiet()
    decided = [entry for entry in logs if entry["event"] == "case"]
    assert [(entry["node"], entry["reason"]) for entry in decided] == [("gpu-1", "DryRun")]
    assert decided[0]["name"] == harness.cases("gpu-1")[0]["metadata"]["name"]


def test_the_test_of_an_idle_node_has_its_node_and_is_made_and_deleted_by_its_policy() -> None:
    pod = encode.idle_test_pod(a_template("gpu-check"), "idle-test-1", "idle-test-failed", a_node("gpu-17"), at(0))
    made = write("POST", "/api/v1/namespaces/remediator-operations/pods", json.dumps(pod).encode())
    known = a_pod(node="", idle_test="idle-test-failed", tested="gpu-17")
    gone = write("DELETE", "/api/v1/namespaces/remediator-operations/pods/idle-test-1", b"", pod=known)
    said = Mandate(Authority.POLICY, "idle-test-failed")
    assert [(each.node, each.word) for each in (made, gone)] == [("gpu-17", said)] * 2


def test_no_program_writes_past_the_log() -> None:
    """Only `Client` sends anything but reads; a program that runs by itself has a client whose transport is audited."""
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "remediator").rglob("*.py"))}
    sends = re.compile(r"transport\.request\((?!\s*\"GET\")")
    assert {name for name, text in sources.items() if sends.search(text)} == {
        "remediator/kube/wire/client.py",
        "remediator/kube/runtime/skew.py",  # hands on to the transport below
    }
    plain = re.compile(r"\bClient\((?!audited|AuditedTransport)\w")
    assert {name for name, text in sources.items() if plain.search(text)} == {
        "remediator/cli/common.py",  # commands that a user types
        "remediator/cli/keep.py",
        "remediator/cli/uninstall.py",  # a user types it
        "remediator/kube/runtime/elector.py",  # over the replica's transport
        "remediator/process.py",  # its replica audits
        "remediator/web/replay.py",  # reaches no server
    }


@pytest.mark.parametrize("resource", QUIET)
def test_a_write_without_a_line_has_its_reason_in_the_page(resource: str) -> None:
    assert f"| `{resource}` | {QUIET[resource]} |" in DOCS.read_text()


# --- what becomes of a write -----------------------------------------------------------------------------------------


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


def audited(server: EmbeddedServer) -> Client:
    return Client(AuditedTransport(server.transport(), "controller"))


CORDON = {"spec": {"unschedulable": True}}


@pytest.mark.parametrize(
    ("status", "outcome", "why"),
    [
        (409, "Retry", "409 Conflict"),
        (429, "Retry", "429 TooManyRequests"),
        (403, "GaveUp", "403 Forbidden"),
        (422, "GaveUp", "422 Invalid"),
        (500, "Unknown", "500 InternalError"),
    ],
)
async def test_a_write_that_is_refused_says_how(cluster: MemoryCluster, status: int, outcome: str, why: str) -> None:
    await cluster.client.create(NODES, {"metadata": {"name": "gpu-1"}})
    cluster.server.faults.refuse(status, reason=why.partition(" ")[2], when=lambda asked: asked.method == "PATCH")
    with capture_logs() as logs, pytest.raises(errors.ApiError):
        await audited(cluster.server).patch(NODES, "gpu-1", CORDON)
    (line,) = lines(logs)
    assert (line["outcome"], line["why"], line["name"]) == (outcome, why, "gpu-1")


async def test_what_is_refused_again_and_again_has_one_line_until_the_answer_is_another(cluster: MemoryCluster) -> None:
    """A budget that holds a Pod is asked every 30 seconds; in between the server itself sheds load once."""
    await cluster.client.create(NODES, {"metadata": {"name": "gpu-1"}})
    client = audited(cluster.server)
    with capture_logs() as logs:
        for status, times in ((429, 20), (409, 1), (429, 5)):
            cluster.server.faults.refuse(status, reason="Said", when=lambda asked: asked.method == "PATCH", times=times)
            for _ in range(times):
                with pytest.raises(errors.ApiError):
                    await client.patch(NODES, "gpu-1", CORDON)
        await client.patch(NODES, "gpu-1", CORDON)
    whys = [(line["outcome"], line["why"]) for line in lines(logs)]
    assert whys == [("Retry", "429 Said"), ("Retry", "409 Said"), ("Retry", "429 Said"), ("Done", "")]


CONTAINER = {"name": "main", "image": "train"}


async def test_a_pod_that_a_finalizer_of_others_keeps_is_deleted_in_one_line(cluster: MemoryCluster) -> None:
    kept = {"metadata": {"name": "train", "finalizers": ["example.com/kept"]}, "spec": {"containers": [CONTAINER]}}
    await cluster.client.create(PODS, kept, namespace="default")
    client = audited(cluster.server)
    with capture_logs() as logs:
        for _ in range(10):
            await client.delete(PODS, "train", namespace="default")
        await cluster.client.patch(PODS, "train", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
        await client.delete(PODS, "train", namespace="default")
        await cluster.client.patch(PODS, "train", {"metadata": {"finalizers": None}}, namespace="default")
        with pytest.raises(errors.NotFound):
            await client.delete(PODS, "train", namespace="default")
    assert [line["why"] for line in lines(logs)] == ["", "", "404 NotFound"]


async def test_each_object_of_one_name_that_is_deleted_has_its_line(cluster: MemoryCluster) -> None:
    client = audited(cluster.server)
    with capture_logs() as logs:
        for _ in range(2):
            made = {"metadata": {"name": "train"}, "spec": {"containers": [CONTAINER]}}
            await cluster.client.create(PODS, made, namespace="default")
            await client.delete(PODS, "train", namespace="default")
    assert [line["outcome"] for line in lines(logs)] == ["Done", "Done"]


async def test_a_write_whose_answer_is_lost_is_unknown(cluster: MemoryCluster) -> None:
    await cluster.client.create(NODES, {"metadata": {"name": "gpu-1"}})
    cluster.server.faults.lose(when=lambda asked: asked.method == "PATCH")
    with capture_logs() as logs, pytest.raises(errors.Unavailable):
        await audited(cluster.server).patch(NODES, "gpu-1", CORDON)
    (line,) = lines(logs)
    assert (line["outcome"], line["why"], line["log_level"]) == ("Unknown", "no answer", "warning")


async def test_gone_already_and_there_already_are_done(cluster: MemoryCluster) -> None:
    client = audited(cluster.server)
    with capture_logs() as logs:
        with pytest.raises(errors.NotFound):
            await client.delete(NODES, "gpu-1")
        await client.create(NODES, {"metadata": {"name": "gpu-2"}})
        with pytest.raises(errors.AlreadyExists):
            await client.create(NODES, {"metadata": {"name": "gpu-2"}})
    assert [(line["verb"], line["outcome"], line["why"]) for line in lines(logs)] == [
        ("delete", "Done", "404 NotFound"),
        ("create", "Done", ""),
        ("create", "Done", "409 AlreadyExists"),
    ]


async def test_what_a_secret_holds_and_what_others_objects_hold_is_in_no_line(cluster: MemoryCluster) -> None:
    canary = "canary-of-a-write-41d7"
    client = audited(cluster.server)
    with capture_logs() as logs:
        await client.create(SECRETS, {"metadata": {"name": "key"}, "stringData": {"a": canary}}, namespace="default")
        await client.patch(SECRETS, "key", {"stringData": {"a": canary + "x"}}, namespace="default")
        told = [{"name": "A", "value": canary}]
        body = {"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "a", "image": "a", "env": told}]}}
        await client.create(PODS, body, namespace="default")
        note = {"metadata": {"annotations": {"team/token": canary, names.KEEP_UNTIL: "2026-11-29T00:00:00Z"}}}
        await client.patch(PODS, "pod", note, namespace="default")
    assert len(lines(logs)) == 4
    assert canary not in str(logs)
    assert [field for field in fields(lines(logs)) if field[0].startswith("metadata.annotations")] == [
        ("metadata.annotations[team/token]", None, "(not shown)"),
        (f"metadata.annotations[{names.KEEP_UNTIL}]", None, "2026-11-29T00:00:00Z"),
    ]


# --- on whose word ---------------------------------------------------------------------------------------------------

BY_HAND = Manual("reboot-gpu-1-x7", "uid", "reboot", {}, "ann")
ASKED = Manual("nvsentinel-request-0a1b", "uid", "reboot", {}, "NVSentinel GpuXid", "nvsentinel")
NAMED_SO = Manual("my-request-of-today", "uid", "reboot", {}, "ann")


@pytest.mark.parametrize(
    ("case", "mandate"),
    [
        (None, ("Product", "", "")),
        (a_case(policy="gpu-lost"), ("Policy", "gpu-lost", "")),
        (a_case(policy="gpu-lost", approved=True, set_by=SetBy(approved="bob")), ("Policy", "gpu-lost", "bob")),
        (a_case(policy="gpu-lost", release=True, set_by=SetBy(release="bob")), ("User", "bob", "")),
        (a_case(manual=BY_HAND), ("User", "ann", "")),
        (a_case(manual=ASKED), ("Request", "NVSentinel GpuXid", "")),
        (a_case(manual=NAMED_SO), ("User", "ann", "")),
    ],
)
def test_a_case_is_on_the_word_of_who_has_asked_for_it_and_is_released_on_that_of_who_does(case, mandate) -> None:  # type: ignore[no-untyped-def]
    assert word(case) == mandate


async def test_what_is_written_on_the_word_of_somebody_says_so_and_nothing_after_it(cluster: MemoryCluster) -> None:
    await cluster.client.create(NODES, {"metadata": {"name": "gpu-1"}})
    client = audited(cluster.server)
    with capture_logs() as logs:
        with on_behalf(Mandate(Authority.USER, "github:ann")):
            await client.patch(NODES, "gpu-1", CORDON)
        await client.patch(NODES, "gpu-1", CORDON)
    assert [(line["by"], line["who"]) for line in lines(logs)] == [("User", "github:ann"), ("Product", "")]


@pytest.mark.parametrize("breaks", ["what is known", "the log"])
async def test_no_write_hangs_on_its_line(breaks, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    cluster = MemoryCluster()
    client = Client(AuditedTransport(cluster.client.transport, "controller"))

    def broken(*args: object, **kwargs: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(audited_module, "write" if breaks == "what is known" else "line", broken)
    await client.create(NODES, {"metadata": {"name": "gpu-1"}})
    assert (await client.get(NODES, "gpu-1"))["metadata"]["name"] == "gpu-1"


def test_a_line_is_of_a_case_that_the_object_is_about_not_of_one_that_a_node_or_a_tenant_names() -> None:
    """The Pod of a tenant with the name of a case, and a node that wrote the uid of another node's case on itself."""
    case = a_case("gpu-1-gpu-lost-1", node="gpu-1")
    caches = Caches(Known(), Known(case), Known())  # type: ignore[arg-type]
    binding = Write("create", "pods/binding", "team", case.name)
    node = Write("patch", "nodes", "", "gpu-2", node="gpu-2", uids=(case.uid,))
    assert [caches.case(each) for each in (binding, node)] == [None, None]
    assert caches.case(replace(node, name="gpu-1", node="gpu-1")) is case
    assert caches.case(Write("patch", "noderemediations.remediator.dev", "", case.name)) is case


def test_the_pod_of_a_drain_that_runs_elsewhere_is_of_the_case_and_the_node_that_it_drains_also_at_its_end() -> None:
    case = a_case("gpu-1-gpu-lost-1", node="gpu-1", policy="gpu-lost")
    caches = Caches(Known(), Known(case), Known())  # type: ignore[arg-type]
    pod = a_pod(node="system-1", case_uid=case.uid)
    path = "/api/v1/namespaces/remediator-operations/pods/gpu-1-drain-1"
    for written in (
        write("PATCH", path, b'{"metadata": {"finalizers": null}}', pod=pod),
        write("DELETE", path, b"", pod=pod),
    ):
        said = line("controller", written, caches.case(written), AuditOutcome.DONE)
        found = (said["node"], said["case"], said["by"], said["who"])
        assert found == ("gpu-1", "gpu-1-gpu-lost-1", "Policy", "gpu-lost")


class Known:
    """A cache of cases."""

    def __init__(self, *cases: Case) -> None:
        self._cases = cases

    def get(self, name: str) -> Case | None:
        return next((case for case in self._cases if case.name == name), None)

    def by(self, index: str, value: str) -> list[Case]:
        return [case for case in self._cases if (case.uid if index == "uid" else case.node) == value]


def lease_request(name: str, method: str = "PUT", acquired: str = "a", renewed: str = "a") -> tuple[str, str, bytes]:
    """Method, path and body of a write of a Lease, which names its holder."""
    spec = {"holderIdentity": "remediator/gpu-1-gpu-lost", "acquireTime": acquired, "renewTime": renewed}
    path = f"/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases/{'' if method == 'POST' else name}"
    body = b"{}" if method == "DELETE" else json.dumps({"metadata": {"name": name}, "spec": spec}).encode()
    return method, path.rstrip("/"), body


def lease_write(*about: str, **times: str) -> Write:
    """What that changes."""
    return write(*lease_request(*about, **times))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_that_the_lease_of_a_node_is_taken_or_given_back_has_a_line_with_its_node(method: str) -> None:
    taken = lease_write("node-gpu-1", method)
    assert (quiet(taken), taken.repeats, taken.node, taken.name) == (False, False, "gpu-1", "node-gpu-1")
    told = [change.after for change in taken.changes if change.field == "spec.holderIdentity"]
    assert told == ([] if method == "DELETE" else ["remediator/gpu-1-gpu-lost"])


def test_that_it_is_renewed_and_who_leads_have_none() -> None:
    assert lease_write("node-gpu-1", renewed="b").repeats
    assert quiet(lease_write("remediator"))


@pytest.mark.parametrize(
    ("about", "renewed", "only_renews"),
    [(("node-gpu-1",), "b", True), (("node-gpu-1",), "a", False), (("node-gpu-1", "DELETE"), "b", False)],
)
def test_a_renewal_is_known_before_anything_else_is_read_of_it(
    about: tuple[str, ...], renewed: str, only_renews
) -> None:
    _, path, body = lease_request(*about, renewed=renewed)
    assert renews(place(path), body) is only_renews
    assert not renews(place(path.replace("leases", "pods")), body)

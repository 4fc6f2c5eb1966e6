"""What people may do, by the roles and the admission policies of deploy/, on a real API server."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from deploy.images.programs import binary
from remediator.core import names
from remediator.kube import api
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.http import HttpTransport
from tests.cluster.control_plane import ControlPlane
from tests.cluster.servers import controller_of
from tests.contract.test_manifests import ROOT
from tests.harness.kinds import BUDGETS, CASES, NAMESPACES, NODES, OPERATIONS, POLICIES, TICKETS, Object
from tests.harness.waiting import until
from tests.remediator.kube.manifests.examples import manifest
from tests.remediator.test_cli import beside

pytestmark = pytest.mark.cluster

USERS = {"vera": "viewer", "olga": "operator", "oscar": "operator", "adam": "admin"}  # and their roles
READ = {"get", "list", "watch"}
WRITE = {"create", "patch", "update", "delete"}
VERBS = sorted(READ | WRITE | {"deletecollection"})
OURS = {kind.plural for kind in api.KINDS}
SYSTEM = "remediator-system"
# Per role, the verbs on each resource; on all that is not named here, none.
ALLOWED: dict[str, dict[str, set[str]]] = {
    "viewer": {},
    "operator": {
        "noderemediations": WRITE,
        "nodeoperations": {"create", "delete"},
        "nodeinventories": WRITE,
        "nodedisruptionbudgets": {"patch"},
        "remediationpolicies": {"patch"},
    },
    "admin": {
        **{plural: {*WRITE, "deletecollection"} for plural in OURS - {"nodeoperations"}},
        "nodeoperations": {"create", "delete", "deletecollection"},
        "noderemediations/finalizers": {"update"},
    },
}
READABLE = OURS | {"nodes", "pods", "namespaces", "events"}
ASKED = (
    *sorted(OURS),
    *sorted(f"{plural}/{part}" for plural in OURS for part in ("status", "finalizers")),
    *("nodes", "nodes/status", "pods", "pods/exec", "pods/log", "pods/eviction", "namespaces", "events", "secrets"),
    *("serviceaccounts", "serviceaccounts/token", "configmaps", "clusterroles.rbac.authorization.k8s.io"),
    "validatingadmissionpolicies.admissionregistration.k8s.io",
)
REVIEWS = Kind("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", Object)
LISTS = Kind("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", Object)
STAMPS = str(ROOT / "deploy/admission-stamps.yaml")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """An API server with everything of deploy/, and users with each of the roles for people."""
    with ControlPlane(controllers=False, scheduler=False, kwok=False) as plane:
        for step in (
            ("apply", "-k", str(ROOT / "deploy" / "crds")),
            ("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/name=remediator"),
            ("apply", "-k", str(ROOT / "deploy")),
            *(
                ("create", "clusterrolebinding", user, f"--clusterrole=remediator-{role}", f"--user={user}")
                for user, role in USERS.items()
            ),
        ):
            kubectl(plane, *step)
        yield plane


def kubectl(plane: ControlPlane, *args: str) -> None:
    """Run it as an administrator."""
    command = [str(binary("kubectl")), "--kubeconfig", str(plane.kubeconfig), *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), args


@asynccontextmanager
async def speaking(plane: ControlPlane, user: str, groups: tuple[str, ...] = ()) -> AsyncIterator[Client]:
    """A client of a user."""
    transport = await HttpTransport.from_kubeconfig(plane.kubeconfig_for(user, groups))
    try:
        yield Client(transport)
    finally:
        await transport.close()


@pytest.fixture
async def admin(plane: ControlPlane) -> AsyncIterator[Client]:
    async with speaking(plane, "root", ("system:masters",)) as client:
        yield client


@pytest.fixture
async def operator(plane: ControlPlane) -> AsyncIterator[Client]:
    async with speaking(plane, "olga") as client:
        yield client


@pytest.fixture
async def controller(plane: ControlPlane, admin: Client) -> AsyncIterator[Client]:
    """A client with the token of the controller's account."""
    async with controller_of(admin, plane.url, plane.ca_file) as client:
        yield client


async def refusal(work: Any) -> str:
    """What the server says against it; "" where it has done it."""
    try:
        await work
    except errors.ApiError as error:
        return error.message
    return ""


@pytest.mark.parametrize("user", ["vera", "olga", "adam"])
async def test_a_user_may_do_what_the_table_says_of_their_role_and_nothing_else(admin: Client, user: str) -> None:
    async def allowed(asked: str, verb: str, **where: str) -> bool:
        plural, _, sub = asked.partition("/")
        group = "remediator.dev" if plural in OURS else plural.partition(".")[2]
        attributes = {"group": group, "resource": plural.partition(".")[0], "subresource": sub, "verb": verb} | where
        review = {"spec": {"user": user, "resourceAttributes": attributes}}
        body = {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.name} | review
        return bool((await admin.create(REVIEWS, body))["status"]["allowed"])

    wanted = {
        asked: sorted(ALLOWED[USERS[user]].get(asked, set()) | (READ if asked in READABLE else set()))
        for asked in ASKED
    }
    found = {asked: [verb for verb in VERBS if await allowed(asked, verb)] for asked in ASKED}
    assert found == wanted
    pauses = [verb for verb in sorted(WRITE) if await allowed("namespaces", verb, name=SYSTEM)]
    assert pauses == ([] if user == "vera" else ["patch", "update"])


@pytest.mark.parametrize("user", ["vera", "olga", "adam"])
async def test_the_server_lists_of_a_user_what_the_table_says_and_nothing_else(plane: ControlPlane, user: str) -> None:
    """Its own list of what somebody may in our namespace: it has also what nobody thought of asking for."""

    async def listed(who: str) -> set[tuple[str, str, str]]:
        async with speaking(plane, who) as client:
            body = {"apiVersion": LISTS.api_version, "kind": LISTS.name, "spec": {"namespace": SYSTEM}}
            status = (await client.create(LISTS, body))["status"]
        assert not status["incomplete"], status
        return {
            (verb, resource, name)
            for rule in status["resourceRules"]
            for verb in rule["verbs"]
            for resource in rule["resources"]
            for name in rule.get("resourceNames") or ("",)
        }

    held = {asked: ALLOWED[USERS[user]].get(asked, set()) | READ for asked in READABLE}
    held |= {asked: verbs for asked, verbs in ALLOWED[USERS[user]].items() if asked not in READABLE}
    wanted = {(verb, asked, "") for asked, verbs in held.items() for verb in verbs} | {("get", "leases", "remediator")}
    wanted |= set() if user == "vera" else {(verb, "namespaces", SYSTEM) for verb in ("patch", "update")}
    assert await listed(user) - await listed("nobody") == wanted


def operation(name: str, **spec: Any) -> Object:
    """What a user asks for: an operation without a case."""
    return manifest("NodeOperation", name=name, **{"caseUID": None} | spec)


async def test_who_asks_for_an_operation_names_themselves_and_no_case(operator: Client, controller: Client) -> None:
    async def asked(client: Client, **spec: Any) -> str:
        return await refusal(client.create(OPERATIONS, operation("asked", **spec), query=[("dryRun", "All")]))

    remedy = "spec.requestedBy must be your own name: set it to olga"
    await until(lambda: _says(asked(operator), remedy))  # a new policy holds after a moment
    assert remedy in await asked(operator, requestedBy="oscar")
    assert await asked(operator, requestedBy="olga") == ""
    named = operation("gpu-17-reboot-0123456789", requestedBy="olga")
    refused = await refusal(operator.create(OPERATIONS, named, query=[("dryRun", "All")]))
    assert "names that end in 10 hexadecimal digits are those of the controller" in refused
    labelled = operation("asked", requestedBy="olga")
    labelled["metadata"]["labels"] = {names.ASKED_BY_LABEL: "nvsentinel"}
    refused = await refusal(operator.create(OPERATIONS, labelled, query=[("dryRun", "All")]))
    assert "the label remediator.dev/asked-by says which other controller asks; only the controller sets it" in refused
    told = await asked(operator, requestedBy="olga", caseUID="c1")
    assert "only the controller sets spec.caseUID; leave it out" in told
    assert await asked(controller, requestedBy="gpu-17-gpu-lost", caseUID="c1") == ""


# What a user decides about a case, and who stands beside it.
NAMED = (("hold", "holdSetBy"), ("release", "releaseSetBy"), ("approved", "approvedBy"), ("retry", "retrySetBy"))


async def _says(work: Any, text: str) -> bool:
    return text in await work


async def escalated(controller: Client, name: str) -> None:
    """A case that a person has."""
    await controller.create(CASES, manifest("NodeRemediation", name=name))
    await controller.patch(CASES, name, {"status": {"phase": "Escalated"}}, subresource="status")


@pytest.mark.parametrize(("field", "set_by"), NAMED)
async def test_who_sets_it_stands_beside_it_and_nobody_else_is_named(
    plane: ControlPlane, operator: Client, controller: Client, field: str, set_by: str
) -> None:
    name, on, off = f"by-{field}", *((1, 0) if field == "retry" else (True, False))
    await escalated(controller, name)
    try:
        async with speaking(plane, "oscar") as other:

            async def says(client: Client, **spec: Any) -> str:
                return await refusal(client.patch(CASES, name, {"spec": spec}))

            own = f"spec.{set_by} must be your own name where you set spec.{field}: set it to olga"
            kept = f"spec.{set_by} says who has set spec.{field}, which you do not change: leave it as it is"
            assert own in await says(operator, **{field: on, set_by: "oscar"})
            assert kept in await says(operator, **{set_by: "olga"})
            assert await says(operator, **{field: on}) == "", "where nothing fills names in, none need be written"
            assert kept in await says(operator, **{set_by: "olga"})
            assert await says(operator, **{field: off}) == ""
            assert await says(operator, **{field: on, set_by: "olga"}) == ""
            assert own.replace("olga", "oscar") in await says(other, **{field: off})
            assert kept in await says(other, **{set_by: "oscar"})
            assert kept in await says(other, **{set_by: None})
            assert await says(other, **{field: off, set_by: "oscar"}) == ""
            assert await says(controller, **{field: on}) == ""
    finally:
        await controller.delete(CASES, name)


async def test_nobody_releases_a_case_before_a_person_has_it(
    plane: ControlPlane, admin: Client, operator: Client, controller: Client
) -> None:
    """Not the controller either. The command line says so before it asks."""
    early = "gives back the node of an Escalated case, and this one is not Escalated"
    new = manifest("NodeRemediation", name="new", release=True)
    await until(lambda: _says(refusal(operator.create(CASES, new)), "which a new one is not; leave it out"))
    await controller.create(CASES, manifest("NodeRemediation", name="early", nodeName="gpu-17"))
    try:
        for phase in ("", "Held", "Draining", "Operating", "Verifying"):
            await controller.patch(CASES, "early", {"status": {"phase": phase or None}}, subresource="status")
            for who in (admin, operator, controller):
                assert early in await refusal(who.patch(CASES, "early", {"spec": {"release": True}})), phase
            assert await refusal(operator.patch(CASES, "early", {"spec": {"release": False, "hold": False}})) == ""
        said = await beside("release", "gpu-17", "--kubeconfig", plane.kubeconfig_for("olga", ()))
        assert "is Verifying, and only an Escalated case waits for this" in "".join(map(str, said)), said
        await controller.patch(CASES, "early", {"status": {"phase": "Escalated"}}, subresource="status")
        said = await beside("release", "gpu-17", "--kubeconfig", plane.kubeconfig_for("olga", ()))
        assert said == (0, "case early on gpu-17 is released: its node takes work again\n", "")
        again = {"status": {"message": "it ends"}}
        assert await refusal(controller.patch(CASES, "early", again, subresource="status")) == ""
    finally:
        await admin.delete(CASES, "early")


async def test_what_a_comment_asks_to_keep_is_written_by_the_controller_and_by_nobody_else(
    plane: ControlPlane, controller: Client
) -> None:
    name, subject = "alice", {"kind": "Owner", "ownerName": "alice"}
    keep = {"target": "pods/team/a", "until": "2026-01-10T09:00:00Z", "setBy": "github:ann"}
    asks = {"spec": {"keeps": [keep]}}
    async with speaking(plane, "adam") as administrator:
        forged = manifest("Ticket", name="forged", subject=subject, keeps=[keep])
        assert "spec.keeps says what comments ask for; leave it as it is" in await refusal(
            administrator.create(TICKETS, forged)
        )
        await administrator.create(TICKETS, manifest("Ticket", name=name, subject=subject))
        assert "leave it as it is" in await refusal(administrator.patch(TICKETS, name, asks))
        assert await refusal(controller.patch(TICKETS, name, asks)) == ""
        other = {"spec": {"keeps": [keep | {"setBy": "github:bob"}]}}
        assert "leave it as it is" in await refusal(administrator.patch(TICKETS, name, other))
        assert await refusal(administrator.patch(TICKETS, name, {"spec": {"keeps": []}})) == ""
        await administrator.delete(TICKETS, name)


async def test_what_was_seen_and_the_finalizer_of_a_case_are_the_controllers(
    plane: ControlPlane, operator: Client, controller: Client
) -> None:
    case = manifest("NodeRemediation", name="kept", trigger={"condition": "GpuLost"})
    case["metadata"]["finalizers"] = ["remediator.dev/release"]
    await controller.create(CASES, case)
    unlocked = {"metadata": {"finalizers": None}}
    forged = manifest("NodeRemediation", name="forged", trigger={"condition": "GpuLost", "status": "@all"})
    assert "only the controller writes it, leave it out" in await refusal(operator.create(CASES, forged))
    labelled = {"metadata": {"labels": {names.ASKED_BY_LABEL: "nvsentinel"}}}
    left = "only the controller sets it, leave it as it is"
    assert left in await refusal(operator.patch(CASES, "kept", labelled))
    assert await refusal(controller.patch(CASES, "kept", labelled)) == ""
    assert left in await refusal(operator.patch(CASES, "kept", {"metadata": {"labels": {names.ASKED_BY_LABEL: "x"}}}))
    assert left in await refusal(operator.patch(CASES, "kept", {"metadata": {"labels": None}}))
    assert await refusal(operator.patch(CASES, "kept", {"metadata": {"labels": {"mine": "a"}}})) == ""
    manual = {"operation": "reboot-gpu-17", "uid": "u1", "templateName": "reboot"}
    asked = manifest("NodeRemediation", name="asked", policyName=None, manual=manual)
    told = await refusal(operator.create(CASES, asked))
    assert "spec.manual is written by the controller; for one operation on a node make a NodeOperation" in told
    assert await refusal(controller.create(CASES, asked, query=[("dryRun", "All")])) == ""
    told = await refusal(operator.patch(CASES, "kept", {"spec": {"trigger": {"condition": "Other"}}}))
    assert "only the controller writes it" in told
    assert "only administrators take it off" in await refusal(operator.patch(CASES, "kept", unlocked))
    await operator.delete(CASES, "kept")  # cancels it
    async with speaking(plane, "adam") as administrator:
        assert await refusal(administrator.patch(CASES, "kept", unlocked)) == ""


@pytest.mark.parametrize(
    "kind",
    [kind for kind in api.KINDS if kind not in (api.TEMPLATE, api.GPU_LEDGER, api.IDLE_POLICY)],
    ids=lambda kind: kind.name,
)
async def test_nobody_but_the_controller_writes_a_status(admin: Client, controller: Client, kind: Kind[Any]) -> None:
    plain = Kind(kind.group, kind.version, kind.plural, kind.name, Object, kind.namespaced)
    name, space = f"status-{kind.plural}", "default" if kind.namespaced else ""
    maker = controller if kind is api.OPERATION else admin
    await maker.create(plain, manifest(kind.name, name=name), namespace=space)
    status = {"status": {"observedGeneration": 1}}
    try:
        told = await refusal(admin.patch(plain, name, status, namespace=space, subresource="status"))
        assert "only the controller writes the status of its objects; change the spec, or delete the object" in told
        assert await refusal(controller.patch(plain, name, status, namespace=space, subresource="status")) == ""
    finally:
        await admin.delete(plain, name, namespace=space)


async def test_an_operator_pauses_everything_and_changes_nothing_else_of_the_namespace(operator: Client) -> None:
    async def says(**metadata: Any) -> str:
        return await refusal(operator.patch(NAMESPACES, SYSTEM, {"metadata": metadata}))

    assert await says(annotations={"remediator.dev/paused": "true"}) == ""
    assert await says(annotations={"remediator.dev/paused": None}) == ""
    only = "you may change only the annotation remediator.dev/paused of this namespace"
    assert only in await says(annotations={"other": "true"})
    assert only in await says(labels={"pod-security.kubernetes.io/enforce": "restricted"})
    assert "forbidden" in await refusal(operator.patch(NAMESPACES, "default", {"metadata": {"labels": {"a": "b"}}}))


async def test_an_operator_closes_breakers_with_one_command_and_changes_nothing_else_of_policies_and_budgets(
    plane: ControlPlane, admin: Client, operator: Client, controller: Client
) -> None:
    """The two breakers have opened by failures; the operator runs the command line with her own rights, twice."""
    opened = {"openedAt": "2026-11-02T10:00:00Z", "message": "4 of the last 4 attempts were in vain"}
    limits = {"maxUnavailable": 1, "breaker": {"starts": 5, "percent": 10, "failures": {"of": 8, "most": 4}}}
    objects = {
        POLICIES: manifest("RemediationPolicy", name="storm"),
        BUDGETS: manifest("NodeDisruptionBudget", name="racks", **limits),
    }
    only = "you may change only the annotation remediator.dev/breaker-closed-at here"
    try:
        for (kind, body), of in zip(objects.items(), ("policy", "budget"), strict=True):
            name = body["metadata"]["name"]
            await admin.create(kind, body)
            await controller.patch(kind, name, {"status": {"breaker": opened}}, subresource="status")
            command = ("close-breaker", f"{of}/{name}", "--kubeconfig", plane.kubeconfig_for("olga", ()))
            closed, again = await beside(*command), await beside(*command)
            assert (closed[0], closed[1].partition(",")[0]) == (0, f"closed the breaker on failures of {of}/{name}")
            assert again[:2] == (0, f"the breaker on failures of {of}/{name} is closed: nothing to do\n")
            for change in ({"spec": {"mode": "Paused", "maxUnavailable": 9}}, {"metadata": {"labels": {"a": "b"}}}):
                assert only in await refusal(operator.patch(kind, name, change))
    finally:
        for kind, body in objects.items():
            await refusal(admin.delete(kind, body["metadata"]["name"]))


async def test_the_commands_of_an_operator_need_no_more_than_her_role_and_write_in_her_own_name(
    plane: ControlPlane, admin: Client, controller: Client
) -> None:
    """She looks, holds, has drained and cancels with her own rights; a viewer may only look."""

    async def run(user: str, *words: str) -> tuple[int, str, str]:
        return await beside(*words, "--kubeconfig", plane.kubeconfig_for(user, ()))

    await admin.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-17"}})
    await controller.create(CASES, manifest("NodeRemediation", name="ordered", nodeName="gpu-17"))
    made = ""
    try:
        for words in (("status",), ("history", "gpu-17"), ("explain", "gpu-17")):
            assert (await run("vera", *words))[::2] == (0, ""), words
        refused = await run("vera", "hold", "gpu-17")
        assert (refused[0], "the role remediator-operator may do this" in refused[2]) == (2, True), refused
        held = await run("olga", "hold", "gpu-17", "--for", "2h", "--reason", "the PSU is changed")
        assert (held[0], held[1].partition(" until ")[0]) == (0, "case ordered on gpu-17 starts nothing new"), held
        spec = (await admin.get(CASES, "ordered"))["spec"]
        assert (spec["hold"], spec["holdSetBy"]) == (True, "olga")
        ended = await run("olga", "hold", "gpu-17", "--off")
        assert ended == (0, "case ordered on gpu-17 goes on\n", "")
        drained = await run("olga", "drain", "gpu-17", "--yes", "--no-follow", "-o", "json")
        assert drained[0] == 0, drained
        made = json.loads(drained[1])["operation"]
        assert (await admin.get(OPERATIONS, made))["spec"]["requestedBy"] == "olga"
        cancelled = await run("olga", "cancel", "gpu-17")
        assert (cancelled[0], cancelled[2]) == (0, ""), cancelled
        assert "not found" in await refusal(admin.get(CASES, "ordered"))
    finally:
        await refusal(admin.delete(CASES, "ordered"))
        await refusal(admin.delete(NODES, "gpu-17"))
        if made:
            await refusal(admin.delete(OPERATIONS, made))


async def test_a_server_that_knows_the_stamps_fills_the_names_in(
    plane: ControlPlane, operator: Client, controller: Client
) -> None:
    await asyncio.to_thread(kubectl, plane, "apply", "--validate=strict", "-f", STAMPS)
    try:

        async def stamped(**spec: Any) -> Any:
            try:
                made = await operator.create(OPERATIONS, operation("stamped", **spec), query=[("dryRun", "All")])
            except errors.ApiError:
                return ""
            return made["spec"]["requestedBy"]

        await until(lambda: _is(stamped(), "olga"))  # new policies hold after a moment
        assert await stamped(requestedBy="oscar") == "olga"
        await escalated(controller, "stamped")
        for field, set_by in NAMED:
            on, off = (1, 0) if field == "retry" else (True, False)

            async def stamp(field: str = field, set_by: str = set_by, values: Any = (off, on)) -> Any:
                for value in values:  # a change is stamped: one of before the policy held has no name
                    answer = await operator.patch(CASES, "stamped", {"spec": {field: value}})
                return answer["spec"].get(set_by)

            await until(lambda stamp=stamp: _is(stamp(), "olga"))
            async with speaking(plane, "oscar") as other:
                undone = await other.patch(CASES, "stamped", {"spec": {field: off}})
            assert undone["spec"][set_by] == "oscar"
            obeyed = await controller.patch(CASES, "stamped", {"spec": {field: on, set_by: "github:ann"}})
            assert obeyed["spec"][set_by] == "github:ann"  # who asks for it by a comment below an issue
            with pytest.raises(errors.ApiError, match=r"must be your own name|which you do not change"):
                await operator.patch(CASES, "stamped", {"spec": {set_by: "github:bob"}})
        ours = manifest("NodeOperation", name="ours", requestedBy="gpu-17-gpu-lost")
        made = await controller.create(OPERATIONS, ours, query=[("dryRun", "All")])
        assert made["spec"]["requestedBy"] == "gpu-17-gpu-lost"
        theirs = manifest("NodeOperation", name="theirs", caseUID=None, requestedBy="NodeHealthCheck workers")
        made = await controller.create(OPERATIONS, theirs, query=[("dryRun", "All")])
        assert made["spec"]["requestedBy"] == "NodeHealthCheck workers", "which object of another controller asks"
    finally:
        await asyncio.to_thread(kubectl, plane, "delete", "-f", STAMPS)
        await refusal(controller.delete(CASES, "stamped"))


async def _is(work: Any, wanted: Any) -> bool:
    return bool(await work == wanted)

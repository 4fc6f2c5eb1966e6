"""`remediator hold`, `approve`, `release`, `retry`, `cancel`: what a user decides is done, once, in their own name."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from remediator.cli import ordering
from remediator.kube import api
from remediator.kube.api.builtin import NAMESPACE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from tests.harness.cluster import MemoryCluster
from tests.harness.controller import ControllerHarness, controller_harness, now, running, stamp, until
from tests.harness.kinds import CASES, NODES, PODS, Object
from tests.remediator.test_cli import COMMAND, beside


async def asked(made: MemoryCluster, *words: str) -> tuple[int, str, str]:
    async with made.server.serve() as endpoint:
        return await beside(*words, "--kubeconfig", str(endpoint.kubeconfig))


async def cluster(*cases: str) -> MemoryCluster:
    """gpu-17 and gpu-23; each of these cases is on the node that its name begins with."""
    made = MemoryCluster()
    for node in ("gpu-17", "gpu-23"):
        await made.client.create(NODES, {"metadata": {"name": node}})
    for name in cases:
        node = "-".join(name.split("-")[:2])
        await made.make(CASES, name, nodeName=node, nodeUID="u", policyName="gpu-lost")
        status = {"phase": "Held", "blockedBy": [{"reason": "ApprovalNeeded", "message": "a person must approve"}]}
        await made.client.patch(CASES, name, {"status": status}, subresource="status")
    return made


async def spec(made: MemoryCluster, name: str) -> Object:
    return (await made.client.get(CASES, name))["spec"]


async def test_a_hold_has_its_end_its_reason_and_the_name_of_who_set_it():
    made = await cluster("gpu-17-a")
    code, out, err = await asked(made, "hold", "gpu-17", "--for", "2h", "--reason", "the PSU is changed")
    case = await made.client.get(CASES, "gpu-17-a")
    assert (code, err, out.startswith("case gpu-17-a on gpu-17 starts nothing new until 20")) == (0, "", True)
    assert (case["spec"]["hold"], case["spec"]["holdSetBy"]) == (True, "admin")
    notes = case["metadata"]["annotations"]
    ends = datetime.fromisoformat(notes["remediator.dev/hold-until"]) - datetime.now(UTC)
    assert timedelta(hours=1) < ends < timedelta(hours=3)
    assert notes["remediator.dev/hold-reason"] == "the PSU is changed"
    code, out, err = await asked(made, "hold", "gpu-17", "--off", "-o", "json")
    assert json.loads(out) == {
        "command": "hold --off",
        "by": "admin",
        "cases": [{"case": "gpu-17-a", "node": "gpu-17", "text": "goes on"}],
    }
    assert not (await made.client.get(CASES, "gpu-17-a"))["metadata"].get("annotations")
    code, out, err = await asked(made, "hold", "gpu-17", "--off")
    assert (code, out, err) == (3, "", "remediator: case gpu-17-a on gpu-17 is not held\n")


async def test_an_approval_asks_first_and_without_an_answer_nothing_is_done():
    made = await cluster("gpu-17-a")
    code, _, err = await asked(made, "approve", "gpu-17")
    assert (code, "give --yes" in err, "approved" in await spec(made, "gpu-17-a")) == (2, True, False)
    code, out, _ = await asked(made, "approve", "gpu-17", "--yes")
    assert (code, out) == (0, "case gpu-17-a on gpu-17 may start\n")
    assert (await spec(made, "gpu-17-a"))["approvedBy"] == "admin"


async def test_a_script_is_asked_nothing_and_is_told_in_one_line_what_to_give():
    made = await cluster("gpu-17-a")
    code, out, err = await asked(made, "approve", "gpu-17", "-o", "json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("remediator: nothing was done: ")
    assert err.endswith("With -o json nobody is asked: give --yes\n")
    assert "approvedGeneration" not in await spec(made, "gpu-17-a")


async def test_a_pod_and_a_job_stand_for_their_nodes_and_of_two_cases_one_must_be_named():
    made = await cluster("gpu-17-a", "gpu-23-a")
    for pod, node in (("worker-0", "gpu-17"), ("worker-1", "gpu-23")):
        meta = {"name": pod, "namespace": "default", "labels": {"jobset.sigs.k8s.io/jobset-name": "llm"}}
        spec_ = {"nodeName": node, "containers": [{"name": "main", "image": "x"}]}
        await made.client.create(PODS, {"metadata": meta, "spec": spec_}, namespace="default")
    code, _, err = await asked(made, "cancel", "--job", "default/llm")
    assert (code, "say which with --case NAME" in err) == (2, True)
    code, out, _ = await asked(made, "cancel", "--pod", "default/worker-1")
    assert (code, out.startswith("case gpu-23-a on gpu-23 is cancelled")) == (0, True)
    with pytest.raises(errors.NotFound):
        await made.client.get(CASES, "gpu-23-a")
    code, out, _ = await asked(made, "cancel", "--job", "default/llm")
    assert (code, out.startswith("case gpu-17-a on gpu-17 is cancelled")) == (0, True)


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("gpu17",), 1, "no node gpu17 in the cluster; did you mean gpu-17?"),
        (("gpu-17", "--case", "gpu-17-b"), 1, "no case gpu-17-b of gpu-17 is kept; did you mean gpu-17-a?"),
        (("--case", "gpu-17-b"), 1, "no case gpu-17-b in the cluster; did you mean gpu-17-a?"),
        (("--case", "gpu-17-xxxxxxxxxxxx"), 1, "no case gpu-17-xxxxxxxxxxxx in the cluster; did you mean gpu-17-a?"),
        (("--pod", "default/worker"), 1, "no Pod default/worker in the cluster; no Pods there; namespaces that have"),
        (("--pod", "team/wbe-0"), 1, "no Pod team/wbe-0 in the cluster; did you mean team/web-0 or"),
        (("--pod", "team/nopod"), 1, "no Pod team/nopod in the cluster; Pods there: web-0, web-1, web-2 and 1 more"),
        (("--pod", "default/web-0"), 1, "no Pod default/web-0 in the cluster; no Pods there; did you mean team/web-0?"),
        (
            ("--job", "default/xyz"),
            1,
            "in namespace default names a job xyz; no jobs there; namespaces that have some: te",
        ),
        (("--job", "default/llm"), 1, "in namespace default names a job llm; no jobs there; did you mean team/llm?"),
        (("--job", "team/nojob"), 1, "no label of a Pod in namespace team names a job nojob; jobs there: llm"),
        (("--pod", "worker"), 2, "--pod worker: write NAMESPACE/NAME"),
        (("gpu-17", "--pod", "default/worker"), 2, "name one of these: NODE, --pod NAMESPACE/NAME or --job"),
        ((), 2, "name one of these: NODE"),
        (("gpu-23",), 3, "no case of gpu-23 is open, so there is nothing to do"),
        (("gpu-17",), 3, "case gpu-17-a on gpu-17 is Held, and only an Escalated case waits for this"),
    ],
)
async def test_what_is_wrong_is_answered_with_what_helps(words, code, why):
    made = await cluster("gpu-17-a")
    await made.client.create(NAMESPACE, {"metadata": {"name": "team"}})
    for number in range(4):
        meta = {"name": f"web-{number}", "labels": {"jobset.sigs.k8s.io/jobset-name": "llm"}}
        spec = {"nodeName": "gpu-23", "containers": [{"name": "main", "image": "x"}]}
        await made.client.create(PODS, {"metadata": meta, "spec": spec}, namespace="team")
    got, out, err = await asked(made, "release", *words)
    assert (got, out, why in err) == (code, "", True), err


async def test_a_case_that_has_moved_since_it_was_read_is_read_again(monkeypatch):
    made = await cluster("gpu-17-a")
    real, moved = Client.patch, []

    async def patch(self, kind, name, body, **more):
        if not moved:
            moved.append(name)
            raise errors.Conflict(409, "Conflict", "the object has been modified")
        return await real(self, kind, name, body, **more)

    monkeypatch.setattr(Client, "patch", patch)
    code, out, _ = await asked(made, "hold", "gpu-17")
    assert (code, moved, out.count("starts nothing new")) == (0, ["gpu-17-a"], 1)
    assert (await spec(made, "gpu-17-a"))["hold"] is True


def before_first(monkeypatch, verb: str, deed: Callable[[Client, str], Awaitable[object]]) -> None:
    """Do this to the case that a command first writes by this verb, right before it does."""
    real, moved = getattr(Client, verb), []

    async def written(self, kind, name, *rest, **more):
        if kind is api.CASE and not moved:
            moved.append(name)
            await deed(self, name)
        return await real(self, kind, name, *rest, **more)

    monkeypatch.setattr(Client, verb, written)


async def test_of_a_case_that_has_moved_since_it_was_shown_is_asked_again_where_other_work_would_end(monkeypatch):
    made = await cluster("gpu-17-a")
    blast = {"at": "2026-11-26T14:00:00Z", "pods": 1, "gpusOnNode": 8, "jobs": 1, "gpus": 512, "gpuHours": 9000}

    async def grown(client: Client, name: str) -> None:
        await client.patch(api.CASE, name, {"status": {"blastRadius": blast}}, subresource="status")

    before_first(monkeypatch, "patch", grown)
    questions: list[str] = []
    monkeypatch.setattr(ordering, "confirm", lambda text, yes, script: questions.extend([] if yes else [text]))
    code, out, _ = await asked(made, "approve", "gpu-17")
    assert (code, out) == (0, "case gpu-17-a on gpu-17 may start\n")
    assert ["9000 GPU-hours" in text for text in questions] == [False, True]


async def test_a_case_that_ended_since_it_was_read_is_not_deleted_by_cancel(monkeypatch):
    """It is what is remembered of the node: how often which operation did not help."""
    made = await cluster("gpu-17-a")
    over = {"phase": "Recovered", "endedAt": "2026-11-26T14:00:00Z", "blockedBy": []}

    async def ends(client: Client, name: str) -> None:
        await client.patch(api.CASE, name, {"status": over}, subresource="status")

    before_first(monkeypatch, "delete", ends)
    code, out, err = await asked(made, "cancel", "gpu-17")
    assert (code, out, err) == (3, "", "remediator: no case of gpu-17 is open, so there is nothing to do\n")
    assert (await made.client.get(CASES, "gpu-17-a"))["status"]["phase"] == "Recovered"


async def test_a_case_that_is_gone_since_it_was_read_is_looked_for_again(monkeypatch):
    made = await cluster("gpu-17-a")

    async def goes(client: Client, name: str) -> None:
        await client.delete(api.CASE, name)

    before_first(monkeypatch, "patch", goes)
    code, _, err = await asked(made, "hold", "gpu-17")
    assert (code, err.startswith("remediator: no case of gpu-17 is open, so there is nothing to do")) == (3, True), err


async def test_of_named_cases_those_that_do_not_change_are_told_and_why():
    made = await cluster("gpu-17-a", "gpu-23-a", "gpu-23-b")
    await made.client.patch(CASES, "gpu-17-a", {"spec": {"hold": True, "holdSetBy": "bob"}})
    over = {"phase": "Recovered", "endedAt": "2026-11-26T14:00:00Z", "blockedBy": []}
    await made.client.patch(CASES, "gpu-23-b", {"status": over}, subresource="status")
    named = [word for name in ("gpu-17-a", "gpu-23-a", "gpu-23-b") for word in ("--case", name)]
    code, out, err = await asked(made, "hold", *named)
    assert (code, out) == (0, "case gpu-23-a on gpu-23 starts nothing new until `remediator hold gpu-23 --off`\n")
    assert err.splitlines() == [
        "remediator: case gpu-17-a on gpu-17 is held already, set by bob",
        "remediator: case gpu-23-b on gpu-23 is over (Recovered)",
    ]


@pytest.mark.parametrize(
    ("failure", "code", "told"),
    [
        (
            errors.Unavailable(0, "", "the API server does not answer"),
            2,
            "done: case gpu-17-a on gpu-17; not known whether done: case gpu-23-a on gpu-23; "
            "not done: case gpu-23-b on gpu-23; what is done stays; to look: remediator explain gpu-23",
        ),
        (
            errors.Forbidden(403, "Forbidden", "you may not"),
            2,
            "done: case gpu-17-a on gpu-17; not done: case gpu-23-a on gpu-23, case gpu-23-b on gpu-23; "
            "what is done stays",
        ),
        (
            KeyboardInterrupt(),
            130,
            "done: case gpu-17-a on gpu-17; not known whether done: case gpu-23-a on gpu-23; "
            "not done: case gpu-23-b on gpu-23; what is done stays; to look: remediator explain gpu-23",
        ),
    ],
    ids=["away", "forbidden", "Ctrl-C"],
)
async def test_a_command_that_is_cut_short_says_what_is_done_also_to_a_script(monkeypatch, failure, code, told):
    made = await cluster("gpu-17-a", "gpu-23-a", "gpu-23-b")
    real = Client.patch

    async def patch(self, kind, name, body, **more):
        if name == "gpu-23-a":
            raise failure
        return await real(self, kind, name, body, **more)

    monkeypatch.setattr(Client, "patch", patch)
    named = [word for name in ("gpu-17-a", "gpu-23-a", "gpu-23-b") for word in ("--case", name)]
    got, out, err = await asked(made, "hold", *named, "-o", "json")
    assert (got, err.splitlines()[-1]) == (code, f"remediator: {told}")
    assert [case["case"] for case in json.loads(out)["cases"]] == ["gpu-17-a"]


@pytest.mark.slow
async def test_ctrl_c_ends_a_question_at_once_and_nothing_was_done():
    made = await cluster("gpu-17-a")
    pipe = asyncio.subprocess.PIPE
    async with made.server.serve() as endpoint:
        words = ("approve", "gpu-17", "--kubeconfig", str(endpoint.kubeconfig))
        process = await asyncio.create_subprocess_exec(*COMMAND, *words, stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            shown = await process.stderr.readuntil(b"[y/N]")
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(60):
                rest = await process.stderr.read()
                code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
    assert (code, b"may start" in shown) == (130, True)
    assert rest.decode().strip(": \n") == "remediator: nothing was done"
    assert "approved" not in await spec(made, "gpu-17-a")


async def let_it_end(harness: ControllerHarness, at: datetime, **more: Any) -> None:
    (case,) = harness.cases("gpu-1")
    notes = {"remediator.dev/hold-until": stamp(at), "remediator.dev/hold-reason": "the PSU is changed"}
    await harness.client.patch(CASES, case["metadata"]["name"], {"metadata": {"annotations": notes}} | more)


async def test_a_hold_is_shown_with_its_end_and_its_reason_and_ends_by_itself():
    async with controller_harness() as harness, running(harness):
        await harness.budget("all", 0)
        await harness.policy()
        await harness.node("gpu-1", "True")
        await until(lambda: harness.reasons("gpu-1") == ["BudgetSpent"])
        ends = now() + timedelta(hours=1)
        await let_it_end(harness, ends, spec={"hold": True, "holdSetBy": "ann"})
        await until(lambda: "HeldByUser" in harness.reasons("gpu-1"))
        blocks = harness.cases("gpu-1")[0]["status"]["blockedBy"]
        shown = next(block["message"] for block in blocks if block["reason"] == "HeldByUser")
        until_then = f"until {ends:%Y-%m-%d %H:%M:%S} UTC: the PSU is changed"
        assert shown == f"spec.hold is true, set by ann {until_then}; set spec.hold of the case to false"
        await let_it_end(harness, now())
        await until(lambda: harness.reasons("gpu-1") == ["BudgetSpent"])
        (case,) = harness.cases("gpu-1")
        assert case["spec"].get("hold", False) is False
        assert "holdSetBy" not in case["spec"]
        await let_it_end(harness, now() + timedelta(hours=1))  # of a hold that was taken back with kubectl
        await until(lambda: not harness.cases("gpu-1")[0]["metadata"].get("annotations"))
    assert (
        not {"remediator.dev/hold-until", "remediator.dev/hold-reason"} & case["metadata"].get("annotations", {}).keys()
    )

"""`remediator take-out` and `put-back`: shown before, followed to the end, and where done by halves, that is told."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from remediator.cli import following, operating
from remediator.kube.wire import errors
from tests.harness.controller import ControllerHarness, controller_harness, now, running, stamp, until
from tests.harness.kinds import PODS
from tests.remediator.controller.test_asked_by_users import ask
from tests.remediator.test_cli_operate import AWAY, failing, made
from tests.remediator.test_cli_orders import asked

TAKE_OUT = ("take-out", "--for", "3d", "--reason", "OPS-17 new PSU")


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    monkeypatch.setattr(following, "EVERY", 0.02)


def reason(harness: ControllerHarness, node: str) -> str:
    return harness.cases(node)[-1].get("status", {}).get("reason", "")


async def job_on(harness: ControllerHarness, *nodes: str) -> None:
    for number, node in enumerate(nodes):
        meta = {"name": f"worker-{number}", "namespace": "default", "labels": {"jobset.sigs.k8s.io/jobset-name": "llm"}}
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "x"}]}
        await harness.client.create(PODS, {"metadata": meta, "spec": spec}, namespace="default")


@pytest.mark.slow
async def test_a_node_is_shown_taken_out_followed_kept_for_longer_and_put_back():
    async with controller_harness() as harness, running(harness):
        await harness.node("gpu-1")
        code, out, err = await asked(harness, *TAKE_OUT, "gpu-1", "--yes")
        lines = out.splitlines()
        assert (code, err, lines[0], lines[2]) == (
            *(0, "", "take-out of gpu-1:"),
            "  Pods: all leave by eviction; PodDisruptionBudgets are respected",
        )
        assert any("stays out, counted by its budgets, until `remediator put-back gpu-1`" in line for line in lines)
        assert "is taken out by admin until" in lines[-1]
        assert "OPS-17 new PSU; give it back with: remediator put-back gpu-1" in lines[-1]
        (operation,) = made(harness)
        terms = operation["spec"]["keepOut"]
        assert terms["reason"] == "OPS-17 new PSU"
        ends = datetime.fromisoformat(terms["until"]) - datetime.now(UTC)
        assert timedelta(days=2, hours=23) < ends <= timedelta(days=3)

        code, out, err = await asked(harness, "take-out", "gpu-1", "--for", "4d")
        assert (code, err, "keeps the node out until" in out, len(made(harness))) == (0, "", True, 1)
        kept = harness.cases("gpu-1")[0]["spec"]["keepOut"]
        assert (kept["until"] > terms["until"], kept["reason"]) == (True, "OPS-17 new PSU")
        await until(lambda: kept["until"][:10] in harness.cases("gpu-1")[0]["status"]["message"])

        code, out, err = await asked(harness, "put-back", "gpu-1")
        assert (code, err, out.endswith("on gpu-1 is over: its node takes work again\n")) == (0, "", True)
        await until(lambda: harness.clean("gpu-1"))
        code, _, err = await asked(harness, "put-back", "gpu-1")
        assert (code, "no case of gpu-1 is open, so there is nothing to do" in err) == (3, True)


@pytest.mark.slow
async def test_all_nodes_of_a_job_are_taken_out_together_and_put_back_by_name_and_a_script_reads_what_became_of_each():
    async with controller_harness() as harness, running(harness):
        for node in ("gpu-1", "gpu-2", "gpu-3"):
            await harness.node(node)
        await job_on(harness, "gpu-1", "gpu-2")
        code, out, err = await asked(harness, *TAKE_OUT, "--job", "default/llm", "--yes", "-o", "json")
        data = json.loads(out)
        assert (code, data["reason"], data["changed"]) == (0, "OPS-17 new PSU", [])
        assert [(each["node"], each["phase"]) for each in data["asked"]] == [
            ("gpu-1", "Succeeded"),
            ("gpu-2", "Succeeded"),
        ]
        assert "take-out of gpu-2:" in err
        code, out, err = await asked(harness, "put-back", "gpu-1", "gpu-2", "gpu-3")
        assert (code, err) == (0, "remediator: gpu-3 is not taken out, so nothing is done to it\n")
        assert len(out.splitlines()) == 2
        await until(lambda: all(harness.clean(node) for node in ("gpu-1", "gpu-2")))


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("take-out", "gpu-1"), 2, "--for is missing: say for how long you keep the node, such as --for 4h"),
        (("take-out", "gpu-1", "--for", "forever"), 2, "a node that is kept for ever is forgotten"),
        (("take-out", "gpu-1", "--for", "soon"), 2, "--for soon is no length of time"),
        (("take-out", "gpu-1", "--for", "1h", "--reason", "x" * 201), 2, "write at most 200"),
        (("take-out", "--for", "1h"), 2, "name one of these: NODE"),
        (("take-out", "gpu1", "--for", "1h"), 1, "no node gpu1 in the cluster; did you mean gpu-1 or gpu-2?"),
        (("take-out", "--pod", "a/b", "--for", "1h"), 1, "no Pod a/b in the cluster"),
        (
            ("take-out", "--job", "default/llm", "--for", "1h"),
            1,
            "no label of a Pod in namespace default names a job llm",
        ),
        (("take-out", "gpu-2", "--for", "1h"), 3, "OptedOut: gpu-2 is excluded"),
        (("put-back", "gpu1"), 1, "no node gpu1 in the cluster; did you mean gpu-1 or gpu-2?"),
        (("put-back", "gpu-1"), 3, "no case of gpu-1 is open, so there is nothing to do"),
    ],
)
async def test_what_cannot_be_taken_out_or_put_back_is_answered_with_what_helps(words, code, why):
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        await harness.node("gpu-2", exclude="true")
        got, out, err = await asked(harness, *words, *(["--yes"] if words[0] == "take-out" else []))
        assert (got, out, why in err, made(harness)) == (code, "", True, []), err


async def test_a_node_that_another_user_has_stays_theirs_and_the_others_are_taken():
    async with controller_harness() as harness, running(harness):
        await harness.node("gpu-1")
        await harness.node("gpu-2")
        terms = {"until": stamp(now() + timedelta(days=1)), "reason": "RMA"}
        await ask(harness, template="drain", requestedBy="bob", keepOut=terms)
        await until(lambda: harness.cases("gpu-1"))
        code, _, err = await asked(harness, "take-out", "gpu-1", "--for", "1h", "--yes")
        assert (code, "keeps the node out already, by bob until" in err) == (3, True)
        code, out, err = await asked(harness, "take-out", "gpu-1", "gpu-2", "--for", "1h", "--yes", "--no-follow")
        assert (code, "by bob until" in err, "take-out of gpu-2:" in out, len(made(harness))) == (0, True, True, 2)


async def test_without_an_answer_nothing_is_asked_for():
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        code, _, err = await asked(harness, *TAKE_OUT, "gpu-1")
        assert (code, "give --yes" in err, made(harness)) == (2, True, [])


async def test_ctrl_c_says_which_nodes_are_asked_for_and_which_are_not(monkeypatch):
    async with controller_harness() as harness:
        for node in ("gpu-1", "gpu-2", "gpu-3"):
            await harness.node(node)
        real = operating.Operating._make

        async def interrupted(self, client, wanted):
            if wanted.node.name == "gpu-2":
                self._trying = "gpu-2"
                raise KeyboardInterrupt
            return await real(self, client, wanted)

        monkeypatch.setattr(operating.Operating, "_make", interrupted)
        code, _, err = await asked(harness, *TAKE_OUT, "gpu-1", "gpu-2", "gpu-3", "--yes")
        name = made(harness)[0]["metadata"]["name"]
    assert code == 130
    assert [line for line in err.splitlines() if "is made" in line or "asked for" in line or "was made" in line] == [
        f"remediator: NodeOperation {name} is made and goes on; nothing more is shown of it",
        "remediator: no answer has come: whether an operation for gpu-2 was made is not known; see `kubectl get nop`",
        "remediator: not asked for: gpu-3",
    ]


@pytest.mark.parametrize("failure", [AWAY, errors.Forbidden(403, "Forbidden", "no")])
async def test_a_server_that_refuses_the_second_node_leaves_the_first_and_says_so(monkeypatch, failure):
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        await harness.node("gpu-2")
        real, calls = operating.Operating._make, []

        async def second_refused(self, client, wanted):
            calls.append(wanted.node.name)
            if len(calls) == 2:
                failing(monkeypatch, "create", failure)
            return await real(self, client, wanted)

        monkeypatch.setattr(operating.Operating, "_make", second_refused)
        code, _, err = await asked(harness, *TAKE_OUT, "gpu-1", "gpu-2", "--yes")
        assert (code, len(made(harness)), "is made and goes on" in err) == (2, 1, True)
        told = "an operation for gpu-2 was made is not known" if failure is AWAY else "not asked for: gpu-2"
        assert told in err


async def test_a_take_out_that_waits_for_its_budget_is_put_back_before_anything_was_done():
    async with controller_harness() as harness, running(harness):
        await harness.node("gpu-1")
        await harness.budget("none", 0)
        await asked(harness, *TAKE_OUT, "gpu-1", "--yes", "--no-follow")
        await until(lambda: harness.reasons("gpu-1") == ["BudgetSpent"])
        code, out, _ = await asked(harness, "put-back", "gpu-1")
        assert (code, "is cancelled before its node was out: it ends at once" in out) == (0, True)
        await until(lambda: not harness.cases("gpu-1"))
        assert harness.ran == []


@pytest.mark.slow
async def test_status_and_explain_say_who_has_a_node_until_when_and_that_it_is_overdue():
    async with controller_harness() as harness, running(harness):
        await harness.node("gpu-1")
        await asked(harness, *TAKE_OUT, "gpu-1", "--yes")
        _, out, _ = await asked(harness, "status")
        assert "  TakenOut: 1, " in out
        assert "    gpu-1: by admin until 20" in out
        past = {"until": "2026-01-01T00:00:00Z", "reason": "OPS-17"}
        await harness.edit_case("gpu-1", keepOut=past)
        await until(lambda: reason(harness, "gpu-1") == "TakeOutOverdue")
        _, out, _ = await asked(harness, "status")
        assert "an operator must act:\n  TakeOutOverdue: 1, " in out
        assert "    gpu-1: by admin until 2026-01-01 00:00:00 UTC (overdue by " in out
        _, out, _ = await asked(harness, "explain", "gpu-1")
        assert "  taken out by admin until 2026-01-01 00:00:00 UTC (overdue by " in out
        assert "remediator put-back gpu-1" in out
        _, out, _ = await asked(harness, "explain", "gpu-1", "-o", "json")
        assert json.loads(out)["cases"][0]["keepOut"] == past

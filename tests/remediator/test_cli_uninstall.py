"""`remediator uninstall`: everything new is paused, every node given back, and what is left over is named."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from remediator.cli import patience, uninstall
from remediator.cli.common import Ended
from remediator.clock import SYSTEM
from remediator.core.names import CASE_FINALIZER, KEPT_CORDONED, LEAVING, PAUSED, SYSTEM_NAMESPACE
from tests.harness.controller import Answer, ControllerHarness, controller_harness, running, until
from tests.harness.kinds import CASES, LEASES, NAMESPACES, NODES, OPERATIONS
from tests.remediator.test_cli_orders import asked

DONE = "no case is open, and no node is kept by a mark of ours: take Remediator away now (docs/uninstall.md)"
LET_GO = "deleted %d ended operations, which the controller lets go"
PAUSE = f"everything new is paused: the namespace {SYSTEM_NAMESPACE} has the annotation {PAUSED}"


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    for module in (uninstall, patience):
        monkeypatch.setattr(module, "EVERY", 0.02)


async def paused(harness: ControllerHarness) -> str:
    namespace = await harness.client.get(NAMESPACES, SYSTEM_NAMESPACE)
    return namespace["metadata"].get("annotations", {}).get(PAUSED, "")


async def test_where_no_case_is_open_everything_new_is_paused_and_that_is_all():
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        assert await asked(harness, "uninstall") == (0, f"{PAUSE}\n{DONE}\n", "")
        assert await paused(harness) == "uninstall"


async def quarantined(harness: ControllerHarness) -> None:
    """gpu-1, whose repair was in vain."""
    harness.answer("reboot", Answer(exit=1, message="in vain"))
    await harness.policy()
    await harness.node("gpu-1", "True")
    await until(lambda: harness.phase("gpu-1") == "Escalated")


@pytest.mark.slow
async def test_a_quarantined_node_is_named_before_and_is_given_back_and_its_fault_opens_no_new_case():
    async with controller_harness() as harness, running(harness):
        await quarantined(harness)
        code, out, err = await asked(harness, "uninstall")
        assert (code, out.strip()) == (2, "")
        assert "cases that are cancelled: 1; nodes that take work again: 1; nobody has repaired gpu-1; a cordon" in err
        assert "taint first what must take no work: kubectl taint node NODE broken=true:NoSchedule" in err
        assert await paused(harness) == ""
        name = harness.cases("gpu-1")[0]["metadata"]["name"]
        code, out, err = await asked(harness, "uninstall", "--yes", "--give-back-broken")
        assert (code, out.splitlines(), err) == (
            0,
            [PAUSE, f"cancelled case {name} on gpu-1", LET_GO % 2, DONE],
            "",
        )
        await until(lambda: harness.clean("gpu-1"))
        assert [case for case in harness.cases("gpu-1") if not case.get("status", {}).get("endedAt")] == []


async def test_while_nodes_are_given_back_a_new_fault_opens_no_case_and_it_does_once_that_is_taken_back():
    async with controller_harness() as harness, running(harness):
        await harness.policy()
        await harness.client.patch(NAMESPACES, SYSTEM_NAMESPACE, {"metadata": {"annotations": {PAUSED: LEAVING}}})
        await harness.node("gpu-1", "True")
        await harness.quiet()
        assert harness.cases("gpu-1") == []
        await harness.client.patch(NAMESPACES, SYSTEM_NAMESPACE, {"metadata": {"annotations": {PAUSED: None}}})
        await until(lambda: harness.cases("gpu-1"))


@pytest.mark.slow
async def test_where_nobody_is_asked_broken_nodes_are_not_given_back_and_a_taint_of_a_user_outlives_the_case():
    async with controller_harness() as harness, running(harness):
        await quarantined(harness)
        code, out, err = await asked(harness, "uninstall", "--yes")
        assert (code, out) == (4, "")
        assert err.startswith("remediator: nothing was done: nobody has repaired gpu-1; a cordon goes with the case")
        assert err.endswith("then run this again with --give-back-broken\n")
        assert (await paused(harness), harness.phase("gpu-1")) == ("", "Escalated")

        taints = [*harness.look("gpu-1")["spec"]["taints"], {"key": "broken", "value": "true", "effect": "NoSchedule"}]
        await harness.client.patch(NODES, "gpu-1", {"spec": {"taints": taints}})
        assert (await asked(harness, "uninstall", "--yes", "--give-back-broken"))[0] == 0
        assert harness.taints("gpu-1") == ["broken"]


async def test_what_the_controller_holds_by_its_finalizer_is_gone_before_the_controller_is():
    """Else the deletion of the definitions would wait for it for ever."""
    async with controller_harness() as harness, running(harness):
        await quarantined(harness)
        held = [each for each in harness.all(OPERATIONS) if each["metadata"].get("finalizers")]
        assert held
        assert (await asked(harness, "uninstall", "--yes", "--give-back-broken"))[0] == 0
        assert [
            each for kind in (OPERATIONS, CASES) for each in harness.all(kind) if each["metadata"].get("finalizers")
        ] == []


def asks(harness: ControllerHarness) -> list[str]:
    """What is asked from now on: the method, and the kind, `/` behind it for one object."""
    requests: list[str] = []

    def note(asked) -> bool:
        where = asked.path.partition("/v1alpha1/")[2] or asked.path.partition("/v1/")[2]
        kind, _, name = where.partition("/")
        requests.append(f"{asked.method} {kind}{'/' if name else ''}")
        return False

    harness.server.faults.delay(0, when=note)
    return requests


async def test_while_the_controller_lets_nothing_go_what_it_holds_is_named(monkeypatch, capsys):
    """Told at once, as the pause before it is over here; without a controller until the time is over."""
    monkeypatch.setattr(uninstall, "TELL_EVERY", timedelta(seconds=-1))
    async with controller_harness() as harness:
        await harness.make(CASES, "gpu-1-a", nodeName="gpu-1", nodeUID="u", policyName="gpu-lost")
        await harness.client.patch(CASES, "gpu-1-a", {"metadata": {"finalizers": [CASE_FINALIZER]}})
        await harness.client.delete(CASES, "gpu-1-a")
        with pytest.raises(Ended, match="the controller still holds gpu-1-a by the finalizer"):
            await uninstall._until_let_go(harness.client, SYSTEM_NAMESPACE, SYSTEM.now() + timedelta(seconds=0.2))
    assert "waiting until the controller lets go of gpu-1-a" in capsys.readouterr().out


async def test_a_case_that_was_opened_after_the_others_were_cancelled_is_cancelled_too():
    """The pause is seen once all were thought to be over: what is held then is an open case."""
    async with controller_harness() as harness, running(harness):
        await quarantined(harness)
        await harness.client.patch(NAMESPACES, SYSTEM_NAMESPACE, {"metadata": {"annotations": {PAUSED: LEAVING}}})
        await uninstall._until_let_go(harness.client, SYSTEM_NAMESPACE, SYSTEM.now() + timedelta(seconds=30))
        assert [case for case in harness.cases("gpu-1") if not case.get("status", {}).get("endedAt")] == []
        await until(lambda: harness.clean("gpu-1"))


def deletes(kind: str):
    return lambda asked: asked.method == "DELETE" and kind in asked.path


@pytest.mark.slow
async def test_a_server_that_is_busy_or_away_for_a_while_does_not_end_it_with_the_fleet_paused():
    """Each is asked again: the first case is refused with 429, the first operation with 503."""
    async with controller_harness() as harness, running(harness):
        await quarantined(harness)
        harness.server.faults.refuse(429, when=deletes("noderemediations"))
        harness.server.faults.refuse(503, when=deletes("nodeoperations"))
        code, out, err = await asked(harness, "uninstall", "--yes", "--give-back-broken")
        assert (code, out.splitlines()[-1]) == (0, DONE)
        assert err == "remediator: the API server is busy or away (HTTP 429): it is asked again\n"


@pytest.mark.slow
async def test_a_server_that_stays_busy_ends_it_when_the_time_is_over_and_how_the_pause_ends_is_told():
    async with controller_harness() as harness, running(harness):
        await quarantined(harness)
        harness.server.faults.refuse(429, times=10**6, when=deletes("noderemediations"))
        code, _, err = await asked(harness, "uninstall", "--yes", "--give-back-broken", "--timeout", "1")
        assert code == 4
        assert err.endswith(
            "run this again to go on, or give up: kubectl annotate namespace remediator-system remediator.dev/paused-\n"
        )


@pytest.mark.slow
async def test_a_server_that_asks_for_a_day_of_patience_gets_no_more_than_there_is():
    async with controller_harness() as harness, running(harness):
        await quarantined(harness)
        harness.server.faults.refuse(429, times=10**6, when=deletes("noderemediations"), after=86400)
        code, _, _ = await asked(harness, "uninstall", "--yes", "--give-back-broken", "--timeout", "1")
        assert code == 4


@pytest.mark.slow
async def test_of_a_large_fleet_it_reads_pages_of_what_it_needs_and_ended_cases_by_their_heads_alone():
    """600 nodes in pages of 250, 1,300 ended cases in pages of 1,000 heads, twice: at the start nobody leads."""
    async with controller_harness() as harness:
        harness.beating = False
        for number in range(600):
            await harness.client.create(NODES, {"metadata": {"name": f"n-{number}"}})
        for number in range(1300):
            await harness.make(CASES, f"n-a-{number}", nodeName="n-1", nodeUID="u", policyName="gpu-lost")
            status = {"phase": "Recovered", "endedAt": "2026-11-01T00:00:00Z"}
            await harness.client.patch(CASES, f"n-a-{number}", {"status": status}, subresource="status")
        requests = asks(harness)
        code, out, err = await asked(harness, "uninstall")
        assert (code, out, err) == (0, f"{PAUSE}\n{DONE}\n", "")
    assert Counter(requests) == {
        "GET namespaces/": 1,  # the Lease
        "GET noderemediations": 1 + 2 + 1 + 2,  # what is open, who is held; after the pause the same
        "GET nodeoperations": 1 + 1 + 1,  # the ended ones with their phases, and twice who is held
        "GET nodes": 3,
        "PATCH namespaces/": 1,
    }


@pytest.mark.slow
async def test_what_is_interrupted_is_gone_on_with_by_another_run(monkeypatch):
    """After the first of four operations; the controller has let it go, and is asked for the other three."""
    monkeypatch.setattr(uninstall, "PAGE", 1)
    async with controller_harness() as harness, running(harness), harness.server.serve() as endpoint:
        for node in ("gpu-1", "gpu-2"):
            harness.answer("reboot", Answer(exit=1, message="in vain"))
            await harness.policy() if node == "gpu-1" else None
            await harness.node(node, "True")
            await until(lambda node=node: harness.phase(node) == "Escalated")
        whole = len(harness.all(OPERATIONS))
        deletes: list[str] = []

        def first(asked) -> bool:
            if asked.method == "DELETE" and "nodeoperations" in asked.path:
                deletes.append(asked.path)
                return len(deletes) > 1
            return False

        harness.server.faults.delay(3600, when=first)
        how = (endpoint.kubeconfig, SYSTEM_NAMESPACE, timedelta(minutes=5))
        run = asyncio.create_task(uninstall._uninstall(*how, yes=True, broken=True))
        await until(lambda: len(deletes) > 1)
        run.cancel()
        await asyncio.wait({run})
        assert run.cancelled()
        await until(lambda: len(harness.all(OPERATIONS)) == whole - 1)
        await uninstall._uninstall(*how, yes=True, broken=True)
        assert harness.all(OPERATIONS) == []
        assert harness.clean("gpu-1")


async def test_without_a_leader_nothing_is_done_since_nobody_would_give_nodes_back():
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        await harness.make(CASES, "gpu-1-a", nodeName="gpu-1", nodeUID="u", policyName="gpu-lost")
        code, out, err = await asked(harness, "uninstall", "--yes")
        assert (code, out) == (4, "")
        why = "no replica of the controller has led yet: start the controller, for nobody else gives nodes back"
        assert err == f"remediator: {why}\n"
        assert await paused(harness) == ""


async def test_a_node_that_still_waits_at_a_gate_is_named():
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        taint = {"key": "remediator.dev/new-node", "effect": "NoSchedule"}
        await harness.client.patch(NODES, "gpu-1", {"spec": {"taints": [taint]}})
        code, out, err = await asked(harness, "uninstall")
        takes_off = "kubectl taint node gpu-1 remediator.dev/new-node-"
        assert (code, out.splitlines()) == (
            4,
            [PAUSE, f"gpu-1 still has the taint remediator.dev/new-node: {takes_off}"],
        )
        assert err.startswith("remediator: not given back: gpu-1; run this again in a minute")


async def test_a_cordon_that_an_operation_left_for_a_person_is_told_and_stays():
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        kept = {"metadata": {"annotations": {KEPT_CORDONED: "a"}}, "spec": {"unschedulable": True}}
        await harness.client.patch(NODES, "gpu-1", kept)
        line = "gpu-1 still has a cordon for a person, which stays: once it is repaired: kubectl uncordon gpu-1"
        assert await asked(harness, "uninstall") == (0, f"{PAUSE}\n{line}\n{DONE}\n", "")


async def test_status_checks_that_a_replica_leads():
    async with controller_harness() as harness:
        code, _, err = await asked(harness, "status", "--check")
        assert (code, err) == (4, "remediator: no replica of the controller has led yet\n")
        async with running(harness):
            await until(lambda: harness.all(LEASES))
            assert (await asked(harness, "status", "--check"))[0] == 0

"""`remediator reboot` and `drain`: asked for once, in the name of who asks, and followed to the end."""

import asyncio
import json
import threading

import pytest

from remediator.cli import following, operating
from remediator.kube import api
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from tests.harness.controller import RUNS, Answer, ControllerHarness, controller_harness, running, until
from tests.harness.kinds import OPERATIONS, Object
from tests.remediator.test_cli import beside
from tests.remediator.test_cli_orders import asked

LEFT = "Draining, Pods left: 1 (team/web-0 (web))"


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    monkeypatch.setattr(following, "EVERY", 0.02)


def made(harness: ControllerHarness) -> list[Object]:
    """The operations of users."""
    return [each for each in harness.all(OPERATIONS) if "caseUID" not in each["spec"]]


async def test_a_reboot_is_shown_before_asked_for_in_the_callers_name_and_followed_to_its_end():
    async with controller_harness() as harness, running(harness):
        await harness.node("gpu-1")
        code, out, err = await asked(harness, "reboot", "gpu-1", "--yes")
        (operation,) = made(harness)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:3] == [
        "reboot of gpu-1:",
        "  ends: no job with GPUs",
        "  Pods: leave first, by Evict, in 30 s at most",
    ]
    name = operation["metadata"]["name"]
    assert name.startswith("reboot-gpu-1-")
    assert f"NodeOperation {name} is made, in the name of admin" in lines
    assert operation["spec"]["requestedBy"] == "admin"
    assert " Succeeded: new bootID boot-2" in lines[-1]


async def test_one_that_fails_ends_with_its_own_code_and_a_script_reads_why():
    async with controller_harness() as harness, running(harness):
        await harness.node("gpu-1")
        harness.answer("reboot", Answer(exit=1, message="the machine did not take it"))
        code, out, err = await asked(harness, "reboot", "gpu-1", "--yes", "-o", "json")
    data = json.loads(out)
    assert (code, data["phase"], data["node"]) == (4, "Failed", "gpu-1")
    assert "the machine did not take it" in data["message"]
    assert err.startswith("reboot of gpu-1:\n")


async def test_the_pods_that_are_left_and_what_keeps_them_are_told_while_a_node_is_drained(monkeypatch):
    lines, progress = [], following.asked.progress
    monkeypatch.setattr(following.asked, "progress", lambda *which: lines.append(progress(*which)) or lines[-1])
    async with controller_harness() as harness, running(harness):
        await harness.node("gpu-1")
        harness.answer("drain", RUNS)

        async def go_on_once_told() -> None:
            await until(lambda: harness.pods("drain", "Running"))
            of_case = next(each for each in harness.all(OPERATIONS) if "caseUID" in each["spec"])["metadata"]["name"]
            blocked = [{"pod": "team/web-0", "pdb": "web"}]
            left = {"status": {"drain": {"left": 1, "blocked": blocked}}}
            await harness.client.patch(OPERATIONS, of_case, left, subresource="status")
            await until(lambda: any(line.startswith(LEFT) for line in lines))
            await harness.finish("drain")

        going = asyncio.create_task(go_on_once_told())
        code, out, _ = await asked(harness, "reboot", "gpu-1", "--yes")
        await going
    assert code == 0
    assert LEFT in out


async def test_without_an_answer_nothing_is_made_and_what_is_asked_for_already_is_not_asked_for_again():
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        code, _, err = await asked(harness, "reboot", "gpu-1")
        assert (code, "give --yes" in err, made(harness)) == (2, True, [])
        code, out, _ = await asked(harness, "reboot", "gpu-1", "--yes", "--no-follow", "-o", "json")
        assert (code, json.loads(out)["operation"]) == (0, made(harness)[0]["metadata"]["name"])
        code, _, err = await asked(harness, "reboot", "gpu-1", "--yes")
        assert (code, "is asked for already by admin" in err, len(made(harness))) == (3, True, 1)


async def test_ctrl_c_says_what_was_done_and_what_goes_on(monkeypatch):
    async def interrupted(self, *args):
        raise KeyboardInterrupt

    async with controller_harness() as harness:
        await harness.node("gpu-1")
        monkeypatch.setattr(following.Following, "to_the_end", interrupted)
        code, _, err = await asked(harness, "reboot", "gpu-1", "--yes")
        name = made(harness)[0]["metadata"]["name"]
        assert (code, f"NodeOperation {name} is made and goes on" in err) == (130, True)
        monkeypatch.setattr(operating.Operating, "_look", interrupted)
        assert await asked(harness, "reboot", "gpu-1", "--yes") == (130, "", "remediator: nothing was done\n")


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("reboot", "gpu1"), 1, "no node gpu1 in the cluster; did you mean gpu-1 or gpu-2?"),
        (("reboot", "--pod", "a/b"), 1, "no Pod a/b in the cluster"),
        (("reboot", "gpu-2"), 3, "OptedOut: gpu-2 is excluded"),
    ],
)
async def test_what_cannot_be_operated_on_is_answered_with_what_helps(words, code, why):
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        await harness.node("gpu-2", exclude="true")
        got, out, err = await asked(harness, *words, "--yes")
        assert (got, out, why in err, made(harness)) == (code, "", True, []), err


async def test_a_script_that_gives_no_yes_is_asked_nothing_and_prints_no_json():
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        code, out, err = await asked(harness, "reboot", "gpu-1", "-o", "json")
        assert (code, out, made(harness)) == (2, "", [])
        assert err.splitlines()[-1] == (
            "remediator: nothing was done: Have reboot of gpu-1 done? With -o json nobody is asked: give --yes"
        )


async def test_an_operation_that_is_deleted_while_it_is_followed_is_said_to_be_taken_back():
    async with controller_harness() as harness, running(harness):
        await harness.node("gpu-1")
        harness.answer("reboot", RUNS)

        async def take_back() -> None:
            await until(lambda: made(harness))
            await harness.client.delete(OPERATIONS, made(harness)[0]["metadata"]["name"])

        async with harness.server.serve() as endpoint:
            taken = asyncio.create_task(take_back())
            code, _, err = await beside("reboot", "gpu-1", "--yes", "--kubeconfig", str(endpoint.kubeconfig))
            await taken
    assert (code, "was deleted: it is taken back" in err) == (4, True)


def failing(monkeypatch, verb, *failures):
    """The first times that the command, which runs in a thread, makes or reads an operation the server answers so."""
    real, rest = getattr(Client, verb), list(failures)

    async def answered(self, kind, *which, **more):
        if kind is api.OPERATION and rest and threading.current_thread() is not threading.main_thread():
            raise rest.pop(0)
        return await real(self, kind, *which, **more)

    monkeypatch.setattr(Client, verb, answered)


AWAY = errors.Unavailable(503, "ServiceUnavailable", "the server is overloaded")


async def test_a_server_that_is_away_while_an_operation_is_followed_is_told_once_and_asked_again(monkeypatch):
    async with controller_harness() as harness, running(harness):
        await harness.node("gpu-1")
        failing(monkeypatch, "get", AWAY, AWAY, errors.TooManyRequests(429, "TooManyRequests", "wait"))
        code, out, err = await asked(harness, "reboot", "gpu-1", "--yes")
        name = made(harness)[0]["metadata"]["name"]
    assert (code, "Succeeded" in out) == (0, True)
    assert err == (
        f"remediator: nothing is heard of NodeOperation {name}, which goes on: the server is overloaded; "
        "the server is asked again until it answers\n"
    )


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (AWAY, "no answer has come: whether an operation for gpu-1 was made is not known; see `kubectl get nop`"),
        (errors.Forbidden(403, "Forbidden", "no"), ""),
    ],
)
async def test_where_it_is_not_known_whether_an_operation_was_made_that_is_told(monkeypatch, failure, told):
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        failing(monkeypatch, "create", failure)
        code, _, err = await asked(harness, "reboot", "gpu-1", "--yes")
    assert (code, err.splitlines()[1:]) == (2, [f"remediator: {told}"] if told else [])


async def test_who_may_not_look_any_more_is_told_that_the_operation_goes_on_also_a_script(monkeypatch):
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        failing(monkeypatch, "get", errors.Forbidden(403, "Forbidden", "no"))
        code, out, err = await asked(harness, "reboot", "gpu-1", "--yes", "-o", "json")
        name = made(harness)[0]["metadata"]["name"]
    assert (code, f"NodeOperation {name} is made and goes on" in err) == (2, True)
    assert json.loads(out) == {"operation": name, "template": "reboot", "node": "gpu-1"}

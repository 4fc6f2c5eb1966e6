"""What becomes of Pods on a simulated node, as everyone else sees it through the API server."""

import asyncio
import contextlib
import re
import uuid
from pathlib import Path

import pytest

from remediator.core.outcome import PodEnd, pod_end
from remediator.kube.api import decode
from remediator.kube.api.builtin import POD
from remediator.kube.wire import errors
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.apiserver.patch import JSON_PATCH
from remediator_sim.kubelet.podstatus import UNMOUNTED
from remediator_sim.plain import ACCOUNTS, LEASES, NODES, PODS
from tests.harness.waiting import gone, until

SAY = "import os, pathlib\nsay = lambda text: pathlib.Path(os.environ['TERMINATION_LOG']).write_text(text)\n"
SLEEP = "import os, pathlib, time\npathlib.Path(os.environ['PROOF']).write_text(str(os.getpid()))\ntime.sleep(300)\n"
WAIT_FOR_GO = "import time\nwhile not os.path.exists(os.environ['PROOF']): time.sleep(0.01)\n"
COUNT = "import os\nopen(os.environ['PROOF'], 'a').write('x')\n"
REBOOT = SLEEP.replace("time.sleep(300)", "import subprocess; subprocess.run(['nsenter', '--', 'systemctl', 'reboot'])")


def proof(play):
    return {"name": "PROOF", "value": str(play.directory / "proof")}


async def pid_of(play) -> int:
    file = Path(proof(play)["value"])
    return int(await until(lambda: file.exists() and file.read_text()))


async def test_a_programs_sentence_and_exit_code_arrive_in_its_pods_status(play):
    await play.start()
    field = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    text = SAY + "say(f\"refused on {os.environ['NODE_NAME']}\")\nraise SystemExit(2)\n"
    await play.pod(play.program(text), env=[field])
    status, terminated = await play.end()
    assert status["phase"] == "Failed"
    assert (terminated["exitCode"], terminated["reason"]) == (2, "Error")
    assert terminated["message"] == f"refused on {play.node}"
    assert terminated["startedAt"] <= terminated["finishedAt"]


async def test_a_program_that_ends_well_has_succeeded_and_is_no_longer_ready(play):
    await play.start()
    await play.pod(play.program(SAY + "say('done')\n"))
    status, terminated = await play.end()
    assert status["phase"] == "Succeeded"
    assert (terminated["exitCode"], terminated["reason"], terminated["message"]) == (0, "Completed", "done")
    ready = next(one for one in status["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "PodCompleted")


@pytest.mark.slow
async def test_a_pod_beyond_its_deadline_is_killed_and_has_failed(play):
    await play.start()
    await play.pod(play.program(SLEEP), env=[proof(play)], activeDeadlineSeconds=4)
    pid = await pid_of(play)
    status, terminated = await play.end()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert terminated["exitCode"] == 143
    assert gone(pid)


async def test_a_pod_whose_token_is_never_there_ends_at_its_deadline_as_one_that_no_kubelet_has_started(play):
    """As a real kubelet says it: `tests/kubelet/test_pod_ends.py`."""
    await play.pod(play.program(SAY + "say('ran')"), automountServiceAccountToken=True, activeDeadlineSeconds=1)
    await play.client.delete(ACCOUNTS, "runner", namespace=play.space)
    await play.start()
    status, terminated = await play.end()
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert {key: value for key, value in terminated.items() if value is not None} == {
        key: value for key, value in UNMOUNTED.items() if value is not None
    }
    pod = decode.operation_pod(await play.client.get(POD, "p", namespace=play.space))
    assert (pod_end(pod), pod.expired) == (PodEnd.FORGOTTEN, True)


async def test_a_deleted_pod_is_told_to_end_and_then_goes(play):
    await play.start()
    polite = (
        "import signal\nsignal.signal(15, lambda *_: open(os.environ['PROOF'] + '-told', 'w').close() or exit(0))\n"
    )
    await play.pod(play.program("import os\n" + polite + SLEEP), env=[proof(play)])
    pid = await pid_of(play)
    await play.delete()
    await until(play.is_gone)
    assert gone(pid)
    assert (play.directory / "proof-told").exists()
    await until(play.disk_is_empty)


async def test_a_new_kubelet_clears_up_after_pods_that_went_while_none_was_there(play):
    await play.start()
    await play.pod(play.program(""))
    await play.end()
    await play.stop()
    assert not play.disk_is_empty()
    await play.delete_by_force()
    await play.start()
    await until(play.disk_is_empty)


async def test_a_finalizer_keeps_an_ended_pod_and_its_outcome(play):
    await play.start()
    await play.pod(play.program(SLEEP), env=[proof(play)], finalizers=["remediator.dev/outcome"])
    pid = await pid_of(play)
    await play.delete()
    await play.end()
    assert gone(pid)
    released = await until(lambda: _with_grace_over(play))
    assert released["metadata"]["finalizers"] == ["remediator.dev/outcome"]
    off = [{"op": "remove", "path": "/metadata/finalizers"}]
    await play.client.patch(PODS, "p", off, namespace=play.space, content_type=JSON_PATCH)
    await until(play.is_gone)


async def _with_grace_over(play):
    pod = await play.seen()
    return pod if pod["metadata"].get("deletionGracePeriodSeconds") == 0 else None


async def test_an_ordinary_workload_is_ready_until_it_is_deleted(play):
    await play.start()
    await play.pod(["/pause"])
    status = await play.in_phase("Running")
    ready = next(one for one in status["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready.get("reason", "")) == ("True", "")
    assert status["containerStatuses"][0]["ready"]
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", status["podIP"])
    await play.delete()
    await until(play.is_gone)


async def test_a_command_that_is_not_there_is_told(play):
    await play.start()
    await play.pod(["/no-such-shell", "/opt/remediator/operations/program.py"])
    _, terminated = await play.end()
    assert (terminated["exitCode"], terminated["reason"]) == (128, "StartError")


async def test_a_reboot_cuts_its_pod_off_changes_the_boot_id_and_is_recorded_once(play):
    await play.start()
    before = await play.boot_id()
    await play.pod(["/pause"], name="workload", restartPolicy="Always")
    await play.in_phase("Running", name="workload")
    await play.pod(play.program(REBOOT), env=[{"name": "ATTEMPT_ID", "value": "attempt-1"}, proof(play)])
    status, terminated = await play.end()
    assert gone(await pid_of(play))
    assert (status["phase"], terminated["exitCode"], terminated["reason"]) == ("Failed", 255, "Unknown")
    await until(lambda: _rebooted(play, before))
    assert await play.boot_id() == play.host.boot_id
    (record,) = play.host.reboots()
    assert (record["node"], record["attemptID"], record["bootID"]) == (play.node, "attempt-1", before)
    await until(lambda: _restarted(play))


async def _rebooted(play, before):
    return await play.boot_id() != before


async def _restarted(play):
    statuses = (await play.seen("workload"))["status"]["containerStatuses"]
    return statuses[0]["restartCount"] == 1 and statuses[0]["ready"]


async def test_a_new_kubelet_tells_the_end_of_a_program_that_went_with_the_old_one(play):
    await play.start()
    await play.pod(play.program(SLEEP), env=[proof(play)])
    first = await pid_of(play)
    await play.in_phase("Running")
    await play.stop()
    assert gone(first)
    await play.start()
    _, terminated = await play.end()
    assert (terminated["exitCode"], terminated["reason"]) == (137, "Error")
    assert await pid_of(play) == first


@pytest.mark.slow
async def test_a_pod_removed_by_force_is_killed_and_its_namesake_runs_anew(play):
    await play.start()
    command = play.program(SLEEP)
    await play.pod(command, env=[proof(play)])
    first = await pid_of(play)
    await play.delete_by_force()
    await until(lambda: gone(first))
    (play.directory / "proof").unlink()
    await play.pod(command, env=[proof(play)])
    assert await pid_of(play) != first


async def test_an_end_that_nobody_could_hear_is_told_later(play):
    await play.start()
    await play.pod(play.program(SAY + WAIT_FOR_GO + "say('done')\n"), env=[proof(play)])
    await play.in_phase("Running")
    with play.server_away() as refused:
        (play.directory / "proof").touch()
        await until(lambda: any(path.endswith("/pods/p/status") for path in refused))
    _, terminated = await play.end()
    assert terminated["message"] == "done"


@pytest.mark.parametrize("disk", ["kept", "lost"])
async def test_a_finished_pod_is_never_run_again(play, disk):
    await play.start()
    await play.pod(play.program(COUNT), env=[proof(play)])
    await play.end()
    await play.stop()
    if disk == "lost":
        play.lose_disk()
    await play.start()
    await play.pod(play.program("", "other"), name="other")
    await play.end("other")
    assert (play.directory / "proof").read_text() == "x"


async def test_a_namesake_in_the_place_of_a_removed_pod_is_left_alone(play):
    await play.start()
    pod = await play.pod(play.program(""))
    await play.end()
    other = {**pod["metadata"], "uid": str(uuid.uuid4()), "deletionTimestamp": "2026-01-01T00:00:00Z"}
    await asyncio.wait_for(play.worker({**pod, "metadata": other, "status": {"phase": "Failed"}}).run(), 10)
    assert (await play.seen())["metadata"]["uid"] == pod["metadata"]["uid"]


@pytest.mark.slow
async def test_a_token_is_that_of_the_pods_service_account(play):
    await play.start()
    await play.pod(play.program(SAY + WHO_AM_I), automountServiceAccountToken=True)
    _, terminated = await play.end()
    assert terminated["message"] == f"{play.space} 200 401"


async def test_a_pod_that_wants_no_token_gets_none(play):
    await play.start()
    await play.pod(play.program(SAY + "say(str(os.path.exists(os.environ['TOKEN_DIR'] + '/token')))\n"))
    assert (await play.end())[1]["message"] == "False"


# Asks the API server something that only those it knows may ask: with the token, then with a broken one.
WHO_AM_I = """
import http.client, ssl
home = pathlib.Path(os.environ['TOKEN_DIR'])
token = (home / 'token').read_text()
def ask(word):
    server = os.environ['KUBERNETES_SERVICE_HOST'], int(os.environ['KUBERNETES_SERVICE_PORT'])
    trust = ssl.create_default_context(cafile=str(home / 'ca.crt'))
    connection = http.client.HTTPSConnection(*server, context=trust, timeout=10)
    connection.request('GET', '/api', headers={'Authorization': 'Bearer ' + word})
    return connection.getresponse().status
say(f"{(home / 'namespace').read_text()} {ask(token)} {ask(token[:-9] + 'xxxxxxxxx')}")
"""


async def test_the_node_is_ready_until_its_host_is_in_trouble_and_again_after_it(play):
    await play.start()
    lost = {"type": "GpuLost", "status": "True", "reason": "Gone", "message": "GPU 0"}
    body = {"status": {"conditions": [lost]}}
    await play.client.patch(NODES, play.node, body, subresource="status", content_type=STRATEGIC_PATCH)
    play.host.trouble = "container runtime is down"
    ready = await until(lambda: play.node_says("Ready", "False"))
    assert ready["message"] == "container runtime is down"
    play.host.trouble = ""
    await until(lambda: play.node_says("Ready", "True"))
    assert (await play.node_says("GpuLost", "True"))["message"] == "GPU 0"


async def test_the_node_has_a_lease_that_is_renewed(play):
    await play.start()
    first = await until(lambda: _renewed(play, after=""))
    await until(lambda: _renewed(play, after=first))


async def _renewed(play, after):
    with contextlib.suppress(errors.NotFound):
        lease = await play.client.get(LEASES, play.node, namespace="kube-node-lease")
        return lease["spec"]["renewTime"] > after and lease["spec"]["renewTime"]
    return None

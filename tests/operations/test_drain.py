"""The drain program against an API server over HTTPS."""

import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta

import pytest
from drain import LOOK_AGAIN, Bucket, Drain, Orders

from nodelib.k8s.pods import selects
from tests.harness.apiserver import CASE, NODE, OPERATION, POLICY, SYSTEM, change
from tests.harness.objects import CASE_TAINT, budget, pod
from tests.operations.conftest import OPERATIONS, Program

ORDERS = {"operation": "op-1", "operationUID": "op-uid", "caseUID": "case-1", "timeoutSeconds": 20, "perSecond": 1000}
WEB = {"app": "web"}
HELD = (pod("a", labels=WEB), budget("web", 1, WEB))  # a Pod that its budget holds for good


@pytest.fixture
def drain(tmp_path, api):
    """The program, told of `api`."""
    program = Program(tmp_path, "drain")
    program.variables |= api.environment()
    return lambda *options, **more: program(*options, parameters={**ORDERS, **more.pop("orders", {})}, **more)


@pytest.fixture
def start(tmp_path, api):
    """Return (program, a function that starts it and does not wait)."""
    program = Program(tmp_path, "drain")
    program.variables |= api.environment()
    return program, lambda **orders: program.start(parameters={**ORDERS, **orders})


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_every_pod_that_should_go_is_evicted_and_the_others_are_left(api, drain):
    api.pods = [
        pod("a"),
        pod("b"),
        pod("static", "kube-system", owner="Node", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("agent", "kube-system", owner="DaemonSet"),
        pod("done", phase="Succeeded"),
        pod("broken", phase="Failed"),
        pod("ours", "remediator-operations", owner=None),
        pod("elsewhere", node="gpu-2"),
    ]
    ran = drain()
    assert (ran.code, ran.message) == (0, "drained gpu-1: 2 pods evicted"), ran.out
    assert api.evicted == ["a", "b"]


EVICTION_OF_A = "/api/v1/namespaces/team/pods/a/eviction"
POD_A = ("pods", "team", "a")


def replaced(pod):
    pod["metadata"]["uid"] = "later"


def test_an_eviction_names_the_pod_by_uid_so_that_its_successor_is_not_meant(api, drain):
    api.put(pod("a"))
    api.on_request = lambda method, path: path.endswith("/eviction") and api.edit(POD_A, replaced)
    assert drain().code == 0
    bodies = [body for _, path, body in api.requests if path.endswith("/eviction")]
    assert [body["deleteOptions"]["preconditions"]["uid"] for body in bodies] == ["uid-a", "later"]
    assert (bodies[0]["apiVersion"], bodies[0]["kind"]) == ("policy/v1", "Eviction")
    assert not any(one["blocked"] for one in api.progress), "a Pod that was replaced is nobody's blocker"


def test_a_refused_pod_is_asked_again_and_its_budget_is_shown_meanwhile(api, drain):
    api.put(pod("a", labels=WEB), pod("b"), pod("twin", labels=WEB, node="gpu-2"), budget("web", 2, WEB))

    def a_third_one_comes(method, path):
        if [path for _, path, _ in api.requests].count(EVICTION_OF_A) == 3:
            api.put(pod("third", labels=WEB, node="gpu-2"))

    api.on_request = a_third_one_comes
    ran = drain()
    assert ran.code == 0, ran.out
    assert api.evicted == ["b", "a"]
    blocked = [one["blocked"] for one in api.progress if one["blocked"]]
    assert (blocked[0][0]["pod"], blocked[0][0]["pdb"]) == ("team/a", "web")
    assert "needs 2 healthy pods" in blocked[0][0]["message"]
    assert api.progress[-1] == {"left": 0, "evicted": 2, "blocked": []}
    assert api.get(*OPERATION)["status"]["drain"] == api.progress[-1]


def test_a_refused_pod_is_asked_at_a_growing_interval(api, drain):
    api.put(*HELD)
    drain(orders={"timeoutSeconds": "5.5"})  # as text: so a rung passes it
    asked = sum(path.endswith("/eviction") for _, path, _ in api.requests)
    assert asked == 3, "at 0, 1 and 3 seconds; the next would be at 7"


def test_the_time_over_names_who_is_in_the_way(api, drain):
    api.put(*HELD, pod("b"))
    ran = drain(orders={"timeoutSeconds": 1})
    assert (ran.code, ran.message) == (1, "failed: 1 pods left on gpu-1 after 1 s: team/a (web)"), ran.out


def test_two_budgets_over_one_pod_are_a_blocker_not_an_outage(api, drain):
    api.put(*HELD, budget("all", 0, WEB))
    ran = drain(orders={"timeoutSeconds": 1})
    assert ran.code == 1
    assert "team/a (all,web)" in ran.message
    assert "more than one PodDisruptionBudget" in api.progress[0]["blocked"][0]["message"]


def test_a_pod_that_is_ending_is_waited_for_and_not_asked_again(api, drain):
    api.put(pod("a", deletionTimestamp="2026-01-01T00:00:00Z"))
    ran = drain(orders={"timeoutSeconds": 1})
    assert "team/a (still ending)" in ran.message
    assert not any(path.endswith("/eviction") for _, path, _ in api.requests)


OVERDUE = 400.0  # seconds since the Pod should have ended


@pytest.fixture
def stuck(api):
    """A Pod that should have ended long ago, beside one that goes."""
    end = datetime.now(UTC) - timedelta(seconds=OVERDUE)
    api.put(pod("stuck", deletionTimestamp=end.strftime("%Y-%m-%dT%H:%M:%SZ")), pod("goes"))


def test_a_pod_whose_end_is_overdue_is_not_waited_for_where_a_reboot_follows(api, drain, stuck):
    ran = drain(orders={"skipWaitForDeleteSeconds": OVERDUE - 100})
    assert ran.code == 0
    assert ran.message == "drained gpu-1: 1 pods evicted; not waited for, their end is overdue: team/stuck"
    assert api.progress[-1] == {
        "left": 0,
        "evicted": 1,
        "blocked": [{"pod": "team/stuck", "pdb": "", "message": "its end is overdue: not waited for"}],
    }


def test_a_pod_whose_end_is_overdue_by_less_is_waited_for(api, drain, stuck):
    ran = drain(orders={"skipWaitForDeleteSeconds": OVERDUE + 100, "timeoutSeconds": 1})
    assert ran.code == 1
    assert "team/stuck (still ending)" in ran.message


def test_a_dry_run_says_who_would_not_be_waited_for(api, drain, stuck):
    ran = drain("--dry-run", orders={"skipWaitForDeleteSeconds": OVERDUE - 100})
    assert "would not wait for team/stuck: its end is overdue" in ran.out
    assert "would evict 1 pods on gpu-1" in ran.out


def test_progress_is_written_only_when_it_changed(api, drain):
    api.put(*HELD)
    drain(orders={"timeoutSeconds": 2.5})
    assert sum(path == "/api/v1/pods" for _, path, _ in api.requests) > 2
    assert len(api.progress) == 1


def test_more_pods_than_a_page_are_all_evicted(api, drain):
    api.pods = [pod(f"pod-{number:03}") for number in range(230)]
    ran = drain()
    assert (ran.code, len(api.evicted)) == (0, 230), ran.out


def test_delete_asks_no_budget_and_still_names_the_uid(api, drain):
    api.put(pod("a"))
    assert drain(orders={"strategy": "Delete"}).code == 0
    assert [(method, path) for method, path, _ in api.requests if "/pods/" in path] == [
        ("DELETE", "/api/v1/namespaces/team/pods/a")
    ]
    assert (api.deleted, api.evicted) == (["a"], [])


def test_the_rate_is_kept(api, drain):
    api.pods = [pod(f"pod-{number}") for number in range(9)]
    started = time.monotonic()
    assert drain(orders={"perSecond": "3"}).code == 0
    assert time.monotonic() - started > 1.9, "three at once, then three a second"


def test_a_bucket_refills_with_time_and_never_above_its_rate():
    bucket = Bucket(2.0, now=0.0)
    assert [bucket.take(0.0) for _ in range(4)] == [0.0, 0.0, 0.5, 1.0]
    assert [bucket.take(100.0) for _ in range(3)] == [0.0, 0.0, 0.5]


REFUSALS = {
    "the operation is gone": (lambda api: api.remove(*OPERATION), "not there any more"),
    "the operation was made anew": (change(OPERATION, "metadata", uid="other"), "op-1 is gone"),
    "the operation is being deleted": (change(OPERATION, "metadata", deletionTimestamp="now"), "op-1 is gone"),
    "the operation has ended": (change(OPERATION, "status", phase="Cancelled"), "has ended: Cancelled"),
    "another case holds the node": (
        change(NODE, "spec", taints=[CASE_TAINT | {"value": "case-2"}]),
        "gpu-1 is not held by case case-1",
    ),
    "no case holds the node": (change(NODE, "spec", taints=[]), "gpu-1 is not held by case case-1"),
    "the node is another one": (change(NODE, "metadata", uid="new"), "its uid has changed"),
}


@pytest.mark.parametrize(("spoil", "words"), REFUSALS.values(), ids=REFUSALS.keys())
def test_without_its_claim_it_refuses_and_evicts_nothing(api, drain, spoil, words):
    api.put(pod("a"))
    spoil(api)
    ran = drain()
    assert ran.code == 2, ran.out
    assert ran.message.startswith("refused: ")
    assert words in ran.message
    assert api.evicted == []


def test_a_claim_lost_on_the_way_ends_it(api, start):
    program, start_drain = start
    api.put(*HELD)
    process = start_drain()
    until(lambda: api.progress)
    change(NODE, "spec", taints=[])(api)
    ran = program.finish(process)
    assert (ran.code, ran.message) == (2, "refused: node gpu-1 is not held by case case-1")


EXCLUDE, PAUSED = "remediator.dev/exclude", "remediator.dev/paused"
STOPS = {
    "the node is excluded": (
        change(NODE, "metadata", labels={EXCLUDE: "yes"}),
        change(NODE, "metadata", labels={EXCLUDE: "false"}),
        "gpu-1 is excluded",
    ),
    "the case is held": (
        change(CASE, "spec", hold=True),
        change(CASE, "spec", hold=False),
        "spec.hold of the case is true",
    ),
    "everything is paused": (
        change(SYSTEM, "metadata", annotations={PAUSED: ""}),
        change(SYSTEM, "metadata", annotations={}),
        "all new work is paused",
    ),
}


@pytest.mark.parametrize(("stop", "undo", "words"), STOPS.values(), ids=STOPS.keys())
def test_what_a_user_stops_evicts_nobody_until_it_is_undone(api, start, stop, undo, words):
    program, start_drain = start
    api.put(pod("a"))
    stop(api)
    process = start_drain(case=CASE[2], policy=POLICY[2], namespace=SYSTEM[2])
    until(lambda: [path for _, path, _ in api.requests].count("/api/v1/nodes/gpu-1") == 3)
    assert api.writes() == []
    undo(api)
    ran = program.finish(process)
    assert (ran.code, api.evicted) == (0, ["a"]), ran.out
    assert [line for line in ran.out.splitlines() if "waiting" in line] == [f"waiting: {words}"]


def test_while_a_user_stops_it_no_time_runs_out(monkeypatch):
    work = Drain(None, "gpu-1", Orders("op-1", "op-uid", "case-1", "Evict", 1800.0, 5.0, 3600.0))
    slept, deadline = [], work.deadline
    monkeypatch.setattr(time, "sleep", slept.append)
    work.stop = "all new work is paused"
    for _ in range(240):
        work.rest(5.0, [])
    assert (sum(slept), work.deadline - deadline) == (1200.0, 1200.0)


def test_in_a_long_round_the_claim_is_looked_up_again_before_the_next_eviction(monkeypatch):
    work = Drain(None, "gpu-1", Orders("op-1", "op-uid", "case-1", "Evict", 1800.0, 5.0, 3600.0))
    looks = []
    monkeypatch.setattr(work, "look", lambda: looks.append(1))
    work.looked_at = time.monotonic()
    work.wait_for_turn()
    assert looks == []
    work.looked_at = time.monotonic() - LOOK_AGAIN - 0.1
    work.wait_for_turn()
    assert looks == [1]


def test_sigterm_ends_it_at_once_with_a_sentence(api, start):
    program, start_drain = start
    api.put(*HELD)
    process = start_drain()
    until(lambda: api.progress)
    process.send_signal(signal.SIGTERM)
    started = time.monotonic()
    ran = program.finish(process)
    assert time.monotonic() - started < 3
    assert (ran.code, ran.message) == (1, "failed: stopped by SIGTERM")


def test_an_api_server_that_stumbles_is_asked_again(api, drain):
    api.put(pod("a"))
    api.refuse(503, 429, 410)
    ran = drain()
    assert (ran.code, api.evicted) == (0, ["a"]), ran.out


def test_an_api_server_that_cannot_be_reached_is_waited_for_until_the_time_is_over(tmp_path, api):
    api.close()
    program = Program(tmp_path, "drain")
    program.variables |= api.environment()
    ran = program(parameters={**ORDERS, "timeoutSeconds": 1})
    assert ran.code == 1
    assert ran.out.count("does not answer") <= 4, "it must not be asked in a tight loop"


def test_a_dry_run_names_the_pods_and_changes_nothing(api, drain):
    api.put(pod("a"), pod("agent", owner="DaemonSet"))
    ran = drain("--dry-run")
    assert (ran.code, ran.message) == (0, "")
    assert ran.out.splitlines() == ["would evict team/a", "would evict 1 pods on gpu-1"]
    assert {method for method, _, _ in api.requests} == {"GET"}


@pytest.mark.parametrize(
    "orders",
    [{"operation": ""}, {"caseUID": ""}, {"strategy": "Force"}, {"perSecond": 0}, {"timeoutSeconds": "soon"}],
)
def test_orders_that_cannot_be_meant_are_refused(api, drain, orders):
    assert drain(orders=orders).code == 2
    assert api.requests == []


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        (None, False),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Like"}]}, False),
    ],
)
def test_a_budget_is_named_when_its_selector_selects_the_pod(selector, selected):
    assert selects(selector, {"app": "web"}) is selected


def test_it_is_light_enough_to_run_beside_a_workload():
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = ["python3", "-c", code, "python3", "-I", "-S", str(OPERATIONS / "drain.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert int(done.stdout) < 30 * 1024

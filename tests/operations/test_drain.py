"""The drain program against an API server over HTTPS."""

import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from nodelib.k8s.api import Unreachable
from nodelib.k8s.drain import LOOK_AGAIN, Block, Bucket, Drain
from nodelib.k8s.drain_moves import EVICT, FORCE, Move
from nodelib.k8s.drain_orders import Orders
from nodelib.k8s.eviction_answers import UNJUDGED
from nodelib.k8s.pods import Pod, selects
from tests.harness.apiserver import CASE, NODE, OPERATION, POLICY, SYSTEM, change
from tests.harness.objects import CASE_TAINT, budget, pod
from tests.operations.conftest import OPERATIONS, Program

pytestmark = pytest.mark.sampled("drain")

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
        pod("coredns", "kube-system"),
        pod("done", phase="Succeeded"),
        pod("broken", phase="Failed"),
        pod("ours", "remediator-operations", owner=None),
        pod("elsewhere", node="gpu-2", owner=None),
    ]
    ran = drain()
    assert (ran.code, ran.message) == (0, "drained gpu-1: 2 pods evicted"), ran.out
    assert api.evicted == ["a", "b"]


def test_a_pod_that_is_bound_and_has_not_started_is_evicted_too(api, drain):
    api.pods = [pod("a"), pod("starts", phase="Pending"), pod("lost", phase="Unknown")]
    assert drain().message == "drained gpu-1: 3 pods evicted"
    assert sorted(api.evicted) == ["a", "lost", "starts"]


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
    api.put(*HELD, budget("all", 0, WEB), pod("b"))
    ran = drain(orders={"timeoutSeconds": 1})
    assert (ran.code, api.evicted) == (1, []), "the API server never evicts it: nobody goes for a drain that cannot end"
    assert "team/a (all,web)" in ran.message
    assert ran.message.endswith("; nobody else was asked")
    [blocked] = api.progress[-1]["blocked"]
    assert (blocked["pod"], blocked["pdb"]) == ("team/a", "all,web")
    assert "more than one PodDisruptionBudget" in blocked["message"]
    assert blocked["message"].endswith("let only one of these PodDisruptionBudgets select it")


@pytest.mark.parametrize(
    ("spec", "evicted"),
    [
        ({"maxUnavailable": 0}, []),
        ({"minAvailable": "100%"}, []),
        ({"maxUnavailable": "0%", "unhealthyPodEvictionPolicy": "AlwaysAllow"}, []),
        ({"minAvailable": "99%"}, ["b"]),
    ],
)
def test_nobody_goes_where_a_budget_lets_no_pod_go_whatever_is_healthy(api, drain, spec, evicted):
    rule = budget("keep", 1, WEB) | {"spec": spec | {"selector": {"matchLabels": WEB}}}
    api.put(pod("a", labels=WEB), pod("b"), rule)
    ran = drain(orders={"timeoutSeconds": 1})
    assert (ran.code, api.evicted) == (1, evicted), ran.out
    assert "team/a (keep)" in ran.message
    message = api.progress[-1]["blocked"][0]["message"]
    assert ("evicts it never; let the budget let one go" in message) is (not evicted)


@pytest.mark.parametrize(
    ("orders", "phase", "gone"),
    [
        ({"strategy": "EvictThenDelete"}, "Running", ["b"]),  # it is deleted later, which asks no budget
        ({"rules": [{"owners": ["Job"], "strategy": "EvictThenDelete"}]}, "Running", ["b"]),
        ({}, "Pending", ["a", "b"]),  # it does no work that a budget could protect
    ],
)
def test_a_pod_that_two_budgets_do_not_keep_for_good_keeps_nobody(api, drain, orders, phase, gone):
    api.put(pod("a", labels=WEB, phase=phase, owner="Job"), pod("b"), budget("web", 0, WEB), budget("all", 0, WEB))
    drain(orders={"timeoutSeconds": 1.2, "evictForSeconds": 100, **orders})
    assert api.evicted == gone


def test_two_budgets_that_cannot_be_listed_are_learnt_from_the_answer(api, drain):
    api.put(*HELD, budget("all", 0, WEB), pod("b"))
    api.faults.refuse(403, times=100, when=lambda request: "poddisruptionbudgets" in request.path)
    ran = drain(orders={"timeoutSeconds": 1})
    assert (ran.code, api.evicted) == (1, ["b"])
    assert "more than one PodDisruptionBudget" in ran.message


def test_a_pod_goes_once_only_one_budget_selects_it(api, drain):
    api.put(pod("a", labels=WEB), pod("b"), budget("web", 0, WEB), budget("all", 0, WEB))
    loosen = change(("poddisruptionbudgets.policy", "team", "all"), "spec", selector={"matchLabels": {"app": "other"}})
    api.on_request = lambda method, path: path.endswith("/status") and loosen(api)
    assert (drain().code, api.evicted) == (0, ["a", "b"])


def test_a_pod_that_is_ending_is_waited_for_and_not_asked_again(api, drain):
    api.put(pod("a", deletionTimestamp="2036-01-01T00:00:00Z"))
    ran = drain(orders={"timeoutSeconds": 1})
    assert "team/a (still ending)" in ran.message
    assert not any(path.endswith("/eviction") for _, path, _ in api.requests)


OVERDUE = 400.0  # seconds since the Pod should have ended


@pytest.fixture
def stuck(api):
    """A Pod that should have ended long ago, beside one that goes."""
    end = datetime.now(UTC) - timedelta(seconds=OVERDUE)
    ending = {"deletionTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ"), "deletionGracePeriodSeconds": 30}
    api.put(pod("stuck", **ending), pod("goes"))


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
    assert "team/stuck (its end is overdue: its process cannot end" in ran.message
    assert api.progress[-1]["blocked"][0]["pod"] == "team/stuck"


def test_a_dry_run_says_who_would_not_be_waited_for(api, drain, stuck):
    ran = drain("--dry-run", orders={"skipWaitForDeleteSeconds": OVERDUE - 100})
    assert "would not wait for team/stuck: its end is overdue" in ran.out
    assert "1 pods would go from gpu-1, 1 would not" in ran.out


def test_progress_is_written_only_when_it_changed(api, drain):
    api.put(*HELD)
    drain(orders={"timeoutSeconds": 2.5})
    assert sum(path == "/api/v1/pods" for _, path, _ in api.requests) > 2
    assert [progress["left"] for progress in api.progress] == [1, 1], "how many are left, then who is in the way"


def test_a_drain_that_nobody_is_in_the_way_of_writes_twice(api, drain):
    """Each write costs the API server and the controller more than an eviction."""
    api.put(*(pod(f"pod-{number}") for number in range(9)))
    assert drain().code == 0
    assert [(progress["left"], progress["evicted"]) for progress in api.progress] == [(9, 0), (0, 9)]


def test_how_many_are_left_is_written_before_the_first_pod_is_asked_to_go(api, drain):
    """An operation whose drain has written nothing has disturbed nobody: the attempt does not count."""
    api.put(pod("a"))
    assert drain().code == 0
    wrote, asked = (
        next(number for number, (_, path, _) in enumerate(api.requests) if path.endswith(word))
        for word in ("/op-1/status", "/a/eviction")
    )
    assert wrote < asked


PROGRESS = "/nodeoperations/op-1/status"


@pytest.mark.parametrize("code", [403, 409, 422, 500])
def test_a_drain_that_cannot_write_its_progress_asks_no_pod_to_go(api, drain, code):
    api.put(pod("a"))
    api.faults.refuse(code, times=1000, when=lambda request: request.path.endswith(PROGRESS))
    ran = drain(orders={"timeoutSeconds": 1})
    assert (ran.code, api.evicted) == (1, []), ran.out
    assert "team/a (not asked: progress cannot be written: " in ran.message


def test_a_drain_begins_as_soon_as_it_can_write_its_progress(api, drain):
    api.put(pod("a"))
    api.faults.refuse(409, times=2, when=lambda request: request.path.endswith(PROGRESS))
    ran = drain()
    assert (ran.code, api.evicted) == (0, ["a"]), ran.out
    assert [path.endswith(PROGRESS) for method, path, _ in api.requests if method != "GET"][:4] == [True] * 3 + [False]


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


def test_what_is_left_after_the_time_for_evictions_is_deleted_with_its_own_grace(api, drain):
    api.put(*HELD, pod("b"))
    ran = drain(orders={"strategy": "EvictThenDelete", "evictForSeconds": 0.6})
    assert (ran.code, ran.message) == (0, "drained gpu-1: 2 pods evicted or deleted"), ran.out
    assert (api.evicted, api.deleted) == (["b"], ["a"])
    assert bodies_of(api, "DELETE") == [{"preconditions": {"uid": "uid-a"}}]
    assert api.progress[1]["blocked"][0]["pdb"] == "web", "it was asked politely before"


OURS = 'webhook "evictions.remediator.dev"'
AWAY = (500, f"Internal error occurred: failed calling {OURS}: no endpoints available")
UNREAD = (503, f"admission {OURS} denied the request: team/a cannot be read; ask again")


@pytest.mark.parametrize("strategy", ["Evict", "EvictThenDelete"])
@pytest.mark.parametrize("said", [AWAY, UNREAD], ids=["away", "cannot tell"])
def test_while_nobody_judges_evictions_no_pod_is_deleted_and_no_time_runs_out(api, drain, strategy, said):
    api.put(pod("a"))
    api.refuse_evictions(*said, times=2)  # at 0 and 1 seconds; it goes at 3
    ran = drain(orders={"strategy": strategy, "timeoutSeconds": 0.9, "evictForSeconds": 0.3})
    assert (ran.code, api.evicted, api.deleted) == (0, ["a"], []), ran.out


def test_once_evictions_are_judged_again_what_a_budget_still_holds_is_deleted_in_time(api, drain):
    api.put(*HELD)
    api.refuse_evictions(*AWAY, times=1)
    ran = drain(orders={"strategy": "EvictThenDelete", "timeoutSeconds": 3, "evictForSeconds": 0.5})
    assert (ran.code, api.evicted, api.deleted) == (0, [], ["a"]), ran.out
    blocked = [one["blocked"][0] for one in api.progress if one["blocked"]]
    assert [(one["pdb"], one["message"].startswith(UNJUDGED)) for one in blocked] == [("", True), ("web", False)]


def test_a_drain_made_anew_when_its_evictions_are_over_deletes_only_what_a_budget_has_refused_to_it(api, drain):
    """The one before it was lost while nobody judged: this one knows nothing of that, and asks each Pod itself."""
    api.put(*HELD, pod("b"))
    api.refuse_evictions(*AWAY, times=2)
    ran = drain(orders={"strategy": "EvictThenDelete", "timeoutSeconds": 3, "evictForSeconds": 0})
    assert (ran.code, api.evicted, api.deleted) == (0, ["b"], ["a"]), ran.out


def test_what_no_budget_has_refused_is_not_deleted_when_the_time_for_evictions_is_over(api, drain):
    """An API server that sheds load has asked neither the webhook nor a budget."""
    api.put(pod("a"))
    api.refuse_evictions(429, "too many requests, please try again later", times=1000)
    ran = drain(orders={"strategy": "EvictThenDelete", "timeoutSeconds": 1.5, "evictForSeconds": 0})
    assert (ran.code, api.evicted, api.deleted) == (1, [], []), ran.out


def test_a_round_in_which_nobody_judges_takes_nothing_of_the_drains_time(monkeypatch):
    work = Drain(None, "gpu-1", Orders("op-1", "op-uid", "case-1", "Evict", 1800.0, 5.0, 3600.0))
    clock, rounds = [0.0], [500.0, 500.0]  # 100 Pods, for each of which the API server waits 5 seconds
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    work.deadline = 60.0

    def a_round():
        clock[0] += rounds.pop() if rounds else 0.0
        work.left, work.blocks = ["a"] if rounds else [], {"a": Block("", "", 0.0, 1.0, EVICT, True)} if rounds else {}

    monkeypatch.setattr(work, "round", a_round)
    monkeypatch.setattr(work, "progress", dict)
    assert work.run() == "drained gpu-1: 0 pods evicted"
    assert (clock[0] - work.deadline) == 500.0 - 60.0, "only the last round, in which nobody was refused, took of it"


def bodies_of(api, method):
    """What was sent to Pods with this verb, but for what is the same in each body."""
    sent = [body for asked, path, body in api.requests if asked == method and "/pods/" in path]
    return [{key: value for key, value in body.items() if key not in ("apiVersion", "kind")} for body in sent]


def test_pods_of_a_silent_node_are_forgotten_at_once(api, drain, stuck):
    api.ends_pods = False
    api.ready("Unknown")
    ran = drain(orders={"strategy": "ForceDelete"})
    assert (ran.code, sorted(api.deleted)) == (0, ["goes", "stuck"]), ran.out
    assert bodies_of(api, "DELETE") == [
        {"preconditions": {"uid": f"uid-{name}"}, "gracePeriodSeconds": 0} for name in ("goes", "stuck")
    ]


def test_no_pod_of_a_node_whose_kubelet_reports_is_forgotten(api, drain):
    api.put(pod("a"))
    ran = drain(orders={"strategy": "ForceDelete", "timeoutSeconds": 0.5})
    assert ran.code == 1
    assert "ForceDelete is for a node that is silent, and its kubelet reports" in ran.message
    assert api.writes() == [("PATCH", "/apis/remediator.dev/v1alpha1/nodeoperations/op-1/status")]


def test_a_drain_that_waits_for_completion_asks_nobody_and_is_done_when_all_have_ended(api, start):
    program, start_drain = start
    api.put(pod("a"), pod("b", owner=None))
    process = start_drain(strategy="WaitForCompletion")
    until(lambda: api.progress)
    assert {one["message"] for one in api.progress[0]["blocked"]} == {
        "WaitForCompletion: it is waited for until it ends by itself"
    }
    for name in ("a", "b"):
        change(("pods", "team", name), "status", phase="Succeeded")(api)
    ran = program.finish(process)
    assert (ran.code, ran.message) == (0, "drained gpu-1: 0 pods evicted or deleted")
    assert (api.evicted, api.deleted) == ([], [])


SCRATCH = {"volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]}
BLOCKS = {
    "a bare Pod": (pod("a", owner=None), {"deleteBarePods": True}, "no controller makes it again"),
    "data in memory": (pod("a") | {"spec": {"nodeName": "gpu-1", **SCRATCH}}, {"deleteEmptyDirData": True}, "(dshm)"),
}


@pytest.mark.parametrize(("kept", "declared", "words"), BLOCKS.values(), ids=BLOCKS.keys())
def test_what_would_be_lost_blocks_until_it_is_declared(api, drain, kept, declared, words):
    api.put(kept, pod("b"))
    ran = drain(orders={"timeoutSeconds": 0.5})
    assert (ran.code, api.evicted) == (1, []), ran.out
    blocked = api.progress[-1]["blocked"]
    assert [(one["pod"], words in one["message"]) for one in blocked] == [("team/a", True)]
    assert words in ran.message
    assert "remediator.dev/evict=true" in ran.message
    assert drain(orders=declared).code == 0
    assert api.evicted == ["a", "b"]


@pytest.mark.parametrize("strategy", ["Evict", "Delete", "EvictThenDelete"])
def test_nobody_goes_while_one_pod_keeps_the_node_for_good(api, drain, strategy):
    api.put(*(pod(f"a-{number:02}") for number in range(25)), pod("z", owner=None))
    ran = drain(orders={"strategy": strategy, "timeoutSeconds": 1})
    assert (ran.code, api.evicted, api.deleted) == (1, [], []), "work is not ended for a drain that cannot end"
    assert [one["pod"] for one in api.progress[-1]["blocked"]] == ["team/z"]
    assert ran.message.startswith("failed: 26 pods left on gpu-1 after 1 s: team/z (no controller makes it again")
    assert ran.message.endswith("; nobody else was asked")


def test_a_budget_may_let_go_later_so_the_other_pods_go(api, drain):
    api.put(*HELD, pod("b"))
    assert (drain(orders={"timeoutSeconds": 1}).code, api.evicted) == (1, ["b"])


def test_a_pod_that_keeps_the_node_from_the_middle_on_ends_the_evictions(api, start):
    program, start_drain = start
    api.put(*HELD)
    process = start_drain(timeoutSeconds=6)
    until(lambda: [one for one in api.progress if one["blocked"]])
    api.put(pod("z", owner=None), pod("b"))
    ran = program.finish(process)
    assert (ran.code, api.evicted) == (1, []), ran.out
    assert ran.message.startswith("failed: 3 pods left on gpu-1 after 6 s: team/z (no controller")


def test_a_pod_that_is_declared_meanwhile_goes(api, start):
    program, start_drain = start
    api.put(pod("a", owner=None))
    process = start_drain()
    until(lambda: api.progress)
    change(POD_A, "metadata", annotations={"remediator.dev/evict": "true"})(api)
    ran = program.finish(process)
    assert (ran.code, api.evicted) == (0, ["a"])
    assert api.progress[-1] == {"left": 0, "evicted": 1, "blocked": []}


KEPT_BY = [
    {"karpenter.sh/do-not-disrupt": "true"},
    {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    {"remediator.dev/evict": "false"},
]


@pytest.mark.parametrize("notes", KEPT_BY, ids=lambda notes: next(iter(notes)))
def test_what_an_owner_keeps_is_named_with_its_owner_and_goes_when_the_template_overrides_it(api, drain, notes):
    api.put(pod("a", annotations=notes), pod("b"))
    ran = drain(orders={"timeoutSeconds": 1})
    assert (ran.code, api.evicted) == (1, [])
    assert "team/a (its annotation " in ran.message
    assert "; its owner is ReplicaSet owner)" in ran.message
    ran = drain(orders={"timeoutSeconds": 10, "overrideAnnotationsAfterSeconds": 1})
    assert (ran.code, api.evicted) == (0, ["a", "b"]), ran.out
    assert "team/a goes against its annotation, as the template says; it is of ReplicaSet owner" in ran.out


def test_what_would_be_lost_is_declared_by_another_field_than_that_which_overrides_annotations(api, drain):
    api.put(pod("a", owner=None, annotations=KEPT_BY[0]))
    ran = drain(orders={"timeoutSeconds": 1, "overrideAnnotationsAfterSeconds": 0})
    assert (ran.code, api.evicted) == (1, [])
    assert "team/a (no controller makes it again" in ran.message


LATER = "2030-01-01T00:00:00Z"  # after the operation was made


def test_pods_that_come_again_and_again_are_asked_ten_times_and_then_named(api, drain):
    """One that tolerates every taint is put on the node again by its controller: no drain ends that."""
    made = iter(range(1000))
    api.replace = lambda gone: (
        pod(f"a-{next(made)}", creationTimestamp=LATER) if gone["metadata"]["name"] < "b" else None
    )
    api.put(pod("a-first", creationTimestamp="2025-01-01T00:00:00Z"))
    ran = drain(orders={"timeoutSeconds": 8})
    assert (ran.code, len(api.evicted)) == (1, 1 + 10), ran.out
    assert "ReplicaSet owner has made 10 Pods on this node since the drain began: take the toleration" in ran.message


def test_pods_that_come_once_are_moved_away_too(api, drain):
    api.put(*(pod(f"a-{number}", creationTimestamp=LATER) for number in range(9)))
    assert (drain().code, len(api.evicted)) == (0, 9)


def test_rules_give_some_pods_another_strategy(api, drain):
    api.put(*HELD, pod("b"), pod("stays", labels={"app": "cache"}))
    rules = [
        {"selector": {"matchLabels": {"app": "cache"}}, "strategy": "None"},
        {"namespaces": ["team"], "selector": {"matchLabels": WEB}, "strategy": "Delete"},
    ]
    ran = drain(orders={"rules": rules})
    assert (ran.code, ran.message) == (0, "drained gpu-1: 2 pods evicted or deleted"), ran.out
    assert (api.evicted, api.deleted) == (["b"], ["a"])
    assert [one["metadata"]["name"] for one in api.pods] == ["stays"]


def test_pods_kept_by_the_same_reason_are_named_together(api, drain):
    api.put(pod("a", owner=None), pod("b", owner=None))
    ran = drain(orders={"timeoutSeconds": 0.3})
    assert ran.message.startswith("failed: 2 pods left on gpu-1 after 0.3 s: team/a, team/b (no controller")


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


def test_a_case_that_is_cancelled_while_a_pod_is_in_the_way_ends_it_since_the_case_waits_for_that(api, start):
    program, start_drain = start
    api.put(*HELD)
    process = start_drain(case=CASE[2])
    until(lambda: api.progress)
    change(CASE, "metadata", deletionTimestamp="now")(api)
    ran = program.finish(process)
    assert (ran.code, ran.message) == (2, "refused: the case is cancelled")


def test_a_claim_lost_on_the_way_ends_it(api, start):
    program, start_drain = start
    api.put(*HELD)
    process = start_drain()
    until(lambda: api.progress)
    change(NODE, "spec", taints=[])(api)
    ran = program.finish(process)
    assert (ran.code, ran.message) == (2, "refused: node gpu-1 is not held by case case-1")


EXCLUDE, PAUSED = "remediator.dev/exclude", "remediator.dev/paused"
TIER, MIRROR = {"tier": "control-plane", "component": "etcd"}, {"kubernetes.io/config.mirror": "x"}
STOPS = {
    "a static Pod of the control plane is there": (
        lambda api: api.put(pod("etcd", "kube-system", owner="Node", labels=TIER, annotations=MIRROR)),
        lambda api: api.remove("pods", "kube-system", "etcd"),
        "gpu-1 is part of the control plane: Pod etcd runs there",
    ),
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
    "the policy only calls a person": (
        change(POLICY, "spec", mode="Enforce", urgency={"mode": "Never"}),
        change(POLICY, "spec", mode="Enforce", urgency={"mode": "Now"}),
        "the urgency of the policy is Never",
    ),
    "the approval of the case is taken back": (
        change(POLICY, "spec", mode="Enforce", approval="Required"),
        change(CASE, "spec", approved=True),
        "spec.approved of the case is not true",
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
    assert (sum(slept), work.deadline - deadline) == (1200.0, pytest.approx(1200.0))


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


def test_a_kubelet_that_comes_back_in_a_long_round_keeps_the_pods_that_were_not_asked_yet(monkeypatch):
    work = Drain(None, "gpu-1", Orders("op-1", "op-uid", "case-1", "ForceDelete", 1800.0, 5.0, 3600.0))
    asked = []
    work.silent = True
    monkeypatch.setattr(work, "look", lambda: None)
    monkeypatch.setattr(work, "steps", lambda: [(Pod("team", name, name, {}, False), Move(FORCE)) for name in "ab"])
    monkeypatch.setattr(work, "write_progress", lambda: True)

    def ask(pod, verb, budgets):
        asked.append(pod.name)
        work.silent = False

    monkeypatch.setattr(work, "ask", ask)
    work.round()
    assert asked == ["a"]


def test_sigterm_ends_it_at_once_with_a_sentence(api, start):
    program, start_drain = start
    api.put(*HELD)
    process = start_drain()
    until(lambda: api.progress)
    process.send_signal(signal.SIGTERM)
    started = time.monotonic()
    ran = program.finish(process)
    assert time.monotonic() - started < 3
    assert (ran.code, ran.message) == (143, "stopped by SIGTERM"), "no result: whoever ends it says nothing of the node"


def test_an_api_server_that_stumbles_is_asked_again(api, drain):
    api.put(pod("a"))
    api.refuse(503, 429, 410)
    ran = drain()
    assert (ran.code, api.evicted) == (0, ["a"]), ran.out


def test_an_api_server_that_cannot_be_reached_is_waited_for_beyond_the_drains_time(tmp_path, api):
    api.close()
    program = Program(tmp_path, "drain")
    program.variables |= api.environment()
    process = program.start(parameters={**ORDERS, "timeoutSeconds": 0.2})
    said = [process.stdout.readline() for _ in range(2)]
    assert all("does not answer, trying again" in line for line in said), said
    process.send_signal(signal.SIGTERM)
    ran = program.finish(process)
    assert (ran.code, ran.message) == (143, "stopped by SIGTERM")


def test_neither_a_round_without_an_answer_nor_the_rest_after_it_takes_of_the_drains_time(monkeypatch):
    work = Drain(None, "gpu-1", Orders("op-1", "op-uid", "case-1", "Evict", 1800.0, 5.0, 3600.0))
    clock, rounds = [0.0], [30.0, 30.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    work.deadline = 60.0

    def a_round():
        if not rounds:
            work.left = []
            return
        clock[0] += (seconds := rounds.pop())
        raise Unreachable("GET /: TimeoutError", seconds)

    monkeypatch.setattr(work, "round", a_round)
    assert work.run() == "drained gpu-1: 0 pods evicted"
    assert clock[0] == work.deadline - 60.0 > 60.0


def test_a_dry_run_says_that_nobody_would_go_while_one_pod_keeps_the_node(api, drain):
    api.put(pod("a"), pod("b", owner=None))
    ran = drain("--dry-run")
    nobody, sentence = ran.out.splitlines()
    assert nobody.startswith("would evict nobody because of team/b: no controller makes it again")
    assert sentence == "0 pods would go from gpu-1, 2 would not"


def test_a_dry_run_names_the_pods_and_changes_nothing(api, drain):
    api.put(pod("a"), pod("agent", owner="DaemonSet"))
    ran = drain("--dry-run")
    assert (ran.code, ran.message) == (0, "")
    assert ran.out.splitlines() == ["would evict team/a", "1 pods would go from gpu-1"]
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


def test_it_imports_nothing_that_takes_long_and_that_a_drain_does_without():
    """Fifty may start at once: typing and argparse were a fifth of the start of each."""
    code = "import sys; sys.path.append(sys.argv[1]); import nodelib.k8s.drain; print(*sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", code, str(OPERATIONS.parent)]
    imported = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.split()
    assert {"http.client", "nodelib.k8s.drain_orders"} <= set(imported)
    assert not {"typing", "argparse", "dataclasses", "inspect", "asyncio"} & set(imported)

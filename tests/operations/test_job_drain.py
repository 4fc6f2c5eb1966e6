"""The drain of jobs: gangs that go together, and Pods that are asked for a checkpoint before."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from nodelib.k8s.drain_moves import Move
from nodelib.k8s.drain_orders import read_orders
from nodelib.k8s.job_drain import JobDrain
from nodelib.k8s.pods import Pod
from tests.harness.apiserver import OPERATION, change
from tests.harness.objects import budget, pod
from tests.operations.conftest import Program

pytestmark = pytest.mark.sampled("job drain")

ORDERS = {"operation": "op-1", "operationUID": "op-uid", "caseUID": "case-1", "timeoutSeconds": 8, "perSecond": 1000}
WEB, TRAIN = {"app": "web"}, {"jobset.sigs.k8s.io/jobset-name": "train-7"}
WANTED, REQUESTED, DONE = (f"remediator.dev/checkpoint{word}" for word in ("", "-requested", "-done"))


@pytest.fixture
def drain(tmp_path, api):
    """The program, told of `api`."""
    program = Program(tmp_path, "drain")
    program.variables |= api.environment()
    return lambda *options, **more: program(*options, parameters={**ORDERS, **more.pop("orders", {})}, **more)


def orders_to_go(api):
    """Where in the requests each eviction of a Pod of the gang stands; each is tried once before."""
    told = [index for index, (_, path, _) in enumerate(api.requests) if "/train-" in path and "/eviction" in path]
    return told[len(told) // 2 :]


def at(seconds=0.0):
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def notes(name, namespace="team"):
    return ("pods", namespace, name)


def test_a_gang_goes_as_one_order_without_a_wait_between_its_pods(api, drain):
    api.put(*(pod(f"train-{index}", labels=TRAIN) for index in range(8)), pod("b"))
    ran = drain(orders={"perSecond": 5})
    assert (ran.code, ran.message) == (0, "drained gpu-1: 9 pods evicted"), ran.out
    first, *_, last = orders_to_go(api)
    assert last - first == 7, "nothing else was asked between the eight evictions"


def test_a_gang_that_nobody_judges_is_not_deleted_and_no_budget_is_named(api, drain):
    api.put(pod("train-0", labels={**TRAIN, **WEB}), pod("train-1", labels=TRAIN), budget("web", 0, WEB))
    said = 'Internal error occurred: failed calling webhook "evictions.remediator.dev": no endpoints available'
    api.refuse_evictions(500, said, times=2)  # of dry runs, at 0 and 1 seconds
    ran = drain(orders={"strategy": "EvictThenDelete", "timeoutSeconds": 0.9, "evictForSeconds": 0.3})
    assert (ran.code, api.evicted, api.deleted) == (0, ["train-0", "train-1"], []), ran.out
    blocked = next(one["blocked"] for one in api.progress if one["blocked"])
    assert [(one["pod"], one["pdb"]) for one in blocked] == [("team/train-0", ""), ("team/train-1", "")]


def test_a_gang_that_a_budget_refuses_is_judged_as_one_and_deleted_as_one(api, drain):
    """The budget is over one of three Pods; the time for evictions is over before the first one is asked."""
    held = pod("train-0", labels={**TRAIN, **WEB})
    api.put(held, pod("train-1", labels=TRAIN), pod("train-2", labels=TRAIN), budget("web", 1, WEB))
    ran = drain(orders={"strategy": "EvictThenDelete", "timeoutSeconds": 3, "evictForSeconds": 0})
    assert (ran.code, api.evicted, api.deleted) == (0, [], ["train-0", "train-1", "train-2"]), ran.out
    tried = [path for method, path, _ in api.requests if method == "POST"]
    assert [path.split("/")[-2] for path in tried] == ["train-0"], "asked once, without being evicted"


def test_one_pod_that_may_not_go_keeps_its_whole_gang_and_no_other(api, drain):
    held = pod("train-0", labels={**TRAIN, **WEB})
    api.put(held, pod("train-1", labels=TRAIN), pod("alone"), budget("web", 1, WEB))
    ran = drain(orders={"timeoutSeconds": 1.2})
    assert (ran.code, api.evicted) == (1, ["alone"]), ran.out
    assert "team/train-0 (web)" in ran.message
    assert "team/train-1 (waits for team/train-0 of the same gang)" in ran.message
    assert [(one["pod"], one["pdb"]) for one in api.progress[-1]["blocked"]] == [
        ("team/train-0", "web"),
        ("team/train-1", ""),
    ]


def test_a_budget_that_lets_some_of_a_gang_go_keeps_all(api, drain):
    labels = {**TRAIN, **WEB}
    api.put(*(pod(f"train-{index}", labels=labels) for index in range(3)), budget("web", 1, WEB))
    ran = drain(orders={"timeoutSeconds": 1.2})
    assert (ran.code, api.evicted) == (1, [])
    message = api.progress[-1]["blocked"][0]["message"]
    assert message == "budget web allows 2 disruptions now, and the gang needs 3 at once"


def test_a_gang_goes_once_its_budget_lets_all_go(api, drain):
    labels = {**TRAIN, **WEB}
    api.put(*(pod(f"train-{index}", labels=labels) for index in range(2)), budget("web", 1, WEB))

    def others_come(method, path):
        if path.endswith("/poddisruptionbudgets"):
            api.put(pod("elsewhere", labels=WEB, node="gpu-2"))

    api.on_request = others_come
    ran = drain()
    assert (ran.code, api.evicted) == (0, ["train-0", "train-1"]), ran.out


def test_delete_asks_no_budget_for_a_gang_either(api, drain):
    api.put(*(pod(f"train-{index}", labels={**TRAIN, **WEB}) for index in range(2)), budget("web", 2, WEB))
    assert drain(orders={"strategy": "Delete"}).code == 0
    assert (api.deleted, api.evicted) == (["train-0", "train-1"], [])


def test_a_gang_of_which_one_is_ending_is_not_held_back_any_more(api, drain):
    labels = {**TRAIN, **WEB}
    api.put(pod("train-0", labels=TRAIN, deletionTimestamp="2036-01-01T00:00:00Z"))
    api.put(pod("train-1", labels=labels), pod("train-2", labels=TRAIN), budget("web", 1, WEB))
    ran = drain(orders={"timeoutSeconds": 0.8})
    assert (ran.code, api.evicted) == (1, ["train-2"]), "its work is lost anyway: who may go need not wait"


KARPENTER = {"karpenter.sh/do-not-disrupt": "true"}
VOLCANO = {"scheduling.k8s.io/group-name": "train-7"}


@pytest.mark.parametrize("strategy", ["Evict", "Delete"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("labels", "notes"), [(TRAIN, {}), ({}, VOLCANO)], ids=["label", "annotation"])
def test_one_that_its_owner_keeps_on_another_node_keeps_the_whole_gang(api, drain, labels, notes, count, strategy):
    api.put(*(pod(f"train-{index}", labels=labels, annotations=notes) for index in range(count)), pod("alone"))
    api.put(pod("leader", labels=labels, annotations=notes | KARPENTER, node="gpu-2"))
    api.put(pod("other", annotations=KARPENTER, node="gpu-2"))
    ran = drain(orders={"timeoutSeconds": 1.2, "strategy": strategy})
    assert (ran.code, api.evicted + api.deleted) == (1, []), "work is not ended for a drain that cannot end"
    blocked = api.progress[-1]["blocked"]
    assert [one["pod"] for one in blocked] == [f"team/train-{index}" for index in range(count)]
    words = "its gang goes as a whole, and team/leader on another node may not: its annotation karp"
    assert blocked[0]["message"].startswith(words)
    assert words in ran.message
    assert ran.message.endswith("; nobody else was asked")


def test_a_gang_that_is_let_go_on_another_node_lets_the_drain_go_on(api, drain):
    leader = pod("leader", labels=TRAIN, annotations=KARPENTER, node="gpu-2")
    api.put(pod("train-0", labels=TRAIN), pod("alone"), leader)
    let_go = change(notes("leader"), "metadata", annotations={"remediator.dev/evict": "true"})
    api.on_request = lambda method, path: method == "PATCH" and path.endswith("/status") and let_go(api)
    assert (drain().code, api.evicted) == (0, ["alone", "train-0"])


def test_a_gang_that_is_kept_on_another_node_is_not_looked_for_in_each_round(api, drain):
    api.put(pod("train-0", labels=TRAIN), pod("leader", labels=TRAIN, annotations=KARPENTER, node="gpu-2"))
    drain(orders={"timeoutSeconds": 5.5})
    looked = sum(path == "/api/v1/namespaces/team/pods" for _, path, _ in api.requests)
    assert looked == 3, "at 0, 1 and 3 seconds; the next would be at 7"


def test_one_of_a_gang_under_two_budgets_keeps_the_node(api, drain):
    api.put(pod("train-0", labels={**TRAIN, **WEB}), pod("train-1", labels=TRAIN), pod("alone"))
    api.put(budget("web", 0, WEB), budget("all", 0, WEB))
    ran = drain(orders={"timeoutSeconds": 1.2})
    assert (ran.code, api.evicted) == (1, [])
    assert [(one["pod"], one["pdb"]) for one in api.progress[-1]["blocked"]] == [("team/train-0", "all,web")]


def test_a_gang_of_which_one_is_ending_on_another_node_has_lost_its_work_anyway(api, drain):
    api.put(pod("train-0", labels=TRAIN), pod("leader", labels=TRAIN, annotations=KARPENTER, node="gpu-2"))
    api.put(pod("train-9", labels=TRAIN, node="gpu-3", deletionTimestamp="2036-01-01T00:00:00Z"))
    assert (drain().code, api.evicted) == (0, ["train-0"])


def test_what_is_declared_here_says_nothing_of_data_on_another_node(api, drain):
    api.put(pod("train-0", labels=TRAIN), pod("leader", labels=TRAIN, owner=None, node="gpu-2"))
    assert (drain().code, api.evicted) == (0, ["train-0"]), "nobody takes the leader: the drain of its own node asks"


def test_one_of_a_gang_that_is_kept_for_good_keeps_all_of_it(api, drain):
    api.put(pod("train-0", labels=TRAIN, owner=None), pod("train-1", labels=TRAIN), pod("train-2", labels=TRAIN))
    ran = drain(orders={"timeoutSeconds": 1.2})
    assert (ran.code, api.evicted) == (1, []), ran.out


def test_a_batch_job_of_many_pods_is_no_gang(api, drain):
    labels = {"batch.kubernetes.io/job-name": "thousand"}
    held = pod("p-0", labels={**labels, **WEB}, owner="Job")
    api.put(held, pod("p-1", labels=labels, owner="Job"), budget("web", 1, WEB))
    drain(orders={"timeoutSeconds": 0.5})
    assert api.evicted == ["p-1"]


# --- checkpoints -----------------------------------------------------------------------------------------------------


def answers(api, name, seconds=0.0):
    """The Pod answers as soon as it was asked."""

    def hear(method, path):
        if method == "GET" and path.startswith("/api/v1/pods"):
            found = next((one["metadata"]["annotations"] for one in api.pods if one["metadata"]["name"] == name), {})
            if REQUESTED in found and DONE not in found:
                api.edit(notes(name), lambda obj: obj["metadata"]["annotations"].update({DONE: at(seconds)}))

    api.on_request = hear


def ends_after(api, lists):
    """The operation ends once the drain has listed the Pods so often; what it heard before is called, too."""
    before, seen = api.on_request, []

    def hear(method, path):
        before(method, path)
        if method == "GET" and path == "/api/v1/pods":
            seen.append(path)
        if len(seen) == lists:
            change(OPERATION, "status", phase="Cancelled")(api)

    api.on_request = hear


def messages(api):
    """What was written of each Pod last."""
    return {one["pod"]: one["message"] for progress in api.progress for one in progress["blocked"]}


def asked(api):
    """The times that were written, with the Pods."""
    patches = [(path, body) for method, path, body in api.requests if method == "PATCH" and "/pods/" in path]
    return [(path.rpartition("/")[2], body["metadata"]["annotations"]) for path, body in patches]


def test_a_pod_that_wants_a_checkpoint_is_asked_and_goes_when_it_has_answered(api, drain):
    api.put(pod("train", annotations={WANTED: "10m"}), pod("b"))
    answers(api, "train")
    ran = drain()
    assert (ran.code, api.evicted) == (0, ["b", "train"]), ran.out
    [(name, written)] = asked(api)
    assert (name, list(written)) == ("train", [REQUESTED])
    waiting = [one for progress in api.progress for one in progress["blocked"]]
    assert waiting[0]["message"].startswith("asked for a checkpoint: waits for its answer until 20")


def test_one_that_does_not_answer_goes_when_its_time_is_over(api, drain):
    api.put(pod("train", annotations={WANTED: "2s"}))
    began = datetime.now(UTC)
    ran = drain()
    assert (ran.code, api.evicted) == (0, ["train"]), ran.out
    assert datetime.now(UTC) - began >= timedelta(seconds=1), "a time of the server has whole seconds"


def test_a_drain_that_begins_anew_does_not_ask_again(api, drain):
    api.put(pod("train", annotations={WANTED: "3s", REQUESTED: at(-2)}))
    assert drain().code == 0
    assert (asked(api), api.evicted) == ([], ["train"])


def test_what_an_earlier_operation_asked_and_was_told_counts_no_more(api, drain):
    api.put(pod("train", annotations={WANTED: "10m", REQUESTED: at(-7200), DONE: at(-7000)}))
    change(OPERATION, "metadata", creationTimestamp=at(-5))(api)
    ends_after(api, 3)
    assert (drain().code, api.evicted) == (2, [])
    assert messages(api)["team/train"].startswith("asked for a checkpoint")
    assert len(asked(api)) == 1


def test_an_answer_from_before_the_request_is_none(api, drain):
    api.put(pod("train", annotations={WANTED: "10m"}))
    answers(api, "train", seconds=-60)
    ends_after(api, 4)
    assert (drain().code, api.evicted) == (2, [])


def test_a_gang_is_asked_together_and_waits_for_the_last_one(api, drain):
    api.put(*(pod(f"train-{index}", labels=TRAIN, annotations={WANTED: "10m"}) for index in range(2)))
    api.put(pod("train-2", labels=TRAIN))
    answers(api, "train-0")
    ends_after(api, 4)
    assert (drain().code, api.evicted) == (2, [])
    assert [name for name, _ in asked(api)] == ["train-0", "train-1"]
    assert messages(api)["team/train-2"].startswith("waits for team/train-")


def test_shortly_before_its_own_end_a_drain_waits_for_nobody(api, drain):
    api.put(pod("train", annotations={WANTED: "10h"}))
    ran = drain(orders={"timeoutSeconds": 3})
    assert (ran.code, api.evicted) == (0, ["train"]), ran.out


def went_after(api, drain, grace, **labels):
    """Seconds until a Pod that never answers was asked to go, in a drain of 6 s; `grace`: its own."""
    slow = pod("train", annotations={WANTED: "10h"}, **labels)
    slow["spec"]["terminationGracePeriodSeconds"] = grace
    api.put(slow)
    begun, gone = time.monotonic(), []
    api.on_request = lambda method, path: path.endswith("/eviction") and gone.append(time.monotonic())
    assert drain(orders={"timeoutSeconds": 6}).code == 0
    return gone[-1] - begun


def test_the_last_call_leaves_a_pod_half_of_a_short_drain_to_end(api, drain):
    assert 2.5 < went_after(api, drain, 600) < 5, "until then it could have answered; then it has 3 s of its 600"


def test_of_a_gang_the_longest_grace_counts():
    work = JobDrain(None, "gpu-1", read_orders({**ORDERS, "timeoutSeconds": 1800}))
    gang = [(Pod("team", name, name, {}, False, grace=grace), Move("evict")) for name, grace in (("a", 30), ("b", 600))]
    assert work.waits_until(gang) == work.deadline - 615


def test_nobody_is_asked_while_a_budget_holds_the_pod(api, drain):
    api.put(pod("train", labels=WEB, annotations={WANTED: "10m"}), budget("web", 1, WEB))
    ran = drain(orders={"timeoutSeconds": 1.2})
    assert (ran.code, asked(api)) == (1, [])
    assert "team/train (web)" in ran.message


def test_a_pod_that_cannot_be_asked_stays(api, drain):
    api.put(pod("train", annotations={WANTED: "10m"}))
    api.faults.refuse(403, times=100, when=lambda request: request.method == "PATCH" and "/pods/" in request.path)
    ran = drain(orders={"timeoutSeconds": 1.2})
    assert (ran.code, api.evicted) == (1, [])
    assert "team/train (cannot be asked for a checkpoint: " in ran.message


def test_a_pod_that_runs_nothing_yet_is_not_asked(api, drain):
    api.put(pod("train", annotations={WANTED: "10m"}, phase="Pending"))
    assert (drain().code, asked(api), api.evicted) == (0, [], ["train"])

"""The container with a token: orders that the API server has, handed over once they are proven, and their end."""

import threading
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
import take_orders
from take_orders import EXPIRED, OrderObservation, Step, TakesOrders, label_of, step

from nodelib.contract import order as contract
from nodelib.contract.operation import Failed
from nodelib.contract.order import ORDER, OrderResult
from nodelib.k8s.api import Api
from remediator.core import names
from remediator.core.template import RunOn
from remediator.kube.api import encode
from tests.builders import a_template, minutes
from tests.harness.objects import BOOT

NAMESPACE = names.OPERATIONS_NAMESPACE
CLAIM_LOST = "refused: node gpu-1 is not held by case case-1"


QUARTER = minutes(15)


def an_order(made=None, deadline=QUARTER, node="gpu-1", **env):
    """The Pod that is an order, as the controller makes it, its uid and its time as the API server sets them."""
    usual = {
        "NODE_NAME": node,
        "OPERATION": "restart-kubelet",
        "ATTEMPT_ID": "op-1",
        "EXPECTED_BOOT_ID": BOOT,
        "PARAMETERS": '{"settleSeconds": "3", "caseUID": "case-1"}',
        "CASE_NAME": "gpu-1-kubelet-1",
        "ON_BEHALF_OF": "User ann of the night shift",
    }
    template = a_template(
        "restart-kubelet",
        run_on=RunOn.WATCHDOG,
        pod={"spec": {"containers": [{"name": "main", "image": "i"}], "serviceAccountName": "remediator-host"}},
    )
    body = encode.pod(template, "order", node, labels={}, env=usual | env, deadline=deadline)
    stamp = (made or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body["metadata"] |= {"namespace": NAMESPACE, "uid": "pod-uid", "creationTimestamp": stamp}
    return body | {"status": {"phase": "Pending"}}


@pytest.fixture
def watchdog(api, folders):
    variables = api.environment()
    return TakesOrders(Api(variables, variables["TOKEN_DIR"]), "gpu-1", *folders)


def status(api):
    (pod,) = api.pods
    (container,) = pod["status"].get("containerStatuses") or [{}]
    return pod["status"]["phase"], container.get("state", {}).get("terminated", {})


def handed(watchdog):
    return contract.attempts(watchdog.orders, ORDER)


@pytest.mark.parametrize(
    ("seen", "does"),
    [
        (("Pending", False, False, False, 600.0), Step.TAKE),
        (("Pending", False, False, False, 29.0), Step.TOO_LATE),
        (("Pending", True, False, False, 600.0), Step.NOTHING),
        (("Running", False, True, False, 600.0), Step.NOTHING),
        (("Running", False, True, True, -9.0), Step.REPORT),
        (("Running", True, True, True, 600.0), Step.REPORT),
        (("Running", True, True, False, 600.0), Step.TAKE_BACK),
        (("Running", False, False, False, 600.0), Step.REPORT_LOST),
        (("Failed", False, True, True, 600.0), Step.TAKE_BACK),
        (("Succeeded", False, False, False, 600.0), Step.NOTHING),
    ],
    ids=lambda value: value.name if isinstance(value, Step) else "-".join(map(str, value)),
)
def test_what_is_done_about_an_order_follows_from_its_pod_and_its_files(seen, does):
    assert step(OrderObservation(*seen)) is does


def test_nothing_is_handed_over_but_a_pod_that_waits_is_wanted_and_has_time_left():
    phases = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    for seen in product(phases, *[(False, True)] * 3, (-1.0, 29.0, 600.0)):
        taken = step(OrderObservation(*seen)) is Step.TAKE
        assert taken == (seen == ("Pending", False, False, False, 600.0))


def test_an_order_is_proven_marked_as_running_handed_over_and_its_answer_becomes_the_end_of_the_pod(api, watchdog):
    api.put(an_order())
    before = contract.boot_seconds()
    assert watchdog.look()[0]
    order = contract.take(watchdog.orders, "op-1")
    assert order[:5] == ("restart-kubelet", "op-1", "case-1", "gpu-1", BOOT)
    assert order.parameters == {"settleSeconds": "3"}
    assert order[7:] == ("gpu-1-kubelet-1", "User ann of the night shift")
    assert 820 < order.until - before < 845, "15 min, 60 s less: nobody gives up before it has ended"
    assert status(api)[0] == "Running"
    assert watchdog.look()[0], "it goes on"
    contract.say(watchdog.answers, "op-1", OrderResult(0, "restarted kubelet"))
    watchdog.look()
    ended = {"exitCode": 0, "reason": "Completed", "message": "restarted kubelet"}
    assert (status(api), handed(watchdog)) == (("Succeeded", ended), [])
    assert watchdog.look()[0] is False


@pytest.mark.parametrize(
    ("word", "told"), [("User " + "a" * 1024, "User " + "a" * 251), ("User a\tb\u202ec", "User a?b?c"), ("", "")]
)
def test_whoever_has_asked_for_it_their_name_keeps_no_order_back(api, watchdog, word, told):
    api.put(an_order(ON_BEHALF_OF=word))
    watchdog.look()
    assert contract.take(watchdog.orders, "op-1").on_behalf_of == told


def test_a_failure_is_told_with_the_exit_code_of_the_program(api, watchdog):
    api.put(an_order())
    watchdog.look()
    contract.say(watchdog.answers, "op-1", OrderResult(1, "failed: it does not stay up"))
    watchdog.look()
    assert status(api) == ("Failed", {"exitCode": 1, "reason": "Error", "message": "failed: it does not stay up"})


@pytest.mark.parametrize(
    ("env", "spoil", "why"),
    [
        ({}, lambda api: api.edit(("nodes", "", "gpu-1"), lambda node: node["spec"].update(taints=[])), CLAIM_LOST),
        ({"NODE_NAME": "gpu-2"}, None, "refused: the order is for node gpu-2, and this is gpu-1"),
        ({"OPERATION": "run-command"}, None, "refused: 'run-command' is no operation of a watchdog"),
        ({"EXPECTED_BOOT_ID": ""}, None, "refused: an order needs the uid of its case and the boot id of its node"),
        ({"PARAMETERS": "["}, None, "refused: PARAMETERS is not JSON"),
        ({"ATTEMPT_ID": "op-9"}, None, "refused: not there any more"),
    ],
    ids=["claim lost", "another node", "another operation", "no boot id", "no parameters", "no operation"],
)
def test_what_is_not_proven_is_refused_and_nothing_is_handed_over(api, watchdog, env, spoil, why):
    api.put(an_order(**env))
    if spoil:
        spoil(api)
    watchdog.look()
    phase, ended = status(api)
    assert (phase, ended["exitCode"], handed(watchdog)) == ("Failed", 2, [])
    assert ended["message"].startswith(why)


def test_an_order_that_changes_before_it_is_marked_as_running_is_not_handed_over(api, watchdog):
    """Deleted, or taken by another start of this container: both change the version of the Pod."""
    api.put(an_order())

    def touch(method, path):
        if method == "PATCH":
            api.edit(("pods", NAMESPACE, "order"), lambda pod: pod["metadata"].update(annotations={"a": "b"}))

    api.on_request = touch
    watchdog.look()
    assert (status(api)[0], handed(watchdog)) == ("Pending", [])


def test_the_orders_of_other_nodes_are_not_seen_and_what_lost_its_pod_is_taken_back(api, watchdog):
    api.put(an_order())
    watchdog.look()
    assert handed(watchdog) == ["op-1"]
    api.pods = [an_order(node="gpu-2")]
    assert watchdog.look()[0] is False
    assert (handed(watchdog), status(api)[0]) == ([], "Pending")


def test_an_order_of_which_the_file_is_gone_is_reported_as_lost_and_not_done_again(api, watchdog):
    api.put(an_order())
    watchdog.look()
    contract.forget(watchdog.orders, "op-1", ORDER)
    watchdog.look()
    assert (status(api)[0], status(api)[1]["exitCode"], handed(watchdog)) == ("Failed", 143, [])


def test_an_order_whose_time_is_nearly_over_is_left_alone(api, watchdog):
    api.put(an_order(made=datetime.now(UTC) - timedelta(minutes=13, seconds=40)))
    watchdog.look()
    assert (status(api)[0], handed(watchdog)) == ("Pending", [])


def test_a_token_that_the_kubelet_has_not_renewed_is_told_here_and_nothing_is_done(api, watchdog):
    api.put(an_order())
    api.refuse(401)
    with pytest.raises(Failed, match=EXPIRED):
        watchdog.look()
    assert (status(api)[0], handed(watchdog)) == ("Pending", [])


def test_one_round_says_what_went_wrong_and_goes_on(api, watchdog, monkeypatch, capsys):
    monkeypatch.setattr(take_orders, "AGAIN_SECONDS", 0.0)
    api.refuse(401)
    take_orders.takes_on(watchdog)
    assert capsys.readouterr().out == f"{EXPIRED}\n"


def test_nothing_ends_a_watchdog_since_nobody_would_start_it_anew(api, watchdog, monkeypatch, capsys):
    """Here an answer that is none, which the other container would never write."""
    monkeypatch.setattr(take_orders, "AGAIN_SECONDS", 0.0)
    api.put(an_order())
    (watchdog.answers / "op-1.answer").write_text('{"code": "x"}')
    take_orders.takes_on(watchdog)
    assert capsys.readouterr().out == "ValueError: invalid literal for int() with base 10: 'x'\n"


def test_a_watchdog_without_orders_waits_for_a_change_and_asks_for_nothing_meanwhile(api, watchdog):
    going_on, version = watchdog.look()
    assert not going_on
    woken = threading.Thread(target=watchdog.wait, args=[version])
    woken.start()
    api.put(an_order(node="gpu-2"))
    woken.join(0.3)
    assert woken.is_alive(), "an order of another node wakes nobody"
    asked = len(api.requests)
    api.put(an_order() | {"metadata": an_order()["metadata"] | {"name": "another", "uid": "u"}})
    woken.join(30)
    assert (woken.is_alive(), len(api.requests) - asked) == (False, 0)


def test_both_sides_find_an_order_by_the_same_label():
    assert (take_orders.LABEL, take_orders.NAMESPACE) == (names.WATCHDOG_LABEL, NAMESPACE)
    assert label_of("gpu-1") == names.watchdog("gpu-1") != names.watchdog("gpu-2")

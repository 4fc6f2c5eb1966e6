"""The container with privileges: what it is ordered by files, on a node whose systemctl answers by a script."""

import json
import os
import sys
import threading
import time

import carry_out
import pytest
from carry_out import PROGRAMS, CarriesOut

from nodelib.contract import order as contract
from nodelib.contract.order import ANSWER, DEEDS, LOST, ORDER, Order, OrderResult
from tests.operations.scripted import BOOT, Node, answer
from tests.watchdog.script import QUICK, WORKS, restarts


def an_order(**fields):
    usual = {
        "operation": "restart-kubelet",
        "attempt": "op-1",
        "case": "case-1",
        "node": "gpu-1",
        "boot_id": BOOT,
        "until": contract.boot_seconds() + 60,
        "parameters": QUICK,
        "case_name": "gpu-1-kubelet-1",
        "on_behalf_of": "Policy kubelet-silent",
    }
    return Order(**usual | fields)


@pytest.fixture
def node(tmp_path, folders, monkeypatch):
    """A node whose services come up when they are restarted."""
    node = Node(tmp_path, "restart_service")
    node.answers(*WORKS)
    monkeypatch.setenv("PATH", node.program.variables["PATH"])
    node.orders, node.answers_folder = folders
    node.watchdog = CarriesOut(*folders, node.root, grace=5.0)
    return node


def did(node, attempt="op-1"):
    return contract.answer_of(node.answers_folder, attempt)


@pytest.mark.parametrize(("operation", "unit"), [("restart-kubelet", "kubelet"), ("restart-runtime", "rke2-agent")])
def test_an_order_is_done_by_the_program_of_its_operation_and_answered(node, operation, unit):
    """The first service of a runtime that the node has: the script has every one."""
    contract.give(node.orders, an_order(operation=operation))
    node.watchdog.look()
    told = f"restarted {unit}, which was active; it is active and healthy"
    assert (did(node), restarts(node)) == (OrderResult(0, told), [f"{unit}.service"])
    assert (node.root / "run/remediator/op-1").exists()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"operation": "run-command"}, "refused: 'run-command' is no operation of a watchdog"),
        (
            {"parameters": {"service": "sshd"}},
            "refused: PARAMETERS may not name service: restart-kubelet takes healthz",
        ),
        ({"parameters": {"settleSeconds": 1}}, "refused: PARAMETERS: write every value as text"),
        ({"case": ""}, "refused: an order needs the uid of its case"),
        ({"case_name": "a\x00b"}, "refused: the case name of an order is one line of at most 256 printable letters"),
        ({"on_behalf_of": "User " + "a" * 252}, "refused: the word of an order is one line of at most 256"),
        ({"boot_id": "of-another-boot"}, f"refused: boot id is {BOOT}, not of-another-boot: it was rebooted since"),
        ({"until": 1.0}, "refused: the order came too late"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_watchdog_does_is_refused_and_nothing_is_run(node, fields, why):
    contract.give(node.orders, an_order(**fields))
    node.watchdog.look()
    assert did(node).code == 2
    assert did(node).sentence.startswith(why)
    assert restarts(node) == []


@pytest.mark.parametrize(
    ("left_out", "case", "by", "who"),
    [
        ((), "gpu-1-kubelet-1", "Policy", "kubelet-silent"),
        pytest.param(("caseName", "onBehalfOf"), "", "", "", id="an order of an older version"),
    ],
)
def test_the_log_of_its_program_names_the_case_and_on_whose_word_it_works(node, capfd, left_out, case, by, who):
    contract.give(node.orders, an_order())
    path = node.orders / f"op-1{ORDER}"
    written = json.loads(path.read_text())
    path.write_text(json.dumps({key: written[key] for key in written if key not in left_out}))
    node.watchdog.look()
    assert did(node).code == 0
    logged = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    lines = [line for line in logged if line["event"] == "audit"]
    assert {(line["case"], line["by"], line["who"], line["node"]) for line in lines} == {(case, by, who, "gpu-1")}


def spoil(path, how):
    """Make something else of a good order."""
    good = path.read_text()
    written = json.loads(good)
    if how == "link":
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        texts = {"large": good + " " * contract.MOST_BYTES, "no JSON": good[:-1], "list": f"[{good}]"}
        texts |= {"deep": "[" * 5000, "one more": json.dumps({**written, "command": "x"})}
        texts |= {"one less": json.dumps({key: written[key] for key in written if key != "case"})}
        texts |= {"another type": json.dumps({**written, "until": str(written["until"])})}
        path.write_text(texts[how])


HOW = ["link", "pipe", "large", "no JSON", "list", "deep", "one more", "one less", "another type"]


@pytest.mark.parametrize("how", HOW)
def test_a_file_that_is_no_order_is_refused(node, how):
    contract.give(node.orders, an_order())
    spoil(node.orders / f"op-1{ORDER}", how)
    node.watchdog.look()
    assert did(node).code == 2, did(node)
    assert restarts(node) == []


def test_the_order_of_one_attempt_under_the_name_of_another_is_refused(node):
    contract.give(node.orders, an_order())
    (node.orders / f"op-1{ORDER}").rename(node.orders / f"op-2{ORDER}")
    node.watchdog.look()
    assert did(node, "op-2").sentence == "refused: the order of op-1 lies under another name"


def test_an_attempt_is_carried_out_once_also_when_its_order_comes_again(node):
    """So a watchdog that ended in the middle does not know what came of it, and says so."""
    contract.give(node.orders, an_order())
    node.watchdog.look()
    contract.forget(node.orders, "op-1", ORDER)
    node.watchdog.look()
    assert did(node) is None
    contract.give(node.orders, an_order())
    node.watchdog.look()
    assert (did(node), restarts(node)) == (LOST, ["kubelet.service"])


def test_an_answer_is_forgotten_once_its_order_is_gone_and_kept_until_then(node):
    contract.give(node.orders, an_order())
    node.watchdog.look()
    node.watchdog.look()
    assert (did(node).code, len(restarts(node))) == (0, 1)
    contract.forget(node.orders, "op-1", ORDER)
    node.watchdog.look()
    assert contract.attempts(node.answers_folder, ANSWER) == []


def test_an_order_that_is_taken_back_stops_its_program(node):
    node.answers(answer("systemctl restart", hangs=60), *WORKS)
    contract.give(node.orders, an_order(parameters=QUICK | {"restartSeconds": "60"}))
    working = threading.Thread(target=node.watchdog.look)
    working.start()
    end = time.monotonic() + 30
    while not restarts(node):
        assert time.monotonic() < end
        time.sleep(0.05)
    contract.forget(node.orders, "op-1", ORDER)
    working.join(30)
    assert did(node) == OrderResult(143, "stopped: it did not end in its time, or its order was taken back")


def test_what_does_not_end_in_its_time_is_stopped(node):
    node.answers(answer("systemctl restart", hangs=60), *WORKS)
    until = contract.boot_seconds() + 1.5
    contract.give(node.orders, an_order(until=until, parameters=QUICK | {"restartSeconds": "60"}))
    node.watchdog.look()
    assert (did(node).code, len(restarts(node))) == (143, 1)


def test_a_program_that_cannot_be_started_is_a_failure(node, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/not/there")
    contract.give(node.orders, an_order())
    node.watchdog.look()
    assert did(node) == OrderResult(1, "failed: FileNotFoundError: [Errno 2] No such file or directory: '/not/there'")


def test_nothing_ends_a_watchdog_since_nobody_would_start_it_anew(node, monkeypatch, capsys):
    monkeypatch.setattr(carry_out, "LOOK_SECONDS", 0.0)
    node.watchdog.answers = node.root / "not-there"
    contract.give(node.orders, an_order(operation="run-command"))
    carry_out.looks(node.watchdog)
    assert "cannot look for orders: FileNotFoundError" in capsys.readouterr().out


def test_every_operation_of_a_watchdog_is_a_program_that_takes_what_may_be_given():
    for deed in DEEDS.values():
        source = (PROGRAMS / deed.program).read_text()
        assert [name for name in {*deed.allowed, *deed.fixed} if f'"{name}"' not in source] == []

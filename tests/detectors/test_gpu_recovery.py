"""gpu_recovery: what the driver wants of a GPU, and that it wants it still."""

import json

import nvlink_domain
import pytest
from gpu_recovery import CONCERN
from gpu_recovery import __doc__ as HELP
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.contract.memory import Stamp, recall
from nodelib.contract.npd import Verdict
from nodelib.host.child_process import ChildAnswer
from nodelib.host.gpus import Card
from nodelib.nvml.client import checked
from nodelib.nvml.results import see
from nodelib.nvml.wishes import SHAPES, TIMES, NvmlMemory, count, judge
from tests.detectors.fixtures.gpu_recovery import ACTIONS
from tests.detectors.node import Node, address, uuid
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = Verdict
FIRST, SECOND = (f"{address(index)} (GPU-00000000)" for index in range(2))


def gpu(index, action=0, refused=None):
    told = {"recovery action": {"action": action}} if refused is None else {}
    no = {} if refused is None else {"recovery action": refused}
    who = {"address": address(index), "uuid": uuid(index), "serial": str(index)}
    return {"index": index, "error": 0, **who, "facts": told, "refused": no}


def lost(index):
    return {"index": index, "error": 15}


def seen(*gpus, asked_at=100.0, **more):
    """What was read where NVML tells of these GPUs."""
    said = {"init": 0, "count": len(gpus), "gpus": list(gpus), "done": True, "asked_at": asked_at, **more}
    cards = tuple(Card(address(index), "present", "nvidia") for index in range(len(gpus)))
    return see(cards, {}, checked(ChildAnswer(said)), SHAPES)


def after(*runs, concern=CONCERN):
    """The verdict of the last of these runs, and its line."""
    memory = NvmlMemory()
    for run in runs:
        memory = count(run, memory, concern)
    return judge(runs[-1], memory, concern)


HUNG = see(None, None, ChildAnswer({"at": "init"}, silent_since="2026-11-20T10:00Z"), SHAPES)
RUNS = {
    "nothing wanted": ((seen(gpu(0), gpu(1)),), OK, "the driver asks for no recovery"),
    "wanted for the first time": ((seen(gpu(0), gpu(1, 1)),), UNKNOWN, f"wants GPU reset of {SECOND} (to be confirmed"),
    "wanted twice": (
        (seen(gpu(0), gpu(1, 1)), seen(gpu(0), gpu(1, 1), asked_at=160.0)),
        FAULT,
        f"the driver wants GPU reset of {SECOND}",
    ),
    "the same answer of NVML twice": ((seen(gpu(0, 1)), seen(gpu(0, 1))), UNKNOWN, "to be confirmed"),
    "the same answer of NVML once more, after it was confirmed": (
        (seen(gpu(0, 1)), seen(gpu(0, 1), asked_at=160.0), seen(gpu(0, 1), asked_at=160.0)),
        FAULT,
        "",
    ),
    "another wish the second time": (
        (seen(gpu(0, 2)), seen(gpu(0, 1), asked_at=160.0)),
        FAULT,
        f"the driver wants GPU reset of {FIRST}",
    ),
    "withdrawn": ((seen(gpu(0, 1)), seen(gpu(0), asked_at=160.0)), OK, ""),
    "withdrawn in between": (
        (seen(gpu(0, 1)), seen(gpu(0), asked_at=160.0), seen(gpu(0, 1), asked_at=220.0)),
        UNKNOWN,
        "to be confirmed",
    ),
    "another GPU the second time": (
        (seen(gpu(0, 1), gpu(1)), seen(gpu(0), gpu(1, 1), asked_at=160.0)),
        UNKNOWN,
        f"{SECOND} (to be confirmed",
    ),
    "nobody could tell in between": (
        (seen(gpu(0, 2)), HUNG, seen(gpu(0, 2), asked_at=220.0)),
        FAULT,
        f"the driver wants node reboot of {FIRST}",
    ),
    "NVML hangs with a fault before": (
        (seen(gpu(0, 2)), seen(gpu(0, 2), asked_at=160.0), HUNG),
        UNKNOWN,
        "NVML has not answered since 2026-11-20T10:00Z at init (see GpuLost)",
    ),
    "lost in between": (
        (seen(gpu(0, 2), gpu(1)), seen(lost(0), gpu(1), asked_at=160.0), seen(gpu(0, 2), gpu(1), asked_at=220.0)),
        FAULT,
        "node reboot",
    ),
    "a fault outranks another GPU's doubt": (
        (seen(gpu(0, 2), lost(1)), seen(gpu(0, 2), lost(1), asked_at=160.0)),
        FAULT,
        f"the driver wants node reboot of {FIRST}",
    ),
    "a doubt outranks health": ((seen(gpu(0), lost(1)),), UNKNOWN, "GPU index 1 does not answer (code 15, lost"),
    "a driver that does not know the field": (
        (seen(gpu(0, refused=3), gpu(1, refused=2)),),
        OK,
        f"it knows of no such thing at {FIRST}, {SECOND}",
    ),
    "a driver that fails at the field": ((seen(gpu(0, refused=999)),), UNKNOWN, "recovery action (code 999)"),
    "a field that was forgotten": ((seen({**gpu(0), "facts": {}}),), UNKNOWN, "recovery action (no answer)"),
    "an answer of unknown age confirms nothing": (
        (seen(gpu(0, 1), asked_at=None), seen(gpu(0, 1), asked_at="x")),
        UNKNOWN,
        "to be confirmed",
    ),
}


@pytest.mark.parametrize(("runs", "verdict", "words"), RUNS.values(), ids=RUNS.keys())
def test_a_wish_must_last_for_two_runs(runs, verdict, words):
    found, line = after(*runs)
    assert found is verdict, line
    assert words in line


def test_each_gpu_is_named_with_what_is_wanted_of_it_in_order():
    twice = [seen(gpu(1, 2), gpu(0, 1), asked_at=at) for at in (100.0, 160.0)]
    assert after(*twice) == (
        FAULT,
        f"the driver wants GPU reset of {FIRST}; the driver wants node reboot of {SECOND}",
    )


@pytest.mark.parametrize("words", ACTIONS.values())
def test_help_has_a_remedy_for_every_action(words):
    assert f"\n  {words} " in HELP


@pytest.mark.parametrize(("number", "version"), [(3, ""), (5, "595.45.04"), (5, "615.71.05")])
def test_what_another_node_or_link_needs_is_told_of_by_its_own_and_nothing_is_done_to_this_node(number, version):
    twice = [seen(gpu(0, number), gpu(1), asked_at=at, driver=version) for at in (100.0, 160.0)]
    assert after(*twice)[0] is OK
    verdict, line = after(*twice, concern=nvlink_domain.CONCERN)
    assert (verdict, line.endswith(f" of {FIRST}")) == (FAULT, True)
    own = [seen(gpu(0, 1), gpu(1), asked_at=at, driver=version) for at in (100.0, 160.0)]
    assert after(*own, concern=nvlink_domain.CONCERN)[0] is OK


@pytest.mark.parametrize(("number", "version"), [(5, ""), (5, "590.48.01"), (6, "595.45.04"), (9, "615.71.05")])
def test_a_wish_that_nobody_can_read_starts_nothing_and_ends_nothing(number, version):
    twice = [seen(gpu(0, number), asked_at=at, driver=version) for at in (100.0, 160.0)]
    assert after(*twice) == (UNKNOWN, f"the driver wants unknown action {number} of {FIRST}")


garbage = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["action", "x"]), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(garbage)
def test_a_number_of_the_driver_replaced_by_garbage_is_never_health(value):
    broken = seen({**gpu(0), "facts": {"recovery action": {"action": value}}})
    assert after(broken)[0] is not OK or (type(value) is int and value in (0, 3, 4))


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(asked_at=garbage, times=garbage, boot=st.sampled_from(["this", "other", 3]))
def test_garbage_in_memory_confirms_nothing_by_error(tmp_path_factory, asked_at, times, boot):
    path = tmp_path_factory.getbasetemp() / "gpu_recovery.json"
    path.write_text(json.dumps({"boot_id": boot, "asked_at": asked_at, "times": times}))
    memory = recall(path, NvmlMemory, Stamp("this", 1000.0))
    assert judge(seen(gpu(0)), count(seen(gpu(0)), memory, CONCERN), CONCERN)[0] is OK
    assert boot == "this" or memory == NvmlMemory()
    assert all(type(n) is int for n in memory.times.values())


@pytest.fixture
def node(tmp_path, nvml_library):
    """A healthy node of eight GPUs."""
    return Node(tmp_path, nvml_library, gpus=8, detector="gpu_recovery")


def test_the_program_confirms_keeps_evidence_and_lets_go(node):
    assert node.run()[:2] == (OK, "the driver asks for no recovery")
    node.orders("gpu 3 field-230 1")
    wish = f"the driver wants GPU reset of {address(3)} (GPU-00000000)"
    assert [node.run()[:2] for _ in range(TIMES + 1)] == [
        (UNKNOWN, f"{wish} (to be confirmed by the next run)"),
        (FAULT, wish),
        (FAULT, wish),
    ]
    path = node.state / "evidence/gpu_recovery.json"
    [kept] = json.loads(path.read_text())["gpus"]
    assert kept == {"address": address(3), "uuid": uuid(3), "serial": "1563521020403", "action": 1}
    node.orders()
    assert node.run().code == OK
    assert not path.exists()


def test_runs_that_take_the_same_answer_of_nvml_are_one(node):
    node.orders("gpu 3 field-230 1")
    assert [node.run("--fresh=60").code for _ in range(3)] == [UNKNOWN] * 3
    assert node.run("--fresh=0").code == FAULT
    assert node.run("--fresh=60").code == FAULT


def test_a_wish_of_the_last_boot_confirms_nothing(node):
    boot = node.proc / "sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    node.orders("gpu 3 field-230 2")
    boot.write_text("first\n")
    assert [node.run().code for _ in range(2)] == [UNKNOWN, FAULT]
    boot.write_text("second\n")
    assert node.run().code == UNKNOWN


def test_explain_shows_what_is_wanted_and_leaves_no_mark(node):
    node.orders("gpu 3 field-230 6")
    ran = node.run("--explain")
    for words in ("cards: ", f"wanted: the driver wants bus reset of {address(3)}", "doubts: none", "verdict: UNKNOWN"):
        assert words in ran.line
    assert not (node.state / "marks").exists()

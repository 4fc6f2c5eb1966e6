"""What gpu_ecc makes of what it read."""

import json

import gpu_worn
import pytest
from gpu_ecc import __doc__ as HELP
from gpu_ecc import judge
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.contract.npd import Verdict
from nodelib.host.child_process import ChildAnswer
from nodelib.host.gpus import Card, Driven
from nodelib.nvml.client import checked
from nodelib.nvml.ecc import QUESTIONS, often, sampled
from nodelib.nvml.memory_signs import COUNTER_CHARS, MOST_PAGES, NEEDED, SHAPES, WAITING, WORN, faulty, told
from nodelib.nvml.results import see
from tests.detectors.node import address
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = Verdict
HEALTHY = {
    "ECC mode": {"current": 1, "pending": 1},
    "uncorrected errors": {"volatile": 0},
    "corrected errors": {"volatile": 0},
    "ECC history": {"uncorrected": 0, "corrected": 0},
    "row remap": {"corrected": 0, "uncorrected": 0, "pending": 0, "failed": 0},
    "spare rows": {"max": 640, "high": 0, "partial": 0, "low": 0, "none": 0},
    "SRAM": {"exceeded": 0, "parity": 0, "secded": 0},
    "recovery action": {"action": 0},
    "processes": {"pid": [7], "kind": ["compute"], "memory": [0]},
}
NO_PAGES = {"retired pages": 3}


def gpu(index, refused=NO_PAGES, **facts):
    """A healthy GPU, but for `facts` (question with _ for blanks) and the questions that it refuses."""
    changed = {name.replace("_", " "): {**HEALTHY.get(name.replace("_", " "), {}), **f} for name, f in facts.items()}
    return {
        "index": index,
        "error": 0,
        "address": address(index),
        "uuid": f"GPU-{index}a2b3c4d-0000-0000-0000-000000000000",
        "serial": f"15635210204{index:02d}",
        "facts": {name: value for name, value in {**HEALTHY, **changed}.items() if name not in refused},
        "refused": refused,
    }


def silent(index, code):
    return {"index": index, "error": code}


def said(*gpus, **more):
    return {"init": 0, "count": len(gpus), "gpus": list(gpus), "done": True, **more}


def answered(answer, cards=None, driven=None):
    """What was read where NVML gave this answer."""
    return see(cards, driven, checked(answer), SHAPES)


def seen(*gpus, cards=2, lost=None, driven=None, **more):
    """What was read where NVML tells of `gpus` and PCI shows `cards`."""
    found = tuple(Card(address(index), "present", "nvidia") for index in range(cards))
    return answered(ChildAnswer(said(*gpus, **more)), lost or found, driven or {})


def shows(**facts):
    """Two GPUs, the second one with `facts`."""
    return seen(gpu(0), gpu(1, **facts))


def pages(single, double, pending=0):
    old = {"single": single, "double": double, "pending": pending}
    return seen(gpu(0), gpu(1, refused={"row remap": 3, "SRAM": 13, "spare rows": 3}, retired_pages=old))


SIGNS = (*WAITING, *WORN)
SECOND = "0000:11:00.0 (GPU-1a2b3c4d)"
JUDGED = {
    "healthy GPUs": (seen(gpu(0), gpu(1)), OK, "no GPU has a memory fault"),
    "an error since the driver loaded": (
        shows(uncorrected_errors={"volatile": 1}),
        FAULT,
        f"uncorrected memory errors since the driver loaded (reset): {SECOND}",
    ),
    "errors long ago are no fault": (shows(ECC_history={"uncorrected": 9, "corrected": 99}), OK, ""),
    "a remap that waits for a reset": (
        shows(row_remap={"pending": 1, "uncorrected": 1}),
        FAULT,
        f"row remap pending (reset): {SECOND}",
    ),
    "what the driver wants drained and reset": (
        shows(recovery_action={"action": 4}),
        FAULT,
        f"the driver asks to drain and reset (reset): {SECOND}",
    ),
    "what the driver wants now is not of memory": (shows(recovery_action={"action": 1}), OK, ""),
    "memory that cannot be repaired": (
        shows(unrepairable_memory={"flag": 1}),
        FAULT,
        f"memory that cannot be repaired (replace): {SECOND}",
    ),
    "a remap that was done": (shows(row_remap={"uncorrected": 1}), OK, ""),
    "a remap that failed": (shows(row_remap={"failed": 1}), FAULT, f"row remap failed (replace): {SECOND}"),
    "SRAM over its threshold": (
        shows(SRAM={"exceeded": 1}),
        FAULT,
        f"SRAM error threshold exceeded (replace): {SECOND}",
    ),
    "SRAM errors below it": (shows(SRAM={"parity": 2, "secded": 1}), OK, ""),
    "as many retired pages as are too many": (
        pages(MOST_PAGES - 10, 10),
        FAULT,
        f"too many retired pages (replace): {SECOND}",
    ),
    "one retired page less": (pages(MOST_PAGES - 11, 10), OK, ""),
    "a page that waits for a reset": (pages(0, 1, pending=1), FAULT, f"page retirement pending (reset): {SECOND}"),
    "few spare rows are told and no fault": (shows(spare_rows={"low": 1}), OK, f"few spare rows left: {SECOND}"),
    "no spare rows in a bank likewise": (shows(spare_rows={"none": 1}), OK, f"few spare rows left: {SECOND}"),
    "partly used spare rows are nothing": (shows(spare_rows={"partial": 3}), OK, ""),
    "ECC that is off is told and no fault": (
        seen(gpu(0), gpu(1, refused={"uncorrected errors": 3, "retired pages": 3}, ECC_mode={"current": 0})),
        OK,
        f"ECC is off: {SECOND}",
    ),
    "a card without any ECC": (
        seen(gpu(0, refused=dict.fromkeys(QUESTIONS, 3)), gpu(1, refused=dict.fromkeys(QUESTIONS, 13))),
        OK,
        "no GPU has a memory fault",
    ),
    "no GPU at all": (
        seen(cards=0, init=12, gpus=[]),
        OK,
        "there is no NVIDIA GPU on this node",
    ),
    "a question that was put wrongly": (
        seen(gpu(0), gpu(1, refused={**NO_PAGES, "row remap": 2})),
        UNKNOWN,
        "row remap in a way that makes sense",
    ),
    "a GPU that is lost": (
        seen(gpu(0), silent(1, 15)),
        UNKNOWN,
        "GPU index 1 does not answer (code 15, lost; see GpuLost)",
    ),
    "a lost GPU hides no fault of another": (
        seen(gpu(0, row_remap={"pending": 1}), silent(1, 15)),
        FAULT,
        "row remap pending (reset): 0000:10:00.0",
    ),
    "a GPU that is lost while it is asked": (
        seen(gpu(0), gpu(1, refused={**NO_PAGES, "row remap": 15})),
        UNKNOWN,
        f"{SECOND} does not report its row remap (code 15, lost)",
    ),
    "a question that needs root": (
        seen(gpu(0), gpu(1, refused={**NO_PAGES, "SRAM": 4})),
        UNKNOWN,
        "SRAM (code 4, no permission, run as root)",
    ),
    "a refused question that no fault rests on": (
        seen(gpu(0), gpu(1, refused={**NO_PAGES, "recovery action": 999, "spare rows": 2})),
        OK,
        "",
    ),
    "a question that was forgotten": (seen(gpu(0), gpu(1, refused={})), UNKNOWN, "retired pages (no answer)"),
    "NVML lists fewer than PCI": (seen(gpu(0)), UNKNOWN, "NVML lists fewer GPUs than PCI (see GpuLost)"),
    "NVML lists none": (seen(), UNKNOWN, "NVML lists no GPU"),
    "a count that does not fit": (seen(gpu(0), gpu(1), count=3), UNKNOWN, "not every GPU was asked"),
    "no driver": (seen(init=9), UNKNOWN, "NVML does not start (code 9; see GpuLost)"),
    "version mismatch": (seen(init=18), UNKNOWN, "NVML does not start (code 18; see GpuLost)"),
    "no pynvml": (
        answered(ChildAnswer({"gpus": [], "failed": "ModuleNotFoundError: pynvml", "done": True})),
        UNKNOWN,
        "NVML cannot be asked: ModuleNotFoundError: pynvml",
    ),
    "a hang tells where": (
        answered(ChildAnswer({"at": "GPU index 1, row remap"}, silent_since="2026-11-20T10:00Z")),
        UNKNOWN,
        "NVML has not answered since 2026-11-20T10:00Z at GPU index 1, row remap (see GpuLost)",
    ),
    "what a probe said before it hung is not believed": (
        answered(ChildAnswer({"init": 0, "count": 1, "gpus": [gpu(0, row_remap={"pending": 1})]}, silent_since="x")),
        UNKNOWN,
        "has not answered",
    ),
    "a probe that died": (answered(ChildAnswer({}, why="the probe ended early (-11)")), UNKNOWN, "ended early"),
    "nothing at all": (answered(ChildAnswer({})), UNKNOWN, "makes no sense"),
    "only NVML can be read": (answered(ChildAnswer(said(gpu(0)))), OK, ""),
    "a device reads all ones though NVML is content": (
        seen(gpu(0), lost=(Card(address(0), "fallen", "nvidia"),)),
        UNKNOWN,
        "0000:10:00.0 is fallen (see GpuLost)",
    ),
    "a device cannot be read": (
        seen(gpu(0), lost=(Card(address(0), "unreadable", ""),)),
        UNKNOWN,
        "0000:10:00.0 is unreadable",
    ),
    "every GPU is given to vfio": (
        answered(ChildAnswer({"init": 9, "gpus": [], "done": True}), (Card(address(0), "present", "vfio-pci"),)),
        OK,
        "",
    ),
    "an excluded GPU is not missed": (
        seen(gpu(0), driven={address(1): Driven("GPU-1", 1, True)}),
        OK,
        "",
    ),
}


@pytest.mark.parametrize(("what", "verdict", "words"), JUDGED.values(), ids=JUDGED.keys())
def test_what_was_read_becomes_a_verdict(what, verdict, words):
    worn = gpu_worn.judge(what)
    found, line = worn if "(replace)" in words else judge(what)
    assert found is verdict, line
    assert words in line
    assert verdict is not Verdict.UNKNOWN or worn == (found, line), "what one cannot tell the other cannot either"
    assert verdict is not Verdict.FAULT or (judge(what)[0], worn[0]).count(FAULT) == 1, "wait, or replace"


def test_many_corrected_errors_are_told_and_no_fault():
    many, few = [(0.0, 0), (400.0, 67)], [(0.0, 0), (400.0, 66)]
    two = seen(gpu(0), gpu(1))
    samples = {gpu(0)["uuid"]: few, gpu(1)["uuid"]: many}
    assert judge(two, samples) == (OK, f"no GPU has a memory fault; many corrected memory errors: {SECOND}")
    assert judge(shows(row_remap={"pending": 1}), samples) == (FAULT, f"row remap pending (reset): {SECOND}")


COUNTED = {
    "ten a minute": ([(60.0 * n, 10 * n) for n in range(11)], True),
    "nine a minute": ([(60.0 * n, 9 * n) for n in range(11)], False),
    "a burst, and then quiet for the rest of the window": ([(0.0, 0), (60.0, 500), (600.0, 500), (661.0, 500)], False),
    "a burst within the window": ([(0.0, 0), (540.0, 0), (600.0, 500)], True),
    "a counter that was cleared": ([(0.0, 0), (300.0, 10), (360.0, 0), (420.0, 800)], False),
    "many, but hardly known": ([(0.0, 0), (290.0, 900)], False),
    "after a gap": ([(0.0, 0), (1200.0, 9000)], False),
}


@pytest.mark.parametrize(("runs", "many"), COUNTED.values(), ids=COUNTED.keys())
def test_corrected_errors_are_counted_over_a_window(runs, many):
    samples = []
    for now, count in runs:
        samples = sampled(samples, now, count)
    assert often(samples) is many


def test_runs_by_hand_add_no_samples():
    assert sampled([(0.0, 1)], 29.0, 5) == [(0.0, 1)]
    assert len(sampled([(30.0 * n, n) for n in range(100)], 3000.0, 100)) < 25


def test_what_cannot_be_cured_on_the_node_is_told_of_by_its_own_and_gpus_are_in_order():
    both = {"row_remap": {"failed": 1, "pending": 1}}
    line = judge(seen(gpu(1, **both), gpu(0, **both)))[1]
    assert line == "row remap pending (reset): 0000:10:00.0 (GPU-0a2b3c4d), 0000:11:00.0 (GPU-1a2b3c4d)"
    worn = gpu_worn.judge(seen(gpu(1, **both), gpu(0, **both)))[1]
    assert worn == "row remap failed (replace): 0000:10:00.0 (GPU-0a2b3c4d), 0000:11:00.0 (GPU-1a2b3c4d)"


def test_a_counter_that_rises_changes_no_word():
    lines = {
        judge(shows(uncorrected_errors={"volatile": n}, row_remap={"pending": 1, "uncorrected": n})) for n in (1, 7)
    }
    assert len(lines) == 1


def test_every_question_that_a_fault_rests_on_is_asked():
    assert set(NEEDED) <= set(QUESTIONS)


@pytest.mark.parametrize("sign", SIGNS, ids=lambda sign: sign.words)
def test_every_fault_has_a_remedy_and_is_explained_by_help(sign):
    assert sign.remedy in ("reset", "replace")
    assert sign.words in (HELP if sign.remedy == "reset" else gpu_worn.__doc__)


def test_evidence_names_faulty_gpus_with_every_counter_that_is_not_zero():
    what = shows(row_remap={"pending": 1, "uncorrected": 2})
    assert faulty(SIGNS, what.gpus) == [
        {
            "address": address(1),
            "uuid": "GPU-1a2b3c4d-0000-0000-0000-000000000000",
            "serial": "1563521020401",
            "counters": {
                "ECC mode: current": 1,
                "ECC mode: pending": 1,
                "row remap: uncorrected": 2,
                "row remap: pending": 1,
                "spare rows: max": 640,
            },
        }
    ]


def test_evidence_of_sixteen_broken_gpus_still_fits_where_it_is_read():
    most = {name: dict.fromkeys(facts, 2**63) for name, facts in HEALTHY.items()}
    broken = [{**gpu(index), "facts": most} for index in range(16)]
    found = faulty(SIGNS, seen(*broken).gpus)
    assert len(found) == 16
    assert "counters" in found[0]
    assert len(json.dumps(found)) < 4 * COUNTER_CHARS


garbage = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*QUESTIONS, "volatile", "x"]), inner),
    max_leaves=6,
)
KEYS = ("init", "count", "gpus", "done", "failed", "at")


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), garbage))
def test_garbage_from_the_probe_is_never_health(answer):
    assert judge(answered(ChildAnswer(answer)))[0] is UNKNOWN


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(sorted(gpu(0))), garbage)
def test_one_part_of_a_gpu_replaced_by_garbage_is_never_an_error(part, value):
    broken = seen(gpu(0), {**gpu(1), part: value})
    verdict, _ = judge(broken)
    same = part in ("address", "uuid", "serial") and isinstance(value, str)
    same = same or (part == "index" and type(value) is int and value >= 0) or (part == "error" and value == 0)
    same = same or (part == "refused" and isinstance(value, dict) and NO_PAGES.items() <= value.items())
    assert verdict is not OK or same, broken


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from([(q, n) for q, names in NEEDED.items() for n in names]), garbage)
def test_a_number_that_a_fault_rests_on_replaced_by_garbage_is_never_health(number, value):
    question, name = number
    told_of = {"retired pages": {"single": 0, "double": 0, "pending": 0}}
    healthy = gpu(1, refused={}, **{q.replace(" ", "_"): facts for q, facts in told_of.items()})
    facts = {**healthy["facts"], question: {**healthy["facts"][question], name: value}}
    broken = seen(gpu(0), {**healthy, "facts": facts})
    sound = type(value) is int and value >= 0
    healthy = (judge(broken)[0], gpu_worn.judge(broken)[0]) == (OK, OK)
    assert not healthy or (sound and told(SIGNS, broken) == [])

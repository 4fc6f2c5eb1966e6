"""What the child that asks NVML leaves: complete, in parts, or garbage. Nobody takes garbage for health."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gpu_ecc
import gpu_lost
import gpu_recovery
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.contract.npd import Verdict, read_json
from nodelib.host.child_process import ChildAnswer
from nodelib.host.gpus import Card
from nodelib.nvml import ecc, nvlink, processes, recovery, throttle, use, wishes
from nodelib.nvml import settings as gpu_settings
from nodelib.nvml.child import questions
from nodelib.nvml.client import checked
from nodelib.nvml.queries import Teller, ask_nvml, nonsense, place_path
from nodelib.nvml.results import see
from tests.detectors.node import DETECTORS, address, uuid
from tests.harness.examples import examples


def gpu(index, **changes):
    who = {"index": index, "error": 0, "address": address(index), "uuid": uuid(index), "serial": str(index)}
    facts = {"uncorrected errors": {"volatile": 0}, "row remap": {"pending": 0, "failed": 0}, "SRAM": {"exceeded": 0}}
    facts |= {"recovery action": {"action": 0}, "processes": {"pid": [], "kind": [], "memory": []}}
    return {**who, "facts": facts, "refused": {"retired pages": 3}, **changes}


def said(*gpus, **more):
    return {"init": 0, "count": len(gpus), "gpus": list(gpus), "done": True, "boot": "", "asked_at": 1.0, **more}


SOUND = {
    "two GPUs": said(gpu(0), gpu(1)),
    "one of them lost": said(gpu(0), {"index": 1, "error": 15}),
    "no driver": said(init=9, count=0),
    "no library": {"init": 12, "gpus": [], "done": True},
    "no module": {"gpus": [], "done": True, "failed": "ModuleNotFoundError"},
    "the beginning": {"gpus": [], "boot": "x"},
    "the middle": {**said(gpu(0)), "count": 8, "done": False},
    "nothing": {},
}
ODD = {
    "a count that does not fit": said(gpu(0), count=2),
    "more than were counted": said(gpu(0), gpu(1), count=1),
    "one twice": said(gpu(0), gpu(0)),
    "done without a beginning": {"gpus": [], "done": True},
    "a hole": said(gpu(0), gpu(2)),
    "GPUs as a number": said(count=1, gpus=3),
    "a GPU as a number": said(1),
    "init as a text": said(gpu(0), init="0"),
    "count as a truth": said(gpu(0), count=True),
    "an error as a text": said(gpu(0, error="15")),
    "an error below 0": said(gpu(0, error=-1)),
    "no error": said({"index": 0}),
    "a driver's version that is a number": said(gpu(0), driver=580),
    "an address as a number": said(gpu(0, address=3)),
    "facts as a list": said(gpu(0, facts=[])),
    "a fact without name": said(gpu(0, facts={"SRAM": 3})),
    "a fact that is no number": said(gpu(0, facts={"SRAM": {"exceeded": None}})),
    "a refusal as a text": said(gpu(0, refused={"SRAM": "3"})),
    "refusals as a list": said(gpu(0, refused=[3])),
}


@pytest.mark.parametrize("answer", SOUND.values(), ids=SOUND.keys())
def test_a_sound_answer_is_passed_on(answer):
    assert nonsense(answer) == ""


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_an_answer_that_makes_no_sense_is_told_of(answer):
    assert nonsense(answer)


def test_questions_of_all_detectors_are_asked_each_by_its_own_name():
    tables = [
        throttle.questions(""),
        *(module.QUESTIONS for module in (ecc, recovery, nvlink, processes, gpu_settings, use)),
    ]
    assert {*questions("")} == {name for table in tables for name in table}
    assert len(questions("")) == sum(map(len, tables))


class Refused(Exception):
    value = 0


class Nvml(SimpleNamespace):
    """As much of pynvml as it takes to ask who two GPUs are."""

    NVMLError, NVML_ERROR_GPU_IS_LOST = Refused, 15

    def __init__(self):
        super().__init__(
            nvmlInit=lambda: None,
            nvmlDeviceGetCount=lambda: 2,
            nvmlDeviceGetHandleByIndex=lambda index: f"handle {index}",
            nvmlDeviceGetPciInfo=lambda handle: SimpleNamespace(busId=f"00000000:1{handle[-1]}:00.0"),
            nvmlDeviceGetUUID=lambda handle: uuid(int(handle[-1])),
            nvmlDeviceGetSerial=lambda handle: handle[-1],
        )


def asked(tmp_path, **questions):
    teller = Teller(tmp_path / "answer.json", boot="b")
    ask_nvml(teller, Nvml, questions)
    return read_json(tmp_path / "answer.json")


def refuse(nvml, handle):
    error = Refused("no")
    error.value = 3
    raise error


MISTAKES = {
    "a function that this pynvml does not have": (lambda nvml, handle: nvml.nvmlDeviceGetSomethingNew(handle), 13),
    "an attribute that something else does not have": (lambda nvml, handle: handle.busId, 999),
    "an error of Python": (lambda nvml, handle: {"n": 1 // 0}, 999),
    "facts that are none": (lambda nvml, handle: {"n": None}, 999),
    "facts that cannot be written down": (lambda nvml, handle: {"n": b"x"}, 999),
    "no facts": (lambda nvml, handle: None, 999),
}


@pytest.mark.parametrize(("question", "code"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_in_one_question_hides_no_other_answer(tmp_path, question, code):
    found = asked(tmp_path, before=refuse, odd=question, after=lambda nvml, gpu: {"n": [1, "two"]})
    assert found["done"] is True
    assert list(found["odd"]) == ["odd"]
    for one in found["gpus"]:
        assert one["refused"] == {"before": 3, "odd": code}
        assert one["facts"] == {"after": {"n": [1, "two"]}}


def test_every_gpu_is_known_before_any_question_is_asked(tmp_path):
    known = []

    def look(nvml, handle):
        known.append((handle, len(read_json(tmp_path / "answer.json")["gpus"])))
        return {}

    asked(tmp_path, one=look, two=look)
    assert known == [("handle 0", 2), ("handle 1", 2)] * 2


def test_where_the_child_is_at_is_written_before_each_step(tmp_path):
    places = []
    path = place_path(tmp_path / "answer.json")
    asked(tmp_path, SRAM=lambda nvml, handle: places.append(path.read_text().strip()) or {})
    assert places == ["GPU index 0, SRAM", "GPU index 1, SRAM"]
    assert path.stat().st_size == 80


def test_the_child_is_cheap_to_start():
    code = "import sys; sys.path.insert(0, sys.argv[1]); had = set(sys.modules); import nodelib.nvml.child; "
    code += "print(*{name.partition('.')[0] for name in set(sys.modules) - had})"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code, str(DETECTORS.parent)], capture_output=True, text=True
    )
    assert "nodelib" in done.stdout.split()
    dear = {
        "asyncio",
        "dataclasses",
        "inspect",
        "logging",
        "socket",
        "subprocess",
        "tempfile",
        "pynvml",
        "site",
    }
    assert not dear & set(done.stdout.split())


garbage = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
parts = st.sampled_from(sorted(gpu(0)))
answers = (
    st.binary(max_size=60)
    | garbage.map(lambda found: json.dumps(found).encode())
    | st.builds(
        lambda key, value: json.dumps(said(gpu(0), gpu(1)) | {key: value}).encode(), st.text(max_size=5), garbage
    )
    | st.builds(
        lambda key, value: json.dumps(said(gpu(0), gpu(1)) | {key: value}).encode(),
        st.sampled_from(["init", "count", "gpus", "done"]),
        garbage,
    )
    | st.builds(lambda part, value: json.dumps(said(gpu(0), gpu(1) | {part: value})).encode(), parts, garbage)
)


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(answers)
def test_whatever_a_child_leaves_is_no_error_and_no_health_unless_it_is_sound(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "left.json"
    path.write_bytes(content)
    left = read_json(path)
    answer = checked(ChildAnswer(left))
    cards = tuple(Card(address(index), "present", "nvidia") for index in range(2))
    seen = gpu_lost.GpuViews(cards, None, None, answer, expected=2)
    gpu_lost.remember(gpu_lost.Memory(), seen, now=1.0)
    verdicts = {
        gpu_lost.judge(seen)[0],
        gpu_ecc.judge(see(cards, {}, answer, gpu_ecc.SHAPES))[0],
        wishes.judge(see(cards, {}, answer, wishes.SHAPES), wishes.NvmlMemory(), gpu_recovery.CONCERN)[0],
    }
    sound = [left.get(key) for key in ("init", "count", "done")] == [0, 2, True] and not nonsense(left)
    assert sound or Verdict.OK not in verdicts, left


# argv: nodelib's parent, and where to look for packages, "" for where they are. Tells how pynvml was found.
LOADS = """
import sys
from pathlib import Path
sys.path.append(sys.argv[1])
from nodelib.nvml import queries
if sys.argv[2]:
    queries.packages = lambda: Path(sys.argv[2])
queries.load_pynvml(None)
print("pynvml" in sys.modules, "site" in sys.modules)
"""


@pytest.mark.parametrize(("place", "told"), [("", "True False"), ("/nowhere", "True True")])
def test_pynvml_beside_the_interpreter_is_found_without_the_start_of_other_packages_and_elsewhere_with(place, told):
    command = [sys.executable, "-E", "-s", "-S", "-B", "-c", LOADS, str(Path(__file__).resolve().parents[2]), place]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == told

"""What gpu_throttled makes of slowness from run to run; the program over time; garbage."""

import json

import pytest
from gpu_throttled import SHAPES, Memory, judge, remember
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.contract.memory import Stamp, recall
from nodelib.nvml.throttle import GAP, WINDOW, ThrottlePast, advance, signs
from tests.detectors.node import Node
from tests.detectors.said import SECOND, garbage, gpu, memories, seen, silent
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = 0, 1, 2
MINUTE = 60.0


def facts(reasons=1, heat=None, brake=None, margin=None):
    """What a GPU tells: bits, nanoseconds of its counters, degrees to a limit of -2."""
    counters = {name: count for name, count in {"heat": heat, "brake": brake}.items() if count is not None}
    return {
        "clocks": {"reasons": reasons},
        "slow time": counters,
        "heat margin": {} if margin is None else {"margin": margin, "limit": -2},
    }


def run(*minutes, start=1000.0, memory=None):
    """Judge a healthy GPU and one with these facts, a minute apart; return the last verdict, line and memory."""
    memory = memory or Memory()
    for number, told in enumerate(minutes):
        view = seen(SHAPES, gpu(0, facts()), gpu(1, told) if told else silent(1, 15))
        memory = remember(memory, view, start + MINUTE * number)
        verdict, line = judge(view, memory)
    return int(verdict), line, memory


def counted(*seconds, bits=1):
    """Facts of a GPU whose heat counter grows by so many seconds each minute."""
    total = [sum(seconds[: number + 1]) for number in range(len(seconds))]
    return [facts(bits, heat=int(count * 1e9)) for count in [0, *total]]


KINDS = {
    "heat": ([facts(0x48)] * 7, f"thermal slowdown (cooling): {SECOND}"),
    "a power brake": ([facts(0x88)] * 7, f"power brake (power supply): {SECOND}"),
    "neither": ([facts(0x08)] * 7, f"hardware slowdown (power, seating): {SECOND}"),
    "a temperature beyond its limit": (
        [facts(1, margin=-3)] * 7,
        f"hotter than its slowdown limit (cooling): {SECOND}",
    ),
    "counted heat": (counted(*[60] * 6), f"thermal slowdown (cooling): {SECOND}"),
    "both": ([facts(0xC8)] * 7, f"thermal slowdown (cooling): {SECOND}; power brake (power supply): {SECOND}"),
}


@pytest.mark.parametrize(("minutes", "line"), KINDS.values(), ids=KINDS.keys())
def test_six_minutes_of_one_kind_are_a_fault(minutes, line):
    assert run(*minutes)[:2] == (FAULT, line)
    assert run(*minutes[:6])[0] != FAULT, "five minutes are none"


NONE = {
    "idle": [facts(0x01)] * 12,
    "a software power cap": [facts(0x04)] * 12,
    "clocks that somebody has set": [facts(0x02)] * 12,
    "heat that the driver heeds": [facts(0x20)] * 12,
    "a margin at its limit": [facts(1, margin=-2)] * 12,
    "half of the time, counted": counted(*[30] * 12),
    "half of the time, counted, though the bit is set in each run": counted(*[30] * 12, bits=0x40),
    "every second minute": [facts(1), facts(0x40)] * 10,
    "five minutes after ten quiet ones": [facts(1)] * 11 + [facts(0x40)] * 5,
    "a GPU that does not report its clocks": [{}] * 3,
}


@pytest.mark.parametrize("minutes", NONE.values(), ids=NONE.keys())
def test_what_software_does_and_what_does_not_last_is_no_fault(minutes):
    refused = {} if minutes[-1] else dict.fromkeys(SHAPES, 3)
    memory = Memory()
    for number, told in enumerate(minutes):
        view = seen(SHAPES, gpu(1, told, refused))
        memory = remember(memory, view, 1000 + MINUTE * number)
    assert judge(view, memory) == (OK, "no GPU is held down by its hardware")


def test_a_slow_gpu_of_which_little_is_known_is_cannot_tell():
    assert run(facts(0x40))[0] == UNKNOWN
    verdict, line, _ = run(*[facts(0x40)] * 6)
    assert verdict == UNKNOWN
    assert line == f"thermal slowdown (cooling) just now, for how long is not known yet: {SECOND}"


def test_a_fault_ends_when_less_than_two_minutes_of_it_are_left():
    slow, fine = [facts(0x40)] * 7, facts(1)
    verdicts = [run(*slow, *[fine] * quiet)[0] for quiet in range(1, 11)]
    assert verdicts == [FAULT] * 8 + [OK] * 2, "after 8 quiet minutes two slow ones are left in the window of ten"


def test_a_counter_that_went_back_and_a_long_gap_count_for_nothing():
    reset = [facts(1, heat=10**12), facts(1, heat=0), facts(1, heat=0)]
    assert run(*reset)[2].gpus[gpu(1)["uuid"]].slow("heat") == 0
    past = advance(advance(None, facts(0x40), 0.0), facts(0x40), GAP + 1)
    assert past.observed == 0
    assert advance(past, facts(0x40), past.at + GAP).slow("heat") == GAP


def test_a_counter_that_does_not_move_yields_to_the_bit():
    assert run(*[facts(0x40, heat=0)] * 7)[0] == FAULT


def test_a_lost_gpu_keeps_its_fault_in_memory_and_is_cannot_tell():
    verdict, line, memory = run(*[facts(0x40)] * 7, None)
    assert (verdict, line) == (UNKNOWN, "GPU index 1 does not answer (code 15, lost; see GpuLost)")
    assert ("heat", gpu(1)["uuid"]) in memory.standing


@given(st.lists(st.tuples(st.integers(0, 511), st.integers(0, 400)), min_size=1, max_size=25))
def test_no_window_holds_more_than_there_is(steps):
    past, now = None, 0.0
    for bits, seconds in steps:
        now += seconds
        past = advance(past, facts(bits, heat=int(now * 1e9)), now)
    assert past.observed <= WINDOW + GAP
    assert all(past.slow(kind) <= past.observed + 1e-6 for kind in ("heat", "brake", "slowdown", "margin"))
    assert all(time.ended > now - WINDOW for time in past.times)


def test_bit_8_alone_is_a_kind_of_its_own():
    assert signs(facts(0x08)) == {"slowdown"}
    assert signs(facts(0x48)) == {"heat"}


@settings(max_examples=examples(150))
@given(garbage(SHAPES))
def test_garbage_of_nvml_is_never_health(told):
    view = seen(SHAPES, *(gpu(index, one) for index, one in enumerate(told)))
    verdict, _ = judge(view, remember(Memory(), view, 1000.0))
    assert verdict == UNKNOWN or all(type(one["clocks"]["reasons"]) is int for one in told)


@settings(max_examples=examples(100))
@given(memories("gpus", "standing"))
def test_garbage_in_the_state_folder_is_overcome(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("state") / "gpu_throttled.json"
    path.write_bytes(content)
    memory = recall(path, Memory, Stamp("", 1000.0))
    assert all(isinstance(past, ThrottlePast) for past in memory.gpus.values())
    view = seen(SHAPES, gpu(0, facts()))
    assert judge(view, remember(memory, view, 1000.0))[0] == OK


def test_a_fault_outlives_a_restart_of_the_program_but_not_a_boot(tmp_path, nvml_library):
    node = Node(tmp_path, nvml_library, gpus=2, detector="gpu_throttled")
    boot = node.proc / "sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("one\n")
    ran = []
    for number in range(7):
        node.orders(f"gpu 1 field-271 {number * 60 * 10**9}", "gpu 1 clocks 128", gpus=2)
        ran.append(node.run(f"--now={1000 + 60 * number}"))
    assert [one.code for one in ran] == [UNKNOWN] * 6 + [FAULT]
    assert ran[-1].line == "power brake (power supply): 0000:11:00.0 (GPU-00000000)"
    kept = json.loads((node.state / "evidence/gpu_throttled.json").read_text())
    assert kept["gpus"] == [
        {
            "address": "0000:11:00.0",
            "uuid": "GPU-00000000-0000-0000-0000-000000000001",
            "serial": "1563521020401",
            "seconds_slow": {"brake": 360},
        }
    ]
    by_hand = node.run("--now=1365", "--explain")
    assert "standing: brake GPU-" in by_hand.line
    node.orders(gpus=2)
    assert node.run("--now=1420").code == FAULT
    boot.write_text("two\n")
    assert node.run("--now=100").code == OK
    assert not (node.state / "evidence/gpu_throttled.json").exists()


def test_a_driver_that_knows_only_the_old_name_is_asked_by_it(tmp_path, nvml_library):
    node = Node(tmp_path, nvml_library, gpus=1, detector="gpu_throttled")
    node.orders("gpu 0 clocks-event error:13", "gpu 0 clocks 64", "gpu 0 margin error:13", gpus=1)
    assert node.run("--now=1000")[:2] == (
        UNKNOWN,
        "thermal slowdown (cooling) just now, for how long is not known yet: 0000:10:00.0 (GPU-00000000)",
    )


@pytest.mark.parametrize("code", [3, 13])
def test_a_gpu_without_clocks_has_no_fault_that_could_be_seen(tmp_path, nvml_library, code):
    node = Node(tmp_path, nvml_library, gpus=1, detector="gpu_throttled")
    node.orders(*(f"gpu 0 {question} error:{code}" for question in ("clocks", "margin", "fields")), gpus=1)
    assert node.run().code == OK
    node.orders("gpu 0 clocks error:999", gpus=1)
    assert node.run().code == UNKNOWN


@pytest.mark.parametrize(
    ("driver", "guessed"),
    [("570.172.08", True), ("575.51.03", False), ("580.65.06", False), ("580.76.05", True), ("580.82.07", False)],
)
def test_where_a_driver_is_not_known_to_count_slow_time_the_line_says_that_samples_decide(driver, guessed):
    view = seen(SHAPES, gpu(1, facts()), driver=driver)
    verdict, line = judge(view, remember(Memory(), view, 1000.0))
    assert (verdict, "known by samples only" in line) == (OK, guessed)

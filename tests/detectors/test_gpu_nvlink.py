"""What gpu_nvlink makes of links, errors and the fabric from run to run; the program; garbage."""

import json

import pytest
from gpu_nvlink import SHAPES, WORDS, Memory, NvlinkPast, find, judge, remember, renewed
from gpu_nvlink import __doc__ as HELP
from hypothesis import given, settings

from nodelib.contract.memory import Stamp, recall
from nodelib.host.fabric_manager import manager
from tests.detectors.node import Node
from tests.detectors.said import SECOND, garbage, gpu, memories, seen, silent
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = 0, 1, 2
MINUTE = 60.0
HEALTHY = 0b01_10_10_10_10  # nothing degraded, nothing wrong with the configuration


def facts(up="1111", remote="2", fabric=(3, 0, HEALTHY), mig=0, **errors):
    """A GPU with a digit for each link, all with the same at their other end."""
    links = {"link": [*range(len(up))], "up": [int(one) for one in up], "remote": [int(remote)] * len(up)}
    counts = {"replays": 0, "recoveries": 0, "CRC errors": 0, "failed recoveries": 0}
    return {
        "NVLink": links,
        "NVLink errors": {**counts, **{name.replace("_", " "): count for name, count in errors.items()}},
        "fabric": dict(zip(("state", "status", "health"), fabric, strict=True)),
        "MIG": {"current": mig},
    }


def view(*told):
    return seen(SHAPES, *(one if "error" in one else gpu(index, one) for index, one in enumerate(told)))


def runs(*views, declared=0, start=1000.0, apart=MINUTE, managed=True):
    """Judge views, a minute apart; return the last verdict and line, and each verdict."""
    memory, verdicts = Memory(), []
    for number, one in enumerate(views):
        now = start + apart * number
        memory = renewed(memory, one)
        signs = find(one, memory.gpus, declared, now, memory.silent, managed)
        verdict, line = judge(one, signs, memory.signs, now)
        memory = remember(memory, one, signs, now)
        verdicts.append(int(verdict))
    return int(verdict), line, verdicts


def second(*told):
    """Four GPUs, the second of which shows this, run by run."""
    return [view(facts(), one, facts(), facts()) for one in told]


def errors(name, *growth):
    """Facts of a GPU whose errors of one kind grow so."""
    return [facts(**{name: sum(growth[: number + 1])}) for number in range(len(growth))]


FAULTS = {
    "a link that was up": (second(facts(), facts("1101"), facts("1101")), "NVLink down (reset-gpu)"),
    "a link that is gone altogether": (second(facts(), facts("111"), facts("111")), "NVLink down (reset-gpu)"),
    "a link that all others have": (second(*[facts("1101")] * 2), "NVLink down (reset-gpu)"),
    "no link where all others go to switches": (second(*[facts("0000")] * 2), "NVLink down (reset-gpu)"),
    "a replay a minute": (second(*errors("replays", 5, 1, 1)), "NVLink replays (field diagnostic)"),
    "a recovery a minute": (second(*errors("recoveries", 5, 1, 1)), "NVLink recoveries (field diagnostic)"),
    "a hundred CRC errors a second": (
        second(*errors("CRC_errors", 5, 6000, 6000)),
        "NVLink CRC errors (field diagnostic)",
    ),
    "recoveries that fail": (second(*errors("failed_recoveries", 1, 1, 1)), "NVLink recovery failed (reset-gpu)"),
    "traffic that is disabled": (second(*[facts("1133")] * 2), "NVLink traffic disabled (reset-gpu)"),
    "registration that does not start": (
        second(*[facts(fabric=(1, 0, 0))] * 2),
        "not registered with the fabric (fabric manager)",
    ),
    "registration that does not end": (
        second(*[facts(fabric=(2, 0, 0))] * 2),
        "not registered with the fabric (fabric manager)",
    ),
    "registration that failed": (
        second(*[facts(fabric=(3, 999, HEALTHY))] * 2),
        "refused by the fabric (fabric manager)",
    ),
    "less bandwidth": (second(*[facts(fabric=(3, 0, HEALTHY - 1))] * 2), "fabric bandwidth degraded (fabric)"),
    "an unhealthy route": (second(*[facts(fabric=(3, 0, HEALTHY - 16))] * 2), "fabric route unhealthy (fabric)"),
    "no partition": (second(*[facts(fabric=(3, 0, 4 << 8))] * 2), "wrong fabric configuration (fabric)"),
}


@pytest.mark.parametrize(("views", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_what_shows_in_two_runs_in_a_row_is_a_fault(views, words):
    verdict, line, verdicts = runs(*views)
    assert (verdict, line) == (FAULT, f"{words}: {SECOND}")
    assert verdicts[-2] == UNKNOWN, "the first sight is cannot tell"
    verdict, line, _ = runs(*views[:-1])
    assert line == f"once so far, {words}: {SECOND}"


PAIR = [facts("11", "0"), facts("11", "0"), facts("00", "0"), facts("00", "0")]
NONE = {
    "all well": second(facts(), facts()),
    "a bridge between two of four cards": [view(*PAIR)] * 3,
    "one card without a bridge beside two with one": [view(*PAIR[:3])] * 3,
    "links that never were up": [view(*[facts("0000", "0")] * 4)] * 3,
    "a card without a fabric": second(*[facts(fabric=(0, 0, 0))] * 3),
    "a mask that is not told": second(*[facts(fabric=(3, 0, 0))] * 3),
    "a word of the fabric that has no meaning": second(*[facts(fabric=(3, 0, HEALTHY | 1))] * 3),
    "MIG uses no link": second(facts(), *[facts("0000", mig=1)] * 3),
    "MIG is no part of a fabric": second(*[facts(fabric=(1, 0, HEALTHY - 1), mig=1)] * 3),
    "MIG sends nothing": second(*(facts(mig=1, replays=9 * run) for run in range(3))),
    "less than a replay a minute": second(*errors("replays", 0, 1, 0, 1, 0)),
    "CRC errors below the limit": second(*errors("CRC_errors", 0, 5999, 5999, 5999)),
    "errors before the first run": second(*[facts(replays=900)] * 3),
    "a counter that was cleared": second(facts(replays=900), facts(replays=3), facts(replays=3)),
}


@pytest.mark.parametrize("views", NONE.values(), ids=NONE.keys())
def test_what_is_no_fault_stays_fine(views):
    assert runs(*views)[:2] == (OK, "no NVLink has a fault")


def test_one_look_between_two_bad_ones_starts_anew():
    assert runs(*second(facts(), facts("0111"), facts(), facts("0111")))[2] == [OK, UNKNOWN, OK, UNKNOWN]


def test_the_fabric_manager_has_five_minutes_after_the_boot():
    registering = second(*[facts(fabric=(2, 0, 0))] * 7)
    assert runs(*registering, start=0.0)[2] == [UNKNOWN] * 6 + [FAULT], "300 s are the first sight, 360 s the second"
    partitioned = second(*[facts(fabric=(2, 0, 0), mig=1)] * 2)
    assert runs(*partitioned, start=0.0)[2] == [OK, OK], "a GPU in MIG mode need not be registered"
    assert runs(*registering[:5], start=0.0)[1] == f"not yet registered with the fabric: {SECOND}"


def test_a_gpu_that_was_registered_or_whose_driver_was_loaded_lately_has_five_minutes_again():
    registering = second(*[facts(fabric=(2, 0, 0))] * 7)
    assert runs(*second(facts()), *registering)[2] == [OK] + [UNKNOWN] * 5 + [FAULT] * 2
    loading = view(*[silent(index, 999) for index in range(4)])
    assert runs(loading, *registering)[2] == [UNKNOWN] * 6 + [FAULT] * 2


def test_a_fabric_that_recovers_has_five_minutes():
    healing = [facts(fabric=(3, 0, HEALTHY - 4))] * 8
    assert runs(*second(*healing))[2] == [UNKNOWN] * 6 + [FAULT] * 2
    assert runs(*second(*healing))[1] == f"fabric route being recovered (fabric): {SECOND}"
    assert runs(*second(*healing[:5], facts(), *healing[:5]))[2] == [UNKNOWN] * 5 + [OK] + [UNKNOWN] * 5


def test_errors_that_links_correct_themselves_are_told_as_an_early_sign_and_are_no_fault():
    verdict, line, _ = runs(*second(*errors("symbol_errors", 0, 1, 1)))
    assert (verdict, line) == (OK, f"no NVLink has a fault; early sign, NVLink symbol errors: {SECOND}")
    assert runs(*second(*errors("symbol_errors", 0, 1, 0, 1)))[1] == "no NVLink has a fault"


def test_gpus_that_know_no_fabric_need_a_fabric_manager_where_switches_join_them():
    a100 = view(*[facts("111111111111", fabric=(0, 0, 0))] * 2)
    both = f"{a100.gpus[0].name}, {a100.gpus[1].name}"
    assert runs(a100, a100, managed=False)[:2] == (FAULT, f"fabric manager is not running (fabric manager): {both}")
    assert runs(a100, a100)[0] == OK
    hopper = view(*[facts()] * 2)
    assert runs(hopper, hopper, managed=False)[0] == OK


@pytest.mark.parametrize(
    ("processes", "last", "found"),
    [
        ({2: "kthreadd", 40: "nv-fabricmanage"}, 0, 40),
        ({2: "kthreadd", 40: "nv-hostengine"}, 0, 0),
        ({2: "kthreadd", 40: "nv-fabricmanage"}, 39, 40),
        ({40: "nv-fabricmanage"}, 40, 40),
        ({2: "pause", 40: "bash"}, 0, None),
        ({}, 0, None),
    ],
)
def test_the_fabric_manager_is_a_process_of_the_node(tmp_path, processes, last, found):
    for pid, comm in processes.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} ({comm}) S 1 1 1 0 -1 0 {'0 ' * 12}{pid} 0\n")
    assert manager(tmp_path, last) == found


def test_links_may_be_declared():
    bare = [view(*[facts("0000", "0")] * 2)] * 2
    assert runs(*bare, declared=4)[0] == FAULT
    assert runs(*[view(facts(), facts())] * 2, declared=4)[0] == OK


FOUR = [facts("111", "0")] * 4  # each is linked to each other one, without a switch
ONE_MIG = [facts("000", "0", mig=1), *[facts("011", "0")] * 3]
TWO_MIG = [*[facts("000", "0", mig=1)] * 2, *[facts("001", "0")] * 2]


def test_links_to_a_neighbour_that_is_put_into_mig_mode_are_not_missed():
    assert runs(*[view(*FOUR)] * 2, *[view(*ONE_MIG)] * 3, *[view(*TWO_MIG)] * 3)[2] == [OK] * 8
    pair = [view(*PAIR[:2]), *[view(facts("00", "0", mig=1), facts("00", "0"))] * 3]
    assert runs(*pair)[:2] == (OK, "no NVLink has a fault")


def test_a_neighbour_that_is_seen_in_mig_mode_a_run_late_makes_no_fault():
    early = view(facts("000", "0"), *[facts("011", "0")] * 3)
    assert runs(view(*FOUR), early, *[view(*ONE_MIG)] * 3)[2] == [OK, UNKNOWN, OK, OK, OK]


def test_a_link_that_goes_down_after_mig_was_switched_on_is_missed():
    worse = view(ONE_MIG[0], facts("001", "0"), *ONE_MIG[2:])
    assert runs(view(*FOUR), *[view(*ONE_MIG)] * 2, worse, worse)[2] == [OK, OK, OK, UNKNOWN, FAULT]


def test_a_gpu_in_mig_mode_that_was_lost_meanwhile_hides_no_link():
    worse = [facts("001", "0"), *ONE_MIG[2:]]
    silently = view(silent(0, 15), *worse)
    assert runs(view(*FOUR), view(*ONE_MIG), silently, view(ONE_MIG[0], *worse))[2] == [OK, OK, UNKNOWN, FAULT]


def test_mig_that_is_switched_off_and_on_again_is_seen_each_time():
    lost = view(silent(0, 15), *ONE_MIG[1:])
    assert runs(*[view(*ONE_MIG), view(*FOUR)] * 2, view(*ONE_MIG), lost, view(*ONE_MIG))[2] == [OK] * 5 + [UNKNOWN, OK]


def test_links_to_switches_are_missed_whoever_is_in_mig_mode():
    views = second(facts(), *[facts("0000", mig=1)] * 2)
    worse = [view(facts("1101"), facts("0000", mig=1), facts("1101"), facts("1101"))] * 2
    assert runs(views[0], *worse)[2] == [OK, UNKNOWN, FAULT]


def test_who_is_in_mig_mode_is_read_back(tmp_path, nvml_library):
    node = Node(tmp_path, nvml_library, gpus=2, detector="gpu_nvlink")
    bridge = [f"gpu {index} nvlink-remote 00" for index in range(2)]
    node.orders(*bridge, *(f"gpu {index} nvlink 11" for index in range(2)), gpus=2)
    assert node.run("--now=1000").code == OK
    node.orders(*bridge, *(f"gpu {index} nvlink 00" for index in range(2)), "gpu 0 mig 1,1", gpus=2)
    assert [node.run(f"--now={now}")[:2] for now in (1060, 1120, 1180)] == [(OK, "no NVLink has a fault")] * 3
    assert recall(node.state / "gpu_nvlink.json", Memory, Stamp("", 1180.0)).mig == {
        "GPU-00000000-0000-0000-0000-000000000000"
    }


def test_a_lost_gpu_is_cannot_tell_and_forgets_nothing():
    down, lost = second(facts(), facts("0111")), view(facts(), silent(1, 15), facts(), facts())
    assert runs(*down, lost, down[1])[2] == [OK, UNKNOWN, UNKNOWN, FAULT]


def test_cards_without_nvlink_are_fine():
    cards = seen(SHAPES, *(gpu(index, refused=dict.fromkeys(SHAPES, 3)) for index in range(2)))
    assert runs(cards)[:2] == (OK, "no GPU uses NVLink")


def test_the_help_has_every_word_of_the_line():
    text = " ".join(HELP.split())
    for words in WORDS.values():
        assert words.partition(" (")[0].removeprefix("NVLink ") in text, words


@settings(max_examples=examples(150))
@given(garbage(SHAPES))
def test_garbage_of_nvml_is_never_health(told):
    verdict = runs(view(*told))[0]
    sound = [all(type(one.get(question)) is dict for question in ("NVLink", "NVLink errors", "fabric")) for one in told]
    assert verdict == UNKNOWN or all(sound)


@settings(max_examples=examples(100))
@given(memories("gpus", "signs", "mig", "silent", "manager"))
def test_garbage_in_the_state_folder_is_overcome(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("state") / "gpu_nvlink.json"
    path.write_bytes(content)
    memory = recall(path, Memory, Stamp("", 1000.0))
    assert all(isinstance(past, NvlinkPast) for past in memory.gpus.values())
    one = view(facts())
    assert judge(one, find(one, {}, 0, 1000.0), memory.signs, 1000.0)[0] == OK


def test_what_is_remembered_is_read_back(tmp_path, nvml_library):
    node = Node(tmp_path, nvml_library, gpus=2, detector="gpu_nvlink")
    node.orders("gpu 1 nvlink-remote 000000000000000000", gpus=2)
    assert node.run("--now=1000")[:2] == (OK, "no NVLink has a fault")
    node.orders("gpu 1 nvlink 110111111111111111", "gpu 1 field-161.3 7", gpus=2)
    assert [node.run("--now=1060", "--explain").code, node.run("--now=1060").code] == [UNKNOWN, UNKNOWN]
    ran = node.run("--now=1120")
    assert (ran.code, ran.line) == (FAULT, "NVLink down (reset-gpu): 0000:11:00.0 (GPU-00000000)")
    kept = json.loads((node.state / "evidence/gpu_nvlink.json").read_text())
    assert kept["gpus"][0]["links_down"] == [2]
    assert kept["gpus"][0]["NVLink errors"]["replays"] == 7


def test_an_old_driver_tells_of_the_fabric_without_its_health(tmp_path, nvml_library):
    node = Node(tmp_path, nvml_library, gpus=1, detector="gpu_nvlink")
    node.orders("gpu 0 fabric-v error:13", "gpu 0 fabric 2,0,0", gpus=1)
    assert [node.run(f"--now={now}").code for now in (1000, 1060)] == [UNKNOWN, FAULT]
    node.orders("gpu 0 fabric-v error:13", "gpu 0 fabric error:13", gpus=1)
    assert node.run("--now=1120").code == OK


def test_a_link_that_cannot_be_asked_is_cannot_tell(tmp_path, nvml_library):
    node = Node(tmp_path, nvml_library, gpus=1, detector="gpu_nvlink")
    node.orders("gpu 0 nvlink error:999", gpus=1)
    ran = node.run()
    assert ran.code == UNKNOWN
    assert "does not report its NVLink (code 999)" in ran.line


@pytest.mark.parametrize("value", ["-1", "x", "73", "1.5"])
def test_a_number_of_links_that_is_none_is_refused_with_the_remedy(tmp_path, value):
    ran = Node(tmp_path, detector="gpu_nvlink").run(f"--links={value}")
    assert ran.code == 2
    assert "--links" in ran.err
    assert "say how many NVLinks each GPU has" in ran.err

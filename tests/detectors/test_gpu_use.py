"""What gpu_use tells of the use of GPUs: who, since when, how seldom; and what the janitor may conclude from it."""

from datetime import UTC, datetime, timedelta

import pytest
from gpu_use import SHAPES, Memory, next_memory, see, unseen
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.contract.npd import LINE_BYTES
from nodelib.nvml.gpu_owners import Owner
from nodelib.nvml.use_report import GAP, HOLD, NEVER, PAUSE, Seen, UseReport, Uses, looked, report, words
from remediator.core.gpu_use import GPU_USE, UseProof, found, read
from remediator.core.node import Node, NodeCondition, Status
from tests.detectors.fixtures.gpu_use import WALL
from tests.detectors.said import gpu, seen
from tests.harness.examples import examples

A, B = "3f2a1b0c", "9c0d11e2"
LOOK = 120.0
UNUSED, FREE = Seen(frozenset({A}), False), Seen(frozenset(), False)
USED = UNUSED._replace(used=True)
MIDNIGHT = "20260110T0000Z"


def look(memory, *gpus, minutes, why="", step=0.0):
    """The memory after a look so many minutes after midnight, by a clock that was set forward by `step` seconds."""
    return next_memory(memory, gpus, why, 1000.0 + 60 * minutes, WALL + 60 * minutes + step)


def watched(memory, *gpus, begin, end):
    """The same after a look every two minutes."""
    for minutes in range(begin, end, 2):
        memory = look(memory, *gpus, minutes=minutes)
    return memory


def test_a_pod_is_told_of_as_idle_an_hour_after_its_last_use():
    memory = look(Memory(), USED, minutes=0)
    assert memory.published.line == f"gpus=1 used={A} others-until={MIDNIGHT}"
    memory = watched(memory, UNUSED, begin=2, end=60)
    assert memory.published.line == f"gpus=1 used={A} others-until={MIDNIGHT}", "58 minutes later"
    memory = look(memory, UNUSED, minutes=60)
    assert memory.published.line == f"gpus=1 used-until={A}@{MIDNIGHT} others-until={MIDNIGHT}"


def test_use_is_told_at_once_and_the_second_in_a_row_after_half_an_hour():
    memory = watched(look(Memory(), FREE, FREE, minutes=0), FREE, FREE, begin=2, end=40)
    memory = look(memory, USED, FREE, minutes=40)
    assert f"used={A}" in memory.published.line
    both = USED._replace(pods=frozenset({B}))
    memory = look(memory, USED, both, minutes=42)
    assert f"used={A},{B}" in memory.published.line, "one PAUSE in advance"
    third = Seen(frozenset({"00000003"}), True)
    memory = watched(memory, USED, both, third, begin=44, end=70)
    assert "00000003" not in memory.published.line
    assert "00000003" in watched(memory, USED, both, third, begin=70, end=102).published.line


@pytest.mark.parametrize(
    ("gap", "step", "since"),
    [(GAP, 0.0, "0000"), (GAP + 1, 0.0, "0016"), (LOOK, 59.0, "0000"), (LOOK, 61.0, "0014"), (LOOK, -61.0, "0011")],
)
def test_where_nobody_looked_or_the_clock_was_set_nothing_is_known_of_before(gap, step, since):
    uses = Uses()
    for at in range(0, 601, 120):
        uses = looked(uses, [UNUSED], 1000.0 + at, WALL + at)
    uses = looked(uses, [UNUSED], 1600.0 + gap, WALL + 600 + gap + step)
    assert f"others-until=20260110T{since}Z" in words(report(uses, [UNUSED], WALL + 600 + gap + step))


def test_use_by_nobody_that_is_known_may_have_been_of_any_pod_that_is_not_named():
    memory = watched(look(Memory(), FREE, UNUSED, minutes=0), FREE, UNUSED, begin=2, end=60)
    memory = look(memory, FREE._replace(used=True), UNUSED, minutes=60)
    assert memory.published.line == "gpus=2 others-until=20260110T0100Z"
    uses = looked(memory.uses, [USED._replace(strange=True)], 4720.0, WALL + 3720)
    assert words(report(uses, [USED], WALL + 3720)) == f"gpus=1 used={A} others-until=20260110T0102Z"


def test_use_of_a_gpu_that_several_pods_are_on_may_have_been_of_another_one_that_shares_it():
    both = USED._replace(pods=frozenset({A, B}))
    memory = watched(look(Memory(), both, minutes=0), both, begin=2, end=122)
    assert memory.published.line == f"gpus=1 used={A},{B} others-until=20260110T0200Z"
    assert f"others-until={MIDNIGHT}" in watched(look(Memory(), USED, minutes=0), USED, begin=2, end=122).published.line


def test_a_gpu_that_does_not_tell_leaves_nothing_to_be_known_of_those_that_are_not_named():
    uses = looked(Uses(), [USED, UNUSED._replace(used=None)], 1000.0, WALL)
    assert words(report(uses, [USED, UNUSED._replace(used=None)], WALL)) == f"gpus=2 used={A} others-until=?"


def test_a_doubt_is_told_at_once_in_one_sentence_and_for_half_an_hour():
    memory = watched(look(Memory(), USED, minutes=0), USED, begin=2, end=40)
    memory = look(memory, USED, minutes=40, why="a GPU is lost")
    assert (memory.published.known, memory.published.line) == (False, "a GPU is lost")
    memory = look(look(memory, USED, minutes=42), USED, minutes=44, why="two GPUs are lost")
    assert memory.published.line == "a GPU is lost", "another sentence would be another write"
    memory = watched(memory, USED, begin=46, end=70)
    assert not memory.published.known
    memory = look(memory, USED, minutes=70)
    assert memory.published.line == f"gpus=1 used={A} others-until={MIDNIGHT}", (
        "and a look that failed is no gap by itself"
    )


def test_a_line_has_room_for_sixteen_pods_that_were_in_use_at_other_times():
    until = {f"{number:08x}": int(WALL) + 60 * number for number in range(16)}
    line = words(report(Uses({**until}, WALL, 0.0, 0.0), [UNUSED] * 16, WALL + 7200))
    assert (line.count("@"), line[-27:]) == (16, f"others-until={MIDNIGHT}")
    assert len(line) <= LINE_BYTES - 30


@pytest.mark.parametrize("count", [20, 60, 128])
def test_whoever_has_no_room_in_the_line_is_told_of_as_the_others_never_as_idle(count):
    uses = Uses({f"{number:08x}": WALL + 60.0 * number for number in range(count)}, WALL - 86400, 0.0, 0.0)
    late = report(uses, [UNUSED], WALL + 60 * count + HOLD)
    assert len(words(late)) <= LINE_BYTES
    left_out = [at for pod, at in uses.pods.items() if pod not in late.until]
    assert left_out
    assert late.others >= max(left_out)
    now = report(Uses(dict.fromkeys(uses.pods, WALL), WALL, 0.0, 0.0), [USED], WALL)
    assert len(words(now)) <= LINE_BYTES
    assert now.others == (NEVER if len(now.used) < count else WALL)


def test_processes_that_are_hidden_and_questions_that_are_refused_are_doubts():
    facts = {"processes": {"pid": [42], "kind": ["compute"], "memory": [0]}, "use": {"highest": 0, "samples": 99}}
    view = seen(SHAPES, gpu(0, facts))
    owners = {42: Owner(42, 500, "python3", A + "0" * 24)}
    assert unseen(view, owners, on_host=True) == ""
    assert "hostPID" in unseen(view, owners, on_host=False)
    assert "cannot be read" in unseen(view, {42: None}, on_host=True)
    assert see(view.answering[0], owners) == Seen(frozenset({A}), False, strange=False)
    assert see(view.answering[0], {42: Owner(42)}).strange, "a process that has ended may have been of any Pod"


# --- whatever happens -----------------------------------------------------------------------------------------------

pods = st.frozensets(st.sampled_from([f"{number:08x}" for number in range(4)]), max_size=2)
gpus = st.builds(Seen, pods, st.sampled_from([True, False, False, False, None]), st.booleans())
looks = st.tuples(
    st.sampled_from([LOOK] * 8 + [3 * LOOK, 40 * LOOK]), st.lists(gpus, min_size=2, max_size=2), st.booleans()
)


def run(drawn):
    """The memory after each look, with its second since boot and what was seen; of ten a doubt is one at most."""
    memory, now = Memory(), 1000.0
    for number, (pause, view, doubtful) in enumerate(drawn):
        now += pause
        why = "a doubt" if doubtful and number % 5 == 4 else ""
        memory = next_memory(memory, tuple(view), why, now, WALL + now)
        yield now, view, why, memory


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(looks, max_size=150))
def test_whatever_happens_in_the_long_run_a_line_is_told_every_half_an_hour_at_most(drawn):
    lines, begin, now = [], None, 0.0
    for now, _, _, memory in run(drawn):
        begin = now if begin is None else begin
        if not lines or memory.published.line != lines[-1]:
            lines.append(memory.published.line)
    assert len(lines) <= 3 + (now - (begin or now)) / PAUSE


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(looks, max_size=80), st.sampled_from([600, 7200, 86400]))
def test_whatever_happens_the_janitor_takes_for_unused_only_what_was_not_seen_in_use_in_its_window(drawn, window):
    uses: dict[str, float] = {}
    views = []
    for now, view, why, memory in run(drawn):
        if why:
            continue
        views.append((now, view))
        uses |= {pod: now for gpu in view if gpu.used for pod in gpu.pods}
        line = words(report(memory.uses, tuple(view), WALL + now))
        at = datetime.fromtimestamp(WALL + now, UTC)
        for number in range(5):
            pod = f"{number:08x}"
            proof = found(told(line, at), f"{pod}-0000", timedelta(seconds=window), at).proof
            recent = now - uses.get(pod, -1e9) < window
            assert not (recent and proof is UseProof.UNUSED), (line, pod)
            if proof is UseProof.UNUSED:
                within = [each for each in views if now - each[0] < window]
                assert all(gpu.used is not None for gpu in view)
                assert not any(gpu.used and not gpu.pods for _, gpus in within for gpu in gpus)


def told(line, at, status=Status.TRUE):
    """A node with two GPUs, each of one Pod at a time."""
    condition = NodeCondition(GPU_USE, status, "Reported", at, at, line)
    return Node("gpu-1", "u", {}, {GPU_USE: condition}, devices=(("nvidia.com/gpu", 2),))


lines = st.builds(
    UseReport,
    st.integers(0, 16),
    st.frozensets(st.from_regex("[0-9a-f]{8}", fullmatch=True), max_size=5),
    st.dictionaries(st.from_regex("[0-9a-f]{8}", fullmatch=True), st.integers(10**9, 2 * 10**9), max_size=5),
    st.floats(1e9, 2e9) | st.just(NEVER),
)


@settings(max_examples=examples(200), deadline=None)
@given(lines)
def test_whatever_is_told_the_janitor_reads(line):
    known = read(words(line))
    assert known is not None
    assert (known.used, set(known.until)) == (line.used, set(line.until))
    late = [known.until[pod].timestamp() - at for pod, at in line.until.items()]
    assert all(0 <= each < 60 for each in late), "a minute later at most, and never earlier"
    assert (known.others is None) == (line.others == NEVER)

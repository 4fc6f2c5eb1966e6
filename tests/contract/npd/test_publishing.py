"""When and how often things are told: heartbeats, events, runs."""

from datetime import timedelta

import pytest

from tests.contract.npd.playing import CONDITION, SECONDS, together
from tests.harness.waiting import until

pytestmark = pytest.mark.sampled("publishing")

SECOND = timedelta(seconds=1)
OTHER = {"type": "Other", "reason": "OtherWell", "message": "nothing else is broken"}
TEMPORARY = {"type": "temporary", "reason": "Hiccup"}


def turned(status, reason, message):
    """What an event says of a condition."""
    return f"Node condition Broken is now: {status}, reason: {reason}, message: {message}"


@together
async def test_a_heartbeat_says_everything_again_with_the_time_of_now(play):
    rules = [{"path": str(play.says(1, "one", "one"))}, {"path": str(play.says(2, "?", "two")), "condition": "Other"}]
    await play.start(play.file(*rules, conditions=[CONDITION, OTHER]), heartbeat=2)
    before, other = await play.shows("True"), await play.shows("Unknown", "Other")
    now = await play.beats(before.heartbeat + SECOND)
    assert (now.said, now.since) == (before.said, before.since)
    both = await play.condition("Other")
    assert (both.said, both.since) == (other.said, other.since)
    assert both.heartbeat >= now.heartbeat > now.since


@together
async def test_without_news_nothing_is_sent_until_the_heartbeat(play):
    play.says(1, "one")
    await play.start(play.file(), heartbeat=3)
    first = await play.shows("True")
    assert (await play.beats(first.heartbeat)).heartbeat - first.heartbeat >= 2 * SECOND


@together
async def test_news_is_told_long_before_the_heartbeat(play):
    play.says(1, "one")
    await play.start(play.file(), heartbeat=300)
    await play.shows("True")
    play.says(0)
    assert (await play.shows("False")).reason == "AllWell"


@together
async def test_each_change_is_an_event_and_only_a_fault_is_a_warning(play):
    play.says(1, "GPU 3 is gone")
    await play.start(play.file())
    await play.tells("Warning", "ItBroke", turned("True", "ItBroke", '"GPU 3 is gone"'))
    play.says(2, "NVML is silent")
    await play.tells("Normal", "AllWell", turned("Unknown", "AllWell", '"NVML is silent"'))
    play.says(0)
    await play.tells("Normal", "AllWell", turned("False", "AllWell", '"nothing is broken"'))
    assert len(await play.events()) == 3


@together
async def test_health_from_the_start_is_no_event(play):
    play.says(0)
    await play.start(play.file())
    await play.shows("False")
    await play.runs(3)
    assert await play.events() == {}


@together
async def test_an_event_quotes_the_message_as_go_does(play):
    play.program(
        r"sys.stdout.buffer.write('a \"b\" \\ c\td\ne\x01f\x7fü\u200b\U0001f600'.encode() + b'\xff\xc3')"
        "\nsys.exit(1)"
    )
    await play.start(play.file())
    quoted = r'"a \"b\" \\ c\td\ne\x01f\x7fü\u200b' + "\U0001f600" + r'\xff\xc3"'
    await play.tells("Warning", "ItBroke", turned("True", "ItBroke", quoted))


@together
async def test_an_event_takes_its_text_for_a_format_without_arguments(play):
    play.says(1, "100% of 5%% at 90%, %d %-08.3f %")
    await play.start(play.file())
    mangled = '"100%!o(MISSING)f 5% at 90%!,(MISSING) %!d(MISSING) %!f(MISSING) %!"(MISSING)'
    await play.tells("Warning", "ItBroke", turned("True", "ItBroke", mangled))
    assert (await play.shows("True")).message == "100% of 5%% at 90%, %d %-08.3f %"


@together
async def test_a_temporary_rule_tells_of_each_failed_run_and_touches_no_condition(play):
    play.says(1, "hiccup\n")
    await play.start(play.file(TEMPORARY))
    await play.tells("Warning", "Hiccup", "hiccup", count=3)
    await play.shows("False")
    assert len(await play.events()) == 1


@together
async def test_a_temporary_rule_that_cannot_tell_warns_too(play):
    play.says(2, "cannot tell")
    await play.start(play.file(TEMPORARY))
    await play.tells("Warning", "Hiccup", "cannot tell")


@together
async def test_a_temporary_rule_that_finds_nothing_is_silent(play):
    play.says(0, "nothing")
    await play.start(play.file(TEMPORARY))
    await play.runs(3)
    assert await play.events() == {}


@together
async def test_an_event_names_node_and_source(play):
    play.says(1, "oh")
    await play.start(play.file())
    await play.tells("Warning", "ItBroke", turned("True", "ItBroke", '"oh"'))
    event = (await play.event_bodies())[0]
    assert event["involvedObject"] == {"kind": "Node", "name": play.node, "apiVersion": "v1"}
    assert event["source"] == {"component": "contract", "host": play.node}
    assert (event["reportingComponent"], event["reportingInstance"]) == ("contract", play.node)
    assert event["metadata"]["name"].startswith(f"{play.node}.")
    assert event["firstTimestamp"] == event["lastTimestamp"]


BUSY = 2.8  # seconds that a busy machine may take to start a program
# Remembers when it began and ended; its first run takes a while.
SPAN = """
begun = time.time()
time.sleep(0 if os.path.exists(__file__ + ".spans") else {first})
with open(__file__ + ".spans", "a") as spans:
    spans.write(f"{{begun}} {{time.time()}}\\n")
"""


def spans(play, name):
    """(begun, ended) of each run of a program, in seconds."""
    file = play.directory / f"{name}.py.spans"
    lines = file.read_text().splitlines() if file.exists() else ()
    return [tuple(map(float, line.split())) for line in lines]


@together
async def test_rules_run_side_by_side_up_to_the_given_number(play):
    names = ("a", "b", "c", "d")
    rules = [{"path": str(play.program(SPAN.format(first=3), name))} for name in names]
    await play.start(play.file(*rules, concurrency=2, invoke_interval="300s"))
    await until(lambda: all(spans(play, name) for name in names), SECONDS)
    all_spans = [spans(play, name)[0] for name in names]
    at_once = [sum(begun <= moment < ended for begun, ended in all_spans) for moment, _ in all_spans]
    assert max(at_once) == 2


@together
async def test_a_slow_run_delays_the_next_and_of_the_ticks_it_missed_one_is_caught_up(play):
    path = play.program(SPAN.format(first=16))
    await play.start(play.file({"path": str(path)}, invoke_interval="6s"))
    await until(lambda: len(spans(play, "check")) >= 4, SECONDS)
    (start, end), *others = spans(play, "check")[:4]
    caught_up, next_tick, after = (begun - start for begun, _ in others)
    assert 0 <= caught_up - (end - start) < BUSY  # at once
    assert abs(next_tick - 18) < BUSY  # in step with the first run, not six seconds after the last
    assert abs(after - 24) < BUSY  # of the ticks at 6 and 12 seconds one is lost


@together
async def test_other_files_go_on_while_a_rule_is_stuck(play):
    play.program("time.sleep(300)", "stuck")
    play.says(1, "free", "free")
    stuck = play.file({"path": str(play.directory / "stuck.py")}, name="stuck.json", timeout="60s")
    free = {"path": str(play.directory / "free.py"), "condition": "Other"}
    await play.start(stuck, play.file(free, name="free.json", conditions=[OTHER]))
    await play.shows("True", "Other")
    await until(lambda: play.begun("stuck") == 1, SECONDS)
    await play.runs(2, "free")
    assert play.begun("stuck") == 1
    assert (await play.condition()).status == "False"

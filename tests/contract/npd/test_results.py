"""What the end of a program says of the node."""

import json
import signal
from datetime import timedelta
from pathlib import Path

from tests.contract.npd.playing import CONDITION, SECONDS, together
from tests.harness.waiting import gone, until

CANNOT_START = "Error in starting plugin. Please check the error log"
CANNOT_WAIT = "Error in waiting for plugin. Please check the error log"
# Leaves a child that waits for a file, a minute at most: `session` makes it a stranger to the group, `closed` lets go
# of the output.
LEAVE = """
import subprocess
nowhere = subprocess.DEVNULL if {closed} else None
wait = 'n=0; until [ -e "$0" ] || [ $n -gt 600 ]; do n=$((n+1)); sleep 0.1; done'
child = subprocess.Popen(
    ["/bin/sh", "-c", wait, __file__ + ".go"], start_new_session={session}, stdout=nowhere, stderr=nowhere
)
open(__file__ + ".draft", "w").write(str(child.pid))
os.replace(__file__ + ".draft", __file__ + ".child")
print("spoken", flush=True)
os._exit({code})
"""


def leave(*, code, session=False, closed=False):
    return LEAVE.format(code=code, session=session, closed=closed)


def child(path):
    """The id of the child that was left."""
    return int(Path(f"{path}.child").read_text())


def killed(play, path, said=""):
    """The messages that a program may get that was killed for its time, after it had said this.

    Two parts of the real one race to kill it, and where the one without words is first, what was said is all.
    """
    told = f'Timeout when running plugin "{path}": state - signal: killed. output - {json.dumps(said)}'
    return {told, said} if play.kind == "real" else {told}


def let_go(path):
    """Let the child end."""
    Path(f"{path}.go").touch()


@together
async def test_exit_0_is_false_and_what_was_printed_is_lost(play):
    play.says(0, "all eight answer")
    await play.start(play.file(skip_initial_status=True))
    assert (await play.shows("False")).said == ("False", "AllWell", "nothing is broken")


@together
async def test_exit_1_is_true_with_the_rules_reason_and_what_was_printed_trimmed(play):
    play.says(1, " \n\tGPU 3 is gone\x0b\f\r\u00a0\u2003\n")
    await play.start(play.file())
    assert (await play.shows("True")).said == ("True", "ItBroke", "GPU 3 is gone")


@together
async def test_only_white_space_as_go_sees_it_is_trimmed(play):
    play.says(1, "\x1cGPU 3\x1f\n")
    await play.start(play.file())
    assert (await play.shows("True")).message == "\x1cGPU 3\x1f"


@together
async def test_exit_2_is_unknown_with_the_healthy_reason_and_what_was_printed(play):
    play.says(2, "NVML does not answer")
    await play.start(play.file())
    assert (await play.shows("Unknown")).said == ("Unknown", "AllWell", "NVML does not answer")


@together
async def test_exit_3_is_unknown(play):
    play.says(3, "three")
    await play.start(play.file())
    assert (await play.shows("Unknown")).said == ("Unknown", "AllWell", "three")


@together
async def test_exit_126_is_unknown(play):
    play.says(126)
    await play.start(play.file(skip_initial_status=True))
    assert (await play.shows("Unknown")).said == ("Unknown", "AllWell", "")


@together
async def test_an_exception_ends_with_1_and_is_a_fault_with_an_empty_message(play):
    play.program("raise RuntimeError('the detector is broken')")
    await play.start(play.file(skip_initial_status=True))
    assert (await play.shows("True")).said == ("True", "ItBroke", "")


@together
async def test_a_program_killed_by_a_signal_knows_nothing(play):
    play.program(f"print('so far', flush=True)\nos.kill(os.getpid(), {signal.SIGSEGV:d})\n")
    await play.start(play.file())
    assert (await play.shows("Unknown")).said == ("Unknown", "AllWell", "so far")


@together
async def test_a_program_beyond_its_time_is_killed_and_knows_nothing(play):
    path = play.program("print('half \"way\"', flush=True)\ntime.sleep(300)\n")
    await play.start(play.file({"timeout": "4s"}))  # time to start and speak: the first words are kept
    seen = await play.shows("Unknown")
    assert seen.reason == "AllWell"
    assert seen.message in killed(play, path, 'half "way"')


@together
async def test_the_monitors_timeout_counts_where_a_rule_has_none(play):
    path = play.program("time.sleep(300)")
    await play.start(play.file(timeout="700ms"))
    assert (await play.shows("Unknown")).message in killed(play, path)


@together
async def test_no_time_at_all_is_no_start_at_all(play):
    play.says(1, "never said")
    await play.start(play.file(timeout="0s"))
    assert (await play.shows("Unknown")).said == ("Unknown", "AllWell", CANNOT_START)
    assert play.begun() == 0


@together
async def test_a_file_that_may_not_be_executed_cannot_be_started(play):
    play.says(1).chmod(0o644)
    await play.start(play.file())
    assert (await play.shows("Unknown")).said == ("Unknown", "AllWell", CANNOT_START)


@together
async def test_a_first_line_that_names_no_interpreter_cannot_be_started(play):
    play.says(1).write_text("#!/nowhere/python3 -m\n")
    await play.start(play.file())
    assert (await play.shows("Unknown")).message == CANNOT_START


@together
async def test_a_file_that_is_no_program_cannot_be_started(play):
    play.says(1).write_bytes(b"just text")
    await play.start(play.file())
    assert (await play.shows("Unknown")).message == CANNOT_START


@together
async def test_a_program_of_another_language_runs_like_any_other(play):
    play.says(0).write_text('#!/bin/sh\necho "$1 $FLAVOUR"; exit 1\n')
    await play.start(play.file({"args": ["sweet"]}), env={"FLAVOUR": "plum"})
    assert (await play.shows("True")).message == "sweet plum"


@together
async def test_arguments_environment_and_group_are_the_programs_own(play):
    play.program(
        "print(sys.argv[1:], os.environ['FLAVOUR'], os.getpgrp() == os.getpid(), sys.stdin.read())\nexit_ = sys.exit(1)"
    )
    await play.start(play.file({"args": ["--a", "b c", ""]}), env={"FLAVOUR": "plüm"})
    assert (await play.shows("True")).message == "['--a', 'b c', ''] plüm True"


@together
async def test_the_message_is_cut_at_the_given_number_of_bytes(play):
    play.says(1, "0123456789" * 3)
    await play.start(play.file(max_output_length=25))
    assert (await play.shows("True")).message == "0123456789012345678901234"


@together
async def test_eighty_bytes_are_kept_unless_said_otherwise(play):
    play.says(1, "x" * 100)
    await play.start(play.file(max_output_length=None))
    assert (await play.shows("True")).message == "x" * 80


@together
async def test_no_more_than_4096_bytes_are_read_however_long_the_message_may_be(play):
    play.says(1, "y" * 70000)
    await play.start(play.file(max_output_length=100000))
    assert (await play.shows("True")).message == "y" * 4096


@together
async def test_a_character_that_is_cut_in_two_leaves_a_mark_for_each_byte(play):
    play.says(1, "12345678€")
    await play.start(play.file(max_output_length=10))
    assert (await play.shows("True")).message == "12345678\ufffd\ufffd"


@together
async def test_bytes_that_are_no_text_leave_marks(play):
    play.program(r"sys.stdout.buffer.write(b'a\xff\xc3(b')" "\nsys.exit(1)")
    await play.start(play.file())
    assert (await play.shows("True")).message == "a\ufffd\ufffd(b"


@together
async def test_stderr_is_read_and_forgotten(play):
    play.program("sys.stderr.write('e' * 200000)\nprint('out')\nsys.exit(1)")
    await play.start(play.file())
    assert (await play.shows("True")).message == "out"


@together
async def test_a_child_that_keeps_the_output_open_is_killed_with_the_group_and_the_fault_stands(play):
    path = play.program(leave(code=1))
    await play.start(play.file(timeout="1s"))
    text = f'Timeout when running plugin "{path}": state - exit status 1. output - "spoken"'
    assert (await play.shows("True")).said == ("True", "ItBroke", text)
    await until(lambda: gone(child(path)))


@together
async def test_a_child_that_keeps_the_output_open_spoils_a_success(play):
    path = play.program(leave(code=0))
    await play.start(play.file(timeout="4s", invoke_interval="300s", skip_initial_status=True))
    assert (await play.shows("Unknown")).said == ("Unknown", "AllWell", CANNOT_WAIT)
    await until(lambda: gone(child(path)))


@together
async def test_a_child_with_a_session_of_its_own_blocks_the_rule_until_it_lets_go(play):
    path = play.program(leave(code=1, session=True))
    await play.start(play.file(timeout="4s", invoke_interval="300s"))
    await until(lambda: Path(f"{path}.child").exists(), SECONDS)
    first = await play.shows("False")
    assert (await play.beats(first.heartbeat + timedelta(seconds=6))).status == "False"  # long after the timeout
    let_go(path)
    text = f'Timeout when running plugin "{path}": state - exit status 1. output - "spoken"'
    assert (await play.shows("True")).message == text


@together
async def test_a_child_with_a_session_and_no_output_is_not_waited_for(play):
    path = play.program(leave(code=1, session=True, closed=True))
    await play.start(play.file(invoke_interval="300s"))
    assert (await play.shows("True")).said == ("True", "ItBroke", "spoken")
    assert not gone(child(path))
    let_go(path)


@together
async def test_a_program_that_closes_its_output_is_still_waited_for(play):
    play.program("print('early', flush=True)\nos.close(1)\nos.close(2)\ntime.sleep(1)\nos._exit(1)")
    await play.start(play.file())
    assert (await play.shows("True")).message == "early"


@together
async def test_a_program_that_closes_its_output_is_killed_in_time(play):
    path = play.program("os.close(1)\nos.close(2)\ntime.sleep(300)")
    await play.start(play.file(timeout="1s"))
    assert (await play.shows("Unknown")).message in killed(play, path)


@together
async def test_a_rule_that_times_out_leaves_the_others_of_its_file_alone(play):
    path = play.program("time.sleep(300)")
    other = {**CONDITION, "type": "Other"}
    slow = {"condition": "Other", "timeout": "20s", "path": str(play.says(1, "well", "other"))}
    await play.start(play.file({"timeout": "500ms"}, slow, conditions=[CONDITION, other]))
    assert (await play.shows("Unknown")).message in killed(play, path)
    assert (await play.shows("True", "Other")).message == "well"

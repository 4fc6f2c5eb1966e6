"""Both ways to start a program: what cannot start, what is cancelled, and how many run at once."""

import asyncio
import signal
from contextlib import suppress

import pytest

from remediator_sim.npd import AtMost, ForkServer, Processes, plugin
from remediator_sim.npd.config import Monitor, Rule
from tests.harness.waiting import gone, until
from tests.remediator_sim.forkserver.programs import ENV, HANG, program, ran

pytestmark = pytest.mark.sampled("runners")


@pytest.fixture(params=["processes", "fork server"])
async def runner(request):
    if request.param == "processes":
        yield Processes()
        return
    async with ForkServer() as fork_server:
        yield fork_server


async def test_what_cannot_be_started_is_an_error_for_both(runner, tmp_path):
    plain = program(tmp_path / "plain.py", "")
    plain.chmod(0o644)
    odd = program(tmp_path / "odd.py", "", "#!/nowhere/python -I")
    for path in (plain, odd, tmp_path, tmp_path / "none"):
        with pytest.raises(OSError, match=r"Permission denied|No such file"):
            await runner.start([str(path)], ENV)


async def test_a_cancelled_run_takes_its_whole_group_with_it(runner, tmp_path):
    path, told = program(tmp_path / "hang.py", HANG), tmp_path / "told"
    rule = Rule("permanent", "A", "Bad", str(path), (str(told),))
    monitor = Monitor("s", (), (rule,), timeout=300)
    task = asyncio.create_task(plugin.run(monitor, rule, runner, ENV))
    await until(told.exists)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    own, child = map(int, told.read_text().split())
    assert gone(own)
    await until(lambda: gone(child))


async def test_of_five_programs_with_room_for_two_the_third_starts_when_one_of_the_first_has_ended(tmp_path):
    runner, asked = AtMost(Processes(), 2), [str(program(tmp_path / "waits", "import time\ntime.sleep(60)"))]
    running = [await runner.start(asked, ENV) for _ in range(2)]
    third, *others = [asyncio.ensure_future(runner.start(asked, ENV)) for _ in range(3)]
    await asyncio.sleep(0)
    assert [start.done() for start in (third, *others)] == [False] * 3
    plugin.kill(running[0])
    assert await running[0].ended() == -signal.SIGKILL
    running.append(await third)
    await asyncio.sleep(0)
    assert [start.done() for start in others] == [False] * 2
    for start in others:
        start.cancel()
    for started in running[1:]:
        plugin.kill(started)
        await started.ended()
    for started in running:
        started.stdout.close()
        started.stderr.close()


async def test_a_program_that_cannot_start_makes_room_for_the_next(tmp_path):
    runner = AtMost(Processes(), 1)
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            await runner.start([str(tmp_path / "missing")], ENV)
    assert (await ran(runner, program(tmp_path / "here", "print('ran')")))[:2] == (0, b"ran\n")

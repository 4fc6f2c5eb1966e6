"""One run of one rule: started, watched, killed in time, and reported only when its output has ended."""

import asyncio
import logging
import os
import signal
from collections.abc import Mapping
from contextlib import suppress

from remediator_sim.npd.config import Monitor, Rule
from remediator_sim.npd.runner import Runner, Running, head
from remediator_sim.npd.status import RuleResult, RunEnd, judge

OUTPUT_LIMIT = 4096  # bytes that are read of each stream
log = logging.getLogger(__name__)


async def run(monitor: Monitor, rule: Rule, runner: Runner, env: Mapping[str, str]) -> RuleResult:
    """The result of one run; cancelled, it kills the program's process group."""
    return judge(rule, await _ended(rule, monitor.patience(rule), runner, env), monitor.max_output)


async def _ended(rule: Rule, patience: float, runner: Runner, env: Mapping[str, str]) -> RunEnd | None:
    """How the program ended; None where it did not start, as with no time at all."""
    if patience <= 0:
        return None
    try:
        running = await runner.start([rule.path, *rule.args], env)
    except (OSError, ValueError) as error:
        log.error("cannot start %s: %s; check that the file is executable and its first line", rule.path, error)
        return None
    return await _follow(rule, running, asyncio.get_running_loop().time() + patience)


async def _follow(rule: Rule, running: Running, deadline: float) -> RunEnd:
    late = asyncio.Event()

    def give_up() -> None:
        late.set()
        kill(running)

    pipes = running.stdout, running.stderr
    watchdog = asyncio.get_running_loop().call_at(deadline, give_up)
    try:
        output, complaint = await asyncio.gather(*(head(pipe, OUTPUT_LIMIT) for pipe in pipes))
        code = await running.ended()
    except asyncio.CancelledError:
        kill(running)
        await running.ended()
        raise
    finally:
        watchdog.cancel()
        for pipe in pipes:
            pipe.close()
    if complaint:
        log.info("%s: %s", rule.path, complaint.decode("utf-8", "replace").strip())
    return RunEnd(output, code, late.is_set())


def kill(running: Running) -> None:
    """SIGKILL to the whole group; a child with a session of its own escapes."""
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)

"""What a seed leaves out because nothing would come of it: rounds of drains, and waits for the same thing."""

from collections.abc import Callable

from remediator_sim.simulation import loop
from remediator_sim.simulation.clock import HostClock
from remediator_sim.simulation.programs import FAILED, PROGRAMS, Ended
from remediator_sim.simulation.world import where_it_is
from tests.harness.apiserver import MemoryServer
from tests.harness.objects import pod
from tests.simulation.programs import api
from tests.simulation.programs.scenario import model_node, run_of

DELETED = "2026-11-20T09:00:00Z"  # when the simulation begins: its end is overdue after a minute
SCENARIO = api.drain("one does not end", api.put(pod("a", deletionTimestamp=DELETED)), timeoutSeconds=300)


def drained(mark: Callable[[], object]) -> tuple[Ended, int]:
    """How a drain ends, and after how many requests."""

    async def whole() -> tuple[Ended, int]:
        memory, asked = MemoryServer(HostClock().clock), []
        await memory.begin()
        SCENARIO.real(memory)
        memory.on_request = lambda method, path: asked.append(path)
        run = run_of(SCENARIO, model_node(SCENARIO), memory.client())
        run.mark = mark
        return await PROGRAMS["drain"](run), len(asked)

    return loop.run(whole())


def test_a_drain_asks_seldom_where_nothing_changes_and_ends_as_one_that_always_asks():
    (ended, asked), (often, always) = drained(lambda: "as before"), drained(object)
    assert ended == often
    assert ended.code == FAILED
    assert "its end is overdue" in ended.message  # which time alone has made so
    assert asked < 20 < 100 < always


def test_a_case_that_says_how_long_it_is_held_is_where_it_was():
    case = {"spec": {"nodeName": "gpu-1"}, "status": {"phase": "Verifying", "blockedBy": [{"reason": "PolicyFailing"}]}}
    told = case | {"status": case["status"] | {"reason": "HeldLong", "timeline": [{"reason": "HeldLong"}]}}
    other = case | {"status": case["status"] | {"blockedBy": [{"reason": "Paused"}]}}
    assert where_it_is(told) == where_it_is(case)
    assert where_it_is(None) != where_it_is(other) != where_it_is(case)

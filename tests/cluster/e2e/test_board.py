"""A board that was moved to another node is known there by its serial number, as real programs find and tell it."""

from typing import Any

import pytest

from tests.cluster.e2e.machine import LOST
from tests.cluster.e2e.stage import Stage
from tests.harness.kinds import CASES, POLICIES
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
FIRST, SECOND = NODES = ["gpu-17", "gpu-18"]
SERIAL = f"15635210204{LOST:02}"  # of the GPU that is lost, on both machines: somebody has moved the board


async def test_a_board_that_fails_again_on_its_new_node_goes_to_a_person_with_what_was_done_on_both(
    stage: Stage,
) -> None:
    await stage.client.patch(POLICIES, "gpu-lost", {"spec": {"lemon": {"cases": 2, "window": "720h"}}})
    await stage.start_controller()
    stage.machines[FIRST].lose_gpu()
    await until(lambda: stage.over(FIRST), 90)
    stage.machines[SECOND].lose_gpu()  # what one other node says of a board keeps nobody from repairing this one
    await until(lambda: stage.over(SECOND), 90)
    stage.machines[SECOND].lose_gpu()

    async def escalated() -> dict[str, Any] | None:
        cases = await stage.of_node(CASES, SECOND)
        return next((case for case in cases if case.get("status", {}).get("phase") == "Escalated"), None)

    case = await until(escalated, 90)
    status = case["status"]
    assert (status["reason"], len(status.get("attempts") or ())) == ("Lemon", 0)
    assert status["message"].startswith(f"a person must look: board {SERIAL} (GPU-")
    assert f"had 2 cases in 30 days, on {FIRST}, {SECOND}" in status["message"]
    assert [(past["nodeName"], past["operations"], past["outcome"]) for past in status["history"]] == [
        (FIRST, ["reboot"], "Recovered"),
        (SECOND, ["reboot"], "Recovered"),
    ]
    assert [len(stage.machines[name].reboots()) for name in NODES] == [1, 1]
    assert f"on {FIRST}: reboot: Recovered" in await stage.explain(SECOND)

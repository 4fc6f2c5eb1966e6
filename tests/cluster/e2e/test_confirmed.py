"""A policy with a second source: the case of a lost GPU claims its node only when a real Prometheus agrees."""

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.e2e.stage import Stage
from tests.cluster.prometheus import Missing, real_prometheus
from tests.harness.kinds import EVENTS, POLICIES
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
NODE = "gpu-17"
NODES = [NODE]
XID = "DCGM_FI_DEV_XID_ERRORS"
CONFIRM = {"promQL": f'max({XID}{{Hostname="{{{{node}}}}"}}) > bool 0', "within": "30s"}


async def held(stage: Stage, reason: str) -> dict[str, Any] | None:
    """The hold of the node's case, where it is for this reason."""
    case = await stage.case(NODE, "Held")
    blocks = (case or {}).get("status", {}).get("blockedBy") or []
    return next((block for block in blocks if block["reason"] == reason), None)


async def test_a_case_claims_its_node_only_when_prometheus_agrees(stage: Stage, tmp_path: Path) -> None:
    folder = tmp_path / "prometheus"
    folder.mkdir()
    try:
        with real_prometheus(folder) as prometheus:
            await played(stage, prometheus)
    except Missing as why:
        pytest.skip(str(why))


async def played(stage: Stage, prometheus: Any) -> None:
    """Nothing is known, then 0, then 79: the case goes on by itself."""
    await stage.client.patch(POLICIES, "gpu-lost", {"spec": {"confirm": CONFIRM}})
    await stage.start_controller("--prometheus-url", prometheus.url)
    stage.machines[NODE].services.set()
    stage.machines[NODE].lose_gpu()
    hold = await until(lambda: held(stage, "ConfirmationUnknown"), 60)
    assert "its answer is empty" in hold["message"]

    prometheus.write(XID, 0, Hostname=NODE)
    hold = await until(lambda: held(stage, "NotConfirmed"), 60)
    assert f'Prometheus says 0 to max({XID}{{Hostname="{NODE}"}}) > bool 0' in hold["message"]
    assert not (await stage.node(NODE))["spec"].get("unschedulable")
    assert f"before anything is done the controller asks Prometheus: max({XID}" in await stage.explain(NODE)

    prometheus.write(XID, 79, Hostname=NODE)
    await until(lambda: stage.over(NODE), 120)
    assert len(stage.machines[NODE].reboots()) == 1
    reasons = [event["reason"] for event in await stage.client.list_all(EVENTS)]
    assert {"ConfirmationUnknown", "NotConfirmed", "Claimed"} <= set(reasons)

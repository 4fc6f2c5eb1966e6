"""From a metric to an issue: Prometheus with the shipped rules, Alertmanager and the webhook, each of them real."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from deploy.images.programs import NotBuilt
from tests.cluster.prometheus import Missing, RealPrometheus, real_prometheus
from tests.cluster.test_alertmanager import posting
from tests.harness.tickets import TicketHarness
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
RULES = Path(__file__).parents[2] / "deploy/monitoring/node-rules.yaml"
GPU = {"node": "gpu-17", "UUID": "GPU-1", "modelName": "H100"}
LOST = {"node": "gpu-17", "condition": "GpuLost", "status": "true"}


def rules() -> str:
    """The shipped rules about nodes, which fire at once: waiting is Prometheus' own business."""
    shipped = yaml.safe_load(RULES.read_text())
    for rule in shipped["groups"][0]["rules"]:
        rule["for"] = "0s"
    return yaml.safe_dump(shipped)


@pytest.fixture
async def chain(tmp_path: Path) -> AsyncIterator[tuple[TicketHarness, RealPrometheus]]:
    """Where issues are, and where metrics come from."""
    harness = TicketHarness()
    await harness.prepare()
    for name in ("alertmanager", "prometheus"):
        (tmp_path / name).mkdir()
    try:
        async with posting(harness, tmp_path / "alertmanager", asked=False) as (alertmanager, _):
            with real_prometheus(tmp_path / "prometheus", rules(), alertmanager.url) as prometheus:
                yield harness, prometheus
    except (Missing, NotBuilt) as why:
        pytest.skip(str(why))


async def fires(harness: TicketHarness) -> set[str]:
    """The alerts that the Ticket of the node holds as firing, once all that was heard is in its issue."""
    await harness.work()
    tickets = await harness.tickets()
    return {alert.name for ticket in tickets for alert in ticket.alerts if alert.firing}


async def test_a_metric_that_is_wrong_opens_the_issue_of_its_node_and_closes_it_when_it_is_right_again(
    chain: tuple[TicketHarness, RealPrometheus],
) -> None:
    harness, prometheus = chain

    async def firing(*names: str) -> bool:
        return await fires(harness) == set(names)

    prometheus.write("DCGM_FI_DEV_XID_ERRORS", 79, **GPU)
    await until(lambda: firing("GpuXidNeedsRepair"), 60)
    issue = harness.channel.issue(1)
    assert "GPU GPU-1 of gpu-17 had Xid 79, which calls for a repair." in issue.body
    assert "docs/conditions/GpuXid.md" in issue.body
    assert [label for label in issue.labels if label.startswith("severity")] == ["severity: warning"]
    prometheus.write("kube_node_status_condition", 1, **LOST)
    await until(lambda: firing("GpuXidNeedsRepair", "NodeConditionTrue"), 60)
    prometheus.write("DCGM_FI_DEV_XID_ERRORS", 0, **GPU)
    await until(lambda: firing("NodeConditionTrue"), 60)
    assert harness.channel.open == [1]
    prometheus.write("kube_node_status_condition", 0, **LOST)
    await until(lambda: firing(), 60)
    assert harness.channel.open == []
    assert harness.channel.calls.count("create") == 1

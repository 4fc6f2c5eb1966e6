"""What the benchmark of the watchdog counts: both of its containers, while take-orders waits at an API server."""

import pytest

from tests.bench.watchdog import FOLDER, PROGRAMS, measure
from tests.harness import yaml_files

SHIPPED = yaml_files.read(FOLDER.parent / "deploy/watchdog/daemonset.yaml")["spec"]["template"]["spec"]["containers"]


@pytest.mark.slow
async def test_each_container_of_the_watchdog_is_measured_and_asks_for_nothing_while_it_waits() -> None:
    report = await measure(1.5)
    assert [container["name"] for container in SHIPPED] == [name.replace("_", "-") for name in PROGRAMS]
    assert sum(container["resources"]["requests"]["memory"] == "32Mi" for container in SHIPPED) == len(PROGRAMS)
    for cost in report["each"].values():
        assert 4 < cost["mib"] < 32, "what its container asks for"
    assert report["each"]["carry_out"]["cpu_percent"] > 0, "it looks at its folder every second"
    assert (report["requests"], report["together"]["mib"]) == (
        0,
        round(sum(cost["mib"] for cost in report["each"].values()), 3),
    )

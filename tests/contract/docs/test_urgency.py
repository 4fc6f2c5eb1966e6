"""What a fault is worth: the table of detectors, the shipped policies and the page say the same."""

import tomllib
from datetime import timedelta
from typing import Any

import pytest

from remediator.core.names import GPU_PRESENT
from remediator.kube.api.decode.times import duration
from tests.contract.docs.pages import ROOT
from tests.contract.docs.test_tables import table
from tests.harness import yaml_files

ROWS = tomllib.loads((ROOT / "deploy/npd/detectors.toml").read_text())
POLICIES = {path.stem: yaml_files.read(path)["spec"] for path in (ROOT / "deploy/policies").glob("*.yaml")}
WITH_POLICY = sorted(name for name, row in ROWS.items() if row["when"] != "none")
MODES = {"now": "Now", "waits": "WhenIdle", "handed over": "Now", "told": "Never"}


def ladder(spec: dict[str, Any]) -> list[str]:
    """The operations of a policy that are run: none where it only escalates."""
    only_told = spec.get("urgency", {}).get("mode") == "Never"
    return [] if only_told else [rung["operation"] for rung in spec["ladder"]]


@pytest.mark.parametrize("name", WITH_POLICY)
def test_a_policy_is_as_urgent_as_the_table_of_detectors_says(name: str) -> None:
    row, spec = ROWS[name], POLICIES[ROWS[name]["policy"]]
    assert row["condition"] in {entry.get("condition") for entry in spec["when"]}
    assert spec.get("urgency", {}).get("mode", "Now") == MODES[row["when"]]
    assert ("deadline" in spec.get("urgency", {})) == (row["when"] == "waits"), "nothing waits for ever"
    assert (ladder(spec) == ["cordon"]) == (row["when"] == "handed over")


def test_the_page_shows_what_waits_which_ladder_is_gone_up_and_when_a_person_is_told() -> None:
    expected = [
        [row["condition"], row["when"], row["policy"], ", ".join(ladder(spec)), spec["ticket"]["when"]]
        for row in ROWS.values()
        if row["when"] != "none"
        for spec in [POLICIES[row["policy"]]]
    ]
    shown = [[cell.replace("`", "") for cell in row] for row in table("detectors.md", "the Condition is True")]
    assert sorted(shown) == sorted(expected)


def test_what_comes_back_within_a_week_after_a_reset_or_a_reboot_goes_to_a_person_the_second_time() -> None:
    hardware = [row["policy"] for row in ROWS.values() if row["policy"].startswith(("gpu-", "pcie-", "memory-"))]
    repaired = [name for name in hardware if {"reset-gpu", "reboot"} & set(ladder(POLICIES[name]))]
    assert len(repaired) == 7
    assert [name for name in repaired if POLICIES[name].get("relapse") != {"window": "168h"}] == []


def test_a_reboot_for_a_process_that_cannot_end_does_not_wait_for_it() -> None:
    (rung,) = POLICIES["unkillable-process"]["ladder"]
    assert (rung["operation"], rung["parameters"]) == ("reboot", {"lastResort": "sysrq"})


def test_ports_whose_driver_is_built_for_20_minutes_after_a_boot_are_not_missing_for_long_enough() -> None:
    """The startup probe of the Network Operator gives its Pod so long, that of the GPU Operator 21 minutes."""
    (missing,) = POLICIES["devices-missing"]["when"]
    assert duration(missing["for"]) > timedelta(minutes=21)


@pytest.mark.parametrize("name", ["node-not-ready", "runtime-unhealthy"])
def test_runtime_and_kubelet_are_started_again_before_their_node_is_rebooted(name: str) -> None:
    rungs = [(rung["operation"], rung.get("parameters", {}).get("service")) for rung in POLICIES[name]["ladder"]]
    assert rungs == [("restart-service", "runtime"), ("restart-service", "kubelet"), ("reboot", None)]


def test_every_policy_that_touches_nodes_waits_where_many_of_them_show_the_same() -> None:
    assert [name for name, spec in POLICIES.items() if "correlation" not in spec] == []


WORKERS = [{"key": f"node-role.kubernetes.io/{role}", "operator": "DoesNotExist"} for role in ("control-plane", "etcd")]
# Power is cut by a Secret for each node, which those have that are worth it.
OF_GPUS = ("gpu-", "nv", "pcie-", "driver-", "device-nodes-", "node-unreachable")


def test_policies_on_gpus_select_nodes_with_gpus_and_all_others_all_workers() -> None:
    gpus = {name for name in POLICIES if name.startswith(OF_GPUS)}
    assert {name for name, spec in POLICIES.items() if spec.get("verify", {}).get("probe") == "gpu-check"} <= gpus
    selectors = {True: {"matchLabels": {GPU_PRESENT: "true"}}, False: {"matchExpressions": WORKERS}}
    other = {name for name, spec in POLICIES.items() if spec["nodeSelector"] != selectors[name in gpus]}
    assert (len(gpus), other) == (15, set())

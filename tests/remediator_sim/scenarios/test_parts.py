"""The parts of the demo that can be looked at alone."""

import doctest
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from remediator.kube import api
from remediator.kube.manifests import lint
from remediator_sim.manifests import documents
from remediator_sim.scenarios import alert, fleet, timescale

REAL = Path(__file__).parents[2] / "remediator" / "tickets" / "payloads" / "am0.25.0-prom-01_firing_first.json"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEMPLATES = {one["metadata"]["name"] for one in documents(["operations"]) if "podTemplate" in one.get("spec", {})}


def test_the_alert_of_the_demo_has_the_fields_of_one_that_alertmanager_sent() -> None:
    real, ours = json.loads(REAL.read_text()), alert.payload("NodeGpuXid", "gpu-a1", NOW, None)
    assert set(ours) == set(real)
    assert set(ours["alerts"][0]) == set(real["alerts"][0])
    assert {name: type(value) for name, value in ours.items()} == {name: type(value) for name, value in real.items()}


@pytest.mark.parametrize(("nodes", "racks"), [(24, [8, 8, 8]), (25, [9, 8, 8])])
def test_nodes_are_spread_over_three_racks_and_two_have_no_gpus(nodes: int, racks: list[int]) -> None:
    placed = fleet.places(nodes)
    gpu = [place.labels[fleet.RACK] for place in placed if place.gpus]
    assert [gpu.count(f"rack-{rack}") for rack in fleet.RACKS] == racks
    assert len(placed) == nodes + 2
    assert len({place.name for place in placed}) == len(placed)


@pytest.mark.slow
def test_a_policy_with_short_times_acts_and_is_otherwise_the_shipped_one() -> None:
    for shipped in documents(["deploy/policies"]):
        shortened = timescale.policy(shipped)
        assert lint.lint([("x", shortened)], TEMPLATES) == []
        assert shortened["spec"]["mode"] == "Enforce"
        same = set(shipped["spec"]) - {"mode", "when", "verify", "cooldown", "urgency"}
        modes = [policy["spec"].get("urgency", {}).get("mode") for policy in (shipped, shortened)]
        assert modes[0] == modes[1]
        assert {name: shortened["spec"][name] for name in same} == {name: shipped["spec"][name] for name in same}
        before, after = ([api.seconds(entry["for"]) for entry in one["spec"]["when"]] for one in (shipped, shortened))
        times = timescale.ESCALATION_FASTER if timescale.only_escalates(shipped) else timescale.FASTER
        assert after == pytest.approx([seconds / times for seconds in before], abs=0.001)


def test_what_is_no_policy_is_left_as_it_is() -> None:
    assert timescale.policy({"kind": "NodeDisruptionBudget", "spec": {}}) == {
        "kind": "NodeDisruptionBudget",
        "spec": {},
    }


def test_the_examples_in_the_text_are_right() -> None:
    assert doctest.testmod(timescale).failed == 0

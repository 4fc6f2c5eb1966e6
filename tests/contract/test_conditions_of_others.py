"""Conditions of node that Kubernetes has for others than us: no detector writes them."""

from remediator.scheduler.health.node_health import MAINTENANCE_PLANNED
from tests.contract.conditions import detected


def test_no_detector_writes_the_condition_of_a_maintenance_that_kubernetes_leaves_to_administrators():
    assert MAINTENANCE_PLANNED == "MaintenancePlanned"
    assert MAINTENANCE_PLANNED not in detected()

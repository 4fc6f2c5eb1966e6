"""Policies on what one cause does to many nodes: they should hold all of these nodes together."""

from datetime import timedelta

import pytest

from remediator.core.node import Status
from remediator.core.policy import Clause, Correlation
from remediator.kube.manifests.fleet_wide import CAUSES, warnings
from tests.builders import a_policy, when
from tests.contract.test_manifests import of

TOGETHER = Correlation(3, timedelta(minutes=10))


def test_each_condition_with_a_common_cause_is_told_with_its_cause_where_no_correlation_is_written():
    clauses = (when(Clause("NfsStale")), when(Clause("Ready", Status.UNKNOWN)), when(Clause("GpuLost")))
    assert list(warnings([a_policy("p", *clauses)])) == [
        "policy p: on every node that shows NfsStale it opens a case and acts, also where the cause is an NFS server; "
        "write spec.correlation, such as {nodes: 3, within: 10m}",
        "policy p: on every node that shows Ready it opens a case and acts, also where the cause is the network or the "
        "API server; write spec.correlation, such as {nodes: 3, within: 10m}",
    ]
    tested = [a_policy("p", when(Clause("IdleTestFailed")))]
    assert [line.partition("also where ")[2] for line in warnings(tested)] == [
        "the cause is the image of the probe, or a roll-out of the driver; "
        "write spec.correlation, such as {nodes: 3, within: 10m}"
    ]
    assert list(warnings([a_policy("p", *clauses, correlation=TOGETHER), a_policy("gpus")])) == []


@pytest.mark.parametrize("condition", CAUSES)
def test_each_of_these_conditions_is_one_of_ours_whose_shipped_policies_all_write_a_correlation(condition):
    shipped = [policy["spec"] for policy in of("RemediationPolicy")]
    asking = [spec for spec in shipped if condition in {entry["condition"] for entry in spec["when"]}]
    assert asking
    assert all("correlation" in spec for spec in asking)

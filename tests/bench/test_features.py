"""The benches run with all that a user may turn on."""

import msgspec
import yaml

from remediator.kube import api
from remediator.kube.api.policy import RemediationPolicySpec
from remediator_sim import manifests
from tests.bench import cluster, features


def test_every_field_of_a_policy_is_in_one_of_those_that_the_benches_apply():
    added = yaml.safe_load_all(cluster.MANIFESTS.read_text())
    bench = [document for document in added if document["kind"] == api.POLICY.name]
    policies = [*manifests.documents(("deploy/policies",)), *features.policies(), *bench]
    used = {field for policy in policies for field in policy["spec"]}
    known = {field.encode_name for field in msgspec.structs.fields(RemediationPolicySpec)}
    assert known - used == {"allNodes"}, "all of them select by a label"


def test_no_policy_that_is_only_there_finds_a_fault_that_a_bench_makes():
    entries = [entry for policy in features.policies() for entry in policy["spec"]["when"]]
    clauses = [clause for entry in entries for clause in entry.get("all", [entry])]
    assert all("alert" in clause or clause["reasons"] == ["Bench"] for clause in clauses)

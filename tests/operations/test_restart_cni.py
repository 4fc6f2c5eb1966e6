"""The restart-cni program: which DaemonSets it knows, against an API server over HTTPS."""

import pytest

from tests.harness.apiserver import NODE, change
from tests.harness.objects import CASE_TAINT, daemon_pod, daemon_set, renewed_later
from tests.operations.conftest import Program

pytestmark = pytest.mark.sampled("restart cni")


@pytest.fixture
def api(api):
    """The API server, where each DaemonSet replaces its Pod."""
    api.replace = renewed_later
    return api


@pytest.fixture
def restart(tmp_path, api):
    """The program, told of `api`, for case-1; more PARAMETERS by name."""
    program = Program(tmp_path, "restart_cni")
    program.variables |= api.environment() | {"ATTEMPT_ID": "op-1"}
    return lambda *options, **more: program(*options, parameters={"caseUID": "case-1", "waitSeconds": 20} | more)


def on_node(api, *names):
    api.put(*(daemon_set(name) for name in names), *(daemon_pod(f"{name}-x", name) for name in names))


@pytest.mark.parametrize(
    "name", ["calico-node", "cilium", "kube-flannel-ds", "kube-flannel-ds-amd64", "aws-node", "antrea-agent", "kindnet"]
)
def test_the_agents_that_clusters_have_are_found_by_name_among_others(api, restart, name):
    on_node(api, "kube-proxy", "cilium-envoy", "calico-typha", "kube-multus-ds", "node-exporter", name)
    ran = restart()
    assert ran.code == 0, ran.out
    assert ran.message == (
        f"restarted the network agent of gpu-1: Pod kube-system/{name}-x-new is Ready in place of kube-system/{name}-x"
    )
    assert api.deleted == [f"{name}-x"]


def test_of_two_that_are_chained_one_must_be_named(api, restart):
    on_node(api, "aws-node", "cilium")
    ran = restart()
    assert (ran.code, api.writes()) == (2, [])
    assert ran.message.endswith("name one in PARAMETERS: kube-system/aws-node, kube-system/cilium")
    assert restart(daemonSet="cilium").code == 0
    assert api.deleted == ["cilium-x"]


def test_a_node_that_is_not_ready_for_want_of_a_network_is_what_it_is_for(api, restart):
    on_node(api, "cilium")
    api.ready("False")
    assert restart().code == 0


def test_a_daemon_set_that_leaves_the_node_out_is_a_failure_that_says_so(api, restart):
    api.put(daemon_set("cilium"))
    ran = restart(waitSeconds=1)
    assert (ran.code, api.writes()) == (1, [])
    assert ran.message == "failed: network agent of gpu-1 after 1 s: kube-system/cilium has no Pod there"


def test_one_that_a_taint_of_the_node_would_keep_off_is_not_deleted(api, restart):
    on_node(api, "cilium")
    taints = [CASE_TAINT, {"key": "dedicated", "value": "a", "effect": "NoSchedule"}]
    change(NODE, "spec", taints=taints)(api)
    api.put(daemon_set("cilium", tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]))
    ran = restart()
    assert (ran.code, api.writes()) == (2, [])
    assert ran.message == (
        "refused: the DaemonSet does not tolerate dedicated:NoSchedule, so no new Pod would come: "
        "add that toleration to it (operator: Exists), or take the taint away if it is yours"
    )


def test_a_pod_that_may_not_be_deleted_is_a_failure_with_the_servers_words(api, restart):
    on_node(api, "cilium")
    api.faults.refuse(403, when=lambda asked: asked.method == "DELETE")
    ran = restart()
    assert (ran.code, api.deleted) == (1, [])
    assert ran.message == "failed: Pod kube-system/cilium-x could not be deleted: refused by a planned fault (403)"

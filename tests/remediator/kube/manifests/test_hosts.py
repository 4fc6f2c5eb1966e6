"""What no node of a host can do is refused by lint, with the reason and what helps."""

import msgspec
import pytest

from remediator.core.hosts import HOSTS, HostKind, kinds
from remediator.kube.api import builtin, decode
from remediator.kube.manifests import lint
from tests.harness.host_trees import TREES
from tests.remediator.kube.manifests.examples import manifest

SERVICES = (
    "is refused on Talos Linux{}: Talos has no systemd: take the rung out, or restart the service with talosctl service"
)


def policy(*operations, **more):
    return manifest("RemediationPolicy", "p", ladder=[{"operation": name} for name in operations], **more)


def wrong(document, platforms=(), nodes=()):
    known = frozenset({"reboot", "restart-service", "reload-driver"})
    return [(finding.field, finding.message) for finding in lint.lint([("x", document)], known, platforms, nodes)]


def node(name, kind=None, **labels):
    os_image, runtime, kubelet = TREES[kind or HostKind.LINUX].told
    told = {"osImage": os_image, "containerRuntimeVersion": runtime, "kubeletVersion": kubelet}
    wire = {"metadata": {"name": name, "labels": {"pool": "a"} | labels}, "status": {"nodeInfo": told}}
    return decode.node(builtin_node(wire))


def builtin_node(wire):
    return msgspec.convert(wire, builtin.Node)


def test_a_rung_that_talos_refuses_is_refused_where_talos_is_named_and_a_reboot_is_not():
    document = policy("restart-service", "reboot")
    assert wrong(document) == wrong(document, [HostKind.LINUX, HostKind.CRI_O]) == []
    assert wrong(document, [HostKind.TALOS]) == [("spec.ladder[0].operation", SERVICES.format(""))]


def test_of_a_cluster_the_nodes_show_what_they_run_on_and_those_that_a_policy_selects_count():
    talos = [node(f"gpu-{number}", HostKind.TALOS) for number in range(7)]
    other = node("gpu-9"), node("gpu-8", HostKind.TALOS, pool="b")
    document = policy("restart-service")
    named = " (gpu-0, gpu-1, gpu-2, gpu-3, gpu-4 and 2 more)"
    assert wrong(document, (), [*talos, *other]) == [("spec.ladder[0].operation", SERVICES.format(named))]
    assert wrong(document, (), other) == []


def test_a_policy_that_touches_no_node_is_refused_nowhere():
    assert wrong(policy(urgency={"mode": "Never"}), list(HostKind)) == []


def test_all_that_runs_on_a_node_is_refused_on_autopilot_a_probe_too():
    fields = [field for field, _ in wrong(policy("reboot", verify={"probe": "gpu-check"}), [HostKind.GKE_AUTOPILOT])]
    assert set(fields) >= {"spec.ladder[0].operation", "spec.verify.probe"}


@pytest.mark.parametrize("kind", TREES)
def test_a_node_shows_what_it_runs_on(kind):
    shown = node("gpu-1", kind).hosts
    assert shown == kinds(*TREES[kind].told)
    assert set(shown) - {HostKind.CRI_O} == {kind} - {HostKind.LINUX, HostKind.CRI_O}
    assert (HostKind.CRI_O in shown) == ("crio" in TREES[kind].socket)


def test_a_node_of_gke_with_ubuntu_shows_it_by_its_kubelet():
    assert kinds("Ubuntu 24.04.3 LTS", "containerd://2.0.6", "v1.33.5-gke.1162000") == (HostKind.GKE,)


def test_each_refusal_says_why_and_what_helps():
    for row in HOSTS.values():
        for refusal in row.refused.values():
            assert len(refusal.why.split()) > 3
            assert len(refusal.remedy.split()) > 2

"""A real API server with the Prometheus Operator's definitions takes our monitors and rules, and refuses wrong ones."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.images.programs import binary, monitoring
from remediator.core.names import SYSTEM_NAMESPACE
from tests.cluster.control_plane import ControlPlane

pytestmark = pytest.mark.cluster

FOLDER = Path(__file__).parents[2] / "deploy/monitoring"
ENDPOINTS = FOLDER.parent / "endpoints.yaml"
FILES = ("podmonitor.yaml", "servicemonitor.yaml", "prometheusrule.yaml", "node-prometheusrule.yaml")
KINDS = ("podmonitors", "servicemonitors", "prometheusrules")
Object = dict[str, Any]
Answer = tuple[int, str]


def objects() -> dict[tuple[str, str], Object]:
    """What the files have, by kind and name."""
    read = [each for name in FILES for each in yaml.safe_load_all((FOLDER / name).read_text())]
    return {(each["kind"], each["metadata"]["name"]): each for each in read}


@pytest.fixture(scope="module")
def server() -> Iterator[Callable[..., Answer]]:
    """Runs kubectl against it."""
    with ControlPlane(controllers=False, scheduler=False, kwok=False) as plane:

        def kubectl(*words: object, given: object = None) -> Answer:
            command = [binary("kubectl"), "--kubeconfig", plane.kubeconfig, *words]
            text = json.dumps(given)
            done = subprocess.run(
                [str(word) for word in command], input=text, capture_output=True, text=True, timeout=120, check=False
            )
            return done.returncode, done.stdout + done.stderr

        assert kubectl("create", "namespace", SYSTEM_NAMESPACE)[0] == 0
        for path in monitoring():
            if path.stem.partition("_")[2] in KINDS:
                assert kubectl("create", "-f", path)[0] == 0
                name = f"crd/{path.stem.partition('_')[2]}.monitoring.coreos.com"
                assert kubectl("wait", "--for=condition=Established", name, "--timeout=60s")[0] == 0
        yield kubectl


def applied(server: Callable[..., Answer], given: object) -> Answer:
    return server("create", "--dry-run=server", "--validate=strict", "-f", "-", given=given)


def test_the_definitions_know_each_field_of_our_monitors_and_rules(server: Callable[..., Answer]) -> None:
    assert sorted(objects()) == [
        ("PodMonitor", "remediator"),
        ("PodMonitor", "remediator-dcgm-exporter"),
        ("PrometheusRule", "remediator"),
        ("PrometheusRule", "remediator-nodes"),
        ("ServiceMonitor", "remediator"),
        ("ServiceMonitor", "remediator-dcgm-exporter"),
    ]
    for each in objects().values():
        assert applied(server, each)[0] == 0, applied(server, each)


def test_both_kinds_of_monitors_give_dcgm_exporter_its_node_and_find_the_ports_of_ours() -> None:
    pods, services = (
        objects()[kind, "remediator-dcgm-exporter"]["spec"][ends][0]
        for kind, ends in (("PodMonitor", "podMetricsEndpoints"), ("ServiceMonitor", "endpoints"))
    )
    assert pods | {"port": "gpu-metrics"} == services
    assert pods["relabelings"] == [{"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}]
    assert pods["metricRelabelings"] == [{"regex": "Hostname", "action": "labeldrop"}]
    ours = objects()["ServiceMonitor", "remediator"]["spec"]
    served = [each for each in yaml.safe_load_all(ENDPOINTS.read_text()) if each["kind"] == "Service"]
    (metrics,) = [each for each in served if each["spec"]["ports"][0]["name"] == ours["endpoints"][0]["port"]]
    assert metrics["metadata"]["labels"] == ours["selector"]["matchLabels"]


@pytest.mark.parametrize(
    ("kind", "name", "edit", "said"),
    [
        ("PodMonitor", "remediator", lambda s: s.update(selecter={}), 'unknown field "spec.selecter"'),
        ("PodMonitor", "remediator", lambda s: s["podMetricsEndpoints"][0].update(interval="soon"), "interval"),
        (
            "PodMonitor",
            "remediator-dcgm-exporter",
            lambda s: s["podMetricsEndpoints"][0]["metricRelabelings"][0].update(action="drop-label"),
            "action: Unsupported value",
        ),
        (
            "ServiceMonitor",
            "remediator",
            lambda s: s["endpoints"][0].update(ports="x"),
            'unknown field "spec.endpoints',
        ),
        (
            "PrometheusRule",
            "remediator",
            lambda s: s["groups"][0]["rules"][0].update(sumary="x"),
            'unknown field "spec.groups[0].rules[0].sumary"',
        ),
        ("PrometheusRule", "remediator", lambda s: s["groups"][0]["rules"][0].pop("expr"), "expr: Required value"),
    ],
)
def test_a_field_that_the_operator_would_not_read_is_refused(
    server: Callable[..., Answer], kind: str, name: str, edit: Callable[[Object], object], said: str
) -> None:
    given = objects()[kind, name]
    edit(given["spec"])
    code, text = applied(server, given)
    assert (code, said in text) == (1, True), text

"""Kubernetes before 1.37 serves DeviceTaintRules in other versions than ours; our accounts are held there, too."""

from collections.abc import Iterator

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.rights.asking import OPERATIONS, OWN, SYSTEM, Object, Request
from tests.cluster.rights.world import ROOT, World, device_rule, operation_pod, pod_name
from tests.cluster.rights.world import RULES as OURS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]
VERSION = "resource.k8s.io/v1beta2"
RULES = f"/apis/{VERSION}/devicetaintrules"
SERVED = "--runtime-config=resource.k8s.io/v1/devicetaintrules=false,resource.k8s.io/v1beta2=true"


class OlderServer(ControlPlane):
    """The API server alone, with what it served before 1.37."""

    def _server_flags(self, port: int) -> list[str]:
        return [*super()._server_flags(port), SERVED]


class OlderWorld(World):
    """Only what concerns DeviceTaintRules."""

    def __init__(self) -> None:
        super().__init__()
        self.plane = OlderServer(controllers=False, scheduler=False, kwok=False)

    def _fill(self) -> None:
        self.admin = self.certified("administrator", "system:masters")
        for file in ("namespaces", "rbac", "admission/isolate-gpu"):
            self.kubectl("apply", "-f", str(ROOT / f"deploy/{file}.yaml"))
        pods = f"/api/v1/namespaces/{OPERATIONS}/pods"
        self.make(pods, operation_pod("isolate-gpu", OWN))
        foreign = rule("foreign")
        foreign["spec"]["taint"]["key"] = "example.com/broken"
        self.make(RULES, foreign)
        bound = ("Pod", pods, pod_name("isolate-gpu"))
        self.speakers["isolate-gpu"] = self.bearer(self.token("remediator-isolate-gpu", OPERATIONS, bound))
        self.speakers["controller"] = self.bearer(self.token("remediator", SYSTEM))
        self.until(lambda: self.speakers["isolate-gpu"](Request("POST", RULES, rule("all", pool=None))).status == 422)


def rule(name: str, **selector: str | None) -> Object:
    """What keeps Pods off one GPU, as isolate-gpu would make it in this version; without a pool, off many."""
    return {**device_rule(name, **selector), "apiVersion": VERSION}


@pytest.fixture(scope="module")
def older() -> Iterator[World]:
    with OlderWorld() as made:
        yield made


def test_the_server_has_the_kind_in_this_version_alone(older: World) -> None:
    assert [older.admin(Request("GET", rules)).status for rules in (RULES, OURS)] == [200, 404]


@pytest.mark.parametrize("missing", ["driver", "pool", "device"])
def test_isolate_gpu_keeps_pods_off_no_more_than_one_device(older: World, missing: str) -> None:
    isolates = older.speakers["isolate-gpu"]
    assert isolates(Request("POST", RULES, rule("one"))).status == 201
    refused = isolates(Request("POST", RULES, rule("many", **{missing: None})))
    assert (refused.status, "single devices" in refused.text) == (422, True), refused


def test_the_controller_gives_back_no_gpu_that_somebody_else_has_isolated(older: World) -> None:
    refused = older.speakers["controller"](Request("DELETE", f"{RULES}/foreign"))
    assert (refused.status, "isolate-gpu has made" in refused.text) == (422, True), refused

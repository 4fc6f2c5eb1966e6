"""The isolate-gpu program against an API server over HTTPS, and which devices a fault is about."""

import pytest

from nodelib.k8s.dra import devices, named, rule_name
from tests.harness.apiserver import NODE, change
from tests.operations.conftest import Program

BY, IN_SERVICE = "remediator.dev/cordoned-by", "remediator.dev/in-service"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
UUIDS = ["GPU-00000000-aaaa", "GPU-11111111-bbbb"]


def part(node="gpu-1", generation=1, name="slice-1", uuids=UUIDS):
    """A slice of two GPUs at 0000:65:00.0 and 0000:66:00.0."""
    gpus = [
        {
            "name": f"gpu-{number}",
            "attributes": {
                "uuid": {"string": uuid},
                "resource.kubernetes.io/pciBusID": {"string": f"0000:{65 + number}:00.0"},
                "index": {"int": number},
            },
        }
        for number, uuid in enumerate(uuids)
    ]
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": gpus}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name, "uid": name},
        "spec": spec,
    }


@pytest.fixture
def api(api):
    """The API server, with gpu-1 cordoned by the claim of case-1, and two GPUs of DRA on it and on gpu-2."""
    change(NODE, "spec", unschedulable=True)(api)
    change(NODE, "metadata", annotations={BY: "case-1", "team": "a"})(api)
    api.put(part(), part("gpu-2", name="slice-2", uuids=["GPU-22222222-cccc", "GPU-33333333-dddd"]))
    return api


@pytest.fixture
def isolate(tmp_path, api):
    """The program, told of `api`, for case-1 of GPU 1; more PARAMETERS by name."""
    program = Program(tmp_path, "isolate_gpu")
    program.variables |= api.environment() | {"ATTEMPT_ID": "op-1"}
    usual = {"caseUID": "case-1", "case": "gpu-1-gpu-lost", "gpus": UUIDS[1], "fault": "a GPU has failed"}
    return lambda *options, **more: program(*options, parameters=usual | more)


def rules(api):
    return [body for method, path, body in api.requests if method == "POST" and path == RULES]


def test_the_sick_gpu_alone_is_tainted_and_its_node_goes_back_to_work(api, isolate):
    ran = isolate()
    assert (ran.code, ran.message) == (
        0,
        "isolated gpu.nvidia.com/gpu-1/gpu-1 (NoSchedule); gpu-1 is in service without it",
    ), ran.out
    (rule,) = rules(api)
    assert rule["spec"] == {
        "deviceSelector": {"driver": "gpu.nvidia.com", "pool": "gpu-1", "device": "gpu-1"},
        "taint": {"key": "remediator.dev/isolated", "effect": "NoSchedule"},
    }
    assert rule["metadata"]["labels"] == {"remediator.dev/case-uid": "case-1"}
    (owner,) = rule["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("NodeRemediation", "gpu-1-gpu-lost", "case-1")
    assert "unschedulable" not in api.node["spec"]
    assert api.node["metadata"]["annotations"] == {IN_SERVICE: "case-1", "team": "a"}


def test_doing_it_twice_changes_nothing_more(api, isolate):
    isolate()
    writes = len(api.writes())
    ran = isolate()
    assert (ran.code, ran.message.endswith("gpu-1 is in service")) == (0, True), ran.out
    assert len(api.writes()) == writes + 1, "the rule of the same name is refused: it is there"


def test_a_dry_run_taints_nothing(api, isolate):
    ran = isolate("--dry-run")
    assert (ran.code, ran.out.strip()) == (0, "would taint gpu.nvidia.com/gpu-1/gpu-1 with NoSchedule")
    assert api.writes() == []


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        pytest.param({"gpus": "GPU-99999999"}, "none of 2 has a UUID or PCI address of it", id="no such GPU"),
        pytest.param({"gpus": ""}, "none of 2 has a UUID or PCI address of it", id="nobody names one"),
        pytest.param({"gpus": ",".join(UUIDS)}, "the case names all of its 2 devices", id="all are sick"),
    ],
)
def test_what_cannot_be_told_taints_nothing_and_leaves_the_cordon(api, isolate, parameters, why):
    ran = isolate(**parameters)
    assert (ran.code, ran.message) == (2, f"refused: cannot tell which device of gpu-1 is unhealthy: {why}"), ran.out
    assert api.writes() == []
    assert api.node["spec"]["unschedulable"] is True


def test_an_effect_that_devices_do_not_have_is_refused(api, isolate):
    ran = isolate(effect="PreferNoSchedule")
    assert (ran.code, ran.message) == (
        2,
        "refused: PARAMETERS.effect is 'PreferNoSchedule', not one of NoSchedule, NoExecute",
    )
    assert isolate(effect="NoExecute").code == 0
    assert rules(api)[0]["spec"]["taint"]["effect"] == "NoExecute"


def test_a_node_that_somebody_else_has_cordoned_stays_cordoned(api, isolate):
    change(NODE, "metadata", annotations={BY: None})(api)
    ran = isolate()
    assert (ran.code, "left as it is" in ran.message) == (0, True), ran.out
    assert api.node["spec"]["unschedulable"] is True


def test_a_case_that_has_lost_its_node_taints_nothing(api, isolate):
    change(NODE, "spec", taints=[])(api)
    ran = isolate()
    assert (ran.code, api.writes()) == (2, []), ran.out


@pytest.mark.parametrize(
    ("fault", "names"),
    [
        ("NVML lost GPU 00000000:66:00.0", ["gpu-1"]),
        ("GPU-11111111 has an uncorrected error", ["gpu-1"]),
        ("0000:65:00 and 0000:66:00.0", ["gpu-0", "gpu-1"]),
        ("at 12:66:00 a GPU was lost", []),
        ("0001:66:00.0 of another domain", []),
    ],
)
def test_a_fault_names_its_gpu_by_uuid_or_pci_address(fault, names):
    assert [device.name for device in named(devices([part()], "gpu-1"), [], fault)] == names


def test_of_a_pool_only_the_newest_generation_counts_and_of_slices_those_of_the_node():
    known = devices([part(), part(generation=2, uuids=UUIDS[:1]), part("gpu-2")], "gpu-1")
    assert [(device.pool, device.name) for device in known] == [("gpu-1", "gpu-0")]


def test_parts_of_a_sick_gpu_are_tainted_with_it():
    gpus = part()
    parent = {"parentUUID": {"string": UUIDS[0]}, "uuid": {"string": "MIG-1"}}
    gpus["spec"]["devices"].append({"name": "gpu-0-mig-1g10gb-0", "attributes": parent})
    assert [device.name for device in named(devices([gpus], "gpu-1"), UUIDS[:1], "")] == ["gpu-0", "gpu-0-mig-1g10gb-0"]


def test_a_rule_has_one_name_in_its_case():
    first, second = devices([part()], "gpu-1")
    assert rule_name(first, "case-1") == rule_name(first, "case-1")
    assert len({rule_name(first, "case-1"), rule_name(first, "case-2"), rule_name(second, "case-1")}) == 3

"""The kept cases by board and GPU, wherever these were, kept change by change."""

from dataclasses import replace

import msgspec

from remediator.core.gpus import Gpu
from remediator.kube import api
from remediator.kube.api import decode
from tests.builders import a_case
from tests.harness.replica import empty_cache

FIRST = Gpu("1563521020414", "GPU-9f3c01ab-77aa")
TWIN = Gpu("1563521020414", "GPU-11d2c4a0-77aa")  # the other GPU of the same board
OTHER = Gpu("1563521020999", "GPU-22d2c4a0-77aa")
NEW = a_case("new", node="gpu-9", gpus=(FIRST,))


def names(cache, case=NEW):
    return {gpu: [other.name for other in cases] for gpu, cases in cache.memory.of_gpus(case).items()}


def test_a_board_is_found_by_its_serial_on_whatever_node_and_under_whatever_uid_of_the_node():
    cache = empty_cache()
    for case in (
        a_case("on-7", node="gpu-7", gpus=(FIRST,)),
        a_case("on-7-set-up-anew", node="gpu-7", node_uid="second", gpus=(TWIN,)),
        a_case("another-board", node="gpu-7", gpus=(OTHER,)),
        a_case("no-board", node="gpu-9"),
    ):
        cache.cases.note(case.name, case)
    assert names(cache) == {FIRST: ["on-7", "on-7-set-up-anew"]}
    assert names(cache, a_case("no-board", node="gpu-9")) == {}


def test_a_board_without_a_serial_is_found_by_the_uuid_of_its_gpu():
    cache = empty_cache()
    cache.cases.note("old", a_case("old", gpus=(Gpu("", FIRST.uuid),)))
    cache.cases.note("twin", a_case("twin", gpus=(Gpu("", TWIN.uuid),)))
    assert names(cache) == {FIRST: ["old"]}


def test_what_the_diagnostics_find_is_known_at_once_and_what_is_deleted_is_forgotten():
    cache = empty_cache()
    case = a_case("old", gpus=())
    cache.cases._reflector._keep("old", case)
    assert names(cache) == {FIRST: []}
    cache.cases._reflector._keep("old", replace(case, gpus=(FIRST, OTHER), version="2"))
    assert names(cache) == {FIRST: ["old"]}
    cache.cases._reflector._drop("old")
    assert names(cache) == {FIRST: []}
    assert len(cache.memory._by_key) == 0


def test_an_ended_case_keeps_its_boards_and_not_its_evidence():
    """They come from what collect-diagnostics found, and the message of the condition says which of them it is."""
    body = {
        "metadata": {"name": "c", "uid": "u", "resourceVersion": "1"},
        "spec": {
            "nodeName": "gpu-7",
            "nodeUID": "n",
            "policyName": "gpu-lost",
            "trigger": {"condition": "GpuLost", "message": "0000:3b:00.0 (GPU-9f3c01ab) is lost"},
        },
        "status": {
            "phase": "Recovered",
            "endedAt": "2026-11-01T00:00:00Z",
            "evidence": {
                "gpus": [
                    {"address": "0000:3b:00.0", "uuid": FIRST.uuid, "serial": FIRST.serial},
                    {"address": "0000:5e:00.0", "uuid": OTHER.uuid, "serial": OTHER.serial},
                ]
            },
        },
    }
    case = decode.remediation_case(msgspec.convert(body, api.NodeRemediation))
    assert (case.evidence, case.gpus) == (None, (FIRST,))

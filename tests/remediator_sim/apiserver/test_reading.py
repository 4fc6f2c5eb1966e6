"""Small readers: protobuf bodies, JSONPath of printer columns, ages, patches without a server."""

from datetime import UTC, datetime, timedelta

import pytest

from remediator.kube.wire import times
from remediator_sim.apiserver import ages, protobuf, strategic
from remediator_sim.apiserver.jsonpath import compile_path
from remediator_sim.apiserver.status import Failure


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def envelope(api_version: bytes, kind: bytes, message: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, message)


def test_an_eviction_in_protobuf_is_read_with_its_grace_period_of_zero():
    meta = field(1, b"p") + field(2, b"") + field(3, b"ns") + field(11, field(1, b"app") + field(2, b"x"))
    options = field(1, 0) + field(2, field(1, b"uid-1")) + field(5, b"All")
    raw = envelope(b"policy/v1", b"Eviction", field(1, meta) + field(2, options))
    assert protobuf.read(raw) == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "ns", "labels": {"app": "x"}},
        "deleteOptions": {"gracePeriodSeconds": 0, "preconditions": {"uid": "uid-1"}, "dryRun": ["All"]},
    }


def test_times_in_protobuf_become_text_and_zero_times_nothing():
    raw = envelope(b"v1", b"Event", field(6, field(1, 61) + field(2, 0)) + field(7, b"") + field(8, 3))
    found = protobuf.read(raw)
    assert found["firstTimestamp"] == "1970-01-01T00:01:01Z"
    assert "lastTimestamp" not in found
    assert found["count"] == 3


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"{}", 400),
        (envelope(b"v1", b"ConfigMap", b"\x0a\x7f"), 400),
        (envelope(b"apps/v1", b"Deployment", b""), 415),
    ],
)
def test_protobuf_that_is_broken_or_of_an_unknown_kind_is_refused(raw, code):
    with pytest.raises(Failure) as refusal:
        protobuf.read(raw)
    assert refusal.value.code == code


OBJ = {
    "spec": {"list": [{"n": 1}, {"n": 2}], "a.b/c": "dotted"},
    "status": {"conditions": [{"type": "X", "status": "False"}, {"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.list[*].n", [1, 2]),
        (".spec.list[0].n", [1]),
        (".spec.list[-1:].n", [2]),
        ("{.spec.list[9].n}", []),
        (r".spec.a\.b/c", ["dotted"]),
        (".spec['a.b/c']", ["dotted"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".nothing.here", []),
    ],
)
def test_printer_columns_find_what_their_path_names(path, found):
    assert compile_path(path)(OBJ) == found


def test_a_path_beyond_the_small_language_is_refused():
    with pytest.raises(ValueError, match="not understood"):
        compile_path(".a[?(@.b>3)]")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (119, "119s"),
        (200, "3m20s"),
        (600, "10m"),
        (3 * 3600 + 60, "3h1m"),
        (9 * 3600, "9h"),
        (3 * 86400, "3d"),
        (9 * 86400, "9d"),
        (800 * 86400, "2y70d"),
    ],
)
def test_ages_are_short(seconds, shown):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert ages.age(times.stamp(now - timedelta(seconds=seconds)), now) == shown


def test_a_service_merges_its_ports_by_port_and_a_container_by_container_port():
    service = {"ports": [{"port": 80, "name": "web"}]}
    assert strategic.apply(service, {"ports": [{"port": 80, "name": "http"}]})["ports"] == [
        {"port": 80, "name": "http"}
    ]
    container = {"ports": [{"containerPort": 80}]}
    merged = strategic.apply(container, {"ports": [{"containerPort": 81, "protocol": "TCP"}]})["ports"]
    assert [port["containerPort"] for port in merged] == [80, 81]


def test_a_strategic_delete_removes_one_item_of_a_merged_list():
    pod = {"volumes": [{"name": "a"}, {"name": "b"}]}
    assert strategic.apply(pod, {"volumes": [{"name": "a", "$patch": "delete"}]}) == {"volumes": [{"name": "b"}]}

"""deploy/log-monitors: what node-problem-detector finds in lines of logs, and a policy for each thing that it tells."""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from remediator.kube.api.durations import seconds
from remediator.kube.manifests import lint
from tests.contract.conditions import detected
from tests.contract.docs import shapes
from tests.contract.test_hosts import at, built, deploy_built
from tests.contract.test_manifests import OBJECTS, ROOT, Object
from tests.harness import yaml_files

FOLDER = ROOT / "deploy/log-monitors"
SHARED = {"filelog": "starts", "journald": "starts"}  # whose policies a component names
COMPONENTS = sorted({path.parent.name for path in FOLDER.glob("*/kustomization.yaml")} - {*SHARED.values()})
FILES = sorted(FOLDER.glob("*/*.json"))
MOUNTED = "/etc/remediator/npd"


@cache
def body(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def rules(component: str) -> list[dict[str, Any]]:
    return [rule for path in FILES if path.parent.name == component for rule in body(path)["rules"]]


def told(component: str, line: str) -> list[str]:
    """The reasons that a line has, as node-problem-detector matches: to the end of the line."""
    return [rule["reason"] for rule in rules(component) if re.search(rule["pattern"] + r"\Z", line)]


KERNEL = {
    "{1}[Hardware Error]: event severity: fatal": ["CperHardwareErrorFatal"],
    "[Hardware Error]: event severity: fatal": ["CperHardwareErrorFatal"],
    "{1}[Hardware Error]: event severity: recoverable": [],
    "{1}[Hardware Error]:  Error 0, type: fatal": [],
    "foo[3]: {1}[Hardware Error]: event severity: fatal": [],
    "unregister_netdevice: waiting for veth1a2b3c4d to become free. Usage count = 2": ["UnregisterNetDevice"],
    "unregister_netdevice: waiting for lo to become free. Usage count = -1": ["UnregisterNetDevice"],
    "nf_conntrack: nf_conntrack: table full, dropping packet": ["ConntrackTableFull"],
    "nf_conntrack: table full, dropping packet.": ["ConntrackTableFull"],
    "nf_conntrack: nf_conntrack: table full in netns 4026531840, dropping packet": ["ConntrackTableFull"],
    "neighbour: arp_cache: neighbor table overflow!": ["NeighbourTableFull"],
    "neighbour: ndisc_cache: neighbor table overflow!": ["NeighbourTableFull"],
    "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls": [],
    "INFO: task kworker/1:2:33 blocked for more than 120 seconds.": [],
    "EXT4-fs (sda1): Remounting filesystem read-only": [],
}
SERVICES = {
    "Started kubelet.service - kubelet: The Kubernetes Node Agent.": ["KubeletStart"],
    "Started kubelet: The Kubernetes Node Agent.": ["KubeletStart"],
    "Started Kubernetes Kubelet.": ["KubeletStart"],
    "Started containerd.service - containerd container runtime.": ["RuntimeStart"],
    "Started containerd container runtime.": ["RuntimeStart"],
    "Started crio.service - Container Runtime Interface for OCI (CRI-O).": ["RuntimeStart"],
    "Failed to start containerd.service - containerd container runtime.": ["RuntimeStart"],  # Type=notify, before READY
    "Failed to start Container Runtime Interface for OCI (CRI-O).": ["RuntimeStart"],
    "Failed to start kubelet.service - kubelet: The Kubernetes Node Agent.": ["KubeletStart"],
    "Started k3s.service - Lightweight Kubernetes.": ["KubeletStart"],
    "Failed to start k3s-agent.service - Lightweight Kubernetes.": ["KubeletStart"],
    "Started Lightweight Kubernetes.": ["KubeletStart"],
    "Failed to start rke2-agent.service - Rancher Kubernetes Engine v2 (agent).": ["KubeletStart"],
    "Started rke2-server.service - Rancher Kubernetes Engine v2 (server).": ["KubeletStart"],
    "Started Rancher Kubernetes Engine v2 (agent).": ["KubeletStart"],
    "Started snap.microk8s.daemon-kubelite.service - Service for snap application microk8s.daemon-kubelite.": [
        "KubeletStart"
    ],
    "Started Service for snap application microk8s.daemon-kubelite.": ["KubeletStart"],
    "Started Service for snap application microk8s.daemon-containerd.": ["RuntimeStart"],
    "Failed to start snap.microk8s.daemon-containerd.service - Service for snap application.": ["RuntimeStart"],
    "Started snap.microk8s.daemon-apiserver-kicker.service - Service for snap application.": [],
    "Failed to start k3s-upgrade.service - a thing of somebody else.": [],
    "Starting kubelet.service - kubelet: The Kubernetes Node Agent...": [],
    "Started kubelet-watcher.service - a thing of somebody else.": [],
    "Stopped containerd.service - containerd container runtime.": [],
}


@pytest.mark.parametrize(("line", "reasons"), KERNEL.items())
def test_a_line_of_the_kernel_is_told_by_one_rule_or_none(line: str, reasons: list[str]) -> None:
    assert told("kernel", line) == reasons


@pytest.mark.parametrize(("line", "reasons"), SERVICES.items())
def test_a_start_of_a_service_is_the_same_in_the_journal_and_in_a_file_where_only_systemd_tells_it(
    line: str, reasons: list[str]
) -> None:
    assert told("journald", line) == told("filelog", f"systemd[1]: {line}") == reasons
    assert told("filelog", f"mine[4711]: systemd[1]: {line}") == []


def test_of_a_line_of_syslog_time_and_words_are_found() -> None:
    words, other = [body(path)["pluginConfig"] for path in FILES if path.parent.name == "filelog"]
    assert words == other
    line = "2026-11-30T12:00:00.123456+00:00 gpu-17 systemd[1]: Started kubelet.service - kubelet: The agent."
    found = [match[1] for name in ("timestamp", "message") if (match := re.search(words[name], line))]
    assert found == ["2026-11-30T12:00:00.123456+00:00", "systemd[1]: Started kubelet.service - kubelet: The agent."]


@pytest.mark.parametrize("name", COMPONENTS)
def test_each_thing_that_is_told_has_a_policy_and_each_policy_something_that_is_told(name: str) -> None:
    said = {rule.get("condition") or rule["reason"] for rule in rules(name)}
    entries = [when for policy in policies(name) for when in policy["spec"]["when"]]
    assert [each.get("condition") or each["event"]["reason"] for each in entries] == sorted(
        said, key=[each.get("condition") or each["event"]["reason"] for each in entries].index
    )


STARTS = {"remediator-kubelet-starts", "remediator-runtime-starts"}
SOURCES = {
    "filelog": STARTS,
    "journald": STARTS,
    "kernel": {f"remediator-kernel-{name}" for name in ("log", "conntrack", "neighbours", "net-device")},
}


def sources(name: str) -> dict[str, set[str]]:
    """The reasons of each source of a component: node-problem-detector has one recorder of Events for each."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        if path.parent.name == name:
            found.setdefault(body(path)["source"], set()).update(rule["reason"] for rule in body(path)["rules"])
    return found


@pytest.mark.parametrize("name", COMPONENTS)
def test_each_reason_has_a_source_of_its_own_which_no_detector_has(name: str) -> None:
    """A source sends 25 Events and then one in 5 minutes: a reason that floods would leave nothing for the others."""
    assert set(sources(name)) == SOURCES[name]
    assert {len(reasons) for reasons in sources(name).values()} == {1}
    detectors = {json.loads(path.read_text()).get("source") for path in (ROOT / "deploy/npd").glob("*.json")}
    assert detectors
    assert not detectors & SOURCES[name]


@pytest.mark.parametrize("name", COMPONENTS)
def test_events_are_counted_within_10_minutes_for_each_reason_of_their_source(name: str) -> None:
    """A fault that goes on may send no more than one Event in 5 minutes: with less, it looks over meanwhile."""
    share = {reason: 10 * len(reasons) for reasons in sources(name).values() for reason in reasons}
    events = [when["event"] for policy in policies(name) for when in policy["spec"]["when"] if "event" in when]
    for event in events:
        assert seconds(event["within"]) >= 60 * share[event["reason"]], event


HELD = [10 * nth for nth in range(6 * 60)]  # unregister_netdevice is logged every 10 seconds, here for an hour


def test_a_device_that_is_held_for_an_hour_is_held_all_the_time() -> None:
    """Of 360 lines 25 are sent at once, and then one in 300 seconds."""
    (event,) = [
        one["spec"]["when"][0]["event"] for one in policies("kernel") if "net-device" in one["metadata"]["name"]
    ]
    sent = allowed(HELD)
    assert len(sent) == 25 + 11
    within = seconds(event["within"])
    assert min(sum(now - within < each <= now for each in sent) for now in range(60, 3600, 30)) >= event["count"]


def allowed(lines: list[int]) -> list[int]:
    """When client-go sends Events of one source about one node, in seconds: 25, and one more for each 300 seconds."""
    sent: list[int] = []
    left, last = 25.0, 0
    for now in lines:
        left, last = min(25.0, left + (now - last) / 300), now
        if left >= 1:
            left -= 1
            sent.append(now)
    return sent


def policies(name: str) -> list[Object]:
    found: list[Object] = yaml_files.read_all(FOLDER / SHARED.get(name, name) / "policies.yaml")
    return found


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_policy_on_a_line_of_a_log_only_tells_and_many_nodes_are_one_issue(name: str) -> None:
    for policy in policies(name):
        spec = policy["spec"]
        assert (spec["mode"], spec["urgency"], "ladder" in spec) == ("DryRun", {"mode": "Never"}, False)
        assert spec["correlation"]["nodes"] == 3


def test_no_log_monitor_writes_the_condition_of_a_detector_and_admission_lets_each_be_written() -> None:
    types = {condition["type"] for path in FILES for condition in body(path)["conditions"]}
    assert types == {"CperHardwareErrorFatal"}
    assert not types & detected()
    (policy,) = [one for one in OBJECTS if one["metadata"]["name"] == "remediator-detector-writes-own-node"][:1]
    (listed,) = [one["expression"] for one in policy["spec"]["variables"] if one["name"] == "types"]
    assert all(f"'{type}'" in listed for type in types)


def test_what_stands_looks_back_over_the_whole_boot_and_what_is_counted_begins_with_new_lines() -> None:
    """A restart of node-problem-detector is no repair, and no line is told twice."""
    for path in FILES:
        kinds = {rule["type"] for rule in body(path)["rules"]}
        assert (kinds, body(path)["lookback"]) in (({"permanent"}, "8760h"), ({"temporary"}, "0s")), path


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPONENTS)
def test_lint_finds_nothing_in_the_policies_of_a_component(name: str) -> None:
    assert [str(finding) for finding in lint.lint([(name, one) for one in policies(name)])] == []


DETECTORS = ("DaemonSet", "node-problem-detector", "remediator-system")


@pytest.mark.cluster
@pytest.mark.parametrize("name", COMPONENTS)
def test_kustomize_gives_the_pod_of_detectors_each_file_of_a_component_and_the_flag_that_names_it(
    name: str, tmp_path: Path
) -> None:
    (page,) = [one for one in shapes.of("kustomization") if one.title.startswith("docs/log-monitors.md:")]
    assert [one.rpartition("/")[2] for one in page.value["components"]] == ["kernel", "filelog"]
    text = page.text.replace("../remediator", os.path.relpath(ROOT, tmp_path)).replace("monitors/filelog", "monitors/x")
    text = text.replace("log-monitors/kernel", f"log-monitors/{name}").replace(text.splitlines()[-1], "")
    (tmp_path / "kustomization.yaml").write_text(text)
    made, plain = built(tmp_path), deploy_built()
    container = at(made[DETECTORS], "spec/template/spec/containers/0")
    before = at(plain[DETECTORS], "spec/template/spec/containers/0")
    files = [path.name for path in FILES if path.parent.name == name]
    flag = f"--config.system-log-monitor={','.join(f'{MOUNTED}/{file}' for file in files)}"
    assert container["args"] == [*before["args"], flag]
    (maps,) = [one for key, one in made.items() if key[0] == "ConfigMap" and key[1].startswith(DETECTORS[1])]
    assert {*files, "gpu-lost.json"} <= set(maps["data"])
    added = {key[1] for key in set(made) - set(plain) if key[0] != "ConfigMap"}
    assert added == {policy["metadata"]["name"] for policy in policies(name)}
    places = [mount["mountPath"] for mount in container["volumeMounts"]]
    read = [body(path)["logPath"] for path in FILES if path.parent.name == name]
    assert all(path == "/dev/kmsg" or any(path.startswith(f"{place}/") for place in places) for path in read)

"""deploy/pod-network: a probe in the network of Pods, without token, rights and capabilities: one port, one file."""

from pathlib import Path

from tests.harness import yaml_files

ROOT = Path(__file__).parents[2]
OBJECTS = {each["kind"]: each for each in yaml_files.read_all(ROOT / "deploy/pod-network/daemonset.yaml")}
SPEC = OBJECTS["DaemonSet"]["spec"]["template"]["spec"]
PORT = 8790


def test_the_probe_has_the_network_of_a_pod_and_no_token_no_role_and_no_capability() -> None:
    (probe,) = SPEC["containers"]
    assert {"hostNetwork", "hostPID", "hostIPC"} & set(SPEC) == set()
    assert (SPEC["automountServiceAccountToken"], OBJECTS["ServiceAccount"]["automountServiceAccountToken"]) == (
        False,
    ) * 2
    assert (probe["securityContext"]["capabilities"], probe["securityContext"]["allowPrivilegeEscalation"]) == (
        {"drop": ["ALL"]},
        False,
    )
    assert set(OBJECTS) == {"ServiceAccount", "DaemonSet", "Service", "NetworkPolicy"}


def test_what_it_writes_lies_where_the_detector_reads_and_its_peers_are_at_the_port_that_it_serves() -> None:
    text = (ROOT / "detectors/pod_network.py").read_text()
    (volume,) = SPEC["volumes"]
    (mount,) = SPEC["containers"][0]["volumeMounts"]
    assert volume["hostPath"]["path"] == mount["mountPath"] == "/run/remediator/pod-network"
    assert f'RESULT = Path("{mount["mountPath"]}/probe.json")' in text
    meta = OBJECTS["Service"]["metadata"]
    assert f'"{meta["name"]}.{meta["namespace"]}.svc", {PORT}' in text
    assert OBJECTS["Service"]["spec"]["clusterIP"] == "None"
    ports = [
        OBJECTS["Service"]["spec"]["ports"],
        *(rule["ports"] for rule in OBJECTS["NetworkPolicy"]["spec"]["ingress"]),
    ]
    assert [port["port"] for group in ports for port in group] == [PORT, PORT]


def test_the_cluster_admits_it_as_early_as_the_detectors_and_lets_it_ask_dns_also_behind_a_service() -> None:
    assert SPEC["priorityClassName"] == "system-node-critical"
    ports = [
        (port["protocol"], port["port"])
        for rule in OBJECTS["NetworkPolicy"]["spec"]["egress"]
        for port in rule["ports"]
    ]
    assert {(protocol, port) for protocol in ("UDP", "TCP") for port in (53, 5353)} <= {*ports}


def test_openshift_admits_it_as_root_with_a_folder_of_the_node_and_nothing_else() -> None:
    every = yaml_files.read_all(ROOT / "deploy/hosts/openshift/scc.yaml")
    account = f"system:serviceaccount:remediator-system:{SPEC['serviceAccountName']}"
    (scc,) = [one for one in every if account in one.get("users", ())]
    assert [name for name, value in scc.items() if value is True] == [
        "allowHostDirVolumePlugin",
        "readOnlyRootFilesystem",
    ]
    assert (scc["runAsUser"], "hostPath" in scc["volumes"]) == ({"type": "RunAsAny"}, True)

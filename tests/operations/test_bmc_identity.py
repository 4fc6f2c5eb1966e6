"""Whose BMC it is: what is done where its UUID is that of the node, that of another machine, or not told."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodelib.bmc.identity import is_among, is_told
from tests.harness import objects
from tests.operations.cycle import TAINT, Cycle, machine, volume
from tests.operations.fake_bmc import PASSWORD, USER, UUID, FakeIpmi

pytestmark = pytest.mark.sampled("bmc identity")

OLD_ORDER = "44454c4c-4300-1030-8052-b4c04f564433"  # of SMBIOS before 2.6, and as it is in memory
ANOTHER = "9f1b6a52-0c7d-4e5b-8a41-3d2f5e6c7b80"
PRESET = "03000200-0400-0500-0006-000700080009"
TRUSTED = {"trustAddress": "true"}


@pytest.fixture
def api(api):
    """The API server, whose gpu-1 is not heard of any more, and has a volume."""
    api.ready("Unknown")
    api.put(volume("a"))
    return api


@pytest.fixture
def cycle(tmp_path, api, bmc):
    cycle = Cycle(tmp_path, api, bmc)
    cycle.program.parameters = {"detachSeconds": "0"}
    return cycle


@pytest.fixture
def ipmi(tmp_path, cycle):
    """A fake ipmitool on the program's path, and an entry that asks for it."""
    fake = FakeIpmi(tmp_path)
    cycle.program.variables["PATH"] = f"{fake.bin}{os.pathsep}{os.environ['PATH']}"
    cycle.entry(address="10.0.3.17", username="remediator", password=PASSWORD, protocol="ipmi")
    return fake


def declared(api):
    """Whether the node was declared out of service."""
    return TAINT in api.stored("nodes")[0]["spec"]["taints"]


def test_the_bmc_of_another_machine_is_refused(api, bmc, cycle):
    machine("00000000-1111-2222-3333-444444444444")(api)
    ran = cycle()
    assert (ran.code, bmc.resets, api.leases) == (2, [], {})
    assert f"is that of another machine: its UUID is {UUID}, the node's is 00000000-1111" in ran.message


@pytest.mark.parametrize("node", [UUID.upper(), OLD_ORDER])
def test_a_node_with_the_uuid_of_its_bmc_in_either_byte_order_is_cycled_and_gives_its_volumes_up(api, cycle, node):
    machine(node)(api)
    ran = cycle()
    assert (ran.code, declared(api)) == (0, True), ran.out
    assert "gpu-1 was declared out of service: 1 volumes were attached" in ran.message


def test_the_uuid_of_the_entry_lets_the_power_be_cut_and_proves_nothing_of_the_node(api, bmc, cycle):
    machine(ANOTHER)(api)
    cycle.entry(**bmc.entry(uuid=UUID))
    ran = cycle()
    assert (ran.code, bmc.resets, declared(api)) == (0, ["ForceOff", "On"], False), ran.out
    assert ran.message == (
        "power-cycled gpu-1; its volumes were not given up: its BMC does not tell the UUID that gpu-1 has, so nobody "
        "can tell whether it is off"
    )


def test_an_entry_whose_uuid_is_that_of_the_node_is_as_good_as_none(api, bmc, cycle):
    cycle.entry(**bmc.entry(uuid=UUID))
    assert cycle().code == 0
    assert declared(api)


@pytest.mark.parametrize(
    ("node", "told", "words"),
    [
        ("", UUID, "the node tells no UUID"),
        (PRESET, UUID, "the node tells no UUID"),
        (UUID, "", "BMC 127.0.0.1 tells no UUID"),
        (UUID, "ffffffff-ffff-ffff-ffff-ffffffffffff", "BMC 127.0.0.1 tells no UUID"),
        ("00000000-0000-0000-0000-000000000000", "", "neither BMC 127.0.0.1 nor the node tells a UUID"),
        (PRESET, PRESET, "neither BMC 127.0.0.1 nor the node tells a UUID"),
    ],
)
def test_where_no_uuid_is_compared_nothing_is_done_unless_the_address_is_trusted(api, bmc, cycle, node, told, words):
    machine(node)(api)
    bmc.systems = {"System.Embedded.1": told}
    ran = cycle()
    assert (ran.code, bmc.resets, api.leases) == (2, [], {})
    assert words in ran.message
    assert "Secret remediator-bmc-gpu-1 has the address of this node's BMC" in ran.message
    assert ran.message.endswith("look at the address, then set PARAMETERS.trustAddress")
    ran = cycle(**TRUSTED)
    assert (ran.code, bmc.resets, declared(api)) == (0, ["ForceOff", "On"], False), ran.out
    assert "its volumes were not given up: its BMC does not tell the UUID that gpu-1 has" in ran.message


def test_a_trusted_address_of_another_machine_is_refused_all_the_same(api, bmc, cycle):
    machine(ANOTHER)(api)
    ran = cycle(**TRUSTED)
    assert (ran.code, bmc.resets) == (2, [])
    assert "is that of another machine" in ran.message


def test_a_node_that_a_person_turns_on_while_its_lease_is_watched_is_not_declared_out_of_service(api, bmc, cycle):
    """Its BMC said Off before, and it boots by now: its volumes are about to be written to."""
    bmc.become("Off", "Off", 0)

    def turn_on(method, path):
        if path.endswith("/kube-node-lease/leases/gpu-1"):
            bmc.become("On", "On", 0)

    api.on_request = turn_on
    ran = cycle()
    assert (ran.code, bmc.resets, declared(api)) == (0, [], False), ran.out
    assert ran.message == "gpu-1 was off and is on again; its volumes were not given up: its power is On"


def test_a_bmc_that_does_not_answer_when_the_node_is_to_be_declared_declares_nothing(api, bmc, cycle):
    def stumble(method, path):
        if "volumeattachments" in path:
            bmc.fail_next = [503]

    api.on_request = stumble
    ran = cycle()
    assert (ran.code, bmc.power(), declared(api)) == (0, "On", False), ran.out
    assert "its volumes were not given up: its BMC does not say that it is off" in ran.message


def test_of_several_systems_the_one_with_the_nodes_uuid_is_meant_or_the_one_that_is_named(api, bmc, cycle):
    bmc.systems = {"HGX_Baseboard_0": "", "DGX": UUID}
    machine("")(api)
    ran = cycle(**TRUSTED)
    assert (ran.code, bmc.resets) == (2, [])
    assert "has several systems, name the node's as system in Secret remediator-bmc-gpu-1" in ran.message
    assert ran.message.endswith("HGX_Baseboard_0, DGX")
    cycle.entry(**bmc.entry(system="DGX"))
    assert cycle("--dry-run", **TRUSTED).code == 0
    assert cycle("--dry-run").code == 2, "the name of a system tells nothing of whose BMC it is"
    cycle.entry(**bmc.entry())
    machine(UUID)(api)
    assert cycle().code == 0
    assert {path for method, path in bmc.requests if method == "POST"} == {
        "/redfish/v1/Systems/DGX/Actions/ComputerSystem.Reset"
    }


@pytest.mark.parametrize("uuid", [UUID, UUID.upper(), OLD_ORDER])
def test_a_uuid_that_another_node_has_too_proves_nothing_and_the_power_is_cut_only_where_the_address_is_trusted(
    api, bmc, cycle, uuid
):
    cycle.entry(**bmc.entry(uuid=UUID))  # the same again: it tells nothing either
    others = [objects.node(f"gpu-{number}") for number in range(2, 130)]
    for other in others:
        other["status"]["nodeInfo"]["systemUUID"] = ANOTHER
    others[-1]["status"]["nodeInfo"]["systemUUID"] = uuid
    api.put(*others)
    ran = cycle()
    assert (ran.code, bmc.resets, api.leases) == (2, [], {})
    assert ran.message == (
        "refused: node gpu-129 has the same UUID as this one, so nobody can tell whether Secret "
        "remediator-bmc-gpu-1 has the address of this node's BMC: look at the address, then set PARAMETERS.trustAddress"
    )
    assert f"its UUID is {UUID}, that of the node and of gpu-129" in cycle("--dry-run", **TRUSTED).out
    ran = cycle(**TRUSTED)
    assert (ran.code, bmc.resets, declared(api)) == (0, ["ForceOff", "On"], False), ran.out
    assert "its volumes were not given up: node gpu-129 has the UUID of gpu-1, too" in ran.message


def test_the_bmc_of_another_machine_is_refused_also_where_two_nodes_have_one_uuid(api, bmc, cycle):
    machine(ANOTHER)(api)
    other = objects.node("gpu-2")
    other["status"]["nodeInfo"]["systemUUID"] = ANOTHER
    api.put(other)
    ran = cycle(**TRUSTED)
    assert (ran.code, bmc.resets) == (2, [])
    assert "is that of another machine" in ran.message


def test_where_the_nodes_cannot_be_listed_no_power_is_cut(api, bmc, cycle):
    api.faults.refuse(403, when=lambda asked: asked.path.partition("?")[0] == "/api/v1/nodes")
    ran = cycle(**TRUSTED)
    assert (ran.code, bmc.resets) == (1, [])
    assert "nodes cannot be listed, so nobody can tell whether one has the same UUID" in ran.message


def in_order(told):
    """The 16 bytes of the node's UUID as a BMC may send them."""
    bare = bytes.fromhex(UUID.replace("-", ""))
    return {"IPMI": bare[::-1], "RFC 4122": bare, "SMBIOS": bytes.fromhex(OLD_ORDER.replace("-", ""))}[told]


@pytest.mark.parametrize("told", ["IPMI", "RFC 4122", "SMBIOS"])
def test_by_ipmi_the_system_guid_is_that_of_the_node_in_each_order_that_bmcs_send_it(api, ipmi, cycle, told):
    ipmi.guid(in_order(told))
    ran = cycle()
    assert (ran.code, ipmi.power(), declared(api)) == (0, "on", True), ran.out


def test_by_ipmi_the_bmc_of_another_machine_is_refused(api, ipmi, cycle):
    machine(ANOTHER)(api)
    ran = cycle(**TRUSTED)
    assert (ran.code, ipmi.power(), api.leases) == (2, "on", {})
    assert "BMC 10.0.3.17 is that of another machine" in ran.message
    assert "off" not in [words[-1] for words, _ in ipmi.calls()]


@pytest.mark.parametrize("guid", [None, bytes(16), b"\xff" * 16, b"\x01" * 8])
def test_by_ipmi_a_bmc_that_tells_no_guid_cuts_no_power_unless_its_address_is_trusted(api, ipmi, cycle, guid):
    ipmi.guid(guid)
    ran = cycle()
    assert (ran.code, ipmi.power(), api.leases) == (2, "on", {})
    assert "BMC 10.0.3.17 tells no UUID" in ran.message
    assert "off" not in [words[-1] for words, _ in ipmi.calls()]
    ran = cycle(**TRUSTED)
    assert (ran.code, ipmi.power(), declared(api)) == (0, "on", False), ran.out


@pytest.mark.parametrize(
    ("uuid", "told"),
    [
        (UUID, True),
        (UUID.replace("-", ""), True),
        ("", False),
        ("4c4c4544", False),
        ("fe" * 16, False),
        (PRESET, False),
        ("00020003-0004-0005-0006-000700080009", False),
        ("09000800-0700-0600-0005-000400020003", False),
        ("12345678-1234-5678-90AB-CDDEEFAABBCC", False),
        ("78563412-3412-7856-90ab-cddeefaabbcc", False),
        ("07090201-0103-0301-0807-060504030201", False),
        ("01020907-0301-0103-0807-060504030201", False),
        ("8E275844-178F-44A8-ACEB-A7D7E5178C63", False),
        ("4458278e-8f17-a844-aceb-a7d7e5178c63", False),
        ("56F49712-FFFF-FFFF-FFFF-FFFFFFFFFFFF", False),
        ("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", False),
        ("00000000-0000-0000-0000-000000000000", False),
        ("00000000-0000-0000-0000-ac1f6b000001", True),
    ],
)
def test_a_uuid_is_32_digits_that_somebody_has_set(uuid, told):
    assert is_told(uuid) is told
    assert is_among(uuid, [uuid]) is told


def kubectl_list(*objects):
    """What kubectl prints for several objects, as the standard input of a program."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def piped(bmc, **entry):
    """Node and Secret of gpu-1."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in bmc.entry(**entry).items()}
    meta = {"name": "remediator-bmc-gpu-1", "namespace": "remediator-operations"}
    return objects.node(), {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


def check(cycle, text):
    """Run the program as a person does who has no case: (exit code, lines)."""
    ran = subprocess.run(
        [sys.executable, "-I", "-S", cycle.program.path, "--dry-run"],
        env={"PATH": os.environ["PATH"]},
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.returncode, ran.stdout.splitlines()


def test_a_person_looks_at_a_bmc_before_any_case_and_without_an_api_server(api, bmc, cycle):
    code, lines = check(cycle, kubectl_list(*piped(bmc)))
    where = f"https://{bmc.address}/redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset"
    assert (code, bmc.resets, bmc.power(), api.requests) == (0, [], "On", [])
    assert lines == [
        f"redfish at {bmc.address} let user remediator in",
        f"its UUID is {UUID}, that of the node",
        "the power is On",
        f'would POST {{"ResetType": "ForceOff"}} to {where}',
        "would wait for Off",
        f'would declare it out of service if volumes hang on it, and then POST {{"ResetType": "On"}} to {where}',
        "would power-cycle gpu-1",
    ]


def test_the_page_shows_what_a_person_sees(bmc, cycle):
    _, lines = check(cycle, kubectl_list(*piped(bmc)))
    page = (Path(__file__).parents[2] / "docs/operations.md").read_text()
    shown = "\n".join(lines).replace(bmc.address, "gpu-17-bmc.example.com:443")
    assert f"{shown}7\n" in page, "it is about gpu-17 there"


def test_what_is_shared_and_said_in_a_config_map_is_looked_at_too(bmc, cycle):
    node, secret = piped(bmc, username=None)
    shared = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "remediator-bmc"},
        "data": {"username": USER},
    }
    assert check(cycle, kubectl_list(node, secret))[0] == 2
    assert check(cycle, kubectl_list(node, secret, shared))[0] == 0


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda bmc: kubectl_list(piped(bmc)[0]), "Secret remediator-bmc-gpu-1 lacks address, username, password"),
        (
            lambda bmc: kubectl_list(piped(bmc)[1]),
            "standard input holds no Node that can be read: pipe in what `kubectl",
        ),
        (lambda bmc: "", "standard input holds no Node that can be read: pipe in what `kubectl"),
        (lambda bmc: kubectl_list(*piped(bmc, password="guess")), "does not let user remediator in"),
        (lambda bmc: kubectl_list(*piped(bmc, uuid=ANOTHER)), "is that of another machine"),
        (
            lambda bmc: kubectl_list(objects.node("gpu-2"), piped(bmc)[1]),
            "Secret remediator-bmc-gpu-1 is not Secret remediator-bmc-gpu-2",
        ),
    ],
)
def test_what_a_person_would_have_to_mend_is_refused_as_it_would_be_in_a_case(bmc, cycle, spoil, words):
    code, lines = check(cycle, spoil(bmc))
    assert (code, bmc.resets) == (2, [])
    assert words in lines[-1]
    assert PASSWORD not in "".join(lines)


def test_a_person_sees_a_state_in_between_and_does_not_wait_for_its_end(bmc, cycle):
    bmc.become("PoweringOff", "PoweringOff", 0)
    code, lines = check(cycle, kubectl_list(*piped(bmc)))
    assert (code, lines[2:]) == (0, ["the power is PoweringOff", "would wait until the power of gpu-1 is On or Off"])

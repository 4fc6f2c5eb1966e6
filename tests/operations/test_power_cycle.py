"""The power-cycle program against an API server and a BMC over HTTPS, and against a fake ipmitool."""

import base64
import os
import signal
import time

import pytest

from nodelib.bmc import entry as entries
from tests.harness.apiserver import NODE, OPERATION, change
from tests.harness.objects import BOOT, kubelet_lease
from tests.operations.cycle import TAINT, Cycle, volume
from tests.operations.fake_bmc import PASSWORD, USER, UUID, FakeIpmi, mounted

pytestmark = pytest.mark.sampled("power cycle")

LEASE = "remediator-operations/op-1"


@pytest.fixture
def api(api):
    """The API server, whose gpu-1 is not heard of any more."""
    api.ready("Unknown")
    return api


@pytest.fixture
def cycle(tmp_path, api, bmc):
    return Cycle(tmp_path, api, bmc)


def wait_for(what):
    until = time.monotonic() + 20
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_the_power_goes_and_comes_back_once_each(api, bmc, cycle):
    bmc.slow_off = bmc.slow_on = 0.5
    ran = cycle()
    assert (ran.code, ran.message) == (0, "power-cycled gpu-1"), ran.out
    assert bmc.resets == ["ForceOff", "On"]
    assert bmc.power() == "On"
    assert list(api.leases) == [LEASE]
    assert api.leases[LEASE]["metadata"]["ownerReferences"] == [
        {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeOperation", "name": "op-1", "uid": "op-uid"}
    ]


def test_the_node_stays_without_power_for_as_long_as_it_is_told(bmc, cycle):
    cycle(offSeconds=1.5)
    (_, off), (_, on) = bmc.log
    assert on - off >= 1.5


def test_a_second_start_of_an_attempt_takes_no_power_away(api, bmc, cycle):
    assert cycle().code == 0
    ran = cycle()
    assert (ran.code, ran.message) == (
        2,
        "refused: this attempt was started before, and the power of gpu-1 is On",
    )
    assert bmc.resets == ["ForceOff", "On"]


def test_two_starts_at_once_take_the_power_away_once(api, bmc, cycle):
    bmc.slow_off = 1.0
    starts = [cycle.start(), cycle.start()]
    codes = [start.wait(timeout=60) for start in starts]
    for start in starts:
        start.stdout.close()
    assert bmc.resets.count("ForceOff") == 1
    assert 0 in codes
    assert bmc.power() == "On"


def test_a_second_start_that_finds_the_node_off_turns_it_on_and_no_more(api, bmc, cycle):
    bmc.slow_off = 0.3
    first = cycle.start(offSeconds=60)
    wait_for(lambda: bmc.resets and bmc.power() == "Off")
    first.kill()
    cycle.program.finish(first)
    assert cycle().message == "gpu-1 was off and is on again"
    assert bmc.resets == ["ForceOff", "On"]


def test_told_to_stop_while_the_power_is_off_it_gives_it_back_first(bmc, cycle):
    first = cycle.start(offSeconds=60)
    wait_for(lambda: bmc.resets and bmc.power() == "Off")
    first.send_signal(signal.SIGTERM)
    ran = cycle.program.finish(first)
    assert (ran.code, bmc.resets, bmc.power()) == (0, ["ForceOff", "On"], "On"), ran.out


def test_a_lost_answer_to_taking_the_power_away_is_made_good_by_looking(bmc, cycle):
    bmc.lose_reply = {"ForceOff"}
    bmc.slow_off = 0.5
    ran = cycle()
    assert ran.code == 0, ran.out
    assert bmc.resets == ["ForceOff", "On"]


def test_a_lost_answer_to_giving_it_back_does_not_leave_the_node_off(bmc, cycle):
    bmc.lose_reply = {"On"}
    bmc.slow_on = 0.5
    assert cycle().code == 0
    assert bmc.resets == ["ForceOff", "On"]


def test_a_bmc_that_stumbles_while_the_power_is_off_is_asked_until_it_is_back(bmc, cycle):
    def stumble(method, path):
        if bmc.resets == ["ForceOff"] and not bmc.fail_next and len(bmc.requests) < 9:
            bmc.fail_next = [503]

    bmc.on_request = stumble
    assert cycle().code == 0
    assert bmc.power() == "On"


def test_power_that_does_not_go_is_a_failure_and_is_told_to_only_once(bmc, cycle):
    bmc.ignores = {"ForceOff"}
    ran = cycle(waitSeconds=1)
    assert (ran.code, bmc.resets) == (1, ["ForceOff"])
    assert ran.message.startswith("failed: the power was to go and is still there after 1 s")


def test_power_that_does_not_come_back_is_a_failure_that_says_so(bmc, cycle):
    bmc.ignores = {"On"}
    ran = cycle(waitSeconds=1)
    assert ran.code == 1
    assert ran.message.startswith("failed: the power was taken away and is not back after 1 s; look at its BMC")
    assert set(bmc.resets[1:]) == {"On"}


@pytest.mark.parametrize(
    ("allowed", "kind"),
    [(["ForceRestart", "PowerCycle", "ForceOff"], "PowerCycle"), (["On", "ForceRestart"], "ForceRestart")],
)
def test_a_bmc_that_cannot_do_off_and_on_is_told_what_it_can(bmc, cycle, allowed, kind):
    bmc.allowed = allowed
    ran = cycle()
    assert (ran.code, bmc.resets) == (0, [kind])
    assert ran.message == f"gpu-1 was told to {kind}; its next boot id tells whether it did"


def test_a_restart_whose_answer_was_lost_is_not_sent_again(bmc, cycle):
    bmc.allowed, bmc.lose_reply = ["ForceRestart"], {"ForceRestart"}
    ran = cycle()
    assert (ran.code, bmc.resets) == (0, ["ForceRestart"])
    assert "the answer was lost" in ran.message


def test_what_is_allowed_may_be_said_in_a_document_of_its_own(bmc, cycle):
    bmc.action_info, bmc.allowed = True, ["On", "ForceOff"]
    assert cycle().code == 0
    assert ("GET", "/redfish/v1/Systems/System.Embedded.1/ResetActionInfo") in bmc.requests


def test_a_bmc_that_allows_nothing_of_use_is_refused_with_what_it_allows(api, bmc, cycle):
    bmc.allowed = ["GracefulShutdown", "Nmi"]
    ran = cycle()
    assert (ran.code, bmc.resets, api.leases) == (2, [], {})
    assert "allows GracefulShutdown, Nmi and none of ForceOff+On" in ran.message


def test_a_reset_type_that_is_listed_and_not_supported_is_a_failure_with_the_bmcs_words(bmc, cycle):
    bmc.unsupported = {"ForceOff"}
    ran = cycle()
    assert (ran.code, bmc.resets) == (1, [])
    assert "The value ForceOff for the parameter ResetType is not supported." in ran.message


def test_a_wrong_password_is_tried_once_and_never_shown(api, bmc, cycle):
    cycle.entry(**bmc.entry(password="guess-0815"))
    ran = cycle()
    assert (ran.code, api.leases) == (2, {})
    assert "does not let user remediator in, mend Secret remediator-bmc-gpu-1" in ran.message
    assert "guess-0815" not in ran.out + ran.message
    assert [path for _, path in bmc.requests] == ["/redfish/v1/", "/redfish/v1/Systems"]


@pytest.mark.parametrize(("password", "statuses", "code"), [(PASSWORD, [400], 1), ("guess-0815", [], 2)])
def test_a_bmc_that_repeats_what_it_was_sent_shows_no_password(bmc, cycle, password, statuses, code):
    word = base64.b64encode(f"{USER}:{password}".encode()).decode()
    bmc.says, bmc.fail_next = f" You sent {password} as {word}.", statuses
    cycle.entry(**bmc.entry(password=password))
    ran = cycle()
    assert ran.code == code
    assert "You sent [password] as [password]." in ran.message
    assert [secret for secret in (password, word) if secret in ran.out + ran.message] == []


WORD = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def in_target(bmc, sent):
    bmc.target = sent
    return "the BMC gives no path for target of #ComputerSystem.Reset: '[password]'"


def in_names(bmc, sent):
    bmc.systems[sent] = UUID
    return "name the node's as system"


def in_a_link(bmc, sent):
    bmc.systems, read = {sent: UUID}, bmc.read
    bmc.read = lambda path: (404, {}) if sent in path else read(path)
    return "GET /redfish/v1/Systems/[password]"


@pytest.mark.parametrize("sent", [PASSWORD, WORD])
@pytest.mark.parametrize("repeat", [in_target, in_names, in_a_link])
def test_neither_does_one_that_repeats_it_in_names_and_links(bmc, cycle, sent, repeat):
    words = repeat(bmc, sent)
    cycle.entry(**bmc.entry())
    ran = cycle()
    assert words in ran.message
    assert sent not in ran.out + ran.message


def test_a_password_with_quotes_and_strokes_is_found_in_a_target(bmc, cycle):
    password = "can'ary\"pw\\1"
    bmc.target, bmc.password = f"x{password}", password
    cycle.entry(**bmc.entry(password=password))
    ran = cycle()
    assert "target of #ComputerSystem.Reset: 'x[password]'; power-cycle by hand" in ran.message


def test_a_certificate_that_nobody_vouches_for_is_refused_unless_the_entry_says_insecure(bmc, cycle):
    cycle.entry(**bmc.entry(**{"ca.crt": None}))
    ran = cycle()
    assert (ran.code, bmc.requests) == (2, [])
    assert "is not to be trusted (self-signed certificate): put its authority into ca.crt" in ran.message
    cycle.entry(**bmc.entry(**{"ca.crt": None}, insecure="true"))
    assert cycle().code == 0


def test_the_password_follows_no_link_to_another_host(bmc, cycle):
    bmc.target = "https://elsewhere.example/redfish/v1/reset"
    ran = cycle()
    assert (ran.code, bmc.resets) == (2, [])
    assert "gives no path for target of #ComputerSystem.Reset" in ran.message


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda api: api.ready("True"), "gpu-1 is Ready: reboot it, or set PARAMETERS.force"),
        (lambda api: api.ready(""), "gpu-1 has no Ready condition"),
        (change(NODE, "status", nodeInfo={"bootID": "b"}), f"boot id is b, not {BOOT}: it was rebooted"),
        (change(NODE, "spec", taints=[]), "node gpu-1 is not held by case case-1"),
        (change(NODE, "metadata", uid="another"), "is another one than was meant"),
        (change(OPERATION, "status", phase="Failed"), "operation op-1 has ended: Failed"),
    ],
)
@pytest.mark.parametrize("late", [False, True], ids=["at once", "while the Lease is watched"])
def test_it_refuses_to_touch_what_is_alive_or_not_its_own(api, bmc, cycle, spoil, words, late):
    def while_watching(method, path):
        if "kube-node-lease" in path:
            spoil(api)

    if late:
        api.on_request = while_watching
    else:
        spoil(api)
    ran = cycle()
    assert (ran.code, bmc.resets, api.leases) == (2, [], {})
    assert words in ran.message


def test_a_kubelet_that_still_renews_its_lease_is_alive_whatever_ready_says(api, bmc, cycle):
    seconds = iter(range(60))

    def renew(method, path):
        if "kube-node-lease" in path:
            api.put(kubelet_lease(next(seconds)))

    api.on_request = renew
    ran = cycle()
    assert (ran.code, bmc.resets) == (2, [])
    assert ran.message.startswith("refused: the kubelet of gpu-1 still renews its Lease, it is alive")


def test_a_lease_is_watched_for_as_long_as_it_is_good_for(api, cycle):
    api.put(kubelet_lease(lasts=1))
    began = time.monotonic()
    assert cycle().code == 0
    assert time.monotonic() - began >= 1.0


def test_a_kubelet_that_says_that_its_node_is_not_ready_need_not_fall_silent(api, bmc, cycle):
    api.ready("False")
    assert cycle().code == 0
    assert not [path for _, path, _ in api.requests if "kube-node-lease" in path]


def test_forced_it_cuts_a_node_that_is_alive(api, bmc, cycle):
    api.ready("True")
    assert cycle(force="true").code == 0
    assert bmc.resets == ["ForceOff", "On"]


def test_a_node_that_is_off_already_is_turned_on_and_no_more_once_its_kubelet_is_silent(api, bmc, cycle):
    bmc.become("Off", "Off", 0)
    assert cycle().message == "gpu-1 was off and is on again"
    assert (bmc.resets, list(api.leases)) == (["On"], [LEASE])


def test_a_node_that_the_bmc_says_is_off_and_whose_kubelet_renews_its_lease_is_left_alone(api, bmc, cycle):
    bmc.become("Off", "Off", 0)
    api.put(kubelet_lease(lasts=1))
    renewals = iter(range(1, 60))

    def renew(method, path):
        if path.endswith("/kube-node-lease/leases/gpu-1"):
            api.put(kubelet_lease(second=next(renewals), lasts=1))

    api.on_request = renew
    ran = cycle()
    assert (ran.code, bmc.resets) == (2, [])
    assert "still renews its Lease" in ran.message


@pytest.mark.parametrize("state", ["", "Paused", "Unknown"])
def test_a_power_state_that_is_neither_on_nor_off_is_refused(api, bmc, cycle, state):
    bmc.become(state, state, 0)
    ran = cycle()
    assert (ran.code, bmc.resets, api.leases) == (2, [], {})
    assert ran.message == f"refused: the power of gpu-1 is {state or 'not told'}: wait until it is On or Off"


def test_a_node_that_is_being_turned_off_is_waited_for_and_turned_on(bmc, cycle):
    bmc.become("PoweringOff", "Off", 2)
    assert cycle().message == "gpu-1 was off and is on again"
    assert bmc.resets == ["On"]


def test_a_node_that_is_being_turned_on_is_waited_for_and_not_turned_off_again(api, bmc, cycle):
    bmc.become("PoweringOn", "On", 2)
    ran = cycle()
    assert (ran.code, bmc.resets, api.leases) == (0, [], {}), ran.out
    assert ran.message == "gpu-1 was being turned on, and is on; its next boot id tells whether it runs"


@pytest.mark.parametrize("state", ["PoweringOn", "PoweringOff"])
def test_a_state_in_between_that_does_not_end_is_a_failure_that_may_be_tried_again(api, bmc, cycle, state):
    bmc.become(state, state, 0)
    ran = cycle(waitSeconds=1)
    assert (ran.code, bmc.resets, api.leases) == (1, [], {})
    assert ran.message == f"failed: the power is still {state} after 1 s; look at its BMC"


DECLARED = {"remediator.dev/out-of-service-boot": BOOT}


def test_where_volumes_hang_on_it_the_node_is_declared_out_of_service_while_it_is_off(api, bmc, cycle):
    api.put(volume("a"), volume("b"), volume("c", "gpu-2"))
    seen = []

    def detach(method, path):
        if method == "PATCH":
            seen.append((bmc.power(), list(bmc.resets)))
        if path.startswith("/apis/storage.k8s.io") and seen:
            for name in ("a", "b"):
                api.remove("volumeattachments.storage.k8s.io", "", name)

    api.on_request = detach
    ran = cycle()
    assert (ran.code, bmc.resets) == (0, ["ForceOff", "On"]), ran.out
    assert ran.message == "power-cycled gpu-1; gpu-1 was declared out of service: 2 volumes were attached"
    assert seen == [("Off", ["ForceOff"])]
    assert (api.node["spec"]["taints"][-1], api.node["metadata"]["annotations"]) == (TAINT, DECLARED)


def test_without_volumes_no_taint_is_set(api, cycle):
    before = api.node
    api.put(volume("c", "gpu-2"))
    assert cycle().message == "power-cycled gpu-1"
    assert api.node["spec"] == before["spec"]
    assert not [path for method, path in api.writes() if "/nodes/" in path]


def test_a_taint_out_of_service_that_a_user_has_set_stays_the_users(api, cycle):
    api.put(volume("a"))
    api.edit(NODE, lambda node: node["spec"]["taints"].append(TAINT))
    ran = cycle(detachSeconds=0)
    assert "gpu-1 was out of service already: 1 volumes were attached, 1 still are" in ran.message
    assert "remediator.dev/out-of-service-boot" not in api.node["metadata"].get("annotations", {})


@pytest.mark.parametrize(("path", "words"), [("volumeattachments", "cannot be listed"), ("/nodes/", "could not be")])
def test_trouble_with_volumes_keeps_no_node_without_power(api, bmc, cycle, path, words):
    api.put(volume("a"))
    api.faults.refuse(403, when=lambda asked: path in asked.path and (asked.method == "PATCH" or "volume" in path))
    ran = cycle()
    assert (ran.code, bmc.power()) == (0, "On"), ran.out
    assert "power-cycled gpu-1; its volumes were not given up: " in ran.message
    assert words in ran.message


def test_told_to_stop_while_volumes_are_waited_for_it_gives_the_power_back_first(api, bmc, cycle):
    api.put(volume("a"))
    first = cycle.start(detachSeconds=60)
    wait_for(lambda: [path for method, path in api.writes() if method == "PATCH"])
    first.send_signal(signal.SIGTERM)
    ran = cycle.program.finish(first)
    assert (ran.code, bmc.resets) == (0, ["ForceOff", "On"]), ran.out


def test_a_second_start_that_finds_the_node_off_sees_to_its_volumes_too(api, bmc, cycle):
    api.put(volume("a"))
    first = cycle.start(offSeconds=60)
    wait_for(lambda: bmc.resets and bmc.power() == "Off")
    first.kill()
    cycle.program.finish(first)
    assert cycle(detachSeconds=0).message.startswith("gpu-1 was off and is on again; gpu-1 was declared out of service")
    assert api.node["metadata"]["annotations"] == DECLARED


def test_the_lost_answer_to_our_own_lease_is_no_other_start(api, bmc, cycle):
    api.faults.lose(when=lambda asked: asked.method == "POST")
    assert cycle().code == 0
    assert bmc.resets == ["ForceOff", "On"]


def test_without_its_lease_nothing_is_done(api, bmc, cycle):
    api.faults.refuse(403, when=lambda asked: asked.method == "POST")
    ran = cycle()
    assert (ran.code, bmc.resets) == (1, [])
    assert ran.message.startswith("failed: Lease op-1 could not be created, so nothing was done")


def test_what_all_bmcs_share_is_said_once_and_a_node_may_say_otherwise(bmc, cycle):
    shared = bmc.entry(address="nobody.invalid")
    del shared["password"]
    cycle.shared(**shared)
    cycle.entry(address=bmc.address, password=PASSWORD)
    assert cycle().code == 0


def test_a_password_that_all_nodes_would_share_is_refused(bmc, cycle):
    cycle.shared(password=PASSWORD)
    ran = cycle()
    assert (ran.code, bmc.requests) == (2, [])
    assert "ConfigMap remediator-bmc holds a password: move it into Secret remediator-bmc-gpu-1" in ran.message


def test_the_nodes_name_fills_an_address_that_all_share(tmp_path):
    mounted(tmp_path / "shared", address="{node}-bmc.example", username="u")
    mounted(tmp_path / "node", password="p\n")
    entry = entries.read_entry(tmp_path, "gpu-1")
    assert (entry.host, entry.port, entry.protocol, entry.insecure) == ("gpu-1-bmc.example", 443, "redfish", False)
    assert (entry.username, entry.password, entry.secret) == ("u", "p", "Secret remediator-bmc-gpu-1")


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("10.0.0.5", ("10.0.0.5", 443)),
        ("https://bmc.example:8443/", ("bmc.example", 8443)),
        ("fd00::17", ("fd00::17", 443)),
        ("[fd00::17]", ("fd00::17", 443)),
        ("https://[fd00::17]:8443", ("fd00::17", 8443)),
    ],
)
def test_an_address_is_a_name_or_an_ip_of_either_kind(address, found):
    assert entries.split(address, 443, "Secret a") == found


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "Secret remediator-bmc-gpu-1 lacks address, username, password: add what is missing"),
        ({"address": "a", "user": "b"}, "unknown key user; known are address, username"),
        ({"address": "http://a", "username": "b", "password": "c"}, "would send the password in the clear"),
        ({"address": "a/b", "username": "b", "password": "c"}, "the address is not a host"),
        ({"address": f"u:{PASSWORD}@a", "username": "b", "password": "c"}, "the address is not a host"),
        ({"address": "a", "username": "b", "password": "c", "insecure": "yes"}, "insecure must be true or false"),
        ({"address": "a", "username": "b", "password": "c", "protocol": "ssh"}, "protocol must be redfish or ipmi"),
        ({"address": "a", "username": "b", "password": "c", "ca.crt": "x"}, "ca.crt of BMC a is no certificate"),
    ],
)
def test_an_entry_that_cannot_be_meant_is_refused_with_what_to_write(api, cycle, entry, words):
    cycle.entry(**entry)
    ran = cycle()
    assert (ran.code, api.leases) == (2, {})
    assert words in ran.message
    assert "Secret remediator-bmc-gpu-1" in ran.message
    assert PASSWORD not in ran.out + ran.message


def test_an_entry_that_cannot_be_read_is_refused_and_nothing_of_it_is_shown(cycle):
    (cycle.folder / "node" / "..2026" / "password").write_bytes(PASSWORD.encode() + b"\xff")
    ran = cycle()
    assert ran.code == 2
    assert "Secret remediator-bmc-gpu-1 cannot be read: UnicodeDecodeError" in ran.message
    assert PASSWORD not in ran.out


def test_a_dry_run_says_what_it_sees_and_would_send_and_sends_nothing(api, bmc, cycle):
    ran = cycle("--dry-run")
    where = f"https://{bmc.address}/redfish/v1/Systems/System.Embedded.1"
    assert (ran.code, ran.message, bmc.resets, api.writes()) == (0, "", [], [])
    assert ran.out.splitlines() == [
        f"redfish at {bmc.address} let user remediator in",
        f"its UUID is {UUID}, that of the node",
        "the power is On",
        "would create Lease op-1",
        f'would POST {{"ResetType": "ForceOff"}} to {where}/Actions/ComputerSystem.Reset',
        "would wait for Off",
        "would declare it out of service if volumes hang on it, and then "
        f'POST {{"ResetType": "On"}} to {where}/Actions/ComputerSystem.Reset',
        "would power-cycle gpu-1",
    ]


@pytest.fixture
def ipmi(tmp_path, cycle):
    """A fake ipmitool on the program's path, and an entry that asks for it."""
    fake = FakeIpmi(tmp_path)
    cycle.program.variables["PATH"] = f"{fake.bin}{os.pathsep}{os.environ['PATH']}"
    cycle.entry(address="[fd00::17]", username="remediator", password=PASSWORD, protocol="ipmi")
    return fake


def test_by_ipmi_the_power_goes_and_comes_back_and_the_password_is_no_argument(ipmi, cycle):
    ran = cycle()
    assert (ran.code, ran.message) == (0, "power-cycled gpu-1"), ran.out
    assert ipmi.power() == "on"
    calls = ipmi.calls()
    assert [words[-1] for words, _ in calls if words[-2] == "power" and words[-1] != "status"] == ["off", "on"]
    assert all(words[:8] == ["-I", "lanplus", "-H", "fd00::17", "-p", "623", "-U", "remediator"] for words, _ in calls)
    assert {password for _, password in calls} == {PASSWORD}
    assert not [words for words, _ in calls if PASSWORD in words]


def test_by_ipmi_a_wrong_password_is_refused_at_once(ipmi, cycle):
    cycle.entry(address="bmc", username="remediator", password="guess", protocol="ipmi")
    ran = cycle()
    assert (ran.code, len(ipmi.calls())) == (2, 1)
    assert "guess" not in ran.out + ran.message
    assert "does not let user remediator in" in ran.message


def test_an_image_without_ipmitool_says_so(ipmi, cycle):
    cycle.program.variables["PATH"] = ""
    ran = cycle()
    assert (ran.code, ran.message) == (
        2,
        "refused: this image has no ipmitool: use the BMC's Redfish, or an image with ipmitool",
    )

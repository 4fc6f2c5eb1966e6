"""network_link over nodes made of files, run after run: what a node had it must have, and flaps are counted."""

import json
import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.contract.npd import Verdict
from tests.detectors.conftest import DETECTORS
from tests.detectors.fixtures.network_link import BREAKS, DEAD, STALL, NetTree, seen_before
from tests.detectors.node import run_detector
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = Verdict.OK, Verdict.FAULT, Verdict.UNKNOWN
FINE = "every network link is in order"


def look(root, now, *options):
    folders = [f"--{name}={root / name}" for name in ("proc", "sys", "dev", "state")]
    ran = run_detector("network_link", *folders, f"--now={now}", *options)
    assert "Traceback" not in ran.err
    return ran.code, ran.line


class Node(NetTree):
    """A node and the detector that looks at it."""

    def look(self, now, *options):
        return look(self.root, now, *options)

    @property
    def memory(self):
        return json.loads((self.root / "state/network_link.json").read_text())


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_a_link_that_was_up_and_has_no_carrier_is_a_fault_after_four_minutes_and_none_once_it_is_back(node):
    assert node.look(1000) == (OK, FINE)
    node.set("eth0", "carrier", "0")
    assert node.look(1030) == (UNKNOWN, "eth0 has no carrier, not for long yet")
    assert node.look(1269)[0] == UNKNOWN
    assert node.look(1270) == (FAULT, "eth0 has no carrier")
    node.set("eth0", "flags", "0x1002")
    assert node.look(1300) == (FAULT, "eth0 is switched off"), "the same link, in other words"
    node.set("eth0", "flags", "0x1003")
    node.set("eth0", "carrier", "1")
    assert node.look(1330) == (OK, FINE)


def test_symbol_errors_in_three_runs_are_a_fault_until_an_hour_after_the_last(node):
    node.rdma("mlx5_0")
    said = []
    for run, count in enumerate((0, 9, 18, 28, 28, 40, 55, 55)):
        node.write("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", f"{count}\n")
        said.append(node.look(1000 + 60 * run))
    assert said == [(OK, FINE)] * 6 + [(FAULT, "mlx5_0/1 has symbol errors again and again")] * 2
    assert node.look(1360 + 3600) == (OK, FINE)


def test_symbols_that_come_with_a_link_that_goes_down_are_told_of_as_that(node):
    node.rdma("mlx5_0")
    for count in range(4):
        node.write("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", f"{count * 900}\n")
        node.write("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", f"{count}\n")
        said = node.look(1000 + 60 * count)
    assert said == (FAULT, "mlx5_0/1 goes down again and again")


@pytest.mark.parametrize("rate", ["", "fast", "Gb/sec (4X NDR)", "99999 Gb/sec (4X NDR)"])
def test_a_rate_that_makes_no_sense_is_not_judged(node, rate):
    node.rdma("mlx5_0")
    assert node.look(1000) == (OK, FINE)
    node.speed("mlx5_0", rate)
    assert node.look(1300) == (OK, FINE)


@pytest.mark.parametrize("text", ["mlx5_0", "=400", "mlx5_0=fast", "mlx5_0=-1"])
def test_a_declared_rate_that_is_none_is_refused_with_the_remedy(text):
    ran = run_detector("network_link", f"--rate={text}")
    assert (ran.code, "a pattern of RDMA devices and Gb/s" in ran.err) == (2, True)


def test_a_port_that_was_never_up_is_no_fault_unless_it_is_required(node):
    node.interface("eth7", "0000:66:00.0", carrier="0")
    node.rdma("mlx5_0")
    node.port("mlx5_0", "1: DOWN", "2: Polling")
    assert [node.look(now)[0] for now in (1000, 1300, 1600)] == [OK, OK, OK]
    assert node.look(1900, "--require=eth7", "--require=mlx5_0", "--require=eth0") == (
        FAULT,
        "eth7 has no carrier; mlx5_0/1 is not linked up",
    )


def test_what_is_virtual_is_no_concern(node):
    """Loopback, a VF that is down by design, the representor of one, and what has no device."""
    for name in ("eth5", "eth6"):
        node.interface(name, "0000:66:00.0")
    node.card("0000:66:00.1")
    node.interface("eth5v0", "0000:66:00.1")
    (node.card("0000:66:00.1") / "physfn").mkdir()
    node.interface("eth5_0", "0000:66:00.0")
    node.set("eth5_0", "phys_port_name", "pf0vf0")
    node.virtual("veth1234")
    node.interface("ib0", "0000:66:00.0")
    node.set("ib0", "type", "32")
    assert node.look(1000) == (OK, FINE)
    assert sorted(node.memory["devices"]) == ["eth0", "eth5", "eth6"]


def test_a_boot_in_between_forgets_what_was_up(node):
    node.look(1000)
    node.write("proc/sys/kernel/random/boot_id", "two\n")
    node.set("eth0", "carrier", "0")
    assert [node.look(now)[0] for now in (1030, 1330)] == [OK, OK]


@pytest.mark.parametrize("what", sorted(BREAKS))
def test_a_fault_survives_a_restart_of_whoever_runs_us_and_keeps_its_evidence(tmp_path, what):
    BREAKS[what](seen_before(tmp_path))
    for now in (910, 940, 1150):
        code, line = look(tmp_path, now)
    assert code == FAULT
    assert what in line
    path = tmp_path / "state/evidence/network_link.json"
    assert len(path.read_bytes()) < 1500
    assert json.loads(path.read_text())["devices"]["mlx5_0/1"] == "0000:d2:00.0"
    assert look(tmp_path, 1180) == (FAULT, line)


def test_an_interface_that_went_into_a_pod_or_got_another_name_is_no_fault_and_is_forgotten(node):
    node.interface("eth1", "0000:66:00.0")
    node.address("eth1", "10.7.7.7")
    node.look(1000)
    node.unplug("eth1", keep="driver")
    node.address("eth1", None)
    assert [node.look(now) for now in (1030, 1060, 1400)] == [(OK, FINE)] * 3
    assert not [key for key in node.memory["had"] if "eth1" in key]


def test_a_card_that_has_left_is_told_of_in_the_third_run_and_no_more_when_it_is_back(node):
    node.interface("eth1", "0000:66:00.0")
    node.look(1000)
    node.unplug("eth1", card="0000:66:00.0")
    assert [node.look(now)[0] for now in (1030, 1060)] == [UNKNOWN, UNKNOWN]
    assert node.look(1090) == (FAULT, "eth1 is gone: its card has left the bus")
    assert node.look(1120, "--ignore=eth1") == (OK, FINE)
    node.interface("eth1", "0000:66:00.0")
    assert node.look(1150) == (OK, FINE)


def test_a_card_that_a_plugin_attaches_and_detaches_can_be_left_out(node):
    node.interface("eth1", "0000:66:00.0")
    node.look(1000, "--ignore=eth[1-9]*")
    node.unplug("eth1", card="0000:66:00.0")
    assert [node.look(now, "--ignore=eth[1-9]*")[0] for now in (1030, 1060, 1090)] == [OK, OK, OK]


def test_three_flaps_in_twelve_hours_are_a_fault_until_an_hour_after_the_last(node):
    node.look(1000)
    for number, now in enumerate((2000, 20_000, 43_000)):
        node.set("eth0", "carrier_down_count", 2 + number)
        code, line = node.look(now)
        assert code == (FAULT if number == 2 else OK)
    assert line == "eth0 goes down again and again"
    assert node.look(43_000 + 3599)[0] == FAULT
    assert node.look(43_000 + 3600) == (OK, FINE)
    node.set("eth0", "carrier_down_count", 5)
    assert node.look(50_000)[0] == FAULT, "the first one is over twelve hours ago, the other three are not"


def test_three_flaps_that_are_spread_over_more_than_twelve_hours_are_none(node):
    node.look(1000)
    for number, now in enumerate((2000, 30_000, 2000 + 43_200)):
        node.set("eth0", "carrier_down_count", 2 + number)
        assert node.look(now)[0] == OK


def test_flaps_that_nobody_counts_are_seen_and_a_count_that_begins_anew_is_none(node):
    (node.sys / "class/net/eth0/carrier_down_count").unlink()
    for now in range(1000, 1300, 60):
        node.set("eth0", "carrier", "1")
        node.look(now)
        node.set("eth0", "carrier", "0")
        node.look(now + 30)
    assert node.look(1301)[1].startswith("eth0 goes down again and again")
    other = Node(node.root / "other")
    other.set("eth0", "carrier_down_count", 900)
    other.look(1000)
    other.set("eth0", "carrier_down_count", 0)
    assert other.look(1030) == (OK, FINE)
    other.set("eth0", "carrier_down_count", 2)
    assert other.look(1060) == (OK, FINE)


def test_what_happened_before_the_first_look_and_while_the_node_starts_does_not_count(node):
    node.set("eth0", "carrier_down_count", 70)
    assert node.look(100) == (OK, FINE)
    node.set("eth0", "carrier_down_count", 90)
    assert node.look(599) == (OK, FINE)
    node.set("eth0", "carrier_down_count", 92)
    assert node.look(600) == (OK, FINE)
    node.set("eth0", "carrier_down_count", 93)
    assert node.look(630)[0] == FAULT


def test_a_dead_card_stays_one_until_its_driver_says_that_it_has_recovered(node):
    node.log(DEAD)
    assert node.look(1000) == (FAULT, "card 0000:d2:00.0: its firmware does not answer")
    assert node.look(90_000)[0] == FAULT, "the line is read once, and remembered"
    node.log("mlx5_core 0000:aa:00.0: firmware version: 28.39.1002")
    assert node.look(90_030)[0] == FAULT, "that is another card"
    node.log("mlx5_core 0000:d2:00.0: mlx5_health_try_recover:342:(pid 7): health recovery succeeded")
    assert node.look(90_060) == (OK, FINE)


def test_a_card_that_was_mended_before_the_first_look_is_none(node):
    node.log(DEAD, "mlx5_core 0000:d2:00.0: firmware version: 28.39.1002")
    assert node.look(1000) == (OK, FINE)


def test_a_queue_that_stands_still_once_is_none(node):
    node.log(STALL, "mlx5_core 0000:65:00.0 ens15np0: TX timeout detected", STALL, at=900)
    node.log(STALL, at=905)
    assert node.look(1000) == (OK, FINE)
    node.log(STALL, at=1010)
    assert node.look(1030) == (FAULT, "ens15np0 stops sending again and again")


def test_without_a_kernel_log_nothing_is_healthy(node):
    (node.root / "dev/kmsg").unlink()
    code, line = node.look(1000)
    assert code == UNKNOWN
    assert "the kernel log cannot be opened" in line
    node.set("eth0", "carrier", "0")
    node.look(1030)
    assert node.look(1300) == (FAULT, "eth0 has no carrier")


def test_addresses_that_cannot_be_read_are_no_lost_ones(node):
    node.look(1000)
    (node.net / "route").unlink()
    for now in (1030, 1300, 1600):
        code, line = node.look(now)
        assert code == UNKNOWN
        assert line.startswith("addresses cannot be read: ")
    node.write_addresses()
    assert node.look(1630) == (OK, FINE)


def test_a_node_without_ipv6_is_fine(node):
    for name in ("if_inet6", "ipv6_route"):
        (node.net / name).unlink()
    assert [node.look(now) for now in (1000, 1300)] == [(OK, FINE)] * 2


def test_addresses_of_what_is_built_on_a_card_count_and_those_of_others_do_not(node):
    node.build_on("br0", "eth0")
    node.build_on("br0.100", "br0")
    node.virtual("cni0")
    node.address("br0.100", "10.5.0.1")
    node.address("cni0", "10.244.1.1")
    node.look(1000)
    node.address("cni0", None)
    assert [node.look(now)[0] for now in (1030, 1300)] == [OK, OK]
    node.address("br0.100", None)
    assert [node.look(now) for now in (1330, 1600)][1] == (FAULT, "br0.100 has no IPv4 address any more")


def test_one_of_two_interfaces_in_the_same_network_that_loses_its_address_is_seen(node):
    node.interface("eth1", "0000:66:00.0")
    node.address("eth1", "10.1.2.4")
    node.look(1000)
    node.address("eth1", None)
    assert [node.look(now) for now in (1030, 1300)][1] == (FAULT, "eth1 has no IPv4 address any more")


def test_a_roce_port_needs_its_interfaces_address_also_when_a_bond_has_it(tmp_path):
    node = Node(tmp_path)
    node.interface("eth3", "0000:d3:00.0")
    node.rdma("mlx5_1", "0000:d3:00.0", ethernet="eth3")
    assert [node.look(now) for now in (1000, 1300)] == [(OK, FINE)] * 2
    node.bond("bond1", "eth3")
    node.address("bond1", "10.9.8.7")
    lack = "mlx5_1/1 is ACTIVE but has no RoCE v2 address for the IPv4 one of its interface"
    assert [node.look(now) for now in (1330, 1600)][1] == (FAULT, lack)
    node.gid("mlx5_1", 3, "0000:0000:0000:0000:0000:ffff:0a09:0807", "RoCE v2", "bond1")
    assert node.look(1630) == (OK, FINE)


def test_a_counter_that_the_card_refuses_is_asked_for_once_in_a_boot(node):
    """The kernel answers EINVAL to whoever asks for the speed of the loopback."""
    path = node.sys / "class/net/eth0/carrier_down_count"
    path.unlink()
    path.symlink_to("/sys/class/net/lo/speed")
    node.look(1000)
    assert node.memory["refused"] == [str(path)]
    path.unlink()
    node.set("eth0", "carrier_down_count", 7)
    node.look(1030)
    assert node.memory["pasts"]["eth0"][1] is None, "it was not read again"


def test_another_network_than_the_nodes_is_cannot_tell(node):
    for who in ("self", "1"):
        (node.proc / who / "ns").mkdir(parents=True)
        (node.proc / who / "ns/net").symlink_to(f"net:[{who}]")
    code, line = node.look(1000)
    assert code == UNKNOWN
    assert "hostNetwork" in line


def test_explain_shows_ports_and_what_is_not_so_and_changes_nothing(node):
    node.interface("eth7", "0000:66:00.0", carrier="0")
    code, text = node.look(1000, "--explain")
    assert code == OK
    assert "eth0: up True, lack " in text
    assert "link eth7: eth7 has no carrier" in text
    assert not (node.root / "state").exists()


@settings(max_examples=examples(15), deadline=None)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.sampled_from(["eth0", "x", "0000:d2:00.0"]), one),
), st.sampled_from(["had", "devices", "pasts", "stalls", "dead", "lacking", "refused", "cursor"]))  # fmt: skip
def test_garbage_in_the_memory_is_overcome(tmp_path_factory, value, name):
    node = Node(tmp_path_factory.mktemp("garbage"))
    node.write("state/network_link.json", json.dumps({"boot_id": "one", name: value}))
    code, line = node.look(1000)
    assert "Error" not in line
    assert code == OK or name in ("had", "lacking", "dead", "stalls", "pasts"), "a memory that makes sense counts"


def test_a_node_of_eight_roce_cards_is_read_whole(tmp_path):
    node = Node(tmp_path)
    for index in range(8):
        card = f"0000:{index:02x}:00.0"
        node.interface(f"eth{index + 10}", card)
        node.rdma(f"mlx5_{index}", card, ethernet=f"eth{index + 10}")
        node.gid(f"mlx5_{index}", 3, "0000:0000:0000:0000:0000:ffff:0a09:0807", "RoCE v2", f"eth{index + 10}")
    assert node.look(1000) == (OK, FINE)
    assert len(node.memory["devices"]) == 17


# A network namespace of its own, with a carrier, addresses and routes of the real kernel.

SCRIPT = r"""
set -e
mount -t sysfs sysfs "$1/real"
ip link add veth0 type veth peer name veth1
ip addr add 10.1.2.3/24 dev veth0
ip addr add fd00::3/64 dev veth0 nodad
ip link set lo up
ip link set veth0 up
ip link set veth1 up
ip route add default via 10.1.2.1
ip -6 route add default via fd00::1
for file in type flags carrier carrier_down_count; do
    ln -s "$1/real/class/net/veth0/$file" "$1/sys/class/net/veth0/$file"
done
ln -s /proc/self/net "$1/proc/1/net"
look() { shift; "$detector" --proc="$1/proc" --sys="$1/sys" --dev="$1/dev" --state="$1/state" --now="$2" || true; }
look . "$1" 1000
ip addr flush dev veth0 scope global
look . "$1" 1030
look . "$1" 1300
ip addr add 10.1.2.4/24 dev veth0
ip addr add fd00::4/64 dev veth0 nodad
look . "$1" 1330
ip route add default via 10.1.2.1
look . "$1" 1360
ip link set veth1 down
look . "$1" 1390
look . "$1" 1700
ip link set veth0 down
look . "$1" 1730
"""


@pytest.mark.cluster
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"),
    reason="needs root, ip and unshare: it makes a network namespace of its own",
)
def test_the_real_kernels_carrier_addresses_and_routes_are_read(tmp_path):
    for folder in ("real", "proc/1", "proc/sys/kernel/random", "dev", "sys/class/net/veth0"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sys/devices/card/driver").mkdir(parents=True)
    (tmp_path / "sys/class/net/veth0/device").symlink_to(tmp_path / "sys/devices/card")
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("one\n")
    (tmp_path / "dev/kmsg").write_text("6,0,1,-;Linux\n")
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", SCRIPT, "sh", str(tmp_path)],
        env={**os.environ, "detector": str(DETECTORS / "network_link.py")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    gone = "the IPv4 default route is gone"  # with its source address; IPv6 keeps one that leads nowhere
    lost = [gone, "veth0 has no IPv4 address any more", "veth0 has no IPv6 address any more"]
    assert done.returncode == 0, done.stderr
    found = done.stdout.splitlines()
    assert found[0] == FINE, found
    assert found[1] == "; ".join(f"{one}, not for long yet" for one in lost)
    assert found[2] == "; ".join(lost)
    assert found[3] == gone
    assert found[4] == FINE
    assert found[5].startswith("veth0 has no carrier, not for long yet")
    assert "veth0 has no carrier" in found[6].split("; ")
    assert "veth0 is switched off" in found[7].split("; ")


def test_the_real_machine_is_read_without_a_doubt_about_its_links(tmp_path):
    command = [str(DETECTORS / "network_link.py"), f"--state={tmp_path}", "--explain"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (OK, UNKNOWN)
    assert "makes no sense" not in done.stdout

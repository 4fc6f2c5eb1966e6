"""What network_link reads, each view alone: /proc's addresses, the kernel's words, and garbage in all of them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodelib.kernel.kmsg import Line
from nodelib.kernel.nic_log import NOBODY, deaths, stalls
from nodelib.net.addresses import parse_fib_trie, parse_if_inet6, parse_ipv6_route, parse_route, read_addresses
from nodelib.net.flaps import PortPast, follow, recent, too_many
from nodelib.net.links import Port, read_counter, read_interfaces, whereabouts
from nodelib.net.rdma import read_ports
from tests.detectors.fixtures.network_link import FIB, NetTree

ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth1\t0000000A\t010200C0\t0003\t0\t0\t0\t000000FF\t0\t0\t0
eth2\t000000AC\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0
*\t000200C0\t00000000\t0200\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""
ADDRESS = 0xC0000202  # 192.0.2.2


def test_an_interface_has_an_address_when_its_own_network_holds_one_of_the_nodes():
    """eth1 reaches its network by a gateway, and in eth2's there is no address of ours."""
    assert parse_route(ROUTES, {ADDRESS, 0x0A000001}) == ({("eth0", "IPv4")}, True)
    assert parse_route(ROUTES, set()) == (set(), True)
    assert parse_route(ROUTES.splitlines()[0], set()) == (set(), False)


def test_loopback_and_link_local_addresses_are_none_of_the_nodes():
    rows = [("169.254.20.10", "/32 host LOCAL"), ("192.0.2.2", "/32 host LOCAL"), ("192.0.2.0", "/24 link UNICAST")]
    text = FIB + "".join(f"        |-- {address}\n           {row}\n" for address, row in rows)
    assert parse_fib_trie(text) == {ADDRESS}


INET6 = {
    "fd000000000000000000000000000002 04 40 00 82     eth0\n": {("eth0", "IPv6")},
    "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n": set(),
    "00000000000000000000000000000001 01 80 10 80       lo\n": set(),
    "fd000000000000000000000000000002 04 40 00 8a     eth0\n": set(),
}


@pytest.mark.parametrize(("text", "owners"), INET6.items())
def test_a_global_ipv6_address_that_is_no_duplicate_counts(text, owners):
    assert parse_if_inet6(text) == owners


def test_the_kernels_own_route_that_rejects_is_no_default_route():
    zeros = "0" * 32
    reject = f"{zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200       lo\n"
    assert not parse_ipv6_route(reject)
    assert parse_ipv6_route(
        reject + f"{zeros} 00 {zeros} 00 fe80{'0' * 28} 00000400 00000001 00000000 00000003     eth0\n"
    )


def test_the_real_proc_is_read():
    found = read_addresses(Path("/proc"))
    assert all(family in ("IPv4", "IPv6") for _, family in found.owners)


PARSERS = {
    "route": lambda text: parse_route(text, {ADDRESS}),
    "fib_trie": parse_fib_trie,
    "if_inet6": parse_if_inet6,
    "ipv6_route": parse_ipv6_route,
}


@given(st.sampled_from(sorted(PARSERS)), st.text(max_size=80).filter(str.strip))
def test_garbage_is_told_of_and_never_taken_for_no_address(name, text):
    with pytest.raises(ValueError):
        PARSERS[name](text)


@given(st.integers(1, len(ROUTES) - 1))
def test_routes_that_are_cut_in_a_line_make_no_sense_or_are_fewer(size):
    try:
        owners, _ = parse_route(ROUTES[:size], {ADDRESS})
    except ValueError:
        return
    assert owners <= {("eth0", "IPv4")}


# The kernel's words: each line as drivers print it.

DEATHS = {
    "mlx5_core 0000:03:00.0: wait_func:1195:(pid 1967079): ENABLE_HCA(0x104) timeout. Will cause a leak of a command "
    "resource": ("0000:03:00.0", "its firmware does not answer"),
    "mlx5_core 0000:d2:00.0: poll_health:825: device's health compromised - reached miss count.": (
        "0000:d2:00.0",
        "its firmware does not answer",
    ),
    "mlx5_core: INFO: synd 0x8: unrecoverable hardware error.": (NOBODY, "unrecoverable hardware error"),
    "mlx5_core 0000:d2:00.0: print_health_info:415:(pid 0): synd 0x8: unrecoverable hardware error": (
        "0000:d2:00.0",
        "unrecoverable hardware error",
    ),
}
STALLS = {
    "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 0 timed out": "eth0",
    "mlx5_core 0000:65:00.0 ens15np0: NETDEV WATCHDOG: CPU: 94: transmit queue 3 timed out 5032 ms": "ens15np0",
    "mlx5_core 0000:65:00.0 ens15np0: TX timeout detected": "ens15np0",
    "mlx5_core 0000:65:00.0 ens15np0: RX timeout on channel: 20, ICOSQ: 0x1ee0, RQ: 0x1e43, CQ: 0x3ea6": "ens15np0",
}
NOISE = [
    "mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W).",
    "mlx5_core 0000:41:00.1: Port module event: module 1, Cable unplugged",
    "mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 268269): ACCESS_REG(0x805) op_mod(0x1) failed, status bad "
    "resource(0x5), syndrome (0x305684), err(-22)",
    "mlx5_core 0000:9c:00.0 ens9f0np0: Link down",
    "ixgbe 0000:03:00.1 eth1: NIC Link is Down",
    "audit: someone wrote: synd 0x8: unrecoverable hardware error",
]
MENDS = [
    "mlx5_core {}: mlx5_health_try_recover:342:(pid 9): health recovery succeeded",
    "mlx5_core {}: mlx5_health_try_recover:342:(pid 9): health revovery succeded",
    "mlx5_core {}: firmware version: 28.39.1002",
]


@pytest.mark.parametrize(("text", "said"), DEATHS.items())
def test_a_line_means_a_dead_card(text, said):
    [(address, death)] = deaths({}, [Line(1, 5.0, text)]).items()
    assert (address, death.why) == said


@pytest.mark.parametrize(("text", "name"), STALLS.items())
def test_a_line_means_a_queue_that_stands_still(text, name):
    assert stalls([Line(1, 5.0, text), Line(2, 5.9, text), Line(3, 6.0, text)]) == {name: [5.0, 6.0]}
    assert deaths({}, [Line(1, 5.0, text)]) == {}


@pytest.mark.parametrize("text", NOISE)
def test_a_line_means_nothing(text):
    assert deaths({}, [Line(1, 5.0, text)]) == {}
    assert stalls([Line(1, 5.0, text)]) == {}


@pytest.mark.parametrize("mend", MENDS)
@pytest.mark.parametrize("death", DEATHS)
def test_a_later_line_mends_and_an_earlier_one_does_not(death, mend):
    address = DEATHS[death][0].replace(NOBODY, "0000:11:00.0")
    lines = [Line(1, 5.0, mend.format(address)), Line(2, 6.0, death), Line(3, 7.0, mend.format(address))]
    assert len(deaths({}, lines[:2])) == 1
    assert deaths({}, lines) == {}


# Ports, counters and flaps.


def port(up=True, downs=0):
    return Port(up, "", downs, "/sys/x")


@pytest.mark.parametrize(
    ("past", "now", "flaps"),
    [
        (PortPast(True, 3), port(True, 5), 2),
        (PortPast(True, 3), port(False, 4), 1),
        (PortPast(True, 3), port(False, 3), 1),
        (PortPast(True, 3), port(False, None), 1),
        (PortPast(False, 3), port(False, 3), 0),
        (PortPast(None, None), port(False, 900), 0),
        (PortPast(True, 9), port(True, 0), 0),
        (PortPast(True, 0), port(True, 500), 3),
        (PortPast(True, 3), port(None, None), 0),
    ],
)
def test_flaps_are_counted_and_never_made_up(past, now, flaps):
    assert len(follow({"eth0": past}, {"eth0": now}, 1000.0)["eth0"].downs_at) == flaps


def test_what_cannot_be_read_for_once_keeps_what_was_known():
    assert follow({"eth0": PortPast(True, 3, (5.0,))}, {"eth0": port(None, None)}, 1000.0) == {
        "eth0": PortPast(True, 3, (5.0,))
    }
    assert follow({"eth0": PortPast(True, 3, (5.0,))}, {}, 1000.0) == {"eth0": PortPast(True, 3, (5.0,))}


@given(st.lists(st.floats(0, 200_000), max_size=9), st.floats(0, 200_000))
def test_too_many_means_three_within_twelve_hours_and_one_within_the_last(times, now):
    past = sorted(one for one in times if one <= now)
    expected = len(past) >= 3 and past[-1] - past[-3] < 43_200 and now - past[-1] < 3600
    assert too_many(recent(times, now), now) == expected


@given(st.text(max_size=12), st.text(max_size=12))
def test_garbage_in_a_ports_files_is_never_taken_for_up(tmp_path_factory, flags, carrier):
    node = NetTree(tmp_path_factory.mktemp("ports"))
    node.set("eth0", "flags", flags)
    node.set("eth0", "carrier", carrier)
    node.rdma("mlx5_0")
    node.port("mlx5_0", flags, carrier)
    up = read_interfaces(node.sys, set())["eth0"].up
    assert up is not True or (carrier.strip() == "1" and int(flags, 16) & 1)
    assert read_ports(node.sys, set())["mlx5_0/1"].up is not True


@given(st.text(max_size=8))
def test_a_counter_is_a_number_or_nothing(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "counter"
    path.write_text(text)
    value = read_counter(path, set())
    assert value is None or str(value) == text.strip().lstrip("0") or not int(text)


def test_where_a_card_is_told_by_its_folder(tmp_path):
    assert whereabouts(str(tmp_path / "none")) == "gone"
    assert whereabouts(str(tmp_path)) == "driverless"
    (tmp_path / "driver").mkdir()
    assert whereabouts(str(tmp_path)) == "bound"

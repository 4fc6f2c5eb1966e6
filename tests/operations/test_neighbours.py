"""InfiniBand to neighbours: both ends in one process, with an ib_write_bw that says over TCP what is scripted."""

import os
import socket
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest

from nodelib.contract.operation import Refused
from nodelib.host import neighbours, port_relay, port_server
from nodelib.host.gpu_tools import Result
from nodelib.host.neighbours import Neighbour, NeighbourOrders, PortSpeed, judge, read_orders
from nodelib.host.port_server import Service, read_line, read_service, send_line, serve
from tests.operations.conftest import OPERATIONS

PROGRAM = str(OPERATIONS / "gpu_check.py")
HERE = "127.0.0.1"
IN_ITS_PLACE = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
# The two ends greet each other; the one that calls prints what perftest does.
TOOL = f"""#!{sys.executable} -IS
import pathlib, socket, sys
words = sys.argv[1:]
device, port = words[words.index("-d") + 1], int(words[words.index("-p") + 1])
if words[-1] == "{HERE}":
    with socket.create_connection(("{HERE}", port)) as other:
        other.sendall(b"a" * 100000)
        total = 0
        while total < 100000:
            total += len(other.recv(65536))
    print(" #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]")
    print(" 65536 5000 0.00 " + pathlib.Path(sys.argv[0] + "." + device).read_text() + " 0.74")
else:
    with socket.create_server(("{HERE}", port)) as listener:
        other, _ = listener.accept()
        while data := other.recv(65536):
            other.sendall(data)
"""


class Fabric:
    """A node with ports, which is its own neighbour: under several names, each with a TCP port of its own."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.sys = folder, folder / "sys"
        self.tools = folder / "tools"
        self.tools.mkdir()
        monkeypatch.setenv("PATH", f"{self.tools}{os.pathsep}{os.environ['PATH']}")
        for name in ("nsenter", "unshare"):
            self.tool(name, f"#!/bin/sh\n{IN_ITS_PLACE}\n")
        self.tool("ip", "#!/bin/sh\nexit 0\n")
        self.tool("ib_write_bw", TOOL)

    def tool(self, name, script):
        (self.tools / name).write_text(script)
        (self.tools / name).chmod(0o755)

    def port(self, device, reaches, state="4: ACTIVE", rate="400 Gb/sec (4X NDR)"):
        folder = self.sys / f"class/infiniband/{device}"
        (folder / "device").mkdir(parents=True)
        (folder / "ports/1").mkdir(parents=True)
        files = {"state": state, "phys_state": "5: LinkUp", "rate": rate, "link_layer": "InfiniBand"}
        for name, words in files.items():
            (folder / f"ports/1/{name}").write_text(f"{words}\n")
        (self.tools / f"ib_write_bw.{device}").write_text(reaches)

    def measure(self, *names, port, percent=50.0, token="uid-1"):
        orders = NeighbourOrders(tuple(Neighbour(name, HERE) for name in names), port, token, "")
        return neighbours.measure(orders, self.sys, percent, PROGRAM)


@pytest.fixture
def fabric(tmp_path, monkeypatch):
    monkeypatch.setattr(neighbours, "CALL_SECONDS", 0.5)
    return Fabric(tmp_path, monkeypatch)


def free_port():
    """A TCP port on which nobody listens."""
    with socket.create_server((HERE, 0)) as free:
        return free.getsockname()[1]


@contextmanager
def serving(fabric, client=HERE, token="uid-1", seconds=30.0, address=HERE, port=0):
    """Another end: its TCP port, and, once it has ended, its sentence or why it refused."""
    port, said = port or free_port(), []
    service = Service(address, port, client, token, seconds)
    server = threading.Thread(target=lambda: said.append(_sentence(fabric, service)))
    server.start()
    try:
        yield port, said
    finally:
        server.join(60)
        assert not server.is_alive()


def connected(port):
    """A connection with one that may only just have begun."""
    orders = NeighbourOrders((), port, "", "")
    return neighbours._call(Neighbour("gpu-2", HERE), orders, 10.0)


def _sentence(fabric, service):
    try:
        return serve(service, fabric.sys, PROGRAM)
    except Refused as refusal:
        return str(refusal)


def test_each_port_sends_to_the_port_of_the_same_name_and_the_other_end_goes_once_it_is_told(fabric):
    fabric.port("mlx5_0", "392.45")
    fabric.port("mlx5_1", "390.00")
    with serving(fabric) as (port, said):
        result = fabric.measure("gpu-2", port=port)
    assert result == Result("mlx5_0/1 to gpu-2 392 of 400 Gb/s, mlx5_1/1 to gpu-2 390 of 400 Gb/s")
    assert said == [f"measurements for {HERE}: 2"]


def test_a_port_that_is_slow_to_one_neighbour_alone_is_told_and_no_fault(fabric):
    fabric.port("mlx5_0", "120.00")
    with serving(fabric) as (port, _):
        result = fabric.measure("gpu-2", port=port)
    assert result == Result("mlx5_0/1 to gpu-2 120 of 400 Gb/s (cannot tell which of the two ports is slow)")


def test_a_neighbour_that_is_not_there_is_told_and_no_fault(fabric):
    fabric.port("mlx5_0", "392.45")
    fabric.port("mlx5_1", "392.45")
    began = time.monotonic()
    result = fabric.measure("gpu-2", port=free_port())
    refused = "not measured (Connection refused)"
    assert result == Result(f"mlx5_0/1 to gpu-2 {refused}, mlx5_1/1 to gpu-2 {refused}")
    assert time.monotonic() - began < 5.0, "one port is enough to see that nobody answers"


def test_a_port_that_its_neighbour_has_not_and_a_tool_that_fails_are_told_and_no_fault(fabric):
    fabric.port("mlx5_0", "392.45")
    with serving(fabric) as (port, _):
        (fabric.tools / "ib_write_bw.mlx5_0").unlink()
        result = fabric.measure("gpu-2", port=port)
    assert (result.wrong, result.text[:32]) == ("", "mlx5_0/1 to gpu-2 not measured (")
    with serving(fabric) as (port, _), connected(port) as asks:
        send_line(asks, token="uid-1", port="mlx5_7/1")
        assert read_line(asks, 10.0) == {"why": "its mlx5_7/1 is not up"}
        with socket.create_connection((HERE, port)) as ends:
            send_line(ends, token="uid-1", done=True)


def test_nobody_but_the_one_node_that_knows_the_token_is_answered(fabric):
    fabric.port("mlx5_0", "392.45")
    with serving(fabric, seconds=2.0) as (port, said):
        result = fabric.measure("gpu-2", port=port, token="uid-2")
    assert "not measured" in result.text
    assert result.wrong == ""
    assert said == [f"cannot tell: {HERE} has not said within 2 s that it is done"]
    with serving(fabric, client="10.0.0.9", seconds=2.0) as (port, said):
        result = fabric.measure("gpu-2", port=port)
    assert "not measured" in result.text
    assert "10.0.0.9 has not said" in said[0]


def test_a_line_that_never_ends_holds_nobody_up_for_long(fabric, monkeypatch):
    monkeypatch.setattr(port_server, "TOKEN_SECONDS", 0.2)
    fabric.port("mlx5_0", "392.45")
    with serving(fabric) as (port, said), connected(port) as slow:
        slow.sendall(b'{"token": "uid-1"')
        assert fabric.measure("gpu-2", port=port).text == "mlx5_0/1 to gpu-2 392 of 400 Gb/s"
    assert said == [f"measurements for {HERE}: 1"]


@contextmanager
def says(line):
    """A neighbour that answers each request with this line; its TCP port."""
    with socket.create_server((HERE, 0)) as listener:
        threading.Thread(target=_repeat, args=(listener, line), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _repeat(listener, line):
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection, suppress(OSError, ValueError):
                read_line(connection, 5.0)
                connection.sendall(line)


UNREADABLE = b"[" * 1020, b'{"why": ' + b"[" * 1000, b'{"rate": 1' + b"0" * 500 + b"}", b'{"rate": "fast"}', b"\xff"
RATES = b"NaN", b"Infinity", b"0", b"-5", b"10001", b"true", b"null"


@pytest.mark.parametrize("line", [*UNREADABLE, *(b'{"rate": ' + rate + b"}" for rate in RATES), b'{"why": [1]}'])
def test_whatever_one_neighbour_answers_is_told_and_no_fault(fabric, line):
    fabric.port("mlx5_0", "120.00")
    with says(line + b"\n") as port:
        result = fabric.measure("gpu-2", "gpu-3", port=port)
    unreadable = "not measured (its answer cannot be read)"
    assert result == Result(f"mlx5_0/1 to gpu-2 {unreadable}, mlx5_0/1 to gpu-3 {unreadable}")


def test_a_port_whose_own_rate_is_not_known_is_not_measured_by_either_end(fabric):
    fabric.port("mlx5_0", "120.00", rate="")
    with serving(fabric) as (port, _), connected(port) as asks:
        send_line(asks, token="uid-1", port="mlx5_0/1")
        assert read_line(asks, 10.0) == {"why": "the rate of its mlx5_0/1 is not known"}
        result = fabric.measure("gpu-2", port=port)
    assert result == Result("mlx5_0/1 to gpu-2 not measured (the rate of this port is not known)")


REQUESTS = (
    b"[" * 1020,
    b'{"token": "\\ud800"}',
    b'{"token": "\xff"}',
    b'{"token": ' + b"[" * 1000,
    b'{"token": ["uid-1"]}',
)


@pytest.mark.parametrize("line", [*REQUESTS, b'{"token": "uid-1", "port": ["mlx5_0/1"]}'])
def test_a_request_that_cannot_be_read_ends_its_connection_and_nothing_else(fabric, line):
    fabric.port("mlx5_0", "392.45")
    with serving(fabric) as (port, said):
        with connected(port) as asks:
            asks.sendall(line + b"\n")
            assert asks.recv(100) in (b"", b'{"why": "its  is not up"}\n')
        assert fabric.measure("gpu-2", port=port).text == "mlx5_0/1 to gpu-2 392 of 400 Gb/s"
    assert said == [f"measurements for {HERE}: 1"]


def test_five_that_say_nothing_keep_the_one_with_the_token_waiting_for_a_second_each(fabric):
    fabric.port("mlx5_0", "392.45")
    with serving(fabric) as (port, said), ExitStack() as silent:
        for _ in range(5):
            silent.enter_context(connected(port))
        result = fabric.measure("gpu-2", port=port)
    assert result.text == "mlx5_0/1 to gpu-2 392 of 400 Gb/s", "5 s each would be more than the 15 s that it waits"
    assert said == [f"measurements for {HERE}: 1"]


def test_what_cannot_be_tried_at_all_says_why(fabric):
    assert neighbours.measure(
        NeighbourOrders((), 0, "", "no idle node has rack=a"), fabric.sys, 50.0, PROGRAM
    ) == Result("not measured: no idle node has rack=a")
    with serving(fabric) as (port, said):
        assert fabric.measure("gpu-2", port=port).text == "not measured: no InfiniBand port is up"
    assert said == [f"measurements for {HERE}: 0"], "the neighbour is given back all the same"
    fabric.port("mlx5_0", "392.45")
    (fabric.tools / "ib_write_bw").unlink()
    with serving(fabric) as (port, _):
        assert fabric.measure("gpu-2", port=port).text == "not here"


def test_either_end_of_ib_write_bw_has_no_network_but_loopback(monkeypatch):
    """A network namespace that is made for it, and that it does not leave: nsenter --net leads back to the node's."""
    started = []
    monkeypatch.setattr(port_relay, "Command", lambda *asked, **more: started.append((asked, more)))
    ours, _theirs = socket.socketpair()
    with ours, _theirs:
        port_relay.start(PROGRAM, "listens", ours, "mlx5_0/1")
        inside = ("unshare", "--net", "--", sys.executable, "-I", "-S", PROGRAM)
        words = (*inside, "--relay", "listens", str(ours.fileno()), "mlx5_0", "1")
        assert started == [((words, ()), {"fds": (ours.fileno(),)})]
    assert port_relay.ON_NODE == ("nsenter", "--target", "1", "--mount", "--")


def test_of_what_a_neighbour_says_60_characters_are_shown_as_text(fabric, monkeypatch):
    fabric.port("mlx5_0", "392.45")
    monkeypatch.setattr(neighbours, "read_line", lambda *_: {"why": "\n" + "x" * 10_000})
    with socket.create_server((HERE, 0)) as silent:
        result = fabric.measure("gpu-2", port=silent.getsockname()[1])
    assert result == Result("mlx5_0/1 to gpu-2 not measured (\\n" + "x" * 59 + ")")


def test_an_address_that_is_not_the_nodes_is_refused_with_its_name(fabric):
    with pytest.raises(Refused, match=r"nothing can listen on 192\.0\.2\.1:18514"):
        serve(Service("192.0.2.1", 18514, HERE, "uid-1", 1.0), fabric.sys, PROGRAM)


def speed(neighbour, reached, possible=400.0, own=400.0, port="mlx5_0/1"):
    """What one port of 400 Gb/s has reached to one neighbour."""
    return PortSpeed(port, neighbour, reached, own, possible)


SLOW, OTHER_SLOW, FAST = speed("gpu-2", 120.0), speed("gpu-3", 130.0), speed("gpu-3", 390.0)
UNMEASURED = PortSpeed("mlx5_0/1", "gpu-3", None, why="it is not up")
TO_SLOWER = speed("gpu-2", 90.0, possible=100.0)
NO_RATE = speed("gpu-3", 90.0, possible=0.0), speed("gpu-2", 90.0, possible=-5.0)


@pytest.mark.parametrize(
    ("speeds", "wrong", "doubt"),
    [
        ([SLOW], "", "(cannot tell which of the two ports is slow)"),
        ([SLOW, UNMEASURED], "", "(cannot tell which of the two ports is slow)"),
        ([SLOW, FAST], "", "(look at gpu-2: the port is fast to another node)"),
        ([FAST], "", ""),
        ([TO_SLOWER], "", "90 of 100 Gb/s (cannot tell: that port is the slower one)"),
        ([TO_SLOWER, FAST], "", "(cannot tell: that port is the slower one)"),
        ([TO_SLOWER, OTHER_SLOW], "", "(cannot tell which of the two ports is slow)"),
        ([speed("gpu-2", 210.0, possible=210.0), OTHER_SLOW], "", "(look at gpu-3: the port is fast to another node)"),
        ([SLOW, *NO_RATE], "", "(cannot tell which of the two ports is slow)"),
        ([SLOW, OTHER_SLOW], "slow: mlx5_0/1 to gpu-2 120 of 400 Gb/s, mlx5_0/1 to gpu-3 130 of 400 Gb/s", ""),
    ],
)
def test_only_what_is_slow_to_two_neighbours_and_fast_to_none_is_wrong(speeds, wrong, doubt):
    result = judge(speeds, 50.0)
    assert (result.wrong, doubt in result.text) == (wrong, True), result
    assert "cannot tell" in doubt or "cannot tell" not in result.text
    assert judge(speeds, 0.0).wrong == "", "0 judges nothing"


def test_the_next_neighbour_is_asked_only_about_ports_that_the_first_leaves_open():
    late = PortSpeed("mlx5_2/1", "gpu-2", None, why="late")
    to_slower = speed("gpu-2", 90.0, possible=100.0, port="mlx5_3/1")
    speeds = [SLOW, speed("gpu-2", 390.0, port="mlx5_1/1"), late, to_slower]
    ports = ["mlx5_0/1", "mlx5_1/1", "mlx5_2/1", "mlx5_3/1"]
    assert neighbours.doubtful(ports, speeds, 50.0) == ["mlx5_0/1", "mlx5_2/1", "mlx5_3/1"]


@pytest.mark.parametrize("given", ["gpu-2", {"nodes": [{"name": "gpu-2"}]}, {"nodes": 3}, {"port": "x"}])
def test_orders_that_nobody_but_the_controller_could_mean_are_refused(given):
    with pytest.raises(Refused, match=r"PARAMETERS\.neighbours makes no sense"):
        read_orders(given)


SERVICE = {"address": HERE, "port": 1, "client": HERE, "token": "t", "seconds": 1}


BAD = ({"port": 70000}, {"token": ""}, {"seconds": -1})


@pytest.mark.parametrize("given", ["x", {}, *(SERVICE | bad for bad in BAD)])
def test_a_service_that_makes_no_sense_is_refused(given):
    assert read_service(SERVICE) == Service(HERE, 1, HERE, "t", 1.0)
    with pytest.raises(Refused, match=r"PARAMETERS\.serve"):
        read_service(given)

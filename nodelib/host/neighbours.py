"""How fast the InfiniBand ports of a node send to the ports of the same name of its neighbours: idle nodes beside it.

The controller chooses the neighbours, and a Pod on each of them is the other end (port_server). One of them alone never
fails a node: a port that is slow to one neighbour is tried with the next one, and only what is slow to two of them, and
fast to none, is wrong. All else is told.
"""

import json
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.operation import Refused
from nodelib.host.gpu_tools import HERE, Result
from nodelib.host.port_relay import CALLS, has_tool, start
from nodelib.host.port_server import read_line, read_rate, send_line
from nodelib.host.port_speed import AVERAGE, PAIR_SECONDS, infiniband
from nodelib.net.links import Port

MOST_SECONDS, CALL_SECONDS = 90.0, 10.0
ANSWER_SECONDS = 15.0  # somebody else's line, which is waited for, may come first
UNREADABLE = "its answer cannot be read"


class Neighbour(NamedTuple):
    """A node that has agreed to be the other end."""

    name: str
    address: str


class NeighbourOrders(NamedTuple):
    """Who is measured against. `why`: why nobody is."""

    neighbours: tuple[Neighbour, ...]
    port: int
    token: str
    why: str


class PortSpeed(NamedTuple):
    """What one port has reached to one neighbour, in Gb/s; None where that was not measured, and `why`.

    `own`: the rate of this port. `possible`: of the slower one of the two.
    """

    port: str
    neighbour: str
    reached: float | None
    own: float = 0.0
    possible: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        pair = f"{self.port} to {self.neighbour}"
        known = self.reached is not None
        return (
            f"{pair} {self.reached:.0f} of {self.possible:.0f} Gb/s" if known else f"{pair} not measured ({self.why})"
        )

    def at_least(self, percent: float) -> bool | None:
        """Whether it reaches so much of its own rate, or less of what is possible; None where nobody can tell.

        What a slower neighbour can take proves nothing of a faster port.
        """
        if self.reached is None or min(self.own, self.possible) <= 0:
            return None
        fast, slow = (self.reached >= rate * percent / 100 for rate in (self.own, self.possible))
        return True if fast else None if slow else False


def read_orders(orders: object) -> NeighbourOrders | None:
    """Return PARAMETERS.neighbours, None where nobody asks for it. Raises Refused for what makes no sense."""
    if orders is None:
        return None
    try:
        if not isinstance(orders, dict):
            raise TypeError("an object is expected")
        nodes = tuple(Neighbour(str(node["name"]), str(node["address"])) for node in orders.get("nodes", ()))
        token, why = str(orders.get("token", "")), str(orders.get("why", ""))
        return NeighbourOrders(nodes, int(orders.get("port", 0)), token, why)
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"PARAMETERS.neighbours makes no sense ({error!r}): only the controller writes it") from error


def measure(orders: NeighbourOrders, sys: Path, percent: float, program: str) -> Result:
    """Measure all ports against the first neighbour, and against the next one what that leaves open."""
    if not orders.neighbours:
        return Result(f"not measured: {orders.why or 'no neighbour'}")
    ports = dict(infiniband(sys))
    try:
        if not ports:
            return Result("not measured: no InfiniBand port is up")
        if not has_tool():
            return Result(HERE)
        return judge(_speeds(orders, ports, percent, program), percent)
    finally:
        for neighbour in orders.neighbours:
            with suppress(OSError), _call(neighbour, orders, CALL_SECONDS) as connection:
                send_line(connection, token=orders.token, done=True)


def _speeds(orders: NeighbourOrders, ports: Mapping[str, Port], percent: float, program: str) -> list[PortSpeed]:
    until = time.monotonic() + MOST_SECONDS
    speeds: list[PortSpeed] = []
    for neighbour in orders.neighbours:
        lost = ""
        for name in doubtful(ports, speeds, percent):
            why = lost or ("no time is left" if time.monotonic() > until else "")
            try:
                unmeasured = PortSpeed(name, neighbour.name, None, why=why)
                speeds.append(unmeasured if why else _ask(neighbour, orders, name, ports[name].rate, program))
            except OSError as error:
                lost = _short(error.strerror or error)
                speeds.append(PortSpeed(name, neighbour.name, None, why=lost))
    return speeds


def doubtful(ports: Iterable[str], speeds: Sequence[PortSpeed], percent: float) -> list[str]:
    """Return the ports that have reached enough to no neighbour yet."""
    fast = {speed.port for speed in speeds if speed.at_least(percent)}
    return sorted(set(ports) - fast)


def _call(neighbour: Neighbour, orders: NeighbourOrders, seconds: float) -> socket.socket:
    """Return a connection with a neighbour, whose program may only just have begun. Raises OSError."""
    until = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection((neighbour.address, orders.port), 3.0)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def _ask(neighbour: Neighbour, orders: NeighbourOrders, name: str, rate: float, program: str) -> PortSpeed:
    """Measure one port against one neighbour. Raises OSError where that cannot be talked to."""
    own = read_rate(rate)
    if own is None:
        return PortSpeed(name, neighbour.name, None, why="the rate of this port is not known")
    try:
        with _call(neighbour, orders, CALL_SECONDS) as connection:
            send_line(connection, token=orders.token, port=name)
            answer = read_line(connection, ANSWER_SECONDS)
            other = read_rate(answer.get("rate"))
            if other is None:
                return PortSpeed(name, neighbour.name, None, why=_why(answer))
            output = start(program, CALLS, connection, name).told(time.monotonic() + PAIR_SECONDS)
    except ValueError:
        return PortSpeed(name, neighbour.name, None, why=UNREADABLE)
    averages = AVERAGE.findall(output.text) if output.code == 0 else []
    if not averages:
        return PortSpeed(name, neighbour.name, None, why=_short(output.last))
    return PortSpeed(name, neighbour.name, float(averages[-1]), own, min(own, other))


def _why(answer: Mapping[str, object]) -> str:
    """Why it offers no rate, in its words if they are some."""
    why = answer.get("why")
    return _short(why) if isinstance(why, str) and "rate" not in answer else UNREADABLE


def _short(words: object) -> str:
    """What another node says, as far as it is shown."""
    return json.dumps(str(words)[:60])[1:-1]


def judge(speeds: Sequence[PortSpeed], percent: float) -> Result:
    """Return what was measured. Only a port that is slow to two neighbours, and fast to none, is wrong. Pure.

    >>> judge([PortSpeed("mlx5_0/1", "gpu-2", 100.0, 400.0, 400.0)], 50).text
    'mlx5_0/1 to gpu-2 100 of 400 Gb/s (cannot tell which of the two ports is slow)'
    """
    slow = [speed for speed in speeds if speed.at_least(percent) is False]
    fast = {speed.port for speed in speeds if speed.at_least(percent)}
    twice = {speed.port for speed in slow if sum(each.port == speed.port for each in slow) > 1} - fast
    wrong = [str(speed) for speed in slow if speed.port in twice]
    first = sorted(speeds, key=lambda speed: speed not in slow)  # a long text may be cut
    texts = [f"{speed}{_doubt(speed, percent, fast, twice)}" for speed in first]
    return Result(", ".join(texts), f"slow: {', '.join(wrong)}" if wrong else "")


def _doubt(speed: PortSpeed, percent: float, fast: set[str], wrong: set[str]) -> str:
    enough = speed.at_least(percent)
    if speed.reached is not None and enough is None:
        return " (cannot tell: that port is the slower one)"
    if enough is not False or speed.port in wrong:
        return ""
    if speed.port in fast:
        return f" (look at {speed.neighbour}: the port is fast to another node)"
    return " (cannot tell which of the two ports is slow)"

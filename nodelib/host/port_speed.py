"""How fast the InfiniBand ports of one node send to each other, by ib_write_bw of perftest, where the node has it.

Each port sends to the next one, and the last to the first, over its cable and the switches: no other node takes part.
Both ends of a measurement agree over TCP. For that they have a network of their own, which nobody else reaches.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nodelib.host.commands import CommandOutput, run
from nodelib.host.gpu_tools import HERE, Result
from nodelib.net.links import Port, text
from nodelib.net.rdma import read_ports

PAIR_SECONDS = 30.0
NAME = re.compile(r"([A-Za-z0-9_.-]+)/([0-9]+)")
AVERAGE = re.compile(r"^ *[0-9]+ +[0-9]+ +[0-9.]+ +([0-9.]+) +[0-9.]+ *$", re.MULTILINE)  # the table's fourth column
# $1 and $2: what the end that receives is told, and the one that sends. The first listens soon after its start.
MEASURE = """ip link set lo up || exit 9
ib_write_bw $1 >/dev/null 2>&1 & trap "kill $! 2>/dev/null" EXIT
for try in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3; ib_write_bw $2 127.0.0.1 && exit; done
exit 1"""

Pair = tuple[str, str]


def port_speeds(sys: Path, percent: float) -> Result:
    """Let each port that is up send to the next one. What reaches less than `percent` of their rate is wrong."""
    ports = dict(infiniband(sys))
    if len(ports) < 2:
        return Result("fewer than two ports are up, so none is tried")
    if run(("sh", "-c", "command -v ib_write_bw"), 5.0).code != 0:
        return Result(HERE)
    return judge([(pair, run(command(pair), PAIR_SECONDS)) for pair in ring(sorted(ports))], ports, percent)


def infiniband(sys: Path) -> Iterator[tuple[str, Port]]:
    """Yield the InfiniBand ports that are up, each with its name, DEVICE/NUMBER."""
    for name, port in read_ports(sys, set()).items():
        parts = NAME.fullmatch(name)
        if port.up and parts and text(sys / f"class/infiniband/{parts[1]}/ports/{parts[2]}/link_layer") == "InfiniBand":
            yield name, port


def ring(names: Sequence[str]) -> list[Pair]:
    """Return who sends to whom, so that each of them does both.

    >>> ring(["a/1", "b/1", "c/1"])
    [('a/1', 'b/1'), ('b/1', 'c/1'), ('c/1', 'a/1')]
    """
    return list(zip(names, [*names[1:], *names[:1]], strict=True))


def command(pair: Pair) -> tuple[str, ...]:
    """Return the words of one measurement, of two seconds."""
    sends, receives = (_told(name) for name in pair)
    return ("unshare", "--net", "--", "sh", "-c", MEASURE, "sh", receives, sends)


def _told(name: str) -> str:
    device, _, number = name.partition("/")
    return f"-d {device} -i {number} -D 2 -F --report_gbits"


def judge(answers: Sequence[tuple[Pair, CommandOutput]], ports: Mapping[str, Port], percent: float) -> Result:
    """Return what was measured. A pair that cannot be measured is told, and no fault. Pure."""
    lines, slow = [], []
    for (sends, receives), answer in answers:
        averages = AVERAGE.findall(answer.text) if answer.code == 0 else []
        possible = min(ports[sends].rate, ports[receives].rate)
        measured = f"{float(averages[-1]):.0f} of {possible:.0f} Gb/s" if averages else ""
        lines.append(f"{sends} to {receives} {measured or f'cannot be measured ({answer.last[:60]})'}")
        slow += [lines[-1]] if averages and float(averages[-1]) < possible * percent / 100 else []
    return Result(", ".join(lines), f"slow: {', '.join(slow)}" if slow else "")

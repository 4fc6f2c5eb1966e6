#!/usr/bin/env -S python3 -I -S -B
"""Condition NetworkLinkFault: a network card or link of this node is broken, or has lost what it needs to be used.

Watched are physical Ethernet interfaces and the ports of RDMA devices (InfiniBand, RoCE); virtual functions and what
has no device behind it are not. A node must have what it once had in this boot: a port that was never up (no cable) is
no fault unless --require names it. DEVICE/PORT is a port of an RDMA device. Faults:

  has no carrier, is switched off,         for four minutes. Remedy: where many nodes report it, the switch; else reseat
  is not linked up, is DOWN / INIT ...     or replace cable and transceiver; INIT: the subnet manager is missing
  goes down again and again                three times in 12 hours; until an hour after the last time. Remedy: the same
  stops sending again and again            the same, by the driver's own timer. Remedy: reboot; then replace the card
  runs at ..., not at ...                  an RDMA port, for four minutes, below its best rate in this boot or --rate:
                                           lanes or a generation are missing. Remedy: reseat cable and transceiver
  has symbol errors again and again        three times in 12 hours 10 or more; until an hour after the last. Remedy: the
                                           same, before the link goes down
  is gone: its card has left the bus       in three runs. Remedy: power-cycle, then reseat or replace the card
  is gone: its card has lost its driver    in three runs. Remedy: reload the driver, or reboot
  card ...: its firmware does not answer   the driver's word in the kernel log (mlx5), until the card recovers or its
  card ...: unrecoverable hardware error   driver is loaded again. Remedy: power-cycle, then replace the card
  has no IPv4 / IPv6 address any more,     for four minutes, and the interface is there. Remedy: the node's network
  the ... default route is gone            service (`networkctl`, `nmcli`), then restart-cni, then reboot
  has lost its slave                       a bond, for four minutes. Remedy: `ip link set SLAVE master BOND`
  ACTIVE but has no RoCE v2 address        for four minutes: NCCL finds no GID. Remedy: the address of its interface

An interface that disappears while its card keeps its driver was renamed or given to a Pod. Where a network plugin
attaches and detaches whole cards, leave those out with --ignore. After a change by hand that is meant to stay, delete
<state>/network_link.json: it holds what the node had. In the first ten minutes after boot links may go up and down.
"hostNetwork" in the line: run node-problem-detector in the network of the node.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import re
from collections.abc import Mapping, Set
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, main, parser
from nodelib.contract.memory import Scope
from nodelib.contract.npd import Verdict
from nodelib.kernel import kmsg
from nodelib.kernel.nic_log import NOBODY, Death, deaths, stalls
from nodelib.net.addresses import Addresses, read_addresses
from nodelib.net.expected import Fact, NetworkReadings, facts, judge_facts, lacking, learn
from nodelib.net.flaps import PortPast, follow, recent, too_many
from nodelib.net.links import Port, read_interfaces, read_slaves, uppers, whereabouts
from nodelib.net.probe_result import ProbeReply, in_the_nodes_network
from nodelib.net.rdma import read_gids, read_ports
from nodelib.state.debounce import Streak, stand


class Memory(NamedTuple):
    """What is known of this boot by now.

    `had`: keys of facts that held; `devices`: of ports, by name; `stalls`: when an interface stopped sending; `dead`:
    cards by PCI address; `lacking`: since when; `refused`: counters that are not to be read again.
    """

    had: Set[str] = frozenset()
    devices: Mapping[str, str] = {}
    pasts: Mapping[str, PortPast] = {}
    stalls: Mapping[str, tuple[float, ...]] = {}
    dead: Mapping[str, Death] = {}
    lacking: Mapping[str, Streak] = {}
    refused: Set[str] = frozenset()
    cursor: int | None = None


def judge(known_facts: Mapping[str, Fact], known: Memory, why: str, now: float) -> tuple[Verdict, str]:
    """Turn facts and what is known into a verdict and its line; `why`: why the kernel log cannot be read, or ""."""
    texts = judge_facts(known_facts, known.had, known.lacking, now)
    if why:
        texts[why] = Verdict.UNKNOWN
    for name, past in known.pasts.items():
        if too_many(past.downs_at, now):
            texts[f"{name} goes down again and again"] = Verdict.FAULT
        if too_many(past.errors_at, now):
            texts[f"{name} has symbol errors again and again"] = Verdict.FAULT
    for name, times in known.stalls.items():
        if too_many(times, now):
            texts[f"{name} stops sending again and again"] = Verdict.FAULT
    for address, death in known.dead.items():
        card = "an mlx5 card" if address == NOBODY else f"card {address}"
        texts[f"{card}: {death.why}"] = Verdict.FAULT
    cards = any(key.startswith("card ") for key in known_facts)
    return conclude(texts, "every network link is in order" if cards else "no physical network card")


def look(options: argparse.Namespace, known: Memory, refused: set[str]) -> NetworkReadings:
    """Read all views. Raises OSError where there is no list of interfaces. `refused` grows."""
    ports = {
        name: port
        for name, port in {
            **read_interfaces(options.sys, refused),
            **read_ports(options.sys, refused),
        }.items()
        if not ignored(name, options)
    }
    built = uppers(options.sys, [name for name in ports if "/" not in name])
    lost = {name: whereabouts(device) for name, device in known.devices.items() if name not in ports}
    return NetworkReadings(
        ports=ports,
        uppers=built,
        slaves=read_slaves(options.sys, built),
        addresses=addresses(options.proc),
        gids={name: gids for name, gids in read_gids(options.sys).items() if name in ports},
        devices={name: where for name, where in lost.items() if not ignored(name, options)},
    )


def ignored(name: str, options: argparse.Namespace) -> bool:
    """Tell whether an operator left out this interface, port or device."""
    return any(fnmatchcase(one, pattern) for pattern in options.ignore for one in (name, name.partition("/")[0]))


def addresses(proc: Path) -> Addresses | str:
    """Return the node's addresses, or why they cannot be read."""
    try:
        return read_addresses(proc)
    except (OSError, ValueError) as error:
        return str(error)


def update(known: Memory, seen: NetworkReadings, known_facts: Mapping[str, Fact], log: kmsg.Log, now: float) -> Memory:
    """Return what is known after this run."""
    stalled = {name: [*times] for name, times in known.stalls.items()}
    for name, times in stalls(log.lines).items():
        stalled.setdefault(name, []).extend(min(time, now) for time in times)  # clocks drift
    return Memory(
        had=learn(known_facts, known.had, seen),
        devices={
            **{name: path for name, path in known.devices.items() if seen.devices.get(name) in ("gone", "driverless")},
            **{name: port.device for name, port in seen.ports.items()},
        },
        pasts=follow(known.pasts, seen.ports, now),
        stalls={name: recent(times, now) for name, times in stalled.items() if recent(times, now)},
        dead=deaths(known.dead, log.lines),
        lacking=stand(lacking(known_facts), known.lacking, now),
        refused=known.refused,
        cursor=log.cursor,
    )


def evidence(seen: NetworkReadings, known_facts: Mapping[str, Fact], known: Memory) -> dict[str, Any]:
    """Return what is lacking, the cards' places on the bus and the kernel's words; bounded, lest it be cut."""
    return {
        "lacking": [
            known_facts[key].lack
            for key in sorted(lacking(known_facts))
            if key in known.had or known_facts[key].required
        ][:6],
        "devices": {name: Path(path).name for name, path in [*sorted(known.devices.items())][:16]},
        "speeds": {name: port.speed for name, port in [*seen.ports.items()][:16] if port.speed},
        "downs": {name: port.downs for name, port in [*seen.ports.items()][:16] if port.downs},
        "kernel": [death.line for _, death in sorted(known.dead.items())][:2],
    }


def check(run: Run[Memory]) -> Findings:
    """One run: look, remember, judge."""
    options = run.options
    elsewhere = in_the_nodes_network(ProbeReply("silent"), options.proc).why
    if elsewhere:
        return Findings(Verdict.UNKNOWN, f"network cards: {elsewhere}")
    last, refused = run.last, {*run.last.refused}
    seen, log = look(options, last, refused), kmsg.read_new(options.dev, last.cursor)
    known_facts = facts(seen, options.require, last.had, options.rate)
    known = update(last, seen, known_facts, log, run.now)._replace(refused=refused)
    verdict, line = judge(known_facts, known, log.why, run.now)
    lacks = {key: fact.lack for key, fact in known_facts.items() if not fact.holds}
    return Findings(
        verdict,
        line,
        known,
        evidence=lambda: evidence(seen, known_facts, known),
        explain=lambda: explain(views(seen, known), lacks, verdict),
    )


KEPT = {  # what the memory holds → how --explain calls it
    "had": "worked in this boot",
    "devices": "devices of ports",
    "pasts": "ports in the last run",
    "stalls": "stalls of sending",
    "dead": "dead cards",
    "lacking": "missing since",
    "refused": "counters that cannot be read",
    "cursor": "last record of the log",
}


def views(seen: NetworkReadings, known: Memory) -> dict[str, Any]:
    """Return what was read and what is known, a line for each port."""
    ports: Mapping[str, Port] = seen.ports
    kept = {words: getattr(known, name) for name, words in KEPT.items()}
    return {**ports, **seen._replace(ports={})._asdict(), **kept}


def declared_rate(text: str) -> tuple[str, float]:
    """Return what --rate is given. Raises ArgumentTypeError."""
    pattern, _, rate = text.partition("=")
    if pattern and re.fullmatch(r"[0-9]{1,4}(\.[0-9])?", rate):
        return pattern, float(rate)
    raise argparse.ArgumentTypeError(
        f"{text!r} is not PATTERN=N: a pattern of RDMA devices and Gb/s, such as mlx5_*=400"
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="NAME",
        help="an interface, RDMA device or DEVICE/PORT that must be up from boot on; may be given many times",
    )
    options.add_argument(
        "--rate",
        type=declared_rate,
        action="append",
        default=[],
        metavar="PATTERN=N",
        help="Gb/s that RDMA devices or ports must run at, such as 'mlx5_*=400'; may be given many times",
    )
    options.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="PATTERN",
        help="interfaces and RDMA devices to leave out, such as 'eth[1-9]*'; may be given many times",
    )
    return options.parse_args(arguments)


DETECTOR = Detector("network_link", "NetworkLinkFault", check, Memory, Scope.KNOWN_BOOT)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)

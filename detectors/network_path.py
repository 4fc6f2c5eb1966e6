#!/usr/bin/env -S python3 -I -S -B
"""Condition NetworkPathSlow: targets that an operator names answer this node too slowly, or its network is congested.

Each target is given with the milliseconds that it may take (--target 10.0.0.5:443=2, up to eight). It is asked for
three connections over TCP, and the time of the middle one counts, as the kernel has measured it. With --most the node's
own counters have limits, too, each a second and of each device: discards (rx_discards_phy), pauses (PFC, both ways),
cnps (ECN of RoCE, both ways), retransmits (TCP, of the whole node). Nothing has a limit that nobody has given.

A fault is a target or a sign above its limit in three looks in a row; it is over after three looks in a row below it.
Told as "cannot tell": a target that does not answer. Where others answer that is the target's own affair; where none
answers nobody knows how long they would take (DnsUnavailable, NetworkLinkFault and the kubelet tell of a network that
is gone). "hostNetwork" in the line: run node-problem-detector in the network of the node.

Remedy: nothing is to be done to the node. One target on many nodes: that target, or the way to it. Many targets on one
node: its card, cable or port; <state>/evidence/network_path.json has the times and how fast each counter grew. Many on
many: the fabric: PFC and ECN settings, a link that is down between switches, a job that sends to one node from all.

Exit codes: 0 answers come in time, or nothing has a limit, 1 they do not, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, main, parser
from nodelib.contract.npd import Verdict
from nodelib.net.probe_result import ProbeReply, in_the_nodes_network, together
from nodelib.state.looks import Looks, look

if TYPE_CHECKING:  # who has no limit needs neither sockets nor counters
    from nodelib.net.congestion import Counted
    from nodelib.net.round_trip import RoundTrip, Target

LOOKS = 3  # in a row
OLD = 900.0  # seconds after which a look is none of a row
MOST_TARGETS = 8
OF_DRIVERS = 3.0  # seconds
SHOWN = 24  # counters in the evidence


class Memory(NamedTuple):
    """What was looked at and when, what stands by the words of its fault, and the counters of the last look."""

    at: float = 0.0
    looks: Mapping[str, Looks] = {}
    counters: Mapping[str, int] = {}
    refused: Set[str] = frozenset()


class Seen(NamedTuple):
    """What one look found. `grown`: of each counter by how much a second."""

    trips: Mapping["Target", "RoundTrip"]
    counted: "Counted"
    grown: Mapping[str, float]


def judge(standing: Mapping[str, Looks], measured: Mapping[str, bool], doubts: Sequence[str]) -> tuple[Verdict, str]:
    """Turn what stands, by its words, and what could not be seen into a verdict and its line.

    `measured`: what was measured in this look; nothing is told of what was not.
    """
    faults = [words for words in measured if standing[words].told]
    verdicts = {**dict.fromkeys(doubts, Verdict.UNKNOWN), **dict.fromkeys(faults, Verdict.FAULT)}
    return conclude(verdicts, "answers come in time, and no sign of congestion is above its limit")


def above(seen: Seen, most: Mapping[str, float]) -> dict[str, bool]:
    """Return of all that was measured, by the words of its fault, whether it is above its limit."""
    from nodelib.net.congestion import SIGNS, by_sign

    measured = {
        slow(target): trip.ms > target.limit for target, trip in seen.trips.items() if trip.reply.word == "answers"
    }
    for sign, limit in most.items():
        for device, rate in by_sign(seen.grown, sign).items():
            measured[f"{device} {SIGNS[sign].words} than {limit:g} a second"] = rate > limit
    return measured


def unseen(seen: Seen, most: Mapping[str, float]) -> list[str]:
    """Return what cannot be told: targets that do not answer, and limits without a counter."""
    from nodelib.net.congestion import SIGNS

    whys = {target: trip.reply.why for target, trip in seen.trips.items() if trip.reply.word != "answers"}
    doubts = [f"{target} does not answer while others do ({why}): look at it" for target, why in whys.items()]
    if whys and len(whys) == len(seen.trips):
        doubts = [f"no target answers: {', '.join(f'{target} ({why})' for target, why in whys.items())}"]
    if seen.counted.why and any(SIGNS[sign].of_driver for sign in most):
        doubts.append(f"the drivers of network cards cannot be asked: {seen.counted.why}")
    return doubts


def slow(target: "Target") -> str:
    """Return the words for a target that is too slow; with its limit, so that another limit begins anew."""
    return f"answers of {target} take longer than {target.limit:g} ms"


def stand(last: Mapping[str, Looks], measured: Mapping[str, bool], silent: Sequence["Target"]) -> dict[str, Looks]:
    """Return what stands after this look; of a target that was silent it stays as it was."""
    kept = {words: last[words] for words in map(slow, silent) if words in last}
    return {**kept, **{words: look(last.get(words, Looks()), is_bad, LOOKS) for words, is_bad in measured.items()}}


def measure(options: argparse.Namespace, last: Memory, seconds: float, refused: set[str]) -> Seen:
    """Ask all targets at the same time, then read the counters."""
    from nodelib.net import congestion, round_trip

    trips = together(lambda target: round_trip.measure(target, options.deadline), options.target)
    counted = congestion.read(options.sys, options.proc, options.state, OF_DRIVERS, refused)
    grown = congestion.rates(last.counters, counted.counters, seconds)
    return Seen(dict(zip(options.target, trips, strict=True)), counted, grown)


def evidence(seen: Seen) -> dict[str, Any]:
    """Return the times of answers in milliseconds, and what grew, the fastest first; bounded, lest it be cut."""
    fastest = sorted(seen.grown.items(), key=lambda pair: (-pair[1], pair[0]))
    return {
        "milliseconds": {str(target): round(trip.ms, 3) for target, trip in seen.trips.items() if not trip.reply.why},
        "a second": {key: round(rate, 2) for key, rate in fastest[:SHOWN] if rate},
    }


def check(run: Run[Memory]) -> Findings:
    """One run: measure what has a limit, remember, judge."""
    options = run.options
    if not options.target and not options.most:
        return Findings(Verdict.OK, "no targets are named")
    elsewhere = in_the_nodes_network(ProbeReply("silent"), options.proc).why
    if elsewhere:
        return Findings(Verdict.UNKNOWN, f"the paths of the network cannot be measured: {elsewhere}")
    last, refused = run.last if 0 <= run.now - run.last.at <= OLD else Memory(), {*run.last.refused}
    seen = measure(options, last, run.now - last.at, refused)
    most, silent = dict(options.most), [target for target, trip in seen.trips.items() if trip.reply.word != "answers"]
    measured = above(seen, most)
    standing = stand(last.looks, measured, silent)
    verdict, line = judge(standing, measured, unseen(seen, most))
    return Findings(
        verdict,
        line,
        Memory(run.now, standing, seen.counted.counters, refused),
        evidence=lambda: evidence(seen),
        explain=lambda: explain(evidence(seen), {"looks": standing}, verdict),
    )


def target(words: str) -> "Target":
    """Read --target."""
    from nodelib.net.round_trip import target as read

    try:
        return read(words)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{words!r}: {error}") from None


def limit(words: str) -> tuple[str, float]:
    """Read --most SIGN=RATE."""
    from nodelib.net.congestion import SIGNS

    sign, _, rate = words.partition("=")
    try:
        if sign in SIGNS and 0 < float(rate) < 1e12:
            return sign, float(rate)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{words!r} is not SIGN=RATE: a sign of {', '.join(SIGNS)} and how many a second")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 6.0, "all answers of a target")
    options.add_argument(
        "--target",
        action="append",
        default=[],
        type=target,
        metavar="ADDRESS:PORT=MS",
        help="who is asked, and the milliseconds that an answer may take, such as 10.0.0.5:443=2; up to eight times",
    )
    options.add_argument(
        "--most",
        action="append",
        default=[],
        type=limit,
        metavar="SIGN=RATE",
        help="how many a second are no congestion, such as pauses=1000; discards, pauses, cnps, retransmits",
    )
    parsed = options.parse_args(arguments)
    places = {(target.host, target.port) for target in parsed.target}
    if len(places) < len(parsed.target) or len(parsed.target) > MOST_TARGETS:
        options.error(f"argument --target: at most {MOST_TARGETS} of them, each another ADDRESS:PORT")
    return parsed


DETECTOR = Detector("network_path", "NetworkPathSlow", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)

#!/usr/bin/env -S python3 -I -S -B
"""Condition PodNetworkUnavailable: inside a Pod of this node cluster DNS, the API Service or most peers are silent.

A Pod of the DaemonSet deploy/pod-network, in the network of Pods and without any right, asks them once a minute and
writes down who answered (--probe is how it runs); this detector reads and judges that. A fault shows in two runs in a
row, of two different results. One peer that is silent is that peer's fault: of three or more asked, more than half.

Told as "cannot tell": a result that is older than four minutes, of another boot or no result at all after there was one
in this boot, and what the probe could not ask. "has never written": the kubelet has made the folder for the probe's
Pod, and no result came in four minutes; the Pod may have got no network. Where there is no folder nothing is wrong.
After you have removed the DaemonSet, remove /run/remediator/pod-network of the node and <state>/pod_network.json, too.

Remedies: on one node alone: restart-cni, then look at kube-proxy, NetworkPolicies and routes of the node. On many
nodes: no repair of a node helps; look at CoreDNS, the API server, or the network plugin's roll-out.

Exit codes: 0 all answer, 1 some do not, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__" and "--probe" not in sys.argv:
    slots.take()  # before all that costs memory

import argparse
import json
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, main, parser
from nodelib.contract.memory import Nonsense, reader
from nodelib.contract.npd import Verdict
from nodelib.state.debounce import Streak, stand

OLD = 240.0  # seconds: a probe writes every minute
RUNS = 2
MOST_BYTES = 4096
FEWEST = 3  # peers
RESULT = Path("/run/remediator/pod-network/probe.json")
SERVICE, PORT = "remediator-pod-network.remediator-system.svc", 8790
NEVER = "the probe has never written: its Pod may have no network"
WHO = {"dns": "cluster DNS", "api": "the API Service"}


class Result(NamedTuple):
    """What the probe wrote: of whom it asked, word and cause; of peers, how many it asked and how many answered."""

    boot_id: str
    at: float
    dns: tuple[str, str]
    api: tuple[str, str]
    peers: tuple[int, int]


class Memory(NamedTuple):
    """When the last result was written, 0 for none in this boot, and since when each is silent."""

    at: float = 0.0
    silent: Mapping[str, Streak] = {}


def read(path: Path) -> Result | None:
    """Return the result, None where there is none. Raises OSError, ValueError: a Pod may write anything."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is no file")
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError("it is too long")
    try:
        values = json.loads(content)
        return reader(Result)({name: values[name] for name in Result._fields})  # type: ignore[no-any-return]
    except (Nonsense, KeyError, TypeError, RecursionError) as error:
        raise ValueError("it makes no sense") from error


def silent(result: Result) -> list[str]:
    """Return who did not answer, each in words."""
    texts = [f"{WHO[name]} ({why[:60]})" for name, (word, why) in _asked(result) if word == "silent"]
    asked, answered = result.peers
    return [*texts, *(["most of its peers"] if asked >= FEWEST and 2 * answered < asked else [])]


def _asked(result: Result) -> list[tuple[str, tuple[str, str]]]:
    return [("dns", result.dns), ("api", result.api)]


def judge(result: Result, standing: Mapping[str, Streak]) -> tuple[Verdict, str]:
    """Turn a fresh result into a verdict and its line; `standing`: in how many results in a row each was silent."""
    verdicts = {}
    for who in silent(result):
        lasting = who in standing and standing[who].runs >= RUNS
        text = f"a Pod of this node cannot reach {who}"
        verdicts[text if lasting else f"{text}, once so far"] = Verdict.FAULT if lasting else Verdict.UNKNOWN
    for name, (word, why) in _asked(result):
        if word not in ("answers", "silent"):
            verdicts[f"the probe cannot ask {WHO[name]} ({why[:60]})"] = Verdict.UNKNOWN
    return conclude(verdicts, "the network of Pods works")


def is_waited_for(path: Path) -> bool:
    """Whether a Pod should have written: the kubelet makes the folder before the Pod has a network."""
    try:
        return time.time() - path.parent.stat().st_mtime > OLD
    except OSError:
        return False


def why_not(result: Result | None, run: Run[Memory]) -> str:
    """Return why a result tells nothing of now, "" where it does."""
    if not run.boot:
        return "the id of this boot cannot be read"
    if result is None:
        if run.last.at:
            return "the probe in a Pod has written nothing more"
        return NEVER if is_waited_for(run.options.result) else ""
    if result.boot_id != run.boot or not 0 <= run.now - result.at <= OLD:
        return "the probe in a Pod has not written for long: look at its Pod"
    return ""


def check(run: Run[Memory]) -> Findings:
    """One run: read, compare with the last result, judge."""
    try:
        result = read(run.options.result)
    except (OSError, ValueError) as error:
        return Findings(Verdict.UNKNOWN, f"the result of the probe cannot be used: {error}")
    why = why_not(result, run)
    if why:
        return Findings(Verdict.UNKNOWN, why)
    if result is None:
        return Findings(Verdict.OK, "no Pod probes the network of this node")
    standing = run.last.silent if result.at == run.last.at else stand(silent(result), run.last.silent, result.at)
    verdict, line = judge(result, standing)
    return Findings(
        verdict,
        line,
        Memory(result.at, standing),
        evidence=lambda: {"probe": result._asdict()},
        explain=lambda: explain({"probe": result}, {"silent since": standing}, verdict),
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument("--result", type=Path, default=RESULT, help="where the probe writes (%(default)s)")
    options.add_argument("--probe", action="store_true", help="be the probe: run in a Pod, for ever")
    options.add_argument(
        "--peers", default=SERVICE, metavar="NAME", help="headless Service of all probes (%(default)s)"
    )
    options.add_argument("--port", type=int, default=PORT, help="where probes take connections (%(default)s)")
    return options.parse_args(arguments)


DETECTOR = Detector("pod_network", "PodNetworkUnavailable", check, Memory)


if __name__ == "__main__":
    options = parse(sys.argv[1:])
    if options.probe:
        from nodelib.net.pod_probe import run as probe  # sockets and threads, which reading needs not

        probe(options.peers, options.port, options.result)
    main(options, DETECTOR)

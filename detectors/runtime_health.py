#!/usr/bin/env -S python3 -I -S -B
"""Condition RuntimeUnhealthy: the kubelet or the container runtime of this node runs but does not work.

The kubelet is asked for /healthz on the node's loopback. The container runtime is asked for its Status (the CRI's own
call, which the kubelet makes, too) over its socket, without a client program. Each has a deadline.

A fault is one of them that for three runs in a row and for most of a minute

  does not answer, refuses, or does not serve CRI     (hung, stopped, or a bad configuration)
  answers that it is not well                         (HTTP 5xx; RuntimeReady false)

once it has answered in this boot, or when it was declared (--kubelet URL, --socket PATH). One that was neither declared
nor ever answered is "cannot tell": it may be switched off (healthzPort: 0) or elsewhere. So are a socket that we may
not use and an answer that makes no sense. NetworkReady is left to CniUnavailable.

Remedies: "the kubelet ...": look at `journalctl -u kubelet`, restart the kubelet; Pods run on. "... container runtime
...": look at `journalctl -u containerd` (or crio), restart it; Pods run on, too. "does not serve CRI": its CRI plugin
is disabled or has failed to load; `ctr plugins ls`, then mend its configuration. Where a restart does not help, a
process hangs in the kernel (see UnkillableProcess) or a disk is full or read-only: drain and reboot. "hostNetwork" in
the line: run node-problem-detector in the network of the node.

Exit codes: 0 both work, 1 one does not, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host.root import node_root
from nodelib.net.cri import Runtime
from nodelib.net.loopback import get, loopback_url
from nodelib.net.probe_result import ProbeReply, in_the_nodes_network
from nodelib.net.runtimes import add_socket_option, ask_runtimes
from nodelib.state.debounce import Streak, lasts, stand

KUBELET, KUBELET_URL = "kubelet", "http://127.0.0.1:10248/healthz"
RUNS, SECONDS = 3, 50.0  # three runs 30 seconds apart take a minute, less what timers are early


class Memory(NamedTuple):
    """Who was declared or answered in this boot, and since when each is ill."""

    known: Collection[str] = ()
    ill: Mapping[str, Streak] = {}


class Health(NamedTuple):
    """What is to be said of one of them. `word`: "well", "ill", or "unclear" (nothing can be said)."""

    word: str
    text: str = ""


def kubelet_health(reply: ProbeReply, body: str) -> Health:
    """Turn the kubelet's answer to /healthz into words; of one that is not well, name the checks that fail."""
    if reply.word == "answers":
        return Health("well")
    if reply.word == "unclear":
        return Health("unclear", f"the kubelet cannot be asked: {reply.why}")
    if reply.why.startswith("HTTP "):
        checks = ", ".join(sorted(set(re.findall(r"^\[-\]([\w.-]+) ", body, re.MULTILINE))))
        return Health("ill", f"the kubelet is not well: {checks or reply.why}")
    return Health("ill", f"the kubelet does not answer ({reply.why})")


def runtime_health(path: str, runtime: Runtime) -> Health:
    """Turn a runtime's Status into words."""
    ready = runtime.conditions.get("RuntimeReady")
    if runtime.reply.word == "unclear":
        return Health("unclear", f"the container runtime at {path} cannot be asked: {runtime.reply.why}")
    if runtime.reply.word == "silent":
        return Health("ill", f"the container runtime at {path} does not answer ({runtime.reply.why})")
    if ready is None:
        return Health("unclear", f"the container runtime at {path} does not report whether it is ready")
    return Health("well") if ready.ready else Health("ill", f"the container runtime at {path} is not ready{_of(ready)}")


def _of(ready: tuple[bool, str]) -> str:
    return f" ({ready[1]})" if ready[1] else ""


def judge(
    healths: Mapping[str, Health], known: Collection[str], standing: Mapping[str, Streak], now: float
) -> tuple[Verdict, str]:
    """Turn health, by "kubelet" or path of a socket, into a verdict and its line.

    Args: `known`: who was declared or answered in this boot; `standing`: how long each has been ill.
    """
    verdicts = {}
    if not healths.keys() - {KUBELET}:
        verdicts["no socket of a container runtime is there (name it with --socket PATH)"] = Verdict.UNKNOWN
    for name, health in healths.items():
        if health.word == "unclear":
            verdicts[health.text] = Verdict.UNKNOWN
        elif health.word == "ill" and name not in known:
            if name == KUBELET or not set(known) - {KUBELET}:  # not a socket that is left over beside a runtime in use
                option = "--kubelet" if name == KUBELET else "--socket"
                verdicts[f"{health.text} and never did in this boot (declare it with {option} if it should)"] = (
                    Verdict.UNKNOWN
                )
        elif health.word == "ill":
            lasting = lasts(standing.get(name), now, SECONDS, RUNS)
            verdicts[health.text if lasting else f"{health.text}, not for long yet"] = (
                Verdict.FAULT if lasting else Verdict.UNKNOWN
            )
    return conclude(verdicts, "the kubelet and the container runtime work")


def look(options: argparse.Namespace, known: Collection[str]) -> dict[str, Health]:
    """Ask the kubelet and the runtimes."""
    reply, body = get(options.kubelet or KUBELET_URL, options.deadline)
    found = {KUBELET: kubelet_health(in_the_nodes_network(reply, options.proc), body)}
    runtimes = ask_runtimes(node_root(options.proc), options.socket, known, options.deadline)
    return {**found, **{path: runtime_health(path, runtime) for path, runtime in runtimes.items()}}


def check(run: Run[Memory]) -> Findings:
    """One run: ask, remember who answered and since when who does not, judge."""
    known = {*run.last.known, *run.options.socket, *([KUBELET] if run.options.kubelet else [])}
    healths = look(run.options, known)
    known |= {name for name, health in healths.items() if health.word == "well"}
    standing = stand([name for name, health in healths.items() if health.word == "ill"], run.last.ill, run.now)
    verdict, line = judge(healths, known, standing, run.now)
    return Findings(
        verdict,
        line,
        Memory(known, standing),
        evidence=dict,
        explain=lambda: explain(healths, {"known": ", ".join(sorted(known)), "ill since": standing}, verdict),
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 8.0, "each answer")
    options.add_argument(
        "--kubelet",
        type=loopback_url,
        metavar="URL",
        help=f"where the kubelet tells its health; declares that it does (default: {KUBELET_URL}, if it ever answered)",
    )
    add_socket_option(options)
    return options.parse_args(arguments)


DETECTOR = Detector("runtime_health", "RuntimeUnhealthy", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)

"""How long `decide` takes for one node under many policies: `python -m tests.bench.decide`.

Nodes: one that is well, as nearly all are; one with a fault; one whose detectors know nothing; and one on which each
policy finds something, with cases behind it, so that the stronger rung has to be found among all.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from remediator.core.case import Case, Phase
from remediator.core.decide import decide
from remediator.core.lemon import known
from remediator.core.node import Node
from remediator.core.policy import Clause, Lemon, Policy
from tests.builders import a_case, a_node, a_policy, an_attempt, at, condition, when

COVERS = {
    "power-cycle": ("reboot",),
    "reboot": ("reset-gpu", "reload-driver", "restart-service", "remount-nfs"),
    "reset-gpu": ("restart-device-plugin",),
}
LADDERS = (("reset-gpu", "reboot"), ("reboot", "power-cycle"), ("restart-service", "reboot"), ("clear-disk",))
NOW, PAST = at(10), 20
REPEATS, CALLS = 20, 50


def policies(count: int) -> list[Policy]:
    """So many policies, each about a condition of its own."""
    return [
        a_policy(
            f"policy-{number:02}",
            when(Clause(f"Fault{number:02}")),
            ladder=[(operation, 1) for operation in LADDERS[number % len(LADDERS)]],
            relapse=timedelta(hours=72),
            lemon=Lemon(3, timedelta(days=30)),
            attempts=100,
        )
        for number in range(count)
    ]


def node(count: int, status: str, faults: int = 0) -> Node:
    """A node that says this of every condition but the first, which are faults."""
    said = ["True"] * faults + [status] * (count - faults)
    conditions = (condition(f"Fault{number:02}", word, heartbeat=9) for number, word in enumerate(said))
    return a_node("gpu-1", *conditions, heartbeat=9)


def nodes(count: int) -> dict[str, Node]:
    """A node of each kind, under so many policies."""
    return {
        "well": node(count, "False"),
        "one_fault": node(count, "False", 1),
        "unknown": node(count, "Unknown"),
        "all_faults": node(count, "True"),
    }


def cases(count: int) -> list[Case]:
    """What was done to the node before: cases of four policies."""
    facts = {"phase": Phase.RECOVERED, "finalizers": (), "attempts": (an_attempt(started=-600),)}
    times = {"created": -700, "started": at(-650), "ended": at(-60)}
    return [a_case(f"past-{number}", policy=f"policy-{number % 4:02}", **times, **facts) for number in range(count)]


def best(work: Callable[[], object]) -> float:
    """Microseconds of processor time of one call, at best of many: what else the machine does is not in it."""
    times = []
    for _ in range(REPEATS):
        begun = time.thread_time()
        for _ in range(CALLS):
            work()
        times.append((time.thread_time() - begun) / CALLS)
    return round(min(times) * 1e6, 1)


def measured(count: int) -> dict[str, float]:
    """Microseconds of one decision about each of these nodes, and of what earlier cases say of a new one."""
    rules, past = policies(count), cases(PAST)
    work = {name: partial(decide, node, rules, past, NOW, COVERS) for name, node in nodes(count).items()}
    new = a_case("new", policy="policy-00", created=10)
    return {name: best(call) for name, call in work.items()} | {"known": best(partial(known, rules[0], new, past, {}))}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", type=int, default=40)
    count = parser.parse_args(arguments).policies
    print(json.dumps({"policies": count, "past_cases": PAST, "microseconds": measured(count)}))


if __name__ == "__main__":
    main()

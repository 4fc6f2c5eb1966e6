"""Plans in which idle nodes are tested: by which policies, on how many at once, when, and what comes between. And those
in which idle nodes are the other end of what gpu-check measures.
"""

from collections.abc import Sequence
from datetime import timedelta
from random import Random

from remediator_sim.simulation import cluster, facts
from remediator_sim.simulation.clock import BEGIN
from remediator_sim.simulation.plan import Step, Words
from remediator_sim.simulation.steps.idle_tests import IN_TEST
from remediator_sim.simulation.steps.kind import Fleet

PROBE, SHARES = "gpu-check", (1, 2, 4, "10%", "20%", "40%")
OPENS = (3, 12)  # minutes after the begin of a plan; and an hour later once more
FACTS = (facts.GPU_WRONG, facts.GPU_WRONG, facts.GPU_HANGS, facts.NVML_MISSING)  # each of one node
FOR = 3600  # seconds
CHECKS, AT_ONCE = 6, 2  # that users ask for, and neighbours at once
AMID = (5.0, 60.0, 200.0, 500.0, 3610.0)  # seconds after they open, from when on something comes between


def specs(chance: Random, acting: Sequence[str]) -> tuple[tuple[str, Words], ...]:
    """The one that repairs what tests find, or another one tests, and in some plans two do."""
    asking = {chance.choice((*acting, cluster.TESTED)), *chance.sample(acting, chance.choice((0, 0, 1)))}
    at = BEGIN + timedelta(minutes=chance.randint(*OPENS))
    window = {"cron": f"{at.minute} {at.hour},{at.hour + 1} * * *", "duration": "40m", "timeZone": "UTC"}
    return tuple(
        (name, (("idleTest", {"probe": PROBE, "share": chance.choice(SHARES), "window": window}),))
        for name in sorted(asking)
    )


def steps(chance: Random, fleet: Fleet, begin: float) -> tuple[Step, ...]:
    """Some machines are bad, or cannot be judged, and something comes between while a node is tested."""
    bad = zip(chance.sample(fleet.nodes, len(FACTS)), FACTS, strict=True)
    hinders = (Step(begin, "hinder", node, (("fact", fact), ("seconds", FOR))) for node, fact in bad)
    between = (Step(60.0 * OPENS[0] + after, IN_TEST.name, *IN_TEST.draw(chance, fleet)) for after in AMID)
    return (*hinders, *between)


def checks(chance: Random, fleet: Fleet, begin: float, last: float) -> tuple[Step, ...]:
    """Users ask for gpu-check, and something comes between while the first node that is a neighbour is that."""
    times = sorted(chance.uniform(begin, last) for _ in range(CHECKS))
    asked = [(at, chance.choice(fleet.nodes), chance.choice((0, 0, 0, 20, 120))) for at in times]
    words = [(("template", PROBE), ("deleted", deleted)) for _, _, deleted in asked]
    asks = (Step(round(at, 3), "ask", node, request) for (at, node, _), request in zip(asked, words, strict=True))
    between = (Step(round(at, 3), IN_TEST.name, *IN_TEST.draw(chance, fleet)) for at in times)
    return (*asks, *between)

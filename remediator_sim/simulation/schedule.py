"""From a seed to its plan. Pure: the same seed gives the same plan everywhere."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from random import Random

from remediator_sim.simulation.fault import ACTING, DRAINING, TELLING
from remediator_sim.simulation.node import RACK
from remediator_sim.simulation.plan import Plan, Step, Words
from remediator_sim.simulation.steps import (
    alerts,
    between,
    clocks,
    edits,
    github,
    nodes,
    objects,
    replicas,
    roles,
    users,
    wires,
)
from remediator_sim.simulation.steps.kind import Fleet, Kind

KINDS: dict[str, Kind] = {
    kind.name: kind
    for part in (nodes, replicas, wires, users, edits, objects, clocks, github, alerts, roles, between)
    for kind in part.KINDS
}
NODES, FAULTS, OTHERS = (20, 24), (10, 13), (6, 12)
GROUPED = 0.25  # of the plans have one budget for each rack
BUDGETS = (("maxUnavailable", 2), ("maxUnavailable", "10%"), ("maxUnavailable", 5), ("minAvailable", 16))
# In some seeds many nodes fall ill at once, and no budget holds them: only the breaker does.
BURSTS, MANY, AT_ONCE = 0.25, (14, 18), 300.0
# In some seeds few nodes in quarantine stop all starts, and more faults go on whatever is done; in some, one policy
# cures nothing. None: neither.
CEILINGS, INCURABLE, VAIN = (1, 2, "10%", None, None, None, None, None, None, None), 0.4, 0.4
TICKETS = ("Always", "OnEscalation", "OnEscalation", "Never")
# So many of the other steps happen while a node is under repair, so many seconds after it fell ill.
AMID, REPAIR = 0.5, (120.0, 900.0)
TELLS, TWINS = 0.6, 2
BETWEEN = ("unheard", "unheard", "killed-between", "mark", "mark", "forge")
AT_GITHUB = ("github-lost", "github-lost", "github-crash", "github-lag", "issue")  # two of them in each plan
BEGIN, LAST, AFTER = 120.0, 3600.0, 900.0  # seconds: the first step, the last one, and the least time to come to rest


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    chance = Random(f"plan {seed}")
    names = tuple(f"gpu-{number:02}" for number in range(1, chance.randint(*NODES) + 1))
    policies = _policies(Random(f"policies {seed}"))
    burst = chance.random() < BURSTS
    sick = tuple(chance.choice(names) for _ in range(chance.randint(*(MANY if burst else FAULTS))))
    fleet = Fleet(names, policies, sick)
    faults = [_fault(chance, fleet, node, AT_ONCE if burst else LAST - BEGIN) for node in sick]
    beside = Random(f"tickets {seed}")
    outside = [KINDS["alert"]] * beside.randint(1, 3) + [KINDS[beside.choice(AT_GITHUB)] for _ in range(2)]
    in_vain = Random(f"in vain {seed}")
    ceiling = in_vain.choice(CEILINGS)
    faults = _in_vain(in_vain, faults, ceiling is not None)
    others = [KINDS["crash"], *(_kind(chance) for _ in range(chance.randint(*OTHERS)))]
    steps = faults + [_step(chance, fleet, kind, faults) for kind in others]
    steps += [_step(beside, fleet, kind, faults) for kind in outside]
    special, more = _roles(Random(f"roles {seed}"), fleet, faults)
    steps += [
        *more,
        *_twins(Random(f"twins {seed}"), fleet, faults),
        *_between(Random(f"between {seed}"), fleet, faults),
    ]
    most = ("maxUnavailable", "100%") if burst else chance.choice(BUDGETS)
    return Plan(
        seed,
        names,
        tuple((name, "Enforce") for name in policies),
        (("fleet", _budget(Random(f"groups {seed}"), most, ceiling)),),
        tuple(sorted(steps, key=lambda step: (step.at, step.kind, step.target))),
        LAST + AFTER,
        tuple((name, chance.choice(TICKETS)) for name in policies),
        special,
    )


def _budget(chance: Random, most: tuple[str, object], ceiling: object) -> Words:
    """What the budget over all nodes says: in some plans for each rack by itself."""
    words = (most, ("maxQuarantined", ceiling)) if ceiling else (most,)
    grouped = chance.random() < GROUPED and most[0] == "maxUnavailable"
    return (*words, ("groupBy", RACK)) if grouped else words


def _policies(chance: Random) -> tuple[str, ...]:
    """Four policies: two that drain before their first operation, and in some seeds one that only tells a person."""
    first = chance.sample(sorted(DRAINING), 2)
    others = chance.sample(sorted(ACTING.keys() - set(first)), 2)
    return tuple(sorted([*first, others[0], chance.choice(sorted(TELLING)) if chance.random() < TELLS else others[1]]))


def _twins(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> Iterator[Step]:
    """Faults of nodes that have just fallen ill: two policies find something on one node at once."""
    for fault in chance.sample(faults, TWINS):
        at = min(LAST, fault.at + chance.uniform(0.0, AT_ONCE))
        yield replace(_fault(chance, fleet, fault.target, 0.0), at=round(chance.choice((fault.at, at)), 3))


def _between(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> Iterator[Step]:
    """What comes between two writes: each waits for its moment from when its node falls ill."""
    drained = [fault for fault in faults if fault["condition"] in {ACTING[name].condition for name in DRAINING}]
    chance.shuffle(drained)
    for kind, fault in zip(BETWEEN, cycle(drained or faults)):
        _, words = KINDS[kind].draw(chance, fleet)
        yield Step(max(0.0, round(fault.at - 1.0, 3)), kind, fault.target, words)


def _roles(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> tuple[tuple[tuple[str, str], ...], list[Step]]:
    """Two nodes of the control plane and a worker that looks like one, all sick, and a sick node that becomes one.

    Faults of theirs leave kubelets as they are: a node that is down for good takes a place in the budget.
    """
    healthy = [name for name in fleet.nodes if name not in fleet.sick]
    special = tuple(zip(chance.sample(healthy or fleet.nodes, len(roles.ROLES)), roles.ROLES, strict=True))
    others = fleet._replace(policies=tuple(name for name in fleet.policies if not name.startswith("node-")))
    steps = [_fault(chance, others, name, LAST - BEGIN) for name, _ in special]
    _, words = KINDS["join-control-plane"].draw(chance, fleet)
    fault = chance.choice(faults)
    at = min(LAST, fault.at + chance.uniform(*REPAIR))
    return special, [*steps, Step(round(at, 3), "join-control-plane", fault.target, words)]


def _kind(chance: Random) -> Kind:
    kinds = list(KINDS.values())
    return chance.choices(kinds, [kind.weight for kind in kinds])[0]


def _step(chance: Random, fleet: Fleet, kind: Kind, faults: Sequence[Step]) -> Step:
    """Some time, or in the middle of a case; then what happens to a node happens to the one that the case is about."""
    target, words = kind.draw(chance, fleet)
    at = chance.uniform(BEGIN, LAST)
    if chance.random() < AMID:
        fault = chance.choice(faults)
        at = min(LAST, fault.at + chance.uniform(*REPAIR))
        target = fault.target if target in fleet.nodes else target
    return Step(round(at, 3), kind.name, target, words)


def _fault(chance: Random, fleet: Fleet, node: str, within: float) -> Step:
    _, words = KINDS["fault"].draw(chance, fleet)
    return Step(round(BEGIN + chance.uniform(0, within), 3), "fault", node, words)


def _in_vain(chance: Random, faults: Sequence[Step], quarantine: bool) -> list[Step]:
    """The faults, some of them incurable: any where the quarantine is small, else in some seeds all of a policy."""
    share = INCURABLE if quarantine else 0.0
    kind = chance.choice(faults)["condition"] if not quarantine and chance.random() < VAIN else ""
    return [_incurable(step) if step["condition"] == kind or chance.random() < share else step for step in faults]


def _incurable(fault: Step) -> Step:
    return replace(fault, words=tuple((word, () if word == "cures" else value) for word, value in fault.words))

"""From a seed to its plan. Pure: the same seed gives the same plan everywhere."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from random import Random
from typing import NamedTuple

from remediator_sim.simulation import budgets, gates, parts, variants
from remediator_sim.simulation.fault import ACTING, DRAINING, KNOWN, TELLING
from remediator_sim.simulation.parts import Deal
from remediator_sim.simulation.plan import Plan, Step, Words
from remediator_sim.simulation.steps import (
    alerts,
    approvals,
    between,
    breakers,
    clocks,
    dead,
    devices,
    drains,
    edits,
    endless,
    gate_edits,
    github,
    hands,
    idle,
    idle_tests,
    images,
    leases,
    nodes,
    objects,
    replicas,
    requests,
    retries,
    roles,
    second_source,
    signs,
    take_outs,
    users,
    wires,
)
from remediator_sim.simulation.steps.kind import Fleet, StepKind

PARTS = (
    *(nodes, replicas, wires, users, edits, objects, clocks, github, alerts, roles, between),
    *(breakers, drains, second_source, dead, images, endless),
    *(approvals, idle, gate_edits, retries, devices, signs),  # drawn by chances of their own
    *(requests, hands, idle_tests, leases, take_outs),  # the same
)
KINDS: dict[str, StepKind] = {kind.name: kind for part in PARTS for kind in part.KINDS}
# A kind that is drawn often has two cards, see parts.py.
OFTEN = 3
CARDS = tuple(kind.name for kind in KINDS.values() for _ in range(min(kind.weight, 1) + (kind.weight >= OFTEN)))
# Most plans are as small as they may be: 20 nodes, 10 faults with those of special nodes and twins.
NODES, FAULTS, SPECIAL, TWINS = (20, 20, 20, 22), 10, len(roles.ROLES), 2
BUDGETS = (("maxUnavailable", 2), ("maxUnavailable", "10%"), ("maxUnavailable", 5), ("minAvailable", 16))
# In some seeds many nodes fall ill at once, and no budget holds them: only the breaker does.
MANY, AT_ONCE = (13, 15), 300.0
# In some seeds few nodes in quarantine stop all starts, and more faults go on whatever is done.
CEILINGS, INCURABLE = (1, 2, "10%"), 0.4
# In some seeds only one or two nodes, which fall ill, may take Pods with rights in the API; one pause for both.
PAUSED_FOR = 600.0
TICKETS = ("Always", "OnEscalation", "OnEscalation", "Never")
# So many of the other steps happen while a node is under repair, so many seconds after it fell ill.
AMID, REPAIR = 0.5, (120.0, 900.0)
TELLS = 0.6
HANDED = (parts.ASK, parts.ASK, parts.MEND, parts.MEND)  # what users ask for, and what they repair by hand
# In some seeds faults come back, so soon or later, and all policies say what is done about it.
COME_BACK, RETURNS, BACK_AFTER = 0.7, (1, 2, 3), (350.0, 450.0, 700.0)
RECURRENCE: tuple[Words, ...] = (
    (("relapse", {"window": "72h"}), ("cooldown", "1m")),
    (("relapse", {"window": "20m"}), ("lemon", {"cases": 2, "window": "720h"}), ("cooldown", "0s")),
    (("lemon", {"cases": 1, "window": "1h"}), ("cooldown", "1m")),
    (("attempts", {"max": 2, "window": "168h"}), ("cooldown", "0s")),
)
EDITS = 2  # of what a policy makes its cases wait for
ANSWERED = 0.8  # of the cases that wait for an approval, or for work to end, that users do something about
BETWEEN = (parts.UNHEARD, parts.UNHEARD, parts.KILLED, parts.MARK, parts.MARK, parts.FORGE)
AT_GITHUB = ("github-lost", "github-lost", "github-crash", "github-lag", "issue")  # two of them in some plans
BEGIN, LAST, AFTER = 120.0, 3600.0, 900.0  # seconds: the first step, the last one, and the least time to come to rest


class _Ill(NamedTuple):
    """What is ill in a plan, and what its budget and its policies say because of that.

    `ceiling`: how many nodes in quarantine stop all starts. `breaker`: when failures do, of which `closing` are the
    steps. `recurrence`: what policies say of faults that come back.
    """

    fleet: Fleet
    faults: list[Step]
    ceiling: int | str | None
    breaker: Words
    closing: list[Step]
    recurrence: Words


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    chance, deal = Random(f"plan {seed}"), parts.dealt(seed, CARDS)
    names = tuple(f"gpu-{number:02}" for number in range(1, chance.choice(NODES) + 1))
    ill = _ill(seed, chance, names, deal)
    fleet, faults = ill.fleet, ill.faults
    steps = [*faults, *_by_chance(seed, chance, ill, deal)]
    silent = dead.steps(Random(f"dead {seed}"), fleet, LAST) if parts.SILENT in deal.parts else []
    variant = variants.drawn_for(seed, fleet, faults, BEGIN, LAST, deal.parts)
    policies = tuple(sorted({*fleet.policies, *variant.policies, *([dead.POLICY] if silent else ())}))
    special, of_roles = _roles(Random(f"roles {seed}"), fleet, faults) if parts.ROLES in deal.parts else ((), [])
    places, at_once = _places(Random(f"places {seed}"), fleet, faults) if parts.PLACES in deal.parts else ((), [])
    waits = gates.drawn_for(Random(f"gates {seed}"), policies, faults) if parts.GATES in deal.parts else ()
    second = Random(f"second source {seed}")
    confirmed = _confirmed(second, policies) if parts.CONFIRMED in deal.parts else ()
    steps += [*of_roles, *silent, *variant.steps, *at_once, *_on_the_ill(seed, ill, deal.parts)]
    steps += [_step(second, fleet, KINDS["second-source"], faults) for _ in range(2 if confirmed else 0)]
    steps += [*_gated(Random(f"gated {seed}"), fleet, waits, faults), *ill.closing]
    burst, grouped = parts.BURST in deal.parts, parts.GROUPS in deal.parts
    most = ("maxUnavailable", "100%") if burst else chance.choice(BUDGETS)
    return Plan(
        seed,
        names,
        tuple((name, "Enforce") for name in policies),
        (("fleet", (*budgets.spec(most, ill.ceiling, grouped=grouped), *ill.breaker)),),
        tuple(sorted(steps, key=lambda step: (step.at, step.kind, step.target))),
        LAST + AFTER,
        tuple((name, chance.choice(TICKETS)) for name in policies),
        special,
        places=places,
        confirmed=confirmed,
        recurrence=ill.recurrence,
        jobs=parts.JOBS in deal.parts,
        gates=waits,
        specs=variant.specs,
        shows=variant.shows,
    )


def _ill(seed: int, chance: Random, names: tuple[str, ...], deal: Deal) -> _Ill:
    """Which nodes fall ill, with what, and whether anything cures them; in some plans many, and nearly at once."""
    has, burst = deal.parts, parts.BURST in deal.parts
    of_others = SPECIAL * (parts.ROLES in has) + TWINS * (parts.TWINS in has)
    sick = tuple(chance.choice(names) for _ in range(chance.choice(MANY) if burst else FAULTS - of_others))
    fleet = Fleet(names, _policies(Random(f"policies {seed}")), sick)
    faults = [_fault(chance, fleet, node, AT_ONCE if burst else LAST - BEGIN) for node in sick]
    in_vain = Random(f"in vain {seed}")
    ceiling = in_vain.choice(CEILINGS) if parts.QUARANTINE in has else None
    kind = in_vain.choice(faults)["condition"] if parts.IN_VAIN in has else ""
    faults = _in_vain(in_vain, faults, kind, INCURABLE if ceiling else 0.0)
    none: tuple[Words, list[Step], int] = ((), [], 0)
    of_failures = Random(f"failures of a budget {seed}")
    breaker, closing, share = budgets.breaker(of_failures, LAST) if parts.BREAKER in has else none
    faults = [_incurable(step) if number % 10 < share else step for number, step in enumerate(faults)]
    recurrence: Words = ()
    if parts.RECURRENCE in has:
        faults, recurrence = _recurring(Random(f"recurrence {seed}"), faults)
    return _Ill(fleet, faults, ceiling, breaker, closing, recurrence)


def _by_chance(seed: int, chance: Random, ill: _Ill, deal: Deal) -> Iterator[Step]:
    """A crash and others of any kind, some about alerts and GitHub, and moves of boards where faults come back."""
    fleet, faults, beside = ill.fleet, ill.faults, Random(f"tickets {seed}")
    alerts_, at_github = parts.ALERTS in deal.parts, parts.GITHUB in deal.parts
    outside = [KINDS["alert"]] * (beside.randint(1, 3) if alerts_ else 0)
    outside += [KINDS[beside.choice(AT_GITHUB)] for _ in range(2 if at_github else 0)]
    yield from (_step(chance, fleet, KINDS[name], faults) for name in ("crash", *deal.kinds))
    yield from (_step(beside, fleet, kind, faults) for kind in outside)
    yield from _moves(Random(f"moves {seed}"), fleet, faults) if ill.recurrence else []


def _on_the_ill(seed: int, ill: _Ill, has: Collection[str]) -> Iterator[Step]:
    """What happens to nodes that are ill, and what users do about them."""
    fleet, faults, handed = ill.fleet, ill.faults, Random(f"handed over {seed}")
    for name, steps in ON_THE_ILL.items():
        yield from steps(Random(f"{name} {seed}"), fleet, faults) if name in has else ()
    yield from _between(Random(f"between {seed}"), fleet, faults, [kind for kind in BETWEEN if kind in has])
    yield from (_step(handed, fleet, KINDS[kind], faults) for kind in HANDED if kind in has)


def _recurring(chance: Random, faults: list[Step]) -> tuple[list[Step], Words]:
    """The faults, some of which come back after they were cured, and what the policies say about that."""
    words = [(("returns", chance.choice(RETURNS)), ("after", chance.choice(BACK_AFTER))) for _ in faults]
    back = [chance.random() < COME_BACK for _ in faults]
    steps = [
        replace(fault, words=(*fault.words, *more)) if comes else fault
        for fault, more, comes in zip(faults, words, back, strict=True)
    ]
    return steps, chance.choice(RECURRENCE)


def _moves(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> list[Step]:
    """A board that is put into another node, some time after its own fell ill, and a node that flaps."""
    fault = chance.choice(faults)
    _, words = KINDS["move-board"].draw(chance, fleet)
    moved = Step(round(min(LAST, fault.at + chance.uniform(600.0, 1800.0)), 3), "move-board", fault.target, words)
    well = fleet._replace(nodes=tuple(name for name in fleet.nodes if name not in fleet.sick) or fleet.nodes)
    target, words = KINDS["flap"].draw(chance, well)
    return [moved, Step(BEGIN, "flap", target, words)]


def _policies(chance: Random) -> tuple[str, ...]:
    """Four policies: two that drain before their first operation, and in some seeds one that only tells a person."""
    first = chance.sample(sorted(DRAINING), 2)
    others = chance.sample(sorted(ACTING.keys() - set(first)), 2)
    return tuple(sorted([*first, others[0], chance.choice(sorted(TELLING)) if chance.random() < TELLS else others[1]]))


def _places(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> tuple[tuple[str, ...], list[Step]]:
    """Two nodes that are each other's only place, or one that is no place for its own Pods.

    The two fall ill while everything is paused, so that both ask to start at once.
    """
    places = tuple(chance.sample(sorted(set(fleet.sick)), chance.randint(1, 2)))
    at = BEGIN + chance.uniform(0.0, PAUSED_FOR)
    fault = chance.choice(_drained(faults) or faults)
    ill = [replace(fault, target=name, at=round(at + 5.0, 3)) for name in places]
    pause = Step(round(at, 3), "pause", "", (("seconds", PAUSED_FOR),))
    return places, [pause, *ill] if len(places) > 1 else []


def _drained(faults: Sequence[Step]) -> list[Step]:
    """The faults whose repair begins with a drain."""
    return [fault for fault in faults if fault["condition"] in {ACTING[name].condition for name in DRAINING}]


def _confirmed(chance: Random, policies: Sequence[str]) -> tuple[str, ...]:
    """One or two that act: what a kubelet says of itself no exporter of the node could confirm."""
    acting = [name for name in policies if name in ACTING and ACTING[name].condition != "Ready"]
    return tuple(sorted(chance.sample(acting, min(2, len(acting)))))


def _twins(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> Iterator[Step]:
    """Faults of nodes that have just fallen ill: two policies find something on one node at once."""
    for fault in chance.sample(faults, TWINS):
        at = min(LAST, fault.at + chance.uniform(0.0, AT_ONCE))
        yield replace(_fault(chance, fleet, fault.target, 0.0), at=round(chance.choice((fault.at, at)), 3))


def _between(chance: Random, fleet: Fleet, faults: Sequence[Step], kinds: Sequence[str]) -> Iterator[Step]:
    """What comes between two writes: each waits for its moment from when its node falls ill."""
    drained = _drained(faults)
    chance.shuffle(drained)
    for kind, fault in zip(kinds, cycle(drained or faults)):
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


def _gated(chance: Random, fleet: Fleet, waits: Sequence[tuple[str, Words]], faults: Sequence[Step]) -> Iterator[Step]:
    """What users do about cases that wait for them: approve most of them, and end the work on some nodes."""
    for name, words in waits:
        kind = KINDS["approve"] if gates.APPROVAL in words else KINDS["end-work"]
        for fault in faults:
            if fault["condition"] == KNOWN[name].condition and chance.random() < ANSWERED:
                _, drawn = kind.draw(chance, fleet)
                yield Step(fault.at, kind.name, fault.target, (*drawn, ("policy", name)))


def _gate_edits(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> Iterator[Step]:
    """Policies wait for something for a while, from when one of their cases may be under way."""
    acting = fleet._replace(policies=tuple(name for name in fleet.policies if name in ACTING))
    for fault in chance.sample(faults, EDITS):
        target, words = KINDS["edit-gates"].draw(chance, acting)
        at = min(LAST, fault.at + chance.uniform(0.0, REPAIR[1]))
        yield Step(round(at, 3), "edit-gates", target, words)


def _step(chance: Random, fleet: Fleet, kind: StepKind, faults: Sequence[Step]) -> Step:
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


def _in_vain(chance: Random, faults: Sequence[Step], kind: str, share: float) -> list[Step]:
    """The faults, of which nothing cures this kind and such a share of the others."""
    return [_incurable(step) if step["condition"] == kind or chance.random() < share else step for step in faults]


def _incurable(fault: Step) -> Step:
    return replace(fault, words=tuple((word, () if word == "cures" else value) for word, value in fault.words))


ON_THE_ILL: dict[str, Callable[[Random, Fleet, Sequence[Step]], Iterable[Step]]] = {
    parts.IMAGES: images.steps,
    parts.ENDLESS: endless.steps,
    parts.RETRIES: retries.steps,
    parts.DEVICES: devices.steps,
    parts.TWINS: _twins,
    parts.GATE_EDITS: _gate_edits,
}

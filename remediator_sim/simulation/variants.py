"""What is otherwise in some plans: Pods fill the GPUs, a zone is cut off, versions in common, gangs on many nodes,
other systems that work on nodes or hold their Leases, users who take nodes out, nodes that come anew behind a gate.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from random import Random
from typing import Any, NamedTuple

from remediator.core import gpu_operator
from remediator.core.quiet import QuietRule
from remediator_sim.invariants.contract import LEASE_SPACE
from remediator_sim.simulation import cluster, facts, testing
from remediator_sim.simulation.fault import ACTING, DRAINING
from remediator_sim.simulation.node import COUNTED, MIG_DEVICES, NodeModel
from remediator_sim.simulation.plan import Plan, Step, Words
from remediator_sim.simulation.reporters import when
from remediator_sim.simulation.requesters import SOURCES
from remediator_sim.simulation.steps import approvals, hands, leases, requests, signs, take_outs, wires
from remediator_sim.simulation.steps.kind import Fleet, StepKind

# In `shows` of a plan: Pods hold GPUs; nodes have a zone; nodes have one of two versions of the kernel and the driver;
# the gangs of three nodes are one, whose Pods hold GPUs; Pods of a monitor write what a policy is about.
GPUS, ZONES, VERSIONS, GANGS = "gpus", "zones", "versions", "gangs"
SIGNS, REPORTERS = "signs of other systems", "reporters"
REQUESTS = "requests of other controllers"  # other controllers ask for repairs by objects of their own kinds
NODE_LEASES = "Leases of nodes"  # another controller takes the Leases by which medik8s says who works where
TAKE_OUTS = "take-outs"  # users take nodes out for a time
HANDS = "hands on ours"  # somebody deletes Pods of ours, and empties a status
ALERTS = "alerts"  # replicas ask what fires, for policies that go by an alert
HANDED_OVER = "drains of another system"  # which drains nodes before a reboot
LEADERS = "two leaders"  # while nodes fall ill one after the other
# No seed draws these: nodes have operands of the GPU operator, MIG devices, detectors that count.
OPERANDS, MIG, COUNTS = "operands", "MIG", "counts"
IDLE_TESTS = "idle tests"  # policies test nodes whose GPUs nobody uses
NEIGHBOURS = "neighbours"  # gpu-check measures to idle nodes in the same rack
NEW_NODES = "new nodes"  # whoever takes the name of a node comes with a taint, and works once it is proven
# A policy acts on what is new in the release that runs; and policies are older than that release.
NEW_CRITERIA, UPGRADED = "checks that are new", "upgraded"
SHARES = {
    GPUS: 0.2,
    ZONES: 0.15,
    GANGS: 0.2,
    SIGNS: 0.2,
    REPORTERS: 0.12,
    NEW_NODES: 0.15,
    REQUESTS: 0.12,
    HANDS: 0.1,
    IDLE_TESTS: 0.15,
    NEIGHBOURS: 0.12,
    NODE_LEASES: 0.12,
    TAKE_OUTS: 0.15,
    NEW_CRITERIA: 0.12,
    VERSIONS: 0.1,
    LEADERS: 0.12,
    HANDED_OVER: 0.3,
}  # of the plans that have much at once, see parts.py
ZONE, DRIVER = "topology.kubernetes.io/zone", "nvidia.com/cuda.driver-version.full"
ZONE_NAMES, CUT_OFF_FOR = ("a", "b", "c"), (1500, 3000)  # seconds
UNREACHABLE = "node-unreachable"
OF_KUBELETS = ("Ready", "DiskPressure", "MemoryPressure")  # Conditions that no Pod writes
KERNELS, DRIVERS = ("6.8.0-40", "6.8.0-41"), ("570.1", "570.2")
COMPARED = (["kernelVersion"], ["driverVersion"], ["reason", "kernelVersion"], ["reason", "driverVersion"])
# So many nodes of one version, and so many of the other, fall ill together; so many get well soon, by themselves.
ALIKE, OTHERS, WELL, WITHIN = 5, 1, 3, "5m"
TOGETHER, WELL_AFTER = 40.0, (600.0, 900.0)  # seconds
# In some plans two replicas lead for a while, and so many more nodes fall ill meanwhile, one after the other.
MEANWHILE, EVERY = 5, 3.0
FREE = ((0, 0, 0, 1, 1, 2), (0, 0, 0, 1, 1, 2), (0, 0, 1, 2, 4))  # GPUs that nothing holds on a node, by plan
MOST = 4  # GPUs that one Pod asks for
WIDE = 3  # nodes that a gang has Pods on
# What one or two policies let a start end at most; a person approves most of what they hold.
BLASTS: tuple[dict[str, int], ...] = (
    {"jobs": 1},
    {"jobs": 2},
    {"gpuHours": 3},
    {"gpuHours": 8},
    {"jobs": 2, "gpuHours": 12},
)
APPROVED, NARROWED, UNLISTED = 0.6, 0.5, 0.7  # of the faults, and of these plans
NARROWED_FOR = (60, 600)  # seconds
# Nodes on which another system works, and whose reporters fall silent; so many seconds before or after they fall ill.
SIGNED, LEASED, SILENT, ABOUT = 3, 4, 2, (-60.0, 120.0)
# Nodes that others take the place of, after so many seconds; of these so many turn out to have a bad GPU.
GATE, PROBE, REPLACED, REPLACED_AFTER, BAD = "remediator.dev/unproven", "gpu-check", 3, 60, 0.4
ALERTMANAGER = "http://alertmanager.example"
ASKED = 2  # times that other controllers ask
INSTALLED_AFTER = (900.0, 1800.0)  # seconds later the machine is installed anew
# What is new, the policy that acts on it and how, for how long it is only shown, and how many nodes show it.
QUIET_POLICY, QUIET_CONDITION, QUIET_FOR = "nvml-hung", "NvmlHung", timedelta(minutes=40)
QUIET_LADDER: Words = (
    ("when", [{"condition": QUIET_CONDITION, "for": "2m"}]),
    ("ladder", [{"operation": "reboot", "attempts": 2}]),
    ("verify", {"settle": "5m", "fresh": "3m"}),
    ("urgency", None),
    ("correlation", None),
)
AFFECTED, UPGRADES = (2, 2, 5), 0.7
STALE_AFTER = ("0s", "0s", "10m")  # "0s": the Condition is written only when it changes


class Variant(NamedTuple):
    """What a plan has besides: see `specs` and `shows` of Plan."""

    shows: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    specs: tuple[tuple[str, Words], ...] = ()
    steps: tuple[Step, ...] = ()


def drawn_for(
    seed: int, fleet: Fleet, faults: Sequence[Step], begin: float, last: float, has: Collection[str]
) -> Variant:
    """What a plan has besides, by the names of its parts."""
    parts = [draw(Random(f"{name} {seed}"), fleet, faults, begin, last) for name, draw in DRAWN.items() if name in has]
    specs: dict[str, dict[str, object]] = {}
    for name, words in (pair for part in parts for pair in part.specs):
        specs.setdefault(name, {}).update(words)
    return Variant(
        tuple(word for part in parts for word in part.shows),
        tuple(name for part in parts for name in part.policies),
        tuple((name, tuple(words.items())) for name, words in specs.items()),
        tuple(step for part in parts for step in part.steps),
    )


def _full(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Policies that take a node only where its Pods find GPUs elsewhere, of which few are free."""
    acting = [name for name in fleet.policies if name in ACTING]
    asking = chance.sample(acting, chance.randint(1, max(1, len(acting) - 1)))
    return Variant((GPUS,), (), tuple((name, (("requireSpareGPUs", True),)) for name in asking))


def _zones(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """A zone that is cut off; in most of these plans nothing but that keeps its nodes from a power-cycle."""
    words = (
        ("label", ZONE),
        ("value", f"zone-{chance.choice(ZONE_NAMES)}"),
        ("seconds", chance.choice(CUT_OFF_FOR)),
    )
    step = Step(round(chance.uniform(begin, last), 3), "cut-off", "", words)
    alone = ((UNREACHABLE, (("correlation", None),)),) if chance.random() < 0.8 else ()
    return Variant((ZONES,), (UNREACHABLE,), alone, (step,))


def _versions(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Nodes of one version fall ill together; once most are well again, those that are not are repaired one by one."""
    draining = sorted(set(fleet.policies) & DRAINING)
    if not draining:
        return Variant()
    policy = chance.choice(draining)
    known = ACTING[policy]
    by_version = [[name for name in fleet.nodes if _place(name, KERNELS) == number] for number in (0, 1)]
    chance.shuffle(by_version)
    alike, others = (
        sorted(chance.sample(names, len(names)), key=lambda name: name in fleet.sick) for names in by_version
    )
    at = chance.uniform(begin, last / 2)
    words = (("condition", known.condition), ("cures", known.cures), ("tries", 1))
    ill = [
        Step(round(at + chance.uniform(0.0, TOGETHER), 3), "fault", name, words)
        for name in (*alike[:ALIKE], *others[:OTHERS])
    ]
    well = [Step(round(at + chance.uniform(*WELL_AFTER), 3), "heal", step.target) for step in ill[:WELL]]
    rule = {"nodes": 3, "within": WITHIN, "by": chance.choice(COMPARED)}
    return Variant((VERSIONS,), (), ((policy, (("correlation", rule),)),), (*ill, *well))


def _two_leaders(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Nodes fall ill every few seconds, and from the first case on two replicas lead for a while."""
    draining = sorted(set(fleet.policies) & DRAINING)
    if not draining:
        return Variant()
    known, at = ACTING[chance.choice(draining)], chance.uniform(begin, last)
    words = (("condition", known.condition), ("cures", known.cures), ("tries", 1))
    names = chance.sample(fleet.nodes, MEANWHILE)
    ill = [Step(round(at + EVERY * number, 3), "fault", name, words) for number, name in enumerate(names)]
    return Variant(steps=(*ill, Step(round(at, 3), "two-leaders", names[0])))


def _limited(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Gangs on three nodes, and policies that let a start end little of their work without an approval.

    In some of these plans such a policy lets nothing end for a while, and in most the leader cannot list the Pods of
    nodes for a while.
    """
    shown = {fault["condition"] for fault in faults}
    asking = [name for name in fleet.policies if name in ACTING and ACTING[name].condition in shown]
    if not asking:
        return Variant()
    chosen = chance.sample(asking, min(len(asking), chance.randint(1, 2)))
    steps = [step for name in chosen for step in _approvals(chance, fleet, faults, name)]
    if chance.random() < NARROWED:
        words = (("part", "maxBlastRadius"), ("value", {"jobs": 0}), ("seconds", chance.choice(NARROWED_FOR)))
        at = chance.choice(faults).at + chance.uniform(0.0, WELL_AFTER[0])
        steps.append(Step(round(at, 3), "edit-gates", chosen[0], words))
    if chance.random() < UNLISTED:
        at = chance.choice([fault.at for fault in faults if fault["condition"] == ACTING[chosen[0]].condition])
        steps.append(Step(at, wires.UNLISTED.name, *wires.UNLISTED.draw(chance, fleet)))
    limits = tuple((name, (("maxBlastRadius", chance.choice(BLASTS)),)) for name in chosen)
    return Variant((GANGS,), (), limits, tuple(steps))


def _approvals(chance: Random, fleet: Fleet, faults: Sequence[Step], policy: str) -> list[Step]:
    """A person approves the cases of most nodes that fall ill with what the policy is about."""
    (kind,) = approvals.KINDS
    ill = [fault for fault in faults if fault["condition"] == ACTING[policy].condition and chance.random() < APPROVED]
    return [
        Step(fault.at, kind.name, fault.target, (*kind.draw(chance, fleet).words, ("policy", policy))) for fault in ill
    ]


def _signs(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Another system works on some of the nodes that fall ill: before, or from a moment of the repair on."""
    chosen = chance.sample(faults, SIGNED)
    return Variant(steps=tuple(_about(chance, fleet, fault, signs.MAINTAIN) for fault in chosen))


def _node_leases(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Another controller takes Leases of nodes that fall ill: before, or from a moment of the repair on."""
    chosen = chance.sample(faults, LEASED)
    return Variant((NODE_LEASES,), steps=tuple(_about(chance, fleet, fault, leases.LEASE) for fault in chosen))


def _take_outs(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Users take out nodes that are ill, and others, most of which fall ill while they are out."""
    return Variant((TAKE_OUTS,), steps=take_outs.steps(chance, fleet, faults))


def _reporters(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """What one policy asks about is written by Pods of others, some of which are not Ready for a while."""
    shown = [fault["condition"] for fault in faults]
    acting = [name for name in fleet.policies if name in ACTING and ACTING[name].condition in shown]
    chosen = sorted(name for name in acting if ACTING[name].condition not in OF_KUBELETS)
    if not chosen:
        return Variant()
    policy = chance.choice(chosen)
    condition = ACTING[policy].condition
    about = [fault for fault in faults if fault["condition"] == condition]
    steps = [_about(chance, fleet, fault, signs.QUIET) for fault in chance.sample(about, min(SILENT, len(about)))]
    entry = ("when", when(condition, chance.choice(STALE_AFTER)))
    return Variant((REPORTERS,), (), ((policy, (entry,)),), tuple(steps))


def _new_nodes(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Nodes that others take the place of, in the middle of a case or not: they work once a probe has succeeded."""
    asking = [name for name in fleet.policies if name in ACTING and ACTING[name].condition not in OF_KUBELETS]
    if not asking:
        return Variant()
    steps = []
    for name in chance.sample(sorted({*fleet.sick, *fleet.nodes[:REPLACED]}), REPLACED):
        at = chance.uniform(begin, last)
        steps.append(Step(round(at, 3), "gone", name, (("seconds", REPLACED_AFTER),)))
        again = at + chance.uniform(*INSTALLED_AFTER)
        steps.append(Step(round(again, 3), "install", name, (("seconds", REPLACED_AFTER),)))
        if chance.random() < BAD:
            bad = (("fact", facts.GPU_WRONG), ("seconds", 3600))
            steps.append(Step(round(at + 2 * REPLACED_AFTER, 3), "hinder", name, bad))
    gate = {"probe": PROBE, "taint": GATE}
    return Variant((NEW_NODES,), (), ((chance.choice(asking), (("admit", gate),)),), tuple(steps))


def _requests(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Other controllers ask for repairs, of nodes that fall ill and of others."""
    kind = requests.REQUEST
    words = [kind.draw(chance, fleet) for _ in range(ASKED)]
    return Variant(
        (REQUESTS,),
        steps=tuple(Step(round(chance.uniform(begin, last), 3), kind.name, *drawn) for drawn in words),
    )


def _hands(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Three nodes that fall ill: a Pod of ours is deleted, finds no node, a status is emptied."""
    chosen = zip(hands.KINDS, chance.sample(faults, len(hands.KINDS)), strict=True)
    return Variant(
        (HANDS,),
        steps=tuple(Step(fault.at, kind.name, fault.target, kind.draw(chance, fleet).words) for kind, fault in chosen),
    )


def _idle_tests(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """One or two policies test nodes, and another one repairs what tests have found."""
    acting = [name for name in fleet.policies if name in ACTING]
    return Variant((IDLE_TESTS,), (cluster.TESTED,), testing.specs(chance, acting), testing.steps(chance, fleet, begin))


def _neighbours(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Users ask for checks of nodes, and something comes between while a neighbour is the other end."""
    return Variant((NEIGHBOURS,), steps=testing.checks(chance, fleet, begin, last))


def _handed_over(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """Another system drains nodes before a reboot."""
    return Variant((HANDED_OVER,))


def _new_criteria(chance: Random, fleet: Fleet, faults: Sequence[Step], begin: float, last: float) -> Variant:
    """A new release brings a check that some nodes fail, or many at once; most policies are older than the release."""
    names = chance.sample([name for name in fleet.nodes if name not in fleet.sick], chance.choice(AFFECTED))
    at = chance.uniform(begin, last / 2)
    words = (("condition", QUIET_CONDITION), ("cures", ("reboot",)), ("tries", 1))
    ill = [Step(round(at + chance.uniform(0.0, TOGETHER), 3), "fault", name, words) for name in names]
    shows = (NEW_CRITERIA, UPGRADED) if chance.random() < UPGRADES else (NEW_CRITERIA,)
    return Variant(shows, (QUIET_POLICY,), ((QUIET_POLICY, QUIET_LADDER),), tuple(ill))


def _about(chance: Random, fleet: Fleet, fault: Step, kind: StepKind) -> Step:
    """A step on the node of a fault: about then, or waiting for its moment from then on."""
    words = kind.draw(chance, fleet).words
    at = max(0.0, fault.at - 1.0) if dict(words)["moment"] else max(0.0, fault.at + chance.uniform(*ABOUT))
    return Step(round(at, 3), kind.name, fault.target, words)


DRAWN = {
    GPUS: _full,
    ZONES: _zones,
    VERSIONS: _versions,
    LEADERS: _two_leaders,
    GANGS: _limited,
    SIGNS: _signs,
    REPORTERS: _reporters,
    NEW_NODES: _new_nodes,
    REQUESTS: _requests,
    HANDS: _hands,
    IDLE_TESTS: _idle_tests,
    NEIGHBOURS: _neighbours,
    NODE_LEASES: _node_leases,
    TAKE_OUTS: _take_outs,
    NEW_CRITERIA: _new_criteria,
    HANDED_OVER: _handed_over,
}


# --- what a node shows -----------------------------------------------------------------------------------------------


def _place(name: str, values: Sequence[str]) -> int:
    return sum(name.encode()) % len(values)


def labels(plan: Plan, name: str) -> dict[str, str]:
    """The labels that a node has besides."""
    shown = {ZONES: (ZONE, f"zone-{ZONE_NAMES[_place(name, ZONE_NAMES)]}"), VERSIONS: (DRIVER, _of(name, DRIVERS))}
    return dict(shown[word] for word in plan.shows if word in shown)


def furnish(plan: Plan, node: NodeModel) -> None:
    """Give a node with GPUs what only some plans have."""
    if OPERANDS in plan.shows:
        node.operands = gpu_operator.OPERANDS
        node.labels |= dict.fromkeys(node.operands, "true")
    if MIG in plan.shows:
        node.mig = MIG_DEVICES
    if COUNTS in plan.shows:
        node.counts = dict(COUNTED)
    if NEIGHBOURS in plan.shows:
        node.address = f"10.0.0.{1 + plan.nodes.index(node.name) % 250}" if node.name in plan.nodes else ""


def kernel(plan: Plan, name: str) -> str:
    """The version of the kernel of a node, "" where nobody asks."""
    return _of(name, KERNELS) if VERSIONS in plan.shows else ""


def settings(plan: Plan) -> dict[str, Any]:
    """What the replicas are started with besides."""
    given: dict[str, dict[str, Any]] = {
        REQUESTS: {"requests_from": SOURCES},
        NODE_LEASES: {"node_leases": LEASE_SPACE},
        ALERTS: {"alertmanager_url": (ALERTMANAGER,)},
        NEW_CRITERIA: {"quiet": quiet(plan)},
    }
    return {name: value for word in plan.shows for name, value in given.get(word, {}).items()}


def quiet(plan: Plan) -> QuietRule:
    """For how long policies only show what is new."""
    return QuietRule(QUIET_FOR) if NEW_CRITERIA in plan.shows else QuietRule()


def on_change(plan: Plan) -> set[str]:
    """The Conditions that are written only when they change."""
    if REPORTERS not in plan.shows:
        return set()
    clauses = (clause for _, words in plan.specs for clause in dict(words).get("when", ()))
    return {clause["condition"] for clause in clauses if clause.get("staleAfter") == "0s"}


def _of(name: str, values: Sequence[str]) -> str:
    return values[_place(name, values)]


def gpus_of_pods(plan: Plan, node: str, pods: int) -> list[int]:
    """How many GPUs each of so many Pods of a node holds, and those of as many Pods more as fill it but a few GPUs."""
    chance = Random(f"gpus {plan.seed} {node}")
    if GPUS not in plan.shows:
        return [chance.choice((0, 1, 2)) if GANGS in plan.shows else 0 for _ in range(pods)]
    left = 8 - chance.choice(Random(f"free {plan.seed}").choice(FREE))
    sizes: list[int] = []
    while len(sizes) < pods or left:
        sizes.append(min(left, chance.choice((1, 2, MOST))))
        left -= sizes[-1]
    return sizes


def gang(plan: Plan, node: str) -> str:
    """The name of the gang that has Pods on a node: its own, or in some plans that of three nodes."""
    place = plan.nodes.index(node) // WIDE if GANGS in plan.shows else node
    return f"job-{place}"

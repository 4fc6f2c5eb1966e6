"""Small plans, played in virtual time and on a real control plane: both have to end alike."""

from dataclasses import replace

from remediator_sim.simulation.node import RACK
from remediator_sim.simulation.plan import Plan, Step

NODES = ("gpu-01", "gpu-02", "gpu-03")
LOST = (("condition", "GpuLost"), ("cures", ("reboot",)), ("tries", 1))
HUNG = (("condition", "UnkillableProcess"), ("cures", ("reboot",)), ("tries", 1))
HOPELESS = (("condition", "UnkillableProcess"), ("cures", ()), ("tries", 1))


def _plan(*steps: Step, most: int = 2, policy: str = "gpu-lost", until: float = 400.0) -> Plan:
    budgets = (("fleet", (("maxUnavailable", most),)),)
    return Plan(7, NODES, ((policy, "Enforce"),), budgets, steps, until)


def _fault(node: str, words: tuple[tuple[str, object], ...] = LOST, at: float = 60.0) -> Step:
    return Step(at, "fault", node, words)


def _while(phase: str, kind: str, target: str, **words: object) -> Step:
    """Something that happens while the case of the first node is in this phase."""
    return Step(60.0, kind, target, (("case", ("gpu-01", phase)), *words.items()))


def _guard(node: str, seconds: float) -> Step:
    """A Pod of a user that a PodDisruptionBudget holds there."""
    return Step(1.0, "guard", node, (("seconds", seconds),))


def _racked(*steps: Step) -> Plan:
    """Nodes of which the last two stand in one rack; of each rack one may be out of service."""
    plan = _plan(*steps, until=1000.0)
    budgets = (("fleet", (("maxUnavailable", 1), ("groupBy", RACK))),)
    return replace(plan, nodes=("gpu-01", "gpu-02", "gpu-05"), budgets=budgets)


def _alike(*steps: Step) -> Plan:
    """Three nodes that lose a GPU for the same reason have one cause; of another policy is a fault of the fourth."""
    plan = _plan(*steps, most=4, until=1000.0)
    specs = (("gpu-lost", (("correlation", {"nodes": 3, "within": "10m"}),)),)
    return replace(
        plan, nodes=(*NODES, "gpu-04"), policies=(*plan.policies, ("unkillable-process", "Enforce")), specs=specs
    )


PLANS = {
    "a reboot cures two nodes under a budget of one": _plan(
        _fault("gpu-01"), _fault("gpu-02", at=240.0), most=1, until=1000.0
    ),
    "nothing cures it": _plan(_fault("gpu-01", HOPELESS), policy="unkillable-process"),
    "a budget of Pods holds the drain": _plan(_fault("gpu-01"), _guard("gpu-01", 240.0)),
    "the leader is killed in mid-case": _plan(
        _fault("gpu-01"), _while("Operating", "crash", "leader", how="now", part="", back=20)
    ),
    "a user excludes the node in mid-case": _plan(
        _fault("gpu-01"), _guard("gpu-01", 120.0), _while("Draining", "exclude", "gpu-01", seconds=400)
    ),
    "of each rack one node is repaired at a time": _racked(
        _fault("gpu-01"), _fault("gpu-02", at=120.0), _fault("gpu-05", at=300.0)
    ),
    "three nodes that show the same are left alone and a fourth one is repaired": _alike(
        *(_fault(node) for node in NODES),
        *(Step(60.0, "heal", node, (("case", ("gpu-04", "Operating")),)) for node in NODES),
        _fault("gpu-04", HUNG),
    ),
    "its policy is deleted in mid-case and made again": _plan(
        _fault("gpu-01"), _while("Operating", "delete-policy", "gpu-lost", mode="", seconds=1200), until=2000.0
    ),
}

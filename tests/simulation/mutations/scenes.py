"""Plans made for mutations that hardly any seed finds: each mutation by its name, and a plan that shows it.

The product as it is breaks none in them.
"""

from typing import Any

from remediator_sim.simulation import facts, variants
from remediator_sim.simulation.plan import Plan, Step
from remediator_sim.simulation.reporters import when
from tests.simulation.scenario import NODES, a_plan, during, fault, heal

FLEET = tuple(f"gpu-{number:02}" for number in range(1, 21))
ALL = (("fleet", (("maxUnavailable", "100%"), ("maxQuarantined", "100%"))),)
ALONE = ("correlation", None)  # what many nodes have in common holds nobody
SOON = ("verify", {"settle": "1m", "fresh": "3m", "timeout": "5m"})


def lost(**more: Any) -> Step:
    return fault("GpuLost", "reboot", **more)


def many(
    *nodes: str, every: float = 1.0, condition: str = "GpuLost", cures: tuple[str, ...] = ("reboot",)
) -> list[Step]:
    """Nodes that fall ill one after the other."""
    return [fault(condition, *cures, node=node, at=60.0 + every * number) for number, node in enumerate(nodes)]


def of_budget(*words: tuple[str, Any]) -> dict[str, Any]:
    return {"budgets": (("fleet", words),)}


def says(*words: tuple[str, Any], **more: Any) -> Plan:
    """A node falls ill, and its policy says this besides."""
    return a_plan(lost(), policies=("gpu-lost",), specs=(("gpu-lost", words),), **more)


def unheard(stop: str, moment: str = "claim") -> Plan:
    """Something stops the repair just after the leader's watch of it fell silent: a moment after its last bookmark."""
    words = (("moment", moment), ("stop", stop), ("seconds", 600))
    return a_plan(lost(at=61.0), Step(61.0, "unheard", "gpu-01", words), policies=("gpu-lost",))


def killed_between(stop: str, moment: str = "claim") -> Step:
    return Step(60.0, "killed-between", "gpu-01", (("moment", moment), ("stop", stop), ("seconds", 600)))


def all_dead(phase: str, seconds: float) -> list[Step]:
    """No replica runs for a while."""
    return [during(phase, "crash", name, at=200.0, how="now", part="", back=seconds) for name in ("A", "B")]


def flaps(times: int) -> Step:
    return Step(60.0, "flap", "gpu-01", (("condition", "GpuLost"), ("times", times)))


def large(*steps: Step, **more: Any) -> Plan:
    """Twenty nodes, of which all may be out of service at once."""
    usual: dict[str, Any] = {"nodes": FLEET, "budgets": ALL, "specs": (("gpu-lost", (ALONE,)),)}
    return a_plan(*steps, policies=("gpu-lost",), **usual | more)


OF_KERNEL = tuple(name for name in NODES if variants._of(name, variants.KERNELS) == variants.KERNELS[0])
OF_DRIVER = tuple(name for name in NODES if variants._of(name, variants.DRIVERS) == variants.DRIVERS[0])
# Nine nodes that nothing cures, and three more once four of these have gone to a person.
INCURABLE = many(*FLEET[:9], every=240.0, cures=()) + [fault("GpuLost", node=node, at=5000.0) for node in FLEET[9:12]]


def compared(by: str, nodes: tuple[str, ...]) -> Plan:
    rule = ("correlation", {"nodes": 3, "within": "10m", "by": [by]})
    return a_plan(
        *many(*nodes), policies=("gpu-lost",), budgets=ALL, specs=(("gpu-lost", (rule,)),), shows=(variants.VERSIONS,)
    )


def comes_back(recurrence: tuple[tuple[str, Any], ...]) -> Plan:
    """What a reset cures comes back after a quarter of an hour."""
    again = fault("GpuXid", "reset-gpu", "reboot", returns=2, after=900)
    return a_plan(again, policies=("gpu-xid",), recurrence=(*recurrence, ("cooldown", "0s")), until=9000.0)


def limited(*steps: Step) -> Plan:
    """Nothing that runs may end."""
    words = (("maxBlastRadius", {"jobs": 0}),)
    return a_plan(
        *many(*NODES[:4], every=30.0),
        *steps,
        policies=("gpu-lost",),
        specs=(("gpu-lost", (*words, ALONE)),),
        jobs=True,
        shows=(variants.GANGS,),
    )


def asked(*steps: Step, by: str = "NodeHealthCheck", patience: float = 3600.0, released: float = 0.0) -> Plan:
    """Another controller asks for a reboot."""
    words = (("by", by), ("template", "reboot"), ("patience", patience), ("released", released))
    step = Step(60.0, "request", "gpu-01", words)
    return a_plan(step, *steps, policies=("gpu-lost",), shows=(variants.REQUESTS,), until=6000.0)


LADDER = [{"operation": name, "attempts": 1} for name in ("reboot", "reset-gpu", "cordon")]
EXCLUDED = Step(30.0, "exclude", "gpu-01", (("seconds", 6000),))
IN_THREE_MINUTES = {"cron": "3 9 * * *", "duration": "1h", "timeZone": "UTC"}
TESTED = ("idleTest", {"probe": "gpu-check", "share": 2, "window": IN_THREE_MINUTES})
STUCK = Step(170.0, "stuck", "gpu-01", (("seconds", 9000),))


# The leader learns late which tests there are, and of no Pod, while another one leads.
LISTED_LATE = (("what", "late"), ("count", 1), ("seconds", 12.0), ("methods", ("GET",)), ("part", "operations/pods"))
TWO_LEADERS = (
    lost(at=64.0),
    Step(177.5, "lag", "leader", (("part", "pods"), ("seconds", 30.0))),
    Step(178.0, "two-leaders", "gpu-01"),
    Step(179.0, "lost", "leader", LISTED_LATE),
)


def of_tests(*steps: Step, shows: tuple[str, ...] = (variants.IDLE_TESTS,)) -> Plan:
    """Two of seven idle nodes are tested at once, from three minutes after the begin on."""
    specs = (("gpu-lost", (TESTED,)),)
    return a_plan(*steps, policies=("gpu-lost",), specs=specs, shows=shows, until=6000.0)


CHECK = (("template", "gpu-check"), ("deleted", 0))


def of_neighbours(*steps: Step) -> Plan:
    """A user has a node checked, which measures to two neighbours."""
    ask = Step(60.0, "ask", "gpu-01", CHECK)
    return a_plan(ask, *steps, policies=("gpu-lost",), shows=(variants.NEIGHBOURS,), until=4000.0)


def brings(nodes: int, *shows: str) -> Plan:
    """A release brings a check that so many of seven nodes fail."""
    ill = many(*NODES[:nodes], condition=variants.QUIET_CONDITION)
    specs = ((variants.QUIET_POLICY, variants.QUIET_LADDER),)
    shown = (variants.NEW_CRITERIA, *shows)
    return a_plan(*ill, policies=(variants.QUIET_POLICY,), specs=specs, shows=shown, until=4000.0)


def out(*steps: Step, seconds: int = 600, back: int = 0, until: float = 4000.0, **more: Any) -> Plan:
    """A user takes a node out for so long, and puts it back so many seconds later; 0: never."""
    words = (("seconds", seconds), ("back", back), *more.items())
    return a_plan(Step(60.0, "take-out", "gpu-01", words), *steps, policies=("gpu-lost",), until=until)


SCENES: dict[str, Plan] = {
    "a node that is out is given back when its time is over": out(),
    "a take-out whose time is over begins": out(Step(30.0, "edit-budget", "fleet", (("most", 0), ("seconds", 900)))),
    "what keeps a node out is tried again": out(seconds=3000, retry=900),
    "nobody is told that a take-out is overdue": out(),
    "a node is given back after its drain though its user keeps it": out(),
    "ledgers do not say who is quarantined": out(),
    "more idle nodes are tested than the share": of_tests(),
    "tests of idle nodes have new names": of_tests(*TWO_LEADERS),
    "what is new is acted on at once": brings(2, variants.UPGRADED),
    "what is new on many nodes is believed": brings(5),
    "more neighbours are taken than the template says": of_neighbours(
        *(Step(70.0 + 5 * number, "ask", name, CHECK) for number, name in enumerate(("gpu-02", "gpu-03")))
    ),
    "a Pod on a neighbour stays": of_neighbours(
        *(Step(30.0, "stuck", name, (("seconds", 9000),)) for name in NODES if name != "gpu-01")
    ),
    "a test begins on any node": of_tests(Step(100.0, "cordon", "gpu-01", (("seconds", 3000),))),
    "a test begins beside Pods that hold GPUs": of_tests(shows=(variants.IDLE_TESTS, variants.GPUS)),
    "a repair does not wait for a test that stays": of_tests(STUCK, lost(at=230.0)),
    "a test whose time is over stays": of_tests(STUCK),
    "a test that cannot tell has failed": of_tests(
        Step(1.0, "hinder", "gpu-01", (("fact", facts.NVML_MISSING), ("seconds", 3000)))
    ),
    "a test of another boot proves something": of_tests(
        *(Step(212.0, "crash", name, (("how", "now"), ("part", ""), ("back", 300))) for name in ("A", "B")),
        *(Step(300.0, "down", name, (("seconds", 60),)) for name in NODES),
    ),
    "a test that has passed is told as failed": of_tests(),
    "a fault is acted on at once": a_plan(lost(), policies=("gpu-lost",)),
    "cases are admitted in the order of their names": a_plan(
        lost(),
        lost(node="gpu-07", at=70.0),
        lost(node="gpu-02", at=200.0),
        policies=("gpu-lost",),
        specs=(("gpu-lost", (ALONE,)),),
        **of_budget(("maxUnavailable", 1)),
    ),
    # Without evidence a case would be held where it has recovered, by the row for a case that is stopped before it.
    "case table, diagnosed=False -> DIAGNOSE: no row": a_plan(
        fault("UnkillableProcess", "reboot"),
        during("Verifying", "exclude", seconds=6000),
        policies=("unkillable-process",),
        until=6000.0,
    ),
    "cooldowns are over at once": a_plan(
        fault("GpuXid", "reset-gpu", "reboot", returns=1, after=400), policies=("gpu-xid",)
    ),
    "what an operation covers is tried all the same": a_plan(
        fault("GpuXid"), policies=("gpu-xid",), specs=(("gpu-xid", (("ladder", LADDER),)),), until=6000.0
    ),
    "outside table, released=False -> NOTHING: no row": asked(by="NVSentinel", released=600.0),
    "outside table, answered=UNDER_WAY -> GONE: no row": asked(during("Draining", "delete-operation")),
    "outside table, deleting=True held=True -> LET_GO: no row": asked(),
    "outside table, withdrawn=True operation=OPEN -> TAKE_BACK: no row": asked(EXCLUDED, patience=300.0),
    "DryRun holds nothing": a_plan(lost(), policies=("gpu-lost",), mode="DryRun"),
    "a pause is not read live": unheard("pause"),
    "PolicyPaused holds nothing": a_plan(lost(), policies=("gpu-lost",), mode="Paused"),
    "ApprovalNeeded holds nothing": says(("approval", "Required")),
    "WaitingForIdle holds nothing": says(("urgency", {"mode": "WhenIdle", "deadline": "None"})),
    "quarantine has no ceiling": a_plan(
        fault("GpuLost"),
        lost(node="gpu-02", at=5000.0),
        policies=("gpu-lost",),
        until=7000.0,
        **of_budget(("maxUnavailable", 3), ("maxQuarantined", 1)),
    ),
    "entries of standing claims are not made": a_plan(
        fault("GpuLost"), Step(4000.0, "delete-budget", "", (("seconds", 2),)), policies=("gpu-lost",), until=9000.0
    ),
    "the Lease of a silent kubelet is not watched": a_plan(
        fault("Ready", "power-cycle", status="Unknown", renews=2400), policies=("node-unreachable",)
    ),
    "claims and ledgers are written whatever their version": large(
        *many(*FLEET, every=0.7), Step(178.0, "two-leaders", "gpu-01")
    ),
    "marks of cases that are gone stay": a_plan(lost(), killed_between("strip"), policies=("gpu-lost",)),
    "the breaker of a budget never opens": large(
        *many(*FLEET[:4], every=5.0), **of_budget(("maxUnavailable", 5), ("breaker", {"starts": 2, "window": "30m"}))
    ),
    "the breaker of a budget counts no starts": large(
        *many(*FLEET[:4], every=5.0), **of_budget(("maxUnavailable", 5), ("breaker", {"starts": 2, "window": "30m"}))
    ),
    "the breaker of a budget goes by no failures": large(
        *INCURABLE,
        until=6000.0,
        **of_budget(
            ("maxUnavailable", "100%"), ("maxQuarantined", "100%"), ("breaker", {"failures": {"of": 4, "most": 2}})
        ),
    ),
    "reporters that are silent are believed": a_plan(
        Step(30.0, "quiet-reporter", "gpu-01", (("moment", ""), ("seconds", 1500))),
        lost(),
        policies=("gpu-lost",),
        specs=(("gpu-lost", (("when", when("GpuLost", "0s")),)),),
        shows=(variants.REPORTERS,),
    ),
    "a second source that does not agree holds nothing": a_plan(
        Step(30.0, "second-source", "", (("mode", "denies"), ("seconds", 1500))),
        lost(),
        policies=("gpu-lost",),
        confirmed=("gpu-lost",),
    ),
    "an answer with a warning is a verdict": a_plan(
        Step(30.0, "second-source", "", (("mode", "warns"), ("seconds", 1500))),
        lost(),
        policies=("gpu-lost",),
        confirmed=("gpu-lost",),
    ),
    "nodes of a former group are repaired together": a_plan(
        *many(*NODES[:5]),
        *(heal(node, 700.0) for node in NODES[:3]),
        policies=("gpu-lost",),
        budgets=ALL,
        specs=(("gpu-lost", (("correlation", {"nodes": 3, "within": "10m", "by": ["reason"]}),)),),
    ),
    "the version of the kernel is not compared": compared("kernelVersion", OF_KERNEL),
    "the version of the driver is not compared": compared("driverVersion", OF_DRIVER),
    "more may end than a policy lets end": limited(),
    "nobody waits for a look at what ends": limited(),
    "what nobody can tell of ends nothing": limited(Step(50.0, "unlisted", "leader", (("seconds", 3000),))),
    "PolicyFailing holds nothing": large(*INCURABLE, until=9000.0),
    "ControlPlane holds nothing in the middle of a case": unheard("join-control-plane"),
    "no stop stops the middle of a case": unheard("exclude"),
    "no second look at what stops before a Pod": unheard("exclude", "intent"),
    "CREATE_POD is not looked at again": unheard("exclude", "intent"),
    "every operation of a case is its attempt": a_plan(
        lost(), Step(60.0, "forge", "gpu-01", (("moment", "claim"), ("template", "reboot"))), policies=("gpu-lost",)
    ),
    "a relapse starts with the first rung": comes_back((("relapse", {"window": "72h"}),)),
    "no relapse and no lemon is known": comes_back((("lemon", {"cases": 1, "window": "72h"}),)),
    "the breaker never opens": large(*many(*FLEET[:14])),
    "the breaker counts one start": large(*many(*FLEET[:14])),
    "the breaker counts the last minute only": large(*many(*FLEET[:14], every=20.0)),
    "the breaker counts the first attempt of a case only": large(
        *many(*FLEET[:8], cures=()), specs=(("gpu-lost", (ALONE, SOON)),)
    ),
    "who has the wrong time leads": a_plan(
        Step(30.0, "replica-clock", "A", (("ahead", 600), ("seconds", 3000))),
        Step(30.0, "replica-clock", "B", (("ahead", 600), ("seconds", 3000))),
        lost(),
        policies=("gpu-lost",),
    ),
    "time in which nobody led counts": a_plan(
        lost(),
        during("Operating", "stuck", seconds=6000),
        *all_dead("Operating", 2400),
        policies=("gpu-lost",),
        until=6000.0,
    ),
    "ticket table CREATING, issue=OPEN -> TAKE_OVER: no row": a_plan(
        lost(),
        Step(61.0, "github-lost", "POST", (("what", "no answer"), ("count", 1))),
        policies=("gpu-lost",),
        tickets=(("gpu-lost", "Always"),),
    ),
    "a node that recovers by itself has all attempts left": a_plan(
        flaps(2),
        lost(at=2400.0),
        policies=("gpu-lost",),
        until=6000.0,
        recurrence=(("attempts", {"max": 2, "window": "168h"}), ("cooldown", "0s")),
    ),
}

"""Fences of what only some plans have: spare GPUs, zones, what nodes have in common, windows, limits of what ends."""

from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

from remediator import windows
from remediator.controller import case_proof, case_view
from remediator.controller.idle_tests import IdleTests
from remediator.controller.node_leases import NodeLeases
from remediator.core import (
    admission,
    blast_radius,
    correlation,
    dead_node,
    idle_test,
    keep_out,
    neighbour,
    new_node,
    node_lease,
    quiet,
    quiet_hold,
)
from remediator.core.idle_test import IdleEnd
from remediator.core.node_lease import LeaseStep
from remediator.core.reasons import Reason
from remediator.core.spare import SpareGpus
from remediator.core.window import Closed
from tests.simulation.mutations.patch import Patch, Patches, answers, everywhere, nothing, sets, wraps


def _an_hour_later(before: Any, *asked: Any) -> Any:
    shut = before(*asked)
    return replace(shut, until=shut.until + timedelta(hours=1)) if isinstance(shut, Closed) else shut


def _known(before: Any, seen: Any, limit: Any) -> bool:
    return not seen.unknown and before(seen, limit)


def _all_of_it(before: Any, self: SpareGpus, node: str, resource: str) -> int:
    return max(before(self, node, resource), 8)


def _nobody_looks(held: Any, limit: Any, seen: Any, now: Any) -> blast_radius.RadiusVerdict:
    return blast_radius.RadiusVerdict((), False, seen)


def _asks_for_no_probe(before: Any, case: Any, policy: Any) -> Any:
    ruling = before(case, policy)
    return replace(ruling, verify=replace(ruling.verify, probe="")) if ruling is not policy and ruling else ruling


def _nobody_holds(before: Any, node: Any, standing: Any, template: Any) -> str:
    return str(before(node, standing._replace(held=False), template))


def _more_names(before: Any, template: str, at_once: int, taken: Any) -> list[str]:
    return [neighbour.slot(template, len(taken) + number) for number in range(2)]


def _never_taken_back(*asked: Any) -> None:
    return None


def _tests_stay_beside_repairs() -> list[Patch]:
    waits = Patch(idle_test, "holds_up", lambda tests, now: False)
    return [waits, Patch(IdleTests, "_taken_back", _never_taken_back)]


def _never_back(before: Any, *asked: Any) -> LeaseStep:
    step: LeaseStep = before(*asked)
    return LeaseStep.NOTHING if step is LeaseStep.GIVE_BACK else step


def _over_is_over(case: Any, now: Any) -> Reason | None:
    late = case.keep_out is not None and keep_out.overdue(case.keep_out, now)
    return Reason.TAKE_OUT_OVERDUE if late else None


def _always_tries(before: Any, view: Any, *asked: Any) -> Any:
    return replace(before(view, *asked), retry=view.case.wants_retry)


def _tells_nothing(before: Any, *asked: Any) -> Any:
    return replace(before(*asked), untold=False)


def _failed(before: Any, node: Any, tested: Any, cases: Any, *, asked: bool) -> Any:
    return before(node, tested and replace(tested, passed=False), cases, asked=asked)


def _new_test_names() -> list[Patch]:
    """Each test has a name that none has had."""
    numbers = count()
    return [Patch(idle_test, "slot", lambda policy, number: f"idle-test-{policy}-{next(numbers)}")]


FENCES: tuple[tuple[str, Patches], ...] = (
    ("spare GPUs are not counted", sets(admission, "_spare", lambda *asked: ())),
    ("GPUs that Pods hold are free", wraps(SpareGpus, "free", _all_of_it)),
    ("a zone that is cut off is not seen", answers(dead_node.Zone, "cut_off", False)),
    ("nodes of a former group are repaired together", sets(admission, "_one_by_one", lambda *asked: ())),
    ("the version of the kernel is not compared", lambda: everywhere(correlation.KERNEL, "not compared")),
    ("the version of the driver is not compared", lambda: everywhere(correlation.DRIVER, "not compared")),
    ("more may end than a policy lets end", lambda: everywhere(blast_radius.exceeds, lambda seen, limit: False)),
    ("what nobody can tell of ends nothing", wraps(blast_radius, "exceeds", _known)),
    ("nobody waits for a look at what ends", lambda: everywhere(blast_radius.verdict, _nobody_looks)),
    ("only the Pods on the node are of a job", lambda: everywhere(blast_radius.spread, lambda *asked: set())),
    ("more idle nodes are tested than the share", answers(idle_test, "allowed", 100)),
    ("tests of idle nodes have new names", _new_test_names),
    ("more neighbours are taken than the template says", wraps(neighbour, "free_slots", _more_names)),
    ("a Pod on a neighbour stays", answers(neighbour, "gives_way", "")),
    ("a test begins on any node", answers(idle_test, "obstacle", "")),
    ("a test begins beside Pods that hold GPUs", wraps(idle_test, "obstacle", _nobody_holds)),
    ("a repair does not wait for a test that stays", _tests_stay_beside_repairs),
    ("a test whose time is over stays", sets(IdleTests, "_taken_back", _never_taken_back)),
    ("a test that cannot tell has failed", sets(idle_test, "_SAID", {**idle_test._SAID, 2: IdleEnd.FAILED})),
    ("a test of another boot proves something", sets(IdleTests, "_end_of", lambda self, pod: idle_test.end_of(pod))),
    ("a test that has passed is told as failed", wraps(idle_test, "condition", _failed)),
    ("what is new is acted on at once", lambda: everywhere(quiet_hold.holding, lambda *asked: None)),
    ("what is new on many nodes is believed", sets(quiet, "_many", lambda *asked: False)),
    ("a new node works without a probe", wraps(new_node, "ruling", _asks_for_no_probe)),
    ("another machine works without a probe", answers(new_node, "closing", ())),
    ("the Lease of another is taken over", answers(node_lease, "valid", False)),
    ("no Lease is taken before a node is", sets(NodeLeases, "take", nothing)),
    ("our Lease stays once its case is over", wraps(node_lease, "step_of_lease", _never_back)),
    ("a node that is out is given back when its time is over", sets(keep_out, "too_late", _over_is_over)),
    ("a take-out whose time is over begins", sets(keep_out, "too_late", lambda case, now: None)),
    ("what keeps a node out is tried again", wraps(case_view, "offer_of", _always_tries)),
    ("nobody is told that a take-out is overdue", wraps(case_view, "offer_of", _tells_nothing)),
    ("a node is given back after its drain though its user keeps it", answers(case_proof, "keeps_node", False)),
    ("a window opens an hour later than is said", wraps(windows, "shut", _an_hour_later)),
)

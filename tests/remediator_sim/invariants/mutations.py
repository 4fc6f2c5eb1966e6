"""For each invariant a small change of the product that breaks it: what the observer must then find.

`needs` says what has to happen for it to show. Nothing here is ever imported by the product.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from remediator.controller import case_view, marks, perform, pods
from remediator.core import breaker, judgement, ledger_fold, names, ticket
from remediator.core import health as core_health
from remediator.core.case import Case, Diagnosis, Phase
from remediator.core.health import Health
from remediator.core.ladder import Next
from remediator.core.node import Status
from remediator.kube.api import decode, encode
from remediator.scheduler import extender


class Patch(NamedTuple):
    """One name of one module or class, and what stands there instead."""

    owner: Any
    name: str
    value: Any


class Mutation(NamedTuple):
    """One broken product. `patches` makes them when asked, in a process in which the controller has not started."""

    invariant: str
    says: str
    needs: str
    patches: Callable[[], Sequence[Patch]]

    def apply(self) -> None:
        """Break this process."""
        for patch in self.patches():
            setattr(patch.owner, patch.name, patch.value)


def _full_budgets_admit() -> list[Patch]:
    return [Patch(ledger_fold, "_refusal", lambda *asked: ())]


def _pods_have_random_names() -> list[Patch]:
    def pod_name(operation: Any) -> str:
        return names.name(operation.node, operation.template, operation.uid, secrets.token_hex())

    return [Patch(pods, "pod_name", pod_name)]


def _unknown_is_bad() -> list[Patch]:
    before = core_health.clause_health

    def health(node: Any, clause: Any, now: Any) -> Health:
        found = node.conditions.get(clause.condition)
        return Health.UNHEALTHY if found and found.status is Status.UNKNOWN else before(node, clause, now)

    return [Patch(owner, "clause_health", health) for owner in (core_health, judgement)]


def _breaker_never_opens() -> list[Patch]:
    return [Patch(breaker.Breaker, "opened", lambda breaker, recent: None)]


def _pause_is_not_heard() -> list[Patch]:
    async def paused(performer: Any) -> bool:
        return False

    return [Patch(perform.Performer, "paused", paused), Patch(decode, "paused", lambda space: False)]


def _release_forgets_the_taint() -> list[Patch]:
    def release(case: Case, *_: object) -> Callable[[Any], Mapping[str, Any] | None]:
        return lambda node: encode.node_marks(node, node.taints, annotations={names.HANDLED: case.name})

    return [Patch(marks, "release", release), Patch(marks, "marked", lambda node, case: case.name not in node.handled)]


def _taints_of_people_go() -> list[Patch]:
    before = encode.node_marks

    def node_marks(node: Any, taints: Any, **more: Any) -> encode.Body:
        return before(node, [taint for taint in taints if taint.key.startswith(names.GROUP)], **more)

    return [Patch(encode, "node_marks", node_marks)]


def _what_was_known_is_forgotten() -> list[Patch]:
    """Of a case that stood before the controller started nothing is known until it is written."""
    before, begin, first = decode.remediation_case, perform.Performer.__init__, dict[str, str]()

    def remediation_case(wire: Any) -> Case:
        case = before(wire)
        if first.setdefault(case.uid, case.version) != case.version or case.ended:
            return case
        fresh: dict[str, Any] = {"phase": Phase.NEW, "attempts": (), "timeline": (), "started": None, "evidence": None}
        return replace(case, **fresh, diagnosis=Diagnosis.PENDING)

    def start(performer: Any, *arguments: Any) -> None:
        first.clear()
        begin(performer, *arguments)

    return [Patch(decode, "remediation_case", remediation_case), Patch(perform.Performer, "__init__", start)]


def _the_ladder_has_no_end() -> list[Patch]:
    def next_rung(policy: Any, case: Case, *rest: Any) -> Next:
        return Next(case.rung, len(case.attempts) + 1)

    return [Patch(case_view, "next_rung", next_rung)]


def _tickets_have_random_names() -> list[Patch]:
    return [Patch(ticket.Subject, "name", property(lambda subject: names.name("some", "ticket", secrets.token_hex())))]


def _a_node_is_left_out() -> list[Patch]:
    before = extender.Extender.filter

    def filter_(self: Any, body: bytes) -> bytes:
        said = json.loads(before(self, body))
        return json.dumps(said | {"NodeNames": said["NodeNames"][1:] if said["NodeNames"] else None}).encode()

    return [Patch(extender.Extender, "filter", filter_)]


MUTATIONS: dict[str, Mutation] = {
    "I1": Mutation(
        "I1",
        "A spent budget refuses nobody.",
        "More nodes of one budget must fail at once, by a lost GPU say, than it lets be unavailable.",
        _full_budgets_admit,
    ),
    "I2": Mutation(
        "I2",
        "The name of an operation's Pod is another one each time, so it is made again and again.",
        "Any operation whose program runs for a second or more; a lost GPU (reboot) will do.",
        _pods_have_random_names,
    ),
    "I3": Mutation(
        "I3",
        "A condition that is Unknown counts as a fault.",
        "A node whose condition is Unknown for longer than the policy's `for`.",
        _unknown_is_bad,
    ),
    "I4": Mutation(
        "I4",
        "The breaker never opens.",
        "More faults within --window than --starts, with budgets that let them through: --starts 2 --window 20, say.",
        _breaker_never_opens,
    ),
    "I4-pause": Mutation(
        "I4",
        "Nobody hears of a pause.",
        "The annotation remediator.dev/paused on the namespace for some seconds, and a fault that comes meanwhile.",
        _pause_is_not_heard,
    ),
    "I5": Mutation(
        "I5",
        "A case that has ended leaves its taint on the node.",
        "Any fault that is repaired, and `settle` seconds after it.",
        _release_forgets_the_taint,
    ),
    "I6": Mutation(
        "I6",
        "Whatever we write on a node takes the taints of others away.",
        "A taint of a person on a node that then gets a fault.",
        _taints_of_people_go,
    ),
    "I7": Mutation(
        "I7",
        "A controller that starts takes every open case for a new one.",
        "A kill of the controller while a case holds its node.",
        _what_was_known_is_forgotten,
    ),
    "I8": Mutation(
        "I8",
        "The name of a ticket is another one each time.",
        "A case whose policy wants a ticket: one that nothing helps against, or any of a policy with when: Always.",
        _tickets_have_random_names,
    ),
    "I9": Mutation(
        "I9",
        "The extender leaves the first node out of its answers.",
        "Nothing but the probes of the observer.",
        _a_node_is_left_out,
    ),
    "I10": Mutation(
        "I10",
        "The ladder offers its present rung for ever.",
        "A node whose fault returns after each operation.",
        _the_ladder_has_no_end,
    ),
}

"""What `explain` says of one node, as data for scripts. Pure: the same decision, the same words."""

from datetime import datetime
from functools import partial
from typing import Any

from remediator.controller.cache import ClusterCache
from remediator.controller.case_view import case_view
from remediator.controller.explain import describe, starts_counted
from remediator.controller.fleet import budgets_over, may_start
from remediator.controller.handlers.case import HANDLERS
from remediator.controller.status import breaker_data
from remediator.core import beliefs, lemon, remedy
from remediator.core.breaker import Breaker
from remediator.core.case import Case
from remediator.core.case_data import Data, case_data
from remediator.core.case_table import case_step
from remediator.core.decide import decide
from remediator.core.ladder import Next
from remediator.core.node import Node


def explain_data(cache: ClusterCache, node: Node, breaker: Breaker, now: datetime) -> dict[str, Any]:
    """What is decided for one node, what its cases do next, and what holds them."""
    cases = cache.cases.by("node", node.name)
    decision = decide(node, cache.policies, cases, now, cache.covers, partial(may_start, now))
    judgements = beliefs.judged(node, cache.policies, now)
    return {
        "node": node.name,
        "uid": node.uid,
        "decision": type(decision).__name__,
        "sentence": describe(decision, now),
        "believed": list(beliefs.believed(node, judgements, now)),
        "notBelieved": [{"condition": doubt.condition, "why": doubt.why} for doubt in beliefs.doubts(judgements)],
        "policies": [
            {"name": policy.name, "mode": policy.mode.value, "health": judgement.health.name.capitalize()}
            for policy, judgement in judgements
        ],
        "cases": [_open_case(cache, case, now) for case in cases if case.open],
        "before": [case_data(case, now) for case in cases if lemon.did_something(case)],
        "budgets": budgets_over(cache, node, now),
        "breaker": breaker_data(starts_counted(cache, breaker, now), breaker, exact=cache.whole),
        "paused": cache.paused,
    }


def _open_case(cache: ClusterCache, case: Case, now: datetime) -> Data:
    if case.unreadable:
        return {"name": case.name, "node": case.node, "unreadable": True}
    view = case_view(cache, case, now)
    step = case_step(view.observation)
    by_admission, following = HANDLERS[step].by_admission, view.next
    coming = following if by_admission and isinstance(following, Next) and view.policy is not None else None
    rung = view.policy.ladder[coming.rung].operation if coming and view.policy else ""
    return case_data(case, now) | {
        "nextStep": step.name,
        "nextOperation": rung,
        "command": remedy.command(case, cache.namespaces.system),
    }

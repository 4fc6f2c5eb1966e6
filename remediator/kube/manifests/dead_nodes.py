"""Which rungs of a policy about nodes whose kubelets do not report would run on the node itself."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from remediator.core.dead_node import on_target
from remediator.core.node import Status
from remediator.core.policy import Policy, Urgency
from remediator.core.template import Strategy, Template
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.manifests import schema

Object = dict[str, Any]


def wrong_rungs(document: Object, templates: Iterable[Object]) -> Iterator[schema.Violation]:
    """An API server accepts them, for it does not look at the templates; the controller holds such cases."""
    policy = _policy(document)
    if policy is None or not policy.asks_unknown or policy.urgency is Urgency.NEVER:
        return
    known = [template for each in templates if (template := _template(each)) is not None]
    direct, drained = on_target(known), {each.name for each in known if each.strategy is not Strategy.NONE}
    for index, rung in enumerate(policy.ladder):
        path = f"spec.ladder[{index}].operation"
        if rung.operation in direct:
            what = f"{rung.operation!r} runs on the node, whose kubelet does not report"
            yield schema.Violation(path, f"{what}: name operations whose template has runOn: Elsewhere or Watchdog")
        elif rung.operation in drained:
            what = f"{rung.operation!r} drains the node, and no Pod of a node whose kubelet does not report ends"
            yield schema.Violation(path, f"{what}: write drain: {{strategy: None}} in its template")


def forced_on_live(document: Object) -> Iterator[schema.Violation]:
    """Rungs with force in a policy that also asks for faults of nodes that are alive: their power goes, undrained."""
    policy = _policy(document)
    if policy is None or policy.urgency is Urgency.NEVER:
        return
    alive = _alive(policy)
    for index, rung in enumerate(policy.ladder):
        if alive and rung.parameters.get("force") == "true":
            yield schema.Violation(
                f"spec.ladder[{index}].parameters.force",
                f"{rung.operation!r} acts also on a node that is alive, for spec.when{alive}, and nothing is drained: "
                "make Ready Unknown a policy of its own, or take force out",
            )


def warnings(policies: Iterable[Policy]) -> Iterator[str]:
    """What to look at, a sentence each: policies on Ready Unknown that also ask for faults of nodes that are alive."""
    for policy in policies:
        alive = _alive(policy)
        if alive:
            yield (
                f"policy {policy.name}: spec.when{alive} is about a node that is alive, and the ladder of a policy on "
                "Ready Unknown runs and drains nothing on it; make Ready Unknown a policy of its own"
            )


def _alive(policy: Policy) -> str:
    """Which entry of `when` a node may meet whose kubelet reports, as "[1]", where another is about Ready Unknown."""
    about = [any(clause.status is Status.UNKNOWN for clause in when.clauses) for when in policy.when]
    return f"[{about.index(False)}]" if any(about) and not all(about) else ""


def _policy(document: Object) -> Policy | None:
    try:
        if document.get("kind") != api.POLICY.name:
            return None
        return decode.remediation_policy(msgspec.convert(document, api.RemediationPolicy))
    except (msgspec.ValidationError, ValueError):
        return None


def _template(document: Object) -> Template | None:
    try:
        return decode.template(msgspec.convert(document, api.NodeOperationTemplate))
    except (msgspec.ValidationError, ValueError):
        return None

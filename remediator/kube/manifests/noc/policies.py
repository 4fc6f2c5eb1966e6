"""NodeRemediationTemplate and NodeRemediation of theirs: both become a RemediationPolicy."""

from collections.abc import Iterator

from remediator.core.node import Status
from remediator.core.policy import Mode
from remediator.kube import api
from remediator.kube.manifests.noc import wire
from remediator.kube.manifests.noc.meta import kept
from remediator.kube.manifests.noc.remark import Refused, Remark

Made = api.RemediationPolicy | Remark
_BEGINS = Remark(
    "",
    "begins in mode DryRun, and a fault must last 2m: see what `kubectl get nr` shows, then set spec.mode to Enforce",
)


def template(theirs: wire.NodeRemediationTemplate) -> Iterator[Made]:
    """A policy for the nodes that it selects."""
    yield _policy(theirs.metadata, theirs.spec.template.spec, theirs.spec.node_selector, "spec.template.spec.")
    yield _BEGINS


def remediation(theirs: wire.NodeRemediation) -> Iterator[Made]:
    """A policy for its one node, unless a template of theirs has made it."""
    if theirs.metadata.owner_references:
        yield Remark("", "is left out: its NodeRemediationTemplate becomes a policy for all of its nodes")
        return
    chosen = {"kubernetes.io/hostname": theirs.spec.node_name}
    yield _policy(theirs.metadata, theirs.spec, chosen, "spec.")
    message = "is read as the label kubernetes.io/hostname; see in `kubectl get rp` that the policy selects 1 node"
    yield Remark("spec.nodeName", message)
    yield _BEGINS


def _policy(
    metadata: api.ObjectMeta, spec: wire.RemediationSpec, labels: dict[str, str], at: str
) -> api.RemediationPolicy:
    return api.RemediationPolicy(
        metadata=kept(metadata),
        spec=api.RemediationPolicySpec(
            mode=Mode.DRY_RUN,
            node_selector=api.LabelSelector(match_labels=labels),
            all_nodes=not labels,
            when=(_when(spec.rule.conditions, f"{at}rule.conditions"),),
            ladder=(api.Rung(operation=spec.node_operation_template_name),),
        ),
    )


def _when(conditions: tuple[wire.ConditionRule, ...], at: str) -> api.When:
    """All of them, together. Raises Refused where there is none: theirs then operates on every node at once."""
    if not conditions:
        raise Refused(at, "is empty, which means every node at all times; name the Conditions that are the fault")
    matches = tuple(
        api.ConditionMatch(condition=each.type, status=_status(each.status, f"{at}[{index}].status"))
        for index, each in enumerate(conditions)
    )
    if len(matches) > 1:
        return api.When(all=matches)
    return api.When(condition=matches[0].condition, status=matches[0].status)


def _status(text: str, at: str) -> Status:
    try:
        return Status(text)
    except ValueError:
        raise Refused(at, f'{text!r} is the status of no Condition; write "True" or "False"') from None

"""What a watchdog would refuse: a template whose name is none of its operations, and parameters that it does not know.

An API server takes both. The operation would begin, disturb the node by its drain, and be refused on the node.
"""

from collections.abc import Iterable, Iterator

from remediator.core.policy import Policy
from remediator.core.template import RunOn, Template
from remediator.core.watchdog_operations import WATCHDOG_OPERATIONS
from remediator.kube.manifests import schema
from remediator.kube.manifests.decoded import Object, policies, templates


def wrong(document: Object, known: Iterable[Template]) -> Iterator[schema.Violation]:
    """What is wrong in a template or a policy. `known`: the templates among the documents."""
    for template in templates([("", document)]).values():
        if _ordered(template) and template.name not in WATCHDOG_OPERATIONS:
            names = ", ".join(WATCHDOG_OPERATIONS)
            what = f"no watchdog does {template.name!r}, it would refuse the order: name it one of {names}"
            yield schema.Violation("metadata.name", f"{what}, or choose another runOn")
    ordered = {template.name for template in known if _ordered(template)}
    for policy in policies([("", document)]):
        yield from _parameters(policy, ordered & WATCHDOG_OPERATIONS.keys())


def _ordered(template: Template) -> bool:
    return template.run_on is RunOn.WATCHDOG


def _parameters(policy: Policy, ordered: set[str]) -> Iterator[schema.Violation]:
    for index, rung in enumerate(policy.ladder):
        allowed = WATCHDOG_OPERATIONS[rung.operation] if rung.operation in ordered else rung.parameters.keys()
        for name in sorted(rung.parameters.keys() - allowed):
            takes = ", ".join(sorted(allowed))
            why = f"a watchdog refuses it: {rung.operation} takes {takes} there; take it out"
            yield schema.Violation(f"spec.ladder[{index}].parameters.{name}", why)

"""Objects of node-operation-controller in, objects of ours out, each as `remediator lint` takes it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, NamedTuple

import msgspec

from remediator.kube.api.encode.objects import body
from remediator.kube.manifests import lint
from remediator.kube.manifests.noc import budgets, operations, policies, wire
from remediator.kube.manifests.noc.remark import Note, Refused, Remark

Object = dict[str, Any]
# Kind of theirs → what its manifests say, and what that becomes.
_KINDS: Mapping[str, tuple[type[wire.Their], Callable[[Any], Iterator[Any]]]] = {
    "NodeOperation": (wire.NodeOperation, operations.operation),
    "NodeOperationTemplate": (wire.NodeOperationTemplate, operations.template),
    "NodeRemediation": (wire.NodeRemediation, policies.remediation),
    "NodeRemediationTemplate": (wire.NodeRemediationTemplate, policies.template),
    "NodeDisruptionBudget": (wire.NodeDisruptionBudget, budgets.budget),
}


class Conversion(NamedTuple):
    """What may be applied, and what is to be known of it."""

    objects: tuple[Object, ...]
    notes: tuple[Note, ...]

    @property
    def refused(self) -> int:
        """How many times an object became nothing."""
        return sum(note.refused for note in self.notes)


class _Converted(NamedTuple):
    """An object of ours, and of which one of theirs it was made."""

    source: str
    theirs: str
    ours: Object


def convert(documents: Iterable[lint.Document], known_templates: Set[str] = frozenset()) -> Conversion:
    """Every object of theirs among `documents`; those of others are noted and left out.

    `known_templates` are names of NodeOperationTemplates of ours that are in the cluster.
    """
    converted: list[_Converted] = []
    notes: list[Note] = []
    for source, document in documents:
        title = _title(document)
        try:
            made = list(_made(document))
        except Refused as refused:
            notes.append(Note(source, title, *refused.remark, refused=True))
            continue
        notes += [Note(source, title, *each) for each in made if isinstance(each, Remark)]
        objects = [body(each) for each in made if not isinstance(each, Remark)]
        converted += [_Converted(source, title, each) for each in objects]
    accepted, wrong = _accepted(converted, known_templates)
    return Conversion(tuple(each.ours for each in accepted), (*notes, *wrong))


def _made(document: Object) -> Iterator[Any]:
    """What one document becomes. Raises Refused."""
    kind = str(document.get("kind"))
    if str(document.get("apiVersion", "")).partition("/")[0] != wire.GROUP:
        return iter([Remark("", "is left out: it is no object of node-operation-controller")])
    if kind not in _KINDS:
        raise Refused("kind", f"must be one of {', '.join(_KINDS)}")
    shape, becomes = _KINDS[kind]
    try:
        theirs = msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        raise Refused(where.rstrip("`").lstrip("."), f"{what}; correct it as their CRD has it") from None
    return becomes(theirs)


def _title(document: Object) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document.get('kind')}/{name or '?'}"


def _accepted(converted: list[_Converted], known: Set[str]) -> tuple[list[_Converted], list[Note]]:
    """Without those that lint refuses, and without what needs one of them."""
    notes: list[Note] = []
    while findings := lint.lint([(each.source, each.ours) for each in converted], known):
        refused = {(finding.source, finding.object): finding for finding in reversed(findings)}
        for each in converted:
            if finding := refused.get((each.source, _title(each.ours))):
                notes.append(Note(each.source, each.theirs, "", _why(finding), refused=True))
        converted = [each for each in converted if (each.source, _title(each.ours)) not in refused]
    return converted, notes


def _why(finding: lint.LintError) -> str:
    missing = finding.message.startswith(lint.NO_TEMPLATE)
    remedy = "name its file, too, or give --template NAME if it is in the cluster" if missing else "correct it there"
    return f"{finding.object} may not be so: {finding.field}: {finding.message}; {remedy}"

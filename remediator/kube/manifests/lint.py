"""Finds all faults in manifests of our kinds, each with its place, before they are sent to an API server."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from functools import cache
from typing import Any, NamedTuple

import msgspec

from remediator import windows
from remediator.core.hosts import HostKind
from remediator.core.node import Node
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.manifests import crd, dead_nodes, decoded, drain_rules, hosts, queries, schema, watchdog, yamlfile
from remediator.kube.wire.client import Kind

Object = dict[str, Any]
Document = tuple[str, Object]  # where it stands ("policies.yaml:12"), and what it says

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
NO_TEMPLATE = "there is no NodeOperationTemplate"
_KINDS = {kind.name: kind for kind in api.KINDS}


class LintError(NamedTuple):
    """One error: where the document stands, which object ("RemediationPolicy/gpu-lost"), which field, what is wrong."""

    source: str
    object: str
    field: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in self if part)


def read(name: str, text: str) -> tuple[list[Document], list[LintError]]:
    """The documents of one YAML (or JSON) file, each with its line, and what cannot be read.

    After a syntax error nothing more of the file is read. Empty documents are passed over; a List is taken apart.
    """
    documents: list[Document] = []
    findings: list[LintError] = []
    if name.endswith(".json"):
        text = text.replace("\t", " ")  # JSON has tabs only between its words, where YAML takes none
    try:
        for line, value, doubled in yamlfile.documents(text):
            source = f"{name}:{line}"
            findings += [LintError(f"{name}:{at}", "", "", f"the key {key!r} is given twice") for at, key in doubled]
            for document in () if value is None else _flat(value):
                if isinstance(document, dict):
                    documents.append((source, document))
                else:
                    findings.append(LintError(source, "", "", "is not an object"))
    except yamlfile.UnreadableYaml as error:
        findings.append(LintError(f"{name}:{error.line}", "", "", f"unreadable YAML: {error.why}"))
    return documents, findings


def _flat(value: Any) -> list[Any]:
    """What a document holds: itself, or the items of a List."""
    if not isinstance(value, dict) or value.get("kind") != "List":
        return [value]
    items = value.get("items") or []
    return items if isinstance(items, list) else [items]


def lint(
    documents: Iterable[Document],
    known_templates: Set[str] = frozenset(),
    platforms: Collection[HostKind] = (),
    nodes: Sequence[Node] = (),
) -> list[LintError]:
    """Everything wrong with our objects among `documents`; objects of other groups are passed over.

    Args:
        documents: Where each stands, and what it says.
        known_templates: Names of NodeOperationTemplates that exist besides those in the documents.
        platforms: What the nodes run on, as far as it was said.
        nodes: Those of a cluster, which show what they run on.
    """
    ours = [(source, document) for source, document in documents if _is_ours(document)]
    templates = {_name(document) for _, document in ours if _kind(document) is api.TEMPLATE}
    count = Counter(_place(document) for _, document in ours)
    known, findings = decoded.templates(ours), []
    for source, document in ours:
        wrong = [violation for check in _CHECKS for violation in check(document)]
        wrong += _unknown_operations(document, templates | known_templates)
        wrong += dead_nodes.wrong_rungs(document, [template for _, template in ours if _kind(template) is api.TEMPLATE])
        wrong += watchdog.wrong(document, known.values())
        wrong += hosts.wrong(document, platforms, nodes)
        wrong += _unknown_times(document, {path for path, _ in wrong})
        if count[_place(document)] > 1:
            wrong.append(schema.Violation("metadata.name", "another object here has the same kind and name"))
        findings += [LintError(source, _title(document), path, message) for path, message in wrong]
    return findings


def _is_ours(document: Object) -> bool:
    return _kind(document) is not None or str(document.get("apiVersion", "")).startswith(f"{api.GROUP}/")


def _kind(document: Object) -> Kind[Any] | None:
    return _KINDS.get(str(document.get("kind")))


def _name(document: Object) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _title(document: Object) -> str:
    return f"{document.get('kind')}/{_name(document) or '?'}"


def _place(document: Object) -> tuple[str, str]:
    """Kind and name, and the namespace where its kind has one."""
    kind, metadata = _kind(document), document.get("metadata")
    namespaced = kind is not None and kind.namespaced and isinstance(metadata, dict)
    return _title(document), str(metadata.get("namespace", "")) if namespaced and isinstance(metadata, dict) else ""


def _address(document: Object) -> Iterator[schema.Violation]:
    """Group, version and kind must be ours."""
    if document.get("apiVersion") != api.API_VERSION:
        yield schema.Violation("apiVersion", f"must be {api.API_VERSION}")
    if _kind(document) is None:
        yield schema.Violation("kind", f"must be one of {', '.join(_KINDS)}")


def _metadata(document: Object) -> Iterator[schema.Violation]:
    """A name that an API server takes."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        yield schema.Violation("metadata", "must be an object with a name")
        return
    name = metadata.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > 253:
        yield schema.Violation("metadata.name", "must be lower-case letters, digits, '-' and '.', at most 253 of them")


def _contents(document: Object) -> Iterator[schema.Violation]:
    """Everything that the schema of the kind says, its CEL rules included."""
    return schema.review(document, _schema(_kind(document)))


@cache
def _schema(kind: Kind[Any] | None) -> schema.SchemaNode:
    """The schema of one of our kinds; where the kind is not ours, one that knows only metadata."""
    if kind is None:
        return schema.SchemaNode(embedded=True, preserve=True)
    return schema.build(crd.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"], root=True)


def _drain(document: Object) -> Iterator[schema.Violation]:
    """What is legal in the drain of a template, and never meant."""
    return drain_rules.review(document.get("spec")) if _kind(document) is api.TEMPLATE else iter(())


_CHECKS: tuple[Callable[[Object], Iterator[schema.Violation]], ...] = (
    _address,
    _metadata,
    _contents,
    _drain,
    queries.wrong,
    dead_nodes.forced_on_live,
)


def without_templates(findings: Iterable[LintError]) -> int:
    """How many findings are of templates that are not there."""
    return sum(finding.message.startswith(NO_TEMPLATE) for finding in findings)


def _unknown_operations(document: Object, templates: Set[str]) -> Iterator[schema.Violation]:
    """An API server accepts names of templates that are not there; here each is an error."""
    for path, operation in _operations(document):
        if isinstance(operation, str) and operation not in templates:
            yield schema.Violation(path, f"{NO_TEMPLATE} named {operation!r}")


def _unknown_times(document: Object, known: Set[str]) -> Iterator[schema.Violation]:
    """Windows of which a schema cannot tell that they never open; what it has found (`known`) is not said again."""
    if _kind(document) not in (api.POLICY, api.IDLE_POLICY) or any(path.startswith("spec.windows") for path in known):
        return
    spec = document.get("spec")
    given = spec.get("windows") if isinstance(spec, dict) else None
    stated = [{key: part for key, part in window.items() if part is not None} for window in given or ()]
    wire = msgspec.convert(stated, tuple[api.Window, ...])
    for problem in windows.problems(tuple(map(decode.window, wire))):
        yield schema.Violation(f"spec.{problem.field}", problem.why)


def _operations(document: Object) -> Iterator[tuple[str, Any]]:
    """Each operation that a document names, and where."""
    spec = document.get("spec")
    field = {api.POLICY: "ladder", api.TEMPLATE: "after"}.get(_kind(document))
    entries = spec.get(field) if field and isinstance(spec, dict) else None
    verify = spec.get("verify") if _kind(document) is api.POLICY and isinstance(spec, dict) else None
    if isinstance(verify, dict) and "probe" in verify:
        yield "spec.verify.probe", verify["probe"]
    admit = spec.get("admit") if _kind(document) is api.POLICY and isinstance(spec, dict) else None
    if isinstance(admit, dict):
        yield "spec.admit.probe", admit.get("probe")
    idle_test = spec.get("idleTest") if _kind(document) is api.POLICY and isinstance(spec, dict) else None
    if isinstance(idle_test, dict):
        yield "spec.idleTest.probe", idle_test.get("probe")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if field == "ladder":
            yield f"spec.ladder[{index}].operation", entry.get("operation") if isinstance(entry, dict) else None
        else:
            yield f"spec.after[{index}]", entry

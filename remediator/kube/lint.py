"""Finds what is wrong in manifests of our kinds before an API server sees them: all of it at once, with the place."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from functools import cache
from typing import Any, NamedTuple

import yaml

from remediator.kube import api, crd, schema
from remediator.kube.client import Kind

Object = dict[str, Any]
Document = tuple[str, Object]  # where it stands ("policies.yaml:12"), and what it says

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KINDS = {kind.name: kind for kind in api.KINDS}


class Finding(NamedTuple):
    """One error: where the document stands, which object ("RemediationPolicy/gpu-lost"), which field, what is wrong."""

    source: str
    object: str
    field: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in self if part)


class _Loader(yaml.SafeLoader):
    """YAML as kubectl reads it: a date is text, and a key given twice is an error."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(name: str, text: str) -> tuple[list[Document], list[Finding]]:
    """The documents of one YAML (or JSON) file, each with its line, and what cannot be read.

    After a syntax error nothing more of the file is read. Empty documents are passed over; a List is taken apart.
    """
    documents: list[Document] = []
    findings: list[Finding] = []
    try:
        for line, value, doubled in _parsed(text):
            source = f"{name}:{line}"
            findings += [Finding(f"{name}:{at}", "", "", f"the key {key!r} is given twice") for at, key in doubled]
            if isinstance(value, dict):
                documents += [(source, one) for one in _flat(value)]
            elif value is not None:
                findings.append(Finding(source, "", "", "is not an object"))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        findings.append(Finding(f"{name}:{line}", "", "", f"unreadable YAML: {error.problem or error.context}"))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        findings.append(Finding(f"{name}:{line}", "", "", f"unreadable YAML: {error.reason}"))
    return documents, findings


def _parsed(text: str) -> Iterator[tuple[int, Any, list[tuple[int, str]]]]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None  # check_node said so
            doubled = list(_doubled(node))
            yield node.start_mark.line + 1, loader.construct_document(node), doubled
    finally:
        loader.dispose()


def _doubled(node: yaml.Node, above: tuple[yaml.Node, ...] = ()) -> Iterator[tuple[int, str]]:
    """Keys that one mapping has twice, with the line of the later one. Raises for an anchor inside itself."""
    if node in above:
        raise yaml.composer.ComposerError(None, None, "an anchor contains itself", node.start_mark)
    seen: set[str] = set()
    for key in _keys(node):
        if key.value in seen:
            yield key.start_mark.line + 1, key.value
        seen.add(key.value)
    for part in _parts(node):
        yield from _doubled(part, (*above, node))


def _keys(node: yaml.Node) -> list[yaml.ScalarNode]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return [key for key, _ in pairs if isinstance(key, yaml.ScalarNode)]


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in node.value]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _flat(value: Object) -> list[Object]:
    if value.get("kind") != "List":
        return [value]
    return [item for item in value.get("items") or () if isinstance(item, dict)]


def lint(documents: Iterable[Document], known_templates: Set[str] = frozenset()) -> list[Finding]:
    """Everything wrong with our objects among `documents`; objects of other groups are passed over.

    `known_templates` are names of NodeOperationTemplates that exist besides those in the documents.
    """
    ours = [(source, document) for source, document in documents if _is_ours(document)]
    templates = {_name(document) for _, document in ours if _kind(document) is api.TEMPLATE}
    count = Counter(_title(document) for _, document in ours)
    findings = []
    for source, document in ours:
        wrong = [violation for check in _CHECKS for violation in check(document)]
        wrong += _unknown_operations(document, templates | known_templates)
        if count[_title(document)] > 1:
            wrong.append(schema.Violation("metadata.name", "another object here has the same kind and name"))
        findings += [Finding(source, _title(document), path, message) for path, message in wrong]
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
    if not _NAME.fullmatch(_name(document)) or len(_name(document)) > 253:
        yield schema.Violation("metadata.name", "must be lower-case letters, digits, '-' and '.', at most 253 of them")


def _contents(document: Object) -> Iterator[schema.Violation]:
    """Everything that the schema of the kind says, its CEL rules included."""
    return schema.review(document, _schema(_kind(document)))


@cache
def _schema(kind: Kind[Any] | None) -> schema.Node:
    """The schema of one of our kinds; where the kind is not ours, one that knows only metadata."""
    if kind is None:
        return schema.Node(embedded=True, preserve=True)
    return schema.build(crd.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"], root=True)


_CHECKS: tuple[Callable[[Object], Iterator[schema.Violation]], ...] = (_address, _metadata, _contents)


def _unknown_operations(document: Object, templates: Set[str]) -> Iterator[schema.Violation]:
    """An API server accepts names of templates that are not there; here each is an error."""
    for path, operation in _operations(document):
        if isinstance(operation, str) and operation not in templates:
            yield schema.Violation(path, f"there is no NodeOperationTemplate named {operation!r}")


def _operations(document: Object) -> Iterator[tuple[str, Any]]:
    """Each operation that a document names, and where."""
    spec = document.get("spec")
    field = {api.POLICY: "ladder", api.TEMPLATE: "after"}.get(_kind(document))
    entries = spec.get(field) if field and isinstance(spec, dict) else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if field == "ladder":
            yield f"spec.ladder[{index}].operation", entry.get("operation") if isinstance(entry, dict) else None
        else:
            yield f"spec.after[{index}]", entry

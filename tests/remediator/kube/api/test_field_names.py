"""Field names of the API stand in the types and nowhere else: what a type does not have, mypy finds."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

import remediator
from remediator.kube.api import KINDS, builtin, gpu_pods, patch  # noqa: F401  # with them all types are known
from remediator.kube.api.common import Base

PRODUCT = Path(remediator.__file__).parent
# The types themselves, and what is about schemas.
OF_THE_API = ("kube/api/", "kube/manifests/")
# Names that stand in another JSON, which happens to use the same word.
OTHERS = {
    *(  # of what commands print for scripts, under the names of the API
        ("core/case_data.py", name)
        for name in (
            *("blockedBy", "endedAt", "finishedAt", "gpuHours", "healthySince", "keepOut"),
            *("requestedBy", "setBy", "startedAt", "status"),
        )
    ),
    ("controller/operation_plan.py", "caseUID"),  # PARAMETERS of an operation's program
    ("tickets/channels/slack.py", "metadata"),  # of a message of Slack
}


def types(type_: type) -> Iterator[type]:
    """All types below one."""
    for below in type_.__subclasses__():
        yield from (below, *types(below))


def names() -> frozenset[str]:
    """Every name on the wire that no ordinary word is, and the three that every object has."""
    fields = {
        field.encode_name
        for type_ in types(Base)
        for field in msgspec.structs.fields(type_)  # type: ignore[type-var]
    }
    return frozenset(name for name in fields if not name.islower()) | {"metadata", "spec", "status"}


def keys(tree: ast.AST) -> Iterator[str]:
    """Texts that a program uses as keys: in dict literals, in subscripts, and in get, pop and setdefault."""
    for node in ast.walk(tree):
        match node:
            case ast.Dict():
                used: list[ast.expr | None] = list(node.keys)
            case ast.Subscript():
                used = [node.slice]
            case ast.Call(ast.Attribute(attr="get" | "pop" | "setdefault"), [first, *_]):
                used = [first]
            case _:
                continue
        yield from (key.value for key in used if isinstance(key, ast.Constant) and isinstance(key.value, str))


def selectors(tree: ast.AST) -> Iterator[str]:
    """Field selectors: "spec.nodeName=gpu-1"."""
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    yield from (text for text in texts if re.match(r"(metadata|spec|status)\.\w+!?=", text))


def misplaced(root: Path) -> set[tuple[str, str]]:
    """Field names of the API that a product's module uses as keys, and its field selectors, with the module."""
    modules = {str(path.relative_to(root)): path for path in root.rglob("*.py")}
    ours = {name: path for name, path in modules.items() if not name.startswith(OF_THE_API)}
    trees = {name: ast.parse(path.read_text()) for name, path in ours.items()}
    fields = names()
    used = {(name, key) for name, tree in trees.items() for key in keys(tree) if key in fields}
    return used | {(name, selector) for name, tree in trees.items() for selector in selectors(tree)}


def test_no_module_outside_the_api_uses_a_field_name_as_a_key() -> None:
    assert misplaced(PRODUCT) == OTHERS


def test_such_a_use_is_found(tmp_path: Path) -> None:
    (tmp_path / "kube/api").mkdir(parents=True)
    (tmp_path / "kube/api/a.py").write_text('{"nodeName": 1}')
    (tmp_path / "b.py").write_text(
        'x = {"nodeName": 1}["bootID"]\nx.get("resourceVersion", "")\n{"name": "spec"}\nf"status.phase={x}"'
    )
    assert misplaced(tmp_path) == {
        ("b.py", "nodeName"),
        ("b.py", "bootID"),
        ("b.py", "resourceVersion"),
        ("b.py", "status.phase="),
    }


def test_the_names_are_those_of_all_kinds() -> None:
    assert {"nodeUID", "adoptedUID", "lastTransitionTime", "matchLabels", "bootID"} <= names()
    assert all(issubclass(kind.type, Base) for kind in KINDS)

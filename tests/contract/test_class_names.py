"""A class name names one thing in its package: whoever reads it need not ask which of several is meant."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Structs that read what another system writes: they keep its words.
FOREIGN = ("remediator.kube.manifests.noc.", "remediator.scheduler.config.shape")
CORE, WIRE = "remediator.core.", "remediator.kube.api."


@cache
def nodes(path):
    return list(ast.walk(ast.parse(path.read_text())))


def modules(root, package):
    """Path by dotted name."""
    paths = sorted((root / package).rglob("*.py"))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


@cache
def classes(path):
    return set(re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE))


@cache
def imported(path):
    """(module, name) by the local name of each import."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def resolved(known, module, name):
    """Where the class is defined that a module hands on, such as the package of the API types."""
    while module in known and name not in classes(known[module]) and name in (handed_on := imported(known[module])):
        module, name = handed_on[name]
    return module, name


def used(known, module):
    """(module, name) of each class that a module defines, imports, or reads as `other_module.Name`."""
    path = known[module]
    names = {(module, name) for name in classes(path)} | set(imported(path).values())
    modules_here = {local: f"{parent}.{name}" for local, (parent, name) in imported(path).items()}
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules_here:
            names.add((modules_here[node.value.id], node.attr))
    return {resolved(known, *name) for name in names}


def is_wire(module):
    return f"{module}.".startswith(WIRE)


def converted(known):
    """(module, name) of each class of core that the API types are decoded into, or made from."""
    return {name for module in known if is_wire(module) for name in used(known, module) if name[0].startswith(CORE)}


def things(name, where, of_wire):
    """The modules that define a name, less the API type beside the class of core that it is converted to or from."""
    wires = [module for module in where if is_wire(module)]
    shared = len(wires) == 1 and any((module, name) in of_wire for module in where)
    return [module for module in where if not (shared and module in wires)]


def ambiguous(root, package="remediator"):
    """The modules that define each name of several things."""
    known = modules(root, package)
    definitions, of_wire = defaultdict(list), converted(known)
    for module, path in known.items():
        for name in classes(path) if not f"{module}.".startswith(FOREIGN) else ():
            definitions[name].append(module)
    return {name: where for name, where in sorted(definitions.items()) if len(things(name, where, of_wire)) > 1}


@pytest.mark.slow
@pytest.mark.parametrize("package", ["remediator", "remediator_sim", "nodelib"])
def test_a_class_name_names_one_thing_in_its_package(package):
    assert ambiguous(ROOT, package) == {}, "say in the name which of them it is: IdleStep and ChatStep, not Step twice"


def tree_of(root, files):
    for name, text in files.items():
        path = root / "remediator" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_two_classes_of_one_name_are_found(tmp_path):
    root = tree_of(tmp_path, {"web/a.py": "class Page: ...", "cli/b.py": "class Page: ..."})
    assert ambiguous(root) == {"Page": ["remediator.cli.b", "remediator.web.a"]}


def test_an_api_type_and_the_core_type_that_it_is_decoded_into_are_one_thing(tmp_path):
    root = tree_of(
        tmp_path,
        {
            "core/case.py": "class Case: ...",
            "kube/api/__init__.py": "from remediator.kube.api.remediation import Case",
            "kube/api/remediation.py": "class Case: ...",
            "kube/api/decode/cases.py": "from remediator.core import case\n"
            "from remediator.kube import api\n"
            "def decode(wire: api.Case) -> case.Case: ...",
        },
    )
    assert ambiguous(root) == {}


def test_an_api_type_and_a_core_type_that_nothing_converts_are_two_things(tmp_path):
    root = tree_of(tmp_path, {"core/case.py": "class Case: ...", "kube/api/shelf.py": "class Case: ..."})
    assert ambiguous(root) == {"Case": ["remediator.core.case", "remediator.kube.api.shelf"]}


def test_a_third_class_beside_such_a_pair_is_found(tmp_path):
    files = {
        "core/case.py": "class Case: ...",
        "kube/api/case.py": "from remediator.core import case\n"
        "class Case: ...\n"
        "def decode(wire: Case) -> case.Case: ...",
        "web/case.py": "class Case: ...",
    }
    assert list(ambiguous(tree_of(tmp_path, files))) == ["Case"]


def test_a_struct_of_another_system_keeps_the_word_of_that_system(tmp_path):
    root = tree_of(tmp_path, {"kube/manifests/noc/wire.py": "class Case: ...", "core/case.py": "class Case: ..."})
    assert ambiguous(root) == {}

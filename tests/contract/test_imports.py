"""What is shipped stands alone: no file of it imports the tests, and the simulator is imported by tests only."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_SHIPPED = {"tests", "remediator_sim"}
# Folder → the folders of this repository that it may import.
MAY_IMPORT = {
    "deploy": {"deploy"},
    "remediator": {"remediator"},
    "nodelib": {"nodelib"},
    "detectors": {"detectors", "nodelib"},
    "operations": {"operations", "nodelib"},
    "watchdog": {"watchdog", "nodelib"},
    "remediator_sim": {"remediator_sim", "remediator"},
}
OURS = set(MAY_IMPORT) | NOT_SHIPPED


def imported(path: Path) -> set[str]:
    """The first names of what a file imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    of = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.split(".")[0] for name in plain | of}


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_no_other_of_this_repository_than_it_may(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    wrong = {str(path.relative_to(ROOT)): imported(path) & OURS - MAY_IMPORT[folder] for path in files}
    assert files
    assert {path: names for path, names in wrong.items() if names} == {}

"""What the wheel of the simulator holds, beside its own code: the shipped programs and manifests that it runs.

An editable install needs none of it: there all of them lie beside this folder.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CHECKOUT = Path(__file__).resolve().parents[1]
OWN = {"build_hook.py", "pyproject.toml"}
SHIPPED = (
    "detectors",
    "nodelib",
    "operations",
    "deploy/admission",
    "deploy/admission-stamps.yaml",
    "deploy/budgets",
    "deploy/crds",
    "deploy/idle-tests.yaml",
    "deploy/namespaces.yaml",
    "deploy/npd",
    "deploy/policies",
    "deploy/rbac-users.yaml",
    "deploy/rbac.yaml",
    "deploy/watchdog/templates.yaml",
)


class ShippedFiles(BuildHookInterface[Any]):
    """Adds them to the wheel, below remediator_sim/shipped."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Where each file of the wheel comes from."""
        if version == "editable":
            return
        code = [path for path in (CHECKOUT / "remediator_sim").iterdir() if path.name not in OWN]
        files = {str(path): f"remediator_sim/{path.name}" for path in code if path.name != "__pycache__"}
        shipped = {str(CHECKOUT / part): f"remediator_sim/shipped/{part}" for part in SHIPPED}
        build_data["force_include"] |= files | shipped

"""Write the Helm chart into build/chart, from the kustomization of deploy/: `make chart`.

deploy/ stays the one source: this reads the same files, and CHANGES says where a value of the chart goes into one.
What is the chart's alone (values, hooks, NOTES.txt) lies beside this file, and is copied.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from deploy.chart.changes import CHANGES, Change
from deploy.generated import write

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parent
WRITTEN = DEPLOY.parent / "build" / "chart"
OWN = ("Chart.yaml", "values.yaml", "values.schema.json", "templates/**/*.*")
USERS = {"policies", "budgets", "operations"}  # whose objects belong to the user once they are there
OPTIONAL = {
    "admission-stamps.yaml": 'semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version',
    "evictions/rbac.yaml": ".Values.evictionWebhook.enabled",
    "evictions/webhook.yaml": ".Values.evictionWebhook.enabled",
    "janitor/deployment.yaml": ".Values.janitor.enabled",
    "janitor/rbac.yaml": ".Values.janitor.enabled",
    "page/rbac.yaml": ".Values.page.enabled",
    "page/service.yaml": ".Values.page.enabled",
    "watchdog/daemonset.yaml": ".Values.watchdog.enabled",
    "watchdog/rbac.yaml": ".Values.watchdog.enabled",
    "monitoring/podmonitor.yaml": ".Values.monitoring.podMonitors",
    "monitoring/servicemonitor.yaml": ".Values.monitoring.serviceMonitors",
    "monitoring/prometheusrule.yaml": ".Values.monitoring.rules",
    "monitoring/node-prometheusrule.yaml": ".Values.monitoring.nodeRules",
    "monitoring/dashboards.yaml": ".Values.monitoring.dashboards",
}
NAMES = {
    "remediator-system": "{{ .Release.Namespace }}",
    "remediator-operations": "{{ .Values.operationsNamespace }}",
    "https://runbooks.invalid/docs": '{{ .Values.monitoring.runbooks | default "https://runbooks.invalid/docs" }}',
    "registry.invalid/remediator/controller:dev": '{{ include "remediator.image" (list . "controller") }}',
    "registry.invalid/remediator/node:dev": '{{ include "remediator.image" (list . "node") }}',
}
ACCOUNT = re.compile(r"^kind: ServiceAccount\nmetadata: \{.*\}\n", re.MULTILINE)
PULL_SECRETS = "{{- with .Values.image.pullSecrets }}\nimagePullSecrets: {{ toJson . }}\n{{- end }}\n"


class Stale(Exception):
    """A file of deploy/ is no longer as CHANGES says; the message says which row to mend."""


def files() -> dict[str, str]:
    """Every file of the chart by its path in it."""
    return {**_own(), **_crds(), **_templates(), **_users(), **_detectors()}


def template(text: str, changes: tuple[Change, ...] = ()) -> str:
    """A manifest as a template: braces that are its own are escaped, names and values of the chart put in."""
    text = text.replace("{{", '{{ "{{" }}')
    for name, value in NAMES.items():
        text = text.replace(name, value)
    text = ACCOUNT.sub(lambda account: account[0] + PULL_SECRETS, text)
    for change in changes:
        if text.count(change.old) != 1:
            raise Stale(f"deploy/chart/changes.py: {text.count(change.old)} times in the manifest: {change.old!r}")
        text = text.replace(change.old, change.new)
    return text


def resources() -> Iterator[str]:
    """The files that the kustomization applies, as it names them; folders are opened by their own kustomization."""
    for name in _kustomization(DEPLOY)["resources"]:
        if name.endswith(".yaml"):
            yield name
        else:
            yield from (f"{name}/{each}" for each in _kustomization(DEPLOY / name)["resources"])


def main() -> int:
    """Write the chart; what an earlier one left over goes."""
    made = {WRITTEN / name: text for name, text in files().items()}
    for old in WRITTEN.rglob("*"):
        if old.is_file() and old not in made:
            old.unlink()
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
    write(made)
    print(f"{WRITTEN.relative_to(DEPLOY.parent)}: helm install remediator build/chart --namespace remediator-system")
    return 0


def _own() -> dict[str, str]:
    paths = [path for pattern in OWN for path in HERE.glob(pattern)]
    return {str(path.relative_to(HERE)): path.read_text() for path in sorted(paths)}


def _crds() -> dict[str, str]:
    return {name: (DEPLOY / name).read_text() for name in resources() if name.startswith("crds/")}


def _templates() -> dict[str, str]:
    """What Helm installs, upgrades and removes."""
    always = [name for name in resources() if _folder(name) not in USERS | {"crds"} and name != "registry.yaml"]
    return {f"templates/deploy/{name.replace('/', '-')}": _template(name) for name in (*always, *OPTIONAL)}


def _template(name: str) -> str:
    text = template((DEPLOY / name).read_text(), CHANGES.get(name, ()))
    condition = OPTIONAL.get(name)
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _users() -> dict[str, str]:
    """What `remediator defaults` applies, see templates/defaults.yaml."""
    shipped = [name for name in resources() if _folder(name) in USERS]
    texts = {f"defaults/{_folder(name)}-{Path(name).name}": template((DEPLOY / name).read_text()) for name in shipped}
    return texts | {"defaults-watchdog/watchdog.yaml": template((DEPLOY / "watchdog/templates.yaml").read_text())}


def _detectors() -> dict[str, str]:
    (generated,) = _kustomization(DEPLOY)["configMapGenerator"]
    return {name: (DEPLOY / name).read_text() for name in generated["files"]}


def _folder(name: str) -> str:
    return Path(name).parent.name


def _kustomization(folder: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return parsed


if __name__ == "__main__":
    sys.exit(main())

"""Where a value of the chart goes into a manifest of deploy/. Each old text stands there exactly once."""

from typing import NamedTuple


class Change(NamedTuple):
    """A text of a manifest, and what stands in its place in the chart."""

    old: str
    new: str


def after(old: str, added: str) -> Change:
    """Something is added behind a text."""
    return Change(old, old + added)


def only(condition: str, old: str) -> Change:
    """A text that is there only under a condition."""
    return Change(old, f"{{{{- if {condition} }}}}\n{old}{{{{- end }}}}\n")


EXTENDER = ".Values.extender.enabled"
EVICTIONS = ".Values.evictionWebhook.enabled"
PAGE = ".Values.page.enabled"
PLACES = '{{- include "remediator.places" .Values.%s | nindent 6 }}\n'
LABELS = 'labels: {{ toJson (merge (dict "app.kubernetes.io/name" "remediator") .Values.monitoring.labels) }}\n'
RULE_LABELS = (Change("labels:\n    app.kubernetes.io/name: remediator\n", LABELS),)


def monitor(name: str) -> Change:
    """One of the PodMonitors or ServiceMonitors, with labels of the user."""
    head = f"  name: {name}\n  namespace: {{{{ .Release.Namespace }}}}\n  "
    return Change(f"{head}labels: {{app.kubernetes.io/name: remediator}}\n", head + LABELS)


CHANGES: dict[str, tuple[Change, ...]] = {
    "namespaces.yaml": (
        # Helm keeps the release in this namespace, so on a server it is there before the chart.
        Change(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Release.Namespace }}\n",
            '{{- if not (lookup "v1" "Namespace" "" .Release.Namespace) }}\n'
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Release.Namespace }}\n",
        ),
        Change("---\n", "{{- end }}\n---\n"),
        # It outlives the release, with the Secrets of BMCs, which are the user's.
        after("name: {{ .Values.operationsNamespace }}\n", "  annotations: {helm.sh/resource-policy: keep}\n"),
    ),
    "controller.yaml": (
        Change("replicas: 2", "replicas: {{ .Values.controller.replicas }}"),
        after("terminationGracePeriodSeconds: 30\n", PLACES % "controller"),
        Change(
            ', --listen-extender, "0.0.0.0:8443"',
            f'{{{{ if {EXTENDER} }}}}, --listen-extender, "0.0.0.0:8443"{{{{ end }}}}',
        ),
        Change(
            ', --listen-evictions, "0.0.0.0:8447"',
            f'{{{{ if {EVICTIONS} }}}}, --listen-evictions, "0.0.0.0:8447"{{{{ end }}}}',
        ),
        after(
            "value: {{ .Values.operationsNamespace }}}\n",
            "{{- with .Values.apiPods.nodeSelector }}\n        - {name: API_PODS_NODE_SELECTOR, value: {{ quote . }}}\n"
            "{{- end }}\n"
            + only(PAGE, '        - {name: LISTEN_PAGE, value: "0.0.0.0:8446"}\n').new
            + '{{- include "remediator.arguments" . }}\n',
        ),
        only(EXTENDER, "        - {name: extender, containerPort: 8443}\n"),
        after(
            "        - {name: webhook, containerPort: 8444}\n",
            only(PAGE, "        - {name: page, containerPort: 8446}\n").new,
        ),
        only(EVICTIONS, "        - {name: evictions, containerPort: 8447}\n"),
        Change("path: /readyz/extender", f'path: /readyz/{{{{ ternary "extender" "controller" {EXTENDER} }}}}'),
        Change(
            "          requests: {cpu: 100m, memory: 256Mi}\n          limits: {memory: 512Mi}\n",
            '{{- include "remediator.resources" . | nindent 10 }}\n',
        ),
        after("          capabilities: {drop: [ALL]}\n", '{{- include "remediator.volumes" . }}\n'),
    ),
    "endpoints.yaml": (
        Change(
            "---\n# kube-scheduler: deploy/scheduler/scheduler-config.yaml.\n",
            f"{{{{- if {EXTENDER} }}}}\n---\n# kube-scheduler: deploy/scheduler/scheduler-config.yaml.\n",
        ),
        Change("---\n# Alertmanager: docs/tickets.md.", "{{- end }}\n---\n# Alertmanager: docs/tickets.md."),
        only(EXTENDER, "  - ports:\n    - {port: extender}\n"),
        Change("metadata.name: monitoring", "metadata.name: {{ .Values.monitoring.namespace }}"),
    ),
    "node-problem-detector.yaml": (
        after(
            "  template:\n    metadata:\n",
            '      annotations:\n        checksum/config: {{ (.Files.Glob "npd/*.json").AsConfig | sha256sum }}\n',
        ),
        after("terminationGracePeriodSeconds: 10\n", '{{- include "remediator.nodes" . }}\n'),
    ),
    "watchdog/daemonset.yaml": (after("terminationGracePeriodSeconds: 10\n", '{{- include "remediator.nodes" . }}\n'),),
    "janitor/deployment.yaml": (
        after("serviceAccountName: remediator-janitor\n", PLACES % "controller"),
        after("        - --log-json\n", '{{- include "remediator.janitorArguments" . }}\n'),
        Change("metadata.name: monitoring", "metadata.name: {{ .Values.monitoring.namespace }}"),
    ),
    "monitoring/podmonitor.yaml": (monitor("remediator"), monitor("remediator-dcgm-exporter")),
    "monitoring/servicemonitor.yaml": (monitor("remediator"), monitor("remediator-dcgm-exporter")),
    "monitoring/prometheusrule.yaml": RULE_LABELS,
    "monitoring/node-prometheusrule.yaml": RULE_LABELS,
}

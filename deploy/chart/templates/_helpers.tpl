{{/* An image: (list . "controller") or (list . "node"). */}}
{{- define "remediator.image" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $image := $root.Values.image -}}
{{- $digest := index $image.digests $name -}}
{{- printf "%s/remediator/%s%s" $image.registry $name (ternary (printf "@%s" $digest) (printf ":%s" ($image.tag | default $root.Chart.AppVersion)) (ne $digest "")) -}}
{{- end }}

{{/* nodeSelector and tolerations of a Deployment. */}}
{{- define "remediator.places" -}}
{{- with .nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{/* nodeSelector of what runs on each node. */}}
{{- define "remediator.nodes" -}}
{{- with .Values.nodes.nodeSelector }}
      nodeSelector: {{ toJson . }}
{{- end }}
{{- end }}

{{/* By the number of nodes: docs/figures.md, "Memory at full size" and "Growth"; a limit is about three times what was measured. */}}
{{- define "remediator.resources" -}}
{{- $nodes := int .Values.fleet.nodes -}}
{{- if .Values.controller.resources -}}
{{ toYaml .Values.controller.resources }}
{{- else if le $nodes 1000 -}}
requests: {cpu: 100m, memory: 256Mi}
limits: {memory: 512Mi}
{{- else if le $nodes 5000 -}}
requests: {cpu: 250m, memory: 320Mi}
limits: {memory: 640Mi}
{{- else if le $nodes 15000 -}}
requests: {cpu: 500m, memory: 512Mi}
limits: {memory: 1Gi}
{{- else -}}
requests: {cpu: "1", memory: 1Gi}
limits: {memory: 2Gi}
{{- end }}
{{- end }}

{{/* Options of the controller beside those of its command. */}}
{{- define "remediator.options" -}}
{{- with .Values.prometheus.url }}
- --prometheus-url={{ . }}
{{- end }}
{{- range .Values.alertmanager.urls }}
- --alertmanager-url={{ . }}
{{- end }}
{{- if .Values.tickets.enabled }}
- --routes=/etc/remediator/routes/routes.yaml
{{- with .Values.tickets.githubApp }}
{{- if .id }}
- --github-app-id={{ .id | int64 }}
- --github-app-installation-id={{ .installationId | int64 }}
- --github-app-key-file=/etc/remediator/tokens/app.pem
{{- else }}
- --github-token-file=/etc/remediator/tokens/github
{{- end }}
{{- end }}
- --listen-webhook=0.0.0.0:8444
- --webhook-token-file=/etc/remediator/tokens/webhook
{{- end }}
{{- with .Values.newCriteria }}
{{- if ne (int .quietHours) 168 }}
- --quiet-hours={{ .quietHours | int }}
{{- end }}
{{- if ne (int .quietShare) 10 }}
- --quiet-share={{ .quietShare | int }}
{{- end }}
{{- end }}
{{- with .Values.monitoring.runbooks }}
- --docs-url={{ . }}
{{- end }}
{{- range .Values.controller.arguments }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "remediator.arguments" -}}
{{- with include "remediator.options" . | trim }}
        args:
{{ . | indent 8 }}
{{- end }}
{{- end }}

{{/* As deploy/tickets/deployment.yaml, and those of the user. */}}
{{- define "remediator.volumes" -}}
{{- $controller := .Values.controller }}
{{- if or .Values.tickets.enabled $controller.extraVolumeMounts }}
        volumeMounts:
{{- if .Values.tickets.enabled }}
        - {name: routes, mountPath: /etc/remediator/routes, readOnly: true}
        - {name: tokens, mountPath: /etc/remediator/tokens, readOnly: true}
{{- end }}
{{- range $controller.extraVolumeMounts }}
        - {{ toJson . }}
{{- end }}
{{- end }}
{{- if or .Values.tickets.enabled $controller.extraVolumes }}
      volumes:
{{- if .Values.tickets.enabled }}
      - name: routes
        configMap: {name: remediator-routes}
      - name: tokens
        secret: {secretName: {{ .Values.tickets.secretName }}}
{{- end }}
{{- range $controller.extraVolumes }}
      - {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "remediator.janitorArguments" -}}
{{- if .Values.janitor.enforce }}
        - --mode
        - Enforce
{{- end }}
{{- with .Values.prometheus.url }}
        - --prometheus-url={{ . }}
{{- end }}
{{- range .Values.alertmanager.urls }}
        - --alertmanager-url={{ . }}
{{- end }}
{{- end }}

{{/* The Pod of a hook: (list . NAME COMMAND). */}}
{{- define "remediator.hookPod" -}}
{{- $root := index . 0 -}}
restartPolicy: Never
serviceAccountName: {{ index . 1 }}
{{- include "remediator.places" $root.Values.controller }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  seccompProfile: {type: RuntimeDefault}
containers:
- name: {{ index . 1 }}
  image: {{ include "remediator.image" (list $root "controller") }}
  command: {{ toJson (index . 2) }}
  env:
  - {name: POD_NAMESPACE, value: {{ $root.Release.Namespace }}}
  resources:
    requests: {cpu: 50m, memory: 128Mi}
    limits: {memory: 256Mi}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
{{- end }}

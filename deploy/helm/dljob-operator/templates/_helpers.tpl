{{- define "dljob.name" -}}
{{- if contains "dljob-operator" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-dljob-operator" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "dljob.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "dljob.name" .) -}}
{{- end }}

{{- define "dljob.selector" -}}
app.kubernetes.io/name: dljob-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dljob.labels" -}}
{{ include "dljob.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "dljob.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* "true" where programs report their progress, else nothing. */}}
{{- define "dljob.progress" -}}
{{- if has .Values.progress (list "opt-in" "on") }}true{{ end -}}
{{- end }}

{{/* Asks for what only one of the engines can do are refused here, not found out in a crashing pod. */}}
{{- define "dljob.check" -}}
{{- if and .Values.leaderElection.enabled (not .Values.engine) }}{{ fail "leaderElection.enabled needs engine: ansible-operator or dljob-operator" }}{{ end }}
{{- if and .Values.metrics.enabled (not .Values.engine) }}{{ fail "metrics.enabled needs engine: ansible-operator or dljob-operator" }}{{ end }}
{{- if and (or .Values.metrics.tlsSecret .Values.metrics.authentication) (ne .Values.engine "dljob-operator") }}{{ fail "metrics.tlsSecret and metrics.authentication need engine: dljob-operator" }}{{ end }}
{{- if and .Values.metrics.authentication (not .Values.metrics.tlsSecret) }}{{ fail "metrics.authentication needs metrics.tlsSecret: tokens are not sent without TLS" }}{{ end }}
{{- if and (include "dljob.progress" .) (ne .Values.engine "dljob-operator") }}{{ fail "progress needs engine: dljob-operator" }}{{ end }}
{{- if and .Values.history.databaseSecret.name (ne .Values.engine "dljob-operator") }}{{ fail "history.databaseSecret needs engine: dljob-operator" }}{{ end }}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElection.enabled) }}{{ fail "replicas above 1 need leaderElection.enabled" }}{{ end }}
{{- end }}

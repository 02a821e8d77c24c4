{{- define "howdah.name" -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "howdah.selector" -}}
app.kubernetes.io/name: howdah
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "howdah.labels" -}}
{{ include "howdah.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* A number of a file of values is a fraction to Helm, which writes large ones with an exponent. */}}
{{- define "howdah.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ printf "%.0f" . }}{{ else if not (kindIs "invalid" .) }}{{ . }}{{ end -}}
{{- end -}}

{{- define "howdah.token" -}}
{{- .Values.adminTokenSecret | default (printf "%s-admin" (include "howdah.name" .)) -}}
{{- end -}}

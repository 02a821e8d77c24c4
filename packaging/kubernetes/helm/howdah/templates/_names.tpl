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

{{- define "howdah.token" -}}
{{- .Values.adminTokenSecret | default (printf "%s-admin" (include "howdah.name" .)) -}}
{{- end -}}

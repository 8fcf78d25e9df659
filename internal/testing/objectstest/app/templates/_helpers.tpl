{{- define "app.name" }}{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}{{ end }}
{{- define "app.fullname" }}{{ printf "%s-%s" .Release.Name (include "app.name" .) | trunc 63 | trimSuffix "-" }}{{ end }}
{{- define "app.selector" }}
app.kubernetes.io/name: {{ include "app.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "app.labels" }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- include "app.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "wattribute.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "wattribute.selector" -}}
app.kubernetes.io/name: wattribute
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "wattribute.labels" -}}
{{ include "wattribute.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "wattribute.meta" -}}
name: {{ include "wattribute.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "wattribute.labels" . | nindent 2 }}
{{- end }}

{{- define "wattribute.clusterMeta" -}}
name: {{ include "wattribute.fullname" . }}
labels:
  {{- include "wattribute.labels" . | nindent 2 }}
{{- end }}

package objectstest

import "fmt"

// App are the files of a chart as `helm create` begins one, by their paths below prefix: templates of six kinds with names and labels
// by includes.
func App(name, prefix string) map[string]string {
	object := func(apiVersion, kind, spec string) string {
		return fmt.Sprintf(`apiVersion: %s
kind: %s
metadata:
  name: {{ include "app.fullname" . }}
  labels: {{- include "app.labels" . | nindent 4 }}
%s`, apiVersion, kind, spec)
	}
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 1.2.3\nappVersion: 4.5.6\n",
		"values.yaml": `replicaCount: 1
image: {repository: registry.example.com/` + name + `, pullPolicy: IfNotPresent, tag: ""}
service: {type: ClusterIP, port: 80}
serviceAccount: {create: true, annotations: {}}
ingress: {enabled: true, hosts: [{host: chart.example.com, paths: [{path: /, pathType: Prefix}]}]}
autoscaling: {enabled: true, minReplicas: 1, maxReplicas: 10, targetCPUUtilizationPercentage: 80}
resources: {limits: {cpu: 100m, memory: 128Mi}, requests: {cpu: 100m, memory: 128Mi}}
`,
		"templates/_helpers.tpl": `{{- define "app.name" }}{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}{{ end }}
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
`,
		"templates/serviceaccount.yaml": "{{ if .Values.serviceAccount.create }}\n" + object("v1", "ServiceAccount", "{{ end }}\n"),
		"templates/service.yaml": object("v1", "Service", `spec:
  type: {{ .Values.service.type }}
  ports: [{port: {{ .Values.service.port }}, targetPort: http, protocol: TCP, name: http}]
  selector: {{- include "app.selector" . | nindent 4 }}
`),
		"templates/configmap.yaml": object("v1", "ConfigMap", "data:\n  values.yaml: |\n    {{- toYaml .Values | nindent 4 }}\n"),
		"templates/hpa.yaml": "{{ if .Values.autoscaling.enabled }}\n" + object("autoscaling/v2", "HorizontalPodAutoscaler", `spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ include "app.fullname" . }}}
  minReplicas: {{ .Values.autoscaling.minReplicas }}
  maxReplicas: {{ .Values.autoscaling.maxReplicas }}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: {{ .Values.autoscaling.targetCPUUtilizationPercentage }}}}}]
{{ end }}
`),
		"templates/ingress.yaml": "{{ if .Values.ingress.enabled }}\n" + object("networking.k8s.io/v1", "Ingress", `spec:
  rules:
  {{- range .Values.ingress.hosts }}
  - host: {{ .host | quote }}
    http:
      paths:
      {{- range .paths }}
      - path: {{ .path }}
        pathType: {{ .pathType }}
        backend: {service: {name: {{ include "app.fullname" $ }}, port: {number: {{ $.Values.service.port }}}}}
      {{- end }}
  {{- end }}
{{ end }}
`),
		"templates/deployment.yaml": object("apps/v1", "Deployment", `spec:
  replicas: {{ .Values.replicaCount }}
  selector:
    matchLabels: {{- include "app.selector" . | nindent 6 }}
  template:
    metadata:
      annotations: {checksum/config: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}}
      labels: {{- include "app.labels" . | nindent 8 }}
    spec:
      serviceAccountName: {{ include "app.fullname" . }}
      containers:
      - name: {{ .Chart.Name }}
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        ports: [{name: http, containerPort: 80, protocol: TCP}]
        livenessProbe: {httpGet: {path: /, port: http}}
        readinessProbe: {httpGet: {path: /, port: http}}
        resources: {{- toYaml .Values.resources | nindent 10 }}
`),
	}
	all := map[string]string{}
	for file, content := range files {
		all[prefix+file] = content
	}
	return all
}

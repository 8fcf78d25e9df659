//go:build linux

package pipeline_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/objects/objectstest"
	"github.com/flotilla/terraform-provider-flotilla/internal/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/processtest"
)

// BenchmarkPreview computes fleets and renders their folders: with pointers, then with the final objects of a chart of each
// workload, 500 in the reference fleet, which get the values of each assignment. Where it is cold, nothing is kept; where it
// is warm, all final objects are on disk. It reports the processor time of this process and of its workers, which hardly
// depends on how busy the machine is, and the peak of the memory of both.
func BenchmarkPreview(b *testing.B) {
	for _, size := range []int{1_000, fleettest.ReferenceAssignments} {
		b.Run(fmt.Sprintf("assignments=%d", size), func(b *testing.B) { benchmarkPreview(b, size) })
	}
}

func benchmarkPreview(b *testing.B, size int) {
	b.Helper()
	archives := objectstest.NewArchives(b)
	pointers, preview := previewed(b, archives, size, "pointers"), previewed(b, archives, size, "preview")
	run := func(b *testing.B, value fleet.Value, folder func() string) {
		b.Helper()
		debug.FreeOSMemory()
		processtest.ForgetPeakMemory()
		b.ReportAllocs()
		workers, before := 0, fleettest.ProcessorTime()+ofWorkers()
		for b.Loop() {
			pool := renderer.New(archives, renderer.WithFolder(folder()))
			cache := pipeline.Cache{Renderer: objects.Renderer(pool)}
			result, findings := cache.Compute(value)
			if len(findings) > 0 {
				b.Fatal(findings)
			}
			if rendering := result.Render(b.Context(), destination, nil); len(rendering.Findings) > 0 {
				b.Fatal(rendering.Findings)
			}
			workers = max(workers, peakOfWorkers())
			pool.Close()
		}
		b.ReportMetric((fleettest.ProcessorTime()+ofWorkers()-before).Seconds()/float64(b.N), "processor-s/op")
		processtest.ReportPeakMemory(b)
		b.ReportMetric(float64(workers)/1024, "workers-peak-MiB")
	}
	kept := ""
	empty := func() string { kept = b.TempDir(); return kept }
	full := func() string { return kept }
	b.Run("pointers", func(b *testing.B) { run(b, pointers, empty) })
	b.Run("cold", func(b *testing.B) { run(b, preview, empty) })
	b.Run("warm", func(b *testing.B) { run(b, preview, full) })
}

// previewed is a fleet with a chart of each workload, rendered as it says.
func previewed(b *testing.B, archives *objectstest.Archives, size int, how string) fleet.Value {
	b.Helper()
	input := fleettest.Input(fleettest.Reference(size, 1))
	for _, clusterType := range input["cluster_types"].([]any) {
		clusterType.(map[string]any)["render"] = how
	}
	pins := artifact.Resolved{}
	for i, one := range input["workloads"].([]any) {
		workload := one.(map[string]any)
		name := workload["name"].(string)
		pin := folder.Pin{Version: "1.2.3", Digest: fmt.Sprintf("sha256:%064x", i)}
		manifests := folder.Manifests{Storage: "helm", Repo: "https://charts.example.com", Chart: name, Version: "1.2.3"}
		archives.Add(artifact.Artifact{Storage: "helm", Repo: manifests.Repo, Chart: name, Pin: pin}, appChart(name))
		for target, given := range workload["deployment_targets"].(map[string]any) {
			given.(map[string]any)["manifests"] = map[string]any{"storage": "helm", "repo": manifests.Repo, "chart": name, "version": "1.2.3"}
			given.(map[string]any)["config_as"] = []any{"values"}
			pins[name+"-"+target] = artifact.Entry{Manifests: manifests, Pin: pin}
		}
	}
	text, err := pins.Encode()
	if err != nil {
		b.Fatal(err)
	}
	input["artifacts"] = text
	return valueOf(b, input)
}

// ofWorkers is the processor time of all workers that have ended.
func ofWorkers() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// peakOfWorkers is how much memory of the processes that this one has started was resident at once, at most, in KiB: their
// sum; 0 where the kernel does not tell.
func peakOfWorkers() int {
	found, _ := filepath.Glob("/proc/[0-9]*/status")
	sum := 0
	for _, file := range found {
		status, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(status, fmt.Appendf(nil, "\nPPid:\t%d\n", os.Getpid())) {
			continue
		}
		if _, peak, ok := strings.Cut(string(status), "VmHWM:"); ok {
			kib := 0
			_, _ = fmt.Sscan(peak, &kib)
			sum += kib
		}
	}
	return sum
}

// appChart is a chart as `helm create` begins one: templates of six kinds with names and labels by includes.
func appChart(name string) map[string]string {
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
		all[name+"/"+file] = content
	}
	return all
}

package renderer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/served"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// charts is the folder of published charts and kustomizations.
const charts = "../../../../../shared/charts"

// tool returns the path of a program that `make acceptance` builds. It skips the test if the program is missing.
func tool(t *testing.T, name string) string {
	t.Helper()
	acceptancetest.Only(t)
	path, err := processtest.Tool("FLOTILLA_KUBE_BIN", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not built, `make acceptance` builds it: the oracle cannot be asked", name)
	}
	return path
}

// eachFolderOfOthers calls do with each folder of published charts ("helm") or kustomizations ("kustomize"): the folder in
// ../shared, and the folders of FLOTILLA_CHARTS.
func eachFolderOfOthers(t *testing.T, kind string, do func(t *testing.T, folder string)) {
	t.Helper()
	t.Run("shared", func(t *testing.T) {
		folder := filepath.Join(charts, kind)
		if _, err := os.Stat(folder); err != nil {
			t.Skipf("shared/charts/%s is absent: the published files cannot be rendered", kind)
		}
		do(t, folder)
	})
	t.Run("further", func(t *testing.T) {
		for _, folder := range filepath.SplitList(os.Getenv("FLOTILLA_CHARTS")) {
			do(t, filepath.Join(folder, kind))
		}
	})
}

// runProgram returns the output of a program.
func runProgram(t *testing.T, program string, arguments ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Env = append(
		os.Environ(),
		"HOME="+home,
		"HELM_CACHE_HOME="+home,
		"HELM_CONFIG_HOME="+home,
		"HELM_DATA_HOME="+home,
		"HELM_PLUGINS="+home,
	)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return string(output), nil
}

var separator = regexp.MustCompile(`(?m)^---[ \t]*(#.*)?$`)

// normalize sorts the objects of a stream of YAML, and the fields in each.
func normalize(t *testing.T, stream string) []string {
	t.Helper()
	var all []string
	for _, document := range separator.Split(stream, -1) {
		var object any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if object == nil {
			continue
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	slices.Sort(all)
	return all
}

// checkSame compares a result with the output of a program and returns the number of objects.
func checkSame(t *testing.T, result *objects.Rendering, want string) int {
	t.Helper()
	var texts []string
	for _, o := range result.Objects {
		texts = append(texts, string(o.YAML))
	}
	rendered, oracle := normalize(t, strings.Join(texts, "---\n")), normalize(t, want)
	for _, object := range rendered {
		if !slices.Contains(oracle, object) {
			t.Errorf("the oracle has no\n%s", object)
		}
	}
	for _, object := range oracle {
		if !slices.Contains(rendered, object) {
			t.Errorf("the result has no\n%s", object)
		}
	}
	if len(rendered) != len(oracle) {
		t.Errorf("got %d objects, the oracle has %d", len(rendered), len(oracle))
	}
	return len(rendered)
}

// refusals has the causes for the refusal of charts that Helm renders, and a part of each error.
var refusals = []struct{ cause, text string }{
	{byChance, "renders something else each time"},
	{"chance, clock or cluster, with which it fails", "fails when rendered again with another result"},
	{"an object twice", "is there twice"},
	{"more APIs than one asks for", "API versions that its clusters do not have"},
	{"a library", "is a library"},
	{"dependencies of chart repositories", "which its folder charts does not have"},
	{"more than a bound", " MiB"},
}

// refusedBy returns the cause of a refusal, or "" for another error.
func refusedBy(err error) string {
	for _, refusal := range refusals {
		if strings.Contains(err.Error(), refusal.text) {
			return refusal.cause
		}
	}
	return ""
}

// counts has the numbers of renderings by outcome. It is safe for concurrent use.
type counts struct {
	mutex sync.Mutex
	by    map[string]int
}

func (c *counts) add(outcome string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.by[outcome]++
}

// knownRefusals reads the numbers of refusals by agent and cause from refused.json beside the charts. Without the file, there
// are no refusals.
func knownRefusals(t *testing.T, folder string) map[string]int {
	t.Helper()
	known := map[string]int{}
	content, err := os.ReadFile(filepath.Join(folder, "..", "refused.json"))
	if errors.Is(err, os.ErrNotExist) && filepath.Dir(folder) == filepath.Clean(charts) {
		return map[string]int{"argocd: " + byChance: saltedValueFiles, "flux: " + byChance: saltedValueFiles}
	}
	if errors.Is(err, os.ErrNotExist) {
		return known
	}
	if err == nil {
		err = json.Unmarshal(content, &known)
	}
	if err != nil {
		t.Fatal(err)
	}
	return known
}

const asByHelm, byChance = "equal", "chance, clock or cluster"

// saltedValueFiles is the number of value files that make prometheus-pushgateway hash a password with a random salt.
const saltedValueFiles = 3

// TestChartsAreRenderedAsByHelm renders each chart for each agent, with its default values and with each of its value files (in
// `make test`, with one of them). It compares the objects with the output of `helm template`. It counts refusals by cause, and
// fails if a number grows.
func TestChartsAreRenderedAsByHelm(t *testing.T) {
	helm := tool(t, "helm4")
	eachFolderOfOthers(t, "helm", func(t *testing.T, folder string) {
		outcomes := &counts{by: map[string]int{}}
		t.Run("charts", func(t *testing.T) { renderAll(t, folder, helm, outcomes) })
		known := knownRefusals(t, folder)
		for _, outcome := range slices.Sorted(maps.Keys(outcomes.by)) {
			number := outcomes.by[outcome]
			t.Logf("%s: %d", outcome, number)
			if _, cause, _ := strings.Cut(outcome, ": "); !strings.HasPrefix(cause, asByHelm) && number > known[outcome] {
				t.Errorf("%s: got %d refusals, want at most %d", outcome, number, known[outcome])
			}
		}
	})
}

func renderAll(t *testing.T, folder, helm string, outcomes *counts) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*", "Chart.yaml"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%d charts, %v", len(found), err)
	}
	for _, file := range found {
		chart := filepath.Dir(file)
		t.Run(filepath.Base(chart), func(t *testing.T) {
			t.Parallel()
			archives := objectstest.NewArchives(t)
			shipped := archives.Add(shop, objectstest.Folder(t, chart))
			for _, values := range valueFiles(t, chart) {
				compareWithHelm(t, archives, shipped, chart, values, helm, outcomes)
			}
		})
	}
}

// deploying has the agents' objects that deploy a chart as the release "eu".
var deploying = map[string]map[string]any{
	"argocd": {
		"kind": "Application", "metadata": map[string]any{"name": "eu"}, "spec": map[string]any{"source": map[string]any{"helm": map[string]any{}}},
	},
	"flux": {"kind": "HelmRelease", "spec": map[string]any{"releaseName": "eu"}},
}

// compareWithHelm renders a chart with a value file for each agent. It leaves out upgrades, because Helm does not print them,
// and tests, because no agent runs them.
func compareWithHelm(
	t *testing.T, archives *objectstest.Archives, shipped artifact.Artifact, chart, values, helm string, outcomes *counts,
) {
	t.Helper()
	for _, agent := range slices.Sorted(maps.Keys(deploying)) {
		request := objects.Request{Artifact: shipped, KubernetesVersion: "1.34", APIVersions: []string{"monitoring.coreos.com/v1"}}
		if problems := reconciler.Named(agent).RequestOf([]map[string]any{deploying[agent]}, &request); problems != nil {
			t.Fatal(problems)
		}
		request.Namespace, request.Helm.Namespace = "tills", "tills"
		arguments := []string{"template", "eu", chart, "--namespace", "tills", "--include-crds", "--skip-tests", "--kube-version", "1.34"}
		arguments = append(arguments, "--api-versions", clusterAPIs(t))
		if values != "" {
			request.Helm.ValueFiles = []string{values}
			arguments = append(arguments, "--values", filepath.Join(chart, values))
		}
		result, err := renderer.InProcess(archives).Render(t.Context(), &request)
		if result != nil {
			result.Objects = slices.DeleteFunc(result.Objects, func(o objects.FinalObject) bool { return o.On == objects.OnUpgrade })
			if result.RemoteSchemas != nil {
				arguments = append(arguments, "--skip-schema-validation")
				outcomes.add(agent + ": " + asByHelm + ", with a schema that is not read")
			}
		}
		want, oracleErr := runProgram(t, helm, arguments...)
		switch {
		case err != nil && oracleErr != nil:
			outcomes.add(agent + ": " + asByHelm + ", as both refuse the values")
		case err == nil && oracleErr == nil:
			checkSame(t, result, want)
			outcomes.add(agent + ": " + asByHelm)
			for _, violation := range result.Violations {
				o := &result.Objects[violation.Object]
				t.Logf("%s violates a schema: %s", o.Kind+" "+o.Name, violation.Message)
			}
		case err != nil && refusedBy(err) != "":
			outcomes.add(agent + ": " + refusedBy(err))
			t.Logf("%s, with %q: %v", agent, values, err)
		default:
			t.Errorf("%s, with %q: %v; helm template: %v", agent, values, err, oracleErr)
		}
	}
}

// clusterAPIs returns the APIs of a cluster with Kubernetes 1.34 and monitoring, as Argo CD passes them to Helm.
func clusterAPIs(t *testing.T) string {
	t.Helper()
	apis, err := served.APIs("1.34")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(slices.Clone(apis), "monitoring.coreos.com/v1"), ",")
}

// TestParametersAreSetAsByHelm sets parameters over the values of a chart and a file. It compares types and texts with
// `helm template` with --set and --set-string (in `make test`, with one of them for each parameter).
func TestParametersAreSetAsByHelm(t *testing.T) {
	helm := tool(t, "helm4")
	files := map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: till\nversion: 1.0.0\n",
		"values.yaml": "a: {b: 1, c: text}\nlist: [{d: 1}, {d: 2}]\n",
		"more.yaml":   "number: 12000000\na: {c: 1.50}\n",
		"templates/settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
{{- range $key, $value := .Values }}
  {{ $key }}: {{ printf "%T %v %s" $value $value (toJson $value) | quote }}
{{- end }}
  inner: {{ printf "%T %T" .Values.a.b .Values.a.c | quote }}
`,
	}
	folder := t.TempDir()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archives := objectstest.NewArchives(t)
	chart := archives.Add(shop, files)
	for i, parameter := range []objects.Parameter{
		{Name: "number", Value: "12000000"}, {Name: "number", Value: "9223372036854775807"}, {Name: "number", Value: "9223372036854775808"},
		{Name: "number", Value: "-3"}, {Name: "number", Value: "1.50"}, {Name: "number", Value: "1e3"}, {Name: "number", Value: "0x1f"},
		{Name: "number", Value: "007"}, {Name: "number", Value: "0"}, {Name: "number", Value: "true"}, {Name: "number", Value: "null"},
		{Name: "number", Value: ""}, {Name: "number", Value: "{1,text,2.5}"}, {Name: "a.b", Value: "12000000"}, {Name: "a.c", Value: "null"},
		{Name: "a.new.deep", Value: "20000000"}, {Name: "list[1].d", Value: "30000000"}, {Name: "list[3]", Value: "4"}, {Name: "a", Value: "5"},
	} {
		for _, isText := range []bool{false, true} {
			if !acceptancetest.All() && isText == (i%2 == 0) {
				continue
			}
			parameter.IsText = isText
			flag := "--set"
			if isText {
				flag = "--set-string"
			}
			result, err := renderer.InProcess(archives).Render(t.Context(), &objects.Request{Artifact: chart, Helm: &objects.Helm{
				ReleaseName: "eu", ValueFiles: []string{"more.yaml"}, Parameters: []objects.Parameter{parameter}}})
			want, oracleErr := runProgram(
				t,
				helm,
				"template",
				"eu",
				folder,
				"--values",
				filepath.Join(folder, "more.yaml"),
				flag,
				parameter.Name+"="+parameter.Value,
			)
			if (err == nil) != (oracleErr == nil) {
				t.Errorf("%s %s=%s: %v; helm template: %v", flag, parameter.Name, parameter.Value, err, oracleErr)
			} else if err == nil {
				checkSame(t, result, want)
			}
		}
	}
}

// valueFiles returns "" for the default values, and the further value files of a chart.
func valueFiles(t *testing.T, chart string) []string {
	t.Helper()
	files := []string{""}
	for _, pattern := range []string{"ci/*.yaml", "values-*.yaml"} {
		found, err := filepath.Glob(filepath.Join(chart, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			name, err := filepath.Rel(chart, file)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, filepath.ToSlash(name))
		}
	}
	if !acceptancetest.All() && len(files) > 2 {
		files = []string{"", files[1+crc32.ChecksumIEEE([]byte(filepath.Base(chart)))%uint32(len(files)-1)]}
	}
	return files
}

// TestKustomizationsAreBuiltAsByKustomize builds every folder with a kustomization, and compares the objects with the output of
// `kustomize build`.
func TestKustomizationsAreBuiltAsByKustomize(t *testing.T) {
	kustomize := tool(t, "kustomize")
	eachFolderOfOthers(t, "kustomize", func(t *testing.T, folder string) { buildAll(t, folder, kustomize) })
}

func buildAll(t *testing.T, folder, kustomize string) {
	t.Helper()
	archives := objectstest.NewArchives(t)
	all := archives.Add(shop, objectstest.Folder(t, folder))
	built := 0
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		path := filepath.Dir(file)
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			result, err := renderer.InProcess(archives).Render(t.Context(),
				&objects.Request{Artifact: all, Path: filepath.ToSlash(name), Namespace: "default", Kustomize: &objects.Kustomize{}})
			want, oracleErr := runProgram(t, kustomize, "build", path)
			switch {
			case err != nil && oracleErr != nil: // a file is missing
			case err != nil || oracleErr != nil:
				t.Error(errors.Join(err, oracleErr))
			default:
				t.Logf("%d objects", checkSame(t, result, want))
				built++
			}
		})
		return nil
	})
	if err != nil || built == 0 {
		t.Errorf("%d kustomizations were built, %v", built, err)
	}
}

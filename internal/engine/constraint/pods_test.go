package constraint_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

type fields = map[string]any

// nest wraps a value in objects: nest("a.b", value) is {a: {b: value}}.
func nest(path string, value any) fields {
	keys := strings.Split(path, ".")
	for _, key := range slices.Backward(keys) {
		value = fields{key: value}
	}
	return value.(fields)
}

// podWrappers put the metadata and spec of a pod into an object, by apiVersion and kind: kinds of Kubernetes, of well-known
// operators, and lists.
var podWrappers = map[string]func(pod fields) fields{
	"v1/Pod":                              func(pod fields) fields { return pod },
	"v1/PodTemplate":                      func(pod fields) fields { return nest("template", pod) },
	"v1/ReplicationController":            inTemplate,
	"apps/v1/ReplicaSet":                  inTemplate,
	"apps/v1/Deployment":                  inTemplate,
	"apps/v1/StatefulSet":                 inTemplate,
	"apps/v1/DaemonSet":                   inTemplate,
	"batch/v1/Job":                        inTemplate,
	"batch/v1/CronJob":                    func(pod fields) fields { return nest("spec.jobTemplate.spec.template", pod) },
	"argoproj.io/v1alpha1/Rollout":        inTemplate,
	"serving.knative.dev/v1/Service":      inTemplate,
	"apps.kruise.io/v1alpha1/CloneSet":    inTemplate,
	"keda.sh/v1alpha1/ScaledJob":          func(pod fields) fields { return nest("spec.jobTargetRef.template", pod) },
	"kubeflow.org/v1/PyTorchJob":          func(pod fields) fields { return nest("spec.pytorchReplicaSpecs.Worker.template", pod) },
	"monitoring.coreos.com/v1/Prometheus": func(pod fields) fields { return pod },
	"company.example/v1/Kind":             func(pod fields) fields { return fields{"spec": fields{"shards": []any{pod}}} },
	"v1/List":                             func(pod fields) fields { return fields{"items": []any{withKind("v1/Pod", pod)}} },
	"v1/PodList":                          func(pod fields) fields { return fields{"items": []any{pod}} },
	"v1/ConfigMap":                        func(pod fields) fields { return fields{"items": []any{withKind("v1/Pod", pod)}} },
	"apps/v1/DeploymentList": func(pod fields) fields {
		return fields{"items": []any{merge(inTemplate(pod), fields{"metadata": pod["metadata"]})}}
	},
}

func inTemplate(pod fields) fields { return nest("spec.template", pod) }

func withKind(kind string, object fields) fields {
	cut := strings.LastIndex(kind, "/")
	object = maps.Clone(object)
	object["apiVersion"], object["kind"] = kind[:cut], kind[cut+1:]
	return object
}

// goodPod violates no rule of the library, and satisfies the restricted standard. Some fields are null, as in charts.
const goodPod = `
metadata: {name: till, annotations: {container.apparmor.security.beta.kubernetes.io/till: runtime/default}}
spec:
  hostNetwork: null
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, sysctls: null}
  volumes: [{name: work, emptyDir: {}}, {name: config, configMap: {name: till}}]
  containers: [GOOD]
  initContainers: [GOOD]
  ephemeralContainers: [GOOD]
`

const goodContainer = `{name: till, image: "registry.example.com/till:v1", ports: [{containerPort: 80}], ` +
	`livenessProbe: {httpGet: {port: 80}}, resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}, ` +
	`securityContext: {privileged: null, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}`

// defect is merged over the good pod or one of its containers, and violates a rule of the library.
type defect struct{ rule, merged, message string }

var podDefects = map[string]defect{
	"the network of the machine":   {"pod-security", "spec: {hostNetwork: true}", "host namespaces (hostNetwork=true)"},
	"the processes of the machine": {"pod-security", "spec: {hostPID: true}", "host namespaces (hostPID=true)"},
	"the memory of the machine":    {"pod-security", "spec: {hostIPC: true}", "host namespaces (hostIPC=true)"},
	"files of the machine": {
		"pod-security",
		"spec: {volumes: [{name: root, hostPath: {path: /}}]}", `hostPath volumes (volume "root")`,
	},
	"a profile of AppArmor by annotation": {
		"pod-security", "metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/till: unconfined}}",
		"forbidden AppArmor profile",
	},
	"no AppArmor": {
		"pod-security",
		"spec: {securityContext: {appArmorProfile: {type: Unconfined}}}", "forbidden AppArmor profile",
	},
	"no seccomp": {
		"pod-security",
		"spec: {securityContext: {seccompProfile: {type: Unconfined}}}", "seccompProfile",
	},
	"a type of SELinux": {"pod-security", "spec: {securityContext: {seLinuxOptions: {type: spc_t}}}", "seLinuxOptions"},
	"a user of SELinux": {"pod-security", "spec: {securityContext: {seLinuxOptions: {user: root}}}", "seLinuxOptions"},
	"a sysctl": {
		"pod-security",
		"spec: {securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}}", "forbidden sysctls",
	},
	"a process of Windows": {"pod-security", "spec: {securityContext: {windowsOptions: {hostProcess: true}}}", "hostProcess"},
	"the user root":        {"pod-security-restricted", "spec: {securityContext: {runAsUser: 0}}", "runAsUser=0"},
	"any user": {
		"pod-security-restricted",
		"spec: {securityContext: {runAsNonRoot: false}}", "runAsNonRoot != true",
	},
	"a volume of NFS": {
		"pod-security-restricted",
		"spec: {volumes: [{name: work, nfs: {server: a, path: /}}]}", "restricted volume types",
	},
	"a volume with an image": {
		"registries",
		"spec: {volumes: [{name: model, image: {reference: 'docker.io/model:v1'}}]}", "docker.io/model:v1",
	},
	"a volume of latest": {
		"pinned-images",
		"spec: {volumes: [{name: model, image: {reference: 'registry.example.com/model:latest'}}]}", "the tag latest",
	},
}

var containerDefects = map[string]defect{
	"privileged": {"pod-security", "securityContext: {privileged: true}", "privileged (container "},
	"a capability": {
		"pod-security",
		"securityContext: {capabilities: {add: [SYS_ADMIN]}}", "non-default capabilities",
	},
	"a port of the machine": {"pod-security", "ports: [{containerPort: 80, hostPort: 80}]", "hostPort"},
	"all of /proc":          {"pod-security", "securityContext: {procMount: Unmasked}", "procMount"},
	"no seccomp":            {"pod-security", "securityContext: {seccompProfile: {type: Unconfined}}", "seccompProfile"},
	"no AppArmor": {
		"pod-security",
		"securityContext: {appArmorProfile: {type: Unconfined}}", "forbidden AppArmor profile",
	},
	"a type of SELinux":       {"pod-security", "securityContext: {seLinuxOptions: {type: spc_t}}", "seLinuxOptions"},
	"a process of Windows":    {"pod-security", "securityContext: {windowsOptions: {hostProcess: true}}", "hostProcess"},
	"a probe of another host": {"pod-security", "livenessProbe: {httpGet: {port: 80, host: 169.254.169.254}}", "host"},
	"hidden by another case": {
		"pod-security",
		"securityContext: {privileged: true, Privileged: false}", "privileged (container ",
	},
	"no boolean": {"pod-security", "securityContext: {privileged: 'true'}", "cannot be read as a pod"},
	"more privileges later": {
		"pod-security-restricted",
		"securityContext: {allowPrivilegeEscalation: true}", "allowPrivilegeEscalation != false",
	},
	"capabilities are kept": {
		"pod-security-restricted",
		"securityContext: {capabilities: {drop: []}}", "unrestricted capabilities",
	},
	"another registry":   {"registries", "image: docker.io/till:v1", "docker.io/till:v1"},
	"no tag":             {"pinned-images", "image: registry.example.com/till", "neither a tag nor a digest"},
	"the tag latest":     {"pinned-images", "image: 'registry.example.com/till:latest'", "the tag latest"},
	"no limit of memory": {"requests-and-limits", "resources: {limits: null}", "limits its memory"},
	"no request of cpu":  {"requests-and-limits", "resources: {requests: null}", "requests cpu"},
}

// badPods returns the good pod with each defect and, for defects of containers, in each list of containers.
func badPods(t *testing.T) (pods []fields, defects []defect) {
	t.Helper()
	good := func() fields { return parseFields(t, strings.ReplaceAll(goodPod, "GOOD", goodContainer)) }
	for _, name := range slices.Sorted(maps.Keys(podDefects)) {
		pods, defects = append(pods, merge(good(), parseFields(t, podDefects[name].merged))), append(defects, podDefects[name])
	}
	for _, name := range slices.Sorted(maps.Keys(containerDefects)) {
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			pod := good()
			containers := pod["spec"].(fields)[list].([]any)
			containers[0] = merge(containers[0].(fields), parseFields(t, containerDefects[name].merged))
			pods, defects = append(pods, pod), append(defects, containerDefects[name])
		}
	}
	return pods, defects
}

// TestLibraryCoversEveryKindWithPods has bad objects of each kind, with each defect in each list of containers.
// In `make test` each kind has a fourth of the defects, and five kinds have each defect.
func TestLibraryCoversEveryKindWithPods(t *testing.T) {
	t.Parallel()
	rules := readConstraints(t, "final-objects")
	pods, podDefect := badPods(t)
	share := acceptancetest.Count(4, 1)
	for number, kind := range slices.Sorted(maps.Keys(podWrappers)) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var all []objects.FinalObject
			defects := map[string]defect{}
			add := func(pod fields, broken defect) {
				name := fmt.Sprintf("o%03d", len(all))
				defects[name] = broken
				pod = merge(pod, nest("metadata.name", name))
				all = append(all, newFinalObject(t, merge(withKind(kind, podWrappers[kind](pod)), nest("metadata.name", name))))
			}
			add(parseFields(t, strings.ReplaceAll(goodPod, "GOOD", goodContainer)), defect{})
			for i := number % share; i < len(pods); i += share {
				add(pods[i], podDefect[i])
			}
			got := violationsOf(t, rules, all)
			for name, broken := range defects {
				if broken.rule == "" && len(got[name]) > 0 {
					t.Errorf("a good object violates %v", got[name])
				}
				if message, isFound := got[name][broken.rule]; broken.rule != "" && (!isFound || !strings.Contains(message, broken.message)) {
					t.Errorf("%+v: got violations %v", broken, got[name])
				}
			}
		})
	}
}

// violationsOf returns messages by object and rule.
func violationsOf(t *testing.T, rules []fleet.Constraint, all []objects.FinalObject) map[string]map[string]string {
	t.Helper()
	subjects := subjectsOf(computeFleet(t, compliantFleet))
	subjects.Files = func(int) ([]render.AssignmentFile, string, error) { return nil, "", nil }
	subjects.Final = func(i int) ([]objects.FinalObject, string, error) {
		if i > 0 {
			return nil, "", nil
		}
		return all, "", nil
	}
	found := map[string]map[string]string{}
	for _, result := range checkRules(t, subjects, rules...).Rules {
		if result.Error != "" || result.Failed > 0 {
			t.Errorf("%s cannot be evaluated: %s %+v", result.Name, result.Error, result.Violations)
		}
		for _, violation := range result.Violations {
			name := violation.Subject.Object[strings.LastIndexAny(violation.Subject.Object, " /")+1:]
			if found[name] == nil {
				found[name] = map[string]string{}
			}
			found[name][result.Name] = violation.Message
		}
	}
	return found
}

func parseFields(t *testing.T, text string) fields {
	t.Helper()
	value := fields{}
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// merge merges two objects deeply, like a JSON merge patch, but keeps nulls.
func merge(base, patch fields) fields {
	merged := maps.Clone(base)
	for key, value := range patch {
		below, isObject := value.(fields)
		if existing, isMergeable := merged[key].(fields); isObject && isMergeable {
			value = merge(existing, below)
		}
		merged[key] = value
	}
	return merged
}

func newFinalObject(t *testing.T, object fields) objects.FinalObject {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	content, err := yaml.JSONToYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	group, version, hasGroup := strings.Cut(object["apiVersion"].(string), "/")
	if !hasGroup {
		group, version = "", group
	}
	return objects.FinalObject{Group: group, Version: version, Kind: object["kind"].(string), Name: "final", From: objects.FromChart, YAML: content}
}

func TestPodRulesSeeEveryObjectWithPods(t *testing.T) {
	t.Parallel()
	objectsOf := func(texts ...string) (all []objects.FinalObject) {
		for _, text := range texts {
			all = append(all, newFinalObject(t, parseFields(t, text)))
		}
		return all
	}
	all := objectsOf(
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: none}, data: {containers: 'no', image: a}}",
		"{apiVersion: v1, kind: Service, metadata: {name: none}, spec: {ports: [{port: 80}]}}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: none}, "+
			"spec: {properties: {containers: {type: array}, hostNetwork: {type: boolean}}}}",
		"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: none}, "+
			"spec: {values: {initContainers: [{name: a, image: b}]}}}",
		"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: 'a:1'}]}}",
		"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: b}, "+
			"spec: {templates: [{container: {image: 'b:1'}}, {script: {image: 'b:2', source: x}, sidecars: [{name: c, image: 'b:3'}]}]}}",
		"{apiVersion: tekton.dev/v1, kind: Task, metadata: {name: c}, "+
			"spec: {steps: [{name: a, image: 'c:1', securityContext: {privileged: true}}], volumes: [{name: v, hostPath: {path: /}}]}}",
		"{apiVersion: kargo.akuity.io/v1alpha1, kind: Stage, metadata: {name: none}, spec: {steps: [{uses: git-clone}]}}",
		"{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: d}, spec: {hostNetwork: true}}",
	)
	got := violationsOf(t, []fleet.Constraint{
		{Name: "seen", Expression: `size(pods) == 0`, MessageExpression: `pods.map(p, p.path).join(" ")`},
		{Name: "images", Expression: `size(images) == 0`, MessageExpression: `images.join(" ")`},
		{Name: "privileged", Expression: `pods.all(p, size(p.baseline) == 0)`,
			MessageExpression: `pods.map(p, p.baseline).flatten().join(" ")`},
		{Name: "fields", Match: fleet.ConstraintMatch{Kinds: []string{"Pod"}}, Message: "as in the object",
			Expression: `!pods.exists(p, p.spec == object.spec &&
			p.metadata == object.metadata && p.containers == containers && size(containers) == 1 && size(p.restricted) > size(p.baseline))`},
		{Name: "kinds", Match: fleet.ConstraintMatch{Kinds: []string{"Task", "Service"}}, Expression: `size(containers) == 0`, Message: "task"},
	}, all)
	want := map[string]map[string]string{
		"a": {"seen": "spec", "images": "a:1", "fields": "as in the object"},
		"b": {"seen": "spec.templates[0] spec.templates[1]", "images": "b:1 b:2 b:3"},
		"c": {"seen": "spec", "images": "c:1", "kinds": "task", "privileged": `hostPath volumes (volume "v") ` +
			`privileged (container "a" must not set securityContext.privileged=true)`},
		"d": {"seen": "spec", "privileged": "host namespaces (hostNetwork=true)"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

// Kubernetes 1.34 forbids probes of another host.
func TestPodStandardFollowsTheKubernetesVersion(t *testing.T) {
	t.Parallel()
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: a}, ` +
		`spec: {containers: [{name: a, livenessProbe: {httpGet: {port: 80, host: 10.0.0.1}}}]}}`
	for version, want := range map[string]int{"1.33": 0, "1.34": 1} {
		subjects := subjectsOf(computeFleet(t, replace(t, compliantFleet, "{name: core,", "{name: core, kubernetes_version: '"+version+"',")))
		subjects.Final = func(int) ([]objects.FinalObject, string, error) {
			return []objects.FinalObject{newFinalObject(t, parseFields(t, pod))}, "", nil
		}
		result := checkRule(t, subjects, fleet.Constraint{
			Match: fleet.ConstraintMatch{
				Kinds: []string{"v1/Pod"}, ClusterTypeSelector: &fleet.Selector{MatchLabels: map[string]string{"region": "east"}},
			},
			Expression: `pods.all(p, size(p.baseline) == 0)`,
		})
		if result.Looked == 0 || (result.Violated > 0) != (want > 0) {
			t.Errorf("%s: %+v", version, result)
		}
	}
}

// A rule of the library names every kind through which an agent creates objects. A ResourceGroup only lists objects.
func TestLibraryNamesEveryPointerKind(t *testing.T) {
	t.Parallel()
	rules := readConstraints(t, "final-objects")
	index := slices.IndexFunc(rules, func(rule fleet.Constraint) bool { return rule.Name == "no-pointers-in-manifests" })
	for _, kind := range reconciler.Kinds() {
		name := kind.Group + "/" + kind.Kind
		isPointer := kind.Is(reconciler.Consumer|reconciler.Maker) && kind.Kind != "ResourceGroup"
		if isPointer && !slices.Contains(rules[index].Match.Kinds, name) {
			t.Errorf("the rule does not name %s", name)
		}
	}
}

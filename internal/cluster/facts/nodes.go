package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const (
	regionLabel   = "topology.kubernetes.io/region"
	zoneLabel     = "topology.kubernetes.io/zone"
	hostLabel     = "kubernetes.io/hostname"
	notReadyNamed = 3
)

// Nodes summarizes the nodes of a cluster.
type Nodes struct {
	all, ready            int
	readySince            []time.Time       // of the ready nodes
	notSince              time.Time         // the latest of the others
	notReady              []string          // names of the first ones
	lists                 map[string]texts  // by name of the fact
	labels                map[string]string // to all nodes
	provider, region      texts
	capacity, allocatable amounts
}

// NewNodes returns a summary to add to.
func NewNodes() *Nodes {
	n := &Nodes{lists: map[string]texts{}, provider: texts{}, region: texts{}, capacity: amounts{}, allocatable: amounts{}}
	for _, name := range []string{"node_versions", "os_images", "operating_systems", "architectures", "container_runtimes", "zones"} {
		n.lists[name] = texts{}
	}
	return n
}

type texts map[string]bool

func (t texts) add(text string) {
	if text = textOf(text); text != "" && len(t) < maxFound {
		t[text] = true
	}
}

func (t texts) sorted(compare func(a, b string) int) []any {
	all := []any{}
	for _, text := range slices.SortedFunc(maps.Keys(t), compare) {
		if len(all) < maxMany {
			all = append(all, text)
		}
	}
	return all
}

// single returns the string if there is exactly one.
func (t texts) single() string {
	if len(t) != 1 {
		return ""
	}
	for text := range t {
		return text
	}
	return ""
}

// amounts sums quantities by resource: thousandths of cpu, whole units of others.
type amounts map[string]float64

func (a amounts) add(from map[string]float64) {
	for name, amount := range from {
		if _, known := a[name]; known || len(a) < maxMany {
			a[name] += amount
		}
	}
}

func (a amounts) facts() map[string]any {
	found := make(map[string]any, len(a))
	for name, amount := range a {
		if name == "cpu" {
			amount /= 1000
		}
		found[name] = amount
	}
	return found
}

// quantities returns valid quantities, such as a node's capacity.
func quantities(object map[string]any, fields ...string) map[string]float64 {
	value, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	given, _ := value.(map[string]any)
	found := make(map[string]float64, len(given))
	for name, value := range given {
		text := fmt.Sprint(value)
		if textOf(name) == "" || len(text) > 64 {
			continue
		}
		quantity, err := resource.ParseQuantity(text)
		switch {
		case err != nil || quantity.Sign() < 0:
		case name == "cpu":
			found[name] = float64(quantity.MilliValue())
		default:
			found[name] = float64(quantity.Value())
		}
	}
	return found
}

// Add adds a node and retains only strings.
func (n *Nodes) Add(node *unstructured.Unstructured) {
	n.all++
	if ready := conditionOf(node, "Ready"); ready.status == "True" {
		n.ready, n.readySince = n.ready+1, append(n.readySince, ready.since)
	} else {
		n.notSince = verdict.Latest(n.notSince, ready.since)
		if len(n.notReady) < notReadyNamed {
			n.notReady = append(n.notReady, wording.OneLine(node.GetName()))
		}
	}
	for name, field := range map[string]string{
		"node_versions": "kubeletVersion", "os_images": "osImage", "operating_systems": "operatingSystem", "architectures": "architecture",
		"container_runtimes": "containerRuntimeVersion",
	} {
		text, _, _ := unstructured.NestedString(node.Object, "status", "nodeInfo", field)
		if name == "node_versions" {
			text = versionOf(text)
		}
		n.lists[name].add(text)
	}
	labels := node.GetLabels()
	n.lists["zones"].add(labels[zoneLabel])
	// A node that has just joined has neither value yet, and must not remove labels that others agree on.
	n.region.add(labels[regionLabel])
	id, _, _ := unstructured.NestedString(node.Object, "spec", "providerID")
	if provider, _, isURL := strings.Cut(id, "://"); isURL {
		n.provider.add(provider)
	}
	n.retainCommon(labels, node.GetName())
	n.capacity.add(quantities(node.Object, "status", "capacity"))
	n.allocatable.add(quantities(node.Object, "status", "allocatable"))
}

func (n *Nodes) retainCommon(labels map[string]string, name string) {
	if n.all == 1 {
		n.labels = map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			if isFact(key, labels[key]) && len(n.labels) < maxFound {
				n.labels[key] = labels[key]
			}
		}
	}
	for key, value := range n.labels {
		if own, has := labels[key]; !has || own != value || key == hostLabel || value == name {
			delete(n.labels, key)
		}
	}
}

type condition struct {
	status, reason, message string
	since                   time.Time
}

func conditionOf(object *unstructured.Unstructured, name string) (found condition) {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	conditions, _ := value.([]any)
	for _, one := range conditions {
		fields, _ := one.(map[string]any)
		if fields["type"] != name {
			continue
		}
		text := func(field string) string { text, _ := fields[field].(string); return text }
		found = condition{status: text("status"), reason: text("reason"), message: text("message")}
		if since, err := time.Parse(time.RFC3339, text("lastTransitionTime")); err == nil {
			found.since = since.UTC().Truncate(time.Second)
		}
	}
	return found
}

func (n *Nodes) facts() map[string]any {
	found := map[string]any{
		"nodes": float64(n.all), "nodes_ready": float64(n.ready), "labels": textsByName(n.labels),
		"provider": n.provider.single(), "region": n.region.single(),
		"capacity": n.capacity.facts(), "allocatable": n.allocatable.facts(),
	}
	for name, list := range n.lists {
		compare := strings.Compare
		if name == "node_versions" {
			compare = compareVersions
		}
		found[name] = list.sorted(compare)
	}
	return found
}

func (n *Nodes) status(percent int) verdict.Status {
	is := verdict.Status{Verdict: verdict.Ready, Since: n.mostSince(), Message: wording.Count(n.all, "node is ready", "nodes are ready")}
	switch unready, all := n.all-n.ready, wording.Count(n.all, "node is", "nodes are"); {
	case n.all == 0:
		is.Message = "there are no nodes"
	case unready > 0:
		is.Message = fmt.Sprintf("%d of %s not ready: %s", unready, all, listNames(n.notReady, unready))
	}
	if n.ready*100 < n.all*percent || n.all == 0 && percent > 0 {
		is.Verdict, is.Since = verdict.Progressing, n.notSince
	}
	return is
}

// mostSince returns the time since which more than half of the ready nodes have been ready. A joining node does not
// restart it, so soak times end.
func (n *Nodes) mostSince() time.Time {
	if n.ready == 0 {
		return time.Time{}
	}
	slices.SortFunc(n.readySince, time.Time.Compare)
	return n.readySince[n.ready/2]
}

func listNames(names []string, all int) string {
	if all <= notReadyNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:notReadyNamed], ", "), all-notReadyNamed)
}

// compareVersions sorts older versions first, after strings that are not versions.
func compareVersions(a, b string) int {
	one, oneErr := version.ParseSemantic(a)
	other, otherErr := version.ParseSemantic(b)
	switch {
	case oneErr != nil && otherErr != nil:
		return strings.Compare(a, b)
	case oneErr != nil:
		return -1
	case otherErr != nil:
		return 1
	case one.LessThan(other):
		return -1
	case other.LessThan(one):
		return 1
	}
	return strings.Compare(a, b)
}

// PodSelector selects pods that request resources of nodes.
const PodSelector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

// Pods sums the requests of pods.
type Pods struct {
	all       int
	requested amounts
}

// NewPods returns a sum to add to.
func NewPods() *Pods { return &Pods{requested: amounts{}} }

// Add adds a pod that runs on a node.
func (p *Pods) Add(pod *unstructured.Unstructured) {
	node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	if node == "" || phase == "Succeeded" || phase == "Failed" {
		return
	}
	p.all++
	p.requested.add(requestsOf(pod))
}

// requestsOf returns a pod's requests as the scheduler counts them: its containers' sum, or an init container's higher
// need, plus overhead. Requests of the pod replace the sum.
func requestsOf(pod *unstructured.Unstructured) map[string]float64 {
	spec, _ := pod.Object["spec"].(map[string]any)
	running, most := amounts{}, amounts{}
	for _, container := range containersOf(spec, "initContainers") {
		needs := amounts{}
		needs.add(quantities(container, "resources", "requests"))
		if container["restartPolicy"] == "Always" { // a sidecar, which keeps running
			running.add(needs)
			needs = amounts{}
		}
		needs.add(running)
		most.raise(needs)
	}
	for _, container := range containersOf(spec, "containers") {
		running.add(quantities(container, "resources", "requests"))
	}
	most.raise(running)
	for name, amount := range quantities(spec, "resources", "requests") {
		most[name] = amount
	}
	most.add(quantities(spec, "overhead"))
	return most
}

func (a amounts) raise(to amounts) {
	for name, amount := range to {
		a[name] = max(a[name], amount)
	}
}

func containersOf(spec map[string]any, field string) (containers []map[string]any) {
	given, _ := spec[field].([]any)
	for _, one := range given {
		if container, ok := one.(map[string]any); ok {
			containers = append(containers, container)
		}
	}
	return containers
}

func (p *Pods) facts() map[string]any {
	requested := p.requested.facts()
	requested["pods"] = float64(p.all)
	return map[string]any{"requested": requested}
}

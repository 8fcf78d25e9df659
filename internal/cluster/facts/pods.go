package facts

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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

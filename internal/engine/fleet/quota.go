package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

func readQuantities(o *ObjectReader, attribute string) map[string]string {
	return readMap(o, attribute, func(element any) (text, problem string) {
		if number, isNumber := element.(json.Number); isNumber {
			text = string(number)
		} else if text, problem = readScalar(o, element); problem != "" || element == nil || text == unknownText {
			return text, problem
		}
		if _, err := resource.ParseQuantity(text); err != nil {
			problem = fmt.Sprintf(`%q is not a quantity such as "500m", "2" or "4Gi"`, text)
		}
		return text, problem
	})
}

func checkQuantityNames(o *ObjectReader, attribute string, check func(name string) string) {
	given, _ := o.fields[attribute].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if problem := check(name); problem != "" {
			o.reader.Report(o.path.Attribute(attribute).Key(name), "%s", problem)
		}
	}
}

// https://kubernetes.io/docs/concepts/policy/resource-quotas/
var quotaResources = []string{
	"configmaps", "cpu", "ephemeral-storage", "limits.cpu", "limits.ephemeral-storage", "limits.memory", "memory",
	"persistentvolumeclaims", "pods", "replicationcontrollers", "requests.cpu", "requests.ephemeral-storage", "requests.memory",
	"requests.storage", "resourcequotas", "secrets", "services", "services.loadbalancers", "services.nodeports",
}

// countedResources are for "count/<name>", by group.
var countedResources = map[string][]string{
	"": {
		"configmaps", "endpoints", "events", "limitranges", "persistentvolumeclaims", "pods", "podtemplates",
		"replicationcontrollers", "resourcequotas", "secrets", "serviceaccounts", "services",
	},
	"apps":                      {"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"},
	"autoscaling":               {"horizontalpodautoscalers"},
	"batch":                     {"cronjobs", "jobs"},
	"coordination.k8s.io":       {"leases"},
	"discovery.k8s.io":          {"endpointslices"},
	"networking.k8s.io":         {"ingresses", "networkpolicies"},
	"policy":                    {"poddisruptionbudgets"},
	"rbac.authorization.k8s.io": {"rolebindings", "roles"},
}

// checkQuotaName refuses names that Kubernetes accepts although they limit nothing.
func checkQuotaName(name string) string {
	before, after, hasSlash := strings.Cut(name, "/")
	switch {
	case before == "count" && hasSlash:
		return checkCounted(name, after)
	case CheckLabelKey(name) != "":
		return fmt.Sprintf(`%q is not a resource such as "limits.cpu", "pods" or "count/deployments.apps"`, name)
	case !hasSlash && !slices.Contains(quotaResources, name) && !isHugePages(strings.TrimPrefix(name, "requests.")):
		return fmt.Sprintf("%q is not a resource that a quota can limit%s", name, DidYouMean(name, append(countedNames(), quotaResources...)))
	case !hasSlash:
	case strings.HasSuffix(before, ".storageclass.storage.k8s.io") || strings.HasSuffix(before, ".volumeattributesclass.storage.k8s.io"):
		if of := []string{"persistentvolumeclaims", "requests.storage"}; !slices.Contains(of, after) {
			return fmt.Sprintf("%q is not a resource of a class of storage, which are %s%s", name, strings.Join(of, ", "), DidYouMean(after, of))
		}
	case !strings.HasPrefix(before, "requests."):
		return fmt.Sprintf(`%q has no effect: an extended resource is written "requests.%s"`, name, strings.TrimPrefix(name, "limits."))
	}
	return ""
}

func checkCounted(name, counted string) string {
	kind, group, _ := strings.Cut(counted, ".")
	if known, isKubernetes := countedResources[group]; isKubernetes && !slices.Contains(known, kind) {
		return fmt.Sprintf("%q has no effect: Kubernetes has no such resource%s", name, DidYouMean(name, countedNames()))
	}
	if CheckSubdomainName(counted) != "" {
		return fmt.Sprintf(`%q is not a resource such as "count/deployments.apps"`, name)
	}
	return ""
}

func countedNames() []string {
	var names []string
	for _, group := range slices.Sorted(maps.Keys(countedResources)) {
		for _, kind := range countedResources[group] {
			names = append(names, strings.TrimSuffix("count/"+kind+"."+group, "."))
		}
	}
	return names
}

func isHugePages(name string) bool {
	return strings.HasPrefix(name, "hugepages-")
}

func checkLimitName(limitType string) func(name string) string {
	known := []string{"cpu", "ephemeral-storage", "memory"}
	if limitType == "PersistentVolumeClaim" {
		known = []string{"storage"}
	}
	return func(name string) string {
		switch {
		case CheckLabelKey(name) != "":
			return fmt.Sprintf(`%q is not a resource such as "cpu", "memory" or "storage"`, name)
		case strings.Contains(name, "/") || isHugePages(name) || slices.Contains(known, name):
			return ""
		case limitType == unknownText || !slices.Contains(limitTypes, limitType):
			return ""
		}
		return fmt.Sprintf("%q is not a resource that a limit of type %s can be about, which are %s%s",
			name, limitType, strings.Join(known, ", "), DidYouMean(name, known))
	}
}

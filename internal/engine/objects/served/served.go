// Package served lists the APIs that a version of Kubernetes serves by default.
package served

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes/scheme"
)

// release is the minor number of a Kubernetes 1 version; 0 means none.
type release int

// period spans releases from inclusive until exclusive; until is 0 without a planned removal.
type period struct{ from, until release }

func (p period) has(r release) bool { return p.from <= r && (p.until == 0 || r < p.until) }

// betasOff is the first release without new beta APIs by default.
const betasOff release = 24

// apiPriorityAndFairness is the only later beta that is on by default.
var apiPriorityAndFairness = schema.GroupVersion{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3"}

// elsewhere lists kinds that k8s.io/api lacks.
var elsewhere = map[schema.GroupVersionKind]period{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}:      {from: 16},
	{Group: "apiextensions.k8s.io", Version: "v1beta1", Kind: "CustomResourceDefinition"}: {from: 7, until: 22},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}:                  {from: 10},
	{Group: "apiregistration.k8s.io", Version: "v1beta1", Kind: "APIService"}:             {from: 7, until: 22},
	{Group: "autoscaling", Version: "v2beta1", Kind: "HorizontalPodAutoscaler"}:           {from: 8, until: 25},
	{Group: "autoscaling", Version: "v2beta2", Kind: "HorizontalPodAutoscaler"}:           {from: 12, until: 26},
	{Group: "policy", Version: "v1beta1", Kind: "PodSecurityPolicy"}:                      {from: 10, until: 25},
}

var kinds = sync.OnceValue(func() map[schema.GroupVersionKind]period {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		panic(err) // it registers the same types each time
	}
	all := maps.Clone(elsewhere)
	for kind, goType := range known.AllKnownTypes() {
		object := reflect.New(goType).Interface()
		lifecycle, isPublished := object.(interface{ APILifecycleIntroduced() (major, minor int) })
		if _, isObject := object.(metav1.ObjectMetaAccessor); !isObject || !isPublished || !isResource(known, kind) {
			continue
		}
		_, introduced := lifecycle.APILifecycleIntroduced()
		of := period{from: release(introduced)}
		if ending, ends := object.(interface{ APILifecycleRemoved() (major, minor int) }); ends {
			_, removed := ending.APILifecycleRemoved()
			of.until = release(removed)
		}
		if isOn(kind.GroupVersion(), of.from) {
			all[kind] = of
		}
	}
	return all
})

// isResource reports whether a kind has an endpoint.
func isResource(known *runtime.Scheme, kind schema.GroupVersionKind) bool {
	list := kind.GroupVersion().WithKind(kind.Kind + "List")
	return known.Recognizes(list) || strings.HasSuffix(kind.Kind, "Review") || kind.Kind == "Binding"
}

// isOn reports whether an API is on by default.
func isOn(of schema.GroupVersion, introduced release) bool {
	switch {
	case strings.Contains(of.Version, "alpha"):
		return false
	case strings.Contains(of.Version, "beta"):
		return introduced < betasOff || of == apiPriorityAndFairness
	}
	return true
}

var known sync.Map // release to []string

// APIs returns the default APIs of a Kubernetes version, "1.34" or "v1.34.2+k3s1": "<group>/<version>" and
// "<group>/<version>/<kind>", sorted. Do not change the result.
func APIs(kubernetes string) ([]string, error) {
	parsed, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("Kubernetes version %q: %w", kubernetes, err)
	}
	of := release(parsed.Minor())
	if apis, has := known.Load(of); has {
		return apis.([]string), nil
	}
	found := map[string]bool{}
	for kind, period := range kinds() {
		if period.has(of) {
			found[kind.GroupVersion().String()] = true
			found[kind.GroupVersion().String()+"/"+kind.Kind] = true
		}
	}
	apis := slices.Sorted(maps.Keys(found))
	known.Store(of, apis)
	return apis, nil
}

var groups = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for kind := range kinds() {
		all[kind.Group] = true
	}
	return all
})

// IsOfKubernetes reports whether any version of Kubernetes serves the group of an API. It owns all groups without a dot.
func IsOfKubernetes(api string) bool {
	group, _, hasVersion := strings.Cut(api, "/")
	return !hasVersion || !strings.Contains(group, ".") || groups()[group]
}

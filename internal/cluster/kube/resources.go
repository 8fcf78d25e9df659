package kube

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// Ref identifies one object.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// RefOf returns the reference of an object.
func RefOf(object *unstructured.Unstructured) Ref {
	return Ref{object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName()}
}

// String returns a name such as "Kustomization flux-system/large".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Group returns the API group.
func (r Ref) Group() string { return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).Group }

// Resource is a served kind.
type Resource struct {
	ResourceKind        // one version
	ObjectKind   string // such as Kustomization
	Namespaced   bool
	Verbs        []string
}

// resolve caches found resources only, because definitions may be applied in the meantime.
func (d *discovery) resolve(ctx context.Context, apiVersion, kind string) (resource Resource, served bool, err error) {
	d.mu.Lock()
	resource, known := d.resources[apiVersion][kind]
	d.mu.Unlock()
	if known {
		return resource, true, nil
	}
	found, err := d.discover(ctx, apiVersion)
	if errors.Is(err, errNoKind) || errors.Is(err, errNoObject) {
		return Resource{}, false, d.checkKubernetes(ctx)
	}
	if err != nil {
		return Resource{}, false, err
	}
	resource, known = found[kind]
	return resource, known, nil
}

func (d *discovery) discover(ctx context.Context, apiVersion string) (map[string]Resource, error) {
	group, version, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup {
		group, version = "", apiVersion
	}
	var answer metav1.APIResourceList
	// Without a resource, the path ends with the group version.
	path := strings.TrimSuffix(pathOf(ResourceKind{Group: group}, version, "", ""), "/")
	if err := d.getJSON(ctx, path, ResourceKind{Group: group, Resource: "the kinds of"}, &answer); err != nil {
		return nil, err
	}
	if answer.Kind != "APIResourceList" {
		return nil, notKubernetes()
	}
	found := map[string]Resource{}
	for _, one := range answer.APIResources {
		if strings.Contains(one.Name, "/") || one.Kind == "" || !isName(one.Name) || !isName(one.Kind) { // a subresource
			continue
		}
		found[one.Kind] = Resource{
			ResourceKind: ResourceKind{
				Group:    group,
				Versions: version,
				Resource: one.Name,
			}, ObjectKind: one.Kind, Namespaced: one.Namespaced, Verbs: one.Verbs,
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resources == nil {
		d.resources = map[string]map[string]Resource{}
	}
	d.resources[apiVersion], d.isKubernetes = found, true
	return found, nil
}

// getJSON decodes an answer that is no object.
func (d *discovery) getJSON(ctx context.Context, path string, kind ResourceKind, into any) error {
	response, err := d.get(ctx, path, kind)
	if err != nil {
		return err
	}
	defer finish(response)
	text, err := io.ReadAll(&bounded.Reader{From: response.Body, Left: d.countDiscovered(0), TooLong: errTooLarge})
	d.countDiscovered(int64(len(text)))
	if err != nil && !errors.Is(err, io.EOF) {
		return answerError(err, kind)
	}
	if json.Unmarshal(text, into) != nil {
		return notKubernetes()
	}
	return nil
}

const (
	// maxDiscovery bounds all cached answers in bytes.
	maxDiscovery = 64 << 20
	maxGroups    = 2_000
)

// countDiscovered counts read bytes and returns the limit's rest.
func (d *discovery) countDiscovered(read int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.discovered += read
	return max(maxDiscovery-d.discovered, 0)
}

// Resources lists all listable kinds in their preferred versions, sorted by group and name. incomplete means that a
// group's server is down.
func (c *ClusterClient) Resources(ctx context.Context) (found []Resource, incomplete bool, err error) {
	var groups metav1.APIGroupList
	if err := c.getJSON(ctx, "/apis", ResourceKind{Resource: "the kinds"}, &groups); err != nil {
		if errors.Is(err, errNoKind) || errors.Is(err, errNoObject) {
			err = notKubernetes()
		}
		return nil, false, c.withoutSecrets(err)
	}
	if groups.Kind != "APIGroupList" {
		return nil, false, c.withoutSecrets(notKubernetes())
	}
	if len(groups.Groups) > maxGroups {
		return nil, false, c.withoutSecrets(serverf(ReasonIncomplete, "has more groups of kinds than can be read (%d)", maxGroups))
	}
	versions := []string{"v1"}
	for _, group := range groups.Groups {
		versions = append(versions, group.PreferredVersion.GroupVersion)
	}
	lists, failed := make([]map[string]Resource, len(versions)), make([]error, len(versions))
	parallel.EachAtMost(len(versions), parallelRequests, func(i int) { lists[i], failed[i] = c.discover(ctx, versions[i]) })
	for i := range versions {
		if ctx.Err() != nil {
			return nil, false, c.withoutSecrets(failed[i])
		}
		incomplete = incomplete || failed[i] != nil
		for _, resource := range lists[i] {
			if slices.Contains(resource.Verbs, "list") {
				found = append(found, resource)
			}
		}
	}
	slices.SortFunc(found, func(a, b Resource) int {
		return strings.Compare(a.Group+"/"+a.Resource, b.Group+"/"+b.Resource)
	})
	return found, incomplete, nil
}

func kindOf(ref Ref) ResourceKind { return ResourceKind{Group: ref.Group(), Resource: ref.Kind} }

// isNotFound recognizes a 404 from Kubernetes.
func isNotFound(response *http.Response, answer *metav1.Status) bool {
	return response.StatusCode == http.StatusNotFound && (answer.Kind == "Status" || answer.Message == notFoundPage)
}

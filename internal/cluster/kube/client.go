package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

const (
	// maxAnswer bounds one uncompressed answer in bytes. Memory use is much lower: objects are read one at a time.
	maxAnswer = 256 << 20
	// maxRefusal bounds the body of an error status.
	maxRefusal = 64 << 10
	// maxTries bounds the attempts at a busy server.
	maxTries = 4
	// maxWait bounds the wait before another attempt.
	maxWait = 2 * time.Second
)

// ClusterClient sends requests to one cluster. It is safe for concurrent use.
type ClusterClient struct {
	*requester
	*discovery
}

type requester struct {
	server string // without a trailing slash
	http   *http.Client
	close  func()
	// scrubber removes secrets from errors.
	scrubber func() secret.Scrubber
}

type discovery struct {
	*requester

	mu           sync.Mutex
	versions     map[ResourceKind]string // the served ones
	isKubernetes bool                    // it has answered as only Kubernetes does
	// resources caches resources by group version and kind.
	resources map[string]map[string]Resource
	// discovered counts bytes.
	discovered int64
}

// get requests a list, whose body the caller must close.
func (r *requester) get(ctx context.Context, path string, kind ResourceKind) (*http.Response, error) {
	response, answer, err := r.exchange(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	if answer != nil {
		return nil, refusedList(response, *answer, "list", kind)
	}
	return response, nil
}

// exchange repeats a request while the server is busy. answer is the body of an error status; if it is nil, the caller
// must close the response's body.
func (r *requester) exchange(
	ctx context.Context,
	method, path, contentType string,
	body []byte,
) (response *http.Response, answer *metav1.Status, err error) {
	for try := 1; ; try++ {
		request, err := http.NewRequestWithContext(ctx, method, r.server+path, bytes.NewReader(body))
		if err != nil {
			return nil, nil, failf(ReasonConfiguration, "the URL of the API server cannot be used")
		}
		if body == nil {
			request.Body, request.GetBody = http.NoBody, nil
		}
		request.Header.Set("Accept", "application/json")
		if contentType != "" {
			request.Header.Set("Content-Type", contentType)
		}
		response, err := r.http.Do(request)
		if err != nil {
			return nil, nil, transportError(ctx, err)
		}
		switch response.StatusCode {
		case http.StatusOK, http.StatusCreated, http.StatusAccepted:
			if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != "application/json" {
				finish(response)
				return nil, nil, notKubernetes()
			}
			return response, nil, nil
		}
		answer := readStatus(response)
		finish(response)
		again := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
		if !again || try == maxTries || wait.For(ctx, waitFor(response, try)) != nil {
			return response, &answer, nil //nolint:nilerr // the answer says why, more than that the time has run out
		}
	}
}

func refusedList(response *http.Response, answer metav1.Status, verb string, kind ResourceKind) error {
	switch {
	case response.StatusCode == http.StatusGone && answer.Kind == "Status":
		return errExpired
	case response.StatusCode != http.StatusNotFound:
	case answer.Kind == "Status" && answer.Details != nil && answer.Details.Name != "":
		return errNoObject
	case answer.Kind == "Status" || answer.Message == notFoundPage:
		return errNoKind
	}
	return refusal(response, answer, verb, kind)
}

// finish reads the rest of an answer, so that the connection can be reused.
func finish(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, maxRefusal)
	_ = response.Body.Close()
}

// notFoundPage is an API server's answer for a path that it does not serve.
const notFoundPage = "404 page not found"

func readStatus(response *http.Response) metav1.Status {
	var answer metav1.Status
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // the code is enough
	if json.Unmarshal(text, &answer) != nil || answer.Kind != "Status" {
		answer = metav1.Status{Message: string(bytes.TrimSpace(text))}
	}
	return answer
}

func waitFor(response *http.Response, try int) time.Duration {
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	return min(100*time.Millisecond<<try, maxWait)
}

// withoutSecrets removes secrets from an error, except errors of contexts.
func (r *requester) withoutSecrets(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return scrubbed(err, r.scrubber)
}

// ServerVersion returns a version such as "v1.31.2".
func (d *discovery) ServerVersion(ctx context.Context) (string, error) {
	var answer version.Info
	err := d.getJSON(ctx, "/version", ResourceKind{Resource: "the version"}, &answer)
	switch {
	case err == errNoKind || err == errNoObject || err == errExpired: //nolint:errorlint // made here, never wrapped
		err = notKubernetes()
	case err == nil && (answer.GitVersion == "" || !isName(answer.GitVersion)):
		err = notKubernetes()
	}
	if err != nil {
		return "", d.withoutSecrets(err)
	}
	d.setKubernetes()
	return answer.GitVersion, nil
}

// checkKubernetes verifies that a 404 comes from a Kubernetes API server.
func (d *discovery) checkKubernetes(ctx context.Context) error {
	d.mu.Lock()
	known := d.isKubernetes
	d.mu.Unlock()
	if known {
		return nil
	}
	_, err := d.ServerVersion(ctx)
	if ReasonOf(err) == ReasonForbidden { // only Kubernetes' access control answers so
		d.setKubernetes()
		return nil
	}
	return err
}

func (d *discovery) setKubernetes() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isKubernetes = true
}

func notKubernetes() error {
	return serverf(ReasonGarbage, "does not answer like a Kubernetes API server; check its URL")
}

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
			ResourceKind: ResourceKind{Group: group, Versions: version, Resource: one.Name},
			ObjectKind:   one.Kind, Namespaced: one.Namespaced, Verbs: one.Verbs,
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
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

// isNotFound recognizes a 404 from Kubernetes.
func isNotFound(response *http.Response, answer *metav1.Status) bool {
	return response.StatusCode == http.StatusNotFound && (answer.Kind == "Status" || answer.Message == notFoundPage)
}

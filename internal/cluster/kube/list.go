package kube

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

const (
	// pageSize is the same as in kubectl.
	pageSize   = 500
	maxObjects = 200_000
	// maxKept bounds the memory of one list in bytes.
	maxKept = 448 << 20
	// maxPages allows fewer objects than requested.
	maxPages = 10 * maxObjects / pageSize
	// restarts counts lists in pages, after an expired continue token, before one without pages.
	restarts = 2
)

// Callers never get these errors.
var (
	errNoKind   = errors.New("no such kind")
	errNoObject = errors.New("no such object")
	errExpired  = errors.New("the continue token has expired")
)

// ResourceKind identifies a kind of objects.
type ResourceKind struct {
	Group    string // "" for the core
	Versions string // preferred first: "v2,v2beta2"
	Resource string // plural: "kustomizations"
}

func (k ResourceKind) String() string {
	if k.Group == "" {
		return k.Resource
	}
	return k.Resource + "." + k.Group
}

// ListOptions narrow a list.
type ListOptions struct {
	Namespace     string // "" for all
	LabelSelector string
	FieldSelector string
	// Skip lists fields to skip by the field that contains them; "" is the object itself.
	Skip map[string][]string
	// Fold, if set, is called at each start of the list. The returned function takes the objects instead of the list.
	Fold func() (take func(*unstructured.Unstructured))
}

// List has the objects of a kind on a cluster.
type List struct {
	Served  bool // false if the CRD is not installed
	Version string
	Items   []*unstructured.Unstructured // sorted by namespace and name
}

// List reads all objects of a kind.
func (c *ClusterClient) List(ctx context.Context, kind ResourceKind, options ListOptions) (List, error) {
	for _, version := range c.versionsToTry(kind) {
		items, err := c.listVersion(ctx, kind, version, options)
		if errors.Is(err, errNoKind) {
			continue
		}
		if err != nil {
			return List{}, c.withoutSecrets(err)
		}
		c.rememberVersion(kind, version)
		return List{Served: true, Version: version, Items: items}, nil
	}
	return List{}, c.withoutSecrets(c.checkKubernetes(ctx))
}

func (d *discovery) versionsToTry(kind ResourceKind) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if served := d.versions[kind]; served != "" {
		return []string{served}
	}
	return strings.Split(kind.Versions, ",")
}

func (d *discovery) rememberVersion(kind ResourceKind, version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.versions[kind], d.isKubernetes = version, true
}

func (c *ClusterClient) listVersion(
	ctx context.Context, kind ResourceKind, version string, options ListOptions,
) ([]*unstructured.Unstructured, error) {
	for try := range restarts + 2 {
		limit := pageSize
		if try > restarts {
			limit = 0 // the whole list at once, without an expiring token
		}
		items, err := c.listPages(ctx, kind, version, options, limit)
		if errors.Is(err, errExpired) {
			continue
		}
		slices.SortFunc(items, func(a, b *unstructured.Unstructured) int {
			return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
		})
		return items, err
	}
	return nil, serverf(ReasonServer, "does not finish a list of %s: its list has expired each time", kind)
}

func (c *ClusterClient) listPages(
	ctx context.Context, kind ResourceKind, version string, options ListOptions, limit int,
) ([]*unstructured.Unstructured, error) {
	query := url.Values{}
	if options.LabelSelector != "" {
		query.Set("labelSelector", options.LabelSelector)
	}
	if options.FieldSelector != "" {
		query.Set("fieldSelector", options.FieldSelector)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var items []*unstructured.Unstructured
	kept, folded := 0, 0
	var take func(*unstructured.Unstructured)
	if options.Fold != nil {
		take = options.Fold()
	}
	keep := func(object *unstructured.Unstructured) error {
		if take != nil {
			if folded++; folded > maxObjects {
				return errTooLarge
			}
			take(object)
			object.Object = map[string]any{} // a page keeps its objects until it is read
			return nil
		}
		kept += weight(object.Object)
		if items = append(items, object); len(items) > maxObjects || kept > maxKept {
			return errTooLarge
		}
		return nil
	}
	seen := map[string]bool{}
	page := newReader(http.NoBody)
	if len(options.Skip) > 0 {
		page.skip = maps.Clone(options.Skip)
		page.skip["metadata"] = append(slices.Clone(options.Skip["metadata"]), managedFields["metadata"]...)
	}
	for {
		response, err := c.get(ctx, pathOf(kind, version, options.Namespace, "")+encoded(query), kind)
		if err != nil {
			return nil, err
		}
		page.next(response.Body)
		token, err := page.list(keep)
		finish(response)
		if err != nil {
			return nil, answerError(err, kind)
		}
		if token == "" {
			return items, nil
		}
		if seen[token] || limit == 0 || len(seen) == maxPages {
			return nil, serverf(ReasonGarbage, "lists %s in too many pages", kind)
		}
		seen[token] = true
		query.Set("continue", token)
	}
}

func pathOf(kind ResourceKind, version, namespace, name string) string {
	segments := []string{"apis", kind.Group, version}
	if kind.Group == "" {
		segments = []string{"api", version}
	}
	if namespace != "" {
		segments = append(segments, "namespaces", namespace)
	}
	segments = append(segments, kind.Resource)
	if name != "" {
		segments = append(segments, name)
	}
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	return "/" + strings.Join(segments, "/")
}

func encoded(query url.Values) string {
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// slowAnswer is the time for one request after which all others are sent at once.
const slowAnswer = 500 * time.Millisecond

// Listing is the answer about one kind.
type Listing struct {
	List
	Err error
}

// ListEach lists objects of several kinds with [InTurn], up to the first error other than ReasonForbidden.
func (c *ClusterClient) ListEach(ctx context.Context, kinds []ResourceKind, options ListOptions) []Listing {
	all := make([]Listing, len(kinds))
	answered := InTurn(len(kinds), func(i int) error {
		all[i].List, all[i].Err = c.List(ctx, kinds[i], options)
		return all[i].Err
	})
	return all[:answered]
}

// InTurn sends requests one after the other, because a connection costs more than most answers; after a slow answer, it
// sends the others concurrently. It ends with the first error other than ReasonForbidden, which the others would share,
// and returns the number of answered requests.
func InTurn(count int, request func(i int) error) (answered int) {
	errs := make([]error, count)
	for i := range count {
		done := make(chan struct{})
		go func() {
			defer close(done)
			errs[i] = request(i)
		}()
		select {
		case <-done:
			if isLost(errs[i]) {
				return i + 1
			}
			continue
		case <-time.After(slowAnswer):
		}
		rest := i + 1
		parallel.EachAtMost(count-rest, count, func(n int) { errs[rest+n] = request(rest + n) })
		<-done
		break
	}
	if lost := slices.IndexFunc(errs, isLost); lost >= 0 {
		return lost + 1
	}
	return count
}

func isLost(err error) bool { return err != nil && ReasonOf(err) != ReasonForbidden }

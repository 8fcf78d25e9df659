package kube

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// FieldManager manages everything that Flotilla applies.
const FieldManager = "flotilla"

const (
	parallelRequests = 8
	// requestDeadline bounds one request. A webhook may take 30 s.
	requestDeadline = 45 * time.Second
)

// Each calls do for every index below n, with the parallel requests of one cluster.
func Each(n int, do func(i int)) { parallel.EachAtMost(n, parallelRequests, do) }

// ApplyOptions configure an apply.
type ApplyOptions struct {
	Force  bool // takes over fields of other managers
	DryRun bool // changes nothing
}

// Applied is an object after an apply.
type Applied struct {
	Object  *unstructured.Unstructured
	Created bool // did not exist before
}

// Conflict is a field of another manager.
type Conflict struct {
	Manager string
	// Updated reports a change without server-side apply, by hand or by a controller.
	Updated bool
	Field   string // such as spec.interval
}

// ConflictsOf returns the conflicts of an error of ReasonConflict, sorted.
func ConflictsOf(err error) []Conflict {
	if known, ok := errors.AsType[*RequestError](err); ok {
		return known.conflicts
	}
	return nil
}

// Hide also removes further secrets from the client's errors. It must be called before concurrent use.
func (c *ClusterClient) Hide(secrets ...string) {
	before := c.scrubber
	c.scrubber = sync.OnceValue(func() secret.Scrubber {
		all := slices.Concat(before(), secret.NewScrubber(secrets))
		slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) }) // a form may contain another
		return all
	})
}

// Apply uses server-side apply as FieldManager. Without Force, a different value of another manager is an error of
// ReasonConflict. The result has its managed fields.
func (c *ClusterClient) Apply(ctx context.Context, object *unstructured.Unstructured, options ApplyOptions) (Applied, error) {
	ref := RefOf(object)
	query := url.Values{"fieldManager": {FieldManager}, "force": {strconv.FormatBool(options.Force)}}
	if options.DryRun {
		query.Set("dryRun", "All")
	}
	request := objectRequest{ref, "apply", http.MethodPatch, query, "application/apply-patch+yaml", object.Object}
	applied, created, err := c.requestObject(ctx, request)
	if errors.Is(err, errNoObject) { // an apply gets a 404 only if the kind does not exist
		err = serverf(ReasonNoKind, "does not serve the kind %s of %s yet, which is the kind of %s", ref.Kind, ref.APIVersion, ref)
	}
	if err != nil {
		return Applied{}, c.withoutSecrets(err)
	}
	return Applied{Object: applied, Created: created}, nil
}

// Read reads one object with its managed fields; nil if the cluster lacks it or its kind.
func (c *ClusterClient) Read(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	return c.orNone(c.requestObject(ctx, objectRequest{ref: ref, verb: "get", method: http.MethodGet}))
}

// Patch applies a merge patch; nil if the object does not exist.
func (c *ClusterClient) Patch(ctx context.Context, ref Ref, patch map[string]any) (*unstructured.Unstructured, error) {
	query := url.Values{"fieldManager": {FieldManager}}
	return c.orNone(c.requestObject(ctx, objectRequest{ref, VerbPatch, http.MethodPatch, query, mergePatch, patch}))
}

// The verbs of [ClusterClient.Try].
const (
	VerbPatch  = "patch"
	VerbDelete = "delete"
)

// Try reports by a dry run whether the credentials permit a change. Other obstacles are no error.
func (c *ClusterClient) Try(ctx context.Context, verb string, ref Ref) error {
	query := url.Values{"dryRun": {"All"}}
	request := objectRequest{ref, verb, http.MethodPatch, query, mergePatch, map[string]any{}}
	if verb == VerbDelete {
		options := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": []string{"All"}}
		request = objectRequest{ref, verb, http.MethodDelete, query, "application/json", options}
	}
	_, _, err := c.requestObject(ctx, request)
	switch {
	case errors.Is(err, errNoObject), ReasonOf(err) == ReasonNoKind, ReasonOf(err) == ReasonRefused, ReasonOf(err) == ReasonConflict:
		return nil // a webhook may have side effects and reject dry runs
	}
	return c.withoutSecrets(err)
}

// orNone returns nil for a missing object or kind.
func (c *ClusterClient) orNone(object *unstructured.Unstructured, _ bool, err error) (*unstructured.Unstructured, error) {
	switch {
	case errors.Is(err, errNoObject) || ReasonOf(err) == ReasonNoKind:
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, c.withoutSecrets(err)
	}
	return object, nil
}

// Delete requests the deletion of an object and its dependents. With a uid, another object of the same name is an error
// of ReasonReplaced.
func (c *ClusterClient) Delete(ctx context.Context, ref Ref, uid string) error {
	how := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
	if uid != "" {
		how["preconditions"] = map[string]any{"uid": uid}
	}
	_, err := c.orNone(c.requestObject(ctx, objectRequest{ref, VerbDelete, http.MethodDelete, nil, "application/json", how}))
	return err
}

const mergePatch = "application/merge-patch+json"

type objectRequest struct {
	ref          Ref
	verb, method string // verb is for error messages
	query        url.Values
	contentType  string
	body         map[string]any // may be nil
}

// requestObject sends a request within its deadline. A missing object is errNoObject.
func (c *ClusterClient) requestObject(
	whole context.Context, request objectRequest,
) (object *unstructured.Unstructured, created bool, err error) {
	ctx, cancel := context.WithTimeout(whole, requestDeadline)
	defer cancel()
	object, created, err = c.exchangeObject(ctx, request)
	if err != nil && ctx.Err() != nil && whole.Err() == nil {
		const format = "did not answer within %s when it was asked to %s %s"
		return nil, false, serverf(ReasonTimeout, format, requestDeadline, request.verb, request.ref)
	}
	return object, created, err
}

func (c *ClusterClient) exchangeObject(
	ctx context.Context, request objectRequest,
) (object *unstructured.Unstructured, created bool, err error) {
	ref := request.ref
	var body []byte
	if request.body != nil {
		if body, err = json.Marshal(request.body); err != nil {
			return nil, false, failf(ReasonOther, "the request to %s %s cannot be written as JSON", request.verb, ref)
		}
	}
	resource, served, err := c.resolve(ctx, ref.APIVersion, ref.Kind)
	if err != nil {
		return nil, false, err
	}
	if !served {
		return nil, false, serverf(ReasonNoKind, "has no kind %s of %s, which is the kind of %s", ref.Kind, ref.APIVersion, ref)
	}
	namespace := ref.Namespace
	if !resource.Namespaced {
		namespace = ""
	} else if namespace == "" {
		return nil, false, failf(ReasonRefused, "%s has no namespace, and its kind needs one", ref)
	}
	path := pathOf(resource.ResourceKind, resource.Versions, namespace, ref.Name) + encoded(request.query)
	response, answer, err := c.exchange(ctx, request.method, path, request.contentType, body)
	if err != nil {
		return nil, false, err
	}
	if answer != nil {
		if isNotFound(response, answer) && answer.Kind != "Status" { // the whole kind is gone
			c.mu.Lock()
			delete(c.resources, ref.APIVersion)
			c.mu.Unlock()
		}
		return nil, false, refusedObject(response, answer, request.verb, ref)
	}
	defer finish(response)
	object, err = readObject(response, ref.Kind)
	return object, response.StatusCode == http.StatusCreated, err
}

func refusedObject(response *http.Response, answer *metav1.Status, verb string, ref Ref) error {
	code := response.StatusCode
	switch {
	case isNotFound(response, answer) && verb == "apply" && ref.Kind != "Namespace" &&
		answer.Details != nil && answer.Details.Kind == "namespaces":
		return serverf(ReasonNoNamespace, "has no namespace %s, which is the namespace of %s", ref.Namespace, ref)
	case isNotFound(response, answer):
		return errNoObject
	case answer.Kind != "Status":
	case hasCause(answer, "NamespaceTerminating"), code == http.StatusForbidden &&
		answer.Reason == metav1.StatusReasonForbidden && strings.Contains(answer.Message, "because it is being terminated"):
		return serverf(ReasonTerminating, "cannot create %s: the namespace %s is being removed", ref, ref.Namespace)
	case code == http.StatusForbidden && !isDenial(answer.Message) && strings.Contains(answer.Message, "User "):
		return withAnswer(serverf(ReasonForbidden, "does not let these credentials %s %s (403 Forbidden)", verb, ref), answer.Message)
	case code == http.StatusConflict && hasCause(answer, metav1.CauseTypeFieldManagerConflict):
		return conflictError(answer, ref)
	case code == http.StatusConflict && verb == VerbDelete:
		return serverf(ReasonReplaced, "has another object with the name of %s by now", ref)
	case code == http.StatusBadRequest,
		code == http.StatusForbidden,
		code == http.StatusUnprocessableEntity,
		code == http.StatusConflict,
		code == http.StatusRequestEntityTooLarge,
		isDenial(answer.Message),
		code == http.StatusInternalServerError && (strings.Contains(answer.Message, "failed calling webhook") ||
			strings.Contains(answer.Message, "failed to create typed patch object")):
		return withAnswer(serverf(ReasonRefused, "refuses %s", ref), answer.Message)
	}
	return refusal(response, *answer, verb, ResourceKind{Group: ref.Group(), Resource: ref.Kind})
}

func isDenial(message string) bool {
	return strings.Contains(message, "admission webhook") || strings.Contains(message, "ValidatingAdmissionPolicy")
}

func hasCause(answer *metav1.Status, reason metav1.CauseType) bool {
	return answer.Details != nil &&
		slices.ContainsFunc(answer.Details.Causes, func(cause metav1.StatusCause) bool { return cause.Type == reason })
}

// conflictPattern matches the API server's text. For an update, API version and time follow the manager.
var conflictPattern = regexp.MustCompile(`^conflict with ("(?:[^"\\]|\\.)*")(.*)$`)

func conflictError(answer *metav1.Status, ref Ref) error {
	conflicts := make([]Conflict, 0, len(answer.Details.Causes))
	for _, cause := range answer.Details.Causes {
		one := Conflict{Manager: cause.Message, Field: wording.OneLine(strings.TrimPrefix(cause.Field, "."))}
		if match := conflictPattern.FindStringSubmatch(cause.Message); match != nil {
			_ = json.Unmarshal([]byte(match[1]), &one.Manager) // a name that is not JSON stays quoted
			one.Updated = strings.Contains(match[2], " using ")
		}
		one.Manager = wording.OneLine(one.Manager) // chosen by the object's author
		conflicts = append(conflicts, one)
	}
	slices.SortFunc(conflicts, func(a, b Conflict) int {
		return strings.Compare(a.Manager+"\x00"+a.Field, b.Manager+"\x00"+b.Field)
	})
	conflicts = slices.Compact(conflicts)
	return &RequestError{
		Reason:    ReasonConflict,
		text:      ref.String() + " is managed by others: " + wording.OneLine(describeConflicts(conflicts)),
		conflicts: conflicts,
	}
}

func describeConflicts(conflicts []Conflict) string {
	var byManager wording.Groups[string, string]
	for _, conflict := range conflicts {
		byManager.Add(conflict.Manager, conflict.Field)
	}
	var parts []string
	for manager, fields := range byManager.All() {
		parts = append(parts, "\""+manager+"\" has "+strings.Join(slices.Compact(fields), ", "))
	}
	return strings.Join(parts, "; ")
}

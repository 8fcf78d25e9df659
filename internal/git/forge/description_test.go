package forge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// description is the published description of a Git host's API, reduced to the used parts; testdata/README.md has the sources.
// Requests and successful answers may contain only described properties.
type description struct {
	spec       *openapi3.T
	paths      []*describedPath
	refusal    *openapi3.Schema // of errors of any operation; nil accepts anything
	graphQLURL string
	graphQL    *ast.Schema
}

type describedPath struct {
	template string
	pattern  *regexp.Regexp
	names    []string
}

var gitHubDescription = sync.OnceValues(func() (*description, error) {
	d, err := readDescription("testdata/github.json", "/api/v3")
	if err != nil {
		return nil, err
	}
	schema, err := os.ReadFile("testdata/github.graphql")
	if err != nil {
		return nil, err
	}
	d.refusal = d.spec.Components.Schemas["basic-error"].Value
	d.graphQLURL = "/api/graphql"
	d.graphQL, err = gqlparser.LoadSchema(&ast.Source{Name: "github.graphql", Input: string(schema)})
	return d, err
})

var gitLabDescription = sync.OnceValues(func() (*description, error) {
	return readDescription("testdata/gitlab.yaml", "")
})

var azureDescription = sync.OnceValues(func() (*description, error) {
	return readDescription("testdata/azure.yaml", "/org")
})

var bitbucketDescription = sync.OnceValues(func() (*description, error) {
	return readDescription("testdata/bitbucket.yaml", "/2.0")
})

var dataCenterDescription = sync.OnceValues(func() (*description, error) {
	return readDescription("testdata/bitbucket_datacenter.yaml", "/rest")
})

// findDescription returns the description of a kind of Git host, nil for Gitea, since tests run a real one.
func findDescription(kind forge.Forge) (*description, error) {
	switch kind {
	case forge.GitHub:
		return gitHubDescription()
	case forge.GitLab:
		return gitLabDescription()
	case forge.Azure:
		return azureDescription()
	case forge.Bitbucket:
		return bitbucketDescription()
	case forge.BitbucketDataCenter:
		return dataCenterDescription()
	}
	return nil, nil
}

var parameterPattern = regexp.MustCompile(`\{(\w+)\}`)

// readDescription reads a file of testdata. prefix begins the paths on the host.
func readDescription(file, prefix string) (*description, error) {
	spec, err := openapi3.NewLoader().LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	d := &description{spec: spec}
	closed := map[*openapi3.Schema]bool{}
	for template, item := range spec.Paths.Map() {
		path := &describedPath{template: template}
		for _, name := range parameterPattern.FindAllStringSubmatch(template, -1) {
			path.names = append(path.names, name[1])
		}
		path.pattern = regexp.MustCompile("^" + parameterPattern.ReplaceAllString(prefix+template, "([^/]+)") + "$")
		d.paths = append(d.paths, path)
		for _, operation := range item.Operations() {
			if operation.RequestBody != nil {
				closeSchemas(operation.RequestBody.Value.Content, closed)
			}
			for status, response := range operation.Responses.Map() {
				if strings.HasPrefix(status, "2") {
					closeSchemas(response.Value.Content, closed)
				}
			}
		}
	}
	return d, nil
}

// closeSchemas makes undescribed properties an error.
func closeSchemas(content openapi3.Content, closed map[*openapi3.Schema]bool) {
	var visit func(*openapi3.SchemaRef)
	visit = func(ref *openapi3.SchemaRef) {
		if ref == nil || closed[ref.Value] {
			return
		}
		schema := ref.Value
		closed[schema] = true
		if extra := &schema.AdditionalProperties; len(schema.Properties) > 0 && extra.Has == nil && extra.Schema == nil {
			extra.Has = new(bool)
		}
		visit(schema.Items)
		for _, property := range schema.Properties {
			visit(property)
		}
		for _, alternative := range slices.Concat(schema.OneOf, schema.AnyOf) {
			visit(alternative)
		}
	}
	for _, media := range content {
		visit(media.Schema)
	}
}

// find returns the operation of a request.
func (d *description) find(r *http.Request, body []byte) (*openapi3filter.RequestValidationInput, error) {
	for _, path := range d.paths {
		values := path.pattern.FindStringSubmatch(r.URL.EscapedPath())
		if values == nil {
			continue
		}
		item := d.spec.Paths.Value(path.template)
		operation := item.GetOperation(r.Method)
		if operation == nil {
			continue
		}
		found := &openapi3filter.RequestValidationInput{
			Request: r.Clone(r.Context()), PathParams: map[string]string{},
			Route: &routers.Route{Spec: d.spec, Path: path.template, PathItem: item, Method: r.Method, Operation: operation},
			Options: &openapi3filter.Options{
				IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true, SkipSettingDefaults: true, MultiError: true,
			},
		}
		found.Options.WithCustomSchemaErrorFunc(shortMessage)
		found.Request.Body = io.NopCloser(bytes.NewReader(body))
		found.Request.ContentLength = int64(len(body))
		for i, name := range path.names {
			value, err := url.PathUnescape(values[i+1])
			if err != nil {
				return nil, err
			}
			found.PathParams[name] = value
		}
		return found, nil
	}
	return nil, fmt.Errorf("no operation is described for %s %s", r.Method, r.URL.EscapedPath())
}

// checkRequest returns an error for undescribed and missing parts of a request.
func (d *description) checkRequest(r *http.Request, body []byte) error {
	if r.URL.Path == d.graphQLURL {
		return d.checkGraphQL(body)
	}
	in, err := d.find(r, body)
	if err != nil {
		return err
	}
	parameters := slices.Concat(in.Route.PathItem.Parameters, in.Route.Operation.Parameters)
	for name := range r.URL.Query() {
		if parameters.GetByInAndName(openapi3.ParameterInQuery, name) == nil {
			err = errors.Join(err, fmt.Errorf("the query parameter %s is not described", name))
		}
	}
	if len(body) == 0 && in.Route.Operation.RequestBody == nil {
		in.Request.Body = http.NoBody
	}
	return errors.Join(err, openapi3filter.ValidateRequest(r.Context(), in))
}

func (d *description) checkGraphQL(body []byte) error {
	var sent struct {
		Query     string
		Variables map[string]any
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&sent); err != nil {
		return err
	}
	query, problems := gqlparser.LoadQueryWithRules(d.graphQL, sent.Query, nil)
	if problems != nil {
		return problems
	}
	_, err := validator.VariableValues(d.graphQL, query.Operations[0], sent.Variables)
	return err
}

// shape adds required properties to an answer, checks it, and returns its JSON. It returns nil for a text, which is an answer of a
// proxy.
func (d *description) shape(r *http.Request, body []byte, e exchange) ([]byte, error) {
	if _, ok := e.answer.(string); ok || e.answer == nil || r.URL.Path == d.graphQLURL {
		return nil, nil
	}
	in, err := d.find(r, body)
	if err != nil {
		return nil, err
	}
	status := max(e.status, http.StatusOK)
	schema := d.refusal
	if response := in.Route.Operation.Responses.Status(status); response != nil {
		if media := response.Value.Content.Get("application/json"); media != nil {
			schema = media.Schema.Value
		}
	} else if !slices.Contains(commonStatuses, status) {
		return nil, fmt.Errorf("the status %d is not described", status)
	}
	text, err := json.Marshal(e.answer)
	if err != nil || schema == nil {
		return text, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	value = complete(schema, value)
	if err := schema.VisitJSON(value, openapi3.MultiErrors(), openapi3.SetSchemaErrorMessageCustomizer(shortMessage)); err != nil {
		return nil, fmt.Errorf("the answer %d is not as described: %w", status, err)
	}
	return json.Marshal(value)
}

// shortMessage omits the schema, since the file has it.
func shortMessage(err *openapi3.SchemaError) string {
	return fmt.Sprintf("/%s: %s", strings.Join(err.JSONPointer(), "/"), err.Reason)
}

// commonStatuses may be the status of any operation.
var commonStatuses = []int{401, 403, 404, 429, 500, 502, 503}

// complete adds minimal values for required properties.
func complete(schema *openapi3.Schema, value any) any {
	for _, alternative := range slices.Concat(schema.OneOf, schema.AnyOf) {
		if completed := complete(alternative.Value, value); schema.VisitJSON(completed) == nil {
			return completed
		}
	}
	switch value := value.(type) {
	case map[string]any:
		completed := maps.Clone(value)
		for name, property := range schema.Properties {
			if given, ok := value[name]; ok {
				completed[name] = complete(property.Value, given)
			} else if slices.Contains(schema.Required, name) {
				completed[name] = minimalValue(property.Value)
			}
		}
		return completed
	case []any:
		completed := slices.Clone(value)
		for i := range completed {
			if schema.Items != nil {
				completed[i] = complete(schema.Items.Value, completed[i])
			}
		}
		return completed
	}
	return value
}

// minimalValue returns the smallest valid value of a schema.
func minimalValue(schema *openapi3.Schema) any {
	switch {
	case schema.Nullable:
		return nil
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case len(schema.AllOf) > 0:
		return minimalValue(schema.AllOf[0].Value)
	case len(schema.OneOf) > 0:
		return minimalValue(schema.OneOf[0].Value)
	case schema.Type.Is("object"):
		return complete(schema, map[string]any{})
	case schema.Type.Is("array"):
		return []any{}
	case schema.Type.Is("boolean"):
		return false
	case schema.Type.Is("integer"), schema.Type.Is("number"):
		return 0.0
	case schema.Format == "date-time":
		return "2026-01-26T19:01:12Z"
	}
	return ""
}

// checkedTransport fails the test for requests that the description does not allow.
type checkedTransport struct {
	t    *testing.T
	api  *description
	next http.RoundTripper // nil for the network
}

func (d checkedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if err := d.api.checkRequest(r, body); err != nil {
		d.t.Errorf("%s %s %s: %v", r.Method, r.URL, body, err)
	}
	if d.next == nil {
		return webtest.Transport.RoundTrip(r)
	}
	return d.next.RoundTrip(r)
}

func TestDescriptionsRefuseUndescribedRequests(t *testing.T) {
	t.Parallel()
	hubPulls, labMerges := "/api/v3/repos/owner/gitops/pulls", "/api/v4/projects/group%2Fgitops/merge_requests"
	for name, test := range map[string]struct {
		kind               forge.Forge
		method, path, body string
		wantText           string // "" for an allowed request
	}{
		"as GitHub describes":           {forge.GitHub, "POST", hubPulls, `{"head": "a", "base": "b", "title": "t"}`, ""},
		"a path":                        {forge.GitHub, "GET", "/api/v3/repos/owner/gitops/pull", "", "no operation"},
		"a method":                      {forge.GitHub, "DELETE", hubPulls, "", "no operation"},
		"a query":                       {forge.GitHub, "GET", hubPulls + "?author=me", "", "query parameter author"},
		"a value of a query":            {forge.GitHub, "GET", hubPulls + "?state=merged", "", "state"},
		"a property":                    {forge.GitHub, "POST", hubPulls, `{"head": "a", "base": "b", "reviewers": []}`, "reviewers"},
		"a missing property":            {forge.GitHub, "POST", hubPulls, `{"head": "a"}`, "base"},
		"a type":                        {forge.GitHub, "PUT", hubPulls + "/7/merge", `{"sha": 7}`, "sha"},
		"a way to merge":                {forge.GitHub, "PUT", hubPulls + "/7/merge", `{"merge_method": "octopus"}`, "merge_method"},
		"an empty body":                 {forge.GitHub, "POST", hubPulls, "", "body"},
		"as GitHub's GraphQL":           {forge.GitHub, "POST", "/api/graphql", hubEnable, ""},
		"an input of GraphQL":           {forge.GitHub, "POST", "/api/graphql", strings.Replace(hubEnable, "expectedHeadOid", "head", 1), "head"},
		"a value of GraphQL":            {forge.GitHub, "POST", "/api/graphql", strings.Replace(hubEnable, "MERGE", "OCTOPUS", 1), "OCTOPUS"},
		"a mutation":                    {forge.GitHub, "POST", "/api/graphql", strings.ReplaceAll(hubEnable, "enablePull", "allowPull"), "allowPull"},
		"as GitLab describes":           {forge.GitLab, "PUT", labMerges + "/7/merge", `{"sha": "a", "auto_merge": true}`, ""},
		"an invalid number":             {forge.GitLab, "GET", labMerges + "/seven", "", "merge_request_iid"},
		"a property of GitLab":          {forge.GitLab, "PUT", labMerges + "/7/merge", `{"merge_method": "squash"}`, "merge_method"},
		"a state of GitLab":             {forge.GitLab, "PUT", labMerges + "/7", `{"state_event": "merge"}`, "state_event"},
		"an update of nothing":          {forge.GitLab, "PUT", labMerges + "/7", `{}`, "1"},
		"as Azure describes":            {forge.Azure, "PATCH", "/org/p/_apis/git/repositories/r/pullrequests/7?api-version=7.1", `{"status": "abandoned"}`, ""},
		"an update without a version":   {forge.Azure, "PATCH", "/org/p/_apis/git/repositories/r/pullrequests/7", `{"status": "abandoned"}`, "api-version"},
		"a fixed property":              {forge.Azure, "PATCH", "/org/p/_apis/git/repositories/r/pullrequests/7?api-version=7.1", `{"reviewers": []}`, "reviewers"},
		"a long description":            {forge.Azure, "PATCH", "/org/p/_apis/git/repositories/r/pullrequests/7?api-version=7.1", `{"description": "` + strings.Repeat("x", 4001) + `"}`, "description"},
		"a branch without refs/heads":   {forge.Azure, "POST", "/org/p/_apis/git/repositories/r/pullrequests?api-version=7.1", `{"title": "t", "sourceRefName": "dev", "targetRefName": "refs/heads/main"}`, "sourceRefName"},
		"as Bitbucket describes":        {forge.Bitbucket, "POST", "/2.0/repositories/w/r/commit/" + newHead + "/statuses/build", `{"key": "k", "state": "FAILED"}`, ""},
		"a long key":                    {forge.Bitbucket, "POST", "/2.0/repositories/w/r/commit/" + newHead + "/statuses/build", `{"key": "` + strings.Repeat("k", 41) + `", "state": "FAILED"}`, "key"},
		"a reviewer by name":            {forge.Bitbucket, "PUT", "/2.0/repositories/w/r/pullrequests/7", `{"reviewers": [{"username": "anna"}]}`, "uuid"},
		"as Data Center describes":      {forge.BitbucketDataCenter, "PUT", "/rest/api/latest/projects/P/repos/r/pull-requests/7", `{"version": 1}`, ""},
		"an update without its version": {forge.BitbucketDataCenter, "PUT", "/rest/api/latest/projects/P/repos/r/pull-requests/7", `{"title": "t"}`, "version"},
		"an unexpected body":            {forge.GitLab, "GET", labMerges, `{}`, "body"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, err := findDescription(test.kind)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), test.method, "https://host.example.com"+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if test.body != "" {
				request.Header.Set("Content-Type", "application/json")
			}
			err = api.checkRequest(request, []byte(test.body))
			if test.wantText == "" && err != nil || test.wantText != "" && (err == nil || !strings.Contains(err.Error(), test.wantText)) {
				t.Errorf("err = %v, want one with %q", err, test.wantText)
			}
		})
	}
	for name, e := range map[string]exchange{
		"a property":   {answer: withFields(hubPull(), fields{"is_draft": true})},
		"a type":       {answer: withFields(hubPull(), fields{"number": "7"})},
		"a null":       {answer: withFields(hubPull(), fields{"number": nil})},
		"a status":     {status: 418, answer: hubRefusal("no")},
		"another kind": {answer: []fields{hubPull()}},
	} {
		t.Run("answer: "+name, func(t *testing.T) {
			t.Parallel()
			api, err := findDescription(forge.GitHub)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://host.example.com"+hubPulls+"/7", nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := api.shape(request, nil, e); err == nil {
				t.Errorf("%s is accepted as an answer of GitHub", text)
			}
		})
	}
}

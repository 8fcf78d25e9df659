package provider_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestRepositoryFilesAreReadStrictly(t *testing.T) {
	t.Parallel()
	s := newSources(t)
	repo := s.url("platform/control-plane.git")
	for name, test := range map[string]struct {
		attributes map[string]any
		attribute  string
		want       string
	}{
		"another scheme":     {map[string]any{"url": "ftp://x/y"}, "url", `scheme "ftp" is not supported`},
		"a URL with secrets": {map[string]any{"url": "https://me:secret@x/y"}, "url", "The URL has credentials in it"},
		"no repository":      {map[string]any{"url": repo + "x"}, "url", "does not exist"},
		"a dead server":      {map[string]any{"url": "http://127.0.0.1:1/x"}, "url", "cannot be reached"},
		"a missing ref":      {map[string]any{"url": repo, "ref": "mian"}, "ref", `There is no branch or tag "mian"; did you mean "main"?`},
		"an invalid ref":     {map[string]any{"url": repo, "ref": "a b"}, "ref", "is not the name of a branch or tag"},
		"a path with ..":     {map[string]any{"url": repo, "path": "../x"}, "path", "leads out"},
		"a missing folder":   {map[string]any{"url": repo, "path": "workload"}, "path", `did you mean "workloads"?`},
		"no file matches":    {map[string]any{"url": repo, "path": "workloads", "include": []any{"*.json"}}, "include", `no file in "workloads" matches "*.json"`},
		"no patterns":        {map[string]any{"url": repo, "include": []any{}}, "include", "The list is empty"},
		"an invalid pattern": {map[string]any{"url": repo, "include": []any{"[a"}}, "include", `pattern "[a": a bracket is not closed`},
		"a null pattern":     {map[string]any{"url": repo, "include": []any{nil}}, "include", "it is empty"},
		"an exclude pattern": {map[string]any{"url": repo, "exclude": []any{"/a"}}, "exclude", "begins with a slash"},
		"limits":             {map[string]any{"url": repo, "limits": map[string]any{"file": 1}}, "limits", `file: unknown attribute; did you mean "files"?`},
		"no limits":          {map[string]any{"url": repo, "limits": "many"}, "limits", "must be an object, not a string"},
		"a limit of zero":    {map[string]any{"url": repo, "limits": map[string]any{"files": 0}}, "limits", "files: must be a whole number from 1 to"},
		"too many files":     {map[string]any{"url": repo, "limits": map[string]any{"files": 1}}, "limits", "More than 1 files match"},
		"too many bytes":     {map[string]any{"url": repo, "limits": map[string]any{"bytes": 10}}, "limits", "more than 10 bytes"},
		"timeouts":           {map[string]any{"url": repo, "timeouts": map[string]any{"reed": "1s"}}, "timeouts", `did you mean "read"?`},
		"a short timeout":    {map[string]any{"url": repo, "timeouts": map[string]any{"read": "1ns"}}, "timeouts", `timeouts.read = "1ns" allows`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := providertest.New(startProvider).
				ReadData(t.Context(), providertest.Configuration{}, "flotilla_repository_files", test.attributes)
			if len(diags) != 1 || diags[0].At != `AttributeName("`+test.attribute+`")` ||
				!strings.Contains(strings.ToLower(diags[0].String()), strings.ToLower(test.want)) ||
				strings.Contains(diags.Err().Error(), "secret") {
				t.Errorf("got diagnostics %s", diags)
			}
		})
	}
}

func TestRepositoryFilesReturnFilesAndCommit(t *testing.T) {
	t.Parallel()
	s := newSources(t)
	address := s.url("payments/source.git")
	read, diags := providertest.New(startProvider).
		ReadData(t.Context(), providertest.Configuration{}, "flotilla_repository_files", map[string]any{
			"url": address, "path": "./", "include": []any{"**/*.{yaml,yml}"}, "exclude": []any{"reports"}, "limits": map[string]any{"files": 1, "bytes": 10_000},
		})
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	if read["commit"] != git(t, address, "rev-parse", "main") {
		t.Errorf("the commit is %v", read["commit"])
	}
	if got, want := fmt.Sprint(read["files"]), fmt.Sprint(map[string]any{"workload/payments.yaml": files(t, filepath.Join("testdata", "sources", "payments", "main"))["workload/payments.yaml"]}); got != want {
		t.Errorf("files are\n%s\nwant\n%s", got, want)
	}
}

func TestRegistrationsOfUnknownArgumentsAreUnknown(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata: {name: a, labels: {x: z}}\nspec: {workload: {repo: 'https://x/y', branch: main}}\n"
	w := providertest.New(startProvider)
	call := func(arguments ...any) (any, error) {
		return w.Evaluate(t.Context(), providertest.Call{Function: "registrations", Arguments: arguments})
	}
	got, err := call([]any{text})
	want := map[string]any{"a": map[string]any{
		"name": "a", "workspace": nil, "labels": map[string]any{"x": "z"}, "url": "https://x/y", "ref": "refs/heads/main", "path": ".",
		"sources": nil,
	}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if again, err := call([]any{text}, map[string]any{"followed": got}); err != nil || fmt.Sprint(again) != "map[]" {
		t.Errorf("a followed registration is returned again: %v, %v", again, err)
	}
	for _, arguments := range [][]any{
		{providertest.Unknown{}}, {[]any{text, providertest.Unknown{}}}, {[]any{text}, providertest.Unknown{}}, {[]any{text}, map[string]any{"followed": providertest.Unknown{}}},
	} {
		if got, err := call(arguments...); err != nil || got != any(providertest.Unknown{}) {
			t.Errorf("%v returns %v, %v", arguments, got, err)
		}
	}
	for want, arguments := range map[string][]any{
		"documents[0]: must be the text":                {[]any{true}},
		"options.followed: must be what provider::flot": {[]any{text}, map[string]any{"followed": "text"}},
		`did you mean "followed"?`:                      {[]any{text}, map[string]any{"folowed": []any{}}},
		"options: must be an object":                    {[]any{text}, []any{}},
		"there may be only one object of options":       {[]any{text}, map[string]any{}, map[string]any{}},
	} {
		if _, err := call(arguments...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v returns %v, want %q", arguments, err, want)
		}
	}
}

func TestFilesOfAPrivateRepositoryOnGitea(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	folder := t.TempDir()
	git(t, folder, "init", "--quiet", "--initial-branch", "main")
	writeFile(t, filepath.Join(folder, "workloads", "app.yaml"), "kind: App\n")
	git(t, folder, "add", "--all")
	git(t, folder, "commit", "--quiet", "--message", "Write")
	git(t, folder, "tag", "--annotate", "--message", "release", "v1")
	git(t, folder, "push", "--quiet", repo.cloneURL, "HEAD:main", "v1")
	server.API(t, user, http.MethodPatch, "/repos/"+user.Name+"/gitops", map[string]any{"private": true}, nil)
	address, err := url.Parse(repo.url)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		credentials map[string]any
		want        string
	}{
		"no credentials":                {nil, "Repository "},
		"an invalid token":              {map[string]any{"token": "nobody-has-it"}, "Repository refuses the credentials"},
		"credentials of another origin": {map[string]any{"credentials": []any{map[string]any{"url": "https://git.example.com", "token": user.Token}}}, "Repository "},
		"credentials of the owner":      {map[string]any{"credentials": []any{map[string]any{"url": address.Scheme + "://" + address.Host + "/" + user.Name, "token": user.Token}}}, ""},
		"a token without a URL":         {map[string]any{"token": user.Token}, "Repository refuses the credentials"},
	} {
		read, diags := providertest.New(startProvider).
			ReadData(t.Context(), providertest.Configuration{Provider: map[string]any{"git": test.credentials}}, "flotilla_repository_files", map[string]any{
				"url": repo.url, "ref": "v1", "path": "workloads",
			})
		switch {
		case test.want == "" && (diags.Err() != nil || fmt.Sprint(read["files"]) != "map[app.yaml:kind: App\n]"):
			t.Errorf("%s: got %v and diagnostics %s", name, read, diags)
		case test.want != "" && (len(diags) != 1 || !strings.HasPrefix(diags[0].Summary, test.want) || diags[0].At != `AttributeName("url")`):
			t.Errorf("%s: got diagnostics %s", name, diags)
		}
		if err := diags.Err(); err != nil && strings.Contains(err.Error(), user.Token) {
			t.Errorf("%s: the error contains the token: %v", name, err)
		}
	}
}

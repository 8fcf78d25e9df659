package forge_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// FuzzAzureURL expects each accepted path to name the repository of the requests.
func FuzzAzureURL(f *testing.F) {
	for _, seed := range []string{"org/project/_git/repo", "org/_git/repo", "org/My%20Project/_git/a.git", "org/p/_git/%2e%2e", "_git/_git/_git", "a//_git/b", "org/p/_git/r?x", "org/%5c/_git/r%2fx"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		recorded := &recorder{}
		host, err := forge.NewGitHost(forge.HostedRepository{URL: "https://dev.azure.com/" + path}, forge.HTTPOptions{Over: recorded})
		if err != nil {
			return
		}
		_, _ = host.Find(t.Context(), dev, 0)
		segments := strings.Split(strings.TrimPrefix(recorded.url, "https://dev.azure.com/"), "/")
		if len(segments) != 7 || strings.Join(segments[2:5], "/") != "_apis/git/repositories" || segments[6] != "pullrequests" {
			t.Fatalf("%q is asked at %s", path, recorded.url)
		}
		for _, segment := range segments {
			plain, err := url.PathUnescape(segment)
			if err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/?#\\") {
				t.Fatalf("%q is asked at %s", path, recorded.url)
			}
		}
	})
}

// FuzzBitbucketURL is FuzzAzureURL for Bitbucket Cloud.
func FuzzBitbucketURL(f *testing.F) {
	for _, seed := range []string{"owner/repo", "owner/repo.git", "owner/.repo/", "a/b/c", "owner/%2e%2e", "owner/r%2fx", "owner//repo", "~owner/repo", "owner/{id}", "owner/r?x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		recorded := &recorder{}
		host, err := forge.NewGitHost(forge.HostedRepository{URL: "https://bitbucket.org/" + path}, forge.HTTPOptions{Over: recorded})
		if err != nil {
			return
		}
		_, _ = host.Find(t.Context(), dev, 0)
		segments := strings.Split(strings.TrimPrefix(recorded.url, "https://api.bitbucket.org/2.0/repositories/"), "/")
		if len(segments) != 3 || segments[2] != "pullrequests" || strings.Contains(recorded.url, "%") {
			t.Fatalf("%q is asked at %s", path, recorded.url)
		}
	})
}

// FuzzBitbucketDataCenterURL is FuzzAzureURL for Bitbucket Data Center, whose URLs may begin with another path.
func FuzzBitbucketDataCenterURL(f *testing.F) {
	for _, seed := range []string{"scm/PLAT/repo.git", "path/scm/~anna/repo", "scm/scm/scm/scm", "scm/%2e%2e/r", "scm/p/r%2fx", "scm//r", "scm/~/r", "projects/P/repos/r", "a/%2e%2e/scm/p/r", "a%3Fb/scm/p/r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		recorded := &recorder{}
		host, err := forge.NewGitHost(forge.HostedRepository{URL: "https://git.example.com/" + path, Forge: forge.BitbucketDataCenter}, forge.HTTPOptions{Over: recorded})
		if err != nil {
			return
		}
		_, _ = host.Find(t.Context(), dev, 0)
		before, after, ok := strings.Cut(strings.TrimPrefix(recorded.url, "https://git.example.com"), "/rest/api/latest/projects/")
		for strings.Contains(after, "/rest/api/latest/projects/") { // the first part may be any path
			_, after, _ = strings.Cut(after, "/rest/api/latest/projects/")
		}
		segments := strings.Split(after, "/")
		if !ok || strings.Contains(before, "?") || len(segments) != 4 || segments[1] != "repos" || segments[3] != "pull-requests" || strings.Contains(after, "%") {
			t.Fatalf("%q is asked at %s", path, recorded.url)
		}
	})
}

// FuzzAnswersOfAPIsWithoutAnSDK expects no answer to cause a panic or to return a foreign pull request.
func FuzzAnswersOfAPIsWithoutAnSDK(f *testing.F) {
	for _, seed := range []string{
		`{"value": [{"pullRequestId": 7, "status": "active", "sourceRefName": "refs/heads/flotilla/dev", "targetRefName": "refs/heads/main", "description": "<!-- flotilla-assignment: dev -->"}]}`,
		`{"value": [{"id": 1, "state": "succeeded", "context": {"name": "x", "genre": null}, "updatedDate": "0001-01-01T00:00:00", "createdBy": null}]}`,
		`{"values": [{"id": 7, "state": "OPEN", "source": {"branch": {"name": "flotilla/dev"}, "commit": {"hash": "0123456789ab"}}, "destination": {"branch": {"name": "main"}}, "description": "<!-- flotilla-assignment: dev -->"}], "next": "https://x?page=2"}`,
		`{"values": [{"key": "k", "name": "n", "state": "FAILED", "updated_on": "2026-01-26T19:00:00Z"}]}`, `{"values": [null], "next": ":"}`, `{"hash": "x", "task_status": "PENDING"}`,
		`{"values": [{"id": 7, "version": 1, "state": "OPEN", "fromRef": {"id": "refs/heads/flotilla/dev", "repository": {"id": 1}}, "toRef": {"id": "refs/heads/main", "repository": {"id": 1}}, "description": "<!-- flotilla-assignment: dev -->"}], "isLastPage": true}`,
		`{"values": [{"key": "k", "state": "FAILED", "updatedDate": 1}], "isLastPage": false, "nextPageStart": 0}`, `{"fromHash": "x", "links": {"self": [{}]}}`,
		`{"value": null}`, `{"authenticatedUser": {"id": "x"}}`, `{"pullRequestId": 7, "reviewers": [{"displayName": "[p]\\t"}], "forkSource": null, "autoCompleteSetBy": {}}`, `[]`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		over := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: readCloser(answer)}, nil
		})
		for _, kind := range []forge.Forge{forge.Azure, forge.Bitbucket, forge.BitbucketDataCenter} {
			host, err := forge.NewGitHost(forge.HostedRepository{URL: "https://git.example.com" + repositoryPath(kind), Forge: kind}, forge.HTTPOptions{Over: over, Patience: time.Nanosecond})
			if err != nil {
				t.Fatal(err)
			}
			callEach(t.Context(), host, func(string, error) {})
			_, _ = host.Status(t.Context(), newHead, forge.Status{Context: "n"})
			if got, err := host.Find(context.Background(), dev, 0); err == nil && got != nil && (got.Owner != "dev" || got.Head != dev.Head || got.Base != dev.Base) {
				t.Errorf("%s, %q: %+v", kind, answer, got)
			}
		}
	})
}

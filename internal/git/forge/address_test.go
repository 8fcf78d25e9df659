package forge_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// recorder records the first requested URL.
type recorder struct{ url string }

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.url == "" {
		r.url = request.URL.Scheme + "://" + request.URL.Host + request.URL.EscapedPath()
	}
	return &http.Response{StatusCode: http.StatusTeapot, Header: http.Header{}, Body: http.NoBody}, nil
}

func TestTheAPIFollowsFromTheCloneURL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		url   string
		forge forge.Forge
		api   string
		want  string
	}{
		{"https://github.com/owner/gitops.git", "", "", "https://api.github.com/repos/owner/gitops/pulls"},
		{"https://GitHub.com/owner/gitops/", "", "", "https://api.GitHub.com/repos/owner/gitops/pulls"},
		{"https://octo.ghe.com/owner/gitops", "", "", "https://api.octo.ghe.com/repos/owner/gitops/pulls"},
		{"https://git.example.com/owner/gitops.git", "github", "", "https://git.example.com/api/v3/repos/owner/gitops/pulls"},
		{"https://git.example.com/owner/gitops.git", "github", "https://git.example.com/api/v3", "https://git.example.com/api/v3/repos/owner/gitops/pulls"},
		{"https://git.example.com/owner/gitops.git", "github", "https://api.example.com/", "https://api.example.com/repos/owner/gitops/pulls"},
		{"https://git.example.com/owner/.github", "github", "http://127.0.0.1:8080", "http://127.0.0.1:8080/api/v3/repos/owner/.github/pulls"},
		{"https://gitlab.com/owner/gitops.git", "", "", "https://gitlab.com/api/v4/projects/owner%2Fgitops/merge_requests"},
		{"https://gitlab.com/a/b/c/gitops.git", "", "", "https://gitlab.com/api/v4/projects/a%2Fb%2Fc%2Fgitops/merge_requests"},
		{"https://example.com/gitlab/a/b/gitops.git", "gitlab", "https://example.com/gitlab", "https://example.com/gitlab/api/v4/projects/a%2Fb%2Fgitops/merge_requests"},
		{"https://example.com/gitlab/a/b/gitops.git", "gitlab", "https://example.com/gitlab/api/v4/", "https://example.com/gitlab/api/v4/projects/a%2Fb%2Fgitops/merge_requests"},
		{"https://codeberg.org/owner/gitops.git", "", "", "https://codeberg.org/api/v1/repos/owner/gitops/pulls/main/flotilla/dev"},
		{"https://gitea.com/owner/gitops.git", "", "", "https://gitea.com/api/v1/repos/owner/gitops/pulls/main/flotilla/dev"},
		{"http://example.com:3000/owner/gitops.git", "gitea", "", "http://example.com:3000/api/v1/repos/owner/gitops/pulls/main/flotilla/dev"},
		{"https://example.com/git/owner/gitops.git", "forgejo", "", "https://example.com/git/api/v1/repos/owner/gitops/pulls/main/flotilla/dev"},
		{"https://dev.azure.com/org/My%20Project/_git/git%20ops", "", "", "https://dev.azure.com/org/My%20Project/_apis/git/repositories/git%20ops/pullrequests"},
		{"https://dev.azure.com/org/_git/gitops/", "", "", "https://dev.azure.com/org/gitops/_apis/git/repositories/gitops/pullrequests"},
		{"https://org.visualstudio.com/p/_git/gitops", "", "", "https://org.visualstudio.com/p/_apis/git/repositories/gitops/pullrequests"},
		{"https://org.visualstudio.com/DefaultCollection/p/_git/gitops", "", "", "https://org.visualstudio.com/p/_apis/git/repositories/gitops/pullrequests"},
		{"https://org.visualstudio.com/_git/gitops.git", "", "", "https://org.visualstudio.com/gitops.git/_apis/git/repositories/gitops.git/pullrequests"},
		{"https://azure.example.com:8443/tfs/Collection/p/_git/gitops", "azure", "", "https://azure.example.com:8443/tfs/Collection/p/_apis/git/repositories/gitops/pullrequests"},
		{"https://azure.example.com/Collection/_git/gitops", "azure", "", "https://azure.example.com/Collection/gitops/_apis/git/repositories/gitops/pullrequests"},
		{"https://azure.example.com/tfs/Collection/_git/gitops", "azure", "https://azure.example.com/tfs/Collection/", "https://azure.example.com/tfs/Collection/gitops/_apis/git/repositories/gitops/pullrequests"},
		{"https://dev.azure.com/org/p/_git/gitops", "", "http://127.0.0.1:8080/org", "http://127.0.0.1:8080/org/p/_apis/git/repositories/gitops/pullrequests"},
		{"https://dev.azure.com/org/Проект/_git/gitops", "", "", "https://dev.azure.com/org/%D0%9F%D1%80%D0%BE%D0%B5%D0%BA%D1%82/_apis/git/repositories/gitops/pullrequests"},
		{"https://bitbucket.org/owner/gitops.git", "", "", "https://api.bitbucket.org/2.0/repositories/owner/gitops/pullrequests"},
		{"https://Bitbucket.org/owner/.git-ops/", "", "", "https://api.Bitbucket.org/2.0/repositories/owner/.git-ops/pullrequests"},
		{"https://bitbucket.org/owner/gitops", "", "https://proxy.example.com/bitbucket/2.0/", "https://proxy.example.com/bitbucket/2.0/repositories/owner/gitops/pullrequests"},
		{"http://127.0.0.1:8080/owner/gitops.git", "bitbucket", "", "http://127.0.0.1:8080/2.0/repositories/owner/gitops/pullrequests"},
		{"https://git.example.com/scm/PLAT/gitops.git", "bitbucket_datacenter", "", "https://git.example.com/rest/api/latest/projects/PLAT/repos/gitops/pull-requests"},
		{"https://example.com/bitbucket/scm/~anna/git.ops", "bitbucket_datacenter", "", "https://example.com/bitbucket/rest/api/latest/projects/~anna/repos/git.ops/pull-requests"},
		{"https://example.com:8443/scm/scm/scm/scm.git", "bitbucket_datacenter", "", "https://example.com:8443/scm/rest/api/latest/projects/scm/repos/scm/pull-requests"},
		{"https://git.example.com/scm/plat/gitops.git", "bitbucket_datacenter", "https://api.example.com/bitbucket/rest/", "https://api.example.com/bitbucket/rest/api/latest/projects/plat/repos/gitops/pull-requests"},
		{"https://example.com/owner/gitops.git", "gitea", "https://api.example.com/git/api/v1", "https://api.example.com/git/api/v1/repos/owner/gitops/pulls/main/flotilla/dev"},
	} {
		r := &recorder{}
		host, err := forge.NewGitHost(forge.HostedRepository{URL: test.url, Forge: test.forge, APIURL: test.api}, forge.HTTPOptions{Over: r})
		if err != nil {
			t.Errorf("%s: %v", test.url, err)
			continue
		}
		if _, err := host.Find(t.Context(), dev, 0); !errors.Is(err, forge.ErrRefused) {
			t.Errorf("%s: %v", test.url, err)
		}
		if !strings.EqualFold(r.url, test.want) {
			t.Errorf("%s (%s, %s): got a request to %s, want %s", test.url, test.forge, test.api, r.url, test.want)
		}
	}
}

func TestBadRepositoriesAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		repository forge.HostedRepository
		wantText   string
	}{
		{forge.HostedRepository{URL: "https://git.example.com/owner/gitops"}, `"git.example.com" is not known; set forge to gitea, forgejo, github, gitlab, azure, bitbucket or bitbucket_datacenter`},
		{forge.HostedRepository{URL: "https://github.com.example.com/owner/gitops"}, "set forge"},
		{forge.HostedRepository{URL: "https://github.com/owner/gitops", Forge: "svn"}, `set forge to gitea, forgejo, github, gitlab, azure, bitbucket or bitbucket_datacenter, not "svn"`},
		{forge.HostedRepository{URL: "git@github.com:owner/gitops"}, "cannot be parsed"},
		{forge.HostedRepository{URL: "ssh://git@github.com/owner/gitops"}, `scheme of the url is "ssh"`},
		{forge.HostedRepository{URL: "/repositories/gitops.git"}, "need an http or https URL of a Git host"},
		{forge.HostedRepository{URL: "https://person:c4n4ry@github.com/owner/gitops"}, "has credentials in it"},
		{forge.HostedRepository{URL: "https://github.com/owner/gitops?token=c4n4ry"}, "query"},
		{forge.HostedRepository{URL: "https://github.com/owner/gitops#x"}, "fragment"},
		{forge.HostedRepository{URL: "https:///owner/gitops"}, "no server name"},
		{forge.HostedRepository{URL: "https://github.com/gitops"}, "owner/name"},
		{forge.HostedRepository{URL: "https://github.com/"}, "does not name a repository"},
		{forge.HostedRepository{URL: "https://github.com/a/b/c"}, "owner/name"},
		{forge.HostedRepository{URL: "https://github.com/owner/../user"}, `".."`},
		{forge.HostedRepository{URL: "https://github.com/owner/%2e%2e"}, `".."`},
		{forge.HostedRepository{URL: "https://github.com/owner/a%2Fb%3Fc"}, "does not name a repository"},
		{forge.HostedRepository{URL: "https://github.com/owner//gitops"}, "does not name a repository"},
		{forge.HostedRepository{URL: "https://github.com/owner/c4n4ry\x00"}, "cannot be parsed"},
		{forge.HostedRepository{URL: "https://dev.azure.com/org/p/r"}, ".../project/_git/repository"},
		{forge.HostedRepository{URL: "https://dev.azure.com/_git/r"}, "no organization or collection before the project"},
		{forge.HostedRepository{URL: "https://dev.azure.com/a/b/c/_git/r"}, "organization/project/_git/repository"},
		{forge.HostedRepository{URL: "https://dev.azure.com/org/p/_git/"}, ".../project/_git/repository"},
		{forge.HostedRepository{URL: "https://dev.azure.com/org//_git/r"}, "does not name a repository"},
		{forge.HostedRepository{URL: "https://dev.azure.com/org/p%3Fx/_git/r"}, "does not name a repository"},
		{forge.HostedRepository{URL: "https://dev.azure.com/org/p/_git/%2e%2e"}, `".."`},
		{forge.HostedRepository{URL: "git@ssh.dev.azure.com:v3/org/p/r"}, "cannot be parsed"},
		{forge.HostedRepository{URL: "https://org.visualstudio.com/a/b/_git/r"}, "organization/project/_git/repository"},
		{forge.HostedRepository{URL: "https://bitbucket.org/gitops.git"}, "owner/name"},
		{forge.HostedRepository{URL: "https://bitbucket.org/a/b/gitops.git"}, "owner/name"},
		{forge.HostedRepository{URL: "https://bitbucket.org/owner/%7Bid%7D"}, "does not name a repository"},
		{forge.HostedRepository{URL: "https://git.example.com/projects/PLAT/repos/gitops", Forge: "bitbucket_datacenter"}, "scm/project/repository.git"},
		{forge.HostedRepository{URL: "https://git.example.com/scm/gitops.git", Forge: "bitbucket_datacenter"}, "scm/project/repository.git"},
		{forge.HostedRepository{URL: "https://git.example.com/scm/a/b/c.git", Forge: "bitbucket_datacenter"}, "scm/project/repository.git"},
		{forge.HostedRepository{URL: "https://git.example.com/scm/~/c.git", Forge: "bitbucket_datacenter"}, "owner/name"},
		{forge.HostedRepository{URL: "https://git.example.com/scm/a~b/c.git", Forge: "bitbucket_datacenter"}, "does not name a repository"},
		{forge.HostedRepository{URL: "https://gitlab.com/owner/gitops", APIURL: "ftp://gitlab.com"}, "scheme of the api_url"},
		{forge.HostedRepository{URL: "https://gitlab.com/owner/gitops", APIURL: "https://c4n4ry@gitlab.com/"}, "api_url has credentials"},
	} {
		_, err := forge.NewGitHost(test.repository, forge.HTTPOptions{})
		if err == nil || !strings.Contains(err.Error(), test.wantText) || strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%s: err = %v", test.repository.URL, err)
		}
	}
}

func TestBadPullRequestsAreRefusedWithoutACall(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	host, err := forge.NewGitHost(forge.HostedRepository{URL: "https://github.com/owner/gitops"}, forge.HTTPOptions{Over: r})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		change   func(*forge.Wanted)
		wantText string
	}{
		{func(w *forge.Wanted) { w.Owner = "" }, "is empty"},
		{func(w *forge.Wanted) { w.Owner = "a --> b" }, "has a < or a >"},
		{func(w *forge.Wanted) { w.Owner = "a\nb" }, "control character"},
		{func(w *forge.Wanted) { w.Owner = strings.Repeat("a", 600) }, "longer than"},
		{func(w *forge.Wanted) { w.Base = "" }, "base branch is empty"},
		{func(w *forge.Wanted) { w.Head = "" }, "head branch is empty"},
		{func(w *forge.Wanted) { w.Head = w.Base }, "both base and head"},
		{func(w *forge.Wanted) { w.Head = "stranger:branch" }, "colon"},
		{func(w *forge.Wanted) { w.Title = " \n " }, "title is empty"},
		{func(w *forge.Wanted) { w.Body = strings.Repeat("a", forge.MaxBody+1) }, "body is longer"},
		{func(w *forge.Wanted) { w.Body = "x\n" + prodMark }, "has an assignment's mark in it"},
		{func(w *forge.Wanted) { w.Labels = []string{"a,b"} }, `label "a,b"`},
		{func(w *forge.Wanted) { w.Labels = []string{""} }, `label ""`},
		{func(w *forge.Wanted) { w.Reviewers = []string{"../user"} }, `reviewer "../user"`},
		{func(w *forge.Wanted) { w.Reviewers = []string{"a/b/c"} }, `reviewer "a/b/c"`},
		{func(w *forge.Wanted) { w.Reviewers = []string{"a?b"} }, `reviewer "a?b"`},
	} {
		w := wantedRequest(dev)
		test.change(&w)
		if request, err := host.Ensure(t.Context(), w); err == nil || request != nil || !strings.Contains(err.Error(), test.wantText) {
			t.Errorf("%+v: %+v, %v", w, request, err)
		}
	}
	if _, err := host.Merge(t.Context(), &forge.PullRequest{Number: 7, Owner: "dev", Head: "h"}, "", forge.Now); err == nil ||
		!strings.Contains(err.Error(), "at a given commit only") {
		t.Errorf("err = %v", err)
	}
	if r.url != "" {
		t.Errorf("got a request to %s", r.url)
	}
}

package git_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// serveLike serves a bare repository behind a stand-in for another server.
func serveLike(t *testing.T, server *gittest.StandIn) (remote git.Remote, directory string) {
	t.Helper()
	remote, directory = serveBehind(t, func(next http.Handler) http.Handler { return server.Before(t, next) })
	gittest.Run(t, directory, "git", "config", "uploadpack.allowFilter", "true")
	gittest.Run(t, directory, "git", "config", "uploadpack.allowAnySHA1InWant", "true")
	return remote, directory
}

// pushFile pushes a commit that writes one file.
func pushFile(t *testing.T, remote git.Remote, name, content string) git.Hash {
	t.Helper()
	client := git.NewConnector(git.ConnectorOptions{})
	tip := opened(t, remote)
	commit, pack := commitOf(t, tip, name, content)
	result, err := client.Push(t.Context(), remote, "main", tip.Commit, commit, pack)
	if err != nil || !result.Applied {
		t.Fatalf("%+v, %v", result, err)
	}
	return commit
}

func opened(t *testing.T, remote git.Remote) *git.Tip {
	t.Helper()
	tip, err := git.NewConnector(git.ConnectorOptions{}).Open(t.Context(), remote, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tip.Close)
	return tip
}

// readFile reads a file of the tip.
func readFile(t *testing.T, tip *git.Tip, name string) string {
	t.Helper()
	tree := tip.Tree()
	if err := tree.Open(t.Context(), []string{git.Parent(name)}); err != nil {
		t.Fatal(err)
	}
	entry, ok := tree.Lookup(name)
	if !ok {
		t.Fatalf("%s is not there", name)
	}
	if err := tip.Need(t.Context(), []git.Hash{entry.ID}); err != nil {
		t.Fatal(err)
	}
	content, err := tip.Blob(entry.ID)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestStandInRefusesRequestsLikeItsServer checks the stand-in itself: it accepts git and refuses other requests.
func TestStandInRefusesRequestsLikeItsServer(t *testing.T) {
	t.Parallel()
	server := gittest.AzureRepos()
	remote, _ := serveLike(t, server)
	commit := pushFile(t, remote, "a/file", "x").String()
	line := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	for want, says := range map[string]string{
		"want " + commit + " multi_ack side-band-64k\n":           "",
		"want " + commit + " multi_ack_detailed side-band-64k\n":  "",
		"want " + commit + " side-band-64k\n":                     "TF401041",
		"want " + commit + "\n":                                   "TF401041", // Azure Repos itself takes this one
		"want " + commit + " multi_ack ofs-delta\n":               "ofs-delta was not advertised",
		"want " + commit + " multi_ack side-band-64k agent=x/1\n": "agent=x/1 was not advertised",
	} {
		response, err := webtest.Client.Post(
			remote.URL+"/git-upload-pack",
			"application/x-git-upload-pack-request",
			strings.NewReader(line(want)+"0000"+line("done\n")),
		)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if says == "" && response.StatusCode != http.StatusOK ||
			says != "" && (response.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), says)) {
			t.Errorf("%q: %s %.200q", want, response.Status, text)
		}
	}
	clone := t.TempDir()
	gittest.Run(
		t,
		"",
		"git",
		"-c",
		"protocol.version=0",
		"clone",
		"--quiet",
		"--filter=blob:none",
		"--depth=1",
		"--branch=main",
		remote.URL,
		clone,
	)
	if last := server.Requests(); last[len(last)-1].Refused != "" || last[len(last)-1].Filter != "blob:none" || last[len(last)-1].Wants != 1 {
		t.Errorf("git's lazy fetch was %+v", last[len(last)-1])
	}
}

func TestFetchAndPushWithServersOfFewCapabilities(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*gittest.StandIn{
		"Azure Repos":                     gittest.AzureRepos(),
		"Azure Repos before filters":      {Upload: "multi_ack thin-pack side-band side-band-64k no-progress multi_ack_detailed no-done shallow allow-tip-sha1-in-want", Receive: "report-status side-band-64k delete-refs", Insists: []string{"multi_ack", "multi_ack_detailed"}},
		"CodeCommit":                      gittest.CodeCommit(),
		"multi_ack alone, and no shallow": {Upload: "multi_ack side-band", Receive: "report-status", Insists: []string{"multi_ack"}},
		"nothing at all":                  {Upload: "", Receive: "report-status"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "Azure Repos" && name != "nothing at all" {
				acceptancetest.Only(t) // sizes between the two
			}
			t.Parallel()
			remote, directory := serveLike(t, server)
			if tip := opened(t, remote); !tip.Commit.IsZero() {
				t.Errorf("the tip of an empty repository is %s", tip.Commit)
			}
			pushFile(t, remote, "dev/file", "first")
			pushFile(t, remote, "dev/other", "second")
			commit := pushFile(t, remote, "prod/file", "third")
			// Similar files, so that the pack has deltas.
			var long strings.Builder
			random := rand.New(rand.NewPCG(1, 2))
			for range 400 {
				fmt.Fprintf(&long, "line %x\n", random.Uint64())
			}
			for i := range 2 {
				commit = pushFile(t, remote, fmt.Sprintf("dev/long-%d", i), long.String()+fmt.Sprint(i))
			}
			gittest.Run(t, directory, "git", "repack", "-adfq")
			tip := opened(t, remote)
			if tip.Commit != commit || readFile(t, tip, "dev/file") != "first" || readFile(t, tip, "prod/file") != "third" ||
				readFile(t, tip, "dev/long-1") != long.String()+"1" {
				t.Errorf("the tip is %s, want %s", tip.Commit, commit)
			}
			past, _, err := tip.PastCommits(t.Context(), git.FirstDepth)
			if err != nil || len(past) < 5 {
				t.Errorf("%d commits, %v", len(past), err)
			}
			gittest.Run(t, directory, "git", "fsck", "--strict", "--full")
			for _, request := range server.Requests() {
				if request.Refused != "" {
					t.Errorf("%+v was refused", request)
				}
				if slices.Contains(request.Capabilities, "thin-pack") || slices.Contains(request.Capabilities, "no-done") {
					t.Errorf("%+v asks for capabilities that the client does not understand", request)
				}
			}
		})
	}
}

// TestFilesAreFetchedByIDIfTheServerAllows counts requests: a server that refuses objects by id costs one more.
func TestFilesAreFetchedByIDIfTheServerAllows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		noIDs   bool
		filters []string // of the requests until the file has arrived
	}{
		{"by id", false, []string{"blob:none", "blob:none"}},
		{"not by id", true, []string{"blob:none", "blob:none", ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := gittest.AzureRepos()
			server.NoIDs = test.noIDs
			remote, _ := serveLike(t, server)
			pushFile(t, remote, "dev/file", "first")
			pushFile(t, remote, "dev/other", "second")
			before := len(server.Requests())
			tip := opened(t, remote)
			if got := readFile(t, tip, "dev/file"); got != "first" {
				t.Errorf("the file is %q", got)
			}
			var filters []string
			for _, request := range server.Requests()[before:] {
				filters = append(filters, request.Filter)
			}
			if !slices.Equal(filters, test.filters) {
				t.Errorf("the requests had the filters %q, want %q", filters, test.filters)
			}
			// The client remembers whether the server gives objects by id.
			before = len(server.Requests())
			commits, _, err := tip.PastCommits(t.Context(), 8)
			if err != nil || len(commits) != 2 {
				t.Fatalf("%d commits, %v", len(commits), err)
			}
			wantFilter := "blob:none"
			if test.noIDs {
				wantFilter = ""
			}
			if got := server.Requests()[before:]; len(got) != 1 || got[0].Filter != wantFilter {
				t.Errorf("the past was asked for as %+v", got)
			}
		})
	}
}

func TestACommitIsOpenedByIDIfTheServerAllows(t *testing.T) {
	t.Parallel()
	for name, noIDs := range map[string]bool{"by id": false, "not by id": true} {
		server := gittest.AzureRepos()
		server.NoIDs = noIDs
		remote, _ := serveLike(t, server)
		old := pushFile(t, remote, "dev/file", "first").String()
		tip := pushFile(t, remote, "dev/file", "second").String()
		for _, ref := range []string{old, tip, "", "main"} {
			opened, err := git.NewConnector(git.ConnectorOptions{}).OpenRef(t.Context(), remote, ref, 2)
			if ref == old && noIDs {
				if missing := (*git.RefError)(nil); !errors.As(err, &missing) ||
					!strings.Contains(missing.Why, "there is no commit "+old+", or its server does not give it") {
					t.Errorf("%s: %q: %v", name, ref, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %q: %v", name, ref, err)
			}
			want := "second"
			if ref == old {
				want = "first"
			}
			if got := readFile(t, opened, "dev/file"); got != want {
				t.Errorf("%s: %q: %q", name, ref, got)
			}
			opened.Close()
		}
	}
}

func TestALargePushSucceedsAndATooLargeOneNamesTheReason(t *testing.T) {
	t.Parallel()
	server := gittest.AzureRepos()
	size := acceptancetest.Count(2, 20) << 20
	server.MaxPush = size + 1<<20
	remote, directory := serveLike(t, server)
	pushFile(t, remote, "dev/small", "x")
	push := func(size int) (git.PushResult, error) {
		content := make([]byte, size)
		random := rand.New(rand.NewPCG(3, uint64(size)))
		for i := range content {
			content[i] = byte(random.Uint32())
		}
		tip := opened(t, remote)
		commit, pack := commitOf(t, tip, "dev/large", string(content))
		return git.NewConnector(git.ConnectorOptions{}).Push(t.Context(), remote, "main", tip.Commit, commit, pack)
	}
	if result, err := push(size); err != nil || !result.Applied {
		t.Errorf("%+v, %v", result, err)
	}
	gittest.Run(t, directory, "git", "fsck", "--strict", "--full")
	result, err := push(size + 2<<20)
	if !errors.Is(err, git.ErrRefused) ||
		!strings.Contains(err.Error(), "unpack error: error; refs/heads/main: VS403658: The object is 1074200997 bytes") ||
		result.Applied ||
		!result.Refused {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestAConcurrentPushIsDetectedOnAServerOfFewCapabilities(t *testing.T) {
	t.Parallel()
	remote, _ := serveLike(t, gittest.AzureRepos())
	pushFile(t, remote, "dev/file", "first")
	tip := opened(t, remote)
	commit, pack := commitOf(t, tip, "dev/ours", "x")
	pushFile(t, remote, "dev/theirs", "y")
	if result, err := git.NewConnector(git.ConnectorOptions{}).Push(t.Context(), remote, "main", tip.Commit, commit, pack); err != nil || !result.Moved ||
		result.Applied {
		t.Errorf("%+v, %v", result, err)
	}
}

// Azure DevOps takes personal access tokens as passwords, and JSON Web Tokens as bearer tokens.
func TestAzureGetsEachTokenInItsForm(t *testing.T) {
	t.Parallel()
	const jwt, pat = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJ4In0.c2ln", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
	for _, test := range []struct {
		url         string
		credentials git.Credentials
		basic, want string
	}{
		{"https://dev.azure.com/org/My%20Project/_git/repo", git.Credentials{Login: git.Login{Token: pat}}, "x-access-token:" + pat, ""},
		{"https://dev.azure.com/org/My%20Project/_git/repo", git.Credentials{Login: git.Login{Username: "me", Password: pat}}, "me:" + pat, ""},
		{"https://dev.azure.com/org/My%20Project/_git/repo", git.Credentials{Login: git.Login{Token: jwt}}, "", "Bearer " + jwt},
		{"https://Dev.Azure.com/org/p/_git/repo", git.Credentials{Login: git.Login{Username: "me", Token: jwt}}, "", "Bearer " + jwt},
		{"https://org.visualstudio.com/p/_git/repo", git.Credentials{Login: git.Login{Password: jwt}}, "", "Bearer " + jwt},
		{"https://git.example.com/p/repo", git.Credentials{Login: git.Login{Token: jwt}}, "x-access-token:" + jwt, ""},
		{"https://dev.azure.com.example.com/p/repo", git.Credentials{Login: git.Login{Token: jwt}}, "x-access-token:" + jwt, ""},
	} {
		var asked *http.Request
		client := git.NewConnector(git.ConnectorOptions{Over: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = r
			return &http.Response{
				StatusCode: http.StatusUnauthorized, Header: http.Header{}, Request: r,
				Body: io.NopCloser(strings.NewReader("you sent " + r.Header.Get("Authorization"))),
			}, nil
		})})
		remote := git.Remote{IsGitOps: true, URL: test.url, Branch: "main", Credentials: test.credentials}
		_, err := client.Open(t.Context(), remote, 1)
		if !errors.Is(git.Classify(err), git.ErrUnauthorized) || strings.Contains(remote.Describe(err).Error(), jwt) ||
			strings.Contains(err.Error(), jwt) {
			t.Errorf("%s: %v", test.url, err)
		}
		username, password, _ := asked.BasicAuth()
		if got := asked.Header.Get("Authorization"); test.want != "" && got != test.want ||
			test.want == "" && username+":"+password != test.basic {
			t.Errorf("%s was shown %q", test.url, got)
		}
		if strings.Contains(test.url, "%20") && asked.URL.EscapedPath() != "/org/My%20Project/_git/repo/info/refs" {
			t.Errorf("%s was asked at %s", test.url, asked.URL)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Bitbucket Cloud requires a username for each kind of token. Its API takes the mail address instead.
func TestBitbucketCloudGetsTheUsernameOfTheToken(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		url         string
		credentials git.Credentials
		want        string
	}{
		{"https://bitbucket.org/w/r.git", git.Credentials{Login: git.Login{Token: "t"}}, "x-token-auth:t"},
		{"https://bitbucket.org/w/r.git", git.Credentials{Login: git.Login{Username: "anna@example.com", Token: "t"}}, "x-bitbucket-api-token-auth:t"},
		{"https://bitbucket.org/w/r.git", git.Credentials{Login: git.Login{Username: "anna@example.com", Password: "t"}}, "x-bitbucket-api-token-auth:t"},
		{"https://bitbucket.org/w/r.git", git.Credentials{Login: git.Login{Username: "anna", Password: "t"}}, "anna:t"},
		{"https://git.example.com/w/r.git", git.Credentials{Login: git.Login{Username: "anna@example.com", Token: "t"}}, "anna@example.com:t"},
		{"https://git.example.com/w/r.git", git.Credentials{Login: git.Login{Token: "t"}}, "x-access-token:t"},
	} {
		var sent string
		client := git.NewConnector(git.ConnectorOptions{Over: roundTrip(func(r *http.Request) (*http.Response, error) {
			username, password, _ := r.BasicAuth()
			sent = username + ":" + password
			return &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Request: r, Body: http.NoBody}, nil
		})})
		_, err := client.Open(t.Context(), git.Remote{IsGitOps: true, URL: test.url, Branch: "main", Credentials: test.credentials}, 1)
		if !errors.Is(git.Classify(err), git.ErrUnauthorized) || sent != test.want {
			t.Errorf("%s gets %s, want %s: %v", test.url, sent, test.want, err)
		}
	}
}

// Azure DevOps answers unknown users with a sign-in page and a status of success.
func TestASignInPageIsNotARepository(t *testing.T) {
	t.Parallel()
	page := func(w http.ResponseWriter, status int) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html>Azure DevOps Services | Sign In</html>")
	}
	for name, before := range map[string]func(w http.ResponseWriter, r *http.Request){
		"203": func(w http.ResponseWriter, _ *http.Request) { page(w, http.StatusNonAuthoritativeInfo) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://spsprodweu1.vssps.visualstudio.com/_signin?realm=dev.azure.com&reply_to=x", http.StatusFound)
		},
	} {
		remote := serveRepository(t, func(w http.ResponseWriter, r *http.Request) bool { before(w, r); return true })
		remote.Credentials = git.Credentials{Login: git.Login{Token: "expired"}}
		_, err := git.NewConnector(git.ConnectorOptions{}).Open(context.Background(), remote, 1)
		if !errors.Is(git.Classify(err), git.ErrUnauthorized) || !strings.Contains(err.Error(), "it asks to sign in") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

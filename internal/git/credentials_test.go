package git_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

func TestTheLongestPrefixChoosesTheCredentials(t *testing.T) {
	t.Parallel()
	credentials := git.Credentials{Login: git.Login{Token: "plain"}}
	for _, prefix := range []string{
		"https://git.example.com", "https://git.example.com/platform", "https://git.example.com/platform/one.git", "https://git.example.com:8443/",
		"http://intern.example.com/git", "ssh://git.example.com/platform", "deploy@git.example.com:platform", "https://[2001:DB8::1]/a",
	} {
		credentials.ByURL = append(credentials.ByURL, git.URLCredentials{URL: prefix, Login: git.Login{Token: prefix}})
	}
	if err := credentials.Check(); err != nil {
		t.Fatal(err)
	}
	for repository, want := range map[string]string{
		"https://git.example.com/other/r.git":             "https://git.example.com",
		"https://git.example.com/platform/r.git":          "https://git.example.com/platform",
		"https://git.example.com/platform":                "https://git.example.com/platform",
		"HTTPS://GIT.Example.Com:443/platform/r":          "https://git.example.com/platform",
		"https://git.example.com./platform/r":             "",
		"https://git.example.com/%70latform/r":            "",
		"https://git.example.com/platform/one":            "https://git.example.com/platform/one.git",
		"https://git.example.com/platform/one.git":        "https://git.example.com/platform/one.git",
		"https://git.example.com/platform/one-more.git":   "https://git.example.com/platform",
		"https://git.example.com/platform-evil/r":         "https://git.example.com",
		"https://git.example.com/Platform/r":              "https://git.example.com",
		"https://git.example.com//platform/r":             "",
		"https://git.example.com/a/b":                     "https://git.example.com",
		"https://git.example.com/a%2Fb/r":                 "",
		"https://git.example.com:8443/r":                  "https://git.example.com:8443/",
		"https://git.example.com:8444/r":                  "plain",
		"https://git.example.com.evil.example/platform/r": "plain",
		"https://evil.example/git.example.com/platform/r": "plain",
		"https://[2001:db8::1]/a/r":                       "https://[2001:DB8::1]/a",
		"http://git.example.com/platform/r":               "",
		"http://intern.example.com/git/r":                 "http://intern.example.com/git",
		"http://intern.example.com/r":                     "",
		"http://127.0.0.1:3000/r":                         "plain",
		"http://localhost/r":                              "plain",
		"http://[::1]/r":                                  "plain",
		"http://[::ffff:127.0.0.1]/r":                     "",
		"http://127.0.0.1.example.com/r":                  "",
		"http://localhost.example.com/r":                  "",
		"ssh://git@git.example.com:22/platform/r":         "ssh://git.example.com/platform",
		"git@git.example.com:platform/r":                  "ssh://git.example.com/platform",
		"git.example.com:/platform/r":                     "ssh://git.example.com/platform",
		"deploy@git.example.com:platform/r":               "deploy@git.example.com:platform",
		"ssh://deploy@git.example.com/platform/r":         "deploy@git.example.com:platform",
		"git@git.example.com:platform-evil/r":             "plain",
		"ssh://git.example.com:2222/platform/r":           "plain",
		"/srv/r.git":                                      "",
		"./r":                                             "",
		"file:///srv/r.git":                               "",
	} {
		if got := loginOf(credentials, repository, repository).Token; got != want {
			t.Errorf("%s gets the credentials of %q, want %q", repository, got, want)
		}
	}
}

// loginOf returns the login for a repository. gitops is the GitOps repository.
func loginOf(credentials git.Credentials, repository, gitops string) git.Login {
	permit, err := credentials.Decide(access.Request{URL: repository, PlainFor: gitops})
	if err != nil {
		return git.Login{}
	}
	return permit.Login
}

func TestCredentialsOfOneURLAreNotMixedWithOthers(t *testing.T) {
	t.Parallel()
	credentials := git.Credentials{
		Login: git.Login{Username: "person", Password: "secret", Token: "token", SSH: git.SSHCredentials{Key: "key", KnownHosts: "known"}},
		ByURL: []git.URLCredentials{
			{URL: "https://git.example.com", Login: git.Login{Username: "robot"}},
			{URL: "git@git.example.com:o", Login: git.Login{SSH: git.SSHCredentials{Key: "other"}}},
		},
	}
	if got := loginOf(credentials, "https://git.example.com/r", "https://git.example.com/r"); got.Username != "robot" || got.Password != "" ||
		got.Token != "" ||
		got.SSH.Key != "" {
		t.Errorf("the login mixes two credentials")
	}
	if got := loginOf(credentials, "git@git.example.com:o/r", ""); got.SSH.Key != "other" || got.SSH.KnownHosts != "known" || got.Token != "" {
		t.Errorf("the SSH login has another key or other known hosts")
	}
}

func TestBadPrefixesOfCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"https://h", "https://h/", "http://h:3000/a", "ssh://git@h", "git@h:o", "h:o/r.git", "https://[::1]"} {
		if err := git.CheckCredentialsURL(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "h", "/srv", "./r", "file:///srv", "ftp://h", "https://", "https:///x", "https://u:canary@h", "https://canary@h/r", "https://h/?token=canary",
		"https://h/a/../b", "https://h/%2e%2e/b", "https://h:0", "ext::sh -c canary", "https://h/\n", "u:canary@h:r",
	} {
		err := git.CheckCredentialsURL(bad)
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", bad, err)
		}
		if err := (git.Remote{URL: "https://h/r", Branch: "main", Credentials: git.Credentials{ByURL: []git.URLCredentials{{URL: bad}}}}).Check(); err == nil {
			t.Errorf("%q: the remote was taken", bad)
		}
	}
	twice := git.Credentials{ByURL: []git.URLCredentials{{URL: "https://h/a"}, {URL: "https://H:443/a/"}}}
	if err := twice.Check(); err == nil || !strings.Contains(err.Error(), "two") {
		t.Errorf("two of one prefix: %v", err)
	}
}

func TestPrintedValuesHaveNoCredentials(t *testing.T) {
	t.Parallel()
	login := git.Login{Username: "canary", Password: "canary", Token: "canary", SSH: git.SSHCredentials{Key: "canary"}}
	by := git.URLCredentials{URL: "https://h", Login: login}
	all := git.Credentials{Login: login, ByURL: []git.URLCredentials{by}}
	for _, v := range []any{login, &login, by, &by, all, &all, git.Remote{Credentials: all}, []git.URLCredentials{by}} {
		if text := fmt.Sprintf("%[1]v %+[1]v %#[1]v %[1]d", v); strings.Contains(text, "canary") {
			t.Errorf("%T: %s", v, text)
		}
	}
	remote := git.Remote{URL: "https://h/r", Branch: "main", Credentials: git.Credentials{ByURL: []git.URLCredentials{
		{URL: "https://other", Login: git.Login{Username: "robot", Token: "canary"}},
	}}}
	echoed := base64.StdEncoding.EncodeToString([]byte("robot:canary"))
	if text := remote.Describe(errors.New("it says canary and " + echoed)).Error(); strings.Contains(text, "canary") ||
		strings.Contains(text, echoed) {
		t.Errorf("described: %s", text)
	}
}

// startRefusing starts a server that records the Authorization headers and refuses each request.
func startRefusing(t *testing.T, tls bool) (*httptest.Server, func() []string) {
	t.Helper()
	var seen []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	})
	server := httptest.NewUnstartedServer(handler)
	if tls {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server, func() []string { return seen }
}

func open(t *testing.T, remote git.Remote, server *httptest.Server) error {
	t.Helper()
	remote.Branch, remote.IsGitOps = "main", true
	_, err := git.NewConnector(git.ConnectorOptions{Over: server.Client().Transport}).Open(t.Context(), remote, 1)
	return err
}

func TestPlainCredentialsAreSentByHTTPOnlyToThisMachine(t *testing.T) {
	t.Parallel()
	server, seen := startRefusing(t, false)
	plain := git.Credentials{Login: git.Login{Token: "canary"}}
	if err := open(t, git.Remote{URL: server.URL + "/r", Credentials: plain}, server); !errors.Is(err, git.ErrUnauthorized) &&
		!errors.Is(git.Classify(err), git.ErrUnauthorized) {
		t.Errorf("err = %v", err)
	}
	if got := seen(); len(got) != 1 || got[0] == "" {
		t.Errorf("this machine got %q", got)
	}
	// The same server under the name of another machine.
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return address, nil }}
	client := git.NewConnector(git.ConnectorOptions{Over: transport})
	for _, test := range []struct {
		credentials git.Credentials
		sent        bool
	}{
		{plain, false},
		{git.Credentials{Login: git.Login{Token: "plain"}, ByURL: []git.URLCredentials{{URL: "http://git.example.com", Login: git.Login{Token: "canary"}}}}, true},
	} {
		remote := git.Remote{URL: "http://git.example.com/r", Branch: "main", IsGitOps: true, Credentials: test.credentials}
		_, err := client.Open(t.Context(), remote, 1)
		got := seen()
		if (got[len(got)-1] != "") != test.sent {
			t.Errorf("another machine was shown %q", got)
		}
		if said := strings.Contains(fmt.Sprint(err), "were not sent"); err == nil || said == test.sent ||
			!errors.Is(git.Classify(err), git.ErrUnauthorized) {
			t.Errorf("err = %v", err)
		}
	}
}

func TestRedirectsSendNoCredentialsToAnotherServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		prefix string // path of the credentials on the first server; "" means plain credentials
		to     string // path on the first server; "" means another server
		carry  bool
	}{
		{"another port", "", "", false},
		{"the same server", "", "/b/r/info/refs?service=git-upload-pack", true},
		{"a name that ends in .git", "/a/r", "/a/r.git/info/refs?service=git-upload-pack", true},
		{"inside the prefix", "/a", "/a/moved/info/refs?service=git-upload-pack", true},
		{"out of the prefix", "/a", "/b/r/info/refs?service=git-upload-pack", false},
		{"another port, of a prefix", "/a", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			other, otherSaw := startRefusing(t, false)
			var last string
			var first *httptest.Server
			first = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/a/r/info/refs" {
					to := other.URL + r.URL.String()
					if test.to != "" {
						to = first.URL + test.to
					}
					http.Redirect(w, r, to, http.StatusFound)
					return
				}
				last = r.Header.Get("Authorization")
				w.WriteHeader(http.StatusUnauthorized)
			}))
			t.Cleanup(first.Close)
			credentials := git.Credentials{Login: git.Login{Token: "canary"}}
			if test.prefix != "" {
				credentials = git.Credentials{ByURL: []git.URLCredentials{{URL: first.URL + test.prefix, Login: git.Login{Token: "canary"}}}}
			}
			err := open(t, git.Remote{URL: first.URL + "/a/r", Credentials: credentials}, first)
			if err == nil {
				t.Fatal("no error")
			}
			if got := otherSaw(); test.to == "" && (len(got) != 0 || !errors.Is(err, access.ErrDenied)) {
				t.Errorf("the other server on this machine got %d requests: %v", len(got), err)
			}
			if (last != "") != test.carry {
				t.Errorf("after the redirect the server got %q", last)
			}
		})
	}
}

func TestARedirectFromHTTPSToHTTPSendsNoCredentials(t *testing.T) {
	t.Parallel()
	plain, saw := startRefusing(t, false)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.String(), http.StatusFound)
	}))
	t.Cleanup(secure.Close)
	if err := open(t, git.Remote{URL: secure.URL + "/r", Credentials: git.Credentials{Login: git.Login{Token: "canary"}}}, secure); err == nil {
		t.Error("no error")
	}
	if got := saw(); len(got) > 0 {
		t.Errorf("the HTTP server got %q", got)
	}
}

func TestARedirectToAnAllowedServerIsFollowedWithoutCredentials(t *testing.T) {
	t.Parallel()
	const word = "canary-of-the-answer"
	var shown []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
		http.Error(w, word, http.StatusForbidden)
	}))
	t.Cleanup(other.Close)
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.String(), http.StatusFound)
	}))
	t.Cleanup(first.Close)
	credentials := git.Credentials{ByURL: []git.URLCredentials{
		{URL: first.URL, Login: git.Login{Token: "canary"}}, {URL: other.URL, Login: git.Login{Token: "canary"}},
	}}
	err := open(t, git.Remote{URL: first.URL + "/r", Credentials: credentials}, first)
	if err == nil || strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), "redirects to") {
		t.Errorf("the error repeats the answer of another server: %v", err)
	}
	if len(shown) != 1 || shown[0] != "" {
		t.Errorf("the other server got %q", shown)
	}
	if err := open(t, git.Remote{URL: first.URL + "/r", Credentials: credentials, Sources: []string{first.URL}}, first); !errors.Is(
		err,
		access.ErrDenied,
	) ||
		len(shown) != 1 {
		t.Errorf("a redirect out of the sources: %v, shown %q", err, shown)
	}
}

func TestAnotherRepositoryGetsNoPlainCredentials(t *testing.T) {
	t.Parallel()
	server, seen := startRefusing(t, false)
	remote := git.Remote{URL: server.URL + "/r", Branch: "main", Credentials: git.Credentials{Login: git.Login{Token: "canary"}}}
	_, err := git.NewConnector(git.ConnectorOptions{Over: server.Client().Transport}).Open(t.Context(), remote, 1)
	if got := seen(); len(got) != 1 || got[0] != "" {
		t.Errorf("it was shown %q", got)
	}
	if err == nil || !strings.Contains(err.Error(), "git.credentials") {
		t.Errorf("the error names no remedy: %v", err)
	}
	remote.URL = "ssh://git@127.0.0.1:1/r"
	remote.Credentials.SSH.Key = "canary"
	if _, err := git.NewConnector(git.ConnectorOptions{}).Open(t.Context(), remote, 1); !errors.Is(git.Classify(err), git.ErrUnauthorized) ||
		!strings.Contains(err.Error(), "git.credentials") {
		t.Errorf("by ssh: %v", err)
	}
}

func FuzzCredentialsFor(f *testing.F) {
	for _, seed := range []string{"https://git.example.com/platform", "git@git.example.com:o/r", "https://h/%2e%2e", "ssh://h:22/x", "https://git.example.com/platform-evil"} {
		f.Add(seed, "https://git.example.com/platform")
	}
	f.Fuzz(func(t *testing.T, repository, prefix string) {
		if git.CheckURL(repository) != nil || git.CheckCredentialsURL(prefix) != nil {
			return
		}
		credentials := git.Credentials{ByURL: []git.URLCredentials{{URL: prefix, Login: git.Login{Token: "canary"}}}}
		if loginOf(credentials, repository, "").Token == "" {
			return
		}
		// Only the host of the prefix gets them.
		host := func(raw string) string {
			if u, err := url.Parse(raw); err == nil && u.Host != "" {
				return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
			}
			host, _, _ := strings.Cut(raw, ":")
			if _, after, ok := strings.Cut(host, "@"); ok {
				host = after
			}
			if i, j := strings.Index(raw, "["), strings.Index(raw, "]"); i >= 0 && j > i {
				host = raw[i+1 : j]
			}
			return strings.TrimSuffix(strings.ToLower(host), ".")
		}
		if host(repository) != host(prefix) {
			t.Fatalf("%q is shown the credentials for %q", repository, prefix)
		}
	})
}

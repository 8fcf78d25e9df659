package access_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

func TestAURLThatNormalizationWouldChangeIsAnError(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"https://git.example.com/team/app", "https://git.example.com/team/app.git/", "HTTPS://GIT.Example.com:443/team", "http://127.0.0.1:3000/a",
		"https://[2001:DB8::1]/a", "ssh://git@git.example.com:2222/team/app", "git@git.example.com:team/app", "git.example.com:/srv/app.git",
		"oci://registry.example.com/team/app", "https://dev.azure.com/org/My%20Project/_git/repo", "git@[::1]:a/b", "/srv/r.git", "./r", "file:///srv/r.git",
		"ssh://git.example.com/~team/app", "https://git.example.com",
	} {
		if _, err := access.Parse(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "https://h/a/../b", "https://h/a/./b", "https://h/a/%2e%2e/b", "https://h/a/%2E./b", "https://h//a", "https://h/a//b", "https://h/a%2Fb", "https://h/a%5cb",
		`https://h/a\b`, "https://h/%61", "https://h/%2D", "https://h/a%00", "https://h/a%zz", "https://canary@h/a", "https://u:canary@h/a", "ssh://u:canary@h/a",
		"https://h./a", "https://h..x/a", "https://127.1/a", "https://0x7f000001/a", "https://2130706433/a", "https://127.0.0.01/a", "https://[::ffff:127.0.0.1]/a",
		"https://[fe80::1%25eth0]/a", "https://[0:0:0:0:0:0:0:1]/a", "https://h:0/a", "https://h:0443/a", "https://h:65536/a", "https://h:/a", "https:///a", "https:a",
		"https://h/a?canary", "https://h/a?", "https://h/a#canary", "https://h/a b", "https://h/ä", "ftp://h/a", "ext::sh -c canary", "git@h:a/../b", "git@h:a//b", "u:canary@h:r@x",
		"https://h\\@evil/a", "https://h%2f/a",
	} {
		if _, err := access.Parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: the error repeats it: %v", bad, err)
		}
	}
}

func TestTheLongestPrefixBySegmentsChooses(t *testing.T) {
	t.Parallel()
	prefixes := []string{
		"https://h", "https://h/a", "https://h/a/b.git", "http://h/a", "ssh://git@h/a", "https://h:8443/a", "https://h/My%20Group", "deploy@h:a",
	}
	for address, want := range map[string]access.Login{
		"https://h/x":                0,
		"https://h/a":                1,
		"https://h/a.git":            1,
		"https://h/a.git/x":          0,
		"https://h/ab":               0,
		"https://h/A":                0,
		"https://h/a/c":              1,
		"https://h/a/b":              2,
		"https://h/a/b.git":          2,
		"https://h/a/b/c":            1,
		"https://h/a/b.git/c":        2,
		"HTTPS://H:443/a":            1,
		"http://h/a/x":               3,
		"http://h/b":                 access.Anonymous,
		"h:a/x":                      4,
		"ssh://h:22/a/x":             4,
		"deploy@h:a/x":               7,
		"other@h:a/x":                access.Anonymous,
		"ssh://git@h:2222/a/x":       access.Anonymous,
		"https://h:8443/a/x":         5,
		"https://h:8443/b":           access.Anonymous,
		"https://h:8444/a":           access.Anonymous,
		"https://h/My%20Group/x":     6,
		"https://h.evil.example/a":   access.Anonymous,
		"https://evil.example/h/a":   access.Anonymous,
		"https://sub.h.example.org/": access.Anonymous,
		"/srv/r.git":                 access.Anonymous,
	} {
		grant, err := access.Decide(access.Request{URL: address}, prefixes)
		if err != nil || grant.Login != want || !grant.Keeps && !strings.HasPrefix(address, "/") {
			t.Errorf("%s gets %d, want %d: %v", address, grant.Login, want, err)
		}
	}
}

func TestPlainCredentialsBelongToTheOriginOfTheGitOpsRepository(t *testing.T) {
	t.Parallel()
	const own = "https://git.example.com/platform/gitops.git"
	for _, c := range []struct {
		url, plainFor string
		want          access.Login
	}{
		{own, own, access.Plain},
		{own, "", access.Anonymous},
		{"https://git.example.com/team/app", "", access.Anonymous},
		{"https://evil.example/x", own, access.Anonymous},
		{"https://git.example.com:8443/platform/gitops.git", own, access.Anonymous},
		{"http://git.example.com/platform/gitops.git", own, access.Anonymous},
		{"https://git.example.com.evil.example/platform", own, access.Anonymous},
		{"git@git.example.com:platform/gitops.git", "git@git.example.com:platform/gitops.git", access.Plain},
		{"git@evil.example:x", "git@git.example.com:platform/gitops.git", access.Anonymous},
		{"http://127.0.0.1:3000/r", "http://127.0.0.1:3000/r", access.Plain},
		{"http://127.0.0.1:3001/r", "http://127.0.0.1:3000/r", access.Anonymous},
		{"http://[::1]/r", "http://[::1]/r", access.Plain},
		{"http://git.example.com/r", "http://git.example.com/r", access.Anonymous},
	} {
		grant, err := access.Decide(access.Request{URL: c.url, PlainFor: c.plainFor}, nil)
		if err != nil || grant.Login != c.want {
			t.Errorf("%s for %s gets %d, want %d: %v", c.url, c.plainFor, grant.Login, c.want, err)
		}
	}
	grant, _ := access.Decide(access.Request{URL: "http://git.example.com/r", PlainFor: "http://git.example.com/r"}, nil)
	if grant.Withheld == "" {
		t.Error("plain credentials are withheld from http without a reason")
	}
}

func TestSourcesBoundRequests(t *testing.T) {
	t.Parallel()
	team := []string{"https://git.example.com/team", "oci://registry.example.com/team", "git@git.example.com:team"}
	for address, want := range map[string]bool{
		"https://git.example.com/team/app.git":     true,
		"https://git.example.com/team.git/x":       false,
		"https://git.example.com/team-evil/app":    false,
		"https://git.example.com/other/app":        false,
		"http://git.example.com/team/app":          false,
		"https://git.example.com:8443/team/app":    false,
		"oci://registry.example.com/team/chart":    true,
		"https://registry.example.com/team/chart":  false,
		"oci://registry.example.com/platform":      false,
		"git.example.com:team/app":                 false, // the source names another user
		"git@git.example.com:team/app":             true,
		"git@git.example.com:platform":             false,
		"/srv/team":                                false,
		"file:///srv/team":                         false,
		"https://git.example.com/team/../platform": false,
	} {
		_, err := access.Decide(access.Request{URL: address, Sources: team}, nil)
		if (err == nil) != want || err != nil && !errors.Is(err, access.ErrDenied) {
			t.Errorf("%s: %v", address, err)
		}
		if got := access.IsWithin(team, address); got != want {
			t.Errorf("IsWithin(%s) = %t", address, got)
		}
	}
	if _, err := access.Decide(access.Request{URL: "https://git.example.com/team", Sources: []string{}}, nil); err == nil ||
		!strings.Contains(err.Error(), "which has none") {
		t.Errorf("a workspace without sources: %v", err)
	}
}

func TestRedirectsLeadOnlyToAllowedServers(t *testing.T) {
	t.Parallel()
	prefixes := []string{
		"https://charts.example.com/team",
		"https://charts.example.com/other",
		"https://whole.example.com",
		"http://10.0.0.7:9000",
	}
	for name, c := range map[string]struct {
		from, to string
		sources  []string
		want     string // part of the error
		login    access.Login
		public   bool
	}{
		"same origin and prefix":      {from: "https://charts.example.com/team/index.yaml", to: "https://charts.example.com/team/a.tgz", login: 0},
		"another prefix":              {from: "https://charts.example.com/team/index.yaml", to: "https://charts.example.com/other/a.tgz", login: access.Anonymous},
		"no prefix":                   {from: "https://charts.example.com/team/index.yaml", to: "https://charts.example.com/a.tgz", login: access.Anonymous},
		"dot segments":                {from: "https://charts.example.com/team/index.yaml", to: "https://charts.example.com/team/../other/a.tgz", want: "path segment"},
		"an encoded slash":            {from: "https://charts.example.com/team/index.yaml", to: "https://charts.example.com/team%2Fa.tgz", want: "encoded slash"},
		"the whole server":            {from: "https://whole.example.com/index.yaml", to: "https://whole.example.com/x%2Fa.tgz?sign=1", login: 2},
		"another server's entry":      {from: "https://charts.example.com/team/index.yaml", to: "https://whole.example.com/a.tgz", login: access.Anonymous},
		"a public server":             {from: "https://charts.example.com/team/index.yaml", to: "https://cdn.example.net/a%2Fb.tgz?x=y", login: access.Anonymous, public: true},
		"another port":                {from: "https://charts.example.com/x", to: "https://charts.example.com:8443/x", login: access.Anonymous, public: true},
		"https to http":               {from: "https://charts.example.com/x", to: "http://charts.example.com/x", want: "from https to http"},
		"https to http within":        {from: "https://charts.example.com/x", to: "http://a.example.com/x", sources: []string{"http://a.example.com"}, want: "from https to http"},
		"http to https":               {from: "http://git.internal/x", to: "https://git.internal/x", login: access.Anonymous},
		"another scheme":              {from: "https://charts.example.com/x", to: "ssh://charts.example.com/x", want: "only https and http"},
		"a file":                      {from: "https://charts.example.com/x", to: "file:///etc/passwd", want: "cannot be used"},
		"loopback":                    {from: "https://charts.example.com/x", to: "https://127.0.0.1/x", want: "not a public address"},
		"another loopback port":       {from: "http://127.0.0.1:9601/x", to: "http://127.0.0.1:9602/x", want: "not a public address"},
		"localhost":                   {from: "https://charts.example.com/x", to: "https://localhost:9000/x", want: "not a public address"},
		"metadata":                    {from: "http://charts.example.com/x", to: "http://169.254.169.254/latest", want: "not a public address"},
		"a name of the network":       {from: "https://charts.example.com/x", to: "https://minio/x", want: "not a public address"},
		"an address in another form":  {from: "https://charts.example.com/x", to: "https://0x7f000001/x", want: "cannot be used"},
		"an address within IPv6":      {from: "https://charts.example.com/x", to: "https://[::ffff:7f00:1]/x", want: "cannot be used"},
		"one that the provider names": {from: "http://charts.example.com/x", to: "http://10.0.0.7:9000/x", login: access.Anonymous},
		"one among the sources":       {from: "http://a.example.com/x", to: "http://10.0.0.8/x", sources: []string{"http://10.0.0.8"}, login: access.Anonymous},
		"outside of the sources":      {from: "https://charts.example.com/team/x", to: "https://cdn.example.net/x", sources: []string{"https://charts.example.com/team"}, want: "not among the sources"},
		"same origin, outside":        {from: "https://charts.example.com/team/x", to: "https://charts.example.com/other/x", sources: []string{"https://charts.example.com/team"}, want: "not among the sources"},
		"credentials in it":           {from: "https://charts.example.com/x", to: "https://u:canary@charts.example.com/x", want: "credentials in it"},
	} {
		grant, err := access.Decide(access.Request{URL: c.to, From: []string{c.from}, Sources: c.sources}, prefixes)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") || !errors.Is(err, access.ErrDenied) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		case err != nil || grant.Login != c.login || grant.PublicOnly != c.public:
			t.Errorf("%s: login %d, public %t: %v", name, grant.Login, grant.PublicOnly, err)
		}
	}
}

func TestEachStepOfARedirectIsChecked(t *testing.T) {
	t.Parallel()
	prefixes := []string{"https://a.example.com"}
	for name, from := range map[string][]string{
		"back to the beginning":     {"https://a.example.com/x", "https://b.example.com/y"},
		"from another one to there": {"https://b.example.com/y", "https://a.example.com/x"},
	} {
		grant, err := access.Decide(access.Request{URL: "https://a.example.com/z", From: from, Redirect: true}, prefixes)
		if err != nil || grant.Login != access.Anonymous || grant.Keeps {
			t.Errorf("%s: %+v, %v", name, grant, err)
		}
	}
	if _, err := access.Decide(access.Request{URL: "http://c.example.com/z", From: []string{"http://a.example.com/x", "https://b.example.com/y"}}, nil); err == nil {
		t.Error("https in the middle of the way becomes http")
	}
}

func TestARegistrysCredentialsStayAtItsRepository(t *testing.T) {
	t.Parallel()
	prefixes := []string{"https://registry.example.com/team", "https://registry.example.com"}
	for name, c := range map[string]struct {
		to       string
		redirect bool
		sources  []string
		keeps    bool
		want     string
	}{
		"a tag":                  {to: "https://registry.example.com/v2/team/app/manifests/1.0", keeps: true},
		"its realm":              {to: "https://registry.example.com/token?scope=x", keeps: true},
		"its realm in the API":   {to: "https://registry.example.com/v2/token?scope=x", keeps: true},
		"a redirect to a file":   {to: "https://registry.example.com/storage/x", redirect: true},
		"another repository":     {to: "https://registry.example.com/v2/platform/secret/tags/list", want: "another repository"},
		"a repository below":     {to: "https://registry.example.com/v2/team/app/more/manifests/1", want: "another repository"},
		"dot segments":           {to: "https://registry.example.com/v2/team/app/../x/tags/list", want: "cannot be used"},
		"another server":         {to: "https://gitlab.example.com/jwt/auth", keeps: false},
		"another server outside": {to: "https://gitlab.example.com/jwt/auth", sources: []string{"oci://registry.example.com/team"}, want: "not among the sources"},
		"another server within":  {to: "https://gitlab.example.com/jwt/auth", sources: []string{"oci://registry.example.com/team", "https://gitlab.example.com/jwt"}},
		"by http":                {to: "http://registry.example.com/token", want: "from https to http"},
	} {
		grant, err := access.Decide(
			access.Request{URL: c.to, From: []string{"oci://registry.example.com/team/app"}, Redirect: c.redirect, Sources: c.sources},
			prefixes,
		)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		case err != nil || grant.Keeps != c.keeps || c.keeps != (grant.Login == 0):
			t.Errorf("%s: %+v, %v", name, grant, err)
		}
	}
	for _, to := range []string{"https://registry-1.docker.io/v2/library/x/tags/list", "https://auth.docker.io/token"} {
		grant, err := access.Decide(
			access.Request{URL: to, From: []string{"oci://docker.io/library/x"}, Sources: []string{"oci://docker.io/library"}},
			nil,
		)
		if err != nil || !grant.Keeps {
			t.Errorf("%s: %+v, %v", to, grant, err)
		}
	}
}

func TestOnlyInternetAddressesArePublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1": true, "64:ff9b::808:808": true,
		"127.0.0.1": false, "127.9.9.9": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "0.0.0.0": false, "100.64.0.1": false,
		"224.0.0.1": false, "255.255.255.255": false, "::1": false, "::": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "192.0.2.1": false, "198.18.0.1": false, "::127.0.0.1": false,
	} {
		if got := access.IsPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("IsPublic(%s) = %t", text, got)
		}
	}
}

// FuzzDecide checks each decision: the login belongs to a prefix of the URL, apart from spelling, and no redirect leads from
// https to http.
func FuzzDecide(f *testing.F) {
	f.Add("https://h/a/b", "https://h/a")
	f.Add("https://h/a/../b", "oci://h/a")
	f.Add("git@h:a.git/x", "")
	f.Add("http://h/a%2Fb?x#y", "https://h/a.git")
	prefixes := []string{"https://h/a", "http://h/a", "ssh://h/a", "http://127.0.0.1:3000"}
	f.Fuzz(func(t *testing.T, address, from string) {
		request := access.Request{URL: address, PlainFor: "https://h/a"}
		if from != "" {
			request.From = []string{from}
		}
		grant, err := access.Decide(request, prefixes)
		if err != nil {
			if grant.Login != access.Anonymous || grant.Keeps {
				t.Fatalf("%q from %q: an error and a login", address, from)
			}
			return
		}
		if path, _, _ := strings.Cut(address, "?"); grant.Login >= 0 && strings.Contains(path+"/", "/../") {
			t.Fatalf("%q gets %d", address, grant.Login)
		}
		if strings.HasPrefix(strings.ToLower(from), "https://") && strings.HasPrefix(strings.ToLower(address), "http://") {
			t.Fatalf("%q leads to %q", from, address)
		}
	})
}

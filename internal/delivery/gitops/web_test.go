package gitops_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

const canary = "c4n4ry s3cr3t/+&%?"

// requireLogin requires basic authentication.
func requireLogin(username, password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gotUsername, gotPassword, _ := r.BasicAuth(); gotUsername != username || gotPassword != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			// The server repeats the credentials.
			http.Error(w, "bad credentials: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestCredentialsGoToTheServerAsBasicAuthentication(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		username, password string
		credentials        git.Credentials
	}{
		"a password":         {"person", canary, git.Credentials{Login: git.Login{Username: "person", Password: canary}}},
		"a token":            {"x-access-token", canary, git.Credentials{Login: git.Login{Token: canary}}},
		"a token of a user":  {"oauth2", canary, git.Credentials{Login: git.Login{Username: "oauth2", Token: canary}}},
		"token and password": {"oauth2", canary, git.Credentials{Login: git.Login{Username: "oauth2", Token: canary, Password: "x"}}},
	} {
		r := newRepository(t, servings[0])
		r.remote.URL = serve(t, requireLogin(test.username, test.password, backend(t, filepath.Dir(r.directory)))) + "/gitops.git"
		r.remote.Credentials = test.credentials
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")})
		if result := apply(t, r, edit); !result.Committed {
			t.Errorf("%s: %+v", name, result)
		}
		if text := fmt.Sprintf("%v %+v %#v %s", r.remote, r.remote, r.remote, r.remote.Credentials); strings.Contains(text, canary) {
			t.Errorf("%s: a printed remote shows the secret: %s", name, text)
		}
	}
}

func TestNoErrorContainsACredential(t *testing.T) {
	t.Parallel()
	credentials := git.Credentials{Login: git.Login{Username: "person", Password: canary, Token: canary + "token"}}
	echo := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintln(w, r.Header.Get("Authorization"), credentials.Password, url.QueryEscape(credentials.Token),
				url.PathEscape(credentials.Token), url.UserPassword("person", credentials.Token),
				base64.StdEncoding.EncodeToString([]byte(":"+credentials.Token)), base64.RawURLEncoding.EncodeToString([]byte(credentials.Token)))
		})
	}
	urls := map[string]string{
		"401": serve(t, echo(401)) + "/r", "403": serve(t, echo(403)) + "/r", "404": serve(t, echo(404)) + "/r",
		"410": serve(
			t,
			echo(410),
		) + "/r", "400": serve(t, echo(400)) + "/r", "500": serve(t, echo(500)) + "/r", "200": serve(t, echo(200)) + "/r",
		"in the URL": "https://person:" + url.PathEscape(canary) + "@127.0.0.1:1/r", "in ssh": "git:c4n4ry@127.0.0.1:r",
		"nobody":  "http://127.0.0.1:1/r",
		"no host": "http://host.invalid/r",
		"redirect": serve(
			t,
			http.RedirectHandler("http://person:"+url.PathEscape(credentials.Token)+"@127.0.0.1:1/info/refs", http.StatusFound),
		) + "/r",
	}
	for name, address := range urls {
		remote := git.Remote{IsGitOps: true, URL: address, Branch: "main", Credentials: credentials}
		_, readErr := readOwnerWith(context.Background(), newClient(gitops.BranchOptions{}), remote, dev)
		_, applyErr := newClient(
			gitops.BranchOptions{},
		).Apply(context.Background(), remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")}))
		for _, err := range []error{readErr, applyErr} {
			if err == nil {
				t.Errorf("%s: no error", name)
				continue
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				text := fmt.Sprintf("%v %+v %#v", e, e, e)
				for _, form := range []string{
					canary, url.QueryEscape(canary), url.PathEscape(canary), strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("person:"+credentials.Token)), "="),
					"c4n4ry", base64.StdEncoding.EncodeToString([]byte("c4n4ry")),
				} {
					if strings.Contains(text, form) {
						t.Errorf("%s: the error contains %q: %s", name, form, text)
					}
				}
			}
		}
	}
}

func TestErrorsDescribeTheProblemOfTheRepository(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) })) + "/r"
	}
	hang := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})) + "/r"
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	empty := t.TempDir()
	for name, test := range map[string]struct {
		url  string
		kind error
		text string
	}{
		"not found":             {status(404, "no such repository"), git.ErrNotFound, "no such repository"},
		"gone":                  {status(410, "x"), git.ErrNotFound, "410"},
		"unauthorized":          {status(401, "who are you"), git.ErrUnauthorized, "who are you"},
		"forbidden":             {status(403, "not you"), git.ErrUnauthorized, "not you"},
		"broken":                {status(500, "oh no"), git.ErrUnreachable, "oh no"},
		"no server":             {"http://127.0.0.1:1/r", git.ErrUnreachable, "refused"},
		"no such host":          {"http://host.invalid/r", git.ErrUnreachable, "host.invalid"},
		"a foreign certificate": {tls.URL + "/r", git.ErrUnreachable, "certificate"},
		"no answer":             {hang, context.DeadlineExceeded, "deadline"},
		"not git":               {serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })) + "/r", git.ErrUnreachable, "not that of a Git server"},
		"an empty folder":       {empty, git.ErrNotFound, "not a git repository"},
		"an unsupported URL":    {"git://h/r", nil, "git"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := 10 * time.Second
			if test.url == hang {
				timeout = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			_, err := readOwnerWith(ctx, newClient(gitops.BranchOptions{}), git.Remote{IsGitOps: true, URL: test.url, Branch: "main"}, dev)
			if err == nil || test.kind != nil && !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestCredentialsDoNotFollowARedirectToAnotherHost(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	var leaked atomic.Int32
	next := backend(t, filepath.Dir(r.directory))
	elsewhere := serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "" {
			leaked.Add(1)
		}
		next.ServeHTTP(w, request)
	}))
	r.remote.URL = serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, elsewhere+request.URL.RequestURI(), http.StatusMovedPermanently)
	})) + "/gitops.git"
	r.remote.Credentials = git.Credentials{Login: git.Login{Token: canary}}
	if _, err := readOwnerWith(t.Context(), newClient(gitops.BranchOptions{}), r.remote, dev); err == nil ||
		!strings.Contains(err.Error(), "not a public address") {
		t.Errorf("the redirect to this machine is followed: %v", err)
	}
	r.remote.Credentials.ByURL = []git.URLCredentials{{URL: elsewhere}} // allows redirects there
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "a")})
	apply(t, r, edit)
	readOwner(t, r, dev)
	if leaked.Load() != 0 {
		t.Errorf("the credentials reached another host %d times", leaked.Load())
	}
}

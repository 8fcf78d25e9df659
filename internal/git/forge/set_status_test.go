package forge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

const (
	statusContext = "flotilla/prod"

	centerRepo = "/rest/api/latest/projects/PLAT/repos/gitops"
	labRepo    = "/api/v4/projects/owner%2Fgitops"
	azVersion  = "?api-version=7.1"
)

const (
	ciLink     = "https://ci.example.com/7"
	ciLink2    = "https://ci.example.com/8"
	statusText = "2 of 3 stages"
	longText   = "a description\nthat goes on "
)

func ownStatus(state forge.StatusState) forge.Status {
	return forge.Status{Context: statusContext, State: state, Description: statusText, URL: ciLink}
}

func TestAStatusIsSetOnlyIfItChanges(t *testing.T) {
	t.Parallel()
	for kind, w := range statusFixtures() {
		stateNames := map[forge.StatusState]string{forge.Success: w.success, forge.Failure: w.failure, forge.Error: w.error, forge.Pending: w.pending}
		statusAs := func(state forge.StatusState) fields { return w.status(stateNames[state], statusText, ciLink) }
		for state, word := range stateNames {
			sent := w.writeExchange(w.body(word, statusText, ciLink))
			for name, exchanges := range map[string][]exchange{
				"no status":          append(w.read(), sent),
				"the same status":    w.read(statusAs(state)),
				"another text":       append(w.read(w.status(word, "1 of 3 stages", ciLink)), sent),
				"another link":       append(w.read(w.status(word, statusText, ciLink2)), sent),
				"an unreadable list": {{request: w.read()[0].request, status: 403, answer: `{"message": "no"}`}, sent},
				"a missing list":     {{request: w.read()[0].request, status: 404, answer: `{"message": "no"}`}, sent},
			} {
				if kind == forge.Gitea || kind == forge.Forgejo { // Gitea is asked which object is missing
					if name == "a missing list" {
						continue
					}
				}
				t.Run(fmt.Sprint(kind, " ", state, " ", name), func(t *testing.T) {
					t.Parallel()
					if err := newScriptedHost(t, kind, repositoryPath(kind), exchanges).SetStatus(t.Context(), strings.ToUpper(newHead), ownStatus(state)); err != nil {
						t.Error(err)
					}
				})
			}
			t.Run(fmt.Sprint(kind, " ", state, " read"), func(t *testing.T) {
				t.Parallel()
				wanted := ownStatus(state)
				if got, err := newScriptedHost(t, kind, repositoryPath(kind), w.read(statusAs(state))).Status(t.Context(), newHead, wanted); err != nil || got == nil ||
					*got != wanted {
					t.Errorf("got %+v, %v", got, err)
				}
				got, err := newScriptedHost(t, kind, repositoryPath(kind), w.read(w.status(word, "by hand", ciLink2))).Status(t.Context(), newHead, wanted)
				if err != nil || got == nil || got.Description != "by hand" || got.URL != ciLink2 || stateNames[got.State] != word {
					t.Errorf("after a manual change: got %+v, %v", got, err)
				}
				if got, err := newScriptedHost(t, kind, repositoryPath(kind), w.read()).Status(t.Context(), newHead, wanted); err != nil || got != nil {
					t.Errorf("without a status: got %+v, %v", got, err)
				}
			})
		}
	}
}

// Some Git hosts require a link, and GitLab a text. The provider sends placeholders and hides them when it reads the status.
func TestAStatusWithoutTextAndLinkRoundTripsOnEachHost(t *testing.T) {
	t.Parallel()
	for kind := range statusFixtures() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var sent []string
			memory := &statusMemory{kind: kind, sent: &sent}
			host, err := forge.NewGitHost(forge.HostedRepository{URL: "https://git.example.com" + repositoryPath(kind), Forge: kind}, forge.HTTPOptions{Over: memory})
			if err != nil {
				t.Fatal(err)
			}
			bare := forge.Status{Context: statusContext, State: forge.Success}
			for range 2 {
				if err := host.SetStatus(t.Context(), newHead, bare); err != nil {
					t.Fatal(err)
				}
			}
			if len(sent) != 1 {
				t.Errorf("got %q, want one status", sent)
			}
			page, hasPlaceholders := "https://git.example.com"+strings.TrimSuffix(
				repositoryPath(kind),
				".git",
			), kind == forge.GitLab ||
				strings.HasPrefix(string(kind), "bitbucket")
			if (memory.last["description"] == memory.last["state"]) != hasPlaceholders || strings.Contains(sent[0], page) != hasPlaceholders {
				t.Errorf("got %s", sent)
			}
			if got, err := host.Status(t.Context(), newHead, bare); err != nil || got == nil || *got != bare {
				t.Errorf("got %+v, %v", got, err)
			}
			got, err := host.Status(t.Context(), newHead, forge.Status{Context: statusContext}) // as in an import
			if err != nil || got == nil || got.State != forge.Success || got.Description != "" || got.URL != "" {
				t.Errorf("import: got %+v, %v", got, err)
			}
		})
	}
}

// statusMemory is a Git host of any kind that stores the last status.
type statusMemory struct {
	kind forge.Forge
	sent *[]string
	last map[string]any
}

func (m *statusMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(value any) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK,
			Header:     http.Header{"Content-Type": {"application/json"}},
			Request:    r,
			Body:       readCloser(toJSON(value)),
		}, nil
	}
	if r.Method == http.MethodPost {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		*m.sent = append(*m.sent, string(text))
		m.last = nil
		if err := json.Unmarshal(text, &m.last); err != nil {
			return nil, err
		}
		m.last["status"] = m.last["state"] // the name in lists of Gitea and GitLab
		return answer(m.last)
	}
	var list []any
	if m.last != nil && r.URL.Query().Get("page") != "2" {
		list = append(list, m.last)
	}
	switch {
	case m.kind == forge.GitLab:
		return answer(append([]any{}, list...))
	case m.kind == forge.BitbucketDataCenter && strings.HasSuffix(r.URL.Path, "/builds") && m.last != nil:
		return answer(m.last)
	case m.kind == forge.BitbucketDataCenter:
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Request: r, Body: readCloser("{}")}, nil
	}
	return answer(map[string]any{"value": list, "values": list, "statuses": list})
}

// GitLab refuses a pending status after a pending one, so the provider sets another state in between to change the text.
func TestTheTextOfAPendingStatusChangesOnGitLab(t *testing.T) {
	t.Parallel()
	w := statusFixtures()[forge.GitLab]
	refused := func(event, from, state string) exchange {
		return exchange{request: w.write, body: w.body(state, statusText, ciLink), status: 400, answer: fields{
			"message": fmt.Sprintf("Cannot transition status via :%s from :%s (Reason(s): Status cannot transition via \"%s\")", event, from, event),
		}}
	}
	set := func(state string) exchange { return w.writeExchange(w.body(state, statusText, ciLink)) }
	for name, exchanges := range map[string][]exchange{
		"pending": append(w.read(w.status("pending", "1 of 3 stages", ciLink)), refused("enqueue", "pending", "pending"), set("running")),
		"running": append(w.read(w.status("running", "1 of 3 stages", ciLink)),
			refused("enqueue", "running", "pending"), refused("run", "running", "running"), set("canceled"), set("pending")),
		"a concurrent update": append(w.read(),
			exchange{request: w.write, body: w.body("pending", statusText, ciLink), status: 409, answer: fields{"message": "Another update to this commit status is in progress"}}, set("pending")),
		"no change": w.read(w.status("running", statusText, ciLink)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := newScriptedHost(t, forge.GitLab, repositoryPath(forge.GitLab), exchanges).SetStatus(t.Context(), newHead, ownStatus(forge.Pending)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestErrorsOfSetStatusNameTheCause(t *testing.T) {
	t.Parallel()
	const no = `{"message": "no"}`
	for kind, w := range statusFixtures() {
		sent := w.body(w.success, statusText, ciLink)
		refused := func(status int) []exchange {
			return append(w.read(), exchange{request: w.write, body: sent, status: status, answer: no})
		}
		existing, missing := exchange{request: w.commit, answer: `{}`}, exchange{request: w.commit, status: 404, answer: no}
		for name, test := range map[string]struct {
			exchanges []exchange
			kind      error
			wantText  string
		}{
			"no commit":             {append(refused(404), missing, exchange{request: w.repository, answer: `{}`}), forge.ErrNoCommit, "does not have the commit"},
			"an ambiguous commit":   {append(refused(422), exchange{request: w.commit, status: 422, answer: no}, exchange{request: w.repository, answer: `{}`}), forge.ErrNoCommit, "does not have the commit"},
			"no repository":         {append(refused(404), missing, exchange{request: w.repository, status: 404, answer: no}), forge.ErrNotFound, "404"},
			"no rights, with 404":   {append(refused(404), existing), forge.ErrUnauthorized, "may not set statuses"},
			"no rights":             {refused(403), forge.ErrUnauthorized, "403"},
			"no credentials":        {refused(401), forge.ErrUnauthorized, "401"},
			"too many statuses":     {append(refused(422), existing), forge.ErrRefused, "422"},
			"an unreadable commit":  {append(refused(404), exchange{request: w.commit, status: 403, answer: no}), forge.ErrNotFound, "404"},
			"a commit on no branch": {append(append(w.read(), exchange{request: w.write, body: sent, status: 404, answer: `{"message": "404 References for commit Not Found"}`}), existing), forge.ErrNoCommit, "no branch"},
		} {
			t.Run(fmt.Sprint(kind, " ", name), func(t *testing.T) {
				t.Parallel()
				err := newScriptedHost(t, kind, repositoryPath(kind), test.exchanges).SetStatus(t.Context(), newHead, ownStatus(forge.Success))
				wantError(t, err, test.kind, test.wantText)
				if !strings.Contains(err.Error(), `the status "flotilla/prod" of commit `+newHead+" cannot be set") {
					t.Errorf("err = %v", err)
				}
			})
		}
	}
	for _, commit := range []string{"", "main", newHead[:39], "../../../user"} {
		if err := newScriptedHost(t, forge.Gitea, "/owner/gitops.git", nil).SetStatus(t.Context(), commit, ownStatus(forge.Success)); err == nil ||
			!strings.Contains(err.Error(), "full id of a commit") {
			t.Errorf("%q: %v", commit, err)
		}
	}
}

// A cut description counts as the wanted one when it is read again.
func TestALongDescriptionIsCutToTheLimitOfTheHost(t *testing.T) {
	t.Parallel()
	for kind := range statusFixtures() {
		most := 255
		if kind == forge.GitHub {
			most = 140
		}
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var sent []string
			memory := &statusMemory{kind: kind, sent: &sent}
			host, err := forge.NewGitHost(forge.HostedRepository{URL: "https://git.example.com" + repositoryPath(kind), Forge: kind}, forge.HTTPOptions{Over: memory})
			if err != nil {
				t.Fatal(err)
			}
			wanted := ownStatus(forge.Pending)
			wanted.Description = longText + strings.Repeat("ü", 300)
			for range 2 {
				if err := host.SetStatus(t.Context(), newHead, wanted); err != nil {
					t.Fatal(err)
				}
			}
			text, _ := memory.last["description"].(string)
			if len(sent) != 1 || len([]rune(text)) != most || !strings.HasPrefix(text, "a description that goes on ü") ||
				!strings.HasSuffix(text, "ü…") {
				t.Errorf("sent %d times: %q", len(sent), text)
			}
			if got, err := host.Status(t.Context(), newHead, wanted); err != nil || got == nil || *got != wanted {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// Statuses are public, so they must not contain credentials, even from user input.
func TestNoStatusContainsCredentials(t *testing.T) {
	t.Parallel()
	for kind := range statusFixtures() {
		var sent []string
		host, err := forge.NewGitHost(
			forge.HostedRepository{URL: "https://git.example.com" + repositoryPath(kind), Forge: kind, Credentials: forge.Credentials{Token: canary}},
			forge.HTTPOptions{Over: &statusMemory{kind: kind, sent: &sent}},
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range canaryForms("person") {
			for _, wanted := range []forge.Status{{Context: statusContext + form}, {Context: statusContext, URL: ciLink + "?" + form}} {
				err := host.SetStatus(t.Context(), newHead, wanted)
				if err == nil || !strings.Contains(err.Error(), "has credentials of the provider in it") {
					t.Errorf("%s accepts %+v: %v", kind, wanted, err)
				}
				wantNoCanary(t, err)
			}
			if err := host.SetStatus(t.Context(), newHead, forge.Status{Context: statusContext, State: forge.Failure, Description: "failed with " + form}); err != nil {
				t.Fatal(err)
			}
		}
		if text := strings.Join(sent, "\n"); strings.Contains(text, "c4n4ry") || !strings.Contains(text, "failed with ***") {
			t.Errorf("%s: got %s", kind, text)
		}
	}
}

func TestLinksAndContextsAreChecked(t *testing.T) {
	t.Parallel()
	long := "https://x.example.com/" + strings.Repeat("x", 240)
	for _, test := range []struct {
		link     string
		kind     forge.Forge
		wantText string // "" if valid
	}{
		{ciLink, "", ""},
		{"http://10.0.0.1:8080/a?b=c#d", forge.GitLab, ""},
		{long, forge.GitHub, ""},
		{long, forge.GitLab, "at most 255 characters"},
		{long, forge.Bitbucket, ""},
		{long + long, forge.BitbucketDataCenter, "at most 450 characters"},
		{strings.Repeat(long, 9), "", "at most 2000 characters"},
		{"javascript:alert(1)", "", "http or https"},
		{"ftp://x.example.com", "", "http or https"},
		{"//x.example.com", "", "http or https"},
		{"https:///x", "", "http or https"},
		{"https://x.example.com/a b", "", "http or https"},
		{"https://x.example.com/\u202e", "", "http or https"},
		{"https://me:secret@x.example.com/", "", "credentials"},
		{"", "", "http or https"},
	} {
		err := forge.CheckLink(test.link, test.kind)
		if test.wantText == "" && err != nil ||
			test.wantText != "" && (err == nil || !strings.Contains(err.Error(), test.wantText) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q on %q: %v", test.link, test.kind, err)
		}
	}
	for context, wantText := range map[string]string{
		statusContext: "", "ci / build (ü)": "", "": "not empty", " x": "space", "x\n": "one line", "a\nb": "one line", "a\x1bb": "one line",
		strings.Repeat("ü", 255): "", strings.Repeat("ü", 256): "at most 255 characters",
	} {
		if err := forge.CheckContext(context); wantText == "" && err != nil || wantText != "" && (err == nil || !strings.Contains(err.Error(), wantText)) {
			t.Errorf("%q: %v", context, err)
		}
	}
}

// FuzzCheckLink expects only links that a browser opens to be accepted.
func FuzzCheckLink(f *testing.F) {
	for _, seed := range []string{ciLink, "HTTP://x", "https://[::1]/", "https://a@b/", "https://x/%00", "\thttps://x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, link string) {
		if forge.CheckLink(link, "") == nil && !strings.HasPrefix(strings.ToLower(link), "http://") &&
			!strings.HasPrefix(strings.ToLower(link), "https://") {
			t.Errorf("%q is accepted", link)
		}
	})
}

// FuzzAStatusThatWasSetIsFound expects to read each status that it sets. Azure Repos splits a context into two parts.
func FuzzAStatusThatWasSetIsFound(f *testing.F) {
	for _, seed := range []string{statusContext, "fluxcd/x", "a/b/c", "/a", "a/", "x", "//"} {
		f.Add(seed, "text", ciLink)
	}
	f.Fuzz(func(t *testing.T, context, description, link string) {
		if forge.CheckContext(context) != nil || forge.CheckLink(link, forge.GitLab) != nil {
			return
		}
		for _, kind := range []forge.Forge{forge.Azure, forge.GitHub, forge.GitLab, forge.Bitbucket} {
			var sent []string
			host, err := forge.NewGitHost(
				forge.HostedRepository{URL: "https://git.example.com" + repositoryPath(kind), Forge: kind},
				forge.HTTPOptions{Over: &statusMemory{kind: kind, sent: &sent}},
			)
			if err != nil {
				t.Fatal(err)
			}
			wanted := forge.Status{Context: context, State: forge.Failure, Description: description, URL: link}
			if err := host.SetStatus(t.Context(), newHead, wanted); err != nil {
				t.Fatal(err)
			}
			if got, err := host.Status(t.Context(), newHead, wanted); err != nil || got == nil || *got != wanted {
				t.Fatalf("%s: set %+v as %q, got %+v, %v", kind, wanted, sent, got, err)
			}
		}
	})
}

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
	rolledOut = "flotilla/prod" // a context

	centerRepo = "/rest/api/latest/projects/PLAT/repos/gitops"
	labRepo    = "/api/v4/projects/owner%2Fgitops"
	azVersion  = "?api-version=7.1"
)

const (
	ciLink   = "https://ci.example.com/7"
	ciLink2  = "https://ci.example.com/8"
	ourText  = "2 of 3 stages"
	longText = "a description\nthat goes on "
)

func ours(state forge.StatusState) forge.Status {
	return forge.Status{Context: rolledOut, State: state, Description: ourText, URL: ciLink}
}

func TestAStatusIsSetOnceAndAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	for kind, w := range statusWorlds() {
		words := map[forge.StatusState]string{forge.Success: w.success, forge.Failure: w.failure, forge.Error: w.error, forge.Pending: w.pending}
		as := func(state forge.StatusState) fields { return w.has(words[state], ourText, ciLink) }
		for state, word := range words {
			sent := w.writes(w.sent(word, ourText, ciLink))
			for name, exchanges := range map[string][]exchange{
				"there is none":       append(w.read(), sent),
				"it is there":         w.read(as(state)),
				"another text":        append(w.read(w.has(word, "1 of 3 stages", ciLink)), sent),
				"another link":        append(w.read(w.has(word, ourText, ciLink2)), sent),
				"it cannot be read":   {{request: w.read()[0].request, status: 403, answer: `{"message": "no"}`}, sent},
				"its list is refused": {{request: w.read()[0].request, status: 404, answer: `{"message": "no"}`}, sent},
			} {
				if kind == forge.Gitea || kind == forge.Forgejo { // which is asked what is missing
					if name == "its list is refused" {
						continue
					}
				}
				t.Run(fmt.Sprint(kind, " ", state, " ", name), func(t *testing.T) {
					t.Parallel()
					if err := scripted(t, kind, pathOf(kind), exchanges).SetStatus(t.Context(), strings.ToUpper(newHead), ours(state)); err != nil {
						t.Error(err)
					}
				})
			}
			t.Run(fmt.Sprint(kind, " ", state, " read"), func(t *testing.T) {
				t.Parallel()
				wanted := ours(state)
				if got, err := scripted(t, kind, pathOf(kind), w.read(as(state))).Status(t.Context(), newHead, wanted); err != nil || got == nil ||
					*got != wanted {
					t.Errorf("got %+v, %v", got, err)
				}
				got, err := scripted(t, kind, pathOf(kind), w.read(w.has(word, "by hand", ciLink2))).Status(t.Context(), newHead, wanted)
				if err != nil || got == nil || got.Description != "by hand" || got.URL != ciLink2 || words[got.State] != word {
					t.Errorf("after a change got %+v, %v", got, err)
				}
				if got, err := scripted(t, kind, pathOf(kind), w.read()).Status(t.Context(), newHead, wanted); err != nil || got != nil {
					t.Errorf("of none got %+v, %v", got, err)
				}
			})
		}
	}
}

// Where a Git host must have a link, and GitLab a text, something stands for them, and is not seen.
func TestAStatusWithoutTextAndLinkIsTheSameOnEachHost(t *testing.T) {
	t.Parallel()
	for kind := range statusWorlds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var sent []string
			memory := &statusMemory{kind: kind, t: t, sent: &sent}
			host, err := forge.NewGitHost(forge.HostedRepository{URL: "https://git.example.com" + pathOf(kind), Forge: kind}, forge.HTTPOptions{Over: memory})
			if err != nil {
				t.Fatal(err)
			}
			bare := forge.Status{Context: rolledOut, State: forge.Success}
			for range 2 {
				if err := host.SetStatus(t.Context(), newHead, bare); err != nil {
					t.Fatal(err)
				}
			}
			if len(sent) != 1 {
				t.Errorf("sent is %q", sent)
			}
			page, stands := "https://git.example.com"+strings.TrimSuffix(
				pathOf(kind),
				".git",
			), kind == forge.GitLab ||
				strings.HasPrefix(string(kind), "bitbucket")
			if (memory.last["description"] == memory.last["state"]) != stands || strings.Contains(sent[0], page) != stands {
				t.Errorf("sent is %s", sent)
			}
			if got, err := host.Status(t.Context(), newHead, bare); err != nil || got == nil || *got != bare {
				t.Errorf("got %+v, %v", got, err)
			}
			got, err := host.Status(t.Context(), newHead, forge.Status{Context: rolledOut}) // as an import asks
			if err != nil || got == nil || got.State != forge.Success || got.Description != "" || got.URL != "" {
				t.Errorf("imported is %+v, %v", got, err)
			}
		})
	}
}

// statusMemory has the last status that was set, of any kind.
type statusMemory struct {
	t    *testing.T
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
		m.last["status"] = m.last["state"] // as Gitea and GitLab call it in a list
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

// GitLab refuses a pending status after a pending one, and has no other way to change its text.
func TestTheTextOfAPendingStatusChangesOnGitLab(t *testing.T) {
	t.Parallel()
	w := statusWorlds()[forge.GitLab]
	refused := func(event, from, state string) exchange {
		return exchange{request: w.write, body: w.sent(state, ourText, ciLink), status: 400, answer: fields{
			"message": fmt.Sprintf("Cannot transition status via :%s from :%s (Reason(s): Status cannot transition via \"%s\")", event, from, event),
		}}
	}
	set := func(state string) exchange { return w.writes(w.sent(state, ourText, ciLink)) }
	for name, exchanges := range map[string][]exchange{
		"pending": append(w.read(w.has("pending", "1 of 3 stages", ciLink)), refused("enqueue", "pending", "pending"), set("running")),
		"running": append(w.read(w.has("running", "1 of 3 stages", ciLink)),
			refused("enqueue", "running", "pending"), refused("run", "running", "running"), set("canceled"), set("pending")),
		"set meanwhile": append(w.read(),
			exchange{request: w.write, body: w.sent("pending", ourText, ciLink), status: 409, answer: fields{"message": "Another update to this commit status is in progress"}}, set("pending")),
		"as wanted": w.read(w.has("running", ourText, ciLink)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := scripted(t, forge.GitLab, pathOf(forge.GitLab), exchanges).SetStatus(t.Context(), newHead, ours(forge.Pending)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhyAStatusCannotBeSetIsSaid(t *testing.T) {
	t.Parallel()
	const no = `{"message": "no"}`
	for kind, w := range statusWorlds() {
		sent := w.sent(w.success, ourText, ciLink)
		refused := func(status int) []exchange {
			return append(w.read(), exchange{request: w.write, body: sent, status: status, answer: no})
		}
		there, gone := exchange{request: w.commit, answer: `{}`}, exchange{request: w.commit, status: 404, answer: no}
		for name, test := range map[string]struct {
			exchanges []exchange
			is        error
			says      string
		}{
			"no commit":             {append(refused(404), gone, exchange{request: w.repository, answer: `{}`}), forge.ErrNoCommit, "does not have the commit"},
			"no commit, in a word":  {append(refused(422), exchange{request: w.commit, status: 422, answer: no}, exchange{request: w.repository, answer: `{}`}), forge.ErrNoCommit, "does not have the commit"},
			"no repository":         {append(refused(404), gone, exchange{request: w.repository, status: 404, answer: no}), forge.ErrNotFound, "404"},
			"no rights, as 404":     {append(refused(404), there), forge.ErrUnauthorized, "may not set statuses"},
			"no rights":             {refused(403), forge.ErrUnauthorized, "403"},
			"no credentials":        {refused(401), forge.ErrUnauthorized, "401"},
			"too many":              {append(refused(422), there), forge.ErrRefused, "422"},
			"what cannot be asked":  {append(refused(404), exchange{request: w.commit, status: 403, answer: no}), forge.ErrNotFound, "404"},
			"on no branch, as here": {append(append(w.read(), exchange{request: w.write, body: sent, status: 404, answer: `{"message": "404 References for commit Not Found"}`}), there), forge.ErrNoCommit, "no branch"},
		} {
			t.Run(fmt.Sprint(kind, " ", name), func(t *testing.T) {
				t.Parallel()
				err := scripted(t, kind, pathOf(kind), test.exchanges).SetStatus(t.Context(), newHead, ours(forge.Success))
				wantError(t, err, test.is, test.says)
				if !strings.Contains(err.Error(), `the status "flotilla/prod" of commit `+newHead+" cannot be set") {
					t.Errorf("err = %v", err)
				}
			})
		}
	}
	for _, commit := range []string{"", "main", newHead[:39], "../../../user"} {
		if err := scripted(t, forge.Gitea, "/owner/gitops.git", nil).SetStatus(t.Context(), commit, ours(forge.Success)); err == nil ||
			!strings.Contains(err.Error(), "full id of a commit") {
			t.Errorf("%q: %v", commit, err)
		}
	}
}

// What a Git host would refuse is cut, and read back it is what was wanted.
func TestALongDescriptionIsCutToWhatTheHostTakes(t *testing.T) {
	t.Parallel()
	for kind := range statusWorlds() {
		most := 255
		if kind == forge.GitHub {
			most = 140
		}
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var sent []string
			memory := &statusMemory{kind: kind, t: t, sent: &sent}
			host, err := forge.NewGitHost(forge.HostedRepository{URL: "https://git.example.com" + pathOf(kind), Forge: kind}, forge.HTTPOptions{Over: memory})
			if err != nil {
				t.Fatal(err)
			}
			wanted := ours(forge.Pending)
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

// What everybody may read has no credentials in it, not even those that somebody wrote into it.
func TestNoStatusHasACanary(t *testing.T) {
	t.Parallel()
	for kind := range statusWorlds() {
		var sent []string
		host, err := forge.NewGitHost(
			forge.HostedRepository{URL: "https://git.example.com" + pathOf(kind), Forge: kind, Credentials: forge.Credentials{Token: canary}},
			forge.HTTPOptions{Over: &statusMemory{kind: kind, t: t, sent: &sent}},
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range canaryForms("person") {
			for _, wanted := range []forge.Status{{Context: rolledOut + form}, {Context: rolledOut, URL: ciLink + "?" + form}} {
				err := host.SetStatus(t.Context(), newHead, wanted)
				if err == nil || !strings.Contains(err.Error(), "has credentials of the provider in it") {
					t.Errorf("%s takes %+v: %v", kind, wanted, err)
				}
				wantNoCanary(t, err)
			}
			if err := host.SetStatus(t.Context(), newHead, forge.Status{Context: rolledOut, State: forge.Failure, Description: "failed with " + form}); err != nil {
				t.Fatal(err)
			}
		}
		if text := strings.Join(sent, "\n"); strings.Contains(text, "c4n4ry") || !strings.Contains(text, "failed with ***") {
			t.Errorf("%s is sent %s", kind, text)
		}
	}
}

func TestLinksAndContextsAreChecked(t *testing.T) {
	t.Parallel()
	long := "https://x.example.com/" + strings.Repeat("x", 240)
	for _, test := range []struct {
		link string
		kind forge.Forge
		says string // "" for nothing
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
		if test.says == "" && err != nil ||
			test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q on %q: %v", test.link, test.kind, err)
		}
	}
	for context, says := range map[string]string{
		rolledOut: "", "ci / build (ü)": "", "": "not empty", " x": "space", "x\n": "one line", "a\nb": "one line", "a\x1bb": "one line",
		strings.Repeat("ü", 255): "", strings.Repeat("ü", 256): "at most 255 characters",
	} {
		if err := forge.CheckContext(context); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v", context, err)
		}
	}
}

// A link that is taken is one that a browser opens, and nothing else.
func FuzzCheckLink(f *testing.F) {
	for _, seed := range []string{ciLink, "HTTP://x", "https://[::1]/", "https://a@b/", "https://x/%00", "\thttps://x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, link string) {
		if forge.CheckLink(link, "") == nil && !strings.HasPrefix(strings.ToLower(link), "http://") &&
			!strings.HasPrefix(strings.ToLower(link), "https://") {
			t.Errorf("%q is taken", link)
		}
	})
}

// Whatever the context is, what was set is found: that of Azure Repos is in two parts.
func FuzzAStatusThatWasSetIsFound(f *testing.F) {
	for _, seed := range []string{rolledOut, "fluxcd/x", "a/b/c", "/a", "a/", "x", "//"} {
		f.Add(seed, "text", ciLink)
	}
	f.Fuzz(func(t *testing.T, context, description, link string) {
		if forge.CheckContext(context) != nil || forge.CheckLink(link, forge.GitLab) != nil {
			return
		}
		for _, kind := range []forge.Forge{forge.Azure, forge.GitHub, forge.GitLab, forge.Bitbucket} {
			var sent []string
			host, err := forge.NewGitHost(
				forge.HostedRepository{URL: "https://git.example.com" + pathOf(kind), Forge: kind},
				forge.HTTPOptions{Over: &statusMemory{kind: kind, t: t, sent: &sent}},
			)
			if err != nil {
				t.Fatal(err)
			}
			wanted := forge.Status{Context: context, State: forge.Failure, Description: description, URL: link}
			if err := host.SetStatus(t.Context(), newHead, wanted); err != nil {
				t.Fatal(err)
			}
			if got, err := host.Status(t.Context(), newHead, wanted); err != nil || got == nil || *got != wanted {
				t.Fatalf("%s: %+v was set as %q, and read as %+v, %v", kind, wanted, sent, got, err)
			}
		}
	})
}

package provider_test

import (
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// Each mistake is an error of the plan at its attribute, with a remedy.
func TestEveryAttributeOfAnAssignmentIsReadStrictly(t *testing.T) {
	t.Parallel()
	repo := func(further map[string]any) map[string]any {
		location := map[string]any{"url": "https://git.example.com/team/one.git", "branch": "dev"}
		maps.Copy(location, further)
		return location
	}
	pull := func(further map[string]any) map[string]any {
		delivery := map[string]any{"mode": "pull_request", "forge": "gitea"}
		maps.Copy(delivery, further)
		return delivery
	}
	for name, c := range map[string]struct {
		attribute string
		value     any
		want      string // "-" for no error
	}{
		"an invalid name":               {"name", "Dev_1", `"Dev_1" `},
		"an empty name":                 {"name", "", `"" `},
		"a repository of another type":  {"gitops_repo", "https://git.example.com", ""},
		"no url":                        {"gitops_repo", map[string]any{"branch": "dev"}, "url"},
		"a misspelt key":                {"gitops_repo", repo(map[string]any{"pth": "x"}), `did you mean "path"?`},
		"a url with a password":         {"gitops_repo", repo(map[string]any{"url": "https://me:hunter2@git.example.com/x"}), "credentials"},
		"a url of another scheme":       {"gitops_repo", repo(map[string]any{"url": "ftp://git.example.com/x"}), `"ftp" is not supported`},
		"an invalid branch":             {"gitops_repo", repo(map[string]any{"branch": "a..b"}), "branch"},
		"a path with ..":                {"gitops_repo", repo(map[string]any{"path": "../x"}), "path"},
		"a branch of another type":      {"gitops_repo", repo(map[string]any{"branch": 1}), "branch"},
		"delivery, a text":              {"delivery", "push", "Must be an object"},
		"delivery, null attributes":     {"delivery", map[string]any{"mode": "push", "forge": nil, "labels": nil}, "-"},
		"delivery, a misspelt key":      {"delivery", map[string]any{"mod": "push"}, `did you mean "mode"?`},
		"delivery, another mode":        {"delivery", map[string]any{"mode": "email"}, "mode: must be one of push, pull_request, not \"email\""},
		"delivery, push with a forge":   {"delivery", map[string]any{"mode": "push", "forge": "gitea"}, "has no other settings"},
		"delivery, another forge":       {"delivery", pull(map[string]any{"forge": "svn"}), "forge: must be one of"},
		"delivery, another merge":       {"delivery", pull(map[string]any{"merge": "later"}), "merge: must be one of"},
		"delivery, a wrong branch":      {"delivery", pull(map[string]any{"branch": "a b"}), `branch "a b"`},
		"delivery, labels, a text":      {"delivery", pull(map[string]any{"labels": "x"}), "labels: must be a list of strings"},
		"delivery, reviewers, numbers":  {"delivery", pull(map[string]any{"reviewers": []any{1}}), "reviewers[0]: must be a string"},
		"delivery, a title, no text":    {"delivery", pull(map[string]any{"title": true}), "title: must be a string, not a bool"},
		"protection, a text":            {"protection", "all", "Must be an object"},
		"protection, null attributes":   {"protection", map[string]any{"max_removed": nil}, "-"},
		"protection, a misspelt key":    {"protection", map[string]any{"max_remved": 1}, `did you mean "max_removed"?`},
		"protection, below zero":        {"protection", map[string]any{"max_removed": -1}, "max_removed: must be a whole number from 0"},
		"protection, half an object":    {"protection", map[string]any{"max_removed": 1.5}, "max_removed: must be a whole number from 0"},
		"protection, 101 %":             {"protection", map[string]any{"max_removed_percent": 101}, "max_removed_percent: must be a whole number from 0 to 100, not 101"},
		"protection, no bool":           {"protection", map[string]any{"allow_empty": "yes"}, "allow_empty: must be true or false"},
		"protection, hosts, a text":     {"protection", map[string]any{"emptied_hosts": "t1"}, "emptied_hosts: must be a list of strings"},
		"on_destroy, a misspelt value":  {"on_destroy", "kep", `did you mean "keep"?`},
		"rollback_to, a short id":       {"rollback_to", "1a2b3c", "commit"},
		"rollback_to, no id":            {"rollback_to", strings.Repeat("x", 40), "commit"},
		"timeouts, a number":            {"timeouts", 5, "Must be an object"},
		"timeouts, a misspelt key":      {"timeouts", map[string]any{"creat": "5m"}, `did you mean "create"?`},
		"timeouts, no duration":         {"timeouts", map[string]any{"read": "5 minutes"}, "read: must be a duration above zero"},
		"timeouts, zero":                {"timeouts", map[string]any{"read": "0s"}, "read: must be a duration above zero"},
		"timeouts, a number of seconds": {"timeouts", map[string]any{"read": 5}, "read: must be a duration above zero"},
		"timeouts, null":                {"timeouts", map[string]any{"read": nil}, "-"},
		"a fleet by hand":               {"fleet", map[string]any{"environment": "dev"}, "provider::flotilla::fleet"},
		"a fleet of another type":       {"fleet", "dev", "provider::flotilla::fleet"},
		"a fleet with a broken model":   {"fleet", map[string]any{"format": "1", "environment": "dev", "model": "{", "config": map[string]any{"known": "{}"}}, ""},
		"a fleet with broken entries":   {"fleet", map[string]any{"format": "1", "environment": "dev", "model": "{}", "config": map[string]any{"known": "{"}}, "provider::flotilla::fleet"},
		"everything unknown": {"delivery", map[string]any{
			"mode": providertest.Unknown{Then: "push"}, "forge": providertest.Unknown{},
		}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world := newMemoryWorld(t, true)
			w := providertest.New(world.start)
			configuration := assigned(
				"https://git.example.com/team/one.git",
				shape{targets: [hostCount]uint8{1, 1, 1}}.fleet(),
				map[string]any{c.attribute: c.value},
			)
			_, diags := w.Plan(t.Context(), configuration)
			if c.want == "-" {
				if diags.Err() != nil {
					t.Errorf("got diagnostics %s", diags)
				}
				return
			}
			found := slices.ContainsFunc(diags, func(d providertest.Diagnostic) bool {
				return d.Error && strings.HasPrefix(d.At, `AttributeName("`+c.attribute+`")`) && strings.Contains(d.Detail, c.want) &&
					strings.Contains(d.Detail, "/docs/guides/troubleshooting.md#")
			})
			if !found || diags.Bugs() != nil {
				t.Errorf("got diagnostics %s, want %q", diags, c.want)
			}
			if strings.Contains(diags.String(), "hunter2") {
				t.Errorf("the diagnostics contain a secret: %s", diags)
			}
		})
	}
}

// Equal errors appear once.
func TestAllMistakesInAnAssignmentAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	configuration := assigned("https://git.example.com/team/one.git", fleetOf(nil), map[string]any{
		"name": "_", "on_destroy": "x", "rollback_to": "y", "timeouts": map[string]any{"read": "z"},
		"protection": map[string]any{"a": 1}, "delivery": map[string]any{"b": 2},
	})
	_, diags := w.Plan(t.Context(), configuration)
	counts := map[string]int{}
	for _, diagnostic := range diags {
		counts[diagnostic.At]++
	}
	want := map[string]int{
		`AttributeName("name")`: 1, `AttributeName("on_destroy")`: 1, `AttributeName("rollback_to")`: 1, `AttributeName("timeouts")`: 1,
		`AttributeName("protection")`: 1, `AttributeName("delivery")`: 1,
	}
	if !maps.Equal(counts, want) {
		t.Errorf("got diagnostics %s", diags)
	}
}

func TestSSHWithoutAKeyIsAnErrorThatNamesTheAttribute(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	w := providertest.New(startProvider)
	configuration := assigned("git@git.example.com:team/one.git", fleetOf(nil), nil)
	configuration.Provider = map[string]any{
		"git": map[string]any{
			"ssh_known_hosts": "git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
		},
	}
	_, diags := w.Plan(t.Context(), configuration)
	if diags.Err() == nil || !strings.Contains(diags.String(), "ssh needs a private key") ||
		!strings.Contains(diags.String(), "git.ssh_private_key") {
		t.Errorf("got diagnostics %s", diags)
	}
}

func TestHistoryIsReadStrictly(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	for attribute, value := range map[string]any{
		"gitops_repo": map[string]any{"url": "ftp://x", "branch": "dev"}, "limit": 0, "since": "yesterday", "timeouts": map[string]any{"create": "5m"},
	} {
		attributes := map[string]any{"gitops_repo": map[string]any{"url": "/srv/x.git", "branch": "dev"}, attribute: value}
		_, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_history", attributes)
		if len(diags) != 1 || diags[0].At != `AttributeName("`+attribute+`")` {
			t.Errorf("%s: got diagnostics %s", attribute, diags)
		}
	}
}

func TestHistoryHasADeadline(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w := providertest.New(startProvider)
	_, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_history", map[string]any{
		"gitops_repo": map[string]any{"url": "http://" + listener.Addr().String() + "/x.git", "branch": "dev"},
		"timeouts":    map[string]any{"read": "200ms"},
	})
	if len(diags) != 1 || diags[0].At != `AttributeName("timeouts")` || !strings.Contains(diags[0].Detail, `timeouts.read = "200ms" allows`) {
		t.Errorf("got diagnostics %s", diags)
	}
}

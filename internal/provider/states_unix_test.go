//go:build unix

package provider_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/postgrestest"
)

// states are the configurations of an example whose states are in PostgreSQL, by their folders.
type states struct {
	url           string
	configuration map[string]string
	of            map[string]workdir
}

func newStates(t *testing.T, tool, name string, folders ...string) *states {
	t.Helper()
	url := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
	s := &states{url: url, configuration: exampleConfiguration(t, name, url), of: map[string]workdir{}}
	root := newWorkdir(t, tool, s.configuration)
	root.environment = append(root.environment, "PG_CONN_STR="+postgrestest.Start(t))
	for _, folder := range folders {
		w := root
		w.path = filepath.Join(root.path, folder)
		w.run("init", "-input=false")
		s.of[folder] = w
	}
	return s
}

// apply applies a configuration.
func (s *states) apply(folder string) {
	s.of[folder].t.Helper()
	s.of[folder].run("apply", "-input=false", "-auto-approve")
}

// change writes another text in place of one in a configuration.
func (s *states) change(folder, from, to string) {
	w := s.of[folder]
	w.t.Helper()
	text := readFile(w.t, filepath.Join(w.path, "main.tf"))
	if !strings.Contains(text, from) {
		w.t.Fatalf("%s has no %q", folder, from)
	}
	writeFile(w.t, filepath.Join(w.path, "main.tf"), strings.Replace(text, from, to, 1))
}

// versions are the tags of a folder on the branch.
func (s *states) versions(t *testing.T, host string) string {
	t.Helper()
	var found []string
	for file := range strings.Lines(git(t, s.url, "ls-tree", "-r", "--name-only", "prod", host+"/")) {
		for line := range strings.Lines(git(t, s.url, "show", "prod:"+strings.TrimSpace(file))) {
			if _, tag, ok := strings.Cut(line, "tag: "); ok {
				found = append(found, strings.Trim(strings.TrimSpace(tag), `"`))
			}
		}
	}
	return strings.Join(found, " ")
}

// ready are reports that all clusters are ready since yesterday, with the tip of the branch.
func (s *states) ready(t *testing.T, clusters ...string) string {
	t.Helper()
	tip := strings.TrimSpace(git(t, s.url, "rev-parse", "prod"))
	var reports []string
	for _, cluster := range clusters {
		reports = append(reports, fmt.Sprintf(`{ cluster = %q, commit = %q, ready = true, since = "2026-01-01T00:00:00Z" }`, cluster, tip))
	}
	return "{ reports = [" + strings.Join(reports, ", ") + "] }"
}

// What the guide on promotion says of regions that are states of their own.
func TestStatesInOneDatabaseHandOverProvenVersions(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStates(t, tool, "sources/states", "europe", "america", "overview")
			s.apply("europe")
			s.apply("america")
			if got := s.versions(t, "america-large"); got != "" {
				t.Errorf("america gets %s before anything is proven", got)
			}
			feedback := s.ready(t, "berlin", "paris")
			s.change("europe", "{ clusters = true }", feedback)
			s.apply("europe")  // which has it proven
			s.apply("america") // at which it arrives
			if got := s.versions(t, "america-large"); got != "" {
				t.Errorf("america gets %s in the apply in which it arrives", got)
			}
			s.apply("america")
			if got, want := s.versions(t, "america-large"), s.versions(t, "europe-large"); got != want || want != "1.8.0 2.1.0" {
				t.Errorf("america gets %q, europe has %q", got, want)
			}

			// One page and one inventory of both; of america, no cluster could be asked.
			s.apply("europe") // with evidence about the newest commit
			s.apply("overview")
			var seen struct {
				Page     struct{ Value string }
				Health   struct{ Value int }
				NotReady struct{ Value map[string][]string } `json:"not_ready"`
			}
			if err := json.Unmarshal([]byte(s.of["overview"].run("output", "-json")), &seen); err != nil {
				t.Fatal(err)
			}
			want := map[string][]string{"america": {"america-large/payments-live is unknown", "america-large/search-live is unknown"}}
			if !reflect.DeepEqual(seen.NotReady.Value, want) {
				t.Errorf("not ready are %v", seen.NotReady.Value)
			}
			for _, name := range []string{"berlin", "paris", "austin", "america-large"} {
				if !strings.Contains(seen.Page.Value, name) {
					t.Errorf("the page lacks %s", name)
				}
			}
			if seen.Health.Value <= 25 || seen.Health.Value >= 100 { // four are ready, and two unknown
				t.Errorf("the health is %d", seen.Health.Value)
			}

			// A newer version stays where it is not ready.
			s.change("europe", "1.8.0", "1.9.0")
			s.apply("europe")
			s.apply("europe")
			s.apply("america")
			s.apply("america")
			if europe, america := s.versions(t, "europe-large"), s.versions(t, "america-large"); europe != "1.9.0 2.1.0" ||
				america != "1.8.0 2.1.0" {
				t.Errorf("europe has %s, america %s", europe, america)
			}
			if _, err := os.Stat(filepath.Join(s.of["europe"].path, "terraform.tfstate")); err == nil {
				t.Error("a state is in a file")
			}
		})
	}
}

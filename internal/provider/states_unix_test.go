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

type states struct {
	url           string
	configuration map[string]string
	workdirs      map[string]workdir // by folder
}

func newStates(t *testing.T, tool, name string, folders ...string) *states {
	t.Helper()
	url := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
	s := &states{url: url, configuration: exampleConfiguration(t, name, url), workdirs: map[string]workdir{}}
	root := newWorkdir(t, tool, s.configuration)
	root.environment = append(root.environment, "PG_CONN_STR="+postgrestest.Start(t))
	for _, folder := range folders {
		w := root
		w.path = filepath.Join(root.path, folder)
		w.run("init", "-input=false")
		s.workdirs[folder] = w
	}
	return s
}

func (s *states) apply(folder string) {
	s.workdirs[folder].t.Helper()
	s.workdirs[folder].run("apply", "-input=false", "-auto-approve")
}

func (s *states) change(folder, from, to string) {
	w := s.workdirs[folder]
	w.t.Helper()
	text := readFile(w.t, filepath.Join(w.path, "main.tf"))
	if !strings.Contains(text, from) {
		w.t.Fatalf("%s has no %q", folder, from)
	}
	writeFile(w.t, filepath.Join(w.path, "main.tf"), strings.Replace(text, from, to, 1))
}

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

// readyReports returns feedback of clusters that have been ready since January, with the tip of the branch.
func (s *states) readyReports(t *testing.T, clusters ...string) string {
	t.Helper()
	tip := strings.TrimSpace(git(t, s.url, "rev-parse", "prod"))
	var reports []string
	for _, cluster := range clusters {
		reports = append(reports, fmt.Sprintf(`{ cluster = %q, commit = %q, ready = true, since = "2026-01-01T00:00:00Z" }`, cluster, tip))
	}
	return "{ reports = [" + strings.Join(reports, ", ") + "] }"
}

// The guide on promotion describes regions with separate states.
func TestStatesInOneDatabaseHandOverProvenVersions(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStates(t, tool, "sources/states", "europe", "america", "overview")
			s.apply("europe")
			s.apply("america")
			if got := s.versions(t, "america-large"); got != "" {
				t.Errorf("america gets %s before europe has a proven version", got)
			}
			feedback := s.readyReports(t, "berlin", "paris")
			s.change("europe", "{ clusters = true }", feedback)
			s.apply("europe")  // proves it
			s.apply("america") // receives it
			if got := s.versions(t, "america-large"); got != "" {
				t.Errorf("america gets %s in the apply that receives it", got)
			}
			s.apply("america")
			if got, want := s.versions(t, "america-large"), s.versions(t, "europe-large"); got != want || want != "1.8.0 2.1.0" {
				t.Errorf("america gets %q, europe has %q", got, want)
			}

			// The overview has both regions. No cluster of america reports.
			s.apply("europe") // with evidence about the newest commit
			s.apply("overview")
			var seen struct {
				Page     struct{ Value string }
				Health   struct{ Value int }
				NotReady struct{ Value map[string][]string } `json:"not_ready"`
			}
			if err := json.Unmarshal([]byte(s.workdirs["overview"].run("output", "-json")), &seen); err != nil {
				t.Fatal(err)
			}
			want := map[string][]string{"america": {"america-large/payments-live is unknown", "america-large/search-live is unknown"}}
			if !reflect.DeepEqual(seen.NotReady.Value, want) {
				t.Errorf("got %v as not ready", seen.NotReady.Value)
			}
			for _, name := range []string{"berlin", "paris", "austin", "america-large"} {
				if !strings.Contains(seen.Page.Value, name) {
					t.Errorf("the page lacks %s", name)
				}
			}
			if seen.Health.Value <= 25 || seen.Health.Value >= 100 { // four ready, two unknown
				t.Errorf("the health is %d", seen.Health.Value)
			}

			// America does not get a newer version before it is ready.
			s.change("europe", "1.8.0", "1.9.0")
			s.apply("europe")
			s.apply("europe")
			s.apply("america")
			s.apply("america")
			if europe, america := s.versions(t, "europe-large"), s.versions(t, "america-large"); europe != "1.9.0 2.1.0" ||
				america != "1.8.0 2.1.0" {
				t.Errorf("europe has %s, america %s", europe, america)
			}
			if _, err := os.Stat(filepath.Join(s.workdirs["europe"].path, "terraform.tfstate")); err == nil {
				t.Error("europe has a state file")
			}
		})
	}
}

package provider_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// sourceHost is the Git host of testdata/sources in examples and guides.
const sourceHost = "https://git.example.com/"

type sources struct {
	t      *testing.T
	folder string
	web    string // URL of the server; "" for repositories with paths
}

// newSources creates the repositories of testdata/sources: a control plane with the branches main and dev, repositories of two teams,
// and applications for Argo CD. Dev promotes the last commit but one of main.
func newSources(t *testing.T) *sources {
	t.Helper()
	s := &sources{t: t, folder: filepath.ToSlash(t.TempDir()) + "/"}
	s.fill()
	return s
}

func (s *sources) fill() {
	s.t.Helper()
	t := s.t
	data := func(path ...string) map[string]string {
		return files(t, filepath.Join(append([]string{"testdata", "sources"}, path...)...))
	}
	promoted := s.commit("platform/control-plane.git", "main", data("control-plane", "main"))
	git(t, s.url("platform/control-plane.git"), "tag", "--annotate", "--message", "First", "v1", promoted)
	s.commit("platform/control-plane.git", "main", data("control-plane", "next"))
	dev := data("control-plane", "dev")
	dev["base-repo.yaml"] = strings.Replace(dev["base-repo.yaml"], strings.Repeat("0", 40), promoted, 1)
	s.commit("platform/control-plane.git", "dev", dev)
	s.commit("payments/source.git", "main", data("payments", "main"))
	s.commit("platform/services.git", "main", data("services", "main"))
	s.commit("platform/apps.git", "main", data("apps", "main"))
}

// newServedSources is newSources with a web server, because sources of workspaces are URLs with a host.
func newServedSources(t *testing.T) *sources {
	t.Helper()
	s := (&sources{t: t, folder: filepath.ToSlash(t.TempDir()) + "/"}).serve()
	s.fill()
	return s
}

func (s *sources) url(name string) string { return s.folder + name }

// config replaces the URLs in a configuration with local ones.
func (s *sources) config(text string) string {
	for _, name := range []string{"platform/control-plane.git", "payments/source.git", "platform/services.git", "platform/apps.git"} {
		text = strings.ReplaceAll(text, sourceHost+name, cmp.Or(s.web, s.folder)+name)
	}
	if s.web != "" { // sources of workspaces
		for _, group := range []string{"platform", "payments"} {
			text = strings.ReplaceAll(text, strconv.Quote(sourceHost+group), strconv.Quote(s.web+group))
		}
	}
	return text
}

func (s *sources) serve() *sources {
	s.t.Helper()
	server := httptest.NewServer(httpBackend(s.t, s.folder))
	s.t.Cleanup(server.Close)
	s.web = server.URL + "/"
	return s
}

// commit adds files to a branch and returns the commit. It creates a missing repository or branch.
func (s *sources) commit(name, branch string, contents map[string]string) string {
	s.t.Helper()
	if _, err := os.Stat(s.url(name)); err != nil {
		initHosted(s.t, s.folder, name, "main")
	}
	gittest.Commit(s.t, s.url(name), branch, branch, func(folder string) {
		for path, content := range contents {
			writeFile(s.t, filepath.Join(folder, path), s.config(content))
		}
	})
	return git(s.t, s.url(name), "rev-parse", branch)
}

func kalypsoExample(t *testing.T) string {
	t.Helper()
	return files(t, filepath.Join("..", "..", "examples", "sources", "kalypso"))["main.tf"] + requiredProviders
}

func TestAControlPlaneIsReadFromThreeRepositories(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServedSources(t)
			w := newWorkdir(t, tool, map[string]string{"main.tf": s.config(kalypsoExample(t))})
			plan := w.plan()
			for _, resource := range plan.ResourceChanges {
				if strings.HasPrefix(resource.Address, "data.") {
					t.Errorf("%s is deferred to apply", resource.Address)
				}
			}
			w.run("apply", "-input=false", "plan.out")
			w.plan("-detailed-exitcode")
			repo := filepath.Join(w.path, "gitops.git")
			targets := func() string {
				var found []string
				for name := range (repository{cloneURL: repo}).read(t, "dev") {
					if folder, ok := strings.CutSuffix(name, "/reconciler.yaml"); ok {
						found = append(found, folder)
					}
				}
				slices.Sort(found)
				return strings.Join(found, " ")
			}
			// Registration observability decides the workspace of workload metrics.
			if got, want := targets(), "large/metrics-agent large/payments-live small/metrics-agent"; got != want {
				t.Errorf("folders are %s, want %s", got, want)
			}
			text := repository{cloneURL: repo}.read(t, "dev")["large/payments-live/platform-config.yaml"]
			if !strings.Contains(text, "postgres://east.example.com/payments") {
				t.Errorf("the configuration is\n%s", text)
			}
			// Promote the tip of main.
			base := strings.Replace(files(t, filepath.Join("testdata", "sources", "control-plane", "dev"))["base-repo.yaml"],
				strings.Repeat("0", 40), git(t, s.url("platform/control-plane.git"), "rev-parse", "main"), 1)
			s.commit("platform/control-plane.git", "dev", map[string]string{"base-repo.yaml": base})
			plan = w.plan()
			if got := fmt.Sprint(field(resourceChange(t, plan, "flotilla_assignment.dev").After, "changes")); !strings.Contains(
				got,
				"large/reports-nightly",
			) {
				t.Errorf("changes are %s", got)
			}
			w.run("apply", "-input=false", "plan.out")
			if got, want := targets(), "large/metrics-agent large/payments-live large/reports-nightly small/metrics-agent"; got != want {
				t.Errorf("folders are %s, want %s", got, want)
			}
		})
	}
}

func TestRepositoryFilesWithUnknownArgumentsAreReadAtApply(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSources(t)
			w := newWorkdir(t, tool, map[string]string{"main.tf": fmt.Sprintf(`
resource "terraform_data" "there" {
  input = { url = %q, ref = "main", path = "workloads", include = ["*.yaml"] }
}

data "flotilla_repository_files" "test" {
  url     = terraform_data.there.output.url
  ref     = terraform_data.there.output.ref
  path    = terraform_data.there.output.path
  include = terraform_data.there.output.include
}

output "registrations" {
  value = provider::flotilla::registrations(data.flotilla_repository_files.test.files)
}
`, s.url("platform/control-plane.git")) + requiredProviders})
			w.run("validate")
			w.run("apply", "-input=false", "-auto-approve")
			w.plan("-detailed-exitcode")
			if got := w.run("output", "-json", "registrations"); !strings.Contains(got, `"reports"`) {
				t.Errorf("registrations are %s", got)
			}
		})
	}
}

// TestKalypsosOwnRepositoriesGiveItsOutput reads Kalypso's sample from its repositories and by its registration.
func TestKalypsosOwnRepositoriesGiveItsOutput(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	root := kalypsoRoot(t)
	for _, tool := range acceptanceTools(t) {
		for _, environment := range []string{"dev", "stage"} {
			t.Run(environment, func(t *testing.T) {
				t.Parallel()
				s := &sources{t: t, folder: filepath.ToSlash(t.TempDir()) + "/"}
				sample := func(path ...string) map[string]string {
					return files(t, filepath.Join(append([]string{root}, path...)...))
				}
				// useLocalURLs replaces the URLs of repositories, but not of manifests.
				useLocalURLs := func(contents map[string]string) map[string]string {
					for name, text := range contents {
						if strings.Contains(text, "kind: WorkloadRegistration") || strings.Contains(text, "kind: BaseRepo") {
							contents[name] = strings.ReplaceAll(text, "https://github.com/microsoft/", s.folder)
						}
					}
					return contents
				}
				main := useLocalURLs(sample("control-plane", "main"))
				maps.Copy(main, useLocalURLs(sample("tutorial", "main")))
				promoted := s.commit("kalypso-control-plane", "main", main)
				own := useLocalURLs(sample("control-plane", environment))
				maps.Copy(own, sample("tutorial", environment))
				own["base-repo.yaml"] = regexp.MustCompile(`commit: \w+`).ReplaceAllString(own["base-repo.yaml"], "commit: "+promoted)
				s.commit("kalypso-control-plane", environment, own)
				app := map[string]string{}
				for name, text := range sample("tutorial", "app") {
					app["workload/"+name] = text
				}
				s.commit("kalypso-app-src", "main", app)
				s.commit("kalypso-svc-src", "main", map[string]string{"workloads/none.yaml": "# Not in the sample.\n"})

				config := strings.ReplaceAll(kalypsoExample(t), sourceHost+"platform/control-plane.git", s.url("kalypso-control-plane"))
				w := newWorkdir(t, tool, map[string]string{
					"main.tf": strings.NewReplacer(`"dev"`, strconv.Quote(environment), "_files.dev", "_files."+environment,
						"files, { workspaces = local.workspaces })", "files)").Replace(config), // repositories are paths
				})
				w.run("apply", "-input=false", "-auto-approve")
				w.plan("-detailed-exitcode")
				got := yamlDocuments(t, repository{cloneURL: filepath.Join(w.path, "gitops.git")}.read(t, environment))
				want := yamlDocuments(t, sample("tutorial", "expected", environment))
				if !reflect.DeepEqual(got, want) {
					t.Errorf("got\n%v\nwant\n%v", got, want)
				}
			})
		}
	}
}

func TestMigrationExamplesRenderTheFormerFolders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ branch, folders, file, content string }{
		"ise": {
			"nonprod", "clusters/east-1/app1-default", "clusters/east-1/app1-default/reconciler.yaml", "path: manifest/app1/nonprod/east-1\n",
		},
		"applicationsets": { // only the canary until it is proven
			"prod", "clusters/berlin/guestbook-live clusters/berlin/vat-live", "clusters/berlin/vat-live/reconciler.yaml", "ServerSideApply=true",
		},
	} {
		for _, tool := range acceptanceTools(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				config := newSources(t).config(files(t, filepath.Join("..", "..", "examples", "coming-from", name))["main.tf"])
				w := newWorkdir(t, tool, map[string]string{"main.tf": config + requiredProviders})
				w.run("apply", "-input=false", "-auto-approve")
				w.plan("-detailed-exitcode")
				written := repository{cloneURL: filepath.Join(w.path, "gitops.git")}.read(t, test.branch)
				var folders []string
				for path := range written {
					if folder, ok := strings.CutSuffix(path, "/reconciler.yaml"); ok {
						folders = append(folders, folder)
					}
				}
				slices.Sort(folders)
				if got := strings.Join(folders, " "); got != test.folders {
					t.Errorf("folders are %s, want %s", got, test.folders)
				}
				if !strings.Contains(written[test.file], test.content) {
					t.Errorf("%s is\n%s", test.file, written[test.file])
				}
			})
		}
	}
}

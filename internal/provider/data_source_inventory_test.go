package provider_test

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// writeTwoAssignments returns a repository with the assignments dev and prod. Both have a folder for the cluster store-1.
func writeTwoAssignments(t *testing.T) string {
	t.Helper()
	url := bare(t)
	fleet := fleetOf(map[string]any{
		"clusters": []any{map[string]any{"name": "store-1", "cluster_type": "drone", "labels": map[string]any{"site": "store"}}},
		"target_policies": []any{
			policy("core", map[string]any{"expression": "!edge"}, map[string]any{"match_labels": map[string]any{"edge": "true"}}),
			map[string]any{
				"name":                       "store",
				"deployment_target_selector": map[string]any{"expression": "edge"},
				"cluster_selector":           map[string]any{"match_labels": map[string]any{"site": "store"}},
			},
		},
	})
	for _, name := range []string{"dev", "prod"} {
		further := map[string]any{"name": name, "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/" + name}}
		apply(t, providertest.New(startProvider), assigned(url, fleet, further))
	}
	return url
}

func startFramework() (tfprotov6.ProviderServer, error) {
	return providerserver.NewProtocol6(provider.ForTest())(), nil
}

func TestTheInventoryListsTheRecordsOfAllOwners(t *testing.T) {
	t.Parallel()
	url := writeTwoAssignments(t)
	commits := strings.Fields(git(t, url, "rev-list", "--reverse", "dev"))
	for name, test := range map[string]struct {
		filter   map[string]any
		keys     string // "<owner>:<host>/<deployment target>"
		complete bool
		warning  string // at the attribute
	}{
		"no filter":                        {nil, "dev:clusters/store-1/app-edge dev:drone/app-core prod:clusters/store-1/app-edge prod:drone/app-core", true, ""},
		"an owner":                         {map[string]any{"owner": "prod"}, "prod:clusters/store-1/app-edge prod:drone/app-core", true, ""},
		"a host":                           {map[string]any{"host": "clusters/store-1"}, "dev:clusters/store-1/app-edge prod:clusters/store-1/app-edge", true, ""},
		"a cluster with its type":          {map[string]any{"cluster": "store-1", "owner": "dev"}, "dev:clusters/store-1/app-edge dev:drone/app-core", true, ""},
		"a cluster without records":        {map[string]any{"cluster": "other"}, "", true, `No record names the type of cluster "other"`},
		"a misspelt cluster":               {map[string]any{"cluster": "store-l"}, "", true, `No record is of a cluster "store-l"; did you mean "store-1"?`},
		"a cluster of a type":              {map[string]any{"cluster": "other", "cluster_type": "drone", "owner": "dev"}, "dev:drone/app-core", true, ""},
		"a cluster type with its clusters": {map[string]any{"cluster_type": "drone", "owner": "dev"}, "dev:clusters/store-1/app-edge dev:drone/app-core", true, ""},
		"a cluster type without records":   {map[string]any{"cluster_type": "large"}, "", true, ""},
		"a workload":                       {map[string]any{"workload": "app", "limit": 3}, "dev:clusters/store-1/app-edge dev:drone/app-core prod:clusters/store-1/app-edge", false, ""},
		"an unknown workload":              {map[string]any{"workload": "ap"}, "", true, `No record that was read is of workload "ap"; did you mean "app"?`},
		"a workspace":                      {map[string]any{"workspace": "team", "host": "drone", "limit": 2}, "dev:drone/app-core prod:drone/app-core", true, ""},
		"an unknown workspace":             {map[string]any{"workspace": "nobody"}, "", true, `is of workspace "nobody"`},
		"an unknown owner":                 {map[string]any{"owner": "de"}, "", true, `is of owner "de"; did you mean "dev"?`},
		"an unknown host":                  {map[string]any{"host": "clusters/store-l"}, "", true, `did you mean "clusters/store-1"?`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attributes := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev"}}
			maps.Copy(attributes, test.filter)
			read, diags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_inventory", attributes)
			if diags.Err() != nil || (len(diags) > 0) != (test.warning != "") || len(diags) > 0 && !strings.Contains(diags[0].Detail, test.warning) {
				t.Fatalf("got diagnostics %s", diags)
			}
			var keys []string
			for _, entry := range read["assignments"].([]any) {
				a := entry.(map[string]any)
				keys = append(keys, fmt.Sprintf("%s:%s/%s", a["owner"], a["host"], a["deployment_target"]))
			}
			if strings.Join(keys, " ") != test.keys || read["complete"] != test.complete || read["commit"] != commits[1] {
				t.Errorf("got %q, complete %v, at %v", keys, read["complete"], read["commit"])
			}
			framework, _ := providertest.New(startFramework).ReadData(t.Context(), providertest.Configuration{}, "flotilla_inventory", attributes)
			if !reflect.DeepEqual(read, framework) {
				t.Errorf("the framework alone returns\n%v\nwant\n%v", framework, read)
			}
		})
	}
	attributes := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/prod"}}
	read, diags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_inventory", attributes)
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	if want := []any{map[string]any{"path": "clusters/prod", "name": "prod"}}; !reflect.DeepEqual(read["owners"], want) {
		t.Errorf("owners are %v", read["owners"])
	}
	got := read["assignments"].([]any)[0].(map[string]any)
	for _, name := range []string{"config_version", "changed"} {
		if got[name] == nil {
			t.Errorf("attribute %s is null", name)
		}
		delete(got, name)
	}
	want := map[string]any{
		"path": "clusters/prod", "owner": "prod", "environment": "dev", "host": "clusters/store-1", "cluster_type": "drone", "cluster": "store-1",
		"deployment_target": "app-edge", "workload": "app", "workspace": "team", "policies": []any{"store"}, "commit": commits[1],
		"verdict": nil, "since": nil, "message": nil,
		"tree": git(t, url, "rev-parse", "dev:clusters/prod/clusters/store-1/app-edge"), "source": nil,
		"manifests": map[string]any{
			"storage": "git", "repo": "https://git.example.com/app", "branch": "main", "tag": nil, "commit": nil, "path": nil, "chart": nil, "version": nil, "digest": nil, "pin": nil,
		},
		"objects": []any{
			map[string]any{"kind": "Kustomization", "namespace": "flux-system", "name": "dev-store-1-app-edge"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got first assignment\n%v\nwant\n%v", got, want)
	}
}

func TestTheInventoryIsReadStrictly(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	for name, c := range map[string]struct {
		attribute string
		value     any
	}{
		"another scheme": {"gitops_repo", map[string]any{"url": "ftp://x", "branch": "dev"}}, "no branch": {"gitops_repo", map[string]any{"url": "x.git"}},
		"a misspelt key": {"gitops_repo", map[string]any{"url": "x.git", "branch": "dev", "pth": "x"}},
		"no limit":       {"limit", 0}, "another timeout": {"timeouts", map[string]any{"create": "5m"}},
		"an empty owner": {"owner", ""}, "an empty workspace": {"workspace", ""},
	} {
		attributes := map[string]any{"gitops_repo": map[string]any{"url": bare(t), "branch": "dev"}, c.attribute: c.value}
		_, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_inventory", attributes)
		if len(diags) != 1 || !diags[0].Error || !strings.HasPrefix(diags[0].At, `AttributeName("`+c.attribute+`")`) {
			t.Errorf("%s: got diagnostics %s", name, diags)
		}
	}
	_, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_inventory", map[string]any{
		"gitops_repo": map[string]any{"url": bare(t), "branch": "dev"}, "host": "drone", "cluster": "store-1",
	})
	if len(diags) != 1 || diags[0].At != `AttributeName("host")` ||
		!strings.Contains(diags[0].Detail, "set either host, or cluster and cluster_type") {
		t.Errorf("got diagnostics %s", diags)
	}
}

func TestTheInventoryOfAMissingRepositoryIsEmpty(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w := providertest.New(startProvider)
	read, diags := w.ReadData(
		t.Context(),
		providertest.Configuration{},
		"flotilla_inventory",
		map[string]any{"gitops_repo": map[string]any{"url": bare(t), "branch": "dev"}},
	)
	if len(diags) > 0 || read["commit"] != nil || read["complete"] != true ||
		len(read["assignments"].([]any))+len(read["owners"].([]any)) > 0 {
		t.Errorf("without a repository: got %v and diagnostics %s", read, diags)
	}
	_, diags = w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_inventory", map[string]any{
		"gitops_repo": map[string]any{
			"url":    "http://" + listener.Addr().String() + "/x.git",
			"branch": "dev",
		}, "timeouts": map[string]any{"read": "200ms"},
	})
	if len(diags) != 1 || diags[0].At != `AttributeName("timeouts")` || !strings.Contains(diags[0].Detail, `timeouts.read = "200ms" allows`) {
		t.Errorf("silent server: got diagnostics %s", diags)
	}
}

func TestUnreadableRecordsAreReported(t *testing.T) {
	t.Parallel()
	url := writeTwoAssignments(t)
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, ".", "clone", "-q", "-b", "dev", url, clone)
	if err := os.WriteFile(filepath.Join(clone, "clusters/dev/.flotilla/dev/drone.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, clone, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qam", "break it")
	git(t, clone, "push", "-q", "origin", "HEAD:dev")
	read, diags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_inventory",
		map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev"}})
	if len(diags) != 1 || diags[0].Error || !strings.Contains(diags[0].Detail, "clusters/dev/.flotilla/dev/drone.json. The next apply") ||
		len(read["assignments"].([]any)) != 3 {
		t.Errorf("got %d assignments and diagnostics %s", len(read["assignments"].([]any)), diags)
	}
}

// The tests before it read the inventory through the stand-in for Terraform.
func TestTheInventoryThroughTerraform(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	url := bare(t)
	repo := repository{url: url}
	const address = "data.flotilla_inventory.test"
	config := small{path: "dev"}.config(repo) + fmt.Sprintf(`
data "flotilla_inventory" "test" {
  gitops_repo = { url = %q, branch = "dev" }
  workload    = "app"
  depends_on  = [flotilla_assignment.test]
}

output "where" {
  value = join(" ", [for a in data.flotilla_inventory.test.assignments : "${a.host}/${a.deployment_target}@${a.workspace}"])
}

check "the_app_is_on_large" {
  assert {
    condition     = anytrue([for a in data.flotilla_inventory.test.assignments : a.cluster_type == "large"])
    error_message = "The app is not on large."
  }
}
`, url)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{{
			Config: config,
			Check:  resource.TestCheckOutput("where", "drone/app-core@team drone/app-edge@team large/app-core@team"),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, tfjsonpath.New("complete"), knownvalue.Bool(true)),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("assignments").AtSliceIndex(2).AtMapKey("cluster"), knownvalue.Null()),
				statecheck.ExpectKnownValue(address, tfjsonpath.New("assignments").AtSliceIndex(2).AtMapKey("commit"), knownvalue.NotNull()),
			},
		}},
	})
}

// Whoever can push controls records and history, which Terraform prints unchanged.
func TestRecordsHaveNoTerminalEscapes(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetOf(nil), nil))
	const evil = "a\x1b[2J\u202eb"
	repository{cloneURL: url}.changeByGit(t, "dev", func(folder string) {
		writeFile(t, filepath.Join(folder, "clusters", "all", "large", "app-core", evil+".yaml"), "a: b\n")
		git(t, folder, "add", "--all")
		git(t, folder, "commit", "--quiet", "--author", evil+"author <"+evil+"email@example.com>", "--message", evil+"subject")
		record := filepath.Join(folder, filepath.FromSlash(signedRecord))
		writeFile(t, record, strings.Replace(readFile(t, record), `"workload": "app"`, `"workload": "\u001b[2J\u202eapp"`, 1))
		writeFile(t, filepath.Join(folder, "clusters", "all", "large", "\x1b[2J.yaml"), "a: b\n")
	})
	branch := map[string]any{"url": url, "branch": "dev", "path": "clusters/all"}
	for _, source := range []string{"flotilla_inventory", "flotilla_history"} {
		values, diags := providertest.New(startProvider).
			ReadData(t.Context(), providertest.Configuration{}, source, map[string]any{"gitops_repo": branch})
		text := fmt.Sprint(values) + diags.String()
		t.Logf("%s: %d bytes, %s", source, len(text), diags)
		if diags.Err() != nil || wording.Visible(text) != text {
			t.Errorf("%s has terminal escapes: %q", source, text)
		}
		for _, part := range []string{"author", "email", "subject"} {
			if want := wording.Visible(evil) + part; source == "flotilla_history" && !strings.Contains(text, want) {
				t.Errorf("the history lacks %q: %q", want, text)
			}
		}
		if source == "flotilla_inventory" &&
			!strings.Contains(text, "The inventory lacks what these files record: clusters/all/.flotilla/dev/large.json") {
			t.Errorf("the diagnostics do not name the record: %s", diags)
		}
	}
}

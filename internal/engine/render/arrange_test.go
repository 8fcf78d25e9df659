package render_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// neighbours is a fleet with one workload for each target. Its hosts are the cluster type drone or clusters of that type.
type neighbours struct {
	reconciler string
	templates  []fleet.Template
	workspaces []fleet.Workspace
	targets    map[string]neighbour
	decryption *fleet.Decryption

	secretService string
	stores        map[string]fleet.SecretStore
}

type neighbour struct {
	hosts     []string // "drone" or "clusters/drone-1"
	namespace string
	workspace string // default "kaizen"
	manifests fleet.Manifests
	configAs  fleet.ConfigAs
	requires  []string
	encrypted []encrypted.File
	isPending bool // its encrypted files are not known yet
	secrets   map[string]fleet.SecretReference
}

// render schedules the fleet and renders its folders. It returns contents by path and the findings and warnings of the checks.
func (n neighbours) render(t *testing.T) (files map[string]string, findings, warnings fleet.Findings) {
	t.Helper()
	f := &fleet.Fleet{
		Environment: "dev", Workspaces: n.workspaces, Explicit: true, Templates: n.templates,
		ClusterTypes: []fleet.ClusterType{
			{
				Name:             "drone",
				Reconciler:       n.reconciler,
				NamespaceService: "default",
				ConfigType:       "configmap",
				Decryption:       n.decryption,
				SecretService:    n.secretService,
				SecretStores:     n.stores,
			},
		},
		Clusters: []fleet.Cluster{{Name: "drone-1", ClusterType: "drone"}, {Name: "drone-2", ClusterType: "drone"}},
	}
	for _, name := range slices.Sorted(maps.Keys(n.targets)) {
		target := n.targets[name]
		if target.manifests.Repo == "" {
			target.manifests = fromGit()
		}
		if target.workspace == "" {
			target.workspace = "kaizen"
		}
		if target.configAs != nil {
			target.manifests.ConfigAs = target.configAs
		}
		f.Workloads = append(f.Workloads, fleet.Workload{
			Name: name, Workspace: target.workspace, Requires: target.requires,
			DeploymentTargets: []fleet.DeploymentTarget{{
				Name: "dev", Namespace: target.namespace, Manifests: target.manifests,
			}},
		})
		for _, host := range target.hosts {
			assignment := fleet.ExplicitAssignment{DeploymentTarget: name + "-dev", ClusterType: host}
			if cluster, isCluster := strings.CutPrefix(host, "clusters/"); isCluster {
				assignment.Cluster, assignment.ClusterType = cluster, ""
			}
			f.Assignments = append(f.Assignments, assignment)
		}
	}
	scheduled, wrong := schedule.Schedule(f)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	templates := compile(t, f)
	findings, warnings = templates.ChooseWriters(scheduled.Assignments)
	targetOf := func(i int) neighbour { return n.targets[scheduled.Assignments[i].Target.Workload.Name] }
	findings = append(findings, templates.ChooseEncryptedWriters(scheduled.Assignments, func(i int) render.EncryptedReach {
		return render.EncryptedReach{Known: !targetOf(i).isPending, Files: targetOf(i).encrypted, References: len(targetOf(i).secrets) > 0}
	})...)
	findings = append(
		findings,
		templates.CheckSecrets(scheduled.Assignments, func(i int) (iter.Seq2[string, fleet.SecretReference], func(string) string) {
			secrets := targetOf(i).secrets
			return func(yield func(string, fleet.SecretReference) bool) {
				for _, key := range slices.Sorted(maps.Keys(secrets)) {
					if !yield(key, secrets[key]) {
						return
					}
				}
			}, func(string) string { return "db" }
		})...)
	files = map[string]string{}
	for i, assignment := range scheduled.Assignments {
		subject := render.Subject{
			Assignment: assignment, Environment: "dev", Owner: "platform", ConfigVersion: "c0ffee", Encrypted: targetOf(i).encrypted, Secrets: targetOf(i).secrets,
		}
		rendered, err := templates.Render(subject)
		if errors.Is(err, render.ErrUnknown) {
			files[assignment.Key()+"/unknown"] = ""
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if wrong := templates.Check(subject, rendered); len(wrong) > 0 && len(findings) == 0 { // with findings, a plan renders nothing
			t.Fatal(wrong)
		}
		for _, file := range rendered {
			files[assignment.Key()+"/"+file.Name] = string(file.Content)
		}
	}
	return files, findings, warnings
}

// identities returns the paths of the files with each object.
func identities(t *testing.T, files map[string]string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		for _, document := range documentsOf(t, []byte(files[path])) {
			identity := textAt(document, "kind") + " " + textAt(document, "metadata.namespace") + "/" + textAt(document, "metadata.name")
			found[identity] = append(found[identity], path)
		}
	}
	return found
}

func TestASharedNamespaceHasOneWriter(t *testing.T) {
	team := fleet.Workspace{Name: "kaizen", ContributorGroups: []string{"devs"}}
	for name, test := range map[string]struct {
		targets map[string]neighbour
		writer  string
	}{
		"on a cluster type": {map[string]neighbour{
			"b": {hosts: []string{"drone"}, namespace: "shared"}, "a": {hosts: []string{"drone"}, namespace: "shared", configAs: fleet.ConfigAs{"configmap:a"}},
		}, "drone/a-dev"},
		"on a cluster and its type": {map[string]neighbour{
			"a": {hosts: []string{"clusters/drone-1", "clusters/drone-2"}, namespace: "shared"},
			"b": {hosts: []string{"drone"}, namespace: "shared", configAs: fleet.ConfigAs{"configmap:b"}},
		}, "drone/b-dev"},
		"on a cluster": {map[string]neighbour{
			"a": {hosts: []string{"clusters/drone-1"}, namespace: "shared", configAs: fleet.ConfigAs{"configmap:a"}},
			"b": {hosts: []string{"clusters/drone-1"}, namespace: "shared"},
			"c": {hosts: []string{"drone"}},
		}, "clusters/drone-1/a-dev"},
	} {
		t.Run(name, func(t *testing.T) {
			files, findings, warnings := neighbours{reconciler: "flux", workspaces: []fleet.Workspace{team}, targets: test.targets}.render(t)
			if findings != nil || warnings != nil {
				t.Error(findings, warnings)
			}
			found := identities(t, files)
			if got := found["Namespace /shared"]; !slices.Equal(got, []string{test.writer + "/namespace.yaml"}) {
				t.Errorf("got the namespace in %q, want it in the folder of %s", got, test.writer)
			}
			if got := found["RoleBinding shared/workspace-contributors"]; !slices.Equal(got, []string{test.writer + "/policy.yaml"}) {
				t.Errorf("got the policy in %q, want it in the folder of %s", got, test.writer)
			}
			for identity, paths := range found {
				if strings.HasPrefix(paths[0], "clusters/") {
					continue // each cluster has its own
				}
				if len(paths) > 1 {
					t.Errorf("%s is in %q", identity, paths)
				}
			}
		})
	}
}

func TestConflictsInASharedNamespaceAreFindings(t *testing.T) {
	prefix := `workloads["b"].deployment_targets["dev"].`
	own := []fleet.Template{{Type: "config", Name: "configmap", Manifests: []string{""}}}
	for name, test := range map[string]struct {
		templates []fleet.Template
		targets   map[string]neighbour
		want      string
	}{
		"the configuration": {nil, map[string]neighbour{
			"a": {hosts: []string{"drone"}, namespace: "shared"}, "b": {hosts: []string{"drone"}, namespace: "shared"},
		}, prefix + `config_as: deployment target "a-dev" writes "platform-config" into namespace "shared", too: give one of them another name, "configmap:<name>", or another form`},
		"the configuration of a type": {nil, map[string]neighbour{
			"a": {hosts: []string{"drone"}, namespace: "shared"}, "b": {hosts: []string{"clusters/drone-1", "clusters/drone-2"}, namespace: "shared"},
		}, prefix + `config_as: deployment target "a-dev" writes "platform-config"`},
		"other configuration": {nil, map[string]neighbour{
			"a": {hosts: []string{"drone"}, namespace: "shared"},
			"b": {hosts: []string{"drone"}, namespace: "shared", configAs: fleet.ConfigAs{"substitute"}},
		}, ""},
		"configuration by a custom template": {own, map[string]neighbour{
			"a": {hosts: []string{"drone"}, namespace: "shared"}, "b": {hosts: []string{"drone"}, namespace: "shared"},
		}, ""},
		"two workspaces": {nil, map[string]neighbour{
			"a": {hosts: []string{"drone"}, namespace: "shared"},
			"b": {hosts: []string{"drone"}, namespace: "shared", workspace: "other", configAs: fleet.ConfigAs{"substitute"}},
		}, prefix + `namespace: namespace "shared" is shared with deployment target "a-dev" of workspace "kaizen": a namespace belongs to one workspace, here "other"`},
		"different clusters": {nil, map[string]neighbour{
			"a": {hosts: []string{"clusters/drone-1"}, namespace: "shared"}, "b": {hosts: []string{"clusters/drone-2"}, namespace: "shared"},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings, _ := neighbours{
				reconciler: "flux",
				templates:  test.templates,
				workspaces: []fleet.Workspace{{Name: "kaizen"}, {Name: "other"}},
				targets:    test.targets,
			}.render(
				t,
			)
			if test.want == "" && findings != nil || test.want != "" && (len(findings) != 1 || !strings.HasPrefix(findings.Error(), test.want)) {
				t.Errorf("findings\n%v\nwant\n%s", findings, test.want)
			}
		})
	}
}

func TestOrderThatAReconcilerCannotKeepIsAWarning(t *testing.T) {
	for name, test := range map[string]struct {
		reconciler string
		api, db    neighbour
		want       string
	}{
		"Flux, two Kustomizations": {"flux", neighbour{}, neighbour{}, ""},
		"Flux, two charts":         {"flux", neighbour{manifests: helmChart}, neighbour{manifests: ociChart}, ""},
		"Flux, one of each":        {"flux", neighbour{}, neighbour{manifests: helmChart}, "Flux can order Kustomizations and it can order HelmReleases, but not one with the other"},
		"Flux, from the type":      {"flux", neighbour{hosts: []string{"clusters/drone-1"}}, neighbour{}, ""},
		"Argo CD":                  {"argocd", neighbour{}, neighbour{manifests: helmChart}, ""},
		"Argo CD, from the type":   {"argocd", neighbour{hosts: []string{"clusters/drone-1", "clusters/drone-2"}}, neighbour{}, "Argo CD orders the objects of one Application, but these belong to two: one of the cluster type and one of the cluster"},
		"Rancher Fleet, HelmOps":   {"fleet", neighbour{manifests: helmChart}, neighbour{}, ""},
		"Rancher Fleet, a GitRepo": {"fleet", neighbour{}, neighbour{manifests: helmChart}, "Rancher Fleet cannot apply anything before a GitRepo"},
		"Config Sync":              {"config-sync", neighbour{}, neighbour{}, "Config Sync waits until another RootSync is set up, and not until what it applies is there"},
		"Zarf":                     {"zarf", neighbour{}, neighbour{}, "a Zarf package is deployed by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			test.api.requires = []string{"db"}
			if test.api.hosts == nil {
				test.api.hosts = []string{"drone"}
			}
			test.db.hosts = []string{"drone"}
			_, findings, warnings := neighbours{
				reconciler: test.reconciler,
				targets:    map[string]neighbour{"api": test.api, "db": test.db},
			}.render(
				t,
			)
			want := ""
			if test.want != "" {
				want = `workloads["api"].requires: deployment target "api-dev" requires "db-dev", and is deployed without waiting for it: ` + test.want
			}
			if findings != nil || warnings.Error() != want {
				t.Errorf("findings %v, warnings %v, want %s", findings, warnings, want)
			}
		})
	}
}

func TestDependenciesNameExistingKustomizations(t *testing.T) {
	files, _, _ := neighbours{reconciler: "flux", targets: map[string]neighbour{
		"api":   {hosts: []string{"clusters/drone-1", "clusters/drone-2"}, requires: []string{"db", "queue"}},
		"db":    {hosts: []string{"drone"}},
		"queue": {hosts: []string{"clusters/drone-1", "clusters/drone-2"}, namespace: "queues"},
	}}.render(t)
	exists := map[string]bool{}
	for _, content := range files {
		for _, document := range documentsOf(t, []byte(content)) {
			exists[textAt(document, "kind")+" "+textAt(document, "metadata.name")] = true
		}
	}
	for _, cluster := range []string{"drone-1", "drone-2"} {
		documents := documentsOf(t, []byte(files["clusters/"+cluster+"/api-dev/reconciler.yaml"]))
		needed := valueAt(documents[1], "spec.dependsOn").([]any)
		if len(needed) != 2 {
			t.Errorf("got dependencies %v, want two", needed)
		}
		for _, dependency := range needed {
			if name := textAt(dependency, "name"); !exists["Kustomization "+name] {
				t.Errorf("%s depends on %q, which does not exist", cluster, name)
			}
		}
	}
}

// TestNoClusterGetsAnObjectTwice renders random fleets with shared namespaces. Each cluster gets every object once, each
// dependency, and the namespace of each ConfigMap.
func TestNoClusterGetsAnObjectTwice(t *testing.T) {
	rendered := 0
	for seed := range uint64(acceptancetest.Count(40, 150)) {
		random := rand.New(rand.NewPCG(seed, 1))
		targets := map[string]neighbour{}
		for i := range 2 + random.IntN(5) {
			target := neighbour{manifests: []fleet.Manifests{fromGit(), helmChart, ociChart, ociManifests}[random.IntN(4)]}
			if target.hosts = []string{"drone"}; random.IntN(2) == 0 {
				target.hosts = [][]string{{"clusters/drone-1"}, {"clusters/drone-1", "clusters/drone-2"}}[random.IntN(2)]
			}
			if random.IntN(2) == 0 {
				target.namespace = []string{"shared", "common"}[random.IntN(2)]
			}
			if random.IntN(2) == 0 {
				target.configAs = fleet.ConfigAs{fmt.Sprintf("configmap:own-%d", i)}
			}
			if random.IntN(8) == 0 {
				target.workspace = "other"
			}
			if i > 0 && random.IntN(3) == 0 && targets["w0"].hosts[0] == "drone" {
				target.requires = []string{"w0"}
			}
			targets[fmt.Sprintf("w%d", i)] = target
		}
		team := fleet.Workspace{
			Name: "kaizen", ReaderGroups: []string{"auditors"}, NetworkPolicy: "isolated",
			ArgocdProject: &fleet.ArgocdProject{Name: "kaizen", Render: true}, Secrets: []string{"charts"}, Parameters: []string{"namespace"},
		}
		reconciler := []string{"flux", "argocd", "fleet"}[random.IntN(3)]
		files, findings, _ := neighbours{
			reconciler: reconciler,
			workspaces: []fleet.Workspace{team, {Name: "other", Secrets: []string{"charts"}, Parameters: []string{"namespace"}}},
			targets:    targets,
		}.render(
			t,
		)
		if findings != nil {
			continue
		}
		rendered++
		for _, cluster := range []string{"clusters/drone-1/", "clusters/drone-2/"} {
			onCluster := map[string]string{}
			for path, content := range files {
				if strings.HasPrefix(path, "drone/") || strings.HasPrefix(path, cluster) {
					onCluster[path] = content
				}
			}
			found := identities(t, onCluster)
			for identity, paths := range found {
				if len(paths) > 1 {
					t.Fatalf("seed %d: %s is in %q", seed, identity, paths)
				}
				if _, in, _ := strings.Cut(identity, " "); strings.HasPrefix(identity, "ConfigMap") {
					namespace, _, _ := strings.Cut(in, "/")
					if found["Namespace /"+namespace] == nil {
						t.Fatalf("seed %d: namespace %q is written nowhere", seed, namespace)
					}
				}
			}
			for path, content := range onCluster {
				for _, document := range documentsOf(t, []byte(content)) {
					needed, _ := valueAt(document, "spec.dependsOn").([]any)
					for _, dependency := range needed {
						if name := textAt(dependency, "name"); name != "" && !strings.Contains(fmt.Sprint(slices.Sorted(maps.Keys(found))), "/"+name) {
							t.Fatalf("seed %d: %s waits for %q, which does not exist", seed, path, name)
						}
					}
				}
			}
		}
	}
	if rendered < acceptancetest.Count(10, 40) {
		t.Errorf("only %d of the fleets could be rendered", rendered)
	}
}

// Each folder has the namespace of its deployment target. Config Sync applies nothing if two files have the same object.
func TestDuplicateNamespacesOfConfigSyncAreFindings(t *testing.T) {
	for name, test := range map[string]struct {
		reconciler string
		api, db    neighbour
		want       string
	}{
		"one folder":           {"config-sync", neighbour{hosts: []string{"drone"}, namespace: "shop"}, neighbour{hosts: []string{"drone"}, namespace: "shop"}, `on "drone", too`},
		"type and cluster":     {"config-sync", neighbour{hosts: []string{"clusters/drone-1"}, namespace: "shop"}, neighbour{hosts: []string{"drone"}, namespace: "shop"}, `on "drone", too`},
		"two clusters":         {"config-sync", neighbour{hosts: []string{"clusters/drone-1"}, namespace: "shop"}, neighbour{hosts: []string{"clusters/drone-2"}, namespace: "shop"}, ""},
		"other namespaces":     {"config-sync", neighbour{hosts: []string{"drone"}, namespace: "shop"}, neighbour{hosts: []string{"drone"}, namespace: "bar"}, ""},
		"another reconciler":   {"flux", neighbour{hosts: []string{"drone"}, namespace: "shop"}, neighbour{hosts: []string{"drone"}, namespace: "shop"}, ""},
		"generated namespaces": {"config-sync", neighbour{hosts: []string{"drone"}}, neighbour{hosts: []string{"drone"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings, _ := neighbours{reconciler: test.reconciler, targets: map[string]neighbour{"api": test.api, "db": test.db}}.render(t)
			if got := fmt.Sprint(findings); strings.Contains(got, "two files have the same object") != (test.want != "") ||
				!strings.Contains(got, test.want) {
				t.Errorf("findings %v, want %s", findings, test.want)
			}
		})
	}
}

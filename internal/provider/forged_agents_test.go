package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// forgedFluxObjects returns the GitRepository and Kustomization of an agent of cluster "edge-1" after a change. Anyone who may
// create Flux objects could forge them.
func forgedFluxObjects(namespace string, change func(source, kustomization map[string]any)) []any {
	labels := func(further map[string]any) map[string]any {
		all := map[string]any{
			"app.kubernetes.io/managed-by": "flotilla", "flotilla.dev/cluster": "edge-1", "flotilla.dev/cluster-type": "edge",
		}
		maps.Copy(all, further)
		return all
	}
	source := map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
		"metadata": map[string]any{"name": "flotilla", "namespace": namespace, "labels": labels(nil)},
		"spec": map[string]any{
			"interval": "1m0s", "url": "https://git.example.com/gitops", "ref": map[string]any{"branch": "dev"},
			"secretRef": map[string]any{"name": "flotilla-repository"},
		},
	}
	kustomization := map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{
			"name": "flotilla-cluster-type", "namespace": namespace, "labels": labels(map[string]any{"flotilla.dev/host": "edge"}),
		},
		"spec": map[string]any{
			"interval": "10m0s", "retryInterval": "1m0s", "timeout": "5m0s", "path": "./edge", "prune": true, "wait": true,
			"sourceRef": map[string]any{"kind": "GitRepository", "name": "flotilla"},
		},
	}
	change(source, kustomization)
	return []any{source, kustomization}
}

func specOf(object map[string]any) map[string]any {
	spec, _ := object["spec"].(map[string]any)
	return spec
}

func forgedCluster(t *testing.T, objects ...any) map[string]any {
	t.Helper()
	lists := map[string][]any{
		"/apis/source.toolkit.fluxcd.io/v1/gitrepositories": {}, "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations": {},
	}
	for i, object := range objects {
		path := "/apis/source.toolkit.fluxcd.io/v1/gitrepositories"
		if i%2 == 1 {
			path = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
		}
		lists[path] = append(lists[path], object)
	}
	return map[string]any{"host": serveLists(t, lists), "token": "any"}
}

// Values of objects become configuration. Values that flotilla_agent rejects cannot come from Flotilla.
func TestForgedObjectsOfAnAgentAreNeitherListedNorImported(t *testing.T) {
	t.Parallel()
	set := func(object, name string, value any) func(source, kustomization map[string]any) {
		return func(source, kustomization map[string]any) {
			specOf(map[string]map[string]any{"source": source, "follows": kustomization}[object])[name] = value
		}
	}
	forgedNames := map[string]func(source, kustomization map[string]any){
		"a URL of this machine":     set("source", "url", "file:///etc"),
		"a URL with a command":      set("source", "url", "ext::sh -c touch% /tmp/x"),
		"a URL with a password":     set("source", "url", "https://me:canary-t0ken-4711@git.example.com/gitops"),
		"a URL with an escape":      set("source", "url", "https://git.example.com/\x1b[2Jgitops"),
		"a URL with a look-alike":   set("source", "url", "https://gіt.example.com/gitops"), // second letter is Cyrillic
		"a branch of a template":    set("source", "ref", map[string]any{"branch": "dev${path.module}"}),
		"an interpolation":          set("source", "url", "https://git.example.com/${file(\"/etc/passwd\")}"),
		"a branch with a directive": set("source", "ref", map[string]any{"branch": "%{ for x in y }dev%{ endfor }"}),
		"a branch with ..":          set("source", "ref", map[string]any{"branch": "../dev"}),
		"a Secret with an escape":   set("source", "secretRef", map[string]any{"name": "\x1b]0;x\x07"}),
		"a path with ..":            set("follows", "path", "./../../edge"),
		"a path with an escape":     set("follows", "path", "./\x1b[2J/edge"),
		"a path with a look-alike":  set("follows", "path", "./рrod/edge"), // first letter is Cyrillic
		"a long path":               set("follows", "path", "./"+strings.Repeat("a", 1<<20)+"/edge"),
		"a Secret of decryption": set("follows", "decryption", map[string]any{
			"provider": "sops", "secretRef": map[string]any{"name": "../../default/x"},
		}),
		"an invalid cluster type": func(source, kustomization map[string]any) {
			specOf(kustomization)["path"] = "./Edge_x"
			for _, object := range []map[string]any{source, kustomization} {
				labels, _ := object["metadata"].(map[string]any)["labels"].(map[string]any)
				labels["flotilla.dev/cluster-type"] = "Edge_x"
			}
		},
		"a namespace with an escape": func(source, kustomization map[string]any) {
			for _, object := range []map[string]any{source, kustomization} {
				metadata, _ := object["metadata"].(map[string]any)
				metadata["namespace"] = "flux\x1b[2J"
			}
		},
	}
	for name, forge := range forgedNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := forgedCluster(t, forgedFluxObjects("flux-system", forge)...)
			w := providertest.New(startProvider)
			identities, resources, diags := w.Query(t.Context(), onCluster(cluster, nil), "flotilla_agent", nil)
			if len(identities) > 0 {
				t.Errorf("got agents %.300q, want none", resources)
			}
			if !diags.Has("Objects of an agent are not as Flotilla writes them") {
				t.Errorf("got diagnostics %.300s", diags)
			}
			if text := diags.String(); strings.ContainsAny(text, "\x1b\x07") || strings.Contains(text, "canary") || len(text) > 2_000 {
				t.Errorf("got diagnostics %.2000q", text)
			}
			if name == "a namespace with an escape" {
				return // no identity can have this namespace
			}
			identity := map[string]any{"cluster": "edge-1", "namespace": "flux-system"}
			diags = w.ImportIdentity(t.Context(), onCluster(cluster, agentAttributes("flux-system", nil)), agentAddress, identity)
			if !diags.Has("Objects of an agent are not as Flotilla writes them") || diags.Err() == nil {
				t.Errorf("the import has diagnostics %.300s", diags)
			}
			if text := diags.String(); strings.ContainsAny(text, "\x1b\x07") || strings.Contains(text, "canary") || len(text) > 2_000 {
				t.Errorf("got diagnostics %.2000q", text)
			}
		})
	}
}

// Its values come from its own namespace only.
func TestAnAgentIsListedBesideForgedObjects(t *testing.T) {
	t.Parallel()
	unchanged := func(_, _ map[string]any) {}
	objects := append(forgedFluxObjects("flux-system", unchanged), forgedFluxObjects("team-a", func(source, _ map[string]any) {
		specOf(source)["url"] = "https://evil.example.com/${path.module}"
	})...)
	cluster := forgedCluster(t, objects...)
	identities, resources, diags := providertest.New(startProvider).Query(t.Context(), onCluster(cluster, nil), "flotilla_agent", nil)
	if len(identities) != 1 || diags.Err() != nil || !strings.Contains(diags.String(), "team-a") {
		t.Fatalf("got agents %v and diagnostics %s", identities, diags)
	}
	if repo := fmt.Sprint(resources[0]["gitops_repo"]); repo != "map[branch:dev url:https://git.example.com/gitops]" {
		t.Errorf("the repository is %s", repo)
	}
}

// A valid value is imported, even if it is wrong. The plan corrects it.
func TestThePlanShowsAnImportedAgentOfAnotherRepository(t *testing.T) {
	t.Parallel()
	cluster := forgedCluster(t, forgedFluxObjects("flux-system", func(source, _ map[string]any) {
		specOf(source)["url"], specOf(source)["secretRef"] = "https://evil.example.com/gitops", map[string]any{"name": "another"}
	})...)
	w := providertest.New(startProvider)
	configuration := onCluster(cluster, agentAttributes("flux-system", nil))
	if diags := w.ImportIdentity(t.Context(), configuration, agentAddress, map[string]any{"cluster": "edge-1", "namespace": "flux-system"}); diags.Err() != nil {
		t.Fatal(diags)
	}
	if repo := fmt.Sprint(w.State.Values(agentAddress)["gitops_repo"]); !strings.Contains(repo, "evil.example.com") {
		t.Errorf("the imported repository is %s", repo)
	}
	plan, diags := w.Plan(t.Context(), configuration)
	if diags.Err() != nil || plan.Change(agentAddress).Action != providertest.Update {
		t.Fatalf("got changes %v and diagnostics %s", agentLines(plan), diags)
	}
	if repo := fmt.Sprint(plan.Change(agentAddress).After["gitops_repo"]); !strings.Contains(repo, "git.example.com") {
		t.Errorf("the planned repository is %s", repo)
	}
}

// OpenTofu generates the configuration. It must contain only literal text.
func TestGeneratedConfigurationOfForgedObjectsHasNoTemplates(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	for name, tool := range tools(t) {
		for _, c := range []struct {
			secret    string
			generates bool
		}{{"flotilla-repository", true}, {"${file(\"/etc/passwd\")}", false}} {
			cluster := forgedCluster(t, forgedFluxObjects("flux-system", func(source, _ map[string]any) {
				specOf(source)["secretRef"] = map[string]any{"name": c.secret}
			})...)
			w := newWorkdir(t, tool, map[string]string{"required_providers.tf": requiredProviders, "main.tf": fmt.Sprintf(
				"provider \"flotilla\" {\n  clusters = { edge-1 = { host = %q, token = \"any\" } }\n}\nimport {\n  to = flotilla_agent.a\n  id = \"edge-1\"\n}\n",
				cluster["host"],
			)})
			_, stderr, err := w.try("plan", "-input=false", "-no-color", "-generate-config-out=generated.tf")
			generated, _ := os.ReadFile(filepath.Join(w.path, "generated.tf"))
			if strings.Contains(string(generated), "${") || strings.Contains(string(generated), "%{") {
				t.Errorf("%s: the generated configuration is\n%s", name, generated)
			}
			if c.generates != strings.Contains(string(generated), "git.example.com") ||
				!c.generates && (err == nil || !strings.Contains(stderr, "are not as Flotilla writes them")) {
				t.Errorf("%s: Secret %q: got errors %s\nand configuration\n%s", name, c.secret, stderr, generated)
			}
		}
	}
}

func TestThousandsOfForgedAgentsAreListedInLinearTime(t *testing.T) {
	t.Parallel()
	count := acceptancetest.Count(500, 2_000)
	var objects []any
	for i := range count {
		objects = append(objects, forgedFluxObjects(fmt.Sprintf("team-%d", i), func(_, _ map[string]any) {})...)
	}
	identities, _, diags := providertest.New(startProvider).
		Query(t.Context(), onCluster(forgedCluster(t, objects...), nil), "flotilla_agent", nil)
	if len(identities) != count || diags.Err() != nil {
		t.Errorf("got %d agents and diagnostics %s", len(identities), diags)
	}
}
